"""Reading and writing logs as CSV, Parquet, Arrow and NPZ files."""

import csv
import gzip
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from policyspace.data.columns import AlternativeColumns, DataTable
from policyspace.data.columns import ColumnRoles as ColumnRoles
from policyspace.data.connectors import load
from policyspace.data.sample import Sample
from policyspace.data.schema import KEY, Schema, StoredTable, assemble, to_frame
from policyspace.data.validation import Missing, explain_arguments, translate_keywords
from policyspace.errors import InputError, check_unique, reason_of
from policyspace.runtime import check_limit, check_not_forked, check_unpacked
from policyspace.safe_io import lines_of, open_file, read_archive, replacing, size_of

if TYPE_CHECKING:
    import polars


# -- NPZ archives: one array a role, or one array a column; objects are never unpickled.

FEATURE_ARRAYS = ("features", "observations", "states")
"""The names under which a log may keep its features [n, q]."""

OTHER_ARRAYS = ("episodes", "weights", "subjects")
"""Arrays with one value a row beside features and actions."""

Columns = list[tuple[str, np.ndarray]]
Arrays = dict[str, np.ndarray]


def read_npz(path: Path) -> StoredTable:
    """The table in an archive: as written here, or `features` and `actions`, or one array a column."""
    arrays = read_archive(path)
    header = arrays.pop(KEY, None)
    if header is not None:
        return _as_written(arrays, Schema.from_json(str(header)))
    chosen = next((name for name in FEATURE_ARRAYS if name in arrays and arrays[name].ndim == 2), None)
    if chosen is None or "actions" not in arrays:
        return _frame([(name, array) for name, array in arrays.items() if array.ndim == 1]), None
    return _by_role(arrays, arrays.pop(chosen), arrays.pop("actions"))


def write_npz(demonstrations: Sample, roles: Schema, file: BinaryIO) -> None:
    """The arrays as they are, and the roles as text."""
    arrays = {"features": demonstrations.features, "actions": demonstrations.actions}
    arrays |= {word: getattr(demonstrations, word) for word, name in roles.beside.items() if name is not None}
    arrays |= {f"recorded.{name}": values for name, values in demonstrations.recorded.items()}
    np.savez(file, **arrays, **{KEY: np.array(roles.to_json())})  # type: ignore[arg-type]


def _by_role(arrays: Arrays, features: np.ndarray, actions: np.ndarray) -> StoredTable:
    """Features and actions beside the other arrays with a value a row, which the caller may name."""
    k = 1 if actions.ndim < 2 else actions.shape[-1]
    check_limit("MAX_COLUMNS", features.shape[1] + k, "the columns of a table")
    said = arrays.pop("names", np.empty(0, dtype=str))
    names = [str(name) for name in said.ravel()] or [f"x{j}" for j in range(features.shape[1])]
    action = ["actions"] if k == 1 else [f"actions_{a}" for a in range(k)]
    shape = (len(actions),)
    others = [(name, a) for name, a in arrays.items() if a.shape == shape or name in OTHER_ARRAYS]
    frame = _frame([*_split(features, names), *_split(actions, action), *others])
    episode, weight, subject = (name if name in arrays else None for name in OTHER_ARRAYS)
    return frame, Schema(tuple(action), tuple(names), episode, weight, subject=subject)


def _as_written(arrays: Arrays, roles: Schema) -> StoredTable:
    others = roles.beside
    kept = {f"recorded.{name}": "" for name in roles.recorded}
    for name, wanted in ({"features": "", "actions": ""} | others | kept).items():
        if wanted is not None and name not in arrays:
            raise InputError(f"its header names the array '{name}', found none: write the file again.")
    columns = _split(arrays["features"], list(roles.features))
    actions = arrays["actions"]
    size = roles.action_type.num_labels
    if size is not None and (actions.dtype.kind != "i" or not ((actions >= 0) & (actions < size)).all()):
        raise InputError(f"its actions must be codes from 0 to {size - 1}, found others: write it again.")
    columns += _split(roles.action_type.decode(actions), list(roles.action))
    columns += [(wanted, arrays[name]) for name, wanted in others.items() if wanted is not None]
    columns += [(name, arrays[f"recorded.{name}"]) for name in roles.recorded]
    return _frame(columns), roles


def _split(array: np.ndarray, names: list[str]) -> Columns:
    columns = array[:, None] if array.ndim == 1 else array
    if columns.ndim != 2 or columns.shape[1] != len(names):
        shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        raise InputError(f"expected an array with the columns {shown}, found the shape {array.shape}.")
    return list(zip(names, columns.T, strict=True))


def _frame(columns: Columns) -> "polars.DataFrame":
    import polars

    if not columns:
        raise InputError("expected the arrays 'features' and 'actions', or one array a column, found neither.")
    first, shape = columns[0][0], columns[0][1].shape
    check_limit("MAX_COLUMNS", len(columns), "the columns of a table")
    for name, array in columns:
        if array.shape != shape:
            raise InputError(
                f"arrays must have the same length, found {shape} for '{first}', {array.shape} for '{name}'."
            )
    check_unique(name for name, _ in columns)
    frame = polars.DataFrame([_series(name, array) for name, array in columns])
    frame.columns = [name for name, _ in columns]  # an empty name is a name, which polars replaces
    return frame


def _series(name: str, array: np.ndarray) -> "polars.Series":
    import polars

    if array.dtype.kind in "UO":
        return polars.Series(name, array.tolist(), dtype=polars.String)
    if array.dtype.kind not in "biuf":
        raise InputError(f"array '{name}' must be numbers or text, found the type {array.dtype}.")
    kind = np.float64 if array.dtype.kind == "f" else array.dtype.newbyteorder("=")
    return polars.Series(name, np.ascontiguousarray(array, dtype=kind))


# -- Files in, demonstrations out, and back: CSV, Parquet, Arrow and NPZ, never pickled; other sources by their connector.

COMMENT = f"# {KEY}: ".encode()
SEPARATORS = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
SUFFIXES = (*SEPARATORS, *PARQUET, *ARROW, ".npz")


@explain_arguments
@translate_keywords
def read(
    source: Any,
    actions: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    episodes: str | None = None,
    weights: str | None = None,
    discrete: bool | None = None,
    reference: Any = None,
    subjects: str | None = None,
    categorical: Sequence[str] | None = None,
    missing: Missing = "error",
    choices: AlternativeColumns | None = None,
    na: Sequence[str] | None = None,
) -> Sample:
    """Read a sample from a file, by its suffix, or from what another tool keeps: most need no other argument.

    Parameters
    ----------
    source : path, table or object
        CSV, Parquet, Arrow or NPZ; a Minari dataset (object, folder or id), an HDF5 file of D4RL, a folder of LeRobot;
        a table, a dict of arrays, a list of episodes (observations, actions), imitation's trajectories, a batch of RLlib, a
        buffer of stable-baselines3.
    actions, features, episodes, weights, discrete, reference, subjects, categorical, missing, choices
        Which columns are what, as `Sample.from_frame` tells; they come before what the source says.
    na : sequence of str, optional
        Labels that stand for a missing value; by default "", NA, NaN, nan, null and None.

    Returns
    -------
    Sample
        The rows, checked.

    Raises
    ------
    InputError
        If the source cannot be read, or its columns are not what they are said to be.

    Examples
    --------
    >>> import tempfile, policyspace
    >>> path = f"{tempfile.mkdtemp()}/drives.csv"
    >>> policyspace.write(policyspace.Sample([[0.5], [2.0]], [1.0, -1.0], names=["speed"]), path)
    >>> policyspace.read(path).names
    ('speed',)
    """
    with located(Path(source)) if isinstance(source, str | Path) else nullcontext():
        frame, roles = table_of(source)
        columns = ColumnRoles(
            actions, features, episodes, weights, subjects, categorical, missing, choices=choices, na=na
        )
        return assemble(frame, roles, columns, discrete, reference)


@explain_arguments
def write(demonstrations: Sample, path: str | Path) -> None:
    """Write a sample to a file, by its suffix: the whole file appears at once, or nothing changes.

    Parameters
    ----------
    demonstrations : Sample
        What is written, with the roles of its columns.
    path : path
        Of a CSV, TSV (also .gz), Parquet, Arrow or NPZ file.

    Raises
    ------
    InputError
        If the suffix is not known, or the file cannot be written.

    Examples
    --------
    >>> import tempfile, policyspace
    >>> path = f"{tempfile.mkdtemp()}/drives.parquet"
    >>> policyspace.write(policyspace.Sample([[0.5], [2.0]], [0, 1], action_names=["left", "right"]), path)
    >>> policyspace.read(path).action_names
    ('left', 'right')
    """
    path = Path(path)
    with located(path):
        suffix = _suffix(path)
        roles = Schema.of(demonstrations)
        with replacing(path) as file, translated("a file that can be written"):
            if suffix == ".npz":
                write_npz(demonstrations, roles, file)
            elif suffix in SEPARATORS:
                _write_csv(to_frame(demonstrations, roles), roles, file, suffix)
            else:
                _write_arrow(to_frame(demonstrations, roles), roles, file, suffix)


def table_of(source: Any) -> StoredTable:
    """The table in a source, and what the source says about it."""
    if not isinstance(source, str | Path):
        return load(source) or (DataTable.of(source).frame, None)
    path = Path(source)
    check_not_forked("reading a file")
    with translated("a source that can be read"):
        stored = load(source)
    if stored is not None:
        return stored
    size = size_of(path, "a folder of neither Minari nor LeRobot")
    suffix = _suffix(path)
    if not size:
        raise InputError("the file is empty: write it again.")
    with translated(f"a readable {suffix} file"):
        if suffix == ".npz":
            return read_npz(path)
        if suffix in SEPARATORS:
            return _read_csv(lines_of(path, packed=suffix.endswith(".gz")), SEPARATORS[suffix])
        return _read_arrow(path, suffix)


@contextmanager
def located(path: str | Path) -> Iterator[None]:
    """Whatever is wrong is said on one line, with the file in front."""
    try:
        yield
    except InputError as error:
        sentence = " ".join(str(error).splitlines())
        raise InputError(sentence if sentence.startswith(f"{path}: ") else f"{path}: {sentence}") from error


def _suffix(path: Path) -> str:
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if path.name.lower().endswith(suffix):
            return suffix
    raise InputError(f"the name must end in one of {', '.join(SUFFIXES)}, found '{path.name}': rename or convert it.")


@contextmanager
def translated(expected: str) -> Iterator[None]:
    """Whatever a library says about a bad file, as one sentence: there is no list of all that they may raise."""
    try:
        yield
    except InputError:
        raise
    except BaseException as error:
        # A panic in polars is no Exception, and it is the file's fault too.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise InputError(f"expected {expected}, found otherwise ({reason_of(error)}).") from error


def _read_csv(data: bytes, separator: str) -> StoredTable:
    import polars

    data = data.removeprefix(b"\xef\xbb\xbf")
    roles = None
    if data.startswith(COMMENT):
        if not data.endswith(b"\n"):
            raise InputError("its last line is cut off: write the file again.")
        line, _, data = data.partition(b"\n")
        roles = Schema.from_json(line.removeprefix(COMMENT).decode())
    names, body = csv_header(data.rstrip(b"\r\n"), separator, spaced=roles is not None)
    # As written: a label "01" stays text, and a float stays a float whatever its values.
    types: dict[str, type[polars.DataType]] = {} if roles is None else dict.fromkeys(roles.features, polars.Float64)
    if roles is not None:
        types |= dict.fromkeys(roles.action, polars.String if roles.action_type.as_text else polars.Float64)
    frame = parse_text(body, separator, names, types)
    if roles is not None and frame.height != roles.rows:
        raise InputError(f"its header states {roles.rows} rows, found {frame.height}: write it again.")
    return frame, roles


def parse_text(
    body: bytes, separator: str, names: Sequence[str], types: "Mapping[str, type[polars.DataType]]"
) -> "polars.DataFrame":
    """Rows without their header, with types inferred from the first ones, and from all if a later one does not fit."""
    import polars

    # Plain names while polars reads: it alters empty and quoted ones.
    plain = {name: f"column_{j}" for j, name in enumerate(names)}
    data = separator.join(plain.values()).encode() + b"\n" + body
    known = {plain[name]: kind for name, kind in types.items() if name in plain}
    parsed = partial(polars.read_csv, data, separator=separator, schema_overrides=known)
    try:
        try:
            frame = parsed(infer_schema_length=1000)
        except polars.exceptions.ComputeError:
            frame = parsed(infer_schema_length=None)
    except polars.exceptions.ComputeError as error:
        rows = csv.reader(io.StringIO(body.decode(), newline=""), delimiter=separator)
        for row, fields in enumerate(rows, start=1):
            if len(fields) > len(names):
                found = f"found {len(fields)} in row {row}"
                raise InputError(f"every row must have {len(names)} fields as the header has, {found}.") from error
        raise
    frame.columns = list(names)
    return frame


def csv_header(data: bytes, separator: str, spaced: bool) -> tuple[list[str], bytes]:
    """The unique names in the first line, without spaces around them unless `spaced`, and the bytes after it, as UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"expected text in UTF-8, found other bytes in line {line}: save it as UTF-8.") from error
    raw = io.BytesIO(data)
    names = next(csv.reader((line.decode() for line in iter(raw.readline, b"")), delimiter=separator), [])
    check_limit("MAX_COLUMNS", len(names), "the columns of a table")
    names = names if spaced else [name.strip() for name in names]
    if not names:
        raise InputError("expected a header line with the names of the columns, found an empty line.")
    check_unique(names, where=" in the header")
    other = next((mark for mark in ";\t,|" if mark != separator and mark in names[0]), None)
    if len(names) == 1 and other:
        raise InputError(
            f"columns must be separated by {separator!r}, found {other!r} in the header: convert the file."
        )
    return names, data[raw.tell() :]


def _write_csv(frame: "polars.DataFrame", roles: Schema, file: BinaryIO, suffix: str) -> None:
    out: Any = file
    if suffix.endswith(".gz"):
        out = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)  # no time: same data, same bytes
    roles = replace(roles, rows=frame.height)  # the only sign by which a text that lost its last lines is known
    out.write(COMMENT + roles.to_json().encode() + b"\n")
    for start in range(0, frame.height, 100_000):
        part = frame.slice(start, 100_000)
        out.write(part.write_csv(include_header=start == 0, separator=SEPARATORS[suffix]).encode())
    if out is not file:
        out.close()


def _read_arrow(path: Path, suffix: str) -> StoredTable:
    import pyarrow
    import pyarrow.ipc
    import pyarrow.parquet

    file, size = open_file(path)
    with file:
        if suffix in PARQUET:
            stored = pyarrow.parquet.ParquetFile(file, page_checksum_verification=True)
            _judge(stored.metadata.num_rows, stored.schema_arrow, size)
            table = stored.read()
        else:
            by_place = file.read(6) == b"ARROW1"
            file.seek(0)
            opened = (pyarrow.ipc.open_file if by_place else pyarrow.ipc.open_stream)(file)
            _judge(0, opened.schema, size)
            batches = map(opened.get_batch, range(opened.num_record_batches)) if by_place else opened
            table = pyarrow.Table.from_batches(_bounded(batches, size), opened.schema)
    table.validate(full=True)  # a damaged file may have offsets that point anywhere
    header = (table.schema.metadata or {}).get(KEY.encode())
    return DataTable.of(table).frame, None if header is None else Schema.from_json(header.decode())


def _judge(rows: int, schema: Any, size: int) -> None:
    """Before anything is unpacked: repeated values take almost no room in a file."""
    check_limit("MAX_COLUMNS", len(schema), "the columns of a table")
    check_unpacked(8 * rows * len(schema), size)


def _bounded(batches: Any, size: int) -> Iterator[Any]:
    """The batches of an Arrow file, until they are more than it may become."""
    unpacked = 0
    for batch in batches:
        unpacked += batch.nbytes
        check_unpacked(unpacked, size)
        yield batch


def _write_arrow(frame: "polars.DataFrame", roles: Schema, file: BinaryIO, suffix: str) -> None:
    import polars
    import pyarrow.feather
    import pyarrow.parquet

    names = frame.columns
    frame.columns = [f"column_{j}" for j in range(len(names))]  # polars panics at a zero byte in a name
    # The oldest layout of text, which every reader knows.
    table = frame.to_arrow(compat_level=polars.CompatLevel.oldest()).rename_columns(names)
    table = table.replace_schema_metadata({KEY: roles.to_json()})
    if suffix in PARQUET:
        pyarrow.parquet.write_table(table, file, write_page_checksum=True)
    else:
        pyarrow.feather.write_feather(table, file)
