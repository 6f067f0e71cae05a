"""Files that appear whole or not at all, only where a file may be, and never in place of what is being read."""

import os
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from policyspace.errors import InputError

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
                _dress(file, target)
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


def _dress(file: BinaryIO, target: Path) -> None:
    """Owner, where that is allowed, and mode of the file that will be replaced."""
    old = target.stat()
    if hasattr(os, "fchown"):
        with suppress(OSError):
            os.fchown(file.fileno(), old.st_uid, old.st_gid)
    Path(file.name).chmod(stat.S_IMODE(old.st_mode))


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
