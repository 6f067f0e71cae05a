"""One cell, run and timed on one core: what every worker does, in whatever process or on whatever machine it is."""

import os
import sys
import time
import traceback
from typing import Any

from policyspace.errors import InputError
from policyspace.experiments.catalogue import experiment_module
from policyspace.experiments.records import Cell

Outcome = tuple[Cell, float, dict[str, Any]]
"""A finished cell, its seconds of processor time, its result."""

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


def run_one(cell: Cell) -> Outcome:
    """One cell, and the processor time it took, which other programs on the machine hardly change."""
    start = time.process_time()
    result = experiment_module(cell.experiment).run(cell.setting)
    return cell, time.process_time() - start, result


def run_in_worker(cell: Cell) -> Outcome:
    """One cell on one thread of a worker, whatever BLAS it has loaded already.

    Exceptions are replaced by those that can travel between processes: those of libraries may not be unpickled again.
    """
    from threadpoolctl import threadpool_limits

    if "jax" not in sys.modules:
        os.environ.update(ONE_THREAD)
    try:
        with threadpool_limits(limits=1):
            return run_one(cell)
    except InputError as error:
        raise InputError(str(error)) from None
    except Exception:
        words = f"{cell.experiment} with {cell.key[1]} failed:\n{traceback.format_exc()}"
        raise RuntimeError(words) from None
