"""Connector protocol and registry; observations of any space as named columns."""

import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, final

import numpy as np

from policyspace.data.columns import MAX_LEVELS, DataTable
from policyspace.data.origin import Origin
from policyspace.data.schema import Schema, StoredTable, free_name
from policyspace.errors import InputError, check_unique
from policyspace.safe_io import guarded

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True)
class Connector:
    """A kind of source that another tool keeps: how it is recognised, and how it becomes a table with roles.

    One that reads files names them, and reads them in a process of its own (`safe_io.guarded`).
    """

    recognises: Callable[[Any], bool]
    load: Callable[[Any], StoredTable]
    files: Callable[[Path], Iterable[Path]] | None = None


CONNECTORS = (
    "datasets:HDF5_FILE",  # D4RL's files
    "datasets:LEROBOT_FOLDER",
    "datasets:MINARI_DATASET",  # an object, a folder or an id
    "arrays:BUFFER",
    "arrays:ARRAY_DICT",  # RLlib's batches too
    "arrays:EPISODE_LIST",  # pairs (observations, actions), imitation's trajectories
)
"""Module beside this one and name of the connector in it, in the order in which they are asked."""


def find_connector(source: Any) -> Connector | None:
    """The connector of a source, or None; a table is none of theirs, whatever its columns are called."""
    if not callable(getattr(source, "columns", len)):  # a method of this name is no table: RLlib's batches have one
        return None
    for name in CONNECTORS:
        module, attribute = name.split(":")
        connector: Connector = getattr(import_module(f"policyspace.data.connectors.{module}"), attribute)
        if connector.recognises(source):
            return connector
    return None


def load(source: Any) -> StoredTable | None:
    """The table in a source that a connector recognises, and the roles of its columns; None if none does."""
    connector = find_connector(source)
    if connector is None or connector.files is None or not isinstance(source, str | Path) or not sys.executable:
        return None if connector is None else connector.load(source)
    import polars

    with tempfile.TemporaryFile() as content:
        place = "policyspace.data.connectors:write_stored"
        roles = guarded(place, source, connector.files(Path(source)), content)
        return polars.read_ipc_stream(content), None if roles is None else Schema.from_table(roles)


def write_stored(source: str, content: BinaryIO) -> Mapping[str, object] | None:
    """The other side of `load`, in another process: the table as content, and the roles of its columns."""
    connector = find_connector(source)
    if connector is None:
        raise InputError("the source has changed while it was read: try again.")
    frame, roles = connector.load(source)
    frame.write_ipc_stream(content)
    return None if roles is None else roles.to_table()


# -- Observations and actions of any Gymnasium space as named columns: `position[0]`, `arm.angle[1]`, `observation[2]`.

OBSERVATION = "observation"
"""What an observation is called that has no name of its own; the entries of a Dict have theirs."""

ACTION = "action"

SMALLEST_PICTURE = 16
"""Two-dimensional observations whose sides are at least so long are pictures."""


class Column(NamedTuple):
    """One value a row; categories are whole numbers without an order."""

    name: str
    values: np.ndarray
    category: bool = False


def each_array(function: Callable[..., Any], first: Any, *others: Any) -> Any:
    """The same nested dicts and tuples, with `function` of the arrays that stand at the same place in all of them."""
    if hasattr(first, "items"):
        return {key: each_array(function, inside, *(o[key] for o in others)) for key, inside in first.items()}
    if isinstance(first, tuple):
        return tuple(each_array(function, *inside) for inside in zip(first, *others, strict=True))
    return function(first, *others)


def num_rows(values: Any) -> int:
    """The length of the first array inside."""
    while hasattr(values, "items") or isinstance(values, tuple):
        inside = list(values.values() if isinstance(values, Mapping) else values)
        if not inside:
            raise InputError("an observation or action needs at least one entry, found an empty one: leave it out.")
        values = inside[0]
    return len(values)


def flatten(name: str, values: Any, space: Any = None, frames: int = 1) -> list[Column]:
    """The columns of arrays [n, …] inside nested dicts and tuples; `space`, if known, says which are categories.

    Of arrays that hold several `frames`, the oldest first, the names say which: `speed@t-1`, `speed@t`.
    """
    if isinstance(values, Mapping):
        inner = {key: key if name == OBSERVATION else f"{name}.{key}" for key in values}
        return [
            column
            for key, inside in values.items()
            for column in flatten(str(inner[key]), inside, None if space is None else space[key], frames)
        ]
    if isinstance(values, tuple):
        return [
            column
            for i, inside in enumerate(values)
            for column in flatten(f"{name}[{i}]", inside, None if space is None else space[i], frames)
        ]
    return _of_array(name, values, _kind(name, space), frames)


def in_frames(names: Sequence[str], frames: int) -> list[str]:
    """The names of one frame for each of several, the oldest first."""
    if frames == 1:
        return list(names)
    ages = [f"t-{age}" if age else "t" for age in reversed(range(frames))]
    return [f"{name}@{age}" for age in ages for name in names]


def _of_array(name: str, values: Any, kind: str, frames: int) -> list[Column]:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"'{name}' must be rows of the same shape, found different ones: log fixed shapes.") from error
    if array.dtype.kind not in "biuf":
        raise InputError(f"'{name}' must be numbers, found the type {array.dtype}: log numbers, or leave it out.")
    if array.ndim == 0:
        raise InputError(f"'{name}' must have one row a step, found a single number: check it.")
    shape = array.shape[1:]
    if len(shape) > 2 or (len(shape) == 2 and (array.dtype == np.uint8 or min(shape) >= SMALLEST_PICTURE)):
        size = "×".join(str(side) for side in shape)
        raise InputError(
            f"'{name}' holds images ({size}), whose pixels have no meaning one by one: log what they show as numbers "
            "(positions, speeds, a small embedding), and leave the images out."
        )
    flat = array.reshape(len(array), -1)
    if kind or array.dtype.kind == "b":
        flat = flat.astype(np.float64 if kind == "amount" else np.int64)
    stacked = frames > 1 and flat.shape[1] % frames == 0
    one = (flat.shape[1] // frames,) if stacked else shape
    single = int(np.prod(one)) == 1
    names = [name if single else f"{name}[{','.join(map(str, place))}]" for place in np.ndindex(one)]
    names = in_frames(names, frames if stacked else 1)
    return [Column(n, column, kind == "category") for n, column in zip(names, flat.T, strict=True)]


def _kind(name: str, space: Any) -> str:
    """Category, truth or amount, by the space of the values; nothing where the space is not known."""
    if space is None:
        return ""
    from gymnasium import spaces  # whoever has a space has imported it

    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        return "category"
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return "amount" if isinstance(space, spaces.Box) else "truth"
    raise InputError(
        f"'{name}' is of the space {type(space).__name__}, which has no fixed numbers: use a wrapper that makes it a Box, "
        "Discrete, MultiDiscrete or MultiBinary space, or a Dict or Tuple of these."
    )


# -- A recording: observations, actions and ends of episodes as a tool has kept them, and the table that they make.


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
    origin: Origin = field(default_factory=Origin)
    features: tuple[str, ...] = ()
    frames: int = 1

    def observed(self) -> list[Column]:
        """The columns of the observations under their names."""
        columns = flatten(OBSERVATION, self.observations, self.observation_space, self.frames)
        return _renamed(columns, self.features, self.frames) if self.features else columns

    def stored(self) -> StoredTable:
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
        frame = DataTable(frame).with_categories([column.name for column in observed if _has_levels(column)]).frame
        return frame, Schema(
            () if several else tuple(column.name for column in acted),
            tuple(column.name for column in observed),
            episodes[0].name if episodes else None,
            origin=self.origin,
            recorded=tuple(column.name for column in recorded),
        )


Episode = tuple[Any, Any, Mapping[str, Any]]
"""Observations, actions, and what else was recorded."""


def as_recording(episodes: Iterable[Episode], **more: Any) -> Recording:
    """Episodes one after the other, each without its last observation."""
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
