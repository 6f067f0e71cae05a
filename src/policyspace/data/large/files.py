"""Which files a data set is made of: one file, a folder, a glob, a list; folders `key=value` are columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from policyspace.data.input_files import size_of
from policyspace.data.readers import ARROW, PARQUET, SEPARATORS
from policyspace.errors import InputError

SUFFIXES = (*SEPARATORS, *PARQUET, *ARROW)

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""The name of a folder `key=…` that says that there is no value."""


@dataclass(frozen=True)
class DataFile:
    """A file, how it is written, its size in bytes, and the columns that its folders say, each with one value."""

    path: str
    suffix: str
    size: int
    keys: tuple[tuple[str, str], ...] = ()


def is_many(source: Any) -> bool:
    """Does this name a folder, a glob or a list of files, rather than one file?"""
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(path, str | Path) for path in source)
    return isinstance(source, str | Path) and (Path(source).is_dir() or _is_glob(source))


def files_of(source: str | Path | Sequence[str | Path]) -> list[DataFile]:
    """The files in the order of their names, or of the list; all of one kind."""
    given = [source] if isinstance(source, str | Path) else list(source)
    found: list[DataFile] = []
    for one in given:
        root = Path(one)
        if _is_glob(one):
            root = _fixed_part(root)
            paths = sorted(path for path in root.glob(str(Path(one).relative_to(root))) if path.is_file())
            if not paths:
                raise InputError(f"{one}: no file matches this pattern: check it.")
        elif root.is_dir():
            paths = sorted(path for path in root.rglob("*") if path.is_file() and not _hidden(path, root))
            paths = [path for path in paths if suffix_of(path) is not None]
            if not paths:
                raise InputError(f"{root}: expected a folder with files {', '.join(SUFFIXES)}, found none.")
        else:
            paths = [root]
        found += [_file(path, root) for path in paths]
    first = found[0]
    for file in found:
        if _kind(file.suffix) != _kind(first.suffix):
            raise InputError(
                f"{file.path}: all files must be of one kind, found {file.suffix} beside {first.suffix} "
                f"('{first.path}'): name those of one kind."
            )
        if [key for key, _ in file.keys] != [key for key, _ in first.keys]:
            raise InputError(f"{file.path}: every file must lie in folders of the same keys as '{first.path}'.")
    return found


def _file(path: Path, root: Path) -> DataFile:
    suffix = suffix_of(path)
    if suffix is None:
        raise InputError(f"{path}: the name must end in one of {', '.join(SUFFIXES)}: rename or convert it.")
    try:
        size = size_of(path)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if not size:
        raise InputError(f"{path}: the file is empty: write it again.")
    folders = path.parent.relative_to(root).parts if path != root and path.is_relative_to(root) else ()
    keys = tuple((key, unquote(value)) for key, mark, value in (name.partition("=") for name in folders) if mark)
    return DataFile(str(path), suffix, size, keys)


def suffix_of(path: Path) -> str | None:
    """How a file is written, by the end of its name."""
    by_length = sorted(SUFFIXES, key=len, reverse=True)
    return next((suffix for suffix in by_length if path.name.lower().endswith(suffix)), None)


def _kind(suffix: str) -> str:
    return "text" if suffix in SEPARATORS else "parquet" if suffix in PARQUET else "arrow"


def _hidden(path: Path, root: Path) -> bool:
    return any(name.startswith((".", "_")) for name in path.relative_to(root).parts)


def _is_glob(source: str | Path) -> bool:
    return has_magic(str(source)) and not Path(source).exists()


def _fixed_part(pattern: Path) -> Path:
    """The folder above all that the pattern matches."""
    fixed = []
    for name in pattern.parts[:-1]:
        if has_magic(name) or "=" in name:
            break
        fixed.append(name)
    return Path(*fixed)
