"""Newton's method on the free coordinates of a concave log-likelihood."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv

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
