"""Rows of a log in blocks: statistics are sums over them, whether they lie in memory, in files or on other machines."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from policyspace.data.chunks import sum_over_chunks
from policyspace.errors import InputError

LONGEST = 65536
"""The most rows that a block holds."""

LARGEST = 1e60
"""The size of a number beyond which sums of squares could overflow (and below whose inverse, vanish)."""


def check_size(name: str, largest: float) -> None:
    """Sums of squares of a column must neither overflow nor vanish."""
    if largest > LARGEST or 0 < largest < 1 / LARGEST:
        raise InputError(
            f"'{name}' has values of size {largest:.1g}, beyond what sums of squares can hold ({1 / LARGEST:g} to "
            f"{LARGEST:g}): measure it in other units."
        )


@dataclass(frozen=True)
class Block:
    """Some rows of a log as numbers."""

    features: np.ndarray  # [c, q], float64, in any order of memory
    actions: np.ndarray  # codes of labels [c], weights of labels where rows are merged [c, k+1], or numbers [c, k]
    weights: np.ndarray | None = None  # [c]
    start: int = 0  # the place of the first row; those of different files are far apart
    owners: np.ndarray | None = None  # a number for the subject or episode of each row [c], where they are asked for

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def columnwise(self) -> bool:
        """Whether the numbers of a feature, rather than of a row, lie side by side."""
        return abs(self.features.strides[0]) < abs(self.features.strides[1])

    def features_from(self, origin: np.ndarray, out: np.ndarray) -> None:
        """Write the features, measured from an origin [q], to `out` [c, q]."""
        np.subtract(self.features, origin, out=out)


class Rows(ABC):
    """All rows of a log, read block by block as often as a sum over them is needed."""

    num_rows: int
    weighted: bool

    @abstractmethod
    def total(self, function: Callable[[Block], tuple[Any, ...]], size: int = LONGEST) -> tuple[Any, ...]:
        """Σ function(block) over blocks of at most `size` rows; the same bits for any number of workers.

        The function must be picklable where rows lie on other machines: an object with `__call__`, not a closure.
        """


@dataclass(frozen=True)
class ArrayRows(Rows):
    """Rows that lie in memory: blocks are views of them."""

    features: np.ndarray
    actions: np.ndarray
    weights: np.ndarray | None = None

    @property
    def num_rows(self) -> int:  # type: ignore[override]
        """How many."""
        return len(self.features)

    @property
    def weighted(self) -> bool:  # type: ignore[override]
        """Whether they have weights."""
        return self.weights is not None

    def block(self, rows: slice | np.ndarray) -> Block:
        """Some of them."""
        weights = None if self.weights is None else self.weights[rows]
        return Block(self.features[rows], self.actions[rows], weights)

    def total(self, function: Callable[[Block], tuple[Any, ...]], size: int = LONGEST) -> tuple[Any, ...]:
        """Σ function(block), added up in the order of the rows."""
        return sum_over_chunks(lambda rows: function(self.block(rows)), self.num_rows, size)
