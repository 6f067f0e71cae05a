"""The progress of `policyspace reproduce`: one line a finished cell, and the time left."""

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Self

from policyspace.cli.screen import say
from policyspace.experiments.records import Cell, Store

if TYPE_CHECKING:
    from rich.console import Console


class CellProgress:
    """A bar under the lines on a terminal; lines that say it themselves elsewhere."""

    def __init__(
        self, console: "Console", cells: dict[str, list[Cell]], store: Store, workers: int, quiet: bool = False
    ) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

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
    return [f"{name.replace('_', ' ')} {_short(cell.setting[name])}" for name in names if name in cell.setting]


def _short(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 24 else f"{text[:23]}…"
