"""What is made of the columns of a log: numbers as they are, categories one-hot, labels as codes; complete rows only."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from policyspace.data.blocks import LARGEST, Block, check_size
from policyspace.data.columns import Table
from policyspace.data.large.parts import Part
from policyspace.data.missing import TEXTS, Missing, is_missing
from policyspace.data.readers import located
from policyspace.errors import InputError

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Layout:
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
    discrete: bool = False
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
        return self.categories | (frozenset(self.actions) if self.discrete else frozenset())

    def tables(self, part: Part, columns: Sequence[str]) -> "Iterator[tuple[int, Taken]]":
        """The complete rows of a part in pieces, each with the place of its first row in the file."""
        for start, table in part.tables(columns):
            with located(part.file.path):
                yield start, self.take(table, start)

    def take(self, table: "pyarrow.Table", start: int = 0) -> "Taken":
        """The rows of a table that miss no value, or one sentence about the first that does."""
        table = self._with_numbers(table, start)
        arrays, size = self._arrays(table), table.num_rows
        if arrays is None:
            table = self._complete(table, start)
            arrays = self._arrays(table)
            assert arrays is not None
        return Taken(self, table, arrays, size - table.num_rows)

    def _arrays(self, table: "pyarrow.Table") -> "dict[str, Any] | None":
        """Numbers as arrays, coded columns as (codes, values); None where a value is missing or not finite."""
        made: dict[str, Any] = {}
        for name in table.column_names:
            column = table.column(name)
            if column.null_count:
                return None
            if name in self.coded:
                made[name] = encoded(column)
                if self.texts and any(isinstance(v, str) and v.strip() in TEXTS for v in made[name][1]):
                    return None
            elif name in self.features or name in self.actions or name == self.weights:
                made[name] = array = numbers_of(column)
                if array.dtype.kind == "f" and not (self.checked or float(np.dot(array, array)) < LARGEST**2):
                    largest = float(np.abs(array).max())
                    if not np.isfinite(largest):
                        return None
                    check_size(name, largest)
        return made

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
        frame, gone = Table.of(table).frame, None
        for name in table.column_names:
            mask = is_missing(frame[name], self.texts and name in self.coded)
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
class Taken:
    """Complete rows as arrays: numbers, and for coded columns the code of each row and what the codes stand for."""

    layout: Layout
    table: "pyarrow.Table"
    arrays: dict[str, Any]
    dropped: int = 0

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def blocks(self, size: int, place: int = 0, owned: bool = False) -> Iterator[Block]:
        """The rows as numbers, at most so many at a time, in equal shares; `place` is that of the first row."""
        places = {name: self._places(name) for name in self.layout.coded if name in self.layout.vocabulary}
        owners = column_numbers(self.table.column(self.layout.owners)) if owned and self.layout.owners else None
        shares = -(-len(self) // size)
        for i in range(shares):
            rows = slice(i * len(self) // shares, (i + 1) * len(self) // shares)
            yield self._block(rows, places, place + rows.start, None if owners is None else owners[rows])

    def _block(
        self, rows: slice, places: Mapping[str, tuple[np.ndarray, int]], place: int, owners: np.ndarray | None
    ) -> Block:
        layout, length = self.layout, rows.stop - rows.start
        features: list[np.ndarray] = []
        for name in layout.features:
            if name in layout.categories:
                features += [places[name][0][rows] == level for level in range(places[name][1] - 1)]
            else:
                features.append(self.arrays[name][rows])
        if not layout.discrete:
            actions = np.empty((len(layout.actions), length))
            for row, name in zip(actions, layout.actions, strict=True):
                row[:] = self.arrays[name][rows]
            actions = actions.T
        elif layout.actions[0] in places:
            actions = places[layout.actions[0]][0][rows]
        else:
            actions = np.zeros(length, dtype=np.int64)  # in the first pass, which is about features
        weights = None if layout.weights is None else self.arrays[layout.weights][rows].astype(np.float64)
        return StoredBlock(features, actions, weights, place, owners)

    def _places(self, name: str) -> tuple[np.ndarray, int]:
        """The place of each row's value among those of the column, and how many places there are."""
        codes, values = self.arrays[name]
        known = self.layout.vocabulary[name]
        place = np.array([known.get(value, -1) for value in values], dtype=np.int64)[codes]
        if len(place) and place.min() < 0:
            raise InputError(
                f"column '{name}' has values that it did not have before: the files have changed meanwhile."
            )
        return place, max(known.values()) + 1


class StoredBlock(Block):
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
