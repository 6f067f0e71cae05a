"""No policy model at all: only which columns are tested together."""

from collections.abc import Mapping, Sequence
from typing import NoReturn, final

import numpy as np

from policyspace.errors import InputError
from policyspace.policies.base import Array, Key, PolicySpace
from policyspace.policies.groups import Group, Groups, linear_groups

NO_MODEL = (
    "the policy 'any' is no model: it has no probabilities, cannot be fitted and draws no actions; ask for the policy "
    "'gaussian', 'boltzmann' or 'network'."
)
"""What is said where a model is needed."""


@final
class AnyPolicy(PolicySpace):
    """Whatever the agent does: no parameters, so that only a test without a policy model can ask what it uses.

    Groups are features, blocks of one-hot features, or tables of them.
    """

    def __init__(
        self,
        features: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        groups: Groups | None = None,
        always: Sequence[str] = (),
        blocks: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        if features is None:
            self._wait(actions, blocks, groups=groups, always=always)
            return
        if groups is not None and not isinstance(groups, Mapping) and groups != "feature":
            raise InputError(
                f"the policy 'any' has no parameters, found the groups '{groups}': use the groups 'feature', or a table."
            )
        self.feature_names, self.action_names = tuple(features), tuple(actions or ("action",))
        groups = "feature" if groups is None else groups
        # As of one weight a feature: the place of a weight is that of its column.
        columns, _ = linear_groups(self.feature_names, ("",), groups, always, 0.0, False, blocks or {})
        self._columns = {number: group.indices for number, group in enumerate(columns)}
        self.groups = tuple(Group(group.name, (), group.always) for group in columns)
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
