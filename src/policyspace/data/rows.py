"""Sums over rows, in memory or in passes; moments and extreme rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from policyspace.errors import InputError
from policyspace.runtime import sum_over_chunks

if TYPE_CHECKING:
    from policyspace.data.sample import Sample

# -- Rows of a log in blocks: statistics are sums over them, whether they lie in memory, in files or on other machines.

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
class RowBlock:
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
    """All rows of a log, read block by block as often as a sum over them is needed.

    What a first pass over files finds has a value here that says: all rows are in memory, so that nothing had to be found.
    """

    num_rows: int
    weighted: bool
    in_memory: bool = True
    passes: int = 0
    """How often the files were read."""
    num_observed: int | None = None
    num_episodes: int | None = None
    label_weights: np.ndarray | None = None
    """What the rows of each label weigh [k+1]."""
    strata: "Sample | None" = None
    """Rows of every discrete action, with weights that make up for rare actions being taken more often."""
    moments: "Moments | None" = None
    """Of features and actions."""
    far: "ExtremeRows | None" = None
    owners: np.ndarray | None = None
    """A number for each subject, or else each episode, in order."""
    stretched: bool = True
    """Are the rows in memory whole stretches, rather than some of every action?"""

    @abstractmethod
    def total(
        self, function: Callable[[RowBlock], tuple[Any, ...]], size: int = LONGEST, owned: bool = False
    ) -> tuple[Any, ...]:
        """Σ function(block) over blocks of at most `size` rows; the same bits for any number of workers.

        The function must be picklable where rows lie on other machines: an object with `__call__`, not a closure. `owned`
        blocks of files know the owners of their rows, which for rows in memory the sample knows.
        """


@dataclass(frozen=True)
class InMemoryRows(Rows):
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

    def block(self, rows: slice | np.ndarray) -> RowBlock:
        """Some of them."""
        weights = None if self.weights is None else self.weights[rows]
        return RowBlock(self.features[rows], self.actions[rows], weights)

    def total(
        self, function: Callable[[RowBlock], tuple[Any, ...]], size: int = LONGEST, owned: bool = False
    ) -> tuple[Any, ...]:
        """Σ function(block), added up in the order of the rows."""
        return sum_over_chunks(lambda rows: function(self.block(rows)), self.num_rows, size)


# -- Means and products of features and actions in one pass over the rows, exact to rounding whatever their size.

BLOCK = 10_000
"""Rows whose products are made at a time: few enough to stay near the cores, many enough to hide the cost of a call.

No power of two: columns that lie so far apart would push each other out of the caches.
"""

FIRST = 1023
"""Rows in the middle of which columns are shifted before anything is added up; odd, so that it is a value of theirs."""


@dataclass(frozen=True)
class Moments:
    """Σ w, the mean and Σ w (z − mean)(z − mean)ᵀ of columns z; two of them are added by the rule of Chan et al. (1983).

    Means are kept as distances from a `shift` near them: a large mean costs no digits of the products.
    """

    shift: np.ndarray  # [c]
    total_weight: float
    offset: np.ndarray  # [c], mean − shift
    scatter: np.ndarray  # [c, c]

    def __add__(self, other: "Moments") -> "Moments":
        total = self.total_weight + other.total_weight
        if not total:
            return self
        apart = other.offset - self.offset
        offset = self.offset + apart * (other.total_weight / total)
        between = np.outer(apart, apart) * (self.total_weight * other.total_weight / total)
        return Moments(self.shift, total, offset, self.scatter + other.scatter + between)

    @property
    def mean(self) -> np.ndarray:
        """[c]."""
        return self.shift + self.offset

    def about(self, origin: np.ndarray) -> np.ndarray:
        """Σ w (z − origin)(z − origin)ᵀ [c, c]."""
        away = self.shift - origin + self.offset
        return self.scatter + self.total_weight * np.outer(away, away)

    def within(self, largest: float) -> bool:
        """Are these sums over rows that all weigh 1 and hold no number that is larger, or none at all?"""
        squares = np.diag(self.scatter) + self.total_weight * self.offset**2  # about the shift
        return bool((np.abs(self.shift) + np.sqrt(squares) <= largest).all())


@dataclass(frozen=True)
class ComputeMoments:
    """The moments of [features, actions] of a block; labels are columns of 0 and 1, the last label having none."""

    shift: np.ndarray  # [c], near the means
    num_labels: int | None = None

    def __call__(self, block: RowBlock) -> tuple[Moments]:
        """A sum over rows, for `Rows.total`."""
        z, num_features = self._shifted(block), len(self.shift) - self._num_responses(block)
        numbers = slice(None if self.num_labels is None else num_features)  # labels are 0 and 1, which add up exactly
        total, offset, scatter = _about_mean(z, block.weights)
        if (total * offset**2 > np.diag(scatter))[numbers].any():  # so far from the shift that it cost digits
            z[:, :-1] -= offset
            _, rest, scatter = _about_mean(z, block.weights)
            offset = offset + rest
        return (Moments(self.shift, total, offset, scatter),)

    def _shifted(self, block: RowBlock) -> np.ndarray:
        """Features, actions and ones [c, q + k + 1], in the order of memory of the features."""
        width = len(self.shift)
        q = width - self._num_responses(block)
        z = np.empty((len(block), width + 1), order="F" if block.columnwise else "C")
        z[:, -1] = 1.0
        block.features_from(self.shift[:q], z[:, :q])
        actions = z[:, q:-1]
        if self.num_labels is None:
            np.subtract(block.actions, self.shift[q:], out=actions)
        elif block.actions.ndim == 1:
            np.equal(block.actions[:, None], np.arange(width - q), out=actions, casting="unsafe")
        else:  # the weights of the labels in merged rows
            assert block.weights is not None
            np.divide(block.actions[:, :-1], np.maximum(block.weights, np.finfo(float).tiny)[:, None], out=actions)
        return z

    def _num_responses(self, block: RowBlock) -> int:
        return block.actions.shape[1] if self.num_labels is None else self.num_labels - 1


def _about_mean(z: np.ndarray, weights: np.ndarray | None) -> tuple[float, np.ndarray, np.ndarray]:
    """Σ w, the mean and Σ w (z − mean)(z − mean)ᵀ of all columns but the last, which is one."""
    products = z.T @ (z if weights is None else z * weights[:, None])
    total = float(products[-1, -1])
    mean = products[-1, :-1] / (total or 1.0)
    return total, mean, products[:-1, :-1] - total * np.outer(mean, mean)


def shift_near(features: np.ndarray, actions: np.ndarray, num_labels: int | None = None) -> np.ndarray:
    """A shift for the columns of [features, actions]: the middle of some rows, and 0 for labels [q + k]."""
    odd = len(features) - (len(features) + 1) % 2
    middle = np.partition(features[:odd], odd // 2, axis=0)[odd // 2]
    if num_labels is not None:
        return np.append(middle, np.zeros(num_labels - 1))
    return np.append(middle, np.partition(actions[:odd], odd // 2, axis=0)[odd // 2])


def moments_of(rows: Rows, num_labels: int | None = None, shift: np.ndarray | None = None) -> Moments:
    """The moments of [features, actions] of all rows in one pass; rows that are not in memory need a `shift`."""
    if shift is None:
        assert isinstance(rows, InMemoryRows)
        first = rows.block(slice(0, FIRST))
        shift = shift_near(first.features, first.actions, num_labels)
    return rows.total(ComputeMoments(shift, num_labels), BLOCK)[0]


# -- Single rows that a sample of a log may not hold and that all the same decide: the farthest out, the worst explained.

MOST = 4096
"""Rows that are kept."""

FAR = 8.0
"""Standard deviations from the mean beyond which a row is looked at by itself."""

SUSPECT = 6.0
"""The same where mean and standard deviation are those of the first rows alone."""


@dataclass(frozen=True)
class TopRows:
    """The rows with the largest of some measure; of two sums, the largest of both."""

    block: RowBlock
    measure: np.ndarray  # [c]

    @staticmethod
    def of(block: RowBlock, measure: np.ndarray, least: float) -> "TopRows":
        """Those of a block whose measure is more than the least that counts."""
        chosen = np.flatnonzero(measure > least)
        chosen = chosen[np.argsort(-measure[chosen], kind="stable")[:MOST]]
        weights = None if block.weights is None else block.weights[chosen]
        return TopRows(RowBlock(block.features[chosen], block.actions[chosen], weights), measure[chosen])

    def __add__(self, other: "TopRows") -> "TopRows":
        rows = merge_top_rows(self.block, other.block)
        measure = np.append(self.measure, other.measure)
        return TopRows.of(RowBlock(rows.features, rows.actions, rows.weights), measure, -np.inf)


def merge_top_rows(first: RowBlock | InMemoryRows, second: RowBlock) -> InMemoryRows:
    """Both together; rows without weights weigh 1."""
    weights = None
    if first.weights is not None or second.weights is not None:
        both = ((b.weights, len(b.features)) for b in (first, second))
        weights = np.concatenate([np.ones(size) if w is None else w for w, size in both])
    features = np.vstack([first.features, second.features])
    return InMemoryRows(features, np.append(first.actions, second.actions), weights)


@dataclass(frozen=True)
class FindExtremeRows:
    """The rows of a block that are far out in some column, for `Rows.total`."""

    mean: np.ndarray  # [q]
    spread: np.ndarray  # [q]
    least: float = FAR

    @classmethod
    def of(cls, rows: RowBlock | InMemoryRows, middle: np.ndarray, least: float = FAR) -> "FindExtremeRows":
        """By the mean and the standard deviation of some rows, of which a value in the middle is known [q]."""
        away = rows.features - middle
        weights = np.ones(len(away)) if rows.weights is None else rows.weights
        mean = weights @ away / weights.sum()
        return cls(middle + mean, np.sqrt(np.maximum(weights @ away**2 / weights.sum() - mean**2, 0.0)), least)

    def __call__(self, block: RowBlock) -> tuple[TopRows]:
        """Measured by the largest standardised value; most blocks have none, as their largest and smallest values tell."""
        ends = np.array([block.features.max(axis=0, initial=-np.inf), block.features.min(axis=0, initial=np.inf)])
        if not len(block) or self._standardised(ends).max() <= self.least:
            return (TopRows.of(block, np.zeros(len(block)), self.least),)
        return (TopRows.of(block, self.distance(block), self.least),)

    def _standardised(self, features: np.ndarray) -> np.ndarray:
        x = features - self.mean
        x *= np.divide(1.0, self.spread, out=np.full(len(self.spread), 1e100), where=self.spread > 0)
        return np.abs(x, out=x)

    def finds_all_of(self, other: "FindExtremeRows") -> bool:
        """Whether no row that is far out for the other is near for this one, to rounding and in every column."""
        reach = self.least * self.spread + np.abs(self.mean - other.mean)
        return bool((reach <= (1 - 1e-9) * other.least * other.spread + 1e-300).all())

    def distance(self, block: RowBlock | InMemoryRows) -> np.ndarray:
        """Standard deviations from the mean, in the worst column [c]; of rows that weigh nothing, 0."""
        far = self._standardised(block.features).max(axis=1, initial=0.0)
        return far if block.weights is None else np.where(block.weights > 0, far, 0.0)

    def completed(self, known: InMemoryRows, found: TopRows) -> InMemoryRows:
        """Known rows, those far out replaced by all that there are, each with its own weight."""
        full = len(found.measure) >= MOST
        cut = float(found.measure.min()) if full else FAR
        chosen = np.flatnonzero(found.measure > cut)
        near = known.block(np.flatnonzero(self.distance(known) <= cut))
        if near.weights is None or not len(chosen) or not len(near):
            return known
        weights = None if found.block.weights is None else found.block.weights[chosen]
        return merge_top_rows(near, RowBlock(found.block.features[chosen], found.block.actions[chosen], weights))


@dataclass(frozen=True)
class ExtremeRows:
    """Rows that were found far out, and by what."""

    by: FindExtremeRows
    rows: TopRows

    def again(self, other: FindExtremeRows) -> TopRows | None:
        """Those that are far out for another, if all of them must be here."""
        if len(self.rows.measure) >= MOST or not self.by.finds_all_of(other):
            return None
        return TopRows.of(self.rows.block, other.distance(self.rows.block), other.least)


@dataclass(frozen=True)
class ComputeMomentsAndExtremes:
    """Moments and rows far out of a block, for `Rows.total`."""

    moments: ComputeMoments
    far: FindExtremeRows

    def __call__(self, block: RowBlock) -> tuple[Moments, TopRows]:
        """Both."""
        return *self.moments(block), *self.far(block)
