"""What a test of one hypothesis H_I must say, whatever it is built on."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.fits.base import Likelihood
from policyspace.inference.glr import Test
from policyspace.policies.groups import Support

MOST_COPIES = 1_000_000
"""Rows that whole-number weights may be written out to."""


class LocalTest(ABC):
    """A test of every H_I at any level: a p-value for each support, and how p-values of several supports may be read."""

    name: str
    statistic_name: str  # what the number beside the p-value is
    likelihood: Likelihood  # of all the data
    simultaneous: bool = False  # whether all true H_I keep the level together, so that no correction is due

    @abstractmethod
    def test(self, support: Support) -> Test:
        """The test of one H_I."""

    def test_many(self, supports: Sequence[Support]) -> list[Test]:
        """The tests of several H_I."""
        return [self.test(support) for support in supports]

    @abstractmethod
    def bound(self, test: Test) -> float:
        """An upper bound on the p-value of every H_J, J ⊆ I, from the test of H_I alone; 1 where nothing is known."""

    def note(self) -> str:
        """What a reader must know about these p-values, if anything."""
        return ""


def rows_of(data: Demonstrations, rows: np.ndarray) -> Demonstrations:
    """Some rows of the data, in the given order."""
    return Demonstrations(
        data.features[rows],
        data.actions[rows],
        data.names,
        data.action_names,
        None if data.episodes is None else data.episodes[rows],
        None if data.weights is None else data.weights[rows],
        data.blocks,
        data.metadata,
    )


def written_out(data: Demonstrations, what: str) -> Demonstrations:
    """The data without weights: whole-number weights are counts, and become rows; others have no distribution."""
    if data.weights is None:
        return data
    counts = np.round(data.weights).astype(np.int64)
    if not np.array_equal(counts, data.weights) or counts.sum() > MOST_COPIES:
        raise InputError(
            f"{what} needs rows without weights, or whole-number weights of at most {MOST_COPIES} in all, found weights "
            f"that sum to {data.weights.sum():g}: leave them out, or use the test 'wilks'."
        )
    rows = np.repeat(np.arange(data.num_pairs), counts)
    episodes = None if data.episodes is None else data.episodes[rows]
    return Demonstrations(
        data.features[rows], data.actions[rows], data.names, data.action_names, episodes, None, data.blocks,
        data.metadata,
    )  # fmt: skip
