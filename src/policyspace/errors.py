"""The one error that users meet: what was expected, what was found, what to do."""

import difflib
from collections.abc import Iterable

from policyspace.printable import printable


class InputError(ValueError):
    """Bad input, told in one sentence; the command line prints it and exits with code 2."""

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence))  # whatever names a file has put into it


def nearest(name: object, valid: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the closest valid one, or all of them."""
    valid = list(valid)
    close = difflib.get_close_matches(str(name)[:100], valid, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    shown = ", ".join(f"'{v}'" for v in valid[:12]) + (", …" if len(valid) > 12 else "")
    return f"valid names are {shown}."


def repeated(names: Iterable[str]) -> str | None:
    """The first name that was there before, if there is one."""
    seen: set[str] = set()
    return next((name for name in names if name in seen or seen.add(name)), None)  # type: ignore[func-returns-value]


def check_unique(names: Iterable[str], what: str = "column", where: str = "") -> None:
    """Refuse a name that occurs twice."""
    if (twice := repeated(names)) is not None:
        raise InputError(f"every {what} needs a name of its own, found '{twice}' twice{where}: rename one.")


def reason_of(error: BaseException) -> str:
    """The first line of what a library says, without its end: for a sentence that goes on after it."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
