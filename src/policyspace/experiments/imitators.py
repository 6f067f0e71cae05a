"""Imitators of a Boltzmann agent from counts of its actions: maximum likelihood in a space, ridge, lasso, stopped Adam.

Every action has a row of weights here, four for four actions, as in the authors' code. Such weights are known only up to
what all rows share, so that they are compared in one gauge: the mean over the actions removed.
"""

from dataclasses import dataclass

import numpy as np
import optax
from scipy.optimize import minimize
from scipy.special import log_softmax

from policyspace.fits.newton import maximise
from policyspace.policies.jax_setup import jax, jnp

PENALTY = 0.001
"""Of ridge and lasso for each episode, as the authors have it; and, once whatever the episodes, of maximum likelihood."""

ADAM_STEPS, ADAM_RATE = 1000, 0.03


@dataclass(frozen=True)
class Counts:
    """How often each action was seen in each state: all that the likelihood of a Boltzmann agent depends on."""

    design: np.ndarray  # [s, q], the constant in front
    counts: np.ndarray  # [s, a]

    @property
    def shape(self) -> tuple[int, int]:
        """Of the weights: actions × columns."""
        return self.counts.shape[1], self.design.shape[1]

    def at(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log L = Σ_s Σ_a n_sa log π(a|s) and its gradient [a·q]."""
        log_policy = log_softmax(self.design @ theta.reshape(self.shape).T, axis=1)
        residual = self.counts - self.counts.sum(axis=1, keepdims=True) * np.exp(log_policy)
        return float(np.sum(self.counts * log_policy)), (residual.T @ self.design).ravel()

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """−∇² log L = Σ_s n_s (diag p − ppᵀ) ⊗ φφᵀ [a·q, a·q]."""
        p = np.exp(log_softmax(self.design @ theta.reshape(self.shape).T, axis=1))
        spread = p[:, :, None] * (np.eye(self.shape[0]) - p[:, None, :]) * self.counts.sum(axis=1)[:, None, None]
        blocks = np.einsum("sab,si,sj->aibj", spread, self.design, self.design, optimize=True)
        return blocks.reshape(theta.size, theta.size)


def ridge(data: Counts, penalty: float, columns: np.ndarray | None = None) -> np.ndarray:
    """argmax log L(θ) − penalty·‖θ‖² over the weights of some columns [q], by default all [a, q]."""
    rows, q = data.shape
    free = np.tile(np.ones(q, dtype=bool) if columns is None else columns, rows)
    curvature = 2 * penalty * np.eye(rows * q)

    def at(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = data.at(theta)
        return value - penalty * float(theta @ theta), gradient - 2 * penalty * theta

    best = maximise(at, lambda theta: data.hessian(theta) + curvature, np.zeros(rows * q), free)
    return best.theta.reshape(data.shape)


def lasso(data: Counts, penalty: float) -> np.ndarray:
    """argmax log L(θ) − penalty·‖θ‖₁ [a, q]: with θ = u − v and u, v ≥ 0 the penalty is linear, and L-BFGS-B applies."""
    size = data.counts.shape[1] * data.design.shape[1]

    def loss(parts: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = data.at(parts[:size] - parts[size:])
        return penalty * float(parts.sum()) - value, penalty + np.concatenate([-gradient, gradient])

    options = {"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-12, "gtol": 1e-6}
    best = minimize(
        loss, np.zeros(2 * size), jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2 * size, options=options
    )
    parts: np.ndarray = best.x
    return (parts[:size] - parts[size:]).reshape(data.shape)


def adam(data: Counts, columns: np.ndarray | None = None, squares: float = 0.0, sizes: float = 0.0) -> np.ndarray:
    """What 1000 steps of Adam make of log L(θ) − squares·‖θ‖² − sizes·‖θ‖₁ from zero, as the authors fit [a, q]."""
    free = np.ones(data.shape[1]) if columns is None else columns.astype(float)
    return np.asarray(_compiled(data.design, data.counts, free, squares, sizes))


def _climb(design: jax.Array, counts: jax.Array, free: jax.Array, squares: float, sizes: float) -> jax.Array:
    method = optax.adam(ADAM_RATE)

    def loss(weights: jax.Array) -> jax.Array:
        fit = jnp.sum(counts * jax.nn.log_softmax(design @ weights.T))
        return -fit + squares * jnp.sum(weights**2) + sizes * jnp.sum(jnp.abs(weights))

    def step(_: int, carry: tuple[jax.Array, optax.OptState]) -> tuple[jax.Array, optax.OptState]:
        weights, state = carry
        update, state = method.update(jax.grad(loss)(weights) * free, state)
        return weights + update * free, state

    start = jnp.zeros((counts.shape[1], design.shape[1]))
    return jax.lax.fori_loop(0, ADAM_STEPS, step, (start, method.init(start)))[0]


_compiled = jax.jit(_climb)


def in_gauge(weights: np.ndarray) -> np.ndarray:
    """Weights [a, q] with the mean over the actions removed, which no policy notices."""
    return weights - weights.mean(axis=0)


def divergence(truth: np.ndarray, weights: np.ndarray, design: np.ndarray, visits: np.ndarray) -> float:
    """E KL(π*(·|s) ‖ π̂(·|s)) over the states as often as they are visited [s]: the log-loss that imitating badly adds."""
    wanted, found = (log_softmax(design @ w.T, axis=1) for w in (truth, weights))
    return float(visits @ np.sum(np.exp(wanted) * (wanted - found), axis=1) / visits.sum())
