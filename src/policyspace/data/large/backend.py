"""Where passes over parts run: on threads here, or on a dask cluster; sums have the same bits either way."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import islice
from time import monotonic
from typing import Any, Protocol, TypeVar

from policyspace.data.chunks import num_workers, single_threaded_blas
from policyspace.data.dask_client import connect, what_the_cluster_suffered
from policyspace.data.large.parts import Part
from policyspace.errors import InputError
from policyspace.progress import say_progress

T = TypeVar("T")


class Backend(Protocol):
    """What can make a sum over parts."""

    def reduce(self, function: Callable[[Part], T], parts: Sequence[Part], add: Callable[[T, T], T], what: str) -> T:
        """function(part₁) + function(part₂) + …, added two by two in a tree that depends on their number alone."""


class Threads:
    """The cores of this machine, each with a part at a time."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or num_workers()

    def reduce(self, function: Callable[[Part], T], parts: Sequence[Part], add: Callable[[T, T], T], what: str) -> T:
        """The parts in their order, never more at work than there are threads."""
        with single_threaded_blas():
            if self.workers == 1:
                return tree_sum(map(function, counted(parts, what)), add)
            with ThreadPoolExecutor(self.workers) as pool:
                done = _in_order(
                    lambda part: pool.submit(copy_context().run, function, part), parts, self.workers + 1, what
                )
                return tree_sum(done, add)


class Cluster:
    """A dask.distributed cluster, whose workers see the files under the same names."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def reduce(self, function: Callable[[Part], T], parts: Sequence[Part], add: Callable[[T, T], T], what: str) -> T:
        """A task a part; a worker that dies loses its own tasks, which others do again."""
        try:
            most = 4 * max(1, sum(self.client.nthreads().values()))
            done = _in_order(
                lambda part: self.client.submit(_on_one_blas_thread, function, part, pure=False), parts, most, what
            )
            return tree_sum(done, add)
        except Exception as error:
            suffered = what_the_cluster_suffered(error, "part of the files")
            if suffered is None:
                raise
            raise InputError(f"the dask cluster did not finish the work ({suffered}): start it again.") from error


def _in_order(submit: Callable[[Part], Any], parts: Sequence[Part], most: int, what: str) -> Iterator[Any]:
    """The results in the order of the parts, of which at most so many are begun or wait to be added up."""
    waiting = iter(counted(parts, what))
    begun = deque(submit(part) for part in islice(waiting, most))
    try:
        while begun:
            yield begun.popleft().result()
            begun.extend(submit(part) for part in islice(waiting, 1))
    finally:  # after Ctrl-C, or an error: what has not begun never does
        for future in begun:
            future.cancel()


def backend_of(given: Any) -> Backend:
    """None: the threads of this machine; the address of a scheduler, or a client of dask.distributed: its cluster."""
    if given is None:
        return Threads()
    if hasattr(given, "reduce"):
        return given
    if isinstance(given, str):
        return Cluster(connect(given))
    if hasattr(given, "submit") and hasattr(given, "nthreads"):
        return Cluster(given)
    raise InputError(f"backend= is a client of dask.distributed or its address, found {type(given).__name__}.")


def tree_sum(items: Iterable[T], add: Callable[[T, T], T]) -> T:
    """The sum of items in their order, as a binary counter adds them: equal sizes first, few held at a time."""
    held: list[tuple[int, T]] = []
    for item in items:
        size = 1
        while held and held[-1][0] == size:
            item, size = add(held.pop()[1], item), 2 * size
        held.append((size, item))
    if not held:
        raise InputError("a data set needs at least one row, found none: check the files.")
    total = held.pop()[1]
    while held:
        total = add(held.pop()[1], total)
    return total


def counted(parts: Sequence[Part], what: str) -> Iterable[Part]:
    """The parts, which says how many were handed out and how long the rest may take."""
    begun = monotonic()
    for done, part in enumerate(parts):
        left = (monotonic() - begun) / done * (len(parts) - done) if done > 3 else None
        say_progress(what if left is None or left < 2 else f"{what}, about {left:.0f} s left", done, len(parts))
        yield part


def _on_one_blas_thread(function: Callable[[Part], T], part: Part) -> T:
    with single_threaded_blas():
        return function(part)
