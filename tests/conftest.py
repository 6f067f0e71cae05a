"""Before any test: JAX has one thread in each worker, so that two workers do not fight over two cores, and a folder of its
own for compiled code, so that none reads a file that another is writing. A real cluster.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

os.environ.setdefault("PJRT_NPROC", "1")
CACHES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "policyspace"
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(CACHES / f"jax-tests-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")


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
