"""How inputs and actions are standardised: the same way for every row of a log, whether it lies in memory or not."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from policyspace.data.blocks import Block
from policyspace.errors import InputError

MOST_LABELS = 40
"""Only so many of the most frequent labels get an indicator of their own."""


class Spread(NamedTuple):
    """Where columns lie: their means, standard deviations and sizes [c]."""

    mean: np.ndarray
    deviation: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, columns: np.ndarray) -> "Spread":
        """Of the columns of a table."""
        mean = columns.mean(axis=0)
        centred = columns - mean
        deviation = np.sqrt(np.einsum("ij,ij->j", centred, centred) / len(columns))
        return cls(mean, deviation, np.maximum(columns.max(axis=0), -columns.min(axis=0)))

    @property
    def varies(self) -> np.ndarray:
        """Which columns are more than one value and its rounding."""
        return self.deviation > 1e-12 * np.maximum(self.size, 1e-300)


@dataclass(frozen=True)
class Standard:
    """Means and spreads by which rows are standardised; inputs that are constant become 0.

    Continuous actions stay as they are, but for the columns that do not vary; labels become indicators of all but the most
    frequent one.
    """

    shift: np.ndarray
    scale: np.ndarray
    """Of inputs [q]; infinite for constant ones."""
    kept: np.ndarray
    """The labels that have an indicator, or the columns of the action that vary [k]."""
    action_shift: np.ndarray
    action_scale: np.ndarray
    discrete: bool

    @classmethod
    def of(cls, inputs: Spread, actions: Spread | None, counts: np.ndarray | None) -> Self:
        """From what is known of inputs and of continuous actions, or from how many rows have each label."""
        if counts is not None:
            frequent = [label for label in np.argsort(-counts, kind="stable")[1 : 1 + MOST_LABELS] if counts[label]]
            kept = np.array(sorted(frequent), dtype=np.intp)
            mean = counts[kept] / counts.sum()
            deviation = np.sqrt(mean * (1 - mean))
        else:
            assert actions is not None
            kept = np.flatnonzero(actions.varies)
            mean, deviation = actions.mean[kept], actions.deviation[kept]
        if not len(kept):
            raise InputError(
                "the agent takes one and the same action in every row: nothing can be said about what it uses."
            )
        scale = np.where(inputs.varies, inputs.deviation, np.inf)
        return cls(inputs.mean, scale, kept, mean, deviation, counts is not None)

    def inputs(self, features: np.ndarray) -> np.ndarray:
        """[n, q]."""
        moved = features - self.shift
        moved /= self.scale
        return moved

    def actions(self, actions: np.ndarray) -> np.ndarray:
        """[n, k] from codes of labels [n] or numbers [n, …]."""
        columns = actions[:, None] == self.kept if self.discrete else actions[:, self.kept]
        return (columns - self.action_shift) / self.action_scale

    def block(self, block: Block) -> Block:
        """The same rows, standardised."""
        inputs, actions = self.inputs(block.features), self.actions(block.actions)
        return Block(inputs, actions, block.weights, block.start, block.owners)
