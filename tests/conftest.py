"""Before any test: one thread for JAX in each worker, so that two workers do not fight over two cores."""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
