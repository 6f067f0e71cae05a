"""The same cells on a dask.distributed cluster: many machines, the same records."""

import logging
from concurrent.futures import CancelledError, Executor
from typing import Any, Self

from policyspace.errors import InputError
from policyspace.experiments.code_version import code_version

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
        # What the client logs, this class says in a sentence.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
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

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self._explain(error)
        finally:
            self._client.close()

    @property
    def num_threads(self) -> int:
        """Cells that can run at once."""
        return sum(self._client.nthreads().values())

    @property
    def executor(self) -> Executor:
        """The workers as `concurrent.futures` has them."""
        found: Executor = self._client.get_executor(pure=False)
        return found

    def _explain(self, error: BaseException | None) -> None:
        """What only a cluster can suffer, said in a sentence."""
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        if isinstance(error, KilledWorker):
            raise InputError(
                f"--dask {self.address}: several workers were killed at one cell, perhaps for want of memory: "
                "what has finished is kept; the same command goes on from there."
            ) from error
        if isinstance(error, CancelledError | CommClosedError):
            raise InputError(
                f"--dask {self.address}: the scheduler has gone: what has finished is kept; "
                "the same command goes on from there."
            ) from error

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
