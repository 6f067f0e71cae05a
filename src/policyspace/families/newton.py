"""Newton's method for many restricted maximum-likelihood fits that share passes over the rows."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.linalg.lapack import dposv, dpotrf

from policyspace.runtime import num_workers, single_threaded_blas

# -- Newton's method on the free coordinates of a concave log-likelihood.

TOLERANCE = 1e-10
"""A fit has converged when the next step promises less log-likelihood than this."""

CREEPING = 1e-8
"""A gain at which steps towards infinity are stopped: the limit is closer than λ is ever read."""

LONGEST = 2.0
"""How far one bounded step may move a natural parameter."""

FLAT = 1e-12
"""Curvature, relative to that of the single coordinates, below which a direction counts as flat."""


SETTLED = 0.1
"""A gain below which a fit stays near the peak that it climbs: its steps tell how the gradient changes there."""

MEMORY = 8
"""Steps that correct a Hessian which is not all of it."""


@dataclass(frozen=True)
class Maximum:
    """Where Newton stopped; `creeping` when its last steps gained by a constant factor, as they do towards infinity."""

    theta: np.ndarray
    value: float
    gradient: np.ndarray
    hessian: np.ndarray  # of −log L, at the last point or the one before it
    converged: bool
    creeping: bool


def maximise(
    evaluate: Callable[[np.ndarray], tuple[float, np.ndarray]],
    hessian: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    free: np.ndarray,
    tolerance: float = TOLERANCE,
    max_steps: int = 100,
    reach: Callable[[np.ndarray], float] | None = None,
    secant: bool = False,
    trusted: float = 0.0,
) -> Maximum:
    """Damped Newton from `start`; only free coordinates move. `hessian` is that of −log L.

    Where `hessian` leaves a part of the objective out, `secant` makes up for it: once the fit has settled, the changes of
    the gradient along its steps correct it, as in the method of Broyden, Fletcher, Goldfarb and Shanno.

    A step that is `trusted` to leave no more than that undone, as the fall of the gains shows, is the last.

    Where `reach` says how far a step moves the natural parameters, no step moves them further than LONGEST: an objective
    that is not concave could be left behind by a longer one.
    """
    theta = start.copy()
    value, gradient = evaluate(theta)
    previous = np.inf
    changes: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(max_steps):
        curvature = hessian(theta)
        step, gain = newton_step(_corrected(curvature[np.ix_(free, free)], changes), gradient[free])
        creeping = gain > 1e-2 * previous  # then what is left to gain is about as much again
        if gain <= max(tolerance, 1e-15 * abs(value)) or (creeping and gain < CREEPING):
            return Maximum(theta, value, _only(gradient, free), curvature, True, creeping)
        if previous < np.inf and gain * np.sqrt(gain / previous) <= trusted:
            theta[free] += step
            return Maximum(theta, value + gain, _only(gradient, free), curvature, True, False)
        length = 1.0
        if reach is not None:
            whole = np.zeros_like(theta)
            whole[free] = step
            length = min(1.0, LONGEST / max(reach(whole), np.finfo(float).tiny))
        while True:
            trial = theta.copy()
            trial[free] += length * step
            trial_value, trial_gradient = evaluate(trial)
            if trial_value >= value + 0.1 * length * gain - 1e-13 * abs(value):
                break
            length /= 2
            if length < 1e-8:  # rounding is all that is left to gain
                return Maximum(theta, value, _only(gradient, free), curvature, bool(gain < 1e-6), False)
        if secant and gain < SETTLED:
            changes = [*changes[1 - MEMORY :], ((trial - theta)[free], (gradient - trial_gradient)[free])]
        theta, value, gradient, previous = trial, trial_value, trial_gradient, gain
    return Maximum(theta, value, _only(gradient, free), curvature, False, True)


def _corrected(hessian: np.ndarray, changes: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The matrix that, positive still, sends the last step to the change of the gradient that was seen along it."""
    for step, change in changes:
        seen, image = float(step @ change), hessian @ step
        if seen > 1e-8 * float(step @ image):
            hessian = hessian - np.outer(image, image) / (step @ image) + np.outer(change, change) / seen
    return hessian


def newton_step(hessian: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, float]:
    """H⁻¹g and the gain ½gᵀH⁻¹g that it promises; directions without curvature are left alone."""
    if not len(gradient):
        return gradient, 0.0
    scale = np.sqrt(np.maximum(np.diag(hessian), np.finfo(float).tiny))
    unit, right = hessian / np.outer(scale, scale), gradient / scale
    # A hair of curvature where there is none: collinear directions stay put, diverging ones go on by steps of about one.
    unit.flat[:: len(unit) + 1] += FLAT
    _, step, failed = dposv(unit, right)
    if failed:
        eigenvalues, vectors = np.linalg.eigh(unit)
        kept = eigenvalues > FLAT
        step = vectors[:, kept] @ ((vectors[:, kept].T @ right) / eigenvalues[kept])
    return step / scale, 0.5 * float(right @ step)


def _only(gradient: np.ndarray, free: np.ndarray) -> np.ndarray:
    return np.where(free, gradient, 0.0)


# -- What is known of a log-likelihood around one point: its derivatives there, and from some rows how it goes on.


class SumsOverRows(Protocol):
    """A log-likelihood that is a sum over rows."""

    total_weight: float

    def evaluate(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log L [m] and its gradient [m, d] at θ [m, d]."""

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """−∇² log L [d, d]."""

    def hessians(self, thetas: np.ndarray) -> np.ndarray:
        """The same at several θ [m, d, d]."""


@dataclass(frozen=True)
class QuadraticModel:
    """Gradient and Hessian of all rows at θ₀; what a step away changes in them beyond that, a sample of the rows tells."""

    rows: SumsOverRows
    sample: SumsOverRows | None  # None where all rows are few
    theta: np.ndarray  # [d]
    gradient: np.ndarray  # [d]
    curvature: np.ndarray  # −∇² log L at θ₀ [d, d]

    @cached_property
    def _sampled(self) -> tuple[np.ndarray, np.ndarray, float]:
        """The sample's gradient and Hessian at θ₀, and what its sums are multiplied by."""
        assert self.sample is not None
        scale = self.rows.total_weight / self.sample.total_weight
        gradient, curvature = self.sample.evaluate(self.theta[None])[1][0], self.sample.hessian(self.theta)
        return gradient, curvature, scale

    def gradients(self, thetas: np.ndarray) -> np.ndarray:
        """About ∇ log L of all rows [m, d]: exact to first order around θ₀, the rest from the sample."""
        assert self.sample is not None
        steps = thetas - self.theta
        gradient, curvature, scale = self._sampled
        bent = self.sample.evaluate(thetas)[1] - gradient + steps @ curvature
        return self.gradient - steps @ self.curvature + scale * bent

    def curvature_at(self, theta: np.ndarray) -> np.ndarray:
        """About −∇² log L of all rows at θ [d, d]."""
        if self.sample is None:
            return self.rows.hessian(theta)
        _, before, scale = self._sampled
        here = self.sample.hessian(theta) * scale
        corrected = self.curvature + here - before * scale
        return here if dpotrf(corrected)[1] else corrected  # which must be positive


# -- Restricted fits side by side: one evaluation of all that are still open is one pass over the rows.

SLOW = 0.1
"""Gains that fall by less than this factor need a new Hessian, of all rows."""

NEARLY = 1e-3
"""A gain in log-likelihood so small that the step which promises it may be taken on trust."""

TRUSTED = 5e-9
"""What such a step may leave undone, in log-likelihood."""

ROUGHLY = 1e-3
"""A gain, as a sample promises it, after which all rows are asked."""

SHORT = 0.005
"""A way, in natural parameters of a typical row, on which the Hessian hardly changes."""

MOST_ROUGH_STEPS = 6

WIDTH = 256
"""Fits that are made side by side."""


class RestrictedBatch:
    """Maxima of log L in several Θ_I, sought from an anchor near the full one.

    Each begins at the maximum of what the anchor and its sample know inside Θ_I; then passes over all rows correct it, with
    steps preconditioned by the sample's Hessian, or by that of all rows where such steps gain slowly. Where thresholds are
    given, a fit stops as soon as it is certain on which side of its threshold it ends: a feasible point already above it,
    or one whose remaining gain cannot reach it.
    """

    def __init__(
        self,
        anchor: QuadraticModel,
        fixed: np.ndarray,
        free: Sequence[np.ndarray],
        thresholds: np.ndarray | None = None,
        trusted: float = TRUSTED,
        max_passes: int = 30,
    ) -> None:
        self.anchor, self.fixed, self.free_mask, self.thresholds, self.trusted = (
            anchor,
            fixed,
            free,
            thresholds,
            trusted,
        )
        size = len(free)
        self.thetas = np.zeros((size, len(fixed)))
        self.values = np.full(size, -np.inf)
        self.gradients = np.zeros_like(self.thetas)
        self.converged, self.decided = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
        self.slack = np.zeros(size)  # how much more log-likelihood there may still be
        self._last_gain = np.full(size, np.inf)
        self._ratio = np.zeros(size)  # of the last gain to the one before
        self._doubt = np.zeros(size)  # the share by which a preconditioner taken from elsewhere may be off
        self._preconditioners: dict[int, np.ndarray] = {}
        with single_threaded_blas():
            for first in range(0, size, WIDTH):
                own = np.arange(first, min(first + WIDTH, size))
                self._begin(own)
                self._run(own, max_passes)

    def _begin(self, own: np.ndarray) -> None:
        """The maxima of the quadratic model at the anchor, then of what the sample says beyond it."""
        for i in own.tolist():
            self.thetas[i] = self._start(self.free_mask[i])
            # The way there costs about as much as all later steps are measured by: λ/2.
            away = self.thetas[i] - self.anchor.theta
            self._last_gain[i] = max(0.5 * float(away @ self.anchor.curvature @ away), TOLERANCE)
            turn = float(np.sqrt(2 * self._last_gain[i] / self.anchor.rows.total_weight))
            if turn < SHORT and self.anchor.sample is not None:
                self._preconditioners[i], self._doubt[i] = self.anchor.curvature, turn
        if self.anchor.sample is None:
            return
        best, proposals = np.full(len(self.free_mask), np.inf), self.thetas.copy()
        for _ in range(MOST_ROUGH_STEPS):
            gradients = self.anchor.gradients(proposals[own])
            found = _in_parallel(self._rough_step, list(zip(own, proposals[own], gradients, best[own], strict=True)))
            gains = np.array([gain for _, gain in found])
            better = gains < best[own]
            own, steps, gains = own[better], np.array([step for step, _ in found])[better], gains[better]
            best[own], self.thetas[own] = gains, proposals[own]
            proposals[own] += steps
            done = gains < ROUGHLY
            self.thetas[own[done]] = proposals[own[done]]
            own = own[~done]
            if not len(own):
                return

    def _start(self, free: np.ndarray) -> np.ndarray:
        """The maximum inside Θ_I of the quadratic model at θ₀: θ₀_f + H_ff⁻¹ (g_f + H_fz (θ₀_z − fixed_z))."""
        theta, curvature = self.anchor.theta, self.anchor.curvature
        start = np.where(free, theta, self.fixed)
        pull = self.anchor.gradient[free] + curvature[np.ix_(free, ~free)] @ (theta - self.fixed)[~free]
        start[free] += newton_step(curvature[np.ix_(free, free)], pull)[0]
        return start

    def _rough_step(self, given: tuple[int, np.ndarray, np.ndarray, float]) -> tuple[np.ndarray, float]:
        """A Newton step of what the sample says, and what it promises."""
        i, theta, gradient, last = given
        if i not in self._preconditioners or 0.5 < last < np.inf:
            self._preconditioners[i] = self.anchor.curvature_at(theta)
        return self._newton(i, gradient)

    def _newton(self, i: int, gradient: np.ndarray) -> tuple[np.ndarray, float]:
        free = self.free_mask[i]
        step = np.zeros(len(free))
        step[free], gain = newton_step(self._preconditioners[i][np.ix_(free, free)], gradient[free])
        return step, gain

    def _run(self, active: np.ndarray, max_passes: int) -> None:
        """Passes over the rows until every fit has converged or is decided."""
        proposals, steps = self.thetas[active].copy(), np.zeros((len(active), self.thetas.shape[1]))
        for _ in range(max_passes):
            values, gradients = self.anchor.rows.evaluate(proposals)
            worse = values < self.values[active] - 1e-12 * np.abs(values)
            better = active[~worse]
            self.thetas[better], self.values[better] = proposals[~worse], values[~worse]
            self.gradients[better] = gradients[~worse]
            steps[worse] /= 4
            steps[~worse] = self._steps(better)
            open_ = ~(self.converged[active] | self.decided[active])
            active, steps = active[open_], steps[open_]
            if not len(active):
                return
            proposals = self.thetas[active] + steps

    def _steps(self, which: np.ndarray) -> np.ndarray:
        """The next step of some fits [·, d]; those that gain slowly get Hessians of all rows, in one more pass."""
        found = _in_parallel(self._step, which.tolist())
        steps, gains = (
            np.array([step for step, _ in found]).reshape(len(which), self.thetas.shape[1]),
            [gain for _, gain in found],
        )
        slow = np.flatnonzero((self._ratio[which] > SLOW) & (np.array(gains) > self.trusted)).tolist()
        if slow and self.anchor.sample is not None:
            hessians = self.anchor.rows.hessians(self.thetas[which[slow]])
            for place, i, hessian in zip(slow, which[slow].tolist(), hessians, strict=True):
                self._preconditioners[i] = hessian
                steps[place], gains[place] = self._newton(i, self.gradients[i])
                self._last_gain[i] = gains[place]
        for place, i in enumerate(which.tolist()):
            self._judge(i, steps[place], gains[place])
        return steps

    def _step(self, i: int) -> tuple[np.ndarray, float]:
        # A gain below a half is less than a standard error, on which the Hessian hardly moves; unless the gains say it does.
        stale = self.anchor.sample is None and (self._last_gain[i] > 0.5 or self._ratio[i] > SLOW)
        if i not in self._preconditioners or stale:
            self._preconditioners[i] = self.anchor.curvature_at(self.thetas[i])
        step, gain = self._newton(i, self.gradients[i])
        # How fast the gains fall shows how far the preconditioner is from the Hessian: by Newton's own they vanish at once.
        self._ratio[i], self._last_gain[i] = gain / self._last_gain[i], gain
        return step, gain

    def _judge(self, i: int, step: np.ndarray, gain: float) -> None:
        """Whether a fit has converged, or its side is certain."""
        trusted = gain <= NEARLY and gain * max(np.sqrt(self._ratio[i]), self._doubt[i]) <= self.trusted
        if trusted or gain <= max(TOLERANCE, 1e-15 * abs(self.values[i])):
            # The last step is taken on trust: what it gains is known to a small part of itself.
            self.thetas[i] += step
            self.values[i] += gain
            self.converged[i] = True
            gain = 0.0
        if self.thresholds is not None:
            # ½gᵀH⁻¹g is the gain to second order; near the top twice that, and twice again for a sampled Hessian, is safe.
            self.slack[i] = 4 * gain if gain < 0.05 and self._ratio[i] < SLOW else np.inf
            self.decided[i] = (
                self.values[i] >= self.thresholds[i] or self.values[i] + self.slack[i] < self.thresholds[i]
            )


def _in_parallel(
    function: Callable[[Any], tuple[np.ndarray, float]], given: Sequence[Any]
) -> list[tuple[np.ndarray, float]]:
    if len(given) < 2:
        return list(map(function, given))
    with ThreadPoolExecutor(num_workers()) as pool:
        return list(pool.map(function, given))
