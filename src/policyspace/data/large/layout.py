"""Rows of one part of a large log as arrays; random samples of rows taken during a pass."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from policyspace.data.columns import DataTable
from policyspace.data.files import located
from policyspace.data.large.parts import FilePart
from policyspace.data.rows import LARGEST, RowBlock, check_size
from policyspace.data.validation import TEXTS, Missing, is_missing
from policyspace.errors import InputError

if TYPE_CHECKING:
    import pyarrow


# -- What is made of the columns of a log: numbers as they are, categories one-hot, labels as codes; complete rows only.

Numbers = dict[str, np.ndarray]
"""The values of columns that are numbers, by name."""

Codes = dict[str, tuple[np.ndarray, list[Any]]]
"""The code of each row in columns of categories or labels, and what the codes stand for."""


@dataclass(frozen=True)
class ColumnLayout:
    """The columns that are used, by role.

    `vocabulary` has, for each coded column, the place of every value; it is empty until a first pass has seen them. A
    layout goes to other threads and machines with every task, and holds no rows.
    """

    features: tuple[str, ...]
    actions: tuple[str, ...]
    weights: str | None = None
    episodes: str | None = None
    subjects: str | None = None
    categories: frozenset[str] = frozenset()  # features that are no numbers
    numbers_in_text: frozenset[str] = frozenset()
    label: str | None = None  # the action, where its values are labels
    missing: Missing = "error"
    texts: bool = True  # whether a text such as NA is a missing value
    vocabulary: Mapping[str, Mapping[Any, int]] = field(default_factory=dict)
    checked: bool = False  # whether a pass has found all numbers finite

    @property
    def columns(self) -> list[str]:
        """Those that sums over rows need."""
        weights = [] if self.weights is None else [self.weights]
        return [*self.features, *self.actions, *weights]

    @property
    def all_columns(self) -> list[str]:
        """Those that say which rows belong together, too."""
        return [*self.columns, *(name for name in (self.episodes, self.subjects) if name is not None)]

    @property
    def owners(self) -> str | None:
        """The column that says whose rows belong together."""
        return self.subjects or self.episodes

    @property
    def coded(self) -> frozenset[str]:
        """The columns whose values have places rather than sizes."""
        return self.categories | (frozenset() if self.label is None else {self.label})

    def tables(self, part: FilePart, columns: Sequence[str]) -> "Iterator[tuple[int, RowArrays]]":
        """The complete rows of a part in pieces, each with the place of its first row in the file."""
        for start, table in part.tables(columns):
            with located(part.file.path):
                yield start, self.take(table, start)

    def take(self, table: "pyarrow.Table", start: int = 0) -> "RowArrays":
        """The rows of a table that miss no value, or one sentence about the first that does."""
        table = self._with_numbers(table, start)
        arrays, size = self._arrays(table), table.num_rows
        if arrays is None:
            table = self._complete(table, start)
            arrays = self._arrays(table)
            assert arrays is not None
        return RowArrays(self, table, *arrays, size - table.num_rows)

    def _arrays(self, table: "pyarrow.Table") -> "tuple[Numbers, Codes] | None":
        """The columns that are numbers, and the coded ones; None where a value is missing or not finite."""
        numbers: Numbers = {}
        codes: Codes = {}
        for name in table.column_names:
            column = table.column(name)
            if column.null_count:
                return None
            if name in self.coded:
                codes[name] = encoded(column)
                if self.texts and any(isinstance(v, str) and v.strip() in TEXTS for v in codes[name][1]):
                    return None
            elif name in self.features or name in self.actions or name == self.weights:
                numbers[name] = array = numbers_of(column)
                if array.dtype.kind == "f" and not (self.checked or float(np.dot(array, array)) < LARGEST**2):
                    largest = float(np.abs(array).max())
                    if not np.isfinite(largest):
                        return None
                    check_size(name, largest)
        return numbers, codes

    def _with_numbers(self, table: "pyarrow.Table", start: int) -> "pyarrow.Table":
        """The same table with numbers in the columns that hold them as text."""
        import polars

        for name in self.numbers_in_text.intersection(table.column_names):
            texts = polars.Series(table.column(name)).cast(polars.String).str.strip_chars()
            texts = texts.set(texts.is_in(list(TEXTS)), None)
            numbers = texts.cast(polars.Float64, strict=False)
            bad = numbers.is_null() & texts.is_not_null()
            if bad.any():
                row = int(bad.arg_max() or 0)
                raise InputError(
                    f"column '{name}' has text where numbers belong: found '{texts[row]}' in row {start + row + 1}; "
                    "correct it, or drop that row."
                )
            table = table.set_column(table.column_names.index(name), name, numbers.to_arrow())
        return table

    def _complete(self, table: "pyarrow.Table", start: int) -> "pyarrow.Table":
        """Without the rows that miss a value, if they are to be dropped; numbers must be finite either way."""
        frame, gone = DataTable.of(table).frame, None
        for name in table.column_names:
            mask = is_missing(frame[name], TEXTS if self.texts and name in self.coded else ())
            if mask.any() and self.missing == "error":
                row = int(mask.arg_max() or 0)
                value = frame[name][row]
                shown = "" if value is None else f" ('{value}')"
                raise InputError(
                    f"column '{name}' must be complete, found a missing value in row {start + row + 1}{shown}: fill such "
                    "rows, or drop them (--missing drop, missing='drop')."
                )
            gone = mask if gone is None else gone | mask
            if frame[name].dtype.is_float() and (bad := frame[name].is_infinite().fill_null(False)).any():
                row = int(bad.arg_max() or 0)
                raise InputError(
                    f"column '{name}' must be finite numbers, found {frame[name][row]} in row {start + row + 1}: "
                    "drop or fill it."
                )
        assert gone is not None
        return table.filter((~gone).to_arrow())


@dataclass(frozen=True)
class RowArrays:
    """Complete rows as arrays."""

    layout: ColumnLayout
    table: "pyarrow.Table"
    numbers: Numbers
    codes: Codes
    dropped: int = 0

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def blocks(self, size: int, place: int = 0, owned: bool = False) -> Iterator[RowBlock]:
        """The rows as numbers, at most so many at a time, in equal shares; `place` is that of the first row."""
        places = {name: self._places(name) for name in self.layout.coded if name in self.layout.vocabulary}
        owners = column_numbers(self.table.column(self.layout.owners)) if owned and self.layout.owners else None
        shares = -(-len(self) // size)
        for i in range(shares):
            rows = slice(i * len(self) // shares, (i + 1) * len(self) // shares)
            yield self._block(rows, places, place + rows.start, None if owners is None else owners[rows])

    def _block(
        self, rows: slice, places: Mapping[str, tuple[np.ndarray, int]], place: int, owners: np.ndarray | None
    ) -> RowBlock:
        layout, length = self.layout, rows.stop - rows.start
        features: list[np.ndarray] = []
        for name in layout.features:
            if name in layout.categories:
                features += [places[name][0][rows] == level for level in range(places[name][1] - 1)]
            else:
                features.append(self.numbers[name][rows])
        if layout.label is None:
            actions = np.empty((len(layout.actions), length))
            for row, name in zip(actions, layout.actions, strict=True):
                row[:] = self.numbers[name][rows]
            actions = actions.T
        elif layout.label in places:
            actions = places[layout.label][0][rows]
        else:
            actions = np.zeros(length, dtype=np.int64)  # in the first pass, which is about features
        weights = None if layout.weights is None else self.numbers[layout.weights][rows].astype(np.float64)
        return ColumnarBlock(features, actions, weights, place, owners)

    def _places(self, name: str) -> tuple[np.ndarray, int]:
        """The place of each row's value among those of the column, and how many places there are."""
        codes, values = self.codes[name]
        known = self.layout.vocabulary[name]
        place = np.array([known.get(value, -1) for value in values], dtype=np.int64)[codes]
        if len(place) and place.min() < 0:
            raise InputError(
                f"column '{name}' has values that it did not have before: the files have changed meanwhile."
            )
        return place, max(known.values()) + 1


class ColumnarBlock(RowBlock):
    """A block whose features lie in columns of their own, and are copied only on the way to what is made of them."""

    columns: Sequence[np.ndarray]  # [q] of [c]
    columnwise = True

    def __init__(
        self,
        columns: Sequence[np.ndarray],
        actions: np.ndarray,
        weights: np.ndarray | None,
        start: int = 0,
        owners: np.ndarray | None = None,
    ) -> None:
        self.__dict__.update(columns=columns, actions=actions, weights=weights, start=start, owners=owners)

    @cached_property
    def features(self) -> np.ndarray:
        """[c, q]."""
        made = np.empty((len(self.columns), len(self))).T
        for j, column in enumerate(self.columns):
            made[:, j] = column
        return made

    def features_from(self, origin: np.ndarray, out: np.ndarray) -> None:
        """Without a copy before."""
        for j, column in enumerate(self.columns):
            np.subtract(column, origin[j], out=out[:, j])


def numbers_of(column: "pyarrow.ChunkedArray") -> np.ndarray:
    """A column that misses no value as numbers [n], which are not copied where they lie in one piece.

    What pyarrow itself offers for this imports pandas wherever it is installed: 0.3 s and 60 MB.
    """
    import pyarrow

    if not (pyarrow.types.is_integer(column.type) or pyarrow.types.is_floating(column.type)):
        column = column.cast("float64")
    return np.from_dlpack(column.chunk(0) if column.num_chunks == 1 else column.combine_chunks())


def encoded(column: "pyarrow.ChunkedArray") -> tuple[np.ndarray, list[Any]]:
    """The code of each row, and the values that the codes stand for."""
    import pyarrow

    if not pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if not column.num_chunks:
        return np.zeros(0, dtype=np.int64), []
    array = column.unify_dictionaries().combine_chunks()
    return np.from_dlpack(array.indices), array.dictionary.to_pylist()


def column_numbers(column: "pyarrow.ChunkedArray") -> np.ndarray:
    """A number for each label of a column, the same wherever it occurs [n]."""
    import polars

    series = polars.Series(column)
    if not series.dtype.is_numeric():
        series = series.cast(polars.String)
    return series.hash(0).to_numpy()


# -- Samples that a pass over a log takes with it: whole stretches of rows, and rows of every action.

MOST_STRETCHED = 100_000
"""Rows in whole stretches, episodes or subjects."""

STRETCH = 1000
"""Neighbouring rows that stay together where no episodes are named."""

MOST_OF_AN_ACTION = 25_000
MOST_IN_ALL = 400_000
"""Rows of every action, and of all of them."""


def hashed_order(numbers: np.ndarray, seed: int) -> np.ndarray:
    """A 64-bit number for each number, as if drawn at random; equal numbers get equal ones (SplitMix64)."""
    z = numbers.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@dataclass(frozen=True)
class BlockSample:
    """The rows of those stretches (episodes, subjects) whose random numbers are smallest, as many as may be kept.

    Which they are depends on the numbers alone, not on the order of additions: a stretch is dropped only when those
    before it are already too many, and `below` says from where on all are dropped.
    """

    table: "pyarrow.Table"
    numbers: np.ndarray  # of the stretch of each row
    below: int = 2**64

    @classmethod
    def of(cls, table: "pyarrow.Table", numbers: np.ndarray, most: int, below: int = 2**64) -> Self:
        """Those that are kept of these rows."""
        if below < 2**64:
            table, numbers = _some(table, numbers, np.flatnonzero(numbers < np.uint64(below)))
        if len(numbers) <= most:
            return cls(table, numbers, below)
        distinct, place, sizes = np.unique(numbers, return_inverse=True, return_counts=True)
        kept = int(np.searchsorted(np.cumsum(sizes), most, side="right"))
        if kept < len(distinct):
            below = min(below, int(distinct[max(kept, 1)]) if len(distinct) > 1 else below)
            rows = np.flatnonzero(place < max(kept, 1))
            table, numbers = _some(table, numbers, rows[:most])  # of one that is too long, its first rows
        return cls(table, numbers, below)

    def __add__(self, other: "BlockSample") -> "BlockSample":
        import pyarrow

        table = pyarrow.concat_tables([self.table, other.table])
        numbers = np.concatenate([self.numbers, other.numbers])
        return BlockSample.of(table, numbers, MOST_STRETCHED, min(self.below, other.below))


@dataclass(frozen=True)
class StratifiedSample:
    """For each action the rows whose random numbers are smallest, so that rare actions are all there.

    `below` says, for each action of which enough rows are kept, from which number on all others are dropped.
    """

    table: "pyarrow.Table"
    action: str
    numbers: np.ndarray  # in [0, 1), one a row
    below: Mapping[Any, float]

    @classmethod
    def of(cls, table: "pyarrow.Table", action: str, numbers: np.ndarray, below: Mapping[Any, float]) -> Self:
        """Those that are kept of these rows."""
        codes, values = encoded(table.column(action))
        kept = numbers < np.array([below.get(value, 1.0) for value in values])[codes]
        counts = np.bincount(codes[kept], minlength=len(values))
        most = min(MOST_OF_AN_ACTION, MOST_IN_ALL // max(1, len(below.keys() | set(values))))
        known = dict(below)
        for code in np.flatnonzero(counts > most).tolist():
            rows = np.flatnonzero(kept & (codes == code))
            order = np.argpartition(numbers[rows], most)
            known[values[code]] = float(numbers[rows[order[most]]])
            kept[rows[order[most:]]] = False
        if not kept.all():
            table, numbers = _some(table, numbers, np.flatnonzero(kept))
        return cls(table, action, numbers, known)

    def __add__(self, other: "StratifiedSample") -> "StratifiedSample":
        import pyarrow

        table = pyarrow.concat_tables([self.table, other.table])
        numbers = np.concatenate([self.numbers, other.numbers])
        return StratifiedSample.of(table, self.action, numbers, keep_smallest(self.below, other.below))


def keep_smallest(first: Mapping[Any, float], second: Mapping[Any, float]) -> dict[Any, float]:
    """The smaller of two bounds of each action."""
    return {value: min(first.get(value, 1.0), second.get(value, 1.0)) for value in first.keys() | second.keys()}


def rows_of(table: "pyarrow.Table", rows: np.ndarray) -> "pyarrow.Table":
    """A copy of some rows, so that the others may be forgotten."""
    import pyarrow

    places = np.ascontiguousarray(rows, dtype=np.int64)  # as a buffer: pyarrow.array would import pandas
    return table.take(pyarrow.Array.from_buffers(pyarrow.int64(), len(places), [None, pyarrow.py_buffer(places)]))


def _some(table: "pyarrow.Table", numbers: np.ndarray, rows: np.ndarray) -> "tuple[pyarrow.Table, np.ndarray]":
    return rows_of(table, rows), numbers[rows]
