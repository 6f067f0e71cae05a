"""Rows in chunks: bounded memory, one thread a chunk, and the same sum whatever the number of threads."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, reduce
from typing import Any

from threadpoolctl import ThreadpoolController

_limited: ContextVar[bool] = ContextVar("_limited", default=False)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Tall thin products are faster on one BLAS thread; the second core is better spent on the next chunk."""
    if _limited.get():
        yield
        return
    token = _limited.set(True)
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _limited.reset(token)


def num_workers() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def sum_over_chunks(function: Callable[[slice], tuple[Any, ...]], num_rows: int, size: int) -> tuple[Any, ...]:
    """Σ function(chunk) over slices of `size` rows, added up in the order of the rows."""
    chunks = [slice(start, min(start + size, num_rows)) for start in range(0, num_rows, size)]
    if len(chunks) == 1:
        return function(chunks[0])
    workers = min(len(chunks), num_workers())
    with single_threaded_blas():
        if workers == 1:
            return reduce(added, map(function, chunks))
        with ThreadPoolExecutor(workers) as pool:
            return reduce(added, pool.map(function, chunks))


def added(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    """Two tuples of sums as one; an empty one is a sum over no rows."""
    if not first or not second:
        return first or second
    return tuple(a + b for a, b in zip(first, second, strict=True))
