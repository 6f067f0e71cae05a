"""Logs that are larger than memory: files in parts, read in passes."""

from pathlib import Path
from typing import Any

from policyspace.data.connectors import recognised
from policyspace.data.large.files import files_of, is_many, suffix_of
from policyspace.data.large.parts import DataSet, data_set
from policyspace.data.limits import limit
from policyspace.data.readers import PARQUET
from policyspace.errors import InputError


def data_set_of(source: Any, any_size: bool = False) -> DataSet | None:
    """The data set in several files, or in one that is too large to be read at once (or of any size); else None."""
    if is_many(source):
        return None if not isinstance(source, list | tuple) and recognised(source) else data_set(files_of(source))
    if not isinstance(source, str | Path) or suffix_of(Path(source)) is None or not Path(source).is_file():
        return None
    file = files_of(source)[0]
    packed = file.suffix.endswith(".gz") or file.suffix in PARQUET
    if not any_size and file.size * (1000 if packed else 1) <= limit("MAX_BYTES_AT_ONCE"):
        return None
    try:
        found = data_set([file])
    except InputError:
        return None  # whoever reads it whole says what is wrong with it
    return found if any_size or is_large(found) else None


def is_large(found: DataSet) -> bool:
    """Is it too large to be read at once?"""
    return found.num_bytes > limit("MAX_BYTES_AT_ONCE")
