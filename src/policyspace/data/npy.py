"""NumPy arrays in files, judged by their headers before anything is made room for; objects are never unpickled."""

import io
import math
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy

from policyspace.data.input_files import open_file
from policyspace.data.limits import check_unpacked
from policyspace.errors import InputError, reason_of

KINDS = "biufcUSMm"
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
    if kind.kind not in KINDS:
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
