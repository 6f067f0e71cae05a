"""The Boltzmann likelihood of rows that are not in memory: fits on some rows first, then few passes over all of them."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from policyspace.data.blocks import ArrayRows, Rows
from policyspace.data.joint_moments import BLOCK, Moments, MomentsOf, shift_near
from policyspace.data.outstanding import Far, FarOf, MomentsAndFar, joined
from policyspace.fits.anchor import Anchor
from policyspace.fits.base import Fit
from policyspace.fits.boltzmann_fits import BoltzmannLikelihood
from policyspace.fits.newton import TOLERANCE, Maximum, maximise, newton_step
from policyspace.fits.restricted_fits import TRUSTED, RestrictedBatch
from policyspace.fits.separation import ViolatingOf
from policyspace.fits.softmax import SoftmaxRows
from policyspace.policies.boltzmann import BoltzmannLinear
from policyspace.policies.groups import Support

STEERING = 65_536
"""Known rows that tell how the Hessian changes between two points."""

UNDONE = 1e-12
"""What a fit may leave undone, in log-likelihood a row."""

LIMIT = 1e-6
"""A gain below which fits of separated data are at their limit, as far as λ is read."""

MOST_PASSES = 40


class StreamedBoltzmann(BoltzmannLikelihood):
    """The first pass tells gradient and Hessian of all rows at the fit of the known ones; then the full fit and those
    without one group each climb together.
    """

    def __init__(
        self, space: BoltzmannLinear, rows: Rows, moments: Moments | None, known: ArrayRows, far: Far | None = None
    ) -> None:
        moments, known = _first_pass(rows, moments, far, known, len(space.action_names))
        super().__init__(space, rows, moments)
        self._known, self._made = known, dict[Support, Fit]()

    @cached_property
    def _of_known(self) -> BoltzmannLikelihood:
        """The likelihood of the known rows; where they are separated and others are not, those become known, too."""
        known = self._known
        while True:
            likelihood = BoltzmannLikelihood(self.space, known)
            if not likelihood.diverging.any():
                return likelihood
            directions = likelihood.separating_directions
            (missed,) = self.rows.rows.total(ViolatingOf(likelihood.design.standardise, directions))
            if not len(missed.measure):
                return likelihood
            known = joined(known, missed.block)

    @cached_property
    def diverging(self) -> np.ndarray:  # type: ignore[override]
        """The coordinates [d] whose maximum-likelihood value is infinite: of all rows if of the known ones."""
        return self._of_known.diverging

    @cached_property
    def sample(self) -> SoftmaxRows:
        """Known rows that tell how the Hessian changes between two points."""
        known = self._known
        total = float(known.num_rows if known.weights is None else known.weights.sum())
        rows = SoftmaxRows(self.design, known, total, len(self.space.action_names))
        return rows.sample(STEERING, seed=0) if len(rows) > STEERING else rows

    @cached_property
    def _maximum(self) -> Maximum:
        everything, space = np.ones(self.space.num_parameters, dtype=bool), self.space
        start = self._standardised(self._of_known.full)
        if self.diverging.any():
            return maximise(self.rows.at, self.rows.hessian, start, everything, tolerance=LIMIT)
        supports = [space.everything, *(space.everything - {g} for g in space.tested)]
        gradient, curvature = self.rows.at(start)[1], self.rows.hessian(start)
        anchor = Anchor(self.rows, self.sample, start, gradient, curvature)
        batch = self._climb(anchor, supports)
        self._made = {
            support: self._as_fit(batch.thetas[i], batch.values[i], batch.gradients[i], True, support)
            for i, support in enumerate(supports)
            if i and batch.converged[i]
        }
        if not batch.converged[0]:
            return maximise(self.rows.at, self.rows.hessian, batch.thetas[0], everything)
        theta = batch.thetas[0]
        return Maximum(theta, float(batch.values[0]), batch.gradients[0], anchor.curvature_at(theta), True, False)

    def _climb(
        self, anchor: Anchor, supports: Sequence[Support], thresholds: np.ndarray | None = None
    ) -> RestrictedBatch:
        free = [self.space.free(support) for support in supports]
        return RestrictedBatch(anchor, self._fixed, free, thresholds, max(TRUSTED, UNDONE * self.total_weight))

    def _batch(self, supports: Sequence[Support], thresholds: np.ndarray | None = None) -> RestrictedBatch:
        return self._climb(self._anchor, supports, thresholds)

    def _standardised(self, fit: Fit) -> np.ndarray:
        """θ̂ of known rows in the coordinates of all [d]."""
        theta = self.design.to_standardised(self.space.weights(fit.theta)).ravel()
        return np.where(self.space.free(fit.support), theta, self._fixed)

    def fit_many(self, supports: Sequence[Support]) -> list[Fit]:
        """The fits inside several Θ_I, each made once."""
        self._maximum  # noqa: B018 (which makes some of them)
        new = [support for support in supports if support not in self._made]
        if new:
            made = self._limits(new) if self.diverging.any() else super().fit_many(new)
            self._made |= dict(zip(new, made, strict=True))
        return [self._made[support] for support in supports]

    def _limits(self, supports: Sequence[Support]) -> list[Fit]:
        """Fits of separated data, from those of the known rows: Newton with Hessians of all rows, side by side."""
        proposals = np.array([self._standardised(fit) for fit in self._of_known.fit_many(supports)])
        free = [self.space.free(support) for support in supports]
        thetas, steps, values = proposals.copy(), np.zeros_like(proposals), np.full(len(supports), -np.inf)
        gradients, found = np.zeros_like(proposals), dict[int, Maximum]()
        open_ = np.arange(len(supports))
        for _ in range(MOST_PASSES):
            now, slopes, hessians = self.rows.expand(proposals[open_])
            for i, value, gradient, hessian in zip(open_.tolist(), now, slopes, hessians, strict=True):
                if value < values[i] - 1e-12 * abs(value):
                    steps[i] /= 4
                    continue
                thetas[i], values[i], gradients[i] = proposals[i], value, np.where(free[i], gradient, 0.0)
                inside = free[i]
                steps[i] = 0.0
                steps[i, inside], gain = newton_step(hessian[np.ix_(inside, inside)], gradient[inside])
                if gain < max(TOLERANCE, LIMIT):
                    found[i] = Maximum(thetas[i], float(value), gradients[i], hessian, True, gain > TOLERANCE)
            open_ = np.array([i for i in open_.tolist() if i not in found], dtype=int)
            if not len(open_):
                break
            proposals = thetas + steps
        return [
            self._limit(found[i], support) if i in found else self._fit_alone(support, thetas[i])
            for i, support in enumerate(supports)
        ]

    def _limit(self, best: Maximum, support: Support) -> Fit:
        separated = bool(self.diverging[self.space.free(support)].any()) and self._may_diverge(best, support)
        return self._as_fit(best.theta, best.value, best.gradient, True, support, separated)


def _first_pass(
    rows: Rows, moments: Moments | None, far: Far | None, known: ArrayRows, num_actions: int
) -> tuple[Moments, ArrayRows]:
    """The moments of all rows, and the known rows with all that are far out among them; no pass where both are there."""
    shift = shift_near(known.features, known.actions, num_actions)
    by = FarOf.of(known, shift[: known.features.shape[1]])
    found = None if far is None else far.again(by)
    if moments is None:
        moments, found = rows.total(MomentsAndFar(MomentsOf(shift, num_actions), by), BLOCK)
    elif found is None:
        (found,) = rows.total(by, BLOCK)
    return moments, by.completed(known, found)
