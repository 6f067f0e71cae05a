"""Before any test: one thread for JAX and BLAS in each worker, so that two do not fight over two cores. A real cluster."""

import os
import re
import subprocess
import sys

import pytest

for _threads in ("PJRT_NPROC", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")


def started(*command, words):
    """A process that has said these words."""
    process = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli." + command[0], *command[1:]], stderr=subprocess.PIPE, text=True
    )
    seen = ""
    for line in process.stderr:
        seen += line
        if found := re.search(words, line):
            return process, found
    raise AssertionError(seen)


@pytest.fixture
def scheduler():
    """The address of a real one, and its process."""
    process, found = started(
        "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", words=r"Scheduler at:\s+(tcp://\S+)"
    )
    yield found.group(1), process
    process.kill()
    process.wait()


@pytest.fixture
def workers(scheduler, tmp_path):
    """Two, without nannies that would start them again."""
    options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path))
    processes = [started("dask_worker", scheduler[0], *options, words="Registered to")[0] for _ in range(2)]
    yield processes
    for process in processes:
        process.kill()
        process.wait()
