"""Newton's method on the free coordinates of a concave log-likelihood."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

TOLERANCE = 1e-10
"""A fit has converged when the next step promises less log-likelihood than this."""


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
) -> Maximum:
    """Damped Newton from `start`; only free coordinates move. `hessian` is that of −log L."""
    theta = start.copy()
    value, gradient = evaluate(theta)
    previous = np.inf
    for _ in range(max_steps):
        curvature = hessian(theta)
        step, gain = newton_step(curvature[np.ix_(free, free)], gradient[free])
        if gain <= max(tolerance, 1e-15 * abs(value)):
            return Maximum(theta, value, _only(gradient, free), curvature, True, bool(gain > 1e-2 * previous))
        length = 1.0
        while True:
            trial = theta.copy()
            trial[free] += length * step
            trial_value, trial_gradient = evaluate(trial)
            if trial_value >= value + 0.1 * length * gain - 1e-13 * abs(value):
                break
            length /= 2
            if length < 1e-8:  # rounding is all that is left to gain
                return Maximum(theta, value, _only(gradient, free), curvature, bool(gain < 1e-6), False)
        theta, value, gradient, previous = trial, trial_value, trial_gradient, gain
    return Maximum(theta, value, _only(gradient, free), curvature, False, True)


def newton_step(hessian: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, float]:
    """H⁻¹g and the gain ½gᵀH⁻¹g that it promises; directions without curvature are left alone."""
    if not len(gradient):
        return gradient, 0.0
    scale = np.sqrt(np.maximum(np.diag(hessian), np.finfo(float).tiny))
    unit, right = hessian / np.outer(scale, scale), gradient / scale
    step = None
    try:
        factor = np.linalg.cholesky(unit)
        if np.diag(factor).min() > 1e-5:
            step = np.linalg.solve(unit, right)
    except np.linalg.LinAlgError:
        pass
    if step is None:
        eigenvalues, vectors = np.linalg.eigh(unit)
        kept = eigenvalues > 1e-12 * eigenvalues[-1]
        step = vectors[:, kept] @ ((vectors[:, kept].T @ right) / eigenvalues[kept])
    return step / scale, 0.5 * float(right @ step)


def _only(gradient: np.ndarray, free: np.ndarray) -> np.ndarray:
    return np.where(free, gradient, 0.0)
