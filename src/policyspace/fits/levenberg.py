"""Levenberg–Marquardt on the free coordinates of a network's log-likelihood."""

from dataclasses import dataclass

import numpy as np

from policyspace.fits.network_rows import TINY, GaussianRows, NetworkRows, solve_scaled

TOLERANCE = 0.02
"""A climb ends when it gains less log-likelihood than this in `PATIENCE` steps: far less than restarts differ by."""

PATIENCE = 4


@dataclass(frozen=True)
class Peak:
    """Where a climb ended."""

    theta: np.ndarray  # standardised
    value: float
    gradient_norm: float
    converged: bool
    num_steps: int


def climb(
    rows: NetworkRows,
    theta: np.ndarray,
    free: np.ndarray,
    precision: np.ndarray,
    tolerance: float = TOLERANCE,
    max_steps: int = 200,
) -> Peak:
    """argmax log L(θ) − ½ θᵀdiag(precision)θ over the free coordinates, from θ on.

    (JᵀCJ + P + μD) step = ∇, D scaled as the diagonal. Output weights that are solved exactly at every point are not
    damped, so that the step of the others is that of variable projection (Kaufman's). μ follows the gain ratio.
    """
    damped = _damped(rows, free)
    point = rows.at(theta, free, precision)
    damping, growth = 1e-2, 2.0
    gains: list[float] = []
    scale = np.zeros(int(free.sum()))
    gradient = np.zeros_like(scale)
    stuck = False
    while len(gains) < max_steps and not stuck:
        gradient, gram = rows.system(point, free, steering=True)
        gradient = gradient - (precision * point.theta)[free]
        diagonal = gram.diagonal() + precision[free]
        # Never below the largest seen: a unit that saturates must not run away.
        scale = np.maximum(scale, diagonal)
        damped_scale = np.where(damped, np.maximum(scale, 1e-8 * scale.max(initial=0.0)), 0.0)
        stuck = True
        for _ in range(12):
            gram.flat[:: len(gram) + 1] = diagonal + damping * damped_scale
            step = solve_scaled(gram, gradient, 1e-12)
            trial = point.theta.copy()
            trial[free] += step
            proposal = rows.at(trial, free, precision)
            gain = proposal.value - point.value
            # The model without the damping: step @ gradient − ½ step @ gram @ step, as the step solves the damped system.
            promised = 0.5 * float(step @ (gradient + damping * damped_scale * step))
            if gain > 0 and np.isfinite(proposal.value):
                ratio = gain / max(promised, TINY)
                damping *= max(1 / 3, 1 - (2 * min(ratio, 2.0) - 1) ** 3)
                damping, growth, stuck = max(damping, 1e-12), 2.0, False
                point = proposal
                gains.append(gain)
                break
            if promised < tolerance / PATIENCE:
                break
            damping *= growth
            growth *= 2
        if len(gains) >= PATIENCE and sum(gains[-PATIENCE:]) < tolerance:
            break
    norm = float(np.abs(gradient).max(initial=0.0))
    return Peak(point.theta, point.value, norm, len(gains) < max_steps, len(gains))


def _damped(rows: NetworkRows, free: np.ndarray) -> np.ndarray:
    mask = np.ones(len(free), dtype=bool)
    if isinstance(rows, GaussianRows):
        mask[rows.last] = False
    return mask[free]
