"""Single rows that a sample of a log may not hold and that all the same decide: the farthest out, the worst explained."""

from dataclasses import dataclass

import numpy as np

from policyspace.data.blocks import ArrayRows, Block
from policyspace.data.joint_moments import Moments, MomentsOf

MOST = 4096
"""Rows that are kept."""

FAR = 8.0
"""Standard deviations from the mean beyond which a row is looked at by itself."""

SUSPECT = 6.0
"""The same where mean and standard deviation are those of the first rows alone."""


@dataclass(frozen=True)
class Outstanding:
    """The rows with the largest of some measure; of two sums, the largest of both."""

    block: Block
    measure: np.ndarray  # [c]

    @staticmethod
    def of(block: Block, measure: np.ndarray, least: float) -> "Outstanding":
        """Those of a block whose measure is more than the least that counts."""
        chosen = np.flatnonzero(measure > least)
        chosen = chosen[np.argsort(-measure[chosen], kind="stable")[:MOST]]
        weights = None if block.weights is None else block.weights[chosen]
        return Outstanding(Block(block.features[chosen], block.actions[chosen], weights), measure[chosen])

    def __add__(self, other: "Outstanding") -> "Outstanding":
        rows = joined(self.block, other.block)
        measure = np.append(self.measure, other.measure)
        return Outstanding.of(Block(rows.features, rows.actions, rows.weights), measure, -np.inf)


def joined(first: Block | ArrayRows, second: Block) -> ArrayRows:
    """Both together; rows without weights weigh 1."""
    weights = None
    if first.weights is not None or second.weights is not None:
        both = ((b.weights, len(b.features)) for b in (first, second))
        weights = np.concatenate([np.ones(size) if w is None else w for w, size in both])
    features = np.vstack([first.features, second.features])
    return ArrayRows(features, np.append(first.actions, second.actions), weights)


@dataclass(frozen=True)
class FarOf:
    """The rows of a block that are far out in some column, for `Rows.total`."""

    mean: np.ndarray  # [q]
    spread: np.ndarray  # [q]
    least: float = FAR

    @classmethod
    def of(cls, rows: Block | ArrayRows, middle: np.ndarray, least: float = FAR) -> "FarOf":
        """By the mean and the standard deviation of some rows, of which a value in the middle is known [q]."""
        away = rows.features - middle
        weights = np.ones(len(away)) if rows.weights is None else rows.weights
        mean = weights @ away / weights.sum()
        return cls(middle + mean, np.sqrt(np.maximum(weights @ away**2 / weights.sum() - mean**2, 0.0)), least)

    def __call__(self, block: Block) -> tuple[Outstanding]:
        """Measured by the largest standardised value; most blocks have none, as their largest and smallest values tell."""
        ends = np.array([block.features.max(axis=0, initial=-np.inf), block.features.min(axis=0, initial=np.inf)])
        if not len(block) or self._standardised(ends).max() <= self.least:
            return (Outstanding.of(block, np.zeros(len(block)), self.least),)
        return (Outstanding.of(block, self.distance(block), self.least),)

    def _standardised(self, features: np.ndarray) -> np.ndarray:
        x = features - self.mean
        x *= np.divide(1.0, self.spread, out=np.full(len(self.spread), 1e100), where=self.spread > 0)
        return np.abs(x, out=x)

    def finds_all_of(self, other: "FarOf") -> bool:
        """Whether no row that is far out for the other is near for this one, to rounding and in every column."""
        reach = self.least * self.spread + np.abs(self.mean - other.mean)
        return bool((reach <= (1 - 1e-9) * other.least * other.spread + 1e-300).all())

    def distance(self, block: Block | ArrayRows) -> np.ndarray:
        """Standard deviations from the mean, in the worst column [c]; of rows that weigh nothing, 0."""
        far = self._standardised(block.features).max(axis=1, initial=0.0)
        return far if block.weights is None else np.where(block.weights > 0, far, 0.0)

    def completed(self, known: ArrayRows, found: Outstanding) -> ArrayRows:
        """Known rows, those far out replaced by all that there are, each with its own weight."""
        full = len(found.measure) >= MOST
        cut = float(found.measure.min()) if full else FAR
        chosen = np.flatnonzero(found.measure > cut)
        near = known.block(np.flatnonzero(self.distance(known) <= cut))
        if near.weights is None or not len(chosen) or not len(near):
            return known
        weights = None if found.block.weights is None else found.block.weights[chosen]
        return joined(near, Block(found.block.features[chosen], found.block.actions[chosen], weights))


@dataclass(frozen=True)
class Far:
    """Rows that were found far out, and by what."""

    by: FarOf
    rows: Outstanding

    def again(self, other: FarOf) -> Outstanding | None:
        """Those that are far out for another, if all of them must be here."""
        if len(self.rows.measure) >= MOST or not self.by.finds_all_of(other):
            return None
        return Outstanding.of(self.rows.block, other.distance(self.rows.block), other.least)


@dataclass(frozen=True)
class MomentsAndFar:
    """Moments and rows far out of a block, for `Rows.total`."""

    moments: MomentsOf
    far: FarOf

    def __call__(self, block: Block) -> tuple[Moments, Outstanding]:
        """Both."""
        return *self.moments(block), *self.far(block)
