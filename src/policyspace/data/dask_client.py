"""A connection to a dask.distributed scheduler whose workers run this very code; what goes wrong there, in sentences."""

import logging
from concurrent.futures import CancelledError
from typing import Any

from policyspace.data.code_version import code_version
from policyspace.data.extras import library
from policyspace.errors import InputError, reason_of

TIMEOUT = 20
"""Seconds until a scheduler that does not answer, or a cluster without workers, is given up."""


def connect(address: str) -> Any:
    """A client of the scheduler at this address, which has workers with the same code."""
    distributed = library("distributed", "dask", "--dask")
    # What the client logs, we say in a sentence.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        client = distributed.Client(address, timeout=TIMEOUT)
    except (OSError, ValueError) as error:
        raise InputError(
            f"--dask {address}: no scheduler answers there ({reason_of(error)}): check the address."
        ) from error
    try:
        _check_workers(client, address)
    except BaseException:
        client.close()
        raise
    return client


def what_the_cluster_suffered(error: BaseException | None, task: str) -> str | None:
    """What only a cluster can suffer, in words; None for any other error."""
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    if isinstance(error, KilledWorker):
        return f"several workers were killed at one {task}, perhaps for want of memory"
    return "the scheduler has gone" if isinstance(error, CancelledError | CommClosedError) else None


def _check_workers(client: Any, address: str) -> None:
    """Somebody must be there, with this version: another one may give other numbers."""
    try:
        client.wait_for_workers(1, timeout=TIMEOUT)
    except TimeoutError as error:
        raise InputError(f"--dask {address}: the cluster has no workers: start some.") from error
    try:
        versions = set(client.run(code_version).values())
    except ModuleNotFoundError as error:
        raise InputError(
            f"--dask {address}: workers lack policyspace ({error}): install {code_version()} there."
        ) from error
    if versions != {code_version()}:
        found = ", ".join(sorted(versions))
        raise InputError(
            f"--dask {address}: expected workers with policyspace {code_version()}, found {found}: "
            "install the same code."
        )
