"""Policy spaces Π_Θ: how an agent could act, and the groups of parameters that are tested.

Every formula is written once for NumPy and JAX: `xp` is the namespace of the array that comes in.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Self, final

import numpy as np

from policyspace.policies.groups import INTERCEPT, Group, Groups, Support, linear_groups

Array = Any  # a NumPy or a JAX array
Key = Any  # a JAX key or a numpy.random.Generator


class PolicySpace(ABC):
    """A set of policies {π_θ : θ ∈ R^d} with a partition of θ into groups, the units that are tested."""

    groups: tuple[Group, ...]
    fixed: np.ndarray  # [d], what a parameter is worth when the agent does not control it
    linear: bool = False  # whether θ are weights of the features, which data determine one by one
    many_peaks: bool = False  # whether the likelihood has many: then λ has no χ² law, and a fit takes seconds

    @property
    def num_parameters(self) -> int:
        """The dimension d of θ."""
        return len(self.fixed)

    @property
    def tested(self) -> tuple[int, ...]:
        """The groups that are tested: all but those always controlled."""
        return tuple(i for i, group in enumerate(self.groups) if not group.always)

    @property
    def everything(self) -> Support:
        """The full support, I = {1, …, d}."""
        return frozenset(range(len(self.groups)))

    def free(self, support: Support) -> np.ndarray:
        """The mask [d] of the parameters that Θ_I leaves free: groups in I, and those always controlled."""
        mask = np.zeros(self.num_parameters, dtype=bool)
        for i, group in enumerate(self.groups):
            if group.always or i in support:
                mask[list(group.indices)] = True
        return mask

    def named(self, support: Support) -> list[str]:
        """The groups of a support by name, in order; the intercept goes without saying."""
        return [
            group.name
            for i, group in enumerate(self.groups)
            if (group.always or i in support) and group.name != INTERCEPT
        ]

    def with_always(self, names: Iterable[str]) -> Self:
        """The same space with more groups declared always controlled: they are not tested any more."""
        declared = set(names)
        space = copy.copy(self)
        space.groups = tuple(replace(g, always=g.always or g.name in declared) for g in self.groups)
        return space

    def smaller(self, features: Sequence[str], actions: Sequence[str], always: Sequence[str]) -> "PolicySpace | None":
        """The same kind of space for fewer features and actions, one group a feature; None where there is none."""
        return None

    def information_root(self, theta: Array, features: Array, actions: Array) -> Array:
        """R [m, T, k, d] with E[RᵀR] = F(θ, s), for JAX: here k = 1, the score of the action that was taken."""
        from policyspace.policies.jax_setup import jax

        scores = jax.vmap(jax.vmap(jax.grad(self.log_prob), (None, 0, 0)), (None, 0, 0))
        return scores(theta, features, actions)[:, :, None, :]

    @abstractmethod
    def log_prob(self, theta: Array, features: Array, actions: Array) -> Array:
        """log π_θ(a|s) for features [..., q] and actions [...] or [..., k]."""

    @abstractmethod
    def sample(self, key: Key, theta: Array, features: Array) -> Array:
        """Actions a ~ π_θ(·|s) for features [..., q]."""


class ExponentialFamily(PolicySpace):
    """Linear policies π_θ(a|s) = h(a) exp{θᵀt(s,a) − A(θ,s)} (Definition 4.1), θ = vec of weights [k, q].

    The statistic is a Kronecker product, t(s,a) = u(a) ⊗ φ(s), and the log-partition depends on the state through
    the k natural parameters η = weights·φ(s) alone; a family says what u, log h and A(η) with its two derivatives are.
    """

    feature_names: tuple[str, ...]  # without the intercept
    row_names: tuple[str, ...]  # what each of the k rows of the weights belongs to
    intercept: bool
    linear = True

    def __init__(
        self,
        features: tuple[str, ...],
        rows: tuple[str, ...],
        groups: Groups,
        always: tuple[str, ...],
        fixed: Any,
        intercept: bool,
        blocks: dict[str, tuple[str, ...]] | None,
    ) -> None:
        self.feature_names, self.row_names, self.intercept = features, rows, intercept
        self.groups, self.fixed = linear_groups(features, rows, groups, always, fixed, intercept, blocks or {})

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns of φ(s): the intercept, where there is one, then the features."""
        return ((INTERCEPT,) if self.intercept else ()) + self.feature_names

    def weights(self, theta: Array) -> Array:
        """θ as the matrix [k, q] of the paper's Table 1."""
        return theta.reshape(*theta.shape[:-1], len(self.row_names), len(self.column_names))

    def design(self, features: Array) -> Array:
        """φ(s) [..., q]: the features with the constant in front."""
        if not self.intercept:
            return features
        xp = features.__array_namespace__()
        return xp.concatenate([xp.ones_like(features[..., :1]), features], axis=-1)

    @abstractmethod
    def action_statistic(self, actions: Array) -> Array:
        """u(a) [..., k]."""

    @abstractmethod
    def log_base(self, actions: Array) -> Array:
        """log h(a) [...]."""

    @abstractmethod
    def cumulant(self, eta: Array) -> Array:
        """A(η) [...] for natural parameters [..., k]."""

    @abstractmethod
    def cumulant_gradient(self, eta: Array) -> Array:
        """∇A(η) = E[u(a)] [..., k]."""

    @abstractmethod
    def cumulant_hessian(self, eta: Array) -> Array:
        """∇²A(η) = Cov[u(a)] [..., k, k]."""

    @final
    def natural(self, theta: Array, features: Array) -> Array:
        """η = weights·φ(s) [..., k]."""
        weights = self.weights(theta)
        if not self.intercept:
            return features @ weights.T
        return features @ weights[:, 1:].T + weights[:, 0]

    @final
    def sufficient_statistic(self, features: Array, actions: Array) -> Array:
        """t(s,a) = u(a) ⊗ φ(s) [..., d] (Table 1)."""
        return _kronecker(self.action_statistic(actions), self.design(features))

    @final
    def log_partition(self, theta: Array, features: Array) -> Array:
        """A(θ,s) [...] (Definition 4.1)."""
        return self.cumulant(self.natural(theta, features))

    @final
    def log_prob(self, theta: Array, features: Array, actions: Array) -> Array:
        """log π_θ(a|s) = log h(a) + θᵀt(s,a) − A(θ,s)."""
        xp = theta.__array_namespace__()
        eta = self.natural(theta, features)
        return self.log_base(actions) + xp.sum(eta * self.action_statistic(actions), axis=-1) - self.cumulant(eta)

    @final
    def score(self, theta: Array, features: Array, actions: Array) -> Array:
        """∇_θ log π_θ(a|s) = t(s,a) − E[t(s,·)] = t̄(s,a,θ) [..., d]."""
        eta = self.natural(theta, features)
        return _kronecker(self.action_statistic(actions) - self.cumulant_gradient(eta), self.design(features))

    @final
    def information_root(self, theta: Array, features: Array, actions: Array) -> Array:
        """R [..., k, d] with RᵀR = F(θ, s), whatever the action."""
        xp = features.__array_namespace__()
        covariance = self.cumulant_hessian(self.natural(theta, features))
        root = xp.linalg.cholesky(covariance + 1e-12 * xp.eye(len(self.row_names)))
        joint = root.swapaxes(-1, -2)[..., None] * self.design(features)[..., None, None, :]
        return joint.reshape(*joint.shape[:-2], -1)

    @final
    def fisher(self, theta: Array, features: Array, weights: Array | None = None) -> Array:
        """The mean over the states [n, q] of F(θ,s) = Cov[u] ⊗ φφᵀ, the empirical F̂ of Theorem 4.2 [d, d]."""
        xp = theta.__array_namespace__()
        phi, covariance = self.design(features), self.cumulant_hessian(self.natural(theta, features))
        share = xp.full(len(phi), 1.0 / len(phi)) if weights is None else weights / xp.sum(weights)
        blocks = xp.einsum("n,nab,ni,nj->aibj", share, covariance, phi, phi, optimize=True)
        return blocks.reshape(self.num_parameters, self.num_parameters)


def _kronecker(u: Array, phi: Array) -> Array:
    """u ⊗ φ over the last axis [..., k·q]."""
    product = u[..., :, None] * phi[..., None, :]
    return product.reshape(*product.shape[:-2], -1)
