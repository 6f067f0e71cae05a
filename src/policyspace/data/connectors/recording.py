"""A recording: observations, actions and ends of episodes as a tool has kept them, and the table that they make."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np

from policyspace.data.columns import MAX_LEVELS, Table
from policyspace.data.connectors.flattening import ACTION, OBSERVATION, Column, each_array, flatten, in_frames, num_rows
from policyspace.data.roles import Roles, Stored, free_name
from policyspace.errors import InputError, check_unique

if TYPE_CHECKING:
    import polars


@final
@dataclass(frozen=True)
class Recording:
    """Rows of any Gymnasium spaces: arrays [n, …], or dicts and tuples of arrays.

    `recorded` is kept beside the pairs, `others` are columns that a caller may name, `features` are names for the
    columns of the observations, or of one of the `frames` that an observation holds.
    """

    observations: Any
    actions: Any
    episodes: Any = None
    recorded: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Any] = field(default_factory=dict)
    observation_space: Any = None
    action_space: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    frames: int = 1

    def observed(self) -> list[Column]:
        """The columns of the observations under their names."""
        columns = flatten(OBSERVATION, self.observations, self.observation_space, self.frames)
        return _renamed(columns, self.features, self.frames) if self.features else columns

    def stored(self) -> Stored:
        """One column a number, and the roles of the columns; actions of several choices have none until one is chosen."""
        observed = self.observed()
        taken = {column.name for column in observed}

        def beside(column: Column) -> Column:
            return column._replace(name=free_name(column.name, taken))

        acted = [beside(column) for column in flatten(ACTION, self.actions, self.action_space)]
        several = len(acted) > 1 and any(column.values.dtype.kind != "f" for column in acted)
        episodes = [] if self.episodes is None else [beside(Column("episode", np.asarray(self.episodes)))]
        recorded = [beside(Column(name, np.asarray(values).reshape(-1))) for name, values in self.recorded.items()]
        others = [Column(name, np.asarray(values)) for name, values in self.others.items() if name not in taken]
        frame = _frame([*observed, *acted, *episodes, *recorded, *others], len(observed[0].values))
        frame = Table(frame).with_categories([column.name for column in observed if _has_levels(column)]).frame
        return frame, Roles(
            () if several else tuple(column.name for column in acted),
            tuple(column.name for column in observed),
            episodes[0].name if episodes else None,
            metadata=self.metadata,
            recorded=tuple(column.name for column in recorded),
        )


def joined(episodes: Iterable[tuple[Any, Any, Mapping[str, Any]]], **more: Any) -> Recording:
    """Episodes (observations, actions, what else was recorded) one after the other, each without its last observation."""
    seen, acted, recorded, sizes = [], [], [], []
    for i, (observations, actions, beside) in enumerate(episodes):
        size, found = num_rows(actions), num_rows(observations)
        if found not in (size, size + 1):
            raise InputError(
                f"an episode has as many observations as actions, or one more, found {found} and {size} in episode {i}."
            )
        if size:
            seen.append(each_array(lambda array, size=size: np.asarray(array)[:size], observations))
            acted.append(each_array(np.asarray, actions))
            recorded.append({name: np.broadcast_to(value, size) for name, value in beside.items()})
            sizes.append(size)
    if not sizes:
        raise InputError("a recording needs at least one episode with an action, found none: record some.")
    numbers = np.repeat(np.arange(len(sizes)), sizes)
    names = [name for name in recorded[0] if all(name in one for one in recorded)]
    beside = {name: np.concatenate([one[name] for one in recorded]) for name in names}
    try:
        return Recording(_concatenated(seen), _concatenated(acted), numbers, beside, **more)
    except (ValueError, KeyError) as error:
        raise InputError(
            "every episode must have observations and actions of one shape, found different ones."
        ) from error


def episodes_by_ends(ends: Any) -> np.ndarray:
    """Which episode each row is of [n], from the truth that an episode ends with a row."""
    ended = np.asarray(ends).reshape(-1).astype(bool)
    return np.concatenate([[0], np.cumsum(ended)[:-1]])


def _has_levels(column: Column) -> bool:
    """Is it a category that varies? One that never does stays a number, which nothing can be said about."""
    levels = len(np.unique(column.values)) if column.category else 0
    if levels > MAX_LEVELS:
        raise InputError(
            f"'{column.name}' is one of {levels} categories, found more than the {MAX_LEVELS} that can be compared: use a "
            "wrapper that shows what it is made of, such as a row and a column."
        )
    return levels > 1


def _concatenated(parts: list[Any]) -> Any:
    return each_array(lambda *arrays: np.concatenate(arrays), *parts)


def _renamed(columns: list[Column], given: tuple[str, ...], frames: int) -> list[Column]:
    names = in_frames(given, frames if len(given) < len(columns) else 1)
    if len(names) != len(columns):
        found = ", ".join(column.name for column in columns)
        raise InputError(f"there must be one name for each of {found}, found {len(given)}: correct features=.")
    return [column._replace(name=name) for column, name in zip(columns, names, strict=True)]


def _frame(columns: list[Column], n: int) -> "polars.DataFrame":
    import polars

    check_unique(column.name for column in columns)
    for column in columns:
        if len(column.values) != n:
            raise InputError(
                f"all that is recorded must have the same number of rows, found {n} of '{columns[0].name}' and "
                f"{len(column.values)} of '{column.name}'."
            )
    return polars.DataFrame({name: np.ascontiguousarray(values) for name, values, _ in columns})
