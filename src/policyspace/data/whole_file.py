"""Files that appear whole or not at all."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from policyspace.errors import InputError


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A new file beside the old one, which it replaces once it is complete and on the disk."""
    target = Path(path).resolve()  # a link stays a link
    temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        if target.is_dir():
            raise InputError(f"{path}: expected a file name, found a folder: name a file in it.")
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}): check the folder.") from error
    finally:
        temporary.unlink(missing_ok=True)
