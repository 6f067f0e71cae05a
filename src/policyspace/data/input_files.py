"""Files that come from outside, judged before they are read: regular ones only, and never more than their limit."""

import json
import re
import stat
import tomllib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from policyspace.data.limits import check_limit, check_unpacked
from policyspace.errors import InputError, reason_of

CHUNK = 1 << 22
MOST_KEY_PARTS = 100
"""Of a dotted key in TOML: the time that Python's parser takes grows with their square."""

_QUOTED = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'[^'\n]*'")
_LONG_KEY = re.compile(rf"(?:[\w\-]+[ \t]*\.[ \t]*){{{MOST_KEY_PARTS}}}")


def size_of(path: str | Path, folder: str = "a folder") -> int:
    """Bytes of a file that is there, regular and not empty; a FIFO or a device would never end."""
    try:
        found = Path(path).stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError("there is no such file: check the path.") from error
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({getattr(error, 'strerror', None) or error}): check the path.") from error
    if stat.S_ISDIR(found.st_mode):
        raise InputError(f"expected a file, found {folder}: name one file in it.")
    if not stat.S_ISREG(found.st_mode):
        raise InputError("expected a regular file, found a pipe, a socket or a device: save it as a file first.")
    return found.st_size


def open_file(path: str | Path) -> tuple[BinaryIO, int]:
    """A regular file that is open, and its size."""
    size = size_of(path)
    try:
        return Path(path).open("rb"), size
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error}): check the path.") from error


def lines_of(path: str | Path, packed: bool) -> bytes:
    """The text of a file of lines, unpacked if it is gzip; no record and no file is longer than its limit."""
    file, size = open_file(path)
    with file:
        if not size:
            raise InputError("the file is empty: write it again.")
        if not packed:
            check_limit("MAX_TEXT_BYTES", size, "the bytes of a text file")
        found, record, quoted = bytearray(), 0, False
        for chunk in _unzipped(file) if packed else iter(lambda: file.read(CHUNK), b""):
            found += chunk
            check_unpacked(len(found), size)
            first, last, quoted = _record_ends(chunk, quoted)
            check_limit("MAX_LINE_BYTES", record + (len(chunk) if first is None else first), "the bytes of a line")
            record = record + len(chunk) if last is None else len(chunk) - last
    return bytes(found)


def settings_text(path: str | Path) -> str:
    """The text of a small file: TOML, JSON, or numbers."""
    file, size = open_file(path)
    with file:
        check_limit("MAX_SETTINGS_BYTES", size, "the bytes of such a file")
        try:
            return file.read(size + 1).decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"expected TOML, JSON or numbers in UTF-8, found other bytes ({error}): save it as UTF-8."
            ) from error


def read_toml(path: str | Path) -> dict[str, Any]:
    """The table in a TOML file."""
    text = settings_text(path)
    if _LONG_KEY.search(_QUOTED.sub("q", text)):
        raise InputError(f"is not a valid TOML file (a key has {MOST_KEY_PARTS} parts or more): correct it.")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also of numbers that Python refuses to read
        raise InputError(f"is not a valid TOML file ({reason_of(error)}): correct it.") from error


def parse_json(text: str | bytes, finite: bool = True) -> Any:
    """What a JSON text says, nested no deeper than Python can follow; if `finite`, every number is."""
    numbers: dict[str, Any] = {"parse_constant": _refuse, "parse_float": _finite} if finite else {}
    try:
        return json.loads(text, **numbers)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"is not valid JSON ({reason_of(error)}): correct it.") from error


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    value = float(text)
    return value if abs(value) < float("inf") else _refuse(f"{text:.40}")


def _unzipped(file: BinaryIO) -> Iterator[bytes]:
    """The content of a gzip file in pieces, each of them small."""
    member, rest, whole = zlib.decompressobj(31), b"", False
    while data := rest or file.read(CHUNK):
        if whole:
            if not data.strip(b"\0"):  # padding after the last member
                rest = b""
                continue
            member, whole = zlib.decompressobj(31), False
        yield member.decompress(data, CHUNK)
        rest, whole = member.unconsumed_tail or member.unused_data, member.eof
    if not whole:
        raise InputError("its last bytes are missing: write the file again.")


def _record_ends(chunk: bytes, quoted: bool) -> tuple[int | None, int | None, bool]:
    """Where the first and the last record in a chunk end, if any does, and whether a quote is open after it."""
    if b'"' not in chunk:
        if quoted or (last := chunk.rfind(b"\n")) < 0:
            return None, None, quoted
        return chunk.find(b"\n"), last + 1, False
    import numpy as np

    marks = np.frombuffer(chunk, dtype=np.uint8)
    inside = np.logical_xor.accumulate(marks == ord('"')) ^ quoted
    ends = np.flatnonzero((marks == ord("\n")) & ~inside)
    return (int(ends[0]) if len(ends) else None, int(ends[-1]) + 1 if len(ends) else None, bool(inside[-1]))
