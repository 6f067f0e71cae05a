"""Rows in chunks: bounded memory, one thread a chunk, and the same sum whatever the number of threads."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

T = TypeVar("T")


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Tall thin products are faster on one BLAS thread; the second core is better spent on the next chunk."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield


def sum_over_chunks(function: Callable[[slice], tuple[Any, ...]], num_rows: int, size: int) -> tuple[Any, ...]:
    """Σ function(chunk) over slices of `size` rows, added up in the order of the rows."""
    chunks = [slice(start, min(start + size, num_rows)) for start in range(0, num_rows, size)]
    workers = min(len(chunks), len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
    with single_threaded_blas():
        if workers == 1:
            return _add(map(function, chunks))
        with ThreadPoolExecutor(workers) as pool:
            return _add(pool.map(function, chunks))


def _add(parts: Any) -> tuple[Any, ...]:
    total: list[Any] = []
    for part in parts:
        total = [a + b for a, b in zip(total, part, strict=True)] if total else list(part)
    return tuple(total)
