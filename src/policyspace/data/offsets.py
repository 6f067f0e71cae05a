"""Offsets: a known part of the policy, added to the mean of an action or to the log-odds of a label with weight 1."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from policyspace.data.arrays import as_matrix
from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError, nearest

OFFSET = "offset"
"""The attribute that holds the offsets of labels, and the name of columns that came as an array."""


def with_offset_columns(features: Sequence[str] | str | None, offset: Any) -> Any:
    """The features to read from a table, and the columns of its offset beside them; None stays 'all columns'."""
    columns = [offset] if isinstance(offset, str) else list(offset.values()) if isinstance(offset, Mapping) else []
    if features is None or not columns:
        return features
    named = [features] if isinstance(features, str) else list(features)
    return [*named, *(column for column in dict.fromkeys(columns) if column not in named)]


def named_offset(data: Demonstrations, offset: Any) -> tuple[Demonstrations, dict[str, str]]:
    """The column of each action's offset among the features of the data; those of an array are put there first.

    One column is the offset of one action, or of the first of two labels; else `offset` is a table {action: column}, or an
    array [n, k] with a column for every action but the reference.
    """
    single = len(data.action_names) == 1 or (data.discrete and len(data.action_names) == 2)
    actions = data.action_names[:-1] if data.discrete else data.action_names
    if isinstance(offset, Mapping):
        found = {str(action): str(column) for action, column in offset.items()}
    elif isinstance(offset, str):
        if not single:
            raise InputError(
                f"one column can be the offset of one action or of two labels, found {len(data.action_names)} actions: name "
                f"a column for each, as in {{'{actions[0]}': '{offset}'}} or --offset '{actions[0]}={offset}'."
            )
        found = {actions[0]: offset}
    else:
        values = as_matrix(offset, "the offset")
        if values.shape != (data.num_pairs, len(actions)):
            raise InputError(
                f"the offset must be an array of {data.num_pairs} rows and {len(actions)} columns "
                f"({', '.join(actions)}), found the shape {values.shape}."
            )
        found = {action: OFFSET if single else f"{OFFSET}[{action}]" for action in actions}
        names = (*data.names, *found.values())
        return replace(data, features=np.hstack([data.features, values]), names=names), found
    for what, name, known in [
        *(("no action", action, data.action_names) for action in found),
        *(("no feature", column, data.names) for column in found.values()),
    ]:
        if name not in known:
            raise InputError(f"the offset names '{name}', which is {what}: {nearest(name, known)}")
    return data, found


def with_offset(data: Demonstrations, columns: Mapping[str, str]) -> Demonstrations:
    """The same pairs with these features as the known part of their actions, by action.

    From amounts it is subtracted: a − o has the policy without it. Of labels it becomes an attribute of the alternatives.
    """
    metadata = dict(data.metadata) | {"offset": dict(columns)}
    if data.discrete:
        recorded = metadata.get("policy")
        policy: dict[str, Any] = dict(recorded) if isinstance(recorded, Mapping) else {}
        network = str(policy.get("family", "")).endswith("network")
        policy |= {"family": policy["family"] if network else "choice", "offset": [*policy.get("offset", ()), OFFSET]}
        policy["attributes"] = dict(policy.get("attributes") or {}) | {OFFSET: dict(columns)}
        return replace(data, metadata=metadata | {"policy": policy})
    place = {name: j for j, name in enumerate(data.names)}
    known = np.zeros_like(data.actions)
    for action, column in columns.items():
        known[:, data.action_names.index(action)] = data.features[:, place[column]]
    kept = [j for name, j in place.items() if name not in columns.values()]
    return replace(
        data,
        features=data.features[:, kept],
        actions=data.actions - known,
        names=tuple(data.names[j] for j in kept),
        metadata=metadata,
    )
