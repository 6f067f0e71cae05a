"""Means and products of features and actions in one pass over the rows, exact to rounding whatever their size."""

from dataclasses import dataclass

import numpy as np

from policyspace.data.blocks import ArrayRows, Block, Rows

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
class MomentsOf:
    """The moments of [features, actions] of a block; labels are columns of 0 and 1, the last label having none."""

    shift: np.ndarray  # [c], near the means
    num_labels: int | None = None

    def __call__(self, block: Block) -> tuple[Moments]:
        """A sum over rows, for `Rows.total`."""
        z, num_features = self._shifted(block), len(self.shift) - self._num_responses(block)
        numbers = slice(None if self.num_labels is None else num_features)  # labels are 0 and 1, which add up exactly
        total, offset, scatter = _about_mean(z, block.weights)
        if (total * offset**2 > np.diag(scatter))[numbers].any():  # so far from the shift that it cost digits
            z[:, :-1] -= offset
            _, rest, scatter = _about_mean(z, block.weights)
            offset = offset + rest
        return (Moments(self.shift, total, offset, scatter),)

    def _shifted(self, block: Block) -> np.ndarray:
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

    def _num_responses(self, block: Block) -> int:
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
        assert isinstance(rows, ArrayRows)
        first = rows.block(slice(0, FIRST))
        shift = shift_near(first.features, first.actions, num_labels)
    return rows.total(MomentsOf(shift, num_labels), BLOCK)[0]
