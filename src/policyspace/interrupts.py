"""Ctrl-C that is heard: never in the middle of an import, and again if a library has swallowed it.

Compiled libraries crash when their import is interrupted, and exceptions in their callbacks are lost. So an interrupt
waits until imports are over, and is repeated until the command is ending because of it.
"""

import signal
import sys
from types import FrameType

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
