"""`policyspace reproduce`: run the paper's experiments, resumably, and put claim and result side by side on a page."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyspace.cli.bundled import option
from policyspace.cli.running import is_quiet, running
from policyspace.cli.screen import Stopped, new_console, say, show_table
from policyspace.errors import InputError, nearest
from policyspace.experiments.catalogue import EXPERIMENTS, experiment_module

if TYPE_CHECKING:
    from rich.console import Console

    from policyspace.experiments.records import Cell, Store
    from policyspace.results.folder import Results
    from policyspace.results.panel import Panel

MOST_RUNS = 1_000_000
LOG_WIDTH = 160
"""Of lines in a file, where no terminal says how wide they may be."""


@dataclass(frozen=True)
class RunOptions:
    """How much is run, by whom, and where the results are."""

    runs: int | None = option(None, "Runs of each setting; by default as many as the paper.", min=1, max=MOST_RUNS)
    quick: bool = option(False, "A miniature: every figure from few points and runs.")
    as_published: bool = option(False, "Only the column of the paper's literal settings; by default both.")
    jobs: int | None = option(None, "Worker processes; by default as many as cores.", min=1)
    dask: str | None = option(None, "Run on a dask.distributed cluster instead: its scheduler.", "ADDRESS")
    out: Path = option(Path("results"), "Folder for records, numbers, figures, page.", "DIR")
    resume: bool = option(True, "Go on where an earlier run was, or forget its records.", None, "--resume/--fresh")


@running
def reproduce(
    said: RunOptions,
    names: Annotated[list[str] | None, typer.Argument(help="Experiments, or all (default).", metavar="[NAME]…")] = None,
) -> None:
    """Run the experiments of the paper and show claim and result side by side, in DIR/index.html.

    Every claim is run by the paper's own settings, wherever it states them, and by ours.
    Records are kept as they finish: stopped at any moment, the same command goes on where it was.
    """
    from policyspace.data.chunks import num_workers
    from policyspace.data.whole_file import check_targets, made_folder
    from policyspace.experiments.one_cell import ONE_THREAD
    from policyspace.experiments.records import Store
    from policyspace.experiments.scale import Scale
    from policyspace.results.folder import Results

    if said.dask is not None and said.jobs is not None:
        raise InputError("--jobs is for processes of this machine, found it together with --dask: leave one out.")
    wanted, out = _in_order(names or ["all"]), said.out
    os.environ.update(ONE_THREAD)  # before NumPy and JAX are loaded: with one job this process is the worker
    scale = Scale(said.runs, said.quick, said.as_published)
    results = Results(out, scale, tuple(EXPERIMENTS))
    console = new_console(width=None if sys.stdout.isatty() else LOG_WIDTH)
    records = made_folder(out) / "records.sqlite"
    check_targets([records, *(out / name for name in (results.files.page, results.files.numbers))])
    with Store(records) as store:
        cells = _cells(wanted, results)
        if not said.resume:
            store.forget([cell for own in cells.values() for cell in own])
        _tell_of_other_code(cells, store, console)
        try:
            _run(cells, store, results, said.jobs or num_workers(), said.dask, console)
        except KeyboardInterrupt:
            total = sum(len(own) for own in cells.values())
            kept = total - sum(len(store.missing(own)) for own in cells.values())
            raise Stopped(
                f"stopped; {kept} of {total} cells are kept in {store.path}: the same command goes on from there."
            ) from None
    say(console, f"Page: {out / results.files.page}")


def _run(
    cells: "dict[str, list[Cell]]", store: "Store", results: "Results", jobs: int, dask: str | None, console: "Console"
) -> None:
    """All cells in one queue, so that no core waits at the end of an experiment; each is shown as soon as it is whole."""
    from contextlib import nullcontext
    from functools import partial

    from policyspace.cli.reproduce_progress import CellProgress
    from policyspace.experiments.dask_cluster import DaskCluster
    from policyspace.experiments.runner import run_cells

    left = {name: len(store.missing(own)) for name, own in cells.items()}
    for name, own in cells.items():
        if left[name] == 0:
            _show(console, results.add(name, store.records_of(own)), results, name)
    if not any(left.values()):
        return
    with nullcontext() if dask is None else DaskCluster(dask) as cluster:
        workers = jobs if cluster is None else cluster.num_threads
        with CellProgress(console, cells, store, workers, is_quiet()) as progress:

            def finished(cell: "Cell", seconds: float, result: dict[str, Any]) -> None:
                progress.finished(cell, seconds)
                left[cell.experiment] -= 1
                if left[cell.experiment] == 0:
                    panels = results.add(cell.experiment, store.records_of(cells[cell.experiment]))
                    _show(console, panels, results, cell.experiment)

            queue = [cell for own in cells.values() for cell in own]
            run_cells(
                queue, store, jobs, finished, partial(say, console), None if cluster is None else cluster.executor
            )


def _tell_of_other_code(cells: "dict[str, list[Cell]]", store: "Store", console: "Console") -> None:
    """Records that are gone on with may come from code that has changed since."""
    from policyspace.data.code_version import code_version

    records = [record for own in cells.values() for record in store.records_of(own)]
    others = sum(record.version != code_version() for record in records)
    if others:
        say(
            console,
            f"{others} of the {len(records)} records in {store.path} were made by other code than this "
            f"({code_version()}) and stay as they are; --fresh makes them anew.",
        )


def _show(console: "Console", panels: "list[Panel]", results: "Results", name: str) -> None:
    """The numbers and verdicts of an experiment."""
    styles = {"holds": "green", "holds partly": "yellow", "does not hold": "red", "our own": "dim"}
    for panel in panels:
        say(console, "")
        say(console, panel.title, style="bold", wrap=True)
        asked = "Question" if panel.verdict == "our own" else "The paper"
        say(console, f"{asked}: {panel.claim}", wrap=True)
        say(console, f"{panel.verdict}: {panel.why}", style=styles.get(panel.verdict, "dim"), wrap=True)
        if panel.rows:
            show_table(console, panel.table)
    say(console, "")
    say(console, f"{name} is on {results.folder / results.files.page}", style="dim")


def _cells(wanted: list[str], results: "Results") -> "dict[str, list[Cell]]":
    return {name: experiment_module(name).cells(results.scale) for name in wanted}


def _in_order(names: list[str]) -> list[str]:
    """In the order of the paper, whatever order they were named in."""
    for name in names:
        if name != "all" and name not in EXPERIMENTS:
            raise InputError(f"unknown experiment '{name}': {nearest(name, [*EXPERIMENTS, 'all'])}")
    return [name for name in EXPERIMENTS if "all" in names or name in names]
