"""The agent's own last actions as features: habit, beside which the others must show that they are used."""

from dataclasses import replace

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError


def lag_name(lag: int) -> str:
    """How the action so many rows back is called."""
    return "previous action" if lag == 1 else f"action {lag} back"


def with_lags(data: Demonstrations, lags: int) -> Demonstrations:
    """The same pairs with the agent's last `lags` actions of the same episode as features, one group each.

    The first rows of an episode have no such past and are left out; a sentence in the metadata says how many. Rows of an
    episode are in the order of time; without episodes those of a subject are one, and without subjects all rows.
    """
    if not (isinstance(lags, int) and lags >= 1):
        raise InputError(f"lags must be a whole number of at least 1, found {lags!r}: 1 is the last action.")
    if data.weights is not None:
        raise InputError("rows with weights have no order, so that no action is the previous one: leave the lags out.")
    episodes, named = _episodes(data)
    order = np.argsort(episodes, kind="stable")
    position = np.empty(len(order), dtype=np.intp)  # of each row within its episode
    position[order] = np.arange(len(order)) - np.searchsorted(episodes[order], episodes[order])
    kept = order[position[order] >= lags]
    if not len(kept):
        raise InputError(
            f"no {named} has more than {lags} rows, so that none has {lags} previous actions: ask for fewer."
        )
    where = np.empty(len(order), dtype=np.intp)
    where[order] = np.arange(len(order))
    kept = np.sort(kept)
    columns, names, blocks = [data.features[kept]], list(data.names), dict(data.blocks)
    for lag in range(1, lags + 1):
        past = data.actions[order[where[kept] - lag]]
        title = lag_name(lag)
        if data.discrete:
            labels = data.action_names[:-1]
            columns.append((past[:, None] == np.arange(len(labels))).astype(np.float64))
            inside = [f"{title}={label}" for label in labels]
        else:
            columns.append(past)
            inside = [title] if past.shape[1] == 1 else [f"{title}: {name}" for name in data.action_names]
        names += inside
        if inside != [title]:
            blocks[title] = tuple(inside)
    rows = data.rows(kept)
    said = f"the first {lags} rows of each {named} have no previous actions and were left out: "
    said = said.replace("first 1 rows", "first row").replace("have no", "has no" if lags == 1 else "have no")
    said = said.replace("and were", "and was" if lags == 1 else "and were")
    warnings = [*data.metadata.get("warnings", ()), f"{said}{len(order) - len(kept)} of {len(order)} rows."]
    metadata = dict(data.metadata) | {"warnings": warnings, "habit": [lag_name(lag) for lag in range(1, lags + 1)]}
    return replace(rows, features=np.hstack(columns), names=tuple(names), blocks=blocks, metadata=metadata)


def _episodes(data: Demonstrations) -> tuple[np.ndarray, str]:
    """The runs of rows within which actions follow each other, and what one is called."""
    if data.episodes is not None and data.subjects is not None:  # episodes may be counted anew for every subject
        return np.unique(np.stack([data.subjects, data.episodes]), axis=1, return_inverse=True)[1].ravel(), "episode"
    if data.episodes is not None:
        return data.episodes, "episode"
    if data.subjects is not None:
        return data.subjects, "subject"
    return np.zeros(data.num_pairs, dtype=np.intp), "file"
