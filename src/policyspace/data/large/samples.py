"""Samples that a pass over a log takes with it: whole stretches of rows, and rows of every action."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

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
    """For each action the rows whose random numbers are smallest, so that rare actions are all there."""

    table: "pyarrow.Table"
    action: str
    keys: np.ndarray

    @classmethod
    def of(cls, table: "pyarrow.Table", action: str, keys: np.ndarray) -> Self:
        """Those that are kept of these rows."""
        codes, values = encoded(table.column(action))
        counts = np.bincount(codes, minlength=len(values))
        most = min(MOST_OF_AN_ACTION, MOST_IN_ALL // max(1, int((counts > 0).sum())))
        if (counts <= most).all():
            return cls(table, action, keys)
        kept = np.ones(len(codes), dtype=bool)
        for code in np.flatnonzero(counts > most).tolist():
            rows = np.flatnonzero(codes == code)
            kept[rows[np.argpartition(keys[rows], most)[most:]]] = False
        table, keys = _some(table, keys, np.flatnonzero(kept))
        return cls(table, action, keys)

    def __add__(self, other: "Strata") -> "Strata":
        import pyarrow

        table = pyarrow.concat_tables([self.table, other.table])
        return Strata.of(table, self.action, np.concatenate([self.keys, other.keys]))


def _some(table: "pyarrow.Table", numbers: np.ndarray, rows: np.ndarray) -> "tuple[pyarrow.Table, np.ndarray]":
    """Copies of some rows, so that the others may be forgotten."""
    return table.take(rows), numbers[rows]
