"""Running cells: in this process, in several, or on a cluster; records kept as they finish, resumable at any moment."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from policyspace.experiments.one_cell import Outcome, run_one
from policyspace.experiments.records import Cell, Store
from policyspace.experiments.worker_processes import in_processes

Finished = Callable[[Cell, float, dict[str, Any]], None]
"""Told of every finished cell: the cell, its seconds, its result."""

Road = Callable[[Sequence[Cell]], Iterable[Outcome]]
"""Where cells are run: takes them all, gives each back when it has finished."""


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    jobs: int = 1,
    finished: Finished | None = None,
    told: Callable[[str], None] = lambda sentence: None,
    road: Road | None = None,
) -> None:
    """Run what the store does not have yet; a cell depends on its setting alone, so any number of workers gives the same.

    Interrupted anywhere, what has finished is in the store, and the next call goes on from there. `told` hears of
    workers that were lost on the way; a `road` other than processes of this machine may be a cluster's.
    """
    missing = store.missing(cells)
    before = time.monotonic()
    for cell, seconds, result in (road or _here(jobs, told))(missing):
        now = time.monotonic()
        store.add(cell, seconds, result, now - before)
        before = now
        if finished is not None:
            finished(cell, seconds, result)


def _here(jobs: int, told: Callable[[str], None]) -> Road:
    """One job is this process itself."""
    return (lambda cells: in_processes(cells, jobs, told)) if jobs > 1 else (lambda cells: map(run_one, cells))
