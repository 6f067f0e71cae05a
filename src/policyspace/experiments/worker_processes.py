"""Worker processes: each runs one cell at a time; one that is killed is replaced, and its cell runs again.

A pool of the standard library loses all its workers when one is killed, and does not say which cell killed it.
"""

import os
import signal
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait

from policyspace.errors import InputError
from policyspace.experiments.one_cell import ONE_THREAD, Outcome, environment, run_one
from policyspace.experiments.records import Cell

MOST_DEATHS = 3
"""So many workers may be killed at one cell before it is given up: most likely it needs more memory than there is."""


def in_processes(cells: Sequence[Cell], jobs: int, told: Callable[[str], None]) -> Iterator[Outcome]:
    """Results as they come; whatever ends the loop, Ctrl-C too, ends the workers at once."""
    queue, deaths = deque(cells), Counter[tuple[str, str]]()
    workers: list[_Worker] = []
    try:
        while queue or any(worker.cell for worker in workers):
            while queue and len(workers) < jobs:
                workers.append(_Worker())
            for worker in workers:
                if worker.cell is None and queue:
                    worker.start(queue.popleft())
            for worker in _ready(workers):
                cell, answer = worker.answer()
                if answer is None:
                    workers.remove(worker)
                    deaths[cell.key] += 1
                    _check(cell, deaths[cell.key])
                    told(f"A worker was killed while it ran {cell.experiment}; another one runs that cell again.")
                    queue.appendleft(cell)
                else:
                    yield answer
    finally:
        for worker in workers:
            worker.kill()


def _check(cell: Cell, deaths: int) -> None:
    if deaths >= MOST_DEATHS:
        raise InputError(
            f"{deaths} workers were killed while they ran {cell.experiment} with {cell.key[1]}, perhaps for want of memory: "
            "what has finished is kept; run the same command again with fewer --jobs to go on."
        )


class _Worker:
    """A process and the cell it is at."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.cell: Cell | None = None
        self._process = context.Process(target=_work, args=(theirs,), daemon=True)
        with environment(ONE_THREAD):
            self._process.start()
        theirs.close()  # the worker now holds the only other end: when it dies, ours says so

    def start(self, cell: Cell) -> None:
        self.cell = cell
        try:
            self.connection.send(cell)
        except OSError:
            return  # it died between two cells: its answer will say so

    def answer(self) -> tuple[Cell, Outcome | None]:
        """The cell it was given and what came of it: none if the worker has died."""
        cell, self.cell = self.cell, None
        assert cell is not None
        try:
            outcome = self.connection.recv()
        except (EOFError, OSError):
            self.kill()
            return cell, None
        if isinstance(outcome, Exception):
            raise outcome
        return cell, outcome

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()


def _ready(workers: list[_Worker]) -> list[_Worker]:
    """Those that have answered or died; waits until there is one."""
    connections = wait([worker.connection for worker in workers if worker.cell is not None])
    return [worker for worker in workers if worker.connection in connections]


def _work(connection: Connection) -> None:
    """What a worker does until its parent goes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            cell = connection.recv()
        except EOFError:
            return
        connection.send(_outcome(cell))


def _outcome(cell: Cell) -> Outcome | Exception:
    """The result, or an exception that can travel: those of libraries may not be unpickled again."""
    try:
        return run_one(cell)
    except InputError as error:
        return InputError(str(error))
    except Exception:
        return RuntimeError(f"{cell.experiment} with {cell.key[1]} failed:\n{traceback.format_exc()}")


def _end_with_parent() -> None:
    """A worker whose parent was killed has nobody to answer to: it goes at once, in the middle of a cell too."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
