"""Words as they may be shown: what a terminal or a page would obey, or hide, is written out."""

import html
import re
import unicodedata

JOINERS = "\u200c\u200d"
"""Invisible, but parts of words in some scripts and of some emoji."""

_PLAIN = re.compile(r"[ -~]*")


def printable(text: str) -> str:
    r"""The text on one line, every character that is not to be seen as its escape: an ESC as \x1b, a line's end as \n."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(repr(c)[1:-1] if obeyed(c) else c for c in text)


def obeyed(character: str) -> bool:
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
    return "".join(_json_escape(c) if obeyed(c) and c != "\n" else c for c in text)


def _json_escape(character: str) -> str:
    halves = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{halves[i : i + 2].hex()}" for i in range(0, len(halves), 2))
