"""Checks of input files before they are read, parsing in a guarded process, and atomic writes."""

import io
import json
import math
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import tomllib
import uuid
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    BinaryIO,
    Literal,
    Required,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import numpy as np
from numpy.lib import format as npy

from policyspace.errors import InputError, reason_of
from policyspace.runtime import check_limit, check_unpacked, limit, object_at

JSON: TypeAlias = bool | int | float | str | Sequence["JSON"] | Mapping[str, "JSON"] | None
"""What JSON can hold."""

# -- Files that come from outside, judged before they are read: regular ones only, and never more than their limit.

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
            first, last, quoted = record_ends(chunk, quoted)
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


def read_toml(path: str | Path) -> Mapping[str, Any]:
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
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite) if finite else json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"is not valid JSON ({reason_of(error)}): correct it.") from error


def conforms(value: object, kind: Any) -> bool:
    """Is what JSON holds of the kind of a type hint? Tuples are lists there, and dataclasses are tables of their fields.

    Of an `Annotated` type the checks beside it decide; a TypedDict may hold entries that it does not name.
    """
    outer, inner = get_origin(kind), get_args(kind)
    if outer is Annotated:
        return all(check(value) for check in inner[1:])
    if outer is Required:
        return conforms(value, inner[0])
    if outer in (Union, UnionType):
        return any(conforms(value, one) for one in inner)
    if outer is Literal:
        return any(type(value) is type(one) and value == one for one in inner)
    if outer in (tuple, list, Sequence):
        if not isinstance(value, list | tuple):
            return False
        kinds = inner if outer is tuple and inner[-1] is not Ellipsis else inner[:1] * len(value)
        return len(kinds) == len(value) and all(map(conforms, value, kinds))
    if outer in (dict, Mapping):
        return isinstance(value, Mapping) and all(
            isinstance(k, str) and conforms(v, inner[1]) for k, v in value.items()
        )
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        named = isinstance(value, Mapping) and kind.__required_keys__ <= value.keys()
        return named and all(conforms(v, hints[name]) for name, v in value.items() if name in hints)  # type: ignore[attr-defined]
    if is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        needed = {one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING}
        found = isinstance(value, Mapping) and needed <= value.keys() <= hints.keys()
        return found and all(conforms(v, hints[name]) for name, v in value.items())  # type: ignore[attr-defined]
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    return kind is Any or (isinstance(value, kind) and (kind is not int or not isinstance(value, bool)))


def built(value: Any, kind: Any) -> Any:
    """What JSON holds, if it conforms to a type hint, as the hint says: tables as dataclasses, lists as tuples."""
    outer, inner = get_origin(kind), get_args(kind)
    if outer is Annotated:  # whose type may name itself
        return tuple(value) if get_origin(inner[0]) is tuple else value
    if outer in (Union, UnionType):
        return built(value, next(one for one in inner if conforms(value, one)))
    if outer in (tuple, list):
        return outer(built(one, inner[0]) for one in value)
    if outer in (dict, Mapping):
        return {name: built(inside, inner[1]) for name, inside in value.items()}
    if is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        return kind(**{name: built(inside, hints[name]) for name, inside in value.items()})  # type: ignore[operator]
    return value


def structured(value: Any, kind: Any) -> Any:
    """What JSON holds as the kind of a type hint: tuples, dataclasses of their fields, enums; null of a number is NaN."""
    outer, inner = get_origin(kind), get_args(kind)
    if outer in (Union, UnionType):
        if value is None and type(None) in inner:
            return None
        for one in inner:
            with suppress(KeyError, TypeError, ValueError):
                return structured(value, one)
    elif outer is tuple and isinstance(value, list):
        return tuple(structured(one, inner[0]) for one in value)
    elif outer is Mapping and isinstance(value, dict):
        return {name: structured(one, inner[1]) for name, one in value.items()}
    elif is_dataclass(kind) and isinstance(value, dict):
        hints = get_type_hints(kind)
        needed = {one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING}
        told = [one.name for one in fields(kind) if one.compare and (one.name in value or one.name in needed)]
        made: Any = kind
        return made(**{name: structured(value[name], hints[name]) for name in told})
    elif kind is float and (value is None or (isinstance(value, int | float) and not isinstance(value, bool))):
        return math.nan if value is None else float(value)
    elif isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(value)
    elif kind is Any or conforms(value, kind):
        return value
    raise TypeError(f"{value!r:.40} is not what was expected")


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


def record_ends(chunk: bytes, quoted: bool) -> tuple[int | None, int | None, bool]:
    """Where the first and the last record in a chunk end, if any does, and whether a quote is open after it."""
    if b'"' not in chunk:
        if quoted or (last := chunk.rfind(b"\n")) < 0:
            return None, None, quoted
        return chunk.find(b"\n"), last + 1, False
    marks = np.frombuffer(chunk, dtype=np.uint8)
    inside = np.logical_xor.accumulate(marks == ord('"')) ^ quoted
    ends = np.flatnonzero((marks == ord("\n")) & ~inside)
    return (int(ends[0]) if len(ends) else None, int(ends[-1]) + 1 if len(ends) else None, bool(inside[-1]))


# -- Files that appear whole or not at all, only where a file may be, and never in place of what is being read.

PREFIX, SUFFIX = ".policyspace-", ".tmp"
"""Of a file that is not whole yet."""

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def check_targets(targets: Iterable[str | Path | None], inputs: Iterable[str | Path | None] = ()) -> None:
    """Say before any work that a file could not be saved, or that saving it would overwrite an input or another one."""
    read = [Path(path) for path in inputs if path is not None]
    saved: list[Path] = []
    for path in targets:
        if path is None:
            continue
        target = place_of(path)
        if target.exists() and any(_same(target, other) for other in read):
            raise InputError(f"{path}: is the file that is read: name another to save to.")
        if any(_same(target, other) for other in saved):
            raise InputError(f"{path}: is named twice as a file to save: name two files.")
        saved.append(target)


def place_of(path: str | Path) -> Path:
    """Where a file is saved: at the end of its links, in a folder that exists, and where nothing but a file is."""
    given = Path(path)
    try:
        if given.is_symlink() and not given.exists():
            raise InputError(f"{path}: is a link that leads to no file: remove it, or name another file.")
        target = given.resolve()  # a link stays a link
        if not target.parent.is_dir():
            raise InputError(f"{path}: there is no folder '{given.parent}': make it first, or name another.")
        if target.exists() and not target.is_file():
            kind = KINDS.get(stat.S_IFMT(target.stat().st_mode), "something else")
            advice = "name a file in it" if target.is_dir() else "name another"
            raise InputError(f"{path}: expected a file name, found {kind}: {advice}.")
        if not os.access(target.parent, os.W_OK):
            raise InputError(f"{path}: its folder cannot be written to: name a file in another.")
    except InputError:
        raise
    except (OSError, ValueError, RuntimeError) as error:  # too long, a zero byte, a folder that may not be entered
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be the name of a file ({reason}): name another.") from error
    return target


def made_folder(path: Path) -> Path:
    """The folder, made if it is not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: is no folder that can be made ({reason}): name another with --out.") from error
    return path


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A new file beside the old one, which it replaces, with the same mode, once it is complete and on the disk."""
    target = place_of(path)
    temporary: Path | None = None
    try:
        _clean(target.parent)
        temporary, file = _temporary(target.parent)
        with file:
            if target.exists():
                # Owner, where that is allowed, and mode of the file that will be replaced.
                old = target.stat()
                if hasattr(os, "fchown"):
                    with suppress(OSError):
                        os.fchown(file.fileno(), old.st_uid, old.st_gid)
                Path(file.name).chmod(stat.S_IMODE(old.st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name == "nt":
                file.close()  # there an open file cannot be moved; elsewhere it stays locked until it has its name
            temporary.replace(target)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}): check the folder.") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _same(one: Path, other: Path) -> bool:
    """Are they one file, by whatever name?"""
    with suppress(OSError, ValueError, RuntimeError):
        return one == other or one.samefile(other)
    return False


def _temporary(folder: Path) -> tuple[Path, BinaryIO]:
    """A new file that this process holds locked as long as it is open."""
    while True:
        path = folder / f"{PREFIX}{uuid.uuid4().hex}{SUFFIX}"
        file = path.open("xb")
        _lock(file, wait=True)
        if path.exists():  # else another process took it for left over before it was locked
            return path, file
        file.close()


def _clean(folder: Path) -> None:
    """Remove what runs that were killed have left here: such a file is locked by nobody."""
    for path in folder.glob(f"{PREFIX}*{SUFFIX}"):
        with suppress(OSError):
            if not stat.S_ISREG(path.lstat().st_mode):
                continue
            with path.open("rb") as file:
                if _lock(file, wait=False):
                    path.unlink()


def _lock(file: BinaryIO, wait: bool) -> bool:
    """Whether this process has the file for itself, as far as the system can say."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (ImportError, OSError):
        return False
    return True


# -- SQLite files that come from outside: plain tables with known columns, and nothing in them that computes.


def check_tables(connection: sqlite3.Connection, wanted: Mapping[str, Sequence[str]]) -> None:
    """The tables by name, each with its columns; a view may never end, and a trigger may change what is written."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(limit("MAX_UNPACKED_BYTES"), 2**31 - 1))
    connection.execute("PRAGMA trusted_schema=OFF")
    tables = set()
    for kind, name, text in connection.execute("SELECT type, name, sql FROM sqlite_schema"):
        made_by_table = kind == "index" and text is None
        if not made_by_table and (kind != "table" or not str(text).upper().startswith("CREATE TABLE")):
            raise InputError(f"must hold plain tables only, found the {kind} '{name}': do not use this file.")
        if kind == "table":
            tables.add(name)
    for name, columns in wanted.items():
        if name not in tables:
            raise InputError(f"must hold the table '{name}', found none: restore the file from a copy.")
        found = {row[1]: row[6] for row in connection.execute(f"PRAGMA table_xinfo({name})")}
        for column in columns:
            if found.get(column) != 0:  # anything else is a column that is computed
                raise InputError(f"must have the column '{column}' in '{name}', found none: restore it from a copy.")


# -- NumPy arrays in files, judged by their headers before anything is made room for; objects are never unpickled.

ARRAY_KINDS = "biufcUSMm"
"""Of arrays that hold plain values."""


def read_npy(path: str | Path) -> np.ndarray:
    """The array in a file."""
    file, size = open_file(path)
    with file:
        return _array(file, size, "the array")


def read_archive(source: str | Path | bytes) -> dict[str, np.ndarray]:
    """The arrays in an NPZ archive, by name."""
    file, size = (io.BytesIO(source), len(source)) if isinstance(source, bytes) else open_file(source)
    with file, zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        check_unpacked(sum(entry.file_size for entry in entries), size)
        found: dict[str, np.ndarray] = {}
        for entry in entries:
            name = entry.filename.removesuffix(".npy")
            if name == entry.filename:
                raise InputError(f"expected arrays, found the entry '{name}', which is none: save it with numpy.savez.")
            if name in found:
                raise InputError(f"every array needs a name of its own, found '{name}' twice: write the file again.")
            with archive.open(entry) as inside:
                found[name] = _array(inside, entry.file_size, f"array '{name}'")  # type: ignore[arg-type]
    return found


def _array(file: BinaryIO, size: int, what: str) -> np.ndarray:
    """An array of which `size` bytes, header and all, are there."""
    shape, by_columns, kind = _header(file, what)
    if kind.hasobject:
        raise InputError(f"{what} holds pickled objects, which are never opened: save numbers.")
    if kind.kind not in ARRAY_KINDS:
        raise InputError(f"{what} must be numbers or text, found the type {kind}.")
    claimed = math.prod(shape) * kind.itemsize
    if min(shape, default=0) < 0 or claimed > size or (math.prod(shape) > size and not kind.itemsize):
        raise InputError(f"{what} claims {claimed} bytes, found at most {size}: write the file again.")
    data = file.read(claimed)
    if len(data) < claimed:
        raise InputError(f"{what} claims {claimed} bytes, found {len(data)}: write the file again.")
    # A damaged end of a compressed entry shows only when it is read.
    if file.read(1):
        raise InputError(f"{what} has more bytes than it claims: write the file again.")
    return np.ndarray(shape, kind, data, order="F" if by_columns else "C")


def _header(file: BinaryIO, what: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """The shape, the order and the type; a header is a Python literal, and there is no list of what reading it raises."""
    try:
        version = npy.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"the version {version}")
        return (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(file)
    except (zipfile.BadZipFile, zlib.error, EOFError):
        raise
    except Exception as error:
        raise InputError(
            f"{what} has no header of numbers or text ({reason_of(error)}): write the file again."
        ) from error


# -- The one guard: a parser of binary files runs in a process of its own, which has an end in memory and in time.

PER_SECOND = 10 << 20
"""Bytes of a source for which a parser is given a second more."""

SMALL = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"), "1"),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "ARROW_IO_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",
}
"""Of a parser's process: the stacks and the pools of threads would be counted as its memory."""


def guarded(parser: str, source: str | Path, files: Iterable[Path], content: BinaryIO) -> Any:
    """What the function at `module:name` makes of a source, a JSON value and bytes of `content`, in another process.

    `files` are those that it will read: each must be a regular file, and together they say how much memory and time the
    parser may take. Whatever happens to that process is one sentence here.
    """
    size = 0
    for path in files:
        try:
            claimed = size_of(path)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        size += min(claimed, getattr(path.stat(), "st_blocks", claimed) * 512)  # a file with holes claims more
    memory = max(limit("MAX_PARSER_BYTES"), 3 * limit("MAX_UNPACKING_RATIO") * size)
    seconds = limit("MAX_PARSER_SECONDS") + size // PER_SECOND
    said = json.dumps({"parser": parser, "source": str(source), "memory": memory, "seconds": seconds, "path": sys.path})
    start = "import json, sys; said = json.loads(sys.argv[1]); sys.path[:] = said.pop('path'); "
    start += "from policyspace.safe_io import parse_alone; parse_alone(**said)"
    try:
        done = subprocess.run(
            [sys.executable, "-c", start, said],
            stdin=subprocess.DEVNULL,
            stdout=content,  # a file: it is in the memory of neither
            stderr=subprocess.PIPE,
            env={**os.environ, **SMALL},
            timeout=10 * seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(_too_long(seconds)) from error
    except OSError as error:
        raise InputError(f"cannot be read: no process could be started for it ({error.strerror or error}).") from error
    names = {-number: number.name for number in signal.Signals}
    ending = names.get(done.returncode, f"exit code {done.returncode}")
    if ending == "SIGALRM":
        raise InputError(_too_long(seconds))
    if done.returncode or not done.stderr:
        raise InputError(
            f"the library that reads it was stopped ({ending}): the file is damaged, or needs more than "
            f"{memory} bytes of memory; if that is meant, set POLICYSPACE_MAX_PARSER_BYTES."
        )
    answer = json.loads(done.stderr)
    if "refused" in answer:
        raise InputError(answer["refused"])
    content.seek(0)
    return answer["found"]


def parse_alone(parser: str, source: str, memory: int, seconds: int) -> None:
    """The other side of `guarded`: content goes to standard output, and JSON to standard error."""
    content, answers, nowhere = os.dup(1), os.dup(2), os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)  # what a library prints is no answer
    with os.fdopen(content, "wb") as out, os.fdopen(answers, "w") as answer:
        try:
            function = object_at(parser)
            _bounded_process(memory, seconds)
            text = json.dumps({"found": function(source, out)})
            out.flush()
        except InputError as error:
            text = json.dumps({"refused": str(error)})
        except MemoryError:
            more = "if that is meant, set POLICYSPACE_MAX_PARSER_BYTES"
            text = json.dumps({"refused": f"reading it takes more than {memory} bytes of memory: {more}."})
        except Exception as error:  # there is no list of all that libraries raise
            sentence = f"expected a source that can be read, found otherwise ({reason_of(error)})."
            text = json.dumps({"refused": sentence})
        answer.write(text)
        answer.flush()
        os._exit(0)  # nothing is to be cleared up


def _bounded_process(memory: int, seconds: int) -> None:
    """So much memory beside what is loaded already, and so much time, as far as the system can say."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # it ends a library that never comes back to Python, too
        signal.setitimer(signal.ITIMER_REAL, seconds)
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        loaded = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (loaded + memory, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _too_long(seconds: int) -> str:
    return f"reading it takes more than {seconds} seconds: if that is meant, set POLICYSPACE_MAX_PARSER_SECONDS."
