"""Policy spaces Π_Θ: how an agent could act, and the groups of parameters that are tested.

Every formula is written once for NumPy and JAX: `xp` is the namespace of the array that comes in.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np

from policyspace.data.alternatives import Choices
from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.policies.groups import INTERCEPT, Group, Groups, Support, linear_groups, whole_columns

Array = Any  # a NumPy or a JAX array
Key = Any  # a JAX key or a numpy.random.Generator

RECORDED = ("hidden", "activation", "covariance", "intercept", "attributes", "available", "specific", "offset")
"""What a simulated file records about the policy of its agent."""


class PolicySpace(ABC):
    """A set of policies {π_θ : θ ∈ R^d} with a partition of θ into groups, the units that are tested.

    A space that is made without features keeps what was said about it until `bind` gives it those of the data.
    """

    discrete: ClassVar[bool | None] = None  # are the actions labels, rather than numbers? None: either
    unsaid: ClassVar[Mapping[str, Any]] = {}  # what holds where neither the user nor the data's file says anything

    groups: tuple[Group, ...]
    fixed: np.ndarray  # [d], what a parameter is worth when the agent does not control it
    feature_names: tuple[str, ...]  # without the intercept
    action_names: tuple[str, ...]  # labels, or the components of a continuous action
    interactions: Mapping[int, Support] = MappingProxyType({})  # the groups that hold a group and go with it
    _said: Mapping[str, Any] | None = None  # about a space that waits for its data
    _missing: str | None = None  # why some attributes are not there yet
    choices: Choices | None = None  # which columns of a table are attributes of alternatives, where that was said
    offset: tuple[str, ...] = ()  # attributes of alternatives whose coefficient is known to be 1

    if not TYPE_CHECKING:  # types are checked as if every attribute were there

        def __getattr__(self, name: str) -> Any:
            if self._missing is not None and not name.startswith("_"):
                raise InputError(self._missing)
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")

    def _wait(self, actions: Any, blocks: Any, **said: Any) -> None:
        """Keep what was said until the features are known; actions and blocks come with them."""
        name = type(self).__name__
        if actions is not None or blocks is not None:
            found = "blocks=" if actions is None else "actions="
            raise InputError(
                f"a {name} without features takes all names from the data, found {found}: name both or none."
            )
        self._said = said
        self._missing = (
            f"this {name} has no features yet: name them when it is made, or give it those of data by bind(data)."
        )

    def bind(self, data: Demonstrations) -> "PolicySpace":
        """The same space over the features and actions of the data; what was not said is as the data's file records it.

        A space that has its features is returned as it is.
        """
        recorded = recorded_policy(data)
        if recorded.get("offset") and not (self.offset if self._said is None else "offset" in self._said):
            raise InputError(
                f"an offset of labels belongs to linear policies, found a {type(self).__name__}: say 'boltzmann', or a "
                "ChoiceLinear that names it."
            )
        if self._said is None:
            return self
        if self.discrete is not None and self.discrete != data.discrete:
            needed, found = ("labels", "numbers") if self.discrete else ("numbers", "labels")
            other = "Gaussian" if self.discrete else "Boltzmann"
            raise InputError(
                f"a {type(self).__name__} needs {needed} as actions, found {found}: use the {other} policy."
            )
        unsaid = dict(self.unsaid) | {name: recorded[name] for name in RECORDED if recorded.get(name) is not None}
        words = {name: unsaid.get(name) if value is None else value for name, value in self._said.items()}
        made: Callable[..., PolicySpace] = type(self)
        return made(data.names, data.action_names, **words, blocks=dict(data.blocks))

    def with_noise(self, estimate: Callable[[Any], np.ndarray]) -> "PolicySpace":
        """The same space, with its covariance as estimated where it must be known and is not."""
        return self

    def acting(self, theta: np.ndarray, data: Demonstrations | str = "nothing was seen") -> "PolicySpace":
        """The same space able to draw actions: an unknown covariance is what θ leaves in the data, one without data."""
        return self

    guess: bool = False  # whether the agent may well be outside of the space: then a study tests it without a model
    linear: bool = False  # whether θ are weights of the features, which data determine one by one
    many_peaks: bool = False  # whether the likelihood has many: then λ has no χ² law, and a fit takes seconds

    @property
    def num_parameters(self) -> int:
        """The dimension d of θ."""
        return len(self.fixed)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns of φ(s) in a linear policy; none in others."""
        return ()

    def as_linear(self, what: str) -> "ExponentialFamily":
        """The same space, which must be a linear one for what is asked."""
        raise InputError(
            f"{what} are for linear policies, found {type(self).__name__}: ask about the linear policy of the same "
            "features, and identify with this one."
        )

    @property
    def tested(self) -> tuple[int, ...]:
        """The groups that are tested: all but those always controlled."""
        return tuple(i for i, group in enumerate(self.groups) if not group.always)

    @property
    def everything(self) -> Support:
        """The full support, I = {1, …, d}."""
        return frozenset(range(len(self.groups)))

    @property
    def rows_to_learn_from(self) -> int:
        """How many rows there should be before a first policy is learned from them."""
        return 2 * self.num_parameters

    def weights_by_row(self, theta: np.ndarray) -> dict[str, list[float]]:
        """θ as one list of weights a row, where the policy is linear."""
        return {}

    def group_columns(self) -> dict[int, tuple[int, ...]] | None:
        """The feature columns of every group, the untested ones too, where groups hold all the weights of their features.

        None where groups are anything else: single parameters, hidden units, outputs.
        """
        return None

    def expected_action(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray | None:
        """The mean action, or the probabilities of all actions but the last, for features [n, q]; None where unknown."""
        return None

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

    def with_interactions(self, interactions: Mapping[str, Sequence[str]]) -> Self:
        """The same space, in which a group is tested together with the interactions that it is part of (marginality)."""
        number = {group.name: g for g, group in enumerate(self.groups)}
        known = {
            number[name]: frozenset(number[other] for other in others if other in number)
            for name, others in interactions.items()
            if name in number
        }
        space = copy.copy(self)
        space.interactions = {g: others for g, others in known.items() if others}
        return space

    def without(self, group: int) -> Support:
        """The support of the hypothesis that a group is not used: its interactions are not used either."""
        return self.everything - {group} - self.interactions.get(group, frozenset())

    def as_guess(self) -> Self:
        """The same space as a guess: nobody knows that the agent is one of it."""
        space = copy.copy(self)
        space.guess = True
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

    def score(self, theta: Array, features: Array, actions: Array) -> Array:
        """∇_θ log π_θ(a|s) [..., d]; unless the family knows it, by JAX's differentiation of the density."""
        from policyspace.policies.jax_setup import jax

        each = jax.grad(self.log_prob)
        for _ in features.shape[:-1]:
            each = jax.vmap(each, (None, 0, 0))
        return each(theta, features, actions)

    def score_factors(self, theta: Array, features: Array, actions: Array) -> tuple[Array, Array]:
        """Two arrays [..., k] and [..., q] whose Kronecker product is the score; here the score itself and a 1."""
        score = self.score(theta, features, actions)
        return score, score.__array_namespace__().ones_like(score[..., :1])

    def describe(self) -> dict[str, Any]:
        """Its family and the arguments of its class beside features, actions and groups, as JSON can hold them."""
        return {"family": type(self).__name__}


def recorded_policy(data: Demonstrations) -> Mapping[str, Any]:
    """What the file of the data records about the policy of its agent."""
    recorded = data.metadata.get("policy")
    return recorded if isinstance(recorded, Mapping) else {}


@final
@dataclass(frozen=True)
class Policy:
    """One policy of a space: its density and its actions."""

    space: PolicySpace
    theta: np.ndarray

    def log_probs(self, features: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """log π_θ(a_i|s_i) [n]."""
        return np.asarray(self.space.log_prob(self.theta, features, actions))

    def sample(self, rng: np.random.Generator, features: np.ndarray) -> np.ndarray:
        """a_i ~ π_θ(·|s_i)."""
        return np.asarray(self.space.sample(rng, self.theta, features))


class ExponentialFamily(PolicySpace):
    """Linear policies π_θ(a|s) = h(a) exp{θᵀt(s,a) − A(θ,s)} (Definition 4.1), θ = vec of weights [k, q].

    The statistic is a Kronecker product, t(s,a) = u(a) ⊗ φ(s), and the log-partition depends on the state through
    the k natural parameters η = weights·φ(s) alone; a family says what u, log h and A(η) with its two derivatives are.
    """

    quadratic: ClassVar[bool] = False  # is A(η) quadratic, so that the information does not depend on θ?
    row_names: tuple[str, ...]  # what each of the k rows of the weights belongs to
    intercept: bool
    linear = True

    def __init__(
        self,
        features: tuple[str, ...],
        rows: tuple[str, ...],
        groups: Groups | None,
        always: tuple[str, ...],
        fixed: Any,
        intercept: bool | None,
        blocks: dict[str, tuple[str, ...]] | None,
    ) -> None:
        self.feature_names, self.row_names, self.intercept = features, rows, intercept is None or bool(intercept)
        groups = "feature" if groups is None else groups
        self.groups, self.fixed = linear_groups(features, rows, groups, always, fixed, self.intercept, blocks or {})

    @property
    def rows_to_learn_from(self) -> int:
        """Some rows a column: linear policies are learned from few."""
        return 5 * len(self.column_names)

    def weights_by_row(self, theta: np.ndarray) -> dict[str, list[float]]:
        """The rows of the matrix of weights by name."""
        return dict(zip(self.row_names, self.weights(theta).tolist(), strict=True))

    def group_columns(self) -> dict[int, tuple[int, ...]] | None:
        """Whole columns of the matrix of weights."""
        return whole_columns(self.groups, len(self.row_names), len(self.column_names), int(self.intercept))

    def spread(self, features: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The standard deviation of what each weight is multiplied by [d]; NaN for the constant."""
        around = features - np.average(features, axis=0, weights=weights)
        own = np.sqrt(np.average(around**2, axis=0, weights=weights))
        return np.tile(np.concatenate([np.full(int(self.intercept), np.nan), own]), len(self.row_names))

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns of φ(s): the intercept, where there is one, then the features."""
        return ((INTERCEPT,) if self.intercept else ()) + self.feature_names

    @final
    def as_linear(self, what: str) -> "ExponentialFamily":
        """The same space: it is linear."""
        return self

    def noise_covariance(self, theta: Array | None = None, data: Demonstrations | None = None) -> np.ndarray | None:
        """Σ of the noise around the mean action: known, or of what θ leaves of the data; None where actions are choices."""
        raise InputError(f"the noise is known of linear Gaussian and Boltzmann policies, found {type(self).__name__}.")

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
        return _kronecker(*self.score_factors(theta, features, actions))

    @final
    def score_factors(self, theta: Array, features: Array, actions: Array) -> tuple[Array, Array]:
        """u(a) − E[u] [..., k] and φ(s) [..., q], whose Kronecker product is the score."""
        eta = self.natural(theta, features)
        return self.action_statistic(actions) - self.cumulant_gradient(eta), self.design(features)

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
