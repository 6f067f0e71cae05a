"""The likelihood of the Boltzmann linear policy: batched passes over the rows serve all supports at once."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from policyspace.data.blocks import ArrayRows, Rows
from policyspace.data.joint_moments import Moments, moments_of
from policyspace.errors import InputError
from policyspace.fits.anchor import Anchor
from policyspace.fits.base import Fit, LinearLikelihood
from policyspace.fits.design import Design
from policyspace.fits.law import ChiSquare
from policyspace.fits.merge import merge_rows
from policyspace.fits.newton import TOLERANCE, Maximum, maximise, newton_step
from policyspace.fits.restricted_fits import TRUSTED, RestrictedBatch
from policyspace.fits.separation import moving_coordinates, separating_directions
from policyspace.fits.softmax import SoftmaxRows
from policyspace.fits.subsets import residual_blocks
from policyspace.policies.base import Policy
from policyspace.policies.boltzmann import BoltzmannLinear
from policyspace.policies.groups import Support

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


class BoltzmannLikelihood(LinearLikelihood):
    """Newton for the full fit; restricted fits start one quadratic step from it and take preconditioned steps together."""

    space: BoltzmannLinear
    design: Design

    def __init__(self, space: BoltzmannLinear, rows: Rows, moments: Moments | None = None) -> None:
        self.space, self.num_pairs, self.law = space, rows.num_rows, ChiSquare()
        num_actions = len(space.action_names)
        if isinstance(rows, ArrayRows) and (
            merged := merge_rows(rows.features, rows.actions, rows.weights, num_actions)
        ):
            rows = ArrayRows(*merged, merged[1].sum(axis=1))
        moments = moments_of(rows, num_actions) if moments is None else moments
        self.design = Design(space, moments)
        self.total_weight = self.design.total_weight
        self.rows = SoftmaxRows(self.design, rows, self.total_weight, num_actions, self._statistic(moments))
        self._fixed = self._checked_fixed()

    def _statistic(self, moments: Moments) -> np.ndarray:
        """T = Σ w_i t(s_i, a_i) of standardised features [d]: products of features and labels."""
        p, design = len(self.design.mean), self.design
        origin = np.append(design.mean, np.zeros(len(moments.shift) - p))
        products = moments.about(origin)[p:, :p] * design.standardise.inverse_scale
        if not self.space.intercept:
            return products.ravel()
        return np.column_stack([self.total_weight * moments.mean[p:], products]).ravel()

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
        return self._as_fit(best.theta, best.value, best.gradient, best.converged, self.space.everything, separated)

    @cached_property
    def diverging(self) -> np.ndarray:  # type: ignore[override]
        """The coordinates [d] whose maximum-likelihood value is infinite; looked for where the fit gives reason to."""
        if self._may_diverge(self._maximum, self.space.everything):
            return self._separated()
        return np.zeros(self.space.num_parameters, dtype=bool)

    def _separated(self) -> np.ndarray:
        """The coordinates [d] along which log L grows for ever."""
        return moving_coordinates(self.design, self.separating_directions)

    @cached_property
    def separating_directions(self) -> np.ndarray:
        """The directions [r, k+1, q] along which it does, in standardised coordinates."""
        return separating_directions(self.rows, np.ones(self.space.num_parameters, dtype=bool))

    @cached_property
    def _maximum(self) -> Maximum:
        """The full fit in standardised coordinates, made when it is first asked for."""
        everything = np.ones(self.space.num_parameters, dtype=bool)
        start = np.zeros_like(self._fixed)
        if len(self.rows) > MANY:  # Newton on a sample first: few steps are left on all rows
            sample = self.rows.sample(max(20_000, len(self.rows) // 8), seed=1)
            # What the sample does not show must stay put, which a hair of a prior sees to.
            hair = np.full(len(start), HAIR * sample.total_weight)
            start = regularised_maximum(sample, hair, start, everything, tolerance=1e-2)
            start = start if np.abs(start).max() < SATURATED else np.zeros_like(self._fixed)
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
        free = self.space.free(support)
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
        free = self.space.free(support)
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
        return self._fit_alone(support, np.where(self.space.free(support), moved, self._fixed))

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
        free = [self.space.free(support) for support in supports]
        return RestrictedBatch(self._anchor, self._fixed, free, thresholds)

    @cached_property
    def _anchor(self) -> Anchor:
        """The full fit, as restricted fits start from it."""
        best = self._maximum
        return Anchor(self.rows, self.sample, best.theta, best.gradient, best.hessian)

    def _part_of_the_way(self, supports: Sequence[Support]) -> list[np.ndarray]:
        """Starts for separated data: the likeliest among parts of the full fit, whose own weights go to infinity."""
        free = np.array([self.space.free(support) for support in supports])[:, None]
        shares = np.array([0.0, 0.15, 0.3, 0.5])[None, :, None]
        starts = np.where(free, shares * self._theta, self._fixed)
        values = self.rows.evaluate(starts.reshape(-1, starts.shape[-1]))[0].reshape(starts.shape[:2])
        return [start[best] for start, best in zip(starts, values.argmax(axis=1), strict=True)]

    def _fit_alone(self, support: Support, start: np.ndarray | None = None) -> Fit:
        """Damped Newton with exact Hessians: for separated data, and for whatever the batch could not finish."""
        free = self.space.free(support)
        begin = np.where(free, 0.0, self._fixed)
        best = maximise(self.rows.at, self.rows.hessian, begin if start is None else start, free)
        if not best.converged and start is not None:  # a start so far out that no curvature is left shows no way back
            best = max(best, maximise(self.rows.at, self.rows.hessian, begin, free), key=lambda found: found.value)
        # A sub-space diverges only along coordinates that the whole space does.
        separated = bool(self.diverging[self.space.free(support)].any()) and self._may_diverge(best, support)
        return self._as_fit(best.theta, best.value, best.gradient, best.converged, support, separated)

    def bracket(self, supports: Sequence[Support], criticals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of λ_I on one side of its critical value: each fit is followed only until the side is certain."""
        full = self.full.log_likelihood
        if self.diverging.any():
            exact = np.array([2 * (full - fit.log_likelihood) for fit in self.fit_many(supports)])
            return exact, exact
        batch = self._batch(supports, full - criticals / 2)
        for i in np.flatnonzero(~batch.converged & ~batch.decided).tolist():
            batch.values[i], batch.slack[i] = self._fit_alone(supports[i], batch.thetas[i]).log_likelihood, 0.0
        return 2 * (full - batch.values - batch.slack), 2 * (full - batch.values)

    def screen(self, groups: Sequence[int]) -> np.ndarray:
        """The λ of every support [2^D] under the quadratic model at θ̂: cheap, and good for choosing what to fit first."""
        delta = self._theta - self._fixed
        scale = np.sqrt(np.maximum(np.diag(self._curvature), np.finfo(float).tiny))
        unit = self._curvature / np.outer(scale, scale)
        right = unit @ (delta * scale)
        matrix = np.block([[unit, right[:, None]], [right[None], np.array([[(delta * scale) @ right]])]])
        return residual_blocks(matrix, [self.space.groups[g].indices for g in groups], 1)[0]

    @cached_property
    def sample(self) -> SoftmaxRows | None:
        """Rows that tell how the Hessian changes between two points; None where all rows do."""
        size = int(np.clip(len(self.rows) // 32, 1024, 4096))
        return self.rows.sample(size, seed=0) if len(self.rows) > size else None

    def penalised_policy(self, support: Support | None = None) -> Policy:
        """The most likely policy under a weak prior, which is finite under separation too."""
        return self._ridge(self.space.everything if support is None else support, SPREAD)

    def bets(self, before: Sequence[Policy] = ()) -> list[Policy]:
        """One policy a prior."""
        return [self._ridge(self.space.everything, spread) for spread in BETS]

    def _ridge(self, support: Support, spread: float) -> Policy:
        """argmax log L(θ) − ½ Σ (θ_j/spread)² over Θ_I, the constants nearly free of the penalty."""
        free = self.space.free(support)
        best = regularised_maximum(self.rows, self._prior(spread), self._fixed, free, tolerance=1e-8)
        raw = self.design.to_raw(self.space.weights(best)).ravel()
        return Policy(self.space, np.where(free, raw, self.space.fixed))

    def _prior(self, spread: float) -> np.ndarray:
        """The precision of every weight [d]."""
        precision = np.full((len(self.space.row_names), len(self.space.column_names)), spread**-2)
        precision[:, : int(self.space.intercept)] = 1e-6  # finite even for an action that is hardly ever played
        return precision.ravel()

    def regularised(self, precision: float = 0.1) -> np.ndarray:
        """argmax log L(θ) − ½·precision·‖θ‖² of standardised features: a finite θ under separation too [d]."""
        size = self.space.num_parameters
        prior, everything = np.full(size, precision), np.ones(size, dtype=bool)
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

    def sharpened(self) -> tuple[np.ndarray, np.ndarray]:
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
    rows: SoftmaxRows,
    prior: np.ndarray,
    centre: np.ndarray,
    free: np.ndarray,
    tolerance: float = TOLERANCE,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """argmax log L(θ) − ½ Σ prior_j (θ_j − centre_j)² over the free coordinates [d]."""

    def evaluate(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = rows.at(theta)
        away = theta - centre
        return value - 0.5 * float(prior @ away**2), gradient - prior * away

    begin = centre if start is None else start
    return maximise(evaluate, lambda theta: rows.hessian(theta) + np.diag(prior), begin, free, tolerance).theta
