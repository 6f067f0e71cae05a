"""An executor of worker processes, each at one cell at a time: one that is killed is replaced, and its cell runs again."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait
from typing import Any

from policyspace.errors import InputError
from policyspace.experiments.one_cell import ONE_THREAD
from policyspace.experiments.records import Cell

MOST_DEATHS = 3
"""So many workers may be killed at one cell before it is given up: most likely it needs more memory than there is."""


@contextmanager
def worker_processes(jobs: int, report: Callable[[str], None]) -> Iterator[Executor]:
    """So many processes; whatever ends the block, Ctrl-C too, ends them at once. `report` hears of workers that died."""
    executor = _Replacing(jobs, report)
    with _environment(ONE_THREAD):
        try:
            yield executor
        finally:
            executor.kill()


class _Own(threading.local):
    """What a thread owns: a pool of one process, and the number of that process."""

    pool: ProcessPoolExecutor | None = None
    worker: int = 0


class _Replacing(ThreadPoolExecutor):
    """Threads that each own a pool of one process.

    A larger pool loses all its workers when one is killed, and does not say which cell killed it.
    """

    def __init__(self, jobs: int, report: Callable[[str], None]) -> None:
        super().__init__(jobs)
        self._report = report
        self._own = _Own()
        self._workers: set[int] = set()
        self._ended = False

    def submit(self, function: Callable[[Cell], Any], cell: Cell) -> Future[Any]:  # type: ignore[override]
        """Run a function of a cell in a process; in another one if that is killed."""
        return super().submit(self._run, function, cell)

    def kill(self) -> None:
        """End all workers, in the middle of a cell too; what has not started never does."""
        self._ended = True
        for process in active_children():
            if process.pid in self._workers:
                process.kill()
        self.shutdown(cancel_futures=True)

    def _run(self, function: Callable[[Cell], Any], cell: Cell) -> Any:
        for death in range(1, MOST_DEATHS + 1):
            try:
                return self._process().submit(function, cell).result()
            except BrokenProcessPool:
                self._workers.discard(self._own.worker)
                self._own.pool = None
                if self._ended:
                    raise
            if death < MOST_DEATHS:
                self._report(f"A worker was killed while it ran {cell.experiment}; another one runs that cell again.")
        raise InputError(
            f"{MOST_DEATHS} workers were killed while they ran {cell.experiment} with {cell.key[1]}, perhaps for want of "
            "memory: what has finished is kept; run the same command again with fewer --jobs to go on."
        )

    def _process(self) -> ProcessPoolExecutor:
        """The process of this thread, started if it has none."""
        if self._own.pool is None:
            self._own.pool = ProcessPoolExecutor(1, get_context("spawn"), _prepare)
            self._own.worker = self._own.pool.submit(os.getpid).result()
            self._workers.add(self._own.worker)
        if self._ended:
            self._own.pool.shutdown()
            raise BrokenProcessPool("all workers are being ended")
        return self._own.pool


def _prepare() -> None:
    """What a worker does first: Ctrl-C, which reaches the whole group, is left to the parent, with which it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose parent was killed has nobody to answer to: it goes at once, in the middle of a cell too."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Environment variables for the processes that are started inside; afterwards all is as before.

    A worker cannot set them for itself: where the main script imports NumPy, so does the worker, before its first line.
    """
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
