"""Before any test: one thread for JAX in each worker, so that two workers do not fight over two cores."""

import os

os.environ.setdefault("PJRT_NPROC", "1")
