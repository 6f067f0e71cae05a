"""The Boltzmann linear policy: k rows of weights for k+1 actions (Table 1, second row)."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, final

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.policies.base import Array, ExponentialFamily, Key
from policyspace.policies.groups import Groups


@final
class BoltzmannLinear(ExponentialFamily):
    """Discrete actions, π(a_i|s) ∝ exp(weights_i·φ(s)); the last action is the reference, whose weights are zero.

    With k rows for k+1 actions the space is identifiable. The second case of Table 1 is i = k+1. Actions are given
    as codes 0…k, in the order of `actions`. By default groups by feature, and an intercept.
    """

    discrete = True

    def __init__(
        self,
        features: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        groups: Groups | None = None,
        always: Sequence[str] = (),
        fixed: Any = 0.0,
        intercept: bool | None = None,
        blocks: dict[str, tuple[str, ...]] | None = None,
    ) -> None:
        if features is None:
            self._wait(actions, blocks, groups=groups, always=always, fixed=fixed, intercept=intercept)
            return
        self.action_names = choices(actions)
        super().__init__(tuple(features), self.action_names[:-1], groups, tuple(always), fixed, intercept, blocks)

    def expected_action(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray | None:
        """The probabilities of the first k actions."""
        return np.asarray(self.cumulant_gradient(self.natural(theta, features)))

    def describe(self) -> dict[str, Any]:
        """Whether it has an intercept."""
        return {"family": "boltzmann", "intercept": self.intercept}

    def smaller(self, features: Sequence[str], actions: Sequence[str], always: Sequence[str]) -> "BoltzmannLinear":
        """The linear Boltzmann policy of fewer features and actions."""
        return BoltzmannLinear(features, actions, "feature", always, 0.0, self.intercept)

    def action_statistic(self, actions: Array) -> Array:
        """u(a_i) = e_i, and zero for the reference."""
        xp = actions.__array_namespace__()
        return xp.where(actions[..., None] == xp.arange(len(self.row_names)), 1.0, 0.0)

    def log_base(self, actions: Array) -> Array:
        """log h = 0."""
        xp = actions.__array_namespace__()
        return xp.zeros(actions.shape)

    def cumulant(self, eta: Array) -> Array:
        """A(η) = log(1 + Σ exp η_i), without overflow."""
        xp = eta.__array_namespace__()
        top = xp.maximum(xp.max(eta, axis=-1), 0.0)
        return top + xp.log(xp.exp(-top) + xp.sum(xp.exp(eta - top[..., None]), axis=-1))

    def cumulant_gradient(self, eta: Array) -> Array:
        """E[u] = the probabilities of the first k actions."""
        xp = eta.__array_namespace__()
        return xp.exp(eta - self.cumulant(eta)[..., None])

    def cumulant_hessian(self, eta: Array) -> Array:
        """Cov[u] = diag(p) − ppᵀ."""
        xp = eta.__array_namespace__()
        p = self.cumulant_gradient(eta)
        return p[..., :, None] * (xp.eye(len(self.row_names)) - p[..., None, :])

    def noise_covariance(self, theta: Array | None = None, data: Demonstrations | None = None) -> None:
        """There is none: actions are choices."""

    def sample(self, key: Key, theta: Array, features: Array) -> Array:
        """Action codes: with NumPy the largest of η + Gumbel noise, with JAX by inversion, one uniform number each."""
        eta = self.natural(theta, features)
        if isinstance(key, np.random.Generator):
            logits = np.concatenate([eta, np.zeros_like(eta[..., :1])], axis=-1)
            return np.argmax(logits + key.gumbel(size=logits.shape), axis=-1)
        return choose(key, eta.T).T


def choices(actions: Sequence[str] | None) -> tuple[str, ...]:
    """The actions of a Boltzmann policy, of which there must be two."""
    if actions is None or len(actions) < 2:
        raise InputError(f"a Boltzmann policy chooses among at least two actions, found {len(actions or ())}.")
    return tuple(actions)


def choose(key: Key, eta: Array) -> Array:
    """Action codes […] for a JAX key from logits [k, …], the last action's being 0: how many thresholds u has passed.

    With odds o_i = exp(η_i − top), action i is chosen where Σ_{j<i} o_j ≤ u Σ_j o_j < Σ_{j≤i} o_j.
    """
    from policyspace.policies.jax_setup import jax, jnp

    top = jnp.maximum(jnp.max(eta, axis=0), 0.0)
    odds = [jnp.exp(row - top) for row in eta]
    below = list(accumulate(odds))
    level = jax.random.uniform(key, top.shape, jnp.float64) * (below[-1] + jnp.exp(-top))
    return sum((level >= threshold).astype(jnp.int32) for threshold in below)
