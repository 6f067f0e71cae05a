"""What a user says about a policy, in one object: it becomes a policy space when the data are known."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Union, final

from policyspace.data.alternatives import Choices
from policyspace.data.demonstrations import Demonstrations
from policyspace.data.vocabulary import names_of
from policyspace.errors import InputError, nearest
from policyspace.policies.any_policy import AnyPolicy
from policyspace.policies.base import PolicySpace, recorded_policy
from policyspace.policies.boltzmann import BoltzmannLinear
from policyspace.policies.choice_linear import ChoiceLinear
from policyspace.policies.gaussian import GaussianLinear
from policyspace.policies.network import Activation, BoltzmannNetwork, GaussianNetwork, NetworkGroups

PolicyName = Literal["gaussian", "boltzmann", "network", "choice", "any"]
Policy = Union[PolicyName, PolicySpace, "PolicySpec", None]

POLICIES: dict[str, tuple[type[PolicySpace], ...]] = {
    "gaussian": (GaussianLinear,),
    "boltzmann": (BoltzmannLinear,),
    "network": (GaussianNetwork, BoltzmannNetwork),
    "choice": (ChoiceLinear,),
    "any": (AnyPolicy,),
}
"""The policies that have a name, each with its spaces for continuous and for discrete actions; 'any' is no model."""

NOT_FOR = {
    "hidden": "hidden layers belong to the policy 'network', found {found}: leave them out, or ask for a network.",
    "activation": "an activation belongs to the policy 'network', found {found}: leave it out, or ask for a network.",
    "covariance": "a covariance belongs to the Gaussian policies, found {found} for these actions: leave it out.",
    "intercept": "an intercept belongs to linear policies, found {found}, which has none or whose biases are always free: "
    "leave it out.",
    "fixed": "fixed values belong to parameters, found {found}, which has none: leave them out.",
}
"""What is said where a word does not fit the policy."""


@final
@dataclass(frozen=True, eq=False)
class PolicySpec:
    """A policy by name or as an object, and what is said about it; None is what was not said.

    Of that, what the file of simulated data records holds; else the policy is the linear one that fits the actions, with
    an estimated covariance and an intercept, and a network has one hidden tanh layer of 8 units.
    """

    policy: Policy = None
    hidden: Sequence[int] | None = None
    activation: Activation | None = None
    covariance: Any = None
    groups: NetworkGroups | None = None
    always: Sequence[str] = ()
    fixed: Any = None
    intercept: bool | None = None

    def __post_init__(self) -> None:
        policy = self.policy
        object.__setattr__(self, "always", names_of(self.always, "always="))
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
    def said(self) -> dict[str, Any]:
        """What was said beside the policy itself."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "policy"}
        return {name: value for name, value in given.items() if value is not None and (name != "always" or len(value))}

    @property
    def discrete(self) -> bool | None:
        """Must actions be read as labels, or as numbers? None: as they look."""
        if isinstance(self.policy, PolicySpace | PolicySpec):
            return self.policy.discrete
        kinds = POLICIES[self.policy] if self.policy else ()
        return kinds[0].discrete if len(kinds) == 1 else None

    @property
    def choices(self) -> Choices | None:
        """Which columns of a table are attributes of alternatives, where that was said."""
        return self.policy.choices if isinstance(self.policy, PolicySpace | PolicySpec) else None

    def bind(self, data: Demonstrations) -> PolicySpace:
        """The space over the features and actions of the data."""
        if isinstance(self.policy, PolicySpace | PolicySpec):
            return self.policy.bind(data)
        name: str | None = self.policy
        if name is None:
            family = str(recorded_policy(data).get("family", ""))
            name = "network" if family.endswith("network") else "boltzmann" if data.discrete else "gaussian"
            name = "choice" if family == "choice" else name
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
