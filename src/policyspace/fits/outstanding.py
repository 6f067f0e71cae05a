"""Single rows that a sample of a log may not hold and that all the same decide: the farthest out, the worst explained."""

from dataclasses import dataclass

import numpy as np

from policyspace.data.blocks import ArrayRows, Block
from policyspace.fits.design import Standardisation

MOST = 4096
"""Rows that are kept."""

FAR = 8.0
"""Standard deviations from the mean beyond which a row is looked at by itself."""


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

    standardise: Standardisation  # without a constant

    def __call__(self, block: Block) -> tuple[Outstanding]:
        """Measured by the largest standardised value."""
        return (Outstanding.of(block, self.distance(block), FAR),)

    def distance(self, block: Block | ArrayRows) -> np.ndarray:
        """Standard deviations from the mean, in the worst column [c]; of rows that weigh nothing, 0."""
        x = self.standardise(block.features)
        far = np.abs(x, out=x).max(axis=1)
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
