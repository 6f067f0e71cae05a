"""The likelihood of linear policies whose log-likelihood is concave: batched passes over the rows serve all supports."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from policyspace.data.rows import BLOCK, InMemoryRows, moments_of
from policyspace.errors import InputError
from policyspace.families.base import ExponentialFamily, Policy, Support
from policyspace.families.design import DesignMatrix, residual_blocks
from policyspace.families.likelihood import ChiSquare, Fit, LinearLikelihood
from policyspace.families.newton import (
    TOLERANCE,
    TRUSTED,
    Maximum,
    QuadraticModel,
    RestrictedBatch,
    maximise,
    newton_step,
)
from policyspace.runtime import sum_over_chunks

# -- Sums over rows: value, gradient and Hessian at many θ in one pass.


class CurvedRows(ABC):
    """Rows whose sums at θ give log L, its gradient and its Hessian in one pass."""

    _last: tuple[np.ndarray, np.ndarray] | None = None

    @abstractmethod
    def _curvatures(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Σ w A [m], Σ w E[t] and −∇² log L [m, d, d] at θ [m, d]."""

    @abstractmethod
    def _from_sums(self, thetas: np.ndarray, partition: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log L [m] and its gradient [m, d] from those sums."""

    def expand(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """log L [m], its gradient [m, d] and −∇² log L [m, d, d] at θ [m, d], in one pass."""
        partition, mean, curvature = self._curvatures(thetas)
        return *self._from_sums(thetas, partition, mean), curvature

    def at(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log L and its gradient at one θ; the Hessian, which is asked for next, comes from the same pass."""
        values, gradients, curvature = self.expand(theta[None])
        self._last = theta.copy(), curvature[0]
        return float(values[0]), gradients[0]

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """−∇² log L = Σ w_i Cov[t(s_i, ·)] [d, d]."""
        last = self._last
        if last is None or not np.array_equal(last[0], theta):
            self._last = last = theta.copy(), self.hessians(theta[None])[0]
        return last[1]

    def hessians(self, thetas: np.ndarray) -> np.ndarray:
        """The same at several θ [m, d, d], in one pass."""
        return self._curvatures(thetas)[2]


class FamilyRows(CurvedRows):
    """log L(θ) = Σ w_i log h(a_i) + θᵀT − Σ w_i A(θ, s_i) of any linear family, by what it says of log h, u and A."""

    def __init__(self, space: ExponentialFamily, design: DesignMatrix, rows: InMemoryRows) -> None:
        self.space, self.design, self.arrays = space, design, rows
        self._weights = np.ones(len(rows.features)) if rows.weights is None else rows.weights
        self.total_weight = float(self._weights.sum())
        self.statistic, self._base = sum_over_chunks(self._of_actions, len(self), BLOCK)

    def __len__(self) -> int:
        return len(self.arrays.features)

    def sample(self, size: int, seed: int) -> "FamilyRows":
        """A fixed random sample of the rows; sums over it are for the caller to scale up."""
        block = self.arrays.block(np.sort(np.random.default_rng(seed).choice(len(self), size, replace=False)))
        return FamilyRows(self.space, self.design, InMemoryRows(block.features, block.actions, block.weights))

    def standardised(self, rows: slice) -> np.ndarray:
        """Rows as fits see them [c, q]."""
        return self.design.standardise(self.arrays.features[rows])

    def evaluate(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log L [m] and its gradient [m, d] at θ [m, d]."""
        return self._from_sums(thetas, *sum_over_chunks(lambda r: self._means(thetas, r)[:2], len(self), BLOCK))

    def _of_actions(self, rows: slice) -> tuple[np.ndarray, float]:
        """Σ w t(s, a) [d] and Σ w log h(a)."""
        actions, weights = self.arrays.actions[rows], self._weights[rows]
        statistic = (self.space.action_statistic(actions) * weights[:, None]).T @ self.standardised(rows)
        return statistic.ravel(), float(weights @ self.space.log_base(actions))

    def _means(self, thetas: np.ndarray, rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Σ w A [m] and Σ w E[t] [m, d] of some rows, these rows, and their natural parameters [c, m, k]."""
        x, weights = self.standardised(rows), self._weights[rows]
        eta = np.einsum("cq,mkq->cmk", x, thetas.reshape(len(thetas), len(self.space.row_names), -1), optimize=True)
        mean = np.einsum("cmk,cq->mkq", self.space.cumulant_gradient(eta) * weights[:, None, None], x, optimize=True)
        return weights @ self.space.cumulant(eta), mean.reshape(len(thetas), -1), x, eta

    def _curvatures(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        def of_chunk(rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            partition, mean, x, eta = self._means(thetas, rows)
            spread = self.space.cumulant_hessian(eta) * self._weights[rows, None, None, None]
            q, k = x.shape[1], spread.shape[-1]
            curvature = np.empty((len(thetas), k, q, k, q))
            for m, a, b in np.ndindex(len(thetas), k, k):
                curvature[m, a, :, b] = x.T @ (x * spread[:, m, a, b, None])
            return partition, mean, curvature.reshape(len(thetas), k * q, k * q)

        partition, mean, curvature = sum_over_chunks(of_chunk, len(self), BLOCK)
        return partition, mean, curvature

    def _from_sums(self, thetas: np.ndarray, partition: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._base + thetas @ self.statistic - partition, self.statistic - mean


# -- Newton for the full fit and for all restricted ones; what it does where the most likely weights are infinite.


SATURATED = 30.0
"""Weights of standardised features so large that some probabilities are 0 or 1 to all digits that matter."""

MOST_CERTAIN = 1000.0
"""Fixed weights of standardised features beyond which no curvature is left to fit the others by."""

SPREAD = 2.5
"""The prior's standard deviation for weights of standardised features: weak, yet finite under separation."""

BETS = (0.3, 1.0, 3.0)
"""The spreads over which a bettor on the agent divides its wealth: it loses log 3, and needs to know nothing."""

MANY = 50_000
"""Rows from which on a sample is fitted first, and the last step taken on trust."""

HAIR = 1e-9
"""A prior's precision a row: too small to move what rows show, enough to hold what they do not."""

FLAT = 1e-7
"""An eigenvalue of the scaled Hessian so small that separation is looked for."""


class ConcaveLikelihood(LinearLikelihood):
    """Newton for the full fit; restricted fits start one quadratic step from it and take preconditioned steps together.

    Here for rows in memory of any family that says what its cumulant is; a family may bring faster sums of its own.
    """

    rows: Any  # CurvedRows, with a length and a `sample` of them

    def __init__(self, space: ExponentialFamily, rows: InMemoryRows) -> None:
        self.space, self.num_rows, self.law = space, rows.num_rows, ChiSquare()
        self.design = DesignMatrix(space, moments_of(rows))
        self.total_weight = self.design.total_weight
        self.rows = FamilyRows(space, self.design, rows)
        self._fixed = self._checked_fixed()

    def _checked_fixed(self) -> np.ndarray:
        """What parameters that are not controlled are worth, in standardised coordinates [d]."""
        fixed = self.design.to_standardised(self.space.weights(self.space.fixed)).ravel()
        if np.abs(fixed).max() > MOST_CERTAIN:
            raise InputError(
                "the fixed values are so large that they leave the agent no choice: check their signs and units, a weight "
                "adds to the logarithm of the odds."
            )
        return fixed

    # -- the full fit ---------------------------------------------------------------------------------------------

    @cached_property
    def full(self) -> Fit:  # type: ignore[override]
        """The fit in the whole space."""
        best, separated = self._maximum, bool(self.diverging.any())
        return self._as_fit(best.theta, best.value, best.gradient, best.converged, self.space.full_support, separated)

    @cached_property
    def diverging(self) -> np.ndarray:  # type: ignore[override]
        """The coordinates [d] whose maximum-likelihood value is infinite; looked for where the fit gives reason to."""
        if self._may_diverge(self._maximum, self.space.full_support):
            return self._separated()
        return np.zeros(self.space.num_parameters, dtype=bool)

    @abstractmethod
    def _separated(self) -> np.ndarray:
        """The coordinates [d] along which log L grows for ever."""

    @cached_property
    def _origin(self) -> np.ndarray:
        """Where a climb begins of which nothing is known [d]."""
        return np.zeros(self.space.num_parameters)

    @cached_property
    def _maximum(self) -> Maximum:
        """The full fit in standardised coordinates, made when it is first asked for."""
        everything = np.ones(self.space.num_parameters, dtype=bool)
        start = self._origin
        if len(self.rows) > MANY:  # Newton on a sample first: few steps are left on all rows
            sample = self.rows.sample(max(20_000, len(self.rows) // 8), seed=1)
            # What the sample does not show must stay put, which a hair of a prior sees to.
            hair = HAIR * sample.total_weight * np.eye(len(start))
            start = regularised_maximum(sample, hair, start, everything, tolerance=1e-2)
            start = start if np.abs(start).max() < SATURATED else self._origin
        trusted = TRUSTED if len(self.rows) > MANY else 0.0
        return maximise(self.rows.at, self.rows.hessian, start, everything, trusted=trusted)

    @property
    def _theta(self) -> np.ndarray:
        return self._maximum.theta

    @property
    def _curvature(self) -> np.ndarray:
        return self._maximum.hessian

    def _may_diverge(self, best: Maximum, support: Support) -> bool:
        """Newton crept, or the Hessian has lost directions that the features have: no certificate of a finite maximum."""
        free = self.space.free_mask(support)
        curvature = best.hessian[np.ix_(free, free)]
        scale = np.sqrt(np.maximum(np.diag(curvature), np.finfo(float).tiny))
        flat = int((np.linalg.eigvalsh(curvature / np.outer(scale, scale)) < FLAT).sum()) if free.any() else 0
        lost = flat > int(free.sum()) - self.num_free(support)
        return best.creeping or lost or bool(np.abs(best.theta[free]).max(initial=0.0) > SATURATED)

    def _as_fit(
        self,
        theta: np.ndarray,
        value: float,
        gradient: np.ndarray,
        converged: bool,
        support: Support,
        separated: bool = False,
    ) -> Fit:
        free = self.space.free_mask(support)
        raw = self.design.to_raw(self.space.weights(theta)).ravel()
        # A coordinate that is not free keeps its fixed value to the bit.
        raw = np.where(free, raw, self.space.fixed)
        norm = float(np.abs(gradient[free]).max(initial=0.0))
        return Fit(raw, support, float(value), norm, converged, separated, self.num_free(support), self.law)

    # -- restricted fits ------------------------------------------------------------------------------------------

    def fit(self, support: Support, start: np.ndarray | None = None) -> Fit:
        """The fit inside Θ_I; a start, where one is given, replaces the one-step start from the full fit."""
        if start is None:
            return self.fit_many([support])[0]
        moved = self.design.to_standardised(self.space.weights(start)).ravel()
        return self._fit_alone(support, np.where(self.space.free_mask(support), moved, self._fixed))

    def fit_many(self, supports: Sequence[Support]) -> list[Fit]:
        """The fits inside several Θ_I, each to convergence."""
        if self.diverging.any():
            return [self._fit_alone(*both) for both in zip(supports, self._part_of_the_way(supports), strict=True)]
        batch = self._batch(supports)
        return [
            self._as_fit(batch.thetas[i], batch.values[i], batch.gradients[i], True, support)
            if batch.converged[i]
            else self._fit_alone(support, batch.thetas[i])
            for i, support in enumerate(supports)
        ]

    def _batch(self, supports: Sequence[Support], thresholds: np.ndarray | None = None) -> RestrictedBatch:
        """Fits inside several Θ_I, made together from what is known at the full one."""
        free = [self.space.free_mask(support) for support in supports]
        return RestrictedBatch(self._anchor, self._fixed, free, thresholds)

    @cached_property
    def _anchor(self) -> QuadraticModel:
        """The full fit, as restricted fits start from it."""
        best = self._maximum
        return QuadraticModel(self.rows, self.sample, best.theta, best.gradient, best.hessian)

    def _part_of_the_way(self, supports: Sequence[Support]) -> list[np.ndarray]:
        """Starts for separated data: the likeliest among parts of the full fit, whose own weights go to infinity."""
        free = np.array([self.space.free_mask(support) for support in supports])[:, None]
        shares = np.array([0.0, 0.15, 0.3, 0.5])[None, :, None]
        starts = np.where(free, shares * self._theta, self._fixed)
        values = self.rows.evaluate(starts.reshape(-1, starts.shape[-1]))[0].reshape(starts.shape[:2])
        return [start[best] for start, best in zip(starts, values.argmax(axis=1), strict=True)]

    def _fit_alone(self, support: Support, start: np.ndarray | None = None) -> Fit:
        """Damped Newton with exact Hessians: for separated data, and for whatever the batch could not finish."""
        free = self.space.free_mask(support)
        begin = np.where(free, self._origin, self._fixed)
        best = maximise(self.rows.at, self.rows.hessian, begin if start is None else start, free)
        if not best.converged and start is not None:  # a start so far out that no curvature is left shows no way back
            best = max(best, maximise(self.rows.at, self.rows.hessian, begin, free), key=lambda found: found.value)
        # A sub-space diverges only along coordinates that the whole space does.
        separated = bool(self.diverging[self.space.free_mask(support)].any()) and self._may_diverge(best, support)
        return self._as_fit(best.theta, best.value, best.gradient, best.converged, support, separated)

    def bound_statistics(self, supports: Sequence[Support], criticals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of λ_I on one side of its critical value: each fit is followed only until the side is certain."""
        full = self.full.log_likelihood
        if self.diverging.any():
            exact = np.array([2 * (full - fit.log_likelihood) for fit in self.fit_many(supports)])
            return exact, exact
        batch = self._batch(supports, full - criticals / 2)
        for i in np.flatnonzero(~batch.converged & ~batch.decided).tolist():
            batch.values[i], batch.slack[i] = self._fit_alone(supports[i], batch.thetas[i]).log_likelihood, 0.0
        return 2 * (full - batch.values - batch.slack), 2 * (full - batch.values)

    def approximate_statistics(self, groups: Sequence[int]) -> np.ndarray:
        """The λ of every support [2^D] under the quadratic model at θ̂: cheap, and good for choosing what to fit first."""
        delta = self._theta - self._fixed
        scale = np.sqrt(np.maximum(np.diag(self._curvature), np.finfo(float).tiny))
        unit = self._curvature / np.outer(scale, scale)
        right = unit @ (delta * scale)
        matrix = np.block([[unit, right[:, None]], [right[None], np.array([[(delta * scale) @ right]])]])
        return residual_blocks(matrix, [self.space.groups[g].indices for g in groups], 1)[0]

    @cached_property
    def sample(self) -> Any:
        """Rows that tell how the Hessian changes between two points; None where all rows do."""
        size = int(np.clip(len(self.rows) // 32, 1024, 4096))
        return self.rows.sample(size, seed=0) if len(self.rows) > size else None

    def penalised_policy(self, support: Support | None = None) -> Policy:
        """The most likely policy under a weak prior, which is finite under separation too."""
        support = self.space.full_support if support is None else support
        return self.shrunken_policy(support, SPREAD**-2 * self.prior_precision)

    def prior_predictive_policies(self, before: Sequence[Policy] = ()) -> list[Policy]:
        """One policy a prior."""
        everything = self.space.full_support
        return [self.shrunken_policy(everything, spread**-2 * self.prior_precision) for spread in BETS]

    def shrunken_policy(self, support: Support, penalty: float | np.ndarray) -> Policy:
        """By Newton's method, for the objective is concave; the penalty may be a matrix [d, d], too."""
        free, const = self.space.free_mask(support), self._is_constant
        own = np.ndim(penalty) < 2
        precision = np.diag(np.broadcast_to(penalty, len(free))) if own else np.array(penalty)
        precision = np.where(const | const[:, None], 0.0, precision)
        precision[const, const] = 1e-6  # finite even for an action that is hardly ever played
        best = regularised_maximum(self.rows, precision, self._fixed, free, tolerance=1e-8)
        raw = self.design.to_raw(self.space.weights(best)).ravel()
        return Policy(self.space, np.where(free, raw, self.space.fixed))

    def regularised(self, precision: float = 0.1) -> np.ndarray:
        """argmax log L(θ) − ½·precision·‖θ‖² of standardised features: a finite θ under separation too [d]."""
        size = self.space.num_parameters
        prior, everything = precision * np.eye(size), np.ones(size, dtype=bool)
        best = regularised_maximum(self.rows, prior, np.zeros(size), everything, start=self._fixed)
        return self.design.to_raw(self.space.weights(best)).ravel()

    def finite_theta(self) -> np.ndarray:
        """The regularised estimate, for the full fit is infinite on separated data."""
        return self.regularised()

    # -- what the space is on these states ------------------------------------------------------------------------

    def information(self) -> np.ndarray:
        """F̂ at the full fit, a mean over pairs, in raw coordinates [d, d]."""
        jacobian = self.design.to_standardised(
            np.eye(self.space.num_parameters).reshape(-1, *self.space.weights(self._theta).shape)
        )
        flat = jacobian.reshape(self.space.num_parameters, -1)
        return flat @ self.standardised_information() @ flat.T

    def refined_estimate(self) -> tuple[np.ndarray, np.ndarray]:
        """Two more Newton steps, which promise too little likelihood for a fit and still double the digits of weights."""
        theta, best = self._theta, self._maximum
        if best.converged and not best.creeping and not self.diverging.any():
            for _ in range(2):
                theta = theta + newton_step(self.rows.hessian(theta), self.rows.at(theta)[1])[0]
        return self.design.to_raw(self.space.weights(theta)).ravel(), self.rows.hessian(theta)

    def standardised_information(self) -> np.ndarray:
        """F̂ at the full fit in the coordinates of the standardised design [d, d]."""
        return self._curvature / self.design.total_weight


def regularised_maximum(
    rows: CurvedRows,
    prior: np.ndarray,
    centre: np.ndarray,
    free: np.ndarray,
    tolerance: float = TOLERANCE,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """argmax log L(θ) − ½ (θ − centre)ᵀ prior (θ − centre) over the free coordinates [d]."""

    def evaluate(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = rows.at(theta)
        pull = prior @ (theta - centre)
        return value - 0.5 * float(pull @ (theta - centre)), gradient - pull

    begin = centre if start is None else start
    return maximise(evaluate, lambda theta: rows.hessian(theta) + prior, begin, free, tolerance).theta
