"""The design matrix Φ behind a fit: standardised columns, their correlations and their rank."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from policyspace.data.joint_moments import Moments
from policyspace.fits.subsets import COLLINEAR, popcounts
from policyspace.fits.triangular import residuals_of_all
from policyspace.policies.base import ExponentialFamily


@dataclass(frozen=True)
class Standardisation:
    """How features become rows of Φ as the fits see them: shifted, scaled, the constant in front."""

    mean: np.ndarray  # [q']
    inverse_scale: np.ndarray  # [q']
    intercept: bool

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Raw features [c, q'] → rows of Φ [c, q], column by column in memory."""
        block = np.empty((features.shape[1] + self.intercept, len(features)))
        if self.intercept:
            block[0] = 1.0
        own = block[self.intercept :]
        np.subtract(features.T, self.mean[:, None], out=own)
        own *= self.inverse_scale[:, None]
        return block.T


class Design:
    """Columns of φ(s) centred (where an intercept can absorb it) and scaled, which no likelihood ratio notices."""

    def __init__(self, space: ExponentialFamily, moments: Moments) -> None:
        num_columns = len(space.feature_names)
        self.intercept = space.intercept
        self.num_rows = len(space.row_names)
        self.total_weight = moments.total_weight
        origin = moments.mean if self.intercept else np.zeros_like(moments.shift)
        self.mean = origin[:num_columns] + 0.0
        about = moments.scatter if self.intercept else moments.about(origin)
        self.second_moment = about[:num_columns, :num_columns]
        spread = np.sqrt(np.maximum(np.diag(self.second_moment), 0.0) / self.total_weight)
        # Rounding of a large mean must not pass for variance.
        real = spread > 1e-12 * np.maximum(np.abs(self.mean), np.finfo(float).tiny)
        self.constant = ~real
        self.scale = np.where(real, spread, 1.0)
        self.standardise = Standardisation(self.mean, np.where(real, 1.0 / self.scale, 0.0), self.intercept)
        self.resolve_moments()

    def resolve_moments(self) -> None:
        """Judge ranks by the second moments of the scaled columns."""
        self.correlation = self.second_moment / self.total_weight / np.outer(self.scale, self.scale)
        self.correlation[self.constant] = self.correlation[:, self.constant] = 0.0
        eigenvalues, vectors = np.linalg.eigh(self.correlation)
        self.resolve(np.sqrt(np.maximum(eigenvalues, 0.0))[:, None] * vectors.T, COLLINEAR**0.5)

    def resolve(self, factor: np.ndarray, resolution: float) -> None:
        """Judge ranks by a factor [·, q'] of the correlations and the smallest singular value that counts in it."""
        self.factor, self.resolution = factor, resolution
        self.rank = lru_cache(maxsize=None)(self._rank)

    def scores(self, features: np.ndarray, left: np.ndarray) -> np.ndarray:
        """The score of each row [c, d] in standardised coordinates, from what is left of its actions [c, k]."""
        return (left[:, :, None] * self.standardise(features)[:, None, :]).reshape(len(features), -1)

    def to_standardised(self, weights: np.ndarray) -> np.ndarray:
        """Weights [..., k, q] of the raw columns → of the standardised ones."""
        moved = weights.copy()
        if self.intercept:
            moved[..., 0] += weights[..., 1:] @ self.mean
        moved[..., self.intercept :] *= self.scale
        return moved

    def to_raw(self, weights: np.ndarray) -> np.ndarray:
        """Weights [..., k, q] of the standardised columns → of the raw ones."""
        moved = weights.copy()
        moved[..., self.intercept :] /= self.scale
        if self.intercept:
            moved[..., 0] -= moved[..., 1:] @ self.mean
        return moved

    def _rank(self, columns: frozenset[int]) -> int:
        """The rank of a set of feature columns, beside the intercept."""
        if not columns:
            return 0
        return int((np.linalg.svd(self.factor[:, sorted(columns)], compute_uv=False) > self.resolution).sum())

    @property
    def full_rank(self) -> bool:
        """Whether no column is a combination of others."""
        return self.rank(frozenset(range(len(self.mean)))) == len(self.mean)

    def num_free(self, free: np.ndarray) -> int:
        """The rank of the Fisher information on the free coordinates [d]: Σ over rows of the rank of their columns."""
        mask = free.reshape(self.num_rows, -1)
        if self.full_rank:
            return int(mask.sum())
        own = mask[:, self.intercept :]
        return int(self.intercept) * self.num_rows + sum(self.rank(frozenset(np.flatnonzero(row))) for row in own)

    def num_free_of_all(self, groups: Sequence[Sequence[int]]) -> np.ndarray:
        """`num_free` of every support [2^D] of some groups of coordinates, all other coordinates being free."""
        q = len(self.mean) + self.intercept
        if self.full_rank:
            sizes = [len(group) for group in groups]
            return q * self.num_rows - sum(sizes) + popcounts(sizes)
        p = len(self.mean)
        moved = [[i // q * p + i % q - self.intercept for i in group] for group in groups]
        rows = np.kron(np.eye(self.num_rows), self.factor)
        return self.intercept * self.num_rows + residuals_of_all(rows, moved, 0, self.resolution)[1]

    def null_space(self) -> np.ndarray:
        """The combinations [q', r] of standardised feature columns that vanish on these states."""
        _, singular, vectors = np.linalg.svd(self.factor)
        return vectors[np.append(singular, np.zeros(len(vectors) - len(singular))) <= self.resolution].T
