"""`PolicySpace` and linear families: features, groups, supports, densities."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, final

import numpy as np

from policyspace.data.columns import AlternativeColumns
from policyspace.data.sample import ActionType, Sample, action_type_of
from policyspace.data.validation import as_names
from policyspace.errors import InputError, nearest
from policyspace.runtime import check_limit
from policyspace.safe_io import JSON

if TYPE_CHECKING:
    from policyspace.families.likelihood import Likelihood

# -- Groups: the units that are tested, a partition of the parameters θ.

INTERCEPT = "intercept"

Support = frozenset[int]
"""The paper's I: which groups the agent controls."""

Groups = Literal["feature", "parameter", "action"] | Mapping[str, Sequence[str]]
"""One group a feature, one a scalar parameter, one a component of the action, or names given by the user."""

Members = Mapping[str, list[int]]
"""Which parameters a name stands for."""

LARGEST_FIXED = 1e60
"""Of a fixed value, so that squares of what it is multiplied with do not overflow."""


@dataclass(frozen=True)
class Group:
    """Parameters that are tested together; one that is assumed to be used is in every support and is not tested."""

    name: str
    indices: tuple[int, ...]
    assumed: bool = False


def linear_groups(
    features: tuple[str, ...],
    rows: tuple[str, ...],
    groups: Groups,
    assume: Sequence[str],
    fixed: Any,
    intercept: bool,
    blocks: Mapping[str, Sequence[str]],
) -> tuple[tuple[Group, ...], np.ndarray]:
    """The partition of the weights [k, q] of a linear policy, and the value each has when it is not controlled.

    `blocks` are the categorical columns: their one-hot features make one group. The intercept is assumed.
    """
    _check_names(features, blocks)
    q = len(features) + intercept
    check_limit("MAX_PARAMETERS", q * len(rows), "the parameters of a policy")
    scalars = {
        (f"{name}[{row}]" if len(rows) > 1 else name): a * q + j + intercept
        for j, name in enumerate(features)
        for a, row in enumerate(rows)
    }
    if len(scalars) < len(features) * len(rows):
        raise InputError("two parameters would have the same name feature[action]: rename a feature or an action.")
    if groups == "action":  # actuation: all weights by which the features move one component, or one alternative
        of_row = {row: [name for name, i in scalars.items() if i // q == a] for a, row in enumerate(rows)}
        groups = {row: names for row, names in of_row.items() if names}
    parameters = {name: [i] for name, i in scalars.items()}
    columns = {name: [a * q + j + intercept for a in range(len(rows))] for j, name in enumerate(features)}
    whole_blocks = {name: [i for feature in inside for i in columns[feature]] for name, inside in blocks.items()}
    in_block = {name for inside in blocks.values() for name in inside}
    by_feature = {name: inside for name, inside in columns.items() if name not in in_block} | whole_blocks
    members = parameters | columns | whole_blocks
    tested = tested_groups(groups, assume, members, parameters, by_feature, lambda i: i % q)
    constants = [Group(INTERCEPT, tuple(a * q for a in range(len(rows))), assumed=True)] if intercept else []
    return (*constants, *tested), fixed_values(fixed, members, tested, q * len(rows))


def tested_groups(
    groups: Groups,
    assume: Sequence[str],
    members: Members,
    parameters: Members,
    by_feature: Members,
    place: Callable[[int], int],
) -> list[Group]:
    """The groups beside the intercept, by `place` of their first parameter, whatever way they were given.

    `members` says which parameters any name stands for, `parameters` and `by_feature` are the two usual partitions.
    """
    partition = _partition(groups, members, parameters, by_feature)
    partition = dict(sorted(partition.items(), key=lambda item: min(map(place, item[1]))))
    free = set(_resolve(list(assume), dict(members) | partition, "assume"))
    resolved = []
    for name, indices in partition.items():
        declared = free.intersection(indices)
        if declared and len(declared) < len(indices):
            raise InputError(f"group '{name}' is assumed in part only: declare all of it, or split it.")
        resolved.append(Group(name, tuple(sorted(indices)), assumed=bool(declared)))
    return resolved


def _partition(groups: Groups, members: Members, parameters: Members, by_feature: Members) -> dict[str, list[int]]:
    """The tested groups by name; what a table of groups does not name is grouped by feature."""
    if groups == "feature":
        return dict(by_feature)
    if groups == "parameter":
        return dict(parameters)
    if not isinstance(groups, Mapping):
        if groups in ("input", "hidden", "output"):
            raise InputError(
                f"the groups '{groups}' belong to the policy 'network', found a linear one: use 'feature'."
            )
        raise InputError(f"groups must be 'feature', 'parameter', 'action' or a table of names, found {groups!r}.")
    partition: dict[str, list[int]] = {}
    for name, inside in groups.items():
        if name == INTERCEPT:
            raise InputError(f"a group is named '{INTERCEPT}', the name of the constant: rename it.")
        if isinstance(inside, str):
            raise InputError(f"group '{name}' must be a list of names, found the text '{inside}'.")
        partition[name] = _resolve(as_names(inside, f"group '{name}'"), members, f"group '{name}'")
    check_disjoint(partition)
    taken = {i for indices in partition.values() for i in indices}
    for name, indices in by_feature.items():
        if left := [i for i in indices if i not in taken]:
            if name in partition:
                raise InputError(f"group '{name}' has the name of a feature that it does not hold: rename it.")
            partition[name] = left
    return partition


def _resolve(names: Sequence[str], known: Members, what: str) -> list[int]:
    """The parameters that names stand for."""
    for name in names:
        if name not in known:
            raise InputError(f"{what} names '{name}', which is no feature or group: {nearest(name, known)}")
    return [i for name in names for i in known[name]]


def whole_columns(
    groups: Sequence[Group], num_rows: int, num_columns: int, num_constants: int
) -> dict[int, tuple[int, ...]] | None:
    """The features of each group by number, if every group holds whole columns of the weights [k, q]; groups of what is
    beyond those weights (biases, later layers) and of the constant have none.
    """
    found = {}
    for number, group in enumerate(groups):
        inside = [i for i in group.indices if i < num_rows * num_columns]
        columns = sorted({i % num_columns for i in inside})
        if len(inside) != len(columns) * num_rows:
            return None
        found[number] = tuple(column - num_constants for column in columns if column >= num_constants)
    return found


def _check_names(features: tuple[str, ...], blocks: Mapping[str, Sequence[str]]) -> None:
    names = [*features, *blocks]
    if INTERCEPT in names:
        raise InputError(f"a feature is named '{INTERCEPT}', the name of the constant: rename it, or drop it.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the feature name '{twice}' occurs twice: every feature needs a name of its own.")


def check_disjoint(partition: Members) -> None:
    """Every group holds something, and nothing that another holds."""
    owner: dict[int, str] = {}
    for name, indices in partition.items():
        if not indices:
            raise InputError(f"group '{name}' is empty: give it at least one feature.")
        for i in indices:
            if i in owner:
                raise InputError(f"groups '{owner[i]}' and '{name}' share a parameter: a parameter has one group.")
            owner[i] = name


def fixed_values(fixed: Any, members: Members, groups: Sequence[Group], size: int) -> np.ndarray:
    """What every parameter is worth when it is not controlled [d], by the names of parameters, features or groups."""
    members = dict(members) | {group.name: list(group.indices) for group in groups}
    values = np.zeros(size)
    if isinstance(fixed, Mapping):
        for name, value in fixed.items():
            values[_resolve([name], members, "fixed")] = _number(value, f"the fixed value of '{name}'")
    elif isinstance(fixed, float) and np.isfinite(fixed):
        values[:] = fixed
    else:
        given = np.array([_number(value, "a fixed value") for value in np.ravel(np.asarray(fixed, dtype=object))])
        if given.size not in (1, size):
            raise InputError(
                f"fixed must be one number, a table of names or {size} numbers, found {given.size} of them."
            )
        values[:] = given.ravel()
    if not np.isfinite(values).all():
        raise InputError("fixed values must be finite numbers, found NaN or infinity: correct them.")
    if np.abs(values).max(initial=0.0) > LARGEST_FIXED:
        raise InputError(f"fixed values must be at most {LARGEST_FIXED:g} in size, found a larger one: correct it.")
    return values


def _number(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what} must be a number, found {value!r:.40}: correct it.") from error
    if not abs(number) < np.inf:
        raise InputError(f"{what} must be a finite number, found {number}: correct it.")
    return number


# -- Policy spaces Π_Θ: how an agent could act, and the groups of parameters that are tested.

Array = Any  # a NumPy or a JAX array
Key = Any  # a JAX key or a numpy.random.Generator

LEAST_VARIANCE = 1e-4
"""Of an action that is all but certain, below which residuals are not divided by their variance."""

RECORDED = ("hidden", "activation", "covariance", "intercept", "attributes", "available", "specific", "offset")
"""What a simulated file records about the policy of its agent."""


class PolicySpace(ABC):
    """A set of policies {π_θ : θ ∈ R^d} with a partition of θ into groups, the units that are tested.

    A space that is made without features keeps what was said about it until `bind` gives it those of the data. Families
    are its subclasses, such as `GaussianLinear` and `SoftmaxLinear`.

    Examples
    --------
    >>> import policyspace
    >>> space = policyspace.GaussianLinear(["speed", "light"])
    >>> [group.name for group in space.groups], space.num_parameters
    (['intercept', 'speed', 'light'], 3)
    """

    in_words: ClassVar[str] = "user-written"
    """Its family, as an adjective in a sentence."""
    discrete: ClassVar[bool | None] = None  # are the actions labels, rather than numbers? None: either
    link: ClassVar[Literal["identity", "logit", "log"]] = "identity"  # what of the mean is linear in the weights
    asymptotic: ClassVar[bool] = False  # does λ need many rows a parameter for its law?
    variance_of_mean: ClassVar[bool] = False  # is the noise known once the mean is?
    noise_source: ClassVar[str] = "the given covariance"  # what says how large the noise is, where `variance` knows
    if_wider: ClassVar[str] = ""  # which policy to take where actions spread more than this one says
    unsaid: ClassVar[Mapping[str, Any]] = {}  # what holds where neither the user nor the data's file says anything

    groups: tuple[Group, ...]
    fixed: np.ndarray  # [d], what a parameter is worth when the agent does not control it
    feature_names: tuple[str, ...]  # without the intercept
    action_names: tuple[str, ...]  # labels, or the components of a continuous action
    interactions: Mapping[int, Support] = MappingProxyType({})  # the groups that hold a group and go with it
    _said: Mapping[str, Any] | None = None  # about a space that waits for its data
    _missing: str | None = None  # why some attributes are not there yet
    choices: AlternativeColumns | None = (
        None  # which columns of a table are attributes of alternatives, where that was said
    )
    nuisance_names: tuple[str, ...] = ()  # parameters at the end of θ that are no weights, such as a dispersion
    counts_events = False  # whether actions are counts whose mean and spread are one parameter
    offset: tuple[str, ...] = ()  # attributes of alternatives whose coefficient is known to be 1

    if not TYPE_CHECKING:  # types are checked as if every attribute were there

        def __getattr__(self, name: str) -> Any:
            if self._missing is not None and not name.startswith("_"):
                raise InputError(self._missing)
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")

    @property
    def action_type(self) -> ActionType:
        """What kind of actions its agents take."""
        return action_type_of(self.discrete, self.action_names)

    def defer(self, actions: Any, blocks: Any, **said: Any) -> None:
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

    def bind(self, data: Sample) -> "PolicySpace":
        """The same space over the features and actions of the data; what was not said is as the data's file records it.

        A space that has its features is returned as it is.
        """
        recorded = recorded_policy(data)
        if recorded.get("offset") and not (self.offset if self._said is None else "offset" in self._said):
            raise InputError(
                f"an offset of discrete actions belongs to linear policies, found a {type(self).__name__}: use 'boltzmann' "
                "or a ChoiceLinear that names it."
            )
        if self._said is None:
            return self
        if self.discrete is not None and self.discrete != data.discrete:
            needed, found = ("discrete", "continuous") if self.discrete else ("continuous", "discrete")
            other = "Gaussian" if self.discrete else "Boltzmann"
            raise InputError(
                f"a {type(self).__name__} needs {needed} actions, found {found} ones: use the {other} policy."
            )
        unsaid = dict(self.unsaid) | {name: recorded[name] for name in RECORDED if recorded.get(name) is not None}
        words = {name: unsaid.get(name) if value is None else value for name, value in self._said.items()}
        made: Callable[..., PolicySpace] = type(self)
        return made(data.names, data.action_names, **words, blocks=dict(data.blocks))

    def with_noise(self, estimate: Callable[[Any], np.ndarray]) -> "PolicySpace":
        """The same space, with its covariance as estimated where it must be known and is not."""
        return self

    def with_covariance(self, covariance: np.ndarray) -> Self:
        """The same space with a known covariance of its noise, where it has one of its own."""
        return self

    def acting(self, theta: np.ndarray, data: Sample | str = "nothing was seen") -> "PolicySpace":
        """The same space able to draw actions: an unknown covariance is what θ leaves in the data, one without data."""
        return self

    guess: bool = False  # whether the agent may well be outside of the space: then a study tests it without a model
    linear: bool = False  # whether θ are weights of the features, which data determine one by one
    multimodal: bool = False  # whether the likelihood has many: then λ has no χ² law, and a fit takes seconds

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
        """The groups that are tested: all but those assumed."""
        return tuple(i for i, group in enumerate(self.groups) if not group.assumed)

    @property
    def full_support(self) -> Support:
        """The full support, I = {1, …, d}."""
        return frozenset(range(len(self.groups)))

    @property
    def min_training_rows(self) -> int:
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

    def mean(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray | None:
        """The mean action, or the probabilities of all actions but the last, for features [n, q]; None where unknown."""
        return None

    def variance(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray | None:
        """That of each column of the action [n, k]; None where it is unknown, or estimated."""
        return None

    def residuals(
        self, theta: np.ndarray, features: np.ndarray, action_type: ActionType, actions: np.ndarray
    ) -> "Residuals | None":
        """What θ leaves of some actions; None where the mean is unknown."""
        mean = self.mean(theta, features)
        if mean is None:
            return None
        seen, variance = action_type.columns(actions), self.variance(theta, features)
        left = seen - mean
        if variance is not None and self.variance_of_mean:
            scale = np.sqrt(np.maximum(variance, LEAST_VARIANCE))
        else:
            scale = np.sqrt(np.maximum((left**2).mean(axis=0), np.finfo(float).tiny))
        dispersion = float(
            ((left / scale) ** 2).mean() if variance is None or self.variance_of_mean else (left**2 / variance).mean()
        )
        error = None if variance is None or not action_type.free_spread else self.dispersion_error(variance)
        return Residuals(seen, mean, left / scale, dispersion, error)

    def dispersion_error(self, variance: np.ndarray) -> float:
        """The standard error of the mean square of residuals over their variances [n, k]: that of Normal ones."""
        return float(np.sqrt(2 / variance.size))

    def cautions(self, data: Sample) -> list[str]:
        """What about these actions may be at odds with such a policy."""
        return []

    def free_mask(self, support: Support) -> np.ndarray:
        """The mask [d] of the parameters that Θ_I leaves free: groups in I, and those assumed."""
        mask = np.zeros(self.num_parameters, dtype=bool)
        for i, group in enumerate(self.groups):
            if group.assumed or i in support:
                mask[list(group.indices)] = True
        return mask

    def named(self, support: Support) -> list[str]:
        """The groups of a support by name, in order; the intercept goes without saying."""
        return [
            group.name
            for i, group in enumerate(self.groups)
            if (group.assumed or i in support) and group.name != INTERCEPT
        ]

    def with_assumed(self, names: Iterable[str]) -> Self:
        """The same space with more groups assumed: they are not tested any more."""
        declared = set(names)
        space = copy.copy(self)
        space.groups = tuple(replace(g, assumed=g.assumed or g.name in declared) for g in self.groups)
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

    def support_without(self, group: int) -> Support:
        """The support of the hypothesis that a group is not used: its interactions are not used either."""
        return self.full_support - {group} - self.interactions.get(group, frozenset())

    def as_guess(self) -> Self:
        """The same space as a guess: nobody knows that the agent is one of it."""
        space = copy.copy(self)
        space.guess = True
        return space

    def smaller(self, features: Sequence[str], actions: Sequence[str], assume: Sequence[str]) -> "PolicySpace | None":
        """The same kind of space for fewer features and actions, one group a feature; None where there is none."""
        return None

    def information_root(self, theta: Array, features: Array, actions: Array) -> Array:
        """R [m, T, k, d] with E[RᵀR] = F(θ, s), for JAX: here k = 1, the score of the action that was taken."""
        from policyspace.families.jax_backend import jax

        scores = jax.vmap(jax.vmap(jax.grad(self.log_prob), (None, 0, 0)), (None, 0, 0))
        return scores(theta, features, actions)[:, :, None, :]

    def score_roots(
        self, theta: np.ndarray, features: np.ndarray, covariance: np.ndarray | None
    ) -> Iterable[np.ndarray]:
        """Arrays [n, k] whose scores have outer products that add up to the information of each row, of a linear policy;
        `covariance` is that of the noise around the mean, where there is one.
        """
        raise InputError(f"scores by row are for linear policies, found {type(self).__name__}.")

    def score_residuals(
        self, theta: np.ndarray, features: np.ndarray, action_type: ActionType, actions: np.ndarray
    ) -> np.ndarray:
        """What the scores of a linear policy are made of [n, k]: here what its mean leaves of each action."""
        mean = self.mean(theta, features)
        assert mean is not None
        return np.asarray(action_type.columns(actions) - mean)

    @abstractmethod
    def log_prob(self, theta: Array, features: Array, actions: Array) -> Array:
        """log π_θ(a|s) for features [..., q] and actions [...] or [..., k]."""

    @abstractmethod
    def sample(self, key: Key, theta: Array, features: Array) -> Array:
        """Actions a ~ π_θ(·|s) for features [..., q]."""

    def score(self, theta: Array, features: Array, actions: Array) -> Array:
        """∇_θ log π_θ(a|s) [..., d]; unless the family knows it, by JAX's differentiation of the density."""
        from policyspace.families.jax_backend import jax

        each = jax.grad(self.log_prob)
        for _ in features.shape[:-1]:
            each = jax.vmap(each, (None, 0, 0))
        return each(theta, features, actions)

    def score_factors(self, theta: Array, features: Array, actions: Array) -> tuple[Array, Array]:
        """Two arrays [..., k] and [..., q] whose Kronecker product is the score; here the score itself and a 1."""
        score = self.score(theta, features, actions)
        return score, score.__array_namespace__().ones_like(score[..., :1])

    def describe(self) -> dict[str, JSON]:
        """Its family and the arguments of its class beside features, actions and groups, as JSON can hold them."""
        return {"family": type(self).__name__}


@dataclass(frozen=True)
class Residuals:
    """What a policy leaves of n actions, as columns of numbers [n, k]."""

    seen: np.ndarray
    mean: np.ndarray
    values: np.ndarray  # what is left, divided by the noise
    dispersion: float  # the mean square of what is left over the variance that the policy says: 1 if it is right
    dispersion_error: float | None  # its standard error; None where no spread is said, or none but that is possible


@dataclass(frozen=True)
class FitMeasures:
    """How well a linear policy fits; what makes no sense of its actions is NaN."""

    log_likelihood: float
    null_log_likelihood: float  # of an agent that ignores all features
    equal_shares_log_likelihood: float = np.nan  # of one that chooses all actions equally often
    mcfadden: float = np.nan  # ρ² = 1 − log L / log L of the null
    hit_rate: float = np.nan  # how often the most probable action was chosen
    explained: float = np.nan  # the share of the variance, or of the deviance, that the features explain
    num_noise_parameters: int = 0


def recorded_policy(data: Sample) -> Mapping[str, Any]:
    """What the file of the data records about the policy of its agent."""
    return data.origin.policy or {}


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


class LinearPolicySpace(PolicySpace):
    """Policies whose natural parameters are weights·φ(s), with weights [k, q]: what the linear families share.

    Nuisance parameters, where a family has some, stand behind the weights, in one group with the constant: they are always
    free, and never tested.
    """

    quadratic: ClassVar[bool] = False  # is log π quadratic in θ, so that the information does not depend on θ?
    row_names: tuple[str, ...]  # what each of the k rows of the weights belongs to
    intercept: bool
    linear = True

    def __init__(
        self,
        features: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        groups: Groups | None = None,
        assume: Sequence[str] = (),
        fixed: Any = 0.0,
        intercept: bool | None = None,
        blocks: dict[str, tuple[str, ...]] | None = None,
    ) -> None:
        if features is None:
            self.defer(actions, blocks, groups=groups, assume=assume, fixed=fixed, intercept=intercept)
            return
        self._name_actions(actions)
        self._set_up(features, groups, assume, fixed, intercept, blocks)

    def _name_actions(self, actions: Sequence[str] | None) -> None:
        """Take the names of the actions, of which each has a row of weights."""
        self.action_names = self.row_names = ("action",) if actions is None else tuple(actions)

    def _set_up(
        self,
        features: Sequence[str],
        groups: Groups | None,
        assume: Sequence[str],
        fixed: Any,
        intercept: bool | None,
        blocks: Mapping[str, Sequence[str]] | None,
    ) -> None:
        """Groups and fixed values of the weights, with the nuisance parameters beside the constant."""
        self.feature_names, self.intercept = tuple(features), intercept is None or bool(intercept)
        chosen: Groups = "feature" if groups is None else groups
        names, rows, constant = self.feature_names, self.row_names, int(self.intercept)
        own, values = linear_groups(names, rows, chosen, tuple(assume), fixed, self.intercept, blocks or {})
        if size := len(self.nuisance_names):
            constants = (*range(constant), *range(len(values), len(values) + size))
            own = (Group(INTERCEPT, constants, assumed=True), *own[constant:])
        self.groups, self.fixed = own, np.concatenate([values, np.zeros(size)])

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns of φ(s): the constant, where there is one, the features, and the nuisance parameters."""
        return ((INTERCEPT,) if self.intercept else ()) + self.feature_names + self.nuisance_names

    @property
    def min_training_rows(self) -> int:
        """Some rows a column: linear policies are learned from few."""
        return 5 * len(self.column_names)

    def as_linear(self, what: str) -> Any:
        """The same space: it is linear."""
        return self

    def group_columns(self) -> dict[int, tuple[int, ...]] | None:
        """Whole columns of the matrix of weights; nuisance parameters have none."""
        constant = int(self.intercept)
        return whole_columns(self.groups, len(self.row_names), constant + len(self.feature_names), constant)

    def spread(self, features: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The standard deviation of what each weight is multiplied by [d]; NaN for constants and nuisance parameters."""
        around = features - np.average(features, axis=0, weights=weights)
        own = np.sqrt(np.average(around**2, axis=0, weights=weights))
        of_weights = np.tile(np.concatenate([np.full(int(self.intercept), np.nan), own]), len(self.row_names))
        return np.concatenate([of_weights, np.full(len(self.nuisance_names), np.nan)])

    def standardisation(self, data: Sample) -> np.ndarray:
        """M [d, d] with θ = M·ϑ, where ϑ are weights of features of mean 0 and standard deviation 1, in the action's unit.

        Without an intercept the features keep their means.
        """
        weights = np.ones(data.num_rows) if data.weights is None else data.weights
        first = int(self.intercept)
        spread = np.nan_to_num(self.spread(data.features, weights)[: first + len(self.feature_names)], nan=1.0)
        spread[spread == 0] = 1.0
        block = np.diag(1 / spread)
        if self.intercept:
            block[0, 1:] = -np.average(data.features, axis=0, weights=weights) / spread[first:]
        unit = data.action_type.scale(data.actions) if self.link == "identity" else np.ones(len(self.row_names))
        of_weights, matrix = np.kron(np.diag(unit), block), np.eye(self.num_parameters)
        matrix[: len(of_weights), : len(of_weights)] = of_weights
        return matrix


class ExponentialFamily(LinearPolicySpace):
    """Linear policies π_θ(a|s) = h(a) exp{θᵀt(s,a) − A(θ,s)} (Definition 4.1), θ = vec of weights [k, q].

    The statistic is a Kronecker product, t(s,a) = u(a) ⊗ φ(s), and the log-partition depends on the state through
    the k natural parameters η = weights·φ(s) alone; a family says what u, log h and A(η) with its two derivatives are.
    """

    def weights_by_row(self, theta: np.ndarray) -> dict[str, list[float]]:
        """The rows of the matrix of weights by name."""
        return dict(zip(self.row_names, self.weights(theta).tolist(), strict=True))

    def fit_measures(self, likelihood: "Likelihood", theta: np.ndarray, data: Sample) -> FitMeasures:
        """How well θ, the estimate of this likelihood, fits the data."""
        raise InputError(f"how well it fits is not known of {type(self).__name__}.")

    def noise_covariance(self, theta: Array | None = None, data: Sample | None = None) -> np.ndarray | None:
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
