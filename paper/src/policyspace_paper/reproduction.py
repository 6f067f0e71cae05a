"""The experiments of `policyspace reproduce`, run resumably: their progress and their verdicts on the console."""

import json
import sys
from collections import defaultdict
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from policyspace.cli.console import Stopped, is_quiet, new_console, say, show_table
from policyspace.errors import InputError, nearest
from policyspace.runtime import num_workers
from policyspace.safe_io import check_targets, made_folder
from policyspace_paper.execution import (
    EXPERIMENTS,
    Cell,
    Record,
    RunSize,
    Store,
    dask_cluster,
    find_experiment,
    record_version,
    run_cells,
)
from policyspace_paper.page import NUMBERS, PAGE, Results

if TYPE_CHECKING:
    from policyspace_paper.cli import RunOptions

LOG_WIDTH = 160
"""Of lines in a file, where no terminal says how wide they may be."""

STYLES = {"holds": "green", "holds partly": "yellow", "does not hold": "red", "our own": "dim"}


def reproduce_experiments(names: list[str], options: "RunOptions") -> None:
    """Run the cells that have no record yet, and show each experiment as soon as all its cells have one.

    Parameters
    ----------
    names : list of str
        Experiments, or "all".
    options : RunOptions
        How much is run, by whom, and where the results are.

    Raises
    ------
    InputError
        If an experiment is unknown, two options contradict each other, or a file cannot be read or written.
    Stopped
        On Ctrl-C: the same call goes on from there.
    """
    if options.dask is not None and options.jobs is not None:
        raise InputError("--jobs is for processes of this machine, found it together with --dask: leave one out.")
    for name in names:
        if name != "all" and name not in EXPERIMENTS:
            raise InputError(f"unknown experiment '{name}': {nearest(name, [*EXPERIMENTS, 'all'])}")
    size = RunSize(options.runs, options.quick, options.as_published)
    results = Results(options.out, size, tuple(EXPERIMENTS))
    console = new_console(width=None if sys.stdout.isatty() else LOG_WIDTH)
    records = made_folder(options.out) / "records.sqlite"
    check_targets([records, *(options.out / name for name in (PAGE, NUMBERS))])
    wanted = [name for name in EXPERIMENTS if "all" in names or name in names]  # in the order of the paper
    with Store(records) as store:
        cells = {name: find_experiment(name).cells(size) for name in wanted}
        if not options.resume:
            store.forget([cell for own in cells.values() for cell in own])
        there = [record for own in cells.values() for record in store.records_of(own)]
        older = [record.experiment for record in there if record.version != record_version(record.experiment)]
        if older:
            say(
                console,
                f"{len(older)} of the {len(there)} records in {store.path} ({', '.join(dict.fromkeys(older))}) were made by "
                "other code than this and stay as they are; --fresh makes them anew.",
            )
        try:
            _run(cells, store, results, options.jobs or num_workers(), options.dask, console)
        except KeyboardInterrupt:
            total = sum(len(own) for own in cells.values())
            kept = total - sum(len(store.missing(own)) for own in cells.values())
            raise Stopped(
                f"stopped; {kept} of {total} cells are kept in {store.path}: the same command goes on from there."
            ) from None
    say(console, f"Page: {options.out / PAGE}")


def _run(
    cells: dict[str, list[Cell]], store: Store, results: Results, jobs: int, dask: str | None, console: Console
) -> None:
    """All cells in one queue, so that no core waits at the end of an experiment; each is shown as soon as it is whole."""
    left = {name: len(store.missing(own)) for name, own in cells.items()}
    for name in (name for name, count in left.items() if count == 0):
        _show(console, results, name, store.records_of(cells[name]))
    if not any(left.values()):
        return
    cluster = nullcontext((None, jobs)) if dask is None else dask_cluster(dask)
    with cluster as (executor, workers), CellProgress(console, cells, store, workers, is_quiet()) as progress:

        def finished(cell: Cell, seconds: float, result: Mapping[str, Any]) -> None:
            progress.finished(cell, seconds)
            left[cell.experiment] -= 1
            if left[cell.experiment] == 0:
                _show(console, results, cell.experiment, store.records_of(cells[cell.experiment]))

        queue = [cell for own in cells.values() for cell in own]
        run_cells(queue, store, jobs, finished, partial(say, console), executor)


def _show(console: Console, results: Results, name: str, records: list[Record[Any, Any]]) -> None:
    """Put an experiment on the page, and print its numbers and verdicts."""
    for panel in results.add(name, records):
        say(console, "")
        say(console, panel.title, style="bold", wrap=True)
        say(console, f"{'Question' if panel.verdict == 'our own' else 'The paper'}: {panel.claim.statement}", wrap=True)
        say(console, f"{panel.verdict}: {panel.why}", style=STYLES.get(panel.verdict, "dim"), wrap=True)
        if panel.rows:
            show_table(console, panel.table)
    say(console, "")
    say(console, f"{name} is on {results.folder / PAGE}", style="dim")


class CellProgress:
    """A bar under the lines on a terminal; lines that say it themselves elsewhere."""

    def __init__(
        self, console: Console, cells: dict[str, list[Cell]], store: Store, workers: int, quiet: bool = False
    ) -> None:
        self._console, self._quiet = console, quiet
        self._telling = {name: distinguishing(own) for name, own in cells.items()}
        self._time = TimeLeft(workers)
        everything = [cell for own in cells.values() for cell in own]
        missing = store.missing(everything)
        for cell in missing:
            self._time.expect(cell)
        for record in store.records_of(everything):
            self._time.learn(Cell(record.experiment, record.setting), record.duration)
        self._total, self._done = len(everything), len(everything) - len(missing)
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
        self._bar = Progress(*columns, console=console, transient=True) if console.is_terminal and not quiet else None

    def __enter__(self) -> Self:
        if self._done:
            self._say(f"{self._done} of {self._total} cells are there already.")
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task(self._time_left(), total=self._total, completed=self._done)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def finished(self, cell: Cell, seconds: float) -> None:
        """Print the line of a cell, and move the bar."""
        self._done += 1
        self._time.learn(cell, seconds)
        self._time.done(cell)
        line = " ".join([cell.experiment, *described(cell, self._telling[cell.experiment])]) + f": {seconds:.1f} s"
        if self._bar is None:
            self._say(f"{line} ({self._done}/{self._total}, {self._time_left()})")
        else:
            self._say(line)
            self._bar.update(self._task, completed=self._done, description=self._time_left())

    def _time_left(self) -> str:
        seconds = self._time.seconds()
        if seconds is None:
            return "time left not known yet"
        if seconds < 90:
            return f"about {seconds:.0f} s left"
        return f"about {seconds / 60:.0f} min left" if seconds < 5400 else f"about {seconds / 3600:.1f} h left"

    def _say(self, text: str) -> None:
        if not self._quiet:
            say(self._console, text)


class TimeLeft:
    """What the missing cells will cost: as much as those of the same setting, else of the same experiment, did so far."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._left: dict[tuple[str, str], int] = defaultdict(int)
        self._known: dict[tuple[str, ...], list[float]] = defaultdict(list)

    def expect(self, cell: Cell) -> None:
        """A cell that is to be run."""
        self._left[_kind(cell)] += 1

    def learn(self, cell: Cell, seconds: float) -> None:
        """What a cell took."""
        for kind in (_kind(cell), (cell.experiment,), ()):
            self._known[kind].append(seconds)

    def done(self, cell: Cell) -> None:
        """A cell that is no longer to be run."""
        self._left[_kind(cell)] -= 1

    def seconds(self) -> float | None:
        """The time until all have run, on all workers together; none before the first has."""
        if not self._known[()]:
            return None
        cost = sum(count * self._mean(kind) for kind, count in self._left.items() if count)
        return cost / min(self._workers, max(sum(self._left.values()), 1))

    def _mean(self, kind: tuple[str, str]) -> float:
        known = self._known[kind] or self._known[kind[:1]] or self._known[()]
        return sum(known) / len(known)


def _kind(cell: Cell) -> tuple[str, str]:
    """Cells that differ in their seed alone cost alike."""
    same = {name: value for name, value in cell.setting.items() if name != "seed"}
    return cell.experiment, json.dumps(same, sort_keys=True)


def distinguishing(cells: list[Cell]) -> list[str]:
    """The entries in which the cells of an experiment differ, the seed last: plain values where those do."""
    names = sorted(dict.fromkeys(name for cell in cells for name in cell.setting), key=lambda name: name == "seed")
    varying = [name for name in names if len({json.dumps(cell.setting.get(name)) for cell in cells}) > 1]
    plain = [name for name in varying if not any(isinstance(c.setting.get(name), dict | list) for c in cells)]
    return plain or varying


def described(cell: Cell, names: list[str]) -> list[str]:
    """Those entries of one cell, each in a few words."""
    words = []
    for name in names:
        if name in cell.setting:
            value = cell.setting[name]
            text = (
                f"{value:.4g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)
            )
            words.append(f"{name.replace('_', ' ')} {text if len(text) <= 24 else f'{text[:23]}…'}")
    return words
