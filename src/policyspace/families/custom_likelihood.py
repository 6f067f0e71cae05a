"""The likelihood of a user-defined policy: quasi-Newton from several starts, derivatives by JAX."""

from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.optimize import minimize

from policyspace.data.sample import Sample
from policyspace.errors import InputError
from policyspace.families.base import Support
from policyspace.families.custom import CustomPolicy
from policyspace.families.jax_backend import jax, jnp
from policyspace.families.likelihood import ChiSquare, Fit, Likelihood

NUM_STARTS = 4
BLOCK = 1024


class CustomLikelihood(Likelihood):
    """L-BFGS on the free coordinates; like a network's, a fit is the best peak found and says how sure it is."""

    space: CustomPolicy

    def __init__(self, space: CustomPolicy, data: Sample, seed: int = 0) -> None:
        if data.num_rows <= space.num_parameters:
            raise InputError(
                f"{data.num_rows} rows are too few for a policy of {space.num_parameters} parameters: collect more rows."
            )
        if data.names != space.feature_names:
            raise InputError(
                f"the policy space has the features {', '.join(space.feature_names)}, "
                f"the demonstrations {', '.join(data.names)}: they must be the same, in the same order."
            )
        self.space, self.num_rows, self.law, self._seed = space, data.num_rows, ChiSquare(), seed
        self.total_weight = data.total_weight
        self.diverging = np.zeros(space.num_parameters, dtype=bool)
        self._features, self._actions = jnp.asarray(data.features), jnp.asarray(data.actions)
        self._weights = jnp.ones(data.num_rows) if data.weights is None else jnp.asarray(data.weights)
        value, gradient = self._value(space.start)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            raise InputError(
                "log_prob or its gradient is not finite at the given params on these demonstrations: start elsewhere, "
                "or look for actions that the policy cannot play."
            )
        self._fits: dict[Support, Fit] = {}
        self.full = self.fit(space.full_support)

    def _value(self, theta: np.ndarray) -> tuple[jax.Array, jax.Array]:
        """−log L per pair and its gradient."""
        return _mean_nll(self.space)(jnp.asarray(theta), self._features, self._actions, self._weights)

    def fit(self, support: Support, start: np.ndarray | None = None) -> Fit:
        """The best of several climbs inside Θ_I: the user's params, noise around them, and the fits known so far."""
        free, rng = self.space.free_mask(support), np.random.default_rng([self._seed, *sorted(support)])
        fresh = [self.space.start + (0.5 * rng.normal(size=len(free)) if i else 0.0) for i in range(NUM_STARTS)]
        known = [fit.theta for other, fit in self._fits.items() if other != support]
        warm = [*([] if start is None else [start]), *known]
        found = [self._climb(np.where(free, begin, self.space.fixed), free) for begin in [*fresh, *warm]]
        best = min(found, key=lambda result: result[1])
        noise = 2 * self.total_weight * (sorted(result[1] for result in found[: len(fresh)])[1] - best[1])
        fit = Fit(
            best[0], support, -self.total_weight * best[1], best[2] * self.total_weight, best[3], False,
            self.num_free(support), self.law, max(noise, 0.0),
        )  # fmt: skip
        self._fits[support] = fit
        return fit

    def _climb(self, start: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, float, float, bool]:
        def embedded(part: np.ndarray) -> tuple[float, np.ndarray]:
            theta = start.copy()
            theta[free] = part
            value, gradient = self._value(theta)
            slope = np.asarray(gradient)[free]
            return (float(value), slope) if np.isfinite(value) else (1e100, np.zeros_like(slope))

        theta = start.copy()
        if not free.any():
            return theta, float(self._value(theta)[0]), 0.0, True
        options = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-13, "gtol": 1e-8}
        result = minimize(embedded, start[free], jac=True, method="L-BFGS-B", options=options)
        theta[free] = result.x
        return theta, float(result.fun), float(np.abs(result.jac).max()), bool(result.success)

    def replace_full_fit_if_better(self, restricted: Fit) -> None:
        """A full fit that a restricted one beats climbs on from there."""
        if restricted.log_likelihood > self.full.log_likelihood:
            self.full = self.fit(self.space.full_support, restricted.theta)

    def num_free(self, support: Support) -> int:
        """The rank of the Fisher information on the free coordinates, at the full fit."""
        free = self.space.free_mask(support)
        if not self._fits:  # the full fit itself asks before there is one
            return int(free.sum())
        scale = np.sqrt(np.diag(self._information))
        scale[scale == 0] = 1.0
        correlation = self._information / np.outer(scale, scale)
        eigenvalues = np.linalg.eigvalsh(correlation[np.ix_(free, free)])
        return int((eigenvalues > 1e-9).sum())

    @property
    def identifiable(self) -> bool:
        """Whether the Fisher information at the full fit is non-singular."""
        return self.num_free(self.space.full_support) == self.space.num_parameters

    @cached_property
    def _information(self) -> np.ndarray:
        """The mean of the scores' outer products, which needs no expectation over actions."""
        theta = jnp.asarray(self._fits[self.space.full_support].theta)
        score = _score(self.space)
        total = np.zeros((self.space.num_parameters,) * 2)
        for start in range(0, self.num_rows, BLOCK):
            rows = slice(start, start + BLOCK)
            block = np.asarray(score(theta, self._features[rows], self._actions[rows]))
            total += block.T @ (block * np.asarray(self._weights[rows])[:, None])
        return total / self.total_weight

    def information(self) -> np.ndarray:
        """F̂ by the scores of the pairs that were seen."""
        return self._information

    @property
    def restart_noise(self) -> float:
        """By how much λ moves with other starts, at worst over the fits made so far."""
        return max(fit.restart_noise for fit in self._fits.values())

    def remarks(self) -> list[str]:
        """How far apart the climbs ended."""
        if self.restart_noise <= 0.1:
            return []
        return [f"with other starts λ moves by up to {self.restart_noise:.1f}: this likelihood has many peaks."]


@lru_cache(maxsize=32)
def _mean_nll(space: CustomPolicy) -> Any:
    """Compiled once a space, whatever the data: simulated and split data sets of one size share it."""

    def mean_nll(theta: jax.Array, features: jax.Array, actions: jax.Array, weights: jax.Array) -> jax.Array:
        return -jnp.sum(weights * space.log_prob(theta, features, actions)) / jnp.sum(weights)

    return jax.jit(jax.value_and_grad(mean_nll))


@lru_cache(maxsize=32)
def _score(space: CustomPolicy) -> Any:
    return jax.jit(jax.jacobian(space.log_prob))
