"""The policy space without a model, which only tests that need none can use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, final

import numpy as np

from policyspace.data.rows import InMemoryRows, moments_of
from policyspace.data.sample import Sample
from policyspace.data.validation import translate_constructor
from policyspace.errors import InputError
from policyspace.families.base import Array, Group, Groups, Key, Policy, PolicySpace, Support, linear_groups
from policyspace.families.covariance import dependences
from policyspace.families.design import DesignMatrix
from policyspace.families.gaussian import GaussianLinear
from policyspace.families.likelihood import Fit, Likelihood

# -- No policy model at all: only which columns are tested together.

NO_MODEL = (
    "the policy 'any' is no model: it has no probabilities, cannot be fitted and draws no actions; ask for the policy "
    "'gaussian', 'boltzmann' or 'network'."
)
"""What is said where a model is needed."""


@final
@translate_constructor
class ModelFree(PolicySpace):
    """Whatever the agent does: no parameters, so that only a test without a policy model can ask what it uses.

    Groups are features, blocks of one-hot features, or tables of them.
    """

    def __init__(
        self,
        features: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        groups: Groups | None = None,
        assume: Sequence[str] = (),
        blocks: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        if features is None:
            self.defer(actions, blocks, groups=groups, assume=assume)
            return
        if groups is not None and not isinstance(groups, Mapping) and groups != "feature":
            raise InputError(
                f"the policy 'any' has no parameters, found the groups '{groups}': use the groups 'feature', or a table."
            )
        self.feature_names, self.action_names = tuple(features), tuple(actions or ("action",))
        groups = "feature" if groups is None else groups
        # As of one weight a feature: the place of a weight is that of its column.
        columns, _ = linear_groups(self.feature_names, ("",), groups, assume, 0.0, False, blocks or {})
        self._columns = {number: group.indices for number, group in enumerate(columns)}
        self.groups = tuple(Group(group.name, (), group.assumed) for group in columns)
        self.fixed = np.zeros(0)

    def group_columns(self) -> dict[int, tuple[int, ...]]:
        """The feature columns of every group."""
        return dict(self._columns)

    def log_prob(self, theta: Array, features: Array, actions: Array) -> NoReturn:
        """There is none."""
        raise InputError(NO_MODEL)

    def sample(self, key: Key, theta: Array, features: Array) -> NoReturn:
        """There is nothing to draw from."""
        raise InputError(NO_MODEL)


# -- Where there is no policy model, nothing is fitted: the likelihood that says so.


@dataclass(frozen=True)
class NoLaw:
    """λ does not exist, and has no law."""

    name: str = "none"

    def p_value(self, statistic: float, degrees_of_freedom: int) -> float:
        """Nothing can be rejected."""
        return 1.0

    def critical(self, significance: float, degrees_of_freedom: int) -> float:
        """Never exceeded."""
        return float("inf")

    def power(self, noncentrality: float, significance: float, degrees_of_freedom: int) -> float:
        """Nothing is found."""
        return 0.0


class ModelFreeLikelihood(Likelihood):
    """No parameters, no information, and a log-likelihood that is not a number."""

    space: ModelFree
    identifiable = False  # there is nothing to identify

    def __init__(self, space: ModelFree, data: Sample) -> None:
        self.space, self.num_rows, self.total_weight, self.law = space, data.num_rows, data.total_weight, NoLaw()
        self.diverging, self._rows = np.zeros(0, dtype=bool), InMemoryRows(data.features, np.empty((data.num_rows, 0)))
        self.full = self.fit(space.full_support)

    def fit(self, support: Support, start: np.ndarray | None = None) -> Fit:
        """The same for every support."""
        return Fit(np.zeros(0), support, float("nan"), 0.0, True, False, 0, self.law)

    def num_free(self, support: Support) -> int:
        """None."""
        return 0

    def information(self) -> np.ndarray:
        """Of no parameters [0, 0]."""
        return np.zeros((0, 0))

    def remarks(self) -> list[str]:
        """Which groups these states cannot tell apart, as for a linear policy of the same groups."""
        columns = self.space.group_columns()
        inside = {g.name: [self.space.feature_names[c] for c in columns[i]] for i, g in enumerate(self.space.groups)}
        linear = GaussianLinear(self.space.feature_names, groups=inside)
        return [str(found) for found in dependences(linear, DesignMatrix(linear, moments_of(self._rows)))]

    def penalised_policy(self, support: Support | None = None) -> Policy:
        """There is none."""
        raise InputError(NO_MODEL)
