"""The same cells on a dask.distributed cluster: many machines, the same records."""

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Self

from policyspace.errors import InputError
from policyspace.experiments.code_version import code_version
from policyspace.experiments.one_cell import ONE_THREAD, Outcome, run_one
from policyspace.experiments.records import Cell

TIMEOUT = 20
"""Seconds until a scheduler that does not answer, or a cluster without workers, is given up."""


class DaskCluster:
    """A connection to a scheduler; it sends cells again whose worker was killed."""

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise InputError(
                "--dask needs dask.distributed, which is not installed: pip install 'policyspace[dask]'."
            ) from error
        self.address = address
        logging.getLogger("distributed.client").setLevel(
            logging.CRITICAL
        )  # what it logs, this class says in a sentence
        try:
            self._client: Any = Client(address, timeout=TIMEOUT)
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise InputError(f"--dask {address}: no scheduler answers there ({reason}): check the address.") from error
        try:
            self._check_workers()
        except BaseException:
            self._client.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    @property
    def num_threads(self) -> int:
        """Cells that can run at once."""
        return sum(self._client.nthreads().values())

    def run(self, cells: Sequence[Cell]) -> Iterator[Outcome]:
        """Results as they come; the road of `run_cells`."""
        from distributed import CancelledError, KilledWorker, as_completed
        from distributed.comm import CommClosedError

        futures = self._client.map(_run_alone, cells, pure=False)
        try:
            # Popped, so that the cluster may forget results that are in the store.
            for future in as_completed(futures):
                futures.remove(future)
                yield future.result()
        except KilledWorker as error:
            raise InputError(
                f"--dask {self.address}: several workers were killed at one cell, perhaps for want of memory: "
                "what has finished is kept; the same command goes on from there."
            ) from error
        except (CancelledError, CommClosedError) as error:
            raise InputError(
                f"--dask {self.address}: the scheduler has gone: what has finished is kept; "
                "the same command goes on from there."
            ) from error
        finally:
            self._client.cancel(futures)

    def _check_workers(self) -> None:
        """Somebody must be there, with this version: another one may give other records."""
        try:
            self._client.wait_for_workers(1, timeout=TIMEOUT)
        except TimeoutError as error:
            raise InputError(f"--dask {self.address}: the cluster has no workers: start some.") from error
        try:
            versions = set(self._client.run(code_version).values())
        except ModuleNotFoundError as error:
            raise InputError(
                f"--dask {self.address}: workers lack policyspace ({error}): install {code_version()} there."
            ) from error
        if versions != {code_version()}:
            found = ", ".join(sorted(versions))
            raise InputError(
                f"--dask {self.address}: expected workers with policyspace {code_version()}, found {found}: "
                "install the same code."
            )


def _run_alone(cell: Cell) -> Outcome:
    """One cell on one thread of the worker, whatever BLAS it has loaded already."""
    from threadpoolctl import threadpool_limits

    if "jax" not in sys.modules:
        os.environ.update(ONE_THREAD)
    with threadpool_limits(limits=1):
        return run_one(cell)
