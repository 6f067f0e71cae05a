"""A file that grows while it is read: each version of it, whole lines only."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError

LINES = (".csv", ".tsv")
CHUNK = 1 << 16


def versions(
    path: Path,
    load: Callable[[Path], Demonstrations],
    wait: float | None,
    poll: float,
    notice: Callable[[str], None],
) -> Iterator[tuple[Demonstrations, bool]]:
    """What the file holds each time it has changed and, after `wait` seconds without a change, once more as final.

    With `wait=None` the file is read once, as it stands. Otherwise a last line without its end waits for the rest, a file
    that cannot be read may be in the middle of being written, and one that is gone may come back.
    """
    if wait is None or not path.is_file():
        yield load(path), True
        return
    data: Demonstrations | None = None
    problem: InputError | None = InputError(f"{path}: no row has come yet: wait longer.")
    unfinished, seen = False, None
    with TemporaryDirectory() as folder:
        copy, quiet_since = Path(folder) / path.name, time.monotonic()
        while True:
            if (now := _signature(path)) != seen:
                seen, quiet_since = now, time.monotonic()
                if now is not None and (lines := _copy_whole_lines(path, copy)) is not None:
                    rows, unfinished = lines
                    try:
                        data, problem = load(copy), None
                    except InputError as error:
                        problem = InputError(str(error).replace(str(copy), str(path)))
                        if data is None and rows:
                            raise problem from error
                    else:
                        yield data, False
            elif time.monotonic() - quiet_since >= wait:
                break
            else:
                time.sleep(min(poll, wait))
    if problem is not None:
        raise problem
    assert data is not None
    if seen is None:
        notice(f"{path}: was deleted while it was followed; what had been read by then is counted.")
    elif unfinished:
        notice(f"{path}: its last line has no end, so it may be cut off: it is not counted.")
    yield data, True


def _signature(path: Path) -> tuple[int, ...] | None:
    """What changes when a file does; None while there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def _copy_whole_lines(path: Path, copy: Path) -> tuple[bool, bool] | None:
    """(has rows, has a line without its end) of the file now, whose whole lines are copied; None if it has just gone."""
    try:
        shutil.copyfile(path, copy)
    except OSError:
        return None
    size = copy.stat().st_size
    if not path.name.lower().endswith(LINES):
        return size > 0, False
    with copy.open("rb") as file:
        end, begin = 0, size
        while begin > 0 and not end:
            begin = max(begin - CHUNK, 0)
            file.seek(begin)
            end = begin + file.read(CHUNK).rfind(b"\n") + 1
            end = 0 if end == begin else end
        file.seek(0)
        rows = end > len(file.readline())
    os.truncate(copy, end)
    return rows, end < size
