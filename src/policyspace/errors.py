"""`InputError`, suggestions for misspelt names, and escaping of control characters."""

import difflib
import html
import re
import unicodedata
from collections.abc import Iterable

# -- Words as they may be shown: what a terminal or a page would obey, or hide, is written out.

JOINERS = "\u200c\u200d"
"""Invisible, but parts of words in some scripts and of some emoji."""

_PLAIN = re.compile(r"[ -~]*")


def printable(text: str) -> str:
    r"""The text on one line, every character that is not to be seen as its escape: an ESC as \x1b, a line's end as \n."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(repr(c)[1:-1] if has_control_characters(c) else c for c in text)


def has_control_characters(character: str) -> bool:
    """Controls, directions of writing, ends of lines, and halves of characters that no file can hold."""
    return character not in JOINERS and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def number_of(count: int, what: str) -> str:
    """`1 unit`, `2 units`: how many there are of what one word with a plain plural names."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def escaped(text: str) -> str:
    """The same for an HTML page, between tags or inside an attribute."""
    return html.escape(printable(text))


def safe_json(text: str) -> str:
    """The same JSON with such characters as escapes of JSON; ends of lines between its tokens stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_json_escape(c) if has_control_characters(c) and c != "\n" else c for c in text)


def _json_escape(character: str) -> str:
    halves = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{halves[i : i + 2].hex()}" for i in range(0, len(halves), 2))


# -- The one error that users meet: what was expected, what was found, what to do.


class InputError(ValueError):
    """Bad input, told in one sentence; the command line prints it and exits with code 2.

    Parameters
    ----------
    sentence : str
        What was expected, what was found, and what to do.

    Examples
    --------
    >>> import policyspace
    >>> policyspace.identify([[1.0, 2.0]], [1.0, 2.0])
    Traceback (most recent call last):
        ...
    policyspace.errors.InputError: ...
    """

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
