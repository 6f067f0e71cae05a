"""`PolicySpec`, families by name, and the likelihood of a policy space on a sample."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Union, final

import numpy as np

from policyspace.data.columns import AlternativeColumns
from policyspace.data.rows import ExtremeRows, InMemoryRows, Moments, Rows, check_size, moments_of, shift_near
from policyspace.data.sample import Sample
from policyspace.data.validation import as_names, explain_arguments, translate_constructor
from policyspace.errors import InputError, nearest
from policyspace.families.base import ExponentialFamily, Group, PolicySpace, Support, recorded_policy
from policyspace.families.choice import ChoiceLinear
from policyspace.families.custom import CustomPolicy
from policyspace.families.gaussian import GaussianLikelihood, GaussianLinear
from policyspace.families.likelihood import Fit, Likelihood
from policyspace.families.model_free import ModelFree, ModelFreeLikelihood
from policyspace.families.negative_binomial import NegativeBinomialLikelihood, NegativeBinomialLinear
from policyspace.families.network import Activation, GaussianNetwork, Network, NetworkGroups, SoftmaxNetwork
from policyspace.families.ordered import OrderedLikelihood, OrderedLinear
from policyspace.families.poisson import PoissonLikelihood, PoissonLinear
from policyspace.families.softmax import SoftmaxLikelihood, SoftmaxLinear, StreamedSoftmax
from policyspace.runtime import object_at

# -- What a user says about a policy, in one object: it becomes a policy space when the data are known.

PolicyName = Literal["gaussian", "boltzmann", "poisson", "negative-binomial", "ordered", "network", "choice", "any"]
Policy = Union[PolicyName, PolicySpace, "PolicySpec", None]

POLICIES: dict[str, tuple[type[PolicySpace], ...]] = {
    "gaussian": (GaussianLinear,),
    "boltzmann": (SoftmaxLinear,),
    "poisson": (PoissonLinear,),
    "negative-binomial": (NegativeBinomialLinear,),
    "ordered": (OrderedLinear,),
    "network": (GaussianNetwork, SoftmaxNetwork),
    "choice": (ChoiceLinear,),
    "any": (ModelFree,),
}
"""The policies that have a name, each with its spaces for continuous and for discrete actions; 'any' is no model."""

NOT_FOR = {
    "hidden": "hidden layers belong to the policy 'network', found {found}: leave them out, or ask for a network.",
    "activation": "an activation belongs to the policy 'network', found {found}: leave it out, or ask for a network.",
    "covariance": "a covariance belongs to the Gaussian policies, found {found} for these actions: leave it out.",
    "intercept": "an intercept belongs to linear policies, found {found}, which has none or whose biases are always free: "
    "leave it out.",
    "levels": "levels belong to the policy 'ordered', found {found}: leave them out, or ask for that policy.",
    "fixed": "fixed values belong to parameters, found {found}, which has none: leave them out.",
}
"""What is said where a word does not fit the policy."""


@final
@translate_constructor
@dataclass(frozen=True, eq=False)
class PolicySpec:
    """A policy by name or as an object, and what is said about it; None is what was not said.

    Of that, what the file of simulated data records holds; else the policy is the linear one that fits the actions, with
    an estimated covariance and an intercept, and a network has one hidden tanh layer of 8 units.

    Parameters
    ----------
    policy : str, PolicySpace or PolicySpec, optional
        "gaussian", "boltzmann", "poisson", "negative-binomial", "ordered", "network", "choice", "any", or a policy
        that says all about itself.
    hidden, activation, covariance, groups, assume, fixed, intercept, levels
        As in the class of the policy, such as `GaussianLinear` or `SoftmaxNetwork`.

    Raises
    ------
    InputError
        If the policy is not known, or says itself what is said beside it.

    Examples
    --------
    >>> import policyspace
    >>> sample = policyspace.Sample([[0.0], [1.0]], [0, 1], ["speed"], ["left", "right"])
    >>> type(policyspace.PolicySpec("network", hidden=[4]).bind(sample)).__name__
    'SoftmaxNetwork'
    """

    policy: Policy = None
    hidden: Sequence[int] | None = None
    activation: Activation | None = None
    covariance: Any = None
    groups: NetworkGroups | None = None
    assume: Sequence[str] = ()
    fixed: Any = None
    intercept: bool | None = None
    levels: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        policy = self.policy
        object.__setattr__(self, "assume", as_names(self.assume, "assume="))
        if isinstance(policy, PolicySpace | PolicySpec):
            if self.said:
                kind, word = type(policy).__name__, next(iter(self.said))
                raise InputError(
                    f"the policy is a {kind}, which says all about itself, found {word}= beside it: say it inside, as in "
                    f"{kind}({word}=…), or leave it out."
                )
        elif policy is not None and not (isinstance(policy, str) and policy in POLICIES):
            names = ", ".join(f"'{name}'" for name in POLICIES)
            close = nearest(policy, POLICIES) if isinstance(policy, str) else "give one of these."
            raise InputError(f"the policy must be one of {names} or a PolicySpace, found {policy!r}: {close}")

    @property
    def said(self) -> Mapping[str, Any]:
        """What was said beside the policy itself."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "policy"}
        return {name: value for name, value in given.items() if value is not None and (name != "assume" or len(value))}

    @property
    def stated(self) -> bool:
        """Was anything said about the form of the policy? Groups, and which are known to be used, say nothing of it."""
        if isinstance(self.policy, PolicySpec):
            return self.policy.stated
        return self.policy is not None or not set(self.said) <= {"groups", "assume"}

    @property
    def discrete(self) -> bool | None:
        """Must actions be read as labels, or as numbers? None: as they look."""
        if isinstance(self.policy, PolicySpace | PolicySpec):
            return self.policy.discrete
        kinds = POLICIES[self.policy] if self.policy else ()
        return kinds[0].discrete if len(kinds) == 1 else None

    @property
    def choices(self) -> AlternativeColumns | None:
        """Which columns of a table are attributes of alternatives, where that was said."""
        return self.policy.choices if isinstance(self.policy, PolicySpace | PolicySpec) else None

    def bind(self, data: Sample) -> PolicySpace:
        """The space over the features and actions of the data."""
        if isinstance(self.policy, PolicySpace | PolicySpec):
            return self.policy.bind(data)
        name: str | None = self.policy
        if name is None:
            family = str(recorded_policy(data).get("family", ""))
            name = "network" if family.endswith("network") else data.action_type.default_family
            name = family if family in ("choice", "poisson", "negative-binomial", "ordered") else name
        if name == "boltzmann" and recorded_policy(data).get("offset"):
            name = "choice"  # the same policy, which knows of offsets
        kind: Callable[..., PolicySpace] = next(
            (k for k in POLICIES[name] if k.discrete == data.discrete), POLICIES[name][0]
        )
        known = inspect.signature(kind).parameters
        for word in self.said:
            if word not in known:
                raise InputError(NOT_FOR[word].format(found=f"the policy '{name}'"))
        return kind(**self.said).bind(data)


# -- A space as files keep it: what `describe` says, and its groups.

FAMILIES: Mapping[str, Callable[..., PolicySpace]] = {
    "boltzmann": SoftmaxLinear,
    "gaussian": GaussianLinear,
    "poisson": PoissonLinear,
    "negative-binomial": NegativeBinomialLinear,
    "ordered": OrderedLinear,
    "choice": ChoiceLinear,
    "boltzmann-network": SoftmaxNetwork,
    "gaussian-network": GaussianNetwork,
}
"""The class behind each name that a space's `describe` gives its family."""


def recorded_space(
    said: Mapping[str, Any],
    features: Sequence[str],
    actions: Sequence[str],
    groups: Sequence[Mapping[str, Any]],
    fixed: Any,
) -> PolicySpace:
    """The space that a file describes; whoever reads the file says what is wrong with it."""
    words = dict(said)
    space = FAMILIES[words.pop("family")](features, actions, **words)
    size = space.num_parameters
    assumed = "always" if groups and "always" in groups[0] else "assumed"  # the former in files of before
    space.groups = tuple(Group(g["name"], tuple(g["indices"]), g[assumed]) for g in groups)
    space.fixed = np.array(fixed, dtype=np.float64)
    if space.fixed.shape != (size,):
        raise ValueError(f"its space has {size} parameters, its fixed values have the shape {space.fixed.shape}")
    return space


# -- Maximum likelihood inside the sub-spaces Θ_I of a policy space.


@explain_arguments
def likelihood_of(space: PolicySpace, demonstrations: Sample, firth: bool = False) -> Likelihood:
    """The likelihood of these demonstrations in this space; its `full` fit is made at the latest when it is read.

    Parameters
    ----------
    space : PolicySpace
        The policies.
    demonstrations : Sample
        The rows, in memory or in passes.
    firth : bool
        Whether Firth's penalty is added.

    Returns
    -------
    Likelihood
        Fits inside any support, and what tests ask of them.

    Raises
    ------
    InputError
        If the space does not fit the data, or the penalty does not fit the space.

    Examples
    --------
    >>> import policyspace
    >>> sample = policyspace.Sample([[0.0], [1.0], [2.0]], [1.0, 2.0, 3.5], names=["speed"])
    >>> likelihood = policyspace.likelihood_of(policyspace.GaussianLinear(["speed"]), sample)
    >>> likelihood.full.num_free
    2
    """
    kind = next((kind for kind in LIKELIHOODS if isinstance(space, kind)), None)
    if kind is None:
        raise InputError(f"maximum likelihood needs a linear, network or custom policy, found {type(space).__name__}.")
    rows = demonstrations.rows
    if not rows.in_memory and kind is not ModelFree:
        if firth:
            raise InputError(
                f"Firth's penalty needs all rows in memory, found {rows.num_rows} that are read in passes."
            )
        return likelihood_of_rows(space, rows, rows.strata or demonstrations, rows.moments, rows.far)
    if kind is ModelFree:
        _check_names(space, demonstrations)
        _check_sizes(demonstrations)
    elif kind is not CustomPolicy:
        _check_match(space, demonstrations)
        _check_sizes(demonstrations)
    likelihood = LIKELIHOODS[kind](space, demonstrations)
    return likelihood.with_penalty() if firth else likelihood


def likelihood_of_rows(
    space: PolicySpace, rows: Rows, sample: Sample, moments: Moments | None = None, far: ExtremeRows | None = None
) -> Likelihood:
    """The likelihood of rows that are not in memory: the same as of arrays, made by passes over them.

    `sample` holds some of the rows, rare actions more often than others, and weights that make up for it: fits start there.
    `moments` of features and actions, and rows `far` out, save the pass that finds them. Only the linear Gaussian and
    Boltzmann policies are sums over rows.
    """
    kind = next((kind for kind in SUMS_OVER_ROWS if isinstance(space, kind)), None)
    if kind is None:
        raise InputError(
            f"{type(space).__name__} needs all rows in memory, found {rows.num_rows} that are read from files: take the "
            "linear Gaussian or Boltzmann policy, or fewer rows."
        )
    _check_match(space, sample)
    _check_number(len(space.column_names), rows.num_rows)
    known = InMemoryRows(sample.features, sample.actions, sample.weights)
    return SUMS_OVER_ROWS[kind](space, rows, moments, known, far)


def _linear(kind: Any) -> Callable[[Any, Sample], Likelihood]:
    def likelihood(space: ExponentialFamily, data: Sample) -> Likelihood:
        _check_number(len(space.column_names), data.num_rows)
        return kind(space, InMemoryRows(data.features, data.actions, data.weights))

    return likelihood


def _streamed_gaussian(
    space: GaussianLinear, rows: Rows, moments: Moments | None, known: InMemoryRows, far: ExtremeRows | None
) -> GaussianLikelihood:
    if moments is None:
        moments = moments_of(rows, shift=shift_near(known.features, known.actions))
    return GaussianLikelihood(space, rows, moments)


def _of_arrays(place: str) -> Callable[[Any, Sample], Likelihood]:
    """Of features, actions and weights; the module of the likelihood is loaded when it is needed."""
    return lambda space, data: object_at(place)(space, data.features, data.actions, data.weights)


def _custom(space: CustomPolicy, data: Sample) -> Likelihood:
    from policyspace.families.custom_likelihood import (
        CustomLikelihood,  # JAX is only for those who bring their own policy
    )

    return CustomLikelihood(space, data)


LIKELIHOODS: dict[Any, Callable[[Any, Sample], Any]] = {
    GaussianLinear: _linear(GaussianLikelihood),
    SoftmaxLinear: _linear(SoftmaxLikelihood),
    PoissonLinear: _linear(PoissonLikelihood),
    NegativeBinomialLinear: _linear(NegativeBinomialLikelihood),
    OrderedLinear: _linear(OrderedLikelihood),
    ChoiceLinear: _of_arrays("policyspace.families.choice_likelihood:ChoiceLikelihood"),
    Network: _of_arrays("policyspace.families.network_likelihood:NetworkLikelihood"),
    CustomPolicy: _custom,
    ModelFree: ModelFreeLikelihood,
}
"""The likelihood of each family: a new family is one line here."""

SUMS_OVER_ROWS: dict[Any, Callable[[Any, Rows, Moments | None, InMemoryRows, ExtremeRows | None], Likelihood]] = {
    GaussianLinear: _streamed_gaussian,
    SoftmaxLinear: StreamedSoftmax,
}
"""The families whose likelihood needs no rows in memory."""


def _check_number(num_columns: int, num_rows: int) -> None:
    """There must be as many rows as parameters of one action."""
    if num_rows < num_columns:
        raise InputError(
            f"{num_rows} rows are fewer than the {num_columns} parameters of one action: "
            "collect more rows, or test fewer features."
        )


def _check_names(space: PolicySpace, demonstrations: Sample) -> None:
    """The space and the data must speak of the same features."""
    if demonstrations.names != space.feature_names:
        raise InputError(
            f"the policy space has the features {', '.join(space.feature_names)}, "
            f"the demonstrations {', '.join(demonstrations.names)}: they must be the same, in the same order."
        )


def _check_match(space: PolicySpace, demonstrations: Sample) -> None:
    """They must speak of the same actions, too."""
    _check_names(space, demonstrations)
    if not space.discrete:
        if demonstrations.discrete:
            raise InputError(
                "a Gaussian policy needs continuous actions, found discrete ones: use the Boltzmann policy."
            )
        if demonstrations.actions.shape[1] != len(space.action_names):
            raise InputError(
                f"the policy space has {len(space.action_names)} actions, the data {demonstrations.actions.shape[1]}."
            )
        return
    if not demonstrations.discrete:
        raise InputError("a Boltzmann policy needs discrete actions, found continuous ones: use the Gaussian policy.")
    if demonstrations.action_names != space.action_names:
        raise InputError(
            f"the policy space has the actions {', '.join(space.action_names)}, "
            f"the demonstrations {', '.join(demonstrations.action_names)}: they must be the same, in the same order."
        )


def _check_sizes(demonstrations: Sample) -> None:
    """Sums of squares must neither overflow nor vanish."""
    sizes = list(zip(demonstrations.names, _largest(demonstrations.features), strict=True))
    if not demonstrations.discrete:
        sizes += zip(demonstrations.action_names, _largest(demonstrations.actions), strict=True)
    if demonstrations.weights is not None:
        sizes += [("weight", float(demonstrations.weights.max()))]
    for name, largest in sizes:
        check_size(name, largest)


def _largest(array: np.ndarray) -> list[float]:
    """The largest absolute value of each column."""
    return np.maximum(array.max(axis=0), -array.min(axis=0)).tolist()


@explain_arguments
def fit(
    space: PolicySpace,
    demonstrations: Sample,
    support: Support | None = None,
    start: np.ndarray | None = None,
    firth: bool = False,
) -> Fit:
    """θ̂_I = argmax Σ log π_θ(a_i|s_i) over θ ∈ Θ_I, by default over all of Θ (Section 2).

    Parameters
    ----------
    space : PolicySpace
        The policies that are fitted.
    demonstrations : Sample
        The rows.
    support : frozenset of int, optional
        I, the groups that are free.
    start : array of shape (d,), optional
        Where the search begins.
    firth : bool
        Whether Firth's penalty is added, which keeps separated fits finite.

    Returns
    -------
    Fit
        θ̂_I and its log-likelihood.

    Raises
    ------
    InputError
        If the space does not fit the data, or has no Firth's penalty.

    Examples
    --------
    >>> import policyspace
    >>> sample = policyspace.Sample([[0.0], [1.0], [2.0]], [1.0, 2.0, 3.5], names=["speed"])
    >>> space = policyspace.GaussianLinear(["speed"])
    >>> policyspace.fit(space, sample, frozenset([0])).theta.round(2).tolist()  # the intercept alone
    [2.17, 0.0]
    """
    likelihood = likelihood_of(space, demonstrations, firth)
    return (
        likelihood.full
        if support is None and start is None
        else likelihood.fit(space.full_support if support is None else support, start)
    )
