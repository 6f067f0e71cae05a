"""Samples that a pass over a log takes with it: whole stretches of rows, and rows of every action."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from policyspace.data.large.layout import encoded

if TYPE_CHECKING:
    import pyarrow

MOST_STRETCHED = 100_000
"""Rows in whole stretches, episodes or subjects."""

STRETCH = 1000
"""Neighbouring rows that stay together where no episodes are named."""

MOST_OF_AN_ACTION = 25_000
MOST_IN_ALL = 400_000
"""Rows of every action, and of all of them."""


def scattered(numbers: np.ndarray, seed: int) -> np.ndarray:
    """A 64-bit number for each number, as if drawn at random; equal numbers get equal ones (SplitMix64)."""
    z = numbers.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@dataclass(frozen=True)
class Stretches:
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

    def __add__(self, other: "Stretches") -> "Stretches":
        import pyarrow

        table = pyarrow.concat_tables([self.table, other.table])
        numbers = np.concatenate([self.numbers, other.numbers])
        return Stretches.of(table, numbers, MOST_STRETCHED, min(self.below, other.below))


@dataclass(frozen=True)
class Strata:
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

    def __add__(self, other: "Strata") -> "Strata":
        import pyarrow

        table = pyarrow.concat_tables([self.table, other.table])
        numbers = np.concatenate([self.numbers, other.numbers])
        return Strata.of(table, self.action, numbers, smaller(self.below, other.below))


def smaller(first: Mapping[Any, float], second: Mapping[Any, float]) -> dict[Any, float]:
    """The smaller of two bounds of each action."""
    return {value: min(first.get(value, 1.0), second.get(value, 1.0)) for value in first.keys() | second.keys()}


def rows_of(table: "pyarrow.Table", rows: np.ndarray) -> "pyarrow.Table":
    """A copy of some rows, so that the others may be forgotten."""
    import pyarrow

    places = np.ascontiguousarray(rows, dtype=np.int64)  # as a buffer: pyarrow.array would import pandas
    return table.take(pyarrow.Array.from_buffers(pyarrow.int64(), len(places), [None, pyarrow.py_buffer(places)]))


def _some(table: "pyarrow.Table", numbers: np.ndarray, rows: np.ndarray) -> "tuple[pyarrow.Table, np.ndarray]":
    return rows_of(table, rows), numbers[rows]
