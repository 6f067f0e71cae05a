"""Running cells: in this process, in several, or on a cluster; records kept as they finish, resumable at any moment."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from contextlib import nullcontext
from typing import Any

from policyspace.experiments.one_cell import Outcome, run_in_worker, run_one
from policyspace.experiments.records import Cell, Store
from policyspace.experiments.worker_processes import worker_processes

Finished = Callable[[Cell, float, dict[str, Any]], None]
"""Hears of every finished cell: the cell, its seconds, its result."""


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    jobs: int = 1,
    finished: Finished = lambda cell, seconds, result: None,
    report: Callable[[str], None] = lambda sentence: None,
    executor: Executor | None = None,
) -> None:
    """Run what the store does not have yet; a cell depends on its setting alone, so any number of workers gives the same.

    Interrupted anywhere, what has finished is in the store, and the next call goes on from there. One job is this process
    itself; `report` hears of workers that were lost on the way; an `executor`, as of a cluster, takes the place of jobs.
    """
    missing = store.missing(cells)
    here = nullcontext(executor) if executor is not None or jobs == 1 else worker_processes(jobs, report)
    with here as workers:
        before = time.monotonic()
        for cell, seconds, result in map(run_one, missing) if workers is None else _completed(missing, workers):
            now = time.monotonic()
            store.add(cell, seconds, result, now - before)
            before = now
            finished(cell, seconds, result)


def _completed(cells: Sequence[Cell], executor: Executor) -> Iterator[Outcome]:
    """Results as they come; an executor may forget each as soon as it has been taken."""
    futures = {executor.submit(run_in_worker, cell) for cell in cells}
    try:
        for future in as_completed(futures):
            futures.remove(future)
            yield future.result()
    finally:
        for future in futures:
            future.cancel()
