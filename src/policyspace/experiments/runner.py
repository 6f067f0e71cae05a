"""Running cells: in this process or in several, records kept as they finish, resumable at any moment."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from importlib import import_module
from multiprocessing import get_context
from typing import Any

from policyspace.experiments.store import Cell, Store

Finished = Callable[[Cell, float, dict[str, Any]], None]
"""Told of every finished cell: the cell, its seconds, its result."""


def run_cells(cells: Sequence[Cell], store: Store, jobs: int = 1, finished: Finished | None = None) -> None:
    """Run what the store does not have yet; a cell depends on its setting alone, so any number of workers gives the same.

    Interrupted anywhere, what has finished is in the store, and the next call goes on from there.
    """
    missing = store.missing(cells)
    for cell, seconds, result in _in_processes(missing, jobs) if jobs > 1 else map(run_one, missing):
        store.add(cell, seconds, result)
        if finished is not None:
            finished(cell, seconds, result)


def run_one(cell: Cell) -> tuple[Cell, float, dict[str, Any]]:
    """One cell, timed."""
    start = time.perf_counter()
    module = import_module(f"policyspace.experiments.{cell.experiment.replace('-', '_')}")
    result = module.run(cell.setting)
    return cell, time.perf_counter() - start, result


def _in_processes(cells: Sequence[Cell], jobs: int) -> Iterator[tuple[Cell, float, dict[str, Any]]]:
    """Results as they come; at most two cells a worker wait in line, so that Ctrl-C is heard soon."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_one_thread) as pool:
        waiting: set[Future[Any]] = set()
        queue = iter(cells)
        try:
            while True:
                for cell in queue:
                    waiting.add(pool.submit(run_one, cell))
                    if len(waiting) >= 2 * jobs:
                        break
                if not waiting:
                    return
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _one_thread() -> None:
    """A worker uses one core: the next worker has the other."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
