"""Restricted fits side by side: one evaluation of all that are still open is one pass over the rows."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from policyspace.data.chunks import num_workers, single_threaded_blas
from policyspace.fits.anchor import Anchor
from policyspace.fits.newton import TOLERANCE, newton_step

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
        anchor: Anchor,
        fixed: np.ndarray,
        free: Sequence[np.ndarray],
        thresholds: np.ndarray | None = None,
        trusted: float = TRUSTED,
        max_passes: int = 30,
    ) -> None:
        self.anchor, self.fixed, self.free, self.thresholds, self.trusted = anchor, fixed, free, thresholds, trusted
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
            self.thetas[i] = self._start(self.free[i])
            # The way there costs about as much as all later steps are measured by: λ/2.
            away = self.thetas[i] - self.anchor.theta
            self._last_gain[i] = max(0.5 * float(away @ self.anchor.curvature @ away), TOLERANCE)
            turn = float(np.sqrt(2 * self._last_gain[i] / self.anchor.rows.total_weight))
            if turn < SHORT and self.anchor.sample is not None:
                self._preconditioners[i], self._doubt[i] = self.anchor.curvature, turn
        if self.anchor.sample is None:
            return
        best, proposals = np.full(len(self.free), np.inf), self.thetas.copy()
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
        free = self.free[i]
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
