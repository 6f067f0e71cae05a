"""`policyspace` and `python -m policyspace`."""

import sys


def main() -> None:
    """The command line; Ctrl-C ends it with exit code 130 and one sentence even while it is being loaded."""
    try:
        from policyspace.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("policyspace: interrupted; nothing half-written was left behind.\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
