"""The files of a data set and their row groups."""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from policyspace.data.columns import DataTable
from policyspace.data.connectors import find_connector
from policyspace.data.files import ARROW, COMMENT, PARQUET, SEPARATORS, csv_header, located, parse_text, translated
from policyspace.data.schema import KEY, Schema, StoredTable
from policyspace.errors import InputError
from policyspace.runtime import check_limit, check_unpacked, limit
from policyspace.safe_io import open_file, record_ends, size_of

if TYPE_CHECKING:
    import polars
    import pyarrow


# -- Which files a data set is made of: one file, a folder, a glob, a list; folders `key=value` are columns.

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
            paths = sorted(
                path
                for path in root.rglob("*")
                if path.is_file() and not any(name.startswith((".", "_")) for name in path.relative_to(root).parts)
            )
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


# -- Parts of a data set, each read alone: a row group, a batch or a file of text, as the Arrow columns that are asked for.

TEXT_BLOCK = 4 << 20
"""Bytes of text that are read at once; no line is longer."""


BOOLEANS = {True: ["true", "True", "TRUE"], False: ["false", "False", "FALSE"]}
"""What stands for them in text."""

BUFFER = 1 << 16
"""Bytes of a column that are read at once."""

PIECE = 100_000
"""Rows of a row group that are unpacked at once.

Whole stretches; and three quarters of a power of two, for Arrow makes room for the next such power, doubles it where a page
ends inside a full one, and copies the column each time.
"""


@dataclass(frozen=True)
class FilePart:
    """Some rows of a data set: all of a file, or one row group or batch of it."""

    file: DataFile
    number: int  # among all parts
    piece: int | None = None  # the row group or batch; None: the whole file
    first_row: int = 0  # of the part, in its file
    types: "tuple[tuple[str, pyarrow.DataType], ...]" = ()  # of the columns of a text file
    skip: int = 0  # bytes before the rows of a text file
    keys: tuple[tuple[str, int | str | None], ...] = ()  # columns that folders say
    file_number: int = 0

    def tables(self, columns: Sequence[str]) -> "Iterator[tuple[int, pyarrow.Table]]":
        """These columns in pieces that fit in memory, each with the place of its first row in the file."""
        keys = dict(self.keys)
        own = [name for name in columns if name not in keys]
        with located(self.file.path), translated(f"a readable {self.file.suffix} file"):
            start = self.first_row
            for table in self._pieces(own):
                yield start, _with_keys(table, keys, columns)
                start += table.num_rows

    def head(self, columns: Sequence[str], most: int) -> "pyarrow.Table":
        """The first rows."""
        import pyarrow

        if self.file.suffix not in PARQUET:
            return next(self.tables(columns))[1].slice(0, most)
        keys = dict(self.keys)
        with located(self.file.path), translated("a readable Parquet file"), _bytes_of(self.file) as file:
            own = [name for name in columns if name not in keys]
            batch = next(_parquet(file).iter_batches(most, [self.piece], own, use_threads=False))
        return _with_keys(pyarrow.Table.from_batches([batch]), keys, columns)

    def with_numbers(self, names: Set[str]) -> "FilePart":
        """The same part, in whose text these columns are numbers, whether whole or not."""
        import pyarrow

        floats = pyarrow.float64()
        types = tuple((n, floats if n in names and not pyarrow.types.is_boolean(t) else t) for n, t in self.types)
        return replace(self, types=types)

    def _pieces(self, columns: list[str]) -> "Iterator[pyarrow.Table]":
        import pyarrow

        if self.file.suffix in SEPARATORS:
            yield from _text_tables(self, columns)
            return
        with _bytes_of(self.file) as file:
            if self.file.suffix in PARQUET:
                stored = _parquet(file)
                for batch in stored.iter_batches(PIECE, [self.piece], columns, use_threads=False):
                    yield pyarrow.Table.from_batches([batch])
                return
            opened = _arrow(file)
            pieces = [opened.get_batch(self.piece)] if self.piece is not None else opened
            for batch in pieces:
                check_unpacked(batch.nbytes, self.file.size)
                yield _plain_text(pyarrow.Table.from_batches([batch]).select(columns))


def _plain_text(table: "pyarrow.Table") -> "pyarrow.Table":
    """Text in the layout that every function of pyarrow knows: what polars writes, some do not."""
    import pyarrow

    views = [field.name for field in table.schema if pyarrow.types.is_string_view(field.type)]
    for name in views:
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, table.column(place).cast(pyarrow.large_string()))
    return table


@dataclass(frozen=True)
class FileHeader:
    """What a file says before its rows are read: types, the rows of each piece (none for a stream), roles, its header."""

    schema: "pyarrow.Schema"
    rows: list[int]
    roles: Schema | None
    skip: int = 0


@dataclass(frozen=True)
class DataSet:
    """The parts of a data set, the types of its columns, what its first file says about them, and its size.

    `num_rows` is what the files say, None for text; `num_bytes` what all columns would take in memory.
    """

    parts: tuple[FilePart, ...]
    schema: "pyarrow.Schema"
    roles: Schema | None
    num_rows: int | None
    num_bytes: int

    def read(self) -> StoredTable:
        """All of it at once, as a table with roles."""
        import pyarrow

        names = self.schema.names
        tables = [table for part in self.parts for _, table in part.tables(names)]
        whole = pyarrow.concat_tables(tables) if tables else self.schema.empty_table()
        return DataTable.of(whole).frame, self.roles


def data_set(files: Sequence[DataFile]) -> DataSet:
    """The parts of these files, whose columns must agree."""
    keys = _typed_keys(files)
    parts: list[FilePart] = []
    first: FileHeader | None = None
    num_rows, num_bytes = 0, 0
    for place, (file, own) in enumerate(zip(files, keys, strict=True)):
        with located(file.path), translated(f"a readable {file.suffix} file"):
            opened = _opened(file, first)
            check_limit("MAX_COLUMNS", len(opened.schema), "the columns of a table")
            first = first or opened
            for name in (*first.schema.names, *opened.schema.names):
                here, there = (s.field(name).type if name in s.names else None for s in (opened.schema, first.schema))
                if here != there:
                    words = [f"the type {kind}" if kind is not None else "no such column" for kind in (there, here)]
                    raise InputError(
                        f"all files must have the same columns, found '{name}' with {words[0]} in '{files[0].path}' and "
                        f"{words[1]} here: convert one of them, or name the files that agree."
                    )
        found = enumerate(_parts(file, opened), len(parts))
        parts += [replace(part, number=number, keys=own, file_number=place) for number, part in found]
        num_rows += sum(opened.rows)
        packed = 5 if file.suffix.endswith(".gz") else 1
        num_bytes += 8 * sum(opened.rows) * len(opened.schema) if opened.rows else file.size * packed
    assert first is not None
    counted = num_rows if all(part.piece is not None for part in parts) else None
    return DataSet(tuple(parts), _schema_with_keys(first.schema, keys), first.roles, counted, num_bytes)


def data_set_of(source: Any, any_size: bool = False) -> DataSet | None:
    """The data set in several files, or in one that is too large to be read at once (or of any size); else None."""
    if is_many(source):
        return None if not isinstance(source, list | tuple) and find_connector(source) else data_set(files_of(source))
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


def _parts(file: DataFile, opened: FileHeader) -> Iterator[FilePart]:
    if file.suffix in SEPARATORS:
        types = tuple(zip(opened.schema.names, opened.schema.types, strict=True))
        yield FilePart(file, 0, types=types, skip=opened.skip)
    elif not opened.rows and file.suffix not in PARQUET:  # a stream of batches, which has no list of them
        yield FilePart(file, 0)
    start = 0
    for piece, count in enumerate(opened.rows):
        if count:
            yield FilePart(file, 0, piece, start)
        start += count


def _opened(file: DataFile, like: FileHeader | None) -> FileHeader:
    """What a file says before its rows are read."""
    if file.suffix in SEPARATORS:
        return _opened_text(file, like)
    with _bytes_of(file) as opened:
        if file.suffix in PARQUET:
            stored = _parquet(opened)
            schema, meta = stored.schema_arrow, stored.metadata
            rows = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
        else:
            stored = _arrow(opened)
            schema = stored.schema
            counted = hasattr(stored, "num_record_batches")
            rows = [stored.get_batch(i).num_rows for i in range(stored.num_record_batches)] if counted else []
    header = (schema.metadata or {}).get(KEY.encode())
    return FileHeader(schema, rows, None if header is None else Schema.from_json(header.decode()))


def _bytes_of(file: DataFile) -> Any:
    """The bytes of a regular file; a pipe or a device is refused."""
    import pyarrow

    open_file(file.path)[0].close()
    return pyarrow.OSFile(file.path)


def _parquet(file: Any) -> Any:
    import pyarrow.parquet

    # By default the whole file is held in memory, and without a buffer all columns of a row group.
    return pyarrow.parquet.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER, page_checksum_verification=True)


def _arrow(file: Any) -> Any:
    import pyarrow.ipc

    by_place = file.read(6) == b"ARROW1"
    file.seek(0)
    return (pyarrow.ipc.open_file if by_place else pyarrow.ipc.open_stream)(file)


# -- text --------------------------------------------------------------------------------------------------------------


def _opened_text(file: DataFile, like: FileHeader | None) -> FileHeader:
    """Names from the header, types from the first block of the first file."""
    import pyarrow

    with _text_stream(file) as stream:
        head = stream.read(TEXT_BLOCK)
    head = head[: record_ends(head, False)[1]]
    size, roles = len(head), None
    head = head.removeprefix(b"\xef\xbb\xbf")
    if head.startswith(COMMENT):
        line, _, head = head.partition(b"\n")
        roles = Schema.from_json(line.removeprefix(COMMENT).decode())
    names, body = csv_header(head, SEPARATORS[file.suffix], spaced=roles is not None)
    if like is not None and set(names) == set(like.schema.names):  # text that does not fit is found where it stands
        known = pyarrow.schema([(name, like.schema.field(name).type) for name in names])
        return FileHeader(known, [], roles, size - len(body))
    if not body.strip():
        raise InputError("a table needs at least one row, found none: check the file or the filter behind it.")
    # The types that the text would have if it were read at once: one reader infers them, whatever the size of a file.
    frame = parse_text(body, SEPARATORS[file.suffix], names, {})
    types = {column.name: _type_of(column) for column in frame}
    if roles is not None:
        types |= dict.fromkeys(roles.features, pyarrow.float64())
        types |= dict.fromkeys(roles.action, pyarrow.string() if roles.action_type.as_text else pyarrow.float64())
    return FileHeader(pyarrow.schema(list(types.items())), [], roles, size - len(body))


def _type_of(column: "polars.Series") -> "pyarrow.DataType":
    """Whole numbers, numbers, booleans or text; nothing but missing values may yet become numbers."""
    import polars
    import pyarrow

    if column.null_count() == len(column):
        return pyarrow.float64()
    plain: Any = {polars.Int64: pyarrow.int64(), polars.Boolean: pyarrow.bool_(), polars.String: pyarrow.string()}
    return plain.get(column.dtype, pyarrow.float64())


def _text_tables(part: FilePart, columns: list[str]) -> "Iterator[pyarrow.Table]":
    import pyarrow
    import pyarrow.csv

    types = dict(part.types)
    with _text_stream(part.file) as stream:
        stream.read(part.skip)
        read = pyarrow.csv.ReadOptions(use_threads=False, block_size=TEXT_BLOCK, column_names=list(types))
        parse = pyarrow.csv.ParseOptions(delimiter=SEPARATORS[part.file.suffix], newlines_in_values=True)
        convert = pyarrow.csv.ConvertOptions(
            column_types={name: types[name] for name in columns}, include_columns=columns,
            true_values=BOOLEANS[True], false_values=BOOLEANS[False],
        )  # fmt: skip
        try:
            for batch in pyarrow.csv.open_csv(stream, read, parse, convert):
                yield pyarrow.Table.from_batches([batch])
        except pyarrow.ArrowInvalid as error:
            raise _in_words(str(error), list(types)) from error


def _in_words(reason: str, names: list[str]) -> InputError:
    """What pyarrow says about a line of text, in our words."""
    if found := re.search(r"column #(\d+): Row #(\d+): .*invalid value '(.*)'", reason, re.DOTALL):
        return InputError(
            f"column '{names[int(found[1])]}' has text where numbers belong: found '{found[3]:.60}' in row {found[2]}; "
            "correct it, or drop that row."
        )
    if found := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", reason):
        return InputError(
            f"every row must have {found[2]} fields as the header has, found {found[3]} in row {found[1]}."
        )
    return InputError(
        f"expected a readable file of text, found otherwise ({reason.splitlines()[0][:200].rstrip('.')})."
    )


def _text_stream(file: DataFile) -> Any:
    import pyarrow

    return pyarrow.input_stream(_bytes_of(file), compression="gzip" if file.suffix.endswith(".gz") else None)


# -- columns that folders say ------------------------------------------------------------------------------------------


def _typed_keys(files: Sequence[DataFile]) -> list[tuple[tuple[str, int | str | None], ...]]:
    """The keys of each file: whole numbers where all values of a key are, else text."""
    names = [name for name, _ in files[0].keys]
    values = {name: [dict(file.keys)[name] for file in files] for name in names}
    whole = {
        name: all(v == NO_VALUE or re.fullmatch(r"-?(0|[1-9]\d{0,17})", v) for v in found)
        for name, found in values.items()
    }
    return [tuple((n, None if v == NO_VALUE else int(v) if whole[n] else v) for n, v in file.keys) for file in files]


def _schema_with_keys(schema: "pyarrow.Schema", keys: Sequence[tuple[tuple[str, Any], ...]]) -> "pyarrow.Schema":
    import pyarrow

    for place, (name, _) in enumerate(keys[0]):
        if name in schema.names:
            raise InputError(f"the column '{name}' is in the files and in the names of their folders: rename one.")
        text = any(isinstance(own[place][1], str) for own in keys)
        schema = schema.append(pyarrow.field(name, pyarrow.string() if text else pyarrow.int64()))
    return schema


def _with_keys(table: "pyarrow.Table", keys: Mapping[str, Any], columns: Sequence[str]) -> "pyarrow.Table":
    """The columns in the order that was asked for, those of the folders among them."""
    import pyarrow

    for name in columns:
        if name in keys:
            kind = pyarrow.string() if isinstance(keys[name], str) else pyarrow.int64()
            table = table.append_column(name, pyarrow.repeat(pyarrow.scalar(keys[name], kind), table.num_rows))
    return table.select(list(columns))
