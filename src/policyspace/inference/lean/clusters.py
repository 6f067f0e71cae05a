"""Clusters of rows over which scores are summed, as a block of rows tells them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from policyspace.data.blocks import Block
from policyspace.data.large.samples import scattered


class Clusters(ABC):
    """Which of `num` clusters each row belongs to."""

    num: int
    by_owner = False  # whether it asks whose rows they are

    @abstractmethod
    def codes(self, block: Block) -> np.ndarray:
        """The cluster of each row of a block."""


@dataclass(frozen=True, eq=False)
class Listed(Clusters):
    """The cluster of each row in memory, by the place of the row."""

    of_row: np.ndarray

    @property
    def num(self) -> int:  # type: ignore[override]
        """The codes are 0, 1, …."""
        return int(self.of_row.max()) + 1

    def codes(self, block: Block) -> np.ndarray:
        """Those of its rows."""
        return self.of_row[block.start : block.start + len(block)]


@dataclass(frozen=True, eq=False)
class Owned(Clusters):
    """Whole subjects or episodes; about as many in each cluster where there are too many of them."""

    by_owner = True
    edges: np.ndarray
    """The smallest number of an owner in each cluster."""

    @classmethod
    def of(cls, owners: np.ndarray, most: int) -> "Owned":
        """From the numbers of all owners, which say nothing about them, in order."""
        return cls(owners[:: -(-len(owners) // most)])

    @property
    def num(self) -> int:  # type: ignore[override]
        """A cluster an edge."""
        return len(self.edges)

    def codes(self, block: Block) -> np.ndarray:
        """By the number of each row's owner."""
        assert block.owners is not None
        return np.searchsorted(self.edges, block.owners, side="right") - 1


@dataclass(frozen=True)
class Runs(Clusters):
    """Runs of so many neighbouring rows of a file, thrown together at random where they are too many."""

    length: int
    num: int

    def codes(self, block: Block) -> np.ndarray:
        """By the places of the rows."""
        runs = np.arange(block.start, block.start + len(block)) // self.length
        return (scattered(runs, 0) % np.uint64(self.num)).astype(np.intp)
