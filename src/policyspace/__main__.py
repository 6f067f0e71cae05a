"""Entry point; Ctrl-C during imports."""

import os
import signal
import sys
from types import FrameType

# -- Ctrl-C that is heard: never in the middle of an import, and again if a library has swallowed it.

SOON, AGAIN = 0.05, 1.0
"""Seconds after which a deferred interrupt is tried, and one that may have been lost is repeated."""

MOST_DEFERRALS = 200
"""An import that takes longer than all of them is interrupted."""


def listen() -> None:
    """Raise KeyboardInterrupt at Ctrl-C, at a moment that is safe and until it is heard."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # as in the background of a shell: whoever started this wants it to be ignored
    deferred = 0

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal deferred
        if _importing(frame) and deferred < MOST_DEFERRALS:
            deferred += 1
            _once_more(SOON)
            return
        _once_more(AGAIN)
        if not _ending():
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, interrupt)
    sys.unraisablehook = _quietly


def stop_listening() -> None:
    """Ignore Ctrl-C: the command has ended, and only the interpreter is still clearing up."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _once_more(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    return frame is not None


def _ending() -> bool:
    """Is the code that runs now clearing up after an interrupt?"""
    error = sys.exception()
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _quietly(lost: "sys.UnraisableHookArgs") -> None:
    """An interrupt that was lost comes again; anything else that was lost is told as ever."""
    if not isinstance(lost.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(lost)


# -- `policyspace` and `python -m policyspace`.


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
