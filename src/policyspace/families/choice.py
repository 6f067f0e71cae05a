"""Conditional logit: the linear policy π(a|s) ∝ exp(θᵀt(s, a)) (Definition 4.1) whose actions have attributes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from policyspace.data.columns import AlternativeColumns, Attributes, LongFormat, columns_of
from policyspace.data.columns import AttributeColumns as Columns
from policyspace.data.sample import Sample
from policyspace.data.validation import translate_constructor
from policyspace.errors import InputError
from policyspace.families.base import (
    INTERCEPT,
    Array,
    Group,
    Groups,
    Key,
    fixed_values,
    tested_groups,
)
from policyspace.families.softmax import ChoicePolicy, choices
from policyspace.safe_io import JSON


@final
@dataclass(frozen=True)
class AlternativeDesign:
    """Of one alternative: t(s, a) has the entries `columns` of (1, features) at the places `parameters`, else zeros."""

    columns: np.ndarray
    parameters: np.ndarray


@final
@translate_constructor
class ChoiceLinear(ChoicePolicy):
    """Discrete actions with attributes, π(a|s) ∝ exp(θᵀt(s, a)) over the actions that are available in s.

    θ holds a constant for each action but the last, one coefficient for each attribute, or one for each of its actions if
    the attribute is `specific`, and for each other feature, which describes the chooser, one for each action but the last.

    Parameters
    ----------
    features, actions : sequence of str, optional
        Names of the columns and of the alternatives; without them the space takes all names from the data.
    attributes : mapping of names to {action: column}, or sequence of str
        Which columns of the features hold the attribute of which action.
    available : mapping of actions to columns, optional
        Which columns hold whether the action can be chosen.
    specific : sequence of str, optional
        Attributes with a coefficient for each action.
    groups : mapping of names to features, optional
        What is tested together; by default each attribute and each feature.
    assume : sequence of str
        Groups that are taken to be used, and not tested.
    fixed : float or mapping of names to floats, default 0
        What a coefficient is worth that the agent does not use.
    intercept : bool, default True
        Whether each action but the last has a constant.
    blocks : mapping of names to features, optional
        The one-hot features of each category.
    long : LongFormat, optional
        The columns of a table with one row an alternative.
    offset : sequence of str, optional
        Attributes that are added to θᵀt(s, a) as they are: their coefficient is 1, and not tested.

    Examples
    --------
    >>> import numpy as np
    >>> import policyspace
    >>> rng = np.random.default_rng(0)
    >>> costs = rng.uniform(1, 9, size=(300, 2))
    >>> car = rng.random(300) < 1 / (1 + np.exp(costs[:, 1] - costs[:, 0]))
    >>> columns = {"cost": {"bus": "bus_cost", "car": "car_cost"}}
    >>> space = policyspace.ChoiceLinear(attributes=columns)
    >>> taken = np.where(car, "car", "bus")
    >>> policyspace.identify(costs, taken, features=["bus_cost", "car_cost"], policy=space).selected
    ('cost',)
    """

    in_words = "conditional-logit"
    linear = True
    intercept = False  # no column of t(s, a) is the same for all actions
    quadratic = False
    row_names = ("",)  # θ is one row of weights, of as many columns as there are parameters

    def __init__(
        self,
        features: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        attributes: Attributes | Sequence[str] | None = None,
        available: Columns | None = None,
        specific: Sequence[str] | None = None,
        groups: Groups | None = None,
        assume: Sequence[str] = (),
        fixed: Any = 0.0,
        intercept: bool | None = None,
        blocks: dict[str, tuple[str, ...]] | None = None,
        long: LongFormat | None = None,
        offset: Sequence[str] | None = None,
    ) -> None:
        if features is None:
            if attributes is not None or long is not None:
                self.choices = AlternativeColumns(attributes, available, long)
            # What a long table says is found in the data that were made of it.
            columns = (None, None) if long is not None else (attributes, available)
            said = {"attributes": columns[0], "available": columns[1], "specific": specific, "groups": groups}
            self.defer(actions, blocks, **said, assume=assume, fixed=fixed, intercept=intercept, offset=offset)
            return
        self.feature_names, self.action_names = tuple(features), choices(actions)
        self.constants = intercept is None or bool(intercept)
        self.attributes = self._attributes(attributes)
        self.available = (
            {}
            if available is None
            else columns_of(available, self.feature_names, self.action_names, "the availability")
        )
        self.specific, self.offset = tuple(specific or ()), tuple(offset or ())
        for word, names in (("specific", self.specific), ("an offset", self.offset)):
            for name in names:
                if name not in self.attributes:
                    raise InputError(
                        f"only an attribute can be {word}, found '{name}': name it with the attributes too."
                    )
        if both := set(self.specific) & set(self.offset):
            raise InputError(f"an offset has no coefficients, found '{min(both)}' as specific too: leave one out.")
        taken = {c for columns in self.attributes.values() for c in columns.values()} | set(self.available.values())
        self.own_features = tuple(name for name in self.feature_names if name not in taken)
        self._lay_out()
        self.groups, self.fixed = self._grouped(groups, tuple(assume), fixed, blocks or {})

    def _attributes(self, said: Any) -> dict[str, dict[str, str]]:
        if said is not None and not isinstance(said, Mapping):
            raise InputError(
                f"attributes must say which columns hold them, as in {{'cost': 'cost_*'}}, found {said!r}."
            )
        found = {
            str(name): columns_of(columns, self.feature_names, self.action_names, f"attribute '{name}'")
            for name, columns in (said or {}).items()
        }
        if INTERCEPT in (*found, *self.feature_names):
            raise InputError(f"an attribute or feature is named '{INTERCEPT}', the name of the constant: rename it.")
        return found

    def _lay_out(self) -> None:
        """The name of every parameter, the parameters of every attribute and feature, and the terms of every action."""
        names, actions = list[str](), self.action_names
        members: dict[str, list[int]] = {}
        terms: list[list[tuple[int, int]]] = [[] for _ in actions]
        place = {name: j + 1 for j, name in enumerate(self.feature_names)}

        def add(group: str, name: str, columns: Mapping[str, int]) -> None:
            members.setdefault(group, []).append(len(names))
            for action, column in columns.items():
                terms[actions.index(action)].append((column, len(names)))
            names.append(name)

        for action in actions[:-1]:  # what belongs to one action stands together
            if self.constants:
                add(INTERCEPT, f"{INTERCEPT}[{action}]", {action: 0})
            for name in self.own_features:
                add(name, f"{name}[{action}]", {action: place[name]})
        for name, columns in self.attributes.items():
            if name in self.offset:
                continue
            if name in self.specific:
                for action, column in columns.items():
                    add(name, f"{name}[{action}]", {action: place[column]})
            else:
                add(name, name, {action: place[column] for action, column in columns.items()})
        if len(set(names)) < len(names) or not names or set(self.own_features) & set(self.attributes):
            raise InputError("every attribute and every feature needs a name of its own: rename one.")
        self.parameter_names, self._members = tuple(names), members
        self.terms = tuple(
            AlternativeDesign(
                np.array([c for c, _ in pairs], dtype=np.intp), np.array([p for _, p in pairs], dtype=np.intp)
            )
            for pairs in (sorted(pairs) for pairs in terms)
        )
        known = [self.attributes[name] for name in self.offset]
        self.offset_columns = tuple(tuple(place[by[a]] - 1 for by in known if a in by) for a in actions)

    def _grouped(
        self, groups: Groups | None, assume: tuple[str, ...], fixed: Any, blocks: Mapping[str, tuple[str, ...]]
    ) -> tuple[tuple[Group, ...], np.ndarray]:
        known = {name: inside for name, inside in self._members.items() if name != INTERCEPT}
        constants = self._members.get(INTERCEPT, [])
        parameters = {name: [i] for i, name in enumerate(self.parameter_names) if i not in constants}
        whole = {name: [i for one in inside for i in known[one]] for name, inside in blocks.items()}
        in_block = {one for inside in blocks.values() for one in inside}
        by_feature = {name: inside for name, inside in known.items() if name not in in_block} | whole
        members = parameters | known | whole
        chosen: Groups = "feature" if groups is None else groups
        tested = tested_groups(chosen, assume, members, parameters, by_feature, lambda i: i)
        # What is available, and an offset, have no coefficients: they are known to matter.
        known_to_matter = constants or self.available or self.offset
        first = [Group(INTERCEPT, tuple(constants), assumed=True)] if known_to_matter else []
        return (*first, *tested), fixed_values(fixed, members, tested, len(self.parameter_names))

    # -- what a linear policy says of itself -----------------------------------------------------------------------

    @property
    def column_names(self) -> tuple[str, ...]:
        """One column a parameter."""
        return self.parameter_names

    def as_linear(self, what: str) -> Any:
        """The same space: its natural parameters are linear in θ."""
        return self

    def weights(self, theta: Array) -> Array:
        """θ as a matrix of one row."""
        return theta[..., None, :]

    def weights_by_row(self, theta: np.ndarray) -> dict[str, list[float]]:
        """Every parameter by its name."""
        return {name: [float(value)] for name, value in zip(self.parameter_names, theta, strict=True)}

    def spread(self, features: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The standard deviation of what each weight is multiplied by, over all choices and the alternatives that are
        available in them [d]; NaN for constants.
        """
        shares = [weights * np.isfinite(eta) for eta in self.natural(np.zeros(self.num_parameters), features).T]
        found = np.full(self.num_parameters, np.nan)
        for i in range(self.num_parameters):
            seen = [
                (features[:, column - 1], share)
                for terms, share in zip(self.terms, shares, strict=True)
                for column in terms.columns[terms.parameters == i]
                if column
            ]
            if seen:
                values, share = (np.concatenate(both) for both in zip(*seen, strict=True))
                mean = np.average(values, weights=share)
                found[i] = np.sqrt(np.average((values - mean) ** 2, weights=share))
        return found

    def standardisation(self, data: Sample) -> np.ndarray:
        """M [d, d] with θ = M·ϑ, where ϑ are weights of columns of standard deviation 1; differences need no mean."""
        weights = np.ones(data.num_rows) if data.weights is None else data.weights
        spread = np.nan_to_num(self.spread(data.features, weights), nan=1.0)
        return np.diag(1 / np.where(spread == 0, 1.0, spread))

    def group_columns(self) -> dict[int, tuple[int, ...]] | None:
        """The columns of the attributes and features of each group; the intercept has those that have no coefficient."""
        place = {name: j for j, name in enumerate(self.feature_names)}
        found = {}
        for number, group in enumerate(self.groups):
            if group.name == INTERCEPT:
                known = {place[column] for column in self.available.values()}.union(*self.offset_columns)
                found[number] = tuple(sorted(known))
                continue
            inside = [name for name, indices in self._members.items() if set(indices) <= set(group.indices)]
            if sum(len(self._members[name]) for name in inside) != len(group.indices):
                return None
            columns = [c for name in inside for c in self.attributes.get(name, {"": name}).values()]
            found[number] = tuple(sorted({place[column] for column in columns}))
        every = [column for columns in found.values() for column in columns]
        return found if len(set(every)) == len(every) == len(place) else None

    def describe(self) -> dict[str, JSON]:
        """Which columns are what, and whether there are constants."""
        return {
            "family": "choice",
            "intercept": self.constants,
            "attributes": self.attributes,
            "available": self.available or None,
            "specific": list(self.specific),
            "offset": list(self.offset),
        }

    def design(self, features: Array) -> Array:
        """There is no φ(s) of which t(s, a) is a product with u(a)."""
        raise InputError(
            "the bounds of the paper's theory are for t(s, a) = u(a) ⊗ φ(s), found a policy whose actions have attributes: "
            "identify and plan with it."
        )

    def noise_covariance(self, theta: Any = None, data: Any = None) -> None:
        """There is none: actions are choices."""

    # -- formulas --------------------------------------------------------------------------------------------------

    def natural(self, theta: Array, features: Array) -> Array:
        """θᵀt(s, a) plus the offset of every action [..., k+1]; −∞ where it is not available."""
        xp = theta.__array_namespace__()
        one = xp.ones_like(features[..., :1])
        phi = xp.concatenate([one, features], axis=-1)
        zero = xp.zeros_like(features[..., 0])
        eta = [phi[..., t.columns] @ theta[t.parameters] if len(t.columns) else zero for t in self.terms]
        eta = [e + sum(features[..., j] for j in known) for e, known in zip(eta, self.offset_columns, strict=True)]
        for label, column in self.available.items():
            a = self.action_names.index(label)
            eta[a] = xp.where(features[..., self.feature_names.index(column)] > 0, eta[a], -xp.inf)
        return xp.stack(eta, axis=-1)

    def statistics(self, features: Array) -> Array:
        """t(s, a) of every action [..., k+1, d]."""
        xp = features.__array_namespace__()
        phi = xp.concatenate([xp.ones_like(features[..., :1]), features], axis=-1)
        unit = np.eye(self.num_parameters)
        return xp.stack([phi[..., t.columns] @ unit[t.parameters] for t in self.terms], axis=-2)

    def sufficient_statistic(self, features: Array, actions: Array) -> Array:
        """t(s, a) [..., d] of the action that was taken."""
        xp = features.__array_namespace__()
        return xp.take_along_axis(self.statistics(features), actions[..., None, None], axis=-2)[..., 0, :]

    def log_prob(self, theta: Array, features: Array, actions: Array) -> Array:
        """log π_θ(a|s) = θᵀt(s, a) − log Σ_b exp(θᵀt(s, b))."""
        xp = theta.__array_namespace__()
        eta = self.natural(theta, features)
        top = xp.max(eta, axis=-1)
        partition = top + xp.log(xp.sum(xp.exp(eta - top[..., None]), axis=-1))
        return xp.take_along_axis(eta, actions[..., None], axis=-1)[..., 0] - partition

    def probabilities(self, theta: Array, features: Array) -> Array:
        """π_θ(a|s) of every action [..., k+1]."""
        xp = theta.__array_namespace__()
        eta = self.natural(theta, features)
        odds = xp.exp(eta - xp.max(eta, axis=-1)[..., None])
        return odds / xp.sum(odds, axis=-1)[..., None]

    def mean(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray:
        """The probabilities of all actions but the last."""
        return np.asarray(self.probabilities(theta, features)[..., :-1])

    def score(self, theta: Array, features: Array, actions: Array) -> Array:
        """∇_θ log π_θ(a|s) = t(s, a) − E[t(s, ·)], of shape [..., d]."""
        mean = (self.probabilities(theta, features)[..., None, :] @ self.statistics(features))[..., 0, :]
        return self.sufficient_statistic(features, actions) - mean

    def fisher(self, theta: Array, features: Array, weights: Array | None = None) -> Array:
        """The mean over the states [n, q] of F(θ, s) = Cov[t(s, ·)], of shape [d, d]."""
        p, t = self.probabilities(theta, features), self.statistics(features)
        share = np.full(len(t), 1.0 / len(t)) if weights is None else weights / weights.sum()
        centred = t - (p[:, None, :] @ t)
        flat = centred.reshape(-1, self.num_parameters)
        return flat.T @ (flat * (p * share[:, None]).reshape(-1, 1))

    def sample(self, key: Key, theta: Array, features: Array) -> Array:
        """Action codes: the largest of θᵀt(s, a) + Gumbel noise."""
        eta = self.natural(theta, features)
        if isinstance(key, np.random.Generator):
            return np.argmax(eta + key.gumbel(size=eta.shape), axis=-1)
        from policyspace.families.jax_backend import jax

        return jax.random.categorical(key, eta, axis=-1)
