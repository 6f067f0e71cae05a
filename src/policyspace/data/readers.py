"""Files in, demonstrations out, and back: CSV, Parquet, Arrow and NPZ, never pickled; other sources by their connector.

A file written here carries the roles of its columns, so that `read(path)` returns exactly what `write` was given.
"""

import csv
import gzip
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from policyspace.data.alternatives import Choices
from policyspace.data.column_choice import Columns
from policyspace.data.columns import Table
from policyspace.data.connectors import load
from policyspace.data.demonstrations import Demonstrations
from policyspace.data.input_files import lines_of, open_file, size_of
from policyspace.data.limits import check_limit, check_unpacked
from policyspace.data.missing import Missing
from policyspace.data.npz import read_npz, write_npz
from policyspace.data.roles import KEY, Roles, Stored, assemble, to_frame
from policyspace.data.vocabulary import one_vocabulary
from policyspace.data.whole_file import replacing
from policyspace.errors import InputError, check_unique, reason_of

if TYPE_CHECKING:
    import polars

COMMENT = f"# {KEY}: ".encode()
SEPARATORS = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
SUFFIXES = (*SEPARATORS, *PARQUET, *ARROW, ".npz")


@one_vocabulary
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
    choices: Choices | None = None,
) -> Demonstrations:
    """Demonstrations from a file, by its suffix, or as another tool keeps them: most need no other argument.

    `source` is a file, a Minari dataset (object, folder or id), an HDF5 file of D4RL, a folder of LeRobot, a list of
    episodes (observations, actions), imitation's trajectories, a dict of arrays, a batch of RLlib, a buffer of
    stable-baselines3, or a table. What else is said about the columns, `Demonstrations.from_frame` tells. Arguments come
    before what the source says.
    """
    with located(Path(source)) if isinstance(source, str | Path) else nullcontext():
        frame, roles = table_of(source)
        columns = Columns(actions, features, episodes, weights, subjects, categorical, missing, choices=choices)
        return assemble(frame, roles, columns, discrete, reference)


def write(demonstrations: Demonstrations, path: str | Path) -> None:
    """Demonstrations into a file, by its suffix: the whole file appears at once, or nothing changes."""
    path = Path(path)
    with located(path):
        suffix = _suffix(path)
        roles = Roles.of(demonstrations)
        with replacing(path) as file, translated("a file that can be written"):
            if suffix == ".npz":
                write_npz(demonstrations, roles, file)
            elif suffix in SEPARATORS:
                _write_csv(to_frame(demonstrations, roles), roles, file, suffix)
            else:
                _write_arrow(to_frame(demonstrations, roles), roles, file, suffix)


def table_of(source: Any) -> Stored:
    """The table in a source, and what the source says about it."""
    if not isinstance(source, str | Path):
        return load(source) or (Table.of(source).frame, None)
    path = Path(source)
    with translated("a source that can be read"):
        stored = load(source)
    if stored is not None:
        return stored
    size = size_of(path, "a folder of neither Minari nor LeRobot")
    suffix = _suffix(path)
    if not size:
        raise InputError("the file is empty: write it again.")
    with translated(f"a readable {suffix} file"):
        return _stored(path, suffix)


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


def _stored(path: Path, suffix: str) -> Stored:
    if suffix == ".npz":
        return read_npz(path)
    if suffix in SEPARATORS:
        return _read_csv(lines_of(path, packed=suffix.endswith(".gz")), SEPARATORS[suffix])
    return _read_arrow(path, suffix)


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


def _read_csv(data: bytes, separator: str) -> Stored:
    import polars

    data = data.removeprefix(b"\xef\xbb\xbf")
    roles = None
    if data.startswith(COMMENT):
        if not data.endswith(b"\n"):
            raise InputError("its last line is cut off: write the file again.")
        line, _, data = data.partition(b"\n")
        roles = Roles.from_json(line.removeprefix(COMMENT).decode())
    names, body = csv_header(data.rstrip(b"\r\n"), separator, spaced=roles is not None)
    # As written: a label "01" stays text, and a float stays a float whatever its values.
    types: dict[str, Any] = {} if roles is None else dict.fromkeys(roles.features, polars.Float64)
    if roles is not None:
        types |= dict.fromkeys(roles.action, polars.String if roles.discrete else polars.Float64)
    # Plain names while polars reads: it alters empty and quoted ones.
    plain = [f"column_{j}" for j in range(len(names))]
    head = separator.join(plain).encode() + b"\n"
    known = {column: types[name] for column, name in zip(plain, names, strict=True) if name in types}
    frame = _parse(head + body, separator, known)
    frame.columns = names
    if roles is not None and frame.height != roles.rows:
        raise InputError(f"its header promises {roles.rows} rows, found {frame.height}: write it again.")
    return frame, roles


def _parse(data: bytes, separator: str, types: dict[str, Any]) -> "polars.DataFrame":
    """With types inferred from every row: from the first ones, and from all of them if a later one does not fit."""
    import polars

    options: dict[str, Any] = {"separator": separator, "schema_overrides": types}
    with suppress(polars.exceptions.ComputeError):
        return polars.read_csv(data, infer_schema_length=1000, **options)
    try:
        return polars.read_csv(data, infer_schema_length=None, **options)
    except polars.exceptions.ComputeError:
        _check_fields(data, separator)
        raise


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


def _check_fields(data: bytes, separator: str) -> None:
    rows = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=separator)
    size = len(next(rows))
    for row, fields in enumerate(rows, start=1):
        if len(fields) > size:
            raise InputError(f"every row must have {size} fields as the header has, found {len(fields)} in row {row}.")


def _write_csv(frame: "polars.DataFrame", roles: Roles, file: BinaryIO, suffix: str) -> None:
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


def _read_arrow(path: Path, suffix: str) -> Stored:
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
    return Table.of(table).frame, None if header is None else Roles.from_json(header.decode())


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


def _write_arrow(frame: "polars.DataFrame", roles: Roles, file: BinaryIO, suffix: str) -> None:
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
