"""`policyspace` and `python -m policyspace`."""

import os
import sys

from policyspace.interrupts import listen, stop_listening


def main() -> None:
    """The command line; Ctrl-C ends it with exit code 130 and one sentence at any time."""
    # Rows are shared out over the cores by chunks, so BLAS needs no threads of its own: starting them costs 0.2 CPU-s.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        listen()
        from policyspace.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("policyspace: interrupted; nothing half-written was left behind.\n")
        sys.exit(130)
    finally:
        stop_listening()


if __name__ == "__main__":
    main()
