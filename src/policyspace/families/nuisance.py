"""Linear policies with nuisance parameters such as thresholds or a dispersion, which are never tested."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from policyspace.data.rows import BLOCK, InMemoryRows, Moments, moments_of
from policyspace.data.sample import ActionType
from policyspace.errors import InputError
from policyspace.families.base import Array, LinearPolicySpace
from policyspace.families.concave import ConcaveLikelihood, CurvedRows
from policyspace.families.design import DesignMatrix
from policyspace.families.likelihood import ChiSquare
from policyspace.runtime import sum_over_chunks


class NuisanceLinear(LinearPolicySpace):
    """log π(a|s) = ℓ(η, ν; a), where η = weights·φ(s) is one number and ν are r nuisance parameters; θ = (weights, ν).

    A family says what ℓ is, its derivatives and their expectation. The nuisance parameters stand with the constant in one
    group, which is always free, and take any value, so that no step leaves the space.
    """

    asymptotic = True
    variance_of_mean = True
    row_names = ("",)  # one row of weights, with the nuisance parameters at its end

    def _name_actions(self, actions: Sequence[str] | None) -> None:
        """Take the names of the actions."""
        self.action_names = ("action",) if actions is None else tuple(actions)

    # -- what a family says ----------------------------------------------------------------------------------------

    @abstractmethod
    def log_density(self, eta: Array, nuisance: Array, actions: Array) -> Array:
        """ℓ(η, ν; a) for η [...], ν [r] and actions as data hold them."""

    @abstractmethod
    def derivatives(
        self, eta: np.ndarray, nuisance: np.ndarray, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """ℓ [n], ∇ℓ [n, 1 + r] and −∇²ℓ [n, 1 + r, 1 + r] in (η, ν)."""

    @abstractmethod
    def information_roots(self, eta: np.ndarray, nuisance: np.ndarray) -> list[np.ndarray]:
        """Arrays [n, 1 + r] whose outer products add up to E[−∇²ℓ] of each row."""

    # -- what a linear policy says of itself -----------------------------------------------------------------------

    def weights(self, theta: Array) -> Array:
        """θ as a matrix of one row."""
        return theta[..., None, :]

    def weights_by_row(self, theta: np.ndarray) -> dict[str, list[float]]:
        """Every parameter by its name."""
        return {name: [float(value)] for name, value in zip(self.column_names, theta, strict=True)}

    def design(self, features: Array) -> Array:
        """There is no exponential family for which the bounds of the theory would hold."""
        raise InputError(
            f"the bounds of the paper's theory are for exponential families, found {type(self).__name__}: identify and "
            "plan with it."
        )

    def noise_covariance(self, theta: Any = None, data: Any = None) -> None:
        """There is none beside the law of the actions."""

    # -- formulas --------------------------------------------------------------------------------------------------

    def natural(self, theta: Array, features: Array) -> Array:
        """η = weights·φ(s) [..., 1]."""
        end = len(self.fixed) - len(self.nuisance_names)
        eta = features @ theta[int(self.intercept) : end]
        return (eta + theta[0] if self.intercept else eta)[..., None]

    def nuisance(self, theta: Array) -> Array:
        """ν [r]."""
        return theta[len(self.fixed) - len(self.nuisance_names) :]

    def log_prob(self, theta: Array, features: Array, actions: Array) -> Array:
        """log π_θ(a|s)."""
        return self.log_density(self.natural(theta, features)[..., 0], self.nuisance(theta), actions)

    def score(self, theta: Array, features: Array, actions: Array) -> Array:
        """∇_θ log π_θ(a|s) [..., d]."""
        if not isinstance(theta, np.ndarray):
            return super().score(theta, features, actions)
        _, slopes, _ = self.derivatives(self.natural(theta, features)[..., 0], self.nuisance(theta), actions)
        return self._by_parameter(features, slopes)

    def score_residuals(
        self, theta: np.ndarray, features: np.ndarray, action_type: ActionType, actions: np.ndarray
    ) -> np.ndarray:
        """∇ℓ in (η, ν) of each row [n, 1 + r]."""
        return self.derivatives(self.natural(theta, features)[:, 0], self.nuisance(theta), actions)[1]

    def score_roots(self, theta: np.ndarray, features: np.ndarray, covariance: np.ndarray | None) -> list[np.ndarray]:
        """As the family knows them."""
        return self.information_roots(self.natural(theta, features)[:, 0], self.nuisance(theta))

    def fisher(self, theta: np.ndarray, features: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """The mean over the states [n, q] of E[−∇² log π] [d, d]."""
        share = np.full(len(features), 1.0 / len(features)) if weights is None else weights / weights.sum()
        total = np.zeros((len(self.fixed), len(self.fixed)))
        for root in self.score_roots(theta, features, None):
            rows = self._by_parameter(features, root)
            total += rows.T @ (rows * share[:, None])
        return total

    def _by_parameter(self, features: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Derivatives in (η, ν) as those in θ [..., d]."""
        own = slopes[..., :1]
        return np.concatenate([*([own] if self.intercept else []), own * features, slopes[..., 1:]], axis=-1)


class NuisanceDesign(DesignMatrix):
    """The columns of a linear policy, and one of its own for each nuisance parameter, which nothing is collinear with."""

    def __init__(self, space: NuisanceLinear, moments: Moments) -> None:
        super().__init__(space, moments)  # type: ignore[arg-type]  # reads names and the intercept alone
        size = len(space.nuisance_names)
        self.mean, self.scale = np.append(self.mean, np.zeros(size)), np.append(self.scale, np.ones(size))
        self.constant = np.append(self.constant, np.zeros(size, dtype=bool))
        q = self.factor.shape[1]
        joint = np.zeros((len(self.factor) + size, q + size))
        joint[: len(self.factor), :q], joint[len(self.factor) :, q:] = self.factor, np.eye(size)
        self.resolve(joint, self.resolution)

    def scores(self, features: np.ndarray, left: np.ndarray) -> np.ndarray:
        """The score of each row [c, d] in standardised coordinates, from the slopes in (η, ν) [c, 1 + r]."""
        return np.hstack([left[:, :1] * self.standardise(features), left[:, 1:]])


class NuisanceRows(CurvedRows):
    """log L, its gradient and its Hessian by passes over rows in memory, at one θ after the other."""

    def __init__(self, space: NuisanceLinear, design: NuisanceDesign, rows: InMemoryRows) -> None:
        self.space, self.design, self.arrays = space, design, rows
        self._weights = np.ones(len(rows.features)) if rows.weights is None else rows.weights
        self.total_weight = float(self._weights.sum())

    def __len__(self) -> int:
        return len(self.arrays.features)

    def sample(self, size: int, seed: int) -> "NuisanceRows":
        """A fixed random sample of the rows; sums over it are for the caller to scale up."""
        block = self.arrays.block(np.sort(np.random.default_rng(seed).choice(len(self), size, replace=False)))
        return NuisanceRows(self.space, self.design, InMemoryRows(block.features, block.actions, block.weights))

    def standardised(self, rows: slice) -> np.ndarray:
        """Rows as fits see them [c, q]."""
        return self.design.standardise(self.arrays.features[rows])

    def evaluate(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log L [m] and its gradient [m, d] at θ [m, d]."""

        def of_chunk(rows: slice) -> tuple[np.ndarray, np.ndarray]:
            x, weights = self.standardised(rows), self._weights[rows]
            values, gradients = np.empty(len(thetas)), np.empty_like(thetas)
            for m, theta in enumerate(thetas):
                value, slopes, _ = self._derivatives(theta, x, rows)
                values[m], gradients[m] = weights @ value, self._gradient(x, slopes * weights[:, None])
            return values, gradients

        values, gradients = sum_over_chunks(of_chunk, len(self), BLOCK)
        return values, gradients

    def _derivatives(self, theta: np.ndarray, x: np.ndarray, rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # far out, from where steps are undone
            q = x.shape[1]
            return self.space.derivatives(x @ theta[:q], theta[q:], self.arrays.actions[rows])

    @staticmethod
    def _gradient(x: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        return np.concatenate([slopes[:, 0] @ x, slopes[:, 1:].sum(axis=0)])

    def _curvatures(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """log L [m], its gradient [m, d] and −∇² log L [m, d, d].

        Where that is not positive, far from the maximum of a log-likelihood that is not concave, the sum of the squares of
        the scores stands in for it: it is positive, and near −∇² log L where the model holds.
        """

        def of_chunk(rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
            x, weights = self.standardised(rows), self._weights[rows]
            q, (m, d) = x.shape[1], thetas.shape
            values, gradients = np.empty(m), np.empty((m, d))
            curvature, squares = np.empty((m, d, d)), np.empty((m, d, d))
            for i, theta in enumerate(thetas):
                value, slopes, bent = self._derivatives(theta, x, rows)
                bent = bent * weights[:, None, None]
                values[i], gradients[i] = weights @ value, self._gradient(x, slopes * weights[:, None])
                curvature[i, :q, :q] = x.T @ (x * bent[:, 0, :1])
                curvature[i, :q, q:] = x.T @ bent[:, 0, 1:]
                curvature[i, q:, :q] = curvature[i, :q, q:].T
                curvature[i, q:, q:] = bent[:, 1:, 1:].sum(axis=0)
                scores = np.hstack([x * slopes[:, :1], slopes[:, 1:]])
                squares[i] = scores.T @ (scores * weights[:, None])
            return values, gradients, curvature, squares

        values, gradients, curvature, squares = sum_over_chunks(of_chunk, len(self), BLOCK)
        for i, matrix in enumerate(curvature):
            scale = np.sqrt(np.maximum(np.abs(np.diag(matrix)), np.finfo(float).tiny))
            unit = matrix / np.outer(scale, scale)
            if not np.isfinite(unit).all() or np.linalg.eigvalsh(unit)[0] < -NEGATIVE:
                curvature[i] = squares[i]
        return values, gradients, curvature

    def _from_sums(self, thetas: np.ndarray, partition: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """They are log L and its gradient already."""
        return partition, mean


NEGATIVE = 1e-8
"""An eigenvalue of the scaled Hessian below minus this is more than rounding."""


class NuisanceLikelihood(ConcaveLikelihood):
    """Newton in weights and nuisance parameters together; these are free in every support."""

    space: NuisanceLinear  # type: ignore[assignment]
    design: NuisanceDesign
    rows: NuisanceRows

    def __init__(self, space: NuisanceLinear, rows: InMemoryRows) -> None:
        self.space, self.num_rows, self.law = space, rows.num_rows, ChiSquare()
        self.design = NuisanceDesign(space, moments_of(rows, space.action_type.num_labels))
        self.total_weight = self.design.total_weight
        self.rows = NuisanceRows(space, self.design, rows)
        self._fixed = self._checked_fixed()

    @cached_property
    def _is_constant(self) -> np.ndarray:
        """The constant and all nuisance parameters [d]."""
        place, size = np.arange(self.space.num_parameters), len(self.space.nuisance_names)
        return (place < int(self.space.intercept)) | (place >= self.space.num_parameters - size)
