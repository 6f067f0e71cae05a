"""Groups: the units that are tested, a partition of the parameters θ."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from policyspace.data.limits import check_limit
from policyspace.data.vocabulary import names_of
from policyspace.errors import InputError, nearest

INTERCEPT = "intercept"

Support = frozenset[int]
"""The paper's I: which groups the agent controls."""

Groups = Literal["feature", "parameter"] | Mapping[str, Sequence[str]]
"""One group a feature, one a scalar parameter, or names given by the user."""

Members = Mapping[str, list[int]]
"""Which parameters a name stands for."""

LARGEST_FIXED = 1e60
"""Of a fixed value, so that squares of what it is multiplied with do not overflow."""


@dataclass(frozen=True)
class Group:
    """Parameters that are tested together; one that is always controlled is in every support and is not tested."""

    name: str
    indices: tuple[int, ...]
    always: bool = False


def linear_groups(
    features: tuple[str, ...],
    rows: tuple[str, ...],
    groups: Groups,
    always: Sequence[str],
    fixed: Any,
    intercept: bool,
    blocks: Mapping[str, Sequence[str]],
) -> tuple[tuple[Group, ...], np.ndarray]:
    """The partition of the weights [k, q] of a linear policy, and the value each has when it is not controlled.

    `blocks` are the categorical columns: their one-hot features make one group. The intercept is always controlled.
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
    parameters = {name: [i] for name, i in scalars.items()}
    columns = {name: [a * q + j + intercept for a in range(len(rows))] for j, name in enumerate(features)}
    whole_blocks = {name: [i for feature in inside for i in columns[feature]] for name, inside in blocks.items()}
    in_block = {name for inside in blocks.values() for name in inside}
    by_feature = {name: inside for name, inside in columns.items() if name not in in_block} | whole_blocks
    members = parameters | columns | whole_blocks
    tested = tested_groups(groups, always, members, parameters, by_feature, lambda i: i % q)
    constants = [Group(INTERCEPT, tuple(a * q for a in range(len(rows))), always=True)] if intercept else []
    return (*constants, *tested), fixed_values(fixed, members, tested, q * len(rows))


def tested_groups(
    groups: Groups,
    always: Sequence[str],
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
    free = set(_resolve(list(always), dict(members) | partition, "always"))
    resolved = []
    for name, indices in partition.items():
        declared = free.intersection(indices)
        if declared and len(declared) < len(indices):
            raise InputError(
                f"group '{name}' is declared always controlled in part only: declare all of it, or split it."
            )
        resolved.append(Group(name, tuple(sorted(indices)), always=bool(declared)))
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
        raise InputError(f"groups must be 'feature', 'parameter' or a table of names, found {groups!r}.")
    partition: dict[str, list[int]] = {}
    for name, inside in groups.items():
        if name == INTERCEPT:
            raise InputError(f"a group is named '{INTERCEPT}', the name of the constant: rename it.")
        if isinstance(inside, str):
            raise InputError(f"group '{name}' must be a list of names, found the text '{inside}'.")
        partition[name] = _resolve(names_of(inside, f"group '{name}'"), members, f"group '{name}'")
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
