"""HDF5 files in the layout of D4RL: `observations`, `actions`, `terminals` and `timeouts` at the top."""

from pathlib import Path
from typing import Any

from policyspace.data.connectors import array_dict
from policyspace.data.extras import library
from policyspace.data.input_files import size_of
from policyspace.data.limits import check_unpacked
from policyspace.data.roles import Stored
from policyspace.errors import InputError

SUFFIXES = (".hdf5", ".h5")


def recognises(source: Any) -> bool:
    """A path by its suffix."""
    return isinstance(source, str | Path) and str(source).lower().endswith(SUFFIXES)


def load(source: Any) -> Stored:
    """The arrays of the file that have a known name."""
    h5py = library("h5py", "hdf5", "reading HDF5")
    size = size_of(source)
    try:
        with h5py.File(source, "r") as file:
            names = list(file)
            check_unpacked(sum(_size(file[name]) for name in names if name in array_dict.KNOWN), size)
            arrays = {name: _loaded(file[name]) for name in names if name in array_dict.KNOWN}
    except OSError as error:
        raise InputError(f"expected a readable HDF5 file, found otherwise ({error}).") from error
    if any(name.startswith("episode_") for name in names):
        raise InputError("this is the inside of a Minari dataset: name the folder or the id of the dataset.")
    for thing in ("observations", "actions"):
        if not any(word in arrays for word in array_dict.WORDS[thing]):
            found = ", ".join(f"'{name}'" for name in names[:8]) or "nothing"
            raise InputError(f"expected the array '{thing}' at the top of the file, found {found}: convert the file.")
    return array_dict.load(arrays)


def _size(item: Any) -> int:
    """The bytes of an array, or of all in a group."""
    return sum(_size(item[name]) for name in item) if hasattr(item, "keys") else int(item.nbytes)


def _loaded(item: Any) -> Any:
    """An array, or a group of arrays as a dict."""
    return {name: _loaded(item[name]) for name in item} if hasattr(item, "keys") else item[()]
