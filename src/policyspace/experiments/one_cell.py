"""One cell, run and timed on one core: what every worker does, whatever road brought the cell to it."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from policyspace.experiments.records import Cell

Outcome = tuple[Cell, float, dict[str, Any]]
"""A finished cell, its seconds, its result."""

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PJRT_NPROC": "1",  # XLA asks this for the size of its pools; its flags about threads no longer do anything
    "NPROC": "1",  # the same, in its earlier versions
}
"""What a process must find in its environment when it starts, for BLAS and XLA to leave the other cores alone.

Sums over several threads depend on how many there are: one thread is also what makes records the same everywhere.
"""


def experiment_module(name: str) -> ModuleType:
    """The module that says what an experiment is; names have dashes where modules have underscores."""
    return import_module(f"policyspace.experiments.{name.replace('-', '_')}")


def run_one(cell: Cell) -> Outcome:
    """One cell, timed."""
    start = time.perf_counter()
    result = experiment_module(cell.experiment).run(cell.setting)
    return cell, time.perf_counter() - start, result


@contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
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
