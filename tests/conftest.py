"""Before any test: one thread for JAX in each worker, and one folder of compiled code for all workers and runs."""

import os
from pathlib import Path

os.environ.setdefault("PJRT_NPROC", "1")  # two workers do not fight over two cores
cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache / "policyspace" / "jax-tests"))
os.environ.setdefault(
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0"
)  # small functions are most of what tests compile
