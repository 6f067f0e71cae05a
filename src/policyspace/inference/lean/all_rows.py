"""Where the rows of the test lie: in memory, or in files of which only a sample is in memory."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from policyspace.data.blocks import Block
from policyspace.data.joint_moments import BLOCK, Moments, MomentsOf, shift_near
from policyspace.data.limits import limit
from policyspace.inference.lean.clusters import Clusters, Listed, Owned, Runs
from policyspace.inference.lean.rows import Rows
from policyspace.inference.lean.standard import Spread, Standard
from policyspace.inference.lean.units import Unit, merged

if TYPE_CHECKING:
    from policyspace.data.demonstrations import Demonstrations
    from policyspace.data.large.log import LargeLog

MOST_CLUSTERS = 1024
"""Clusters over which scores are summed in passes: few, because every part of the files sends back a sum for each."""

RUNS_A_CLUSTER = 8
"""Runs of rows that are thrown together, so that clusters are about equally large."""

MOST_NUMBERS = 2 << 20
"""Numbers that a part of the files sends back at a time (16 MiB)."""

MOST_ENTRIES = 300
"""Entries of a score vector: beyond, interactions and products of tested inputs are dropped."""

OVERHEAD = 100
"""What a row costs beside products, in columns."""


class Source(ABC):
    """All rows that are tested; `num_owners` is the number of subjects, or else of episodes, among them."""

    num_rows: int
    num_owners: int
    most_numbers: float

    @abstractmethod
    def total(self, function: Callable[[Block], tuple[Any, ...]], owned: bool = False) -> tuple[Any, ...]:
        """Σ function(block) over blocks of standardised rows, which know their owners if asked to."""

    @abstractmethod
    def clusters(self, unit: Unit) -> Clusters:
        """Clusters made of whole units."""


@dataclass(frozen=True)
class InMemory(Source):
    """The rows that are at hand."""

    rows: Rows
    most_numbers = np.inf

    @property
    def num_rows(self) -> int:  # type: ignore[override]
        """How many."""
        return self.rows.num

    @property
    def num_owners(self) -> int:  # type: ignore[override]
        """Codes never fall."""
        return int((self.rows.episode if self.rows.subject is None else self.rows.subject)[-1]) + 1

    def total(self, function: Callable[[Block], tuple[Any, ...]], owned: bool = False) -> tuple[Any, ...]:
        """All rows are one block."""
        return function(Block(self.rows.inputs, self.rows.actions))

    def clusters(self, unit: Unit) -> Clusters:
        """The units, neighbours united where they are many."""
        return Listed(merged(unit))


class InPasses(Source):
    """The rows of a log in files, of which a sample is in memory."""

    most_numbers = MOST_NUMBERS

    def __init__(self, log: "LargeLog", sample: "Demonstrations", num_supports: int = 0) -> None:
        """`num_supports` that will be tested beside those with one group out."""
        self._log, self._sample, self._num_supports = log, sample, num_supports
        self.num_rows = log.num_rows
        self.num_owners = 1 if log.owners is None else len(log.owners)

    @cached_property
    def standard(self) -> Standard:
        """By the means and spreads of all rows."""
        width, moments, counts = self._sample.features.shape[1], self._moments(), self._log.label_weights
        deviation = np.sqrt(np.diag(moments.scatter) / moments.total_weight)
        known = Spread(moments.mean, deviation, np.abs(moments.mean) + deviation)
        inputs, actions = (Spread(*(one[part] for one in known)) for part in (slice(width), slice(width, None)))
        return Standard.of(inputs, None if self._sample.discrete else actions, counts)

    def _moments(self) -> Moments:
        """From the first pass if it made them."""
        if self._log.moments is not None:
            return self._log.moments
        sample = self._sample
        num_labels = len(sample.action_names) if sample.discrete else None
        shift = shift_near(sample.features, sample.actions, num_labels)
        return self._log.rows.total(MomentsOf(shift, num_labels), BLOCK)[0]

    def why_not(self, rows: Rows, width: int, groups: Sequence[tuple[int, ...]]) -> str:
        """Why the test must look at the sample `rows` alone, or nothing; `width` is that of the regressions.

        Where the sample shows one or two values of an input that has others, nobody would look for its curves; a
        standardised column of two values has them at z and −1/z.
        """
        low, high = rows.inputs.min(axis=0), rows.inputs.max(axis=0)
        other = np.abs(1 + low * high) > 1e-9 * np.maximum(1.0, (high - low) ** 2)
        hidden = np.flatnonzero(rows.two_valued & np.isfinite(self.standard.scale) & other)
        if len(hidden):
            return f"'{self._sample.names[hidden[0]]}' has values that the sample does not show"
        sizes, num_actions = np.array([len(group) for group in groups]), rows.actions.shape[1]
        extra = np.minimum(MOST_ENTRIES // num_actions, 20 * sizes + sizes * (sizes + 1) // 2)
        columns = 2 * (2 * num_actions + sizes + extra).sum() * (1 + self._num_supports / len(sizes))
        work = self.num_rows * (width + OVERHEAD) * (width / 2 + columns)
        if work > limit("MAX_PRODUCTS"):
            return f"all rows would take {work:.0e} products, more than POLICYSPACE_MAX_PRODUCTS"
        return ""

    def total(self, function: Callable[[Block], tuple[Any, ...]], owned: bool = False) -> tuple[Any, ...]:
        """One pass over the files."""
        return self._log.rows.total(Standardised(self.standard, function), owned=owned)

    def clusters(self, unit: Unit) -> Clusters:
        """Whole subjects or episodes; runs of rows instead where units are shorter and runs are more.

        Rows of several episodes may take turns in a file: so many times longer are the runs than the unit.
        """
        owned = None if self._log.owners is None else Owned.of(self._log.owners, MOST_CLUSTERS)
        if owned is not None and unit.whole:
            return owned
        shortest = -(-self.num_rows // (RUNS_A_CLUSTER * MOST_CLUSTERS))
        length = max(int(unit.length) * self.num_owners, shortest)
        if owned is not None and owned.num >= min(self.num_rows // length, MOST_CLUSTERS):
            return owned
        return Runs(length, MOST_CLUSTERS)


@dataclass(frozen=True)
class Standardised:
    """A function of standardised rows as one of rows as they are."""

    standard: Standard
    function: Callable[[Block], tuple[Any, ...]]

    def __call__(self, block: Block) -> tuple[Any, ...]:
        """Of one block."""
        return self.function(self.standard.block(block))
