"""Maximum likelihood as the paper makes it: so many steps of Adam at a fixed rate, from a start, for all supports at once.

Nothing is asked of the end of such a path: it may lie below that of a smaller support, and λ is then negative.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from policyspace.fits.merge import merge_rows
from policyspace.fits.softmax import softmax
from policyspace.policies import PolicySpace
from policyspace.policies.boltzmann import BoltzmannLinear
from policyspace.policies.groups import Support
from policyspace.policies.network import GaussianNetwork

Evaluate = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""θ [m, d] → log L(θ) [m] and its gradient [m, d]."""

BETAS, EPSILON = (0.9, 0.999), 1e-8
"""Of Adam, as its authors have them; the paper names no others."""

CHUNK = 64
"""Rows whose hidden layers, of all θ together, stay in the cache."""


@dataclass(frozen=True)
class Ascent:
    """Where the paths of several supports came to: at their last step, and at the most likely of all their points."""

    last: np.ndarray  # log L [m]
    last_theta: np.ndarray  # [m, d]
    best: np.ndarray
    best_theta: np.ndarray


def ascend(evaluate: Evaluate, starts: np.ndarray, free: np.ndarray, rate: float, num_steps: int) -> Ascent:
    """`num_steps` of Adam from every start [m, d], each moving only what is `free` [m, d]."""
    theta = np.array(starts, dtype=np.float64)
    first, second = np.zeros_like(theta), np.zeros_like(theta)
    value, slope = evaluate(theta)
    best, best_theta = value.copy(), theta.copy()
    for step in range(1, num_steps + 1):
        slope = np.where(free, slope, 0.0)
        first = BETAS[0] * first + (1 - BETAS[0]) * slope
        second = BETAS[1] * second + (1 - BETAS[1]) * slope**2
        size = np.sqrt(second / (1 - BETAS[1] ** step)) + EPSILON
        theta = theta + rate / (1 - BETAS[0] ** step) * first / size
        value, slope = evaluate(theta)
        better = value > best
        best, best_theta = np.where(better, value, best), np.where(better[:, None], theta, best_theta)
    return Ascent(value, theta, best, best_theta)


def adam_fits(
    space: PolicySpace,
    evaluate: Evaluate,
    supports: Sequence[Support],
    rate: float,
    num_steps: int,
    spread: float = 0.0,
    seed: int = 0,
) -> Ascent:
    """The fits inside several Θ_I; each starts from weights of its own, uniform on (−spread, spread)."""
    free = np.array([space.free(support) for support in supports])
    starts = np.random.default_rng(seed).uniform(-spread, spread, free.shape)
    return ascend(evaluate, np.where(free, starts, space.fixed), free, rate, num_steps)


def boltzmann_likelihood(space: BoltzmannLinear, features: np.ndarray, actions: np.ndarray) -> Evaluate:
    """log L(θ) = θᵀT − Σ_s N_s A(θ, s) of a Boltzmann linear policy, over the different states that were seen."""
    k = len(space.row_names)
    states, counts = merge_rows(features, actions, None, k + 1) or (features, np.eye(k + 1)[actions])
    x, visits = np.asarray(space.design(states), dtype=np.float64), counts.sum(axis=1)
    statistic = (counts[:, :k].T @ x).ravel()
    weighted = x.T * visits

    def evaluate(thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        m = len(thetas)
        columns = np.ascontiguousarray(thetas.reshape(m, k, -1).transpose(1, 2, 0))
        probabilities, log_partition = softmax(x, columns)
        mean = np.stack([weighted @ p for p in probabilities])  # [k, q, m]
        return thetas @ statistic - visits @ log_partition, statistic - mean.transpose(2, 0, 1).reshape(m, -1)

    return evaluate


def network_likelihood(space: GaussianNetwork, features: np.ndarray, actions: np.ndarray) -> Evaluate:
    """log L of a Gaussian network, its gradient by back-propagation; all θ go over a chunk of rows together."""
    inputs, wanted = np.ascontiguousarray(features.T), np.ascontiguousarray(actions.T)
    parts = [slice(first, first + CHUNK) for first in range(0, len(features), CHUNK)]
    constant = -0.5 * len(features) * float(np.linalg.slogdet(2 * np.pi * space.covariance)[1])

    def evaluate(thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, slopes = np.full(len(thetas), constant), np.zeros_like(thetas)
        for rows in parts:
            value, slope = _of_rows(space, thetas, inputs[:, rows], wanted[:, rows])
            values += value
            slopes += slope
        return values, slopes

    return evaluate


def _of_rows(
    space: GaussianNetwork, thetas: np.ndarray, x: np.ndarray, actions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """−½ Σ (a − z)ᵀΣ⁻¹(a − z) [m] and its gradient [m, d] at every θ [m, d], over rows x [q, n]."""
    indices = space.layer_indices
    *inner, last = ((thetas[:, where], thetas[:, biases, None]) for where, biases in indices)
    values = [x]
    for weights, biases in inner:
        z = weights @ values[-1]
        z += biases
        values.append(space.activate(z))
    left = actions - last[0] @ values[-1] - last[1]
    delta, slopes = space.precision @ left, np.empty_like(thetas)
    found = -0.5 * (delta * left).sum(axis=(1, 2))
    for below, (weights, _), (where, biases) in zip(
        reversed(values), (last, *reversed(inner)), reversed(indices), strict=True
    ):
        slopes[:, where], slopes[:, biases] = delta @ below.swapaxes(-1, -2), delta.sum(axis=-1)
        if below is not x:
            delta = weights.swapaxes(1, 2) @ delta
            delta *= space.slope(below)
    return found, slopes
