"""The same cells on a dask.distributed cluster: many machines, the same records."""

from concurrent.futures import Executor
from typing import Self

from policyspace.data.dask_client import connect, what_the_cluster_suffered
from policyspace.errors import InputError


class DaskCluster:
    """A connection to a scheduler; it sends cells again whose worker was killed."""

    def __init__(self, address: str) -> None:
        self.address, self._client = address, connect(address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if suffered := what_the_cluster_suffered(error, "cell"):
                raise InputError(
                    f"--dask {self.address}: {suffered}: what has finished is kept; the same command goes on from there."
                ) from error
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
