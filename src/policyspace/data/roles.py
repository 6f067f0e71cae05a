"""Column roles: what a file written here says about its columns, so that reading it back needs no arguments."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from policyspace.data.columns import Table
from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError, nearest

if TYPE_CHECKING:
    import polars

KEY = "policyspace"
"""Where a file keeps its roles: in the schema of Parquet and Arrow, an entry of NPZ, the first line of CSV."""

VERSION = 1


@final
@dataclass(frozen=True)
class Roles:
    """Which column is what; `action_names` in the order of the codes, None where the labels are still to be found."""

    action: tuple[str, ...]
    features: tuple[str, ...]
    episode: str | None = None
    weight: str | None = None
    discrete: bool | None = None
    action_names: tuple[str, ...] | None = None
    blocks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    rows: int | None = None

    @classmethod
    def of(cls, demonstrations: Demonstrations) -> Self:
        """Column names for everything, each different from those of the features."""
        taken = set(demonstrations.names)
        wanted = ("action",) if demonstrations.discrete else demonstrations.action_names
        action = tuple(_free(name, taken) for name in wanted)
        return cls(
            action,
            demonstrations.names,
            None if demonstrations.episodes is None else _free("episode", taken),
            None if demonstrations.weights is None else _free("weight", taken),
            demonstrations.discrete,
            demonstrations.action_names,
            demonstrations.blocks,
            demonstrations.metadata,
        )

    def to_json(self) -> str:
        """One line of ASCII."""
        try:
            return json.dumps({"version": VERSION} | asdict(self))
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"metadata must be something that JSON can hold, found otherwise ({error}).") from error

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse, which trusts nothing."""
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"its policyspace header must be JSON, found otherwise ({error}): remove it.") from error
        version = found.pop("version", None) if isinstance(found, dict) else None
        if isinstance(version, int) and version > VERSION:
            raise InputError(f"its policyspace header has version {version}, known is {VERSION}: update policyspace.")
        if version != VERSION or not _is_header(found):
            raise InputError("its policyspace header is damaged: remove it, or write the file again.")
        found |= {name: tuple(found[name]) for name in ("action", "features", "action_names")}
        found["blocks"] = {name: tuple(inside) for name, inside in found["blocks"].items()}
        return cls(**found)


Stored = tuple["polars.DataFrame", Roles | None]
"""A table, and what its file says about its columns."""


def to_frame(demonstrations: Demonstrations, roles: Roles) -> "polars.DataFrame":
    """One column a feature, then the action (as labels if discrete), the episode and the weight."""
    import polars

    columns: dict[str, Any] = dict(zip(roles.features, demonstrations.features.T, strict=True))
    if demonstrations.discrete:
        labels = polars.Series(demonstrations.action_names, dtype=polars.String)
        columns[roles.action[0]] = labels.gather(demonstrations.actions)
    else:
        columns |= dict(zip(roles.action, demonstrations.actions.T, strict=True))
    if roles.episode is not None:
        columns[roles.episode] = demonstrations.episodes
    if roles.weight is not None:
        columns[roles.weight] = demonstrations.weights
    return polars.DataFrame({name: polars.Series(name, values) for name, values in columns.items()})


def assemble(
    frame: "polars.DataFrame",
    roles: Roles | None,
    actions: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    episodes: str | None = None,
    weights: str | None = None,
    discrete: bool | None = None,
    reference: Any = None,
) -> Demonstrations:
    """Demonstrations from a table and what its file says about it; what the caller says comes first."""
    given = {*_listed(actions), *_listed(features), *_listed(episodes), *_listed(weights)}
    if roles is None:
        if actions is None:
            columns = ", ".join(f"'{name}'" for name in frame.columns)
            raise InputError(f"say which column is the action, with actions= or --actions; the columns are {columns}.")
        return Demonstrations.from_frame(frame, actions, features, episodes, weights, discrete, reference)
    chosen = tuple(_listed(actions)) or roles.action
    wanted = [f for f in roles.features if f not in given] if features is None else _listed(features)
    episodes = roles.episode if episodes is None and roles.episode not in given else episodes
    weights = roles.weight if weights is None and roles.weight not in given else weights
    if roles.action_names is not None and chosen == roles.action and discrete in (None, roles.discrete):
        made = _exactly(frame, roles, wanted, episodes, weights)
        made = made if reference is None else made.with_reference(reference)
    else:
        made = Demonstrations.from_frame(frame, chosen, wanted, episodes, weights, discrete, reference, roles.metadata)
    kept = {name: tuple(f for f in inside if f in made.names) for name, inside in roles.blocks.items()}
    return replace(made, blocks={name: inside for name, inside in kept.items() if inside} | dict(made.blocks))


def _exactly(
    frame: "polars.DataFrame", roles: Roles, features: list[str], episode: str | None, weight: str | None
) -> Demonstrations:
    """With the labels of the action as they were written, so that the reference survives."""
    assert roles.action_names is not None
    table = Table(frame)
    others = [name for name in (episode, weight) if name is not None]
    columns, names, blocks = table.features(table.roles(list(roles.action), features, others))
    return Demonstrations(
        columns,
        _codes(table, roles) if roles.discrete else np.column_stack([table.numbers(name) for name in roles.action]),
        names,
        roles.action_names,
        None if episode is None else table.labels(episode),
        None if weight is None else table.numbers(weight),
        blocks,
        roles.metadata,
    )


def _codes(table: Table, roles: Roles) -> np.ndarray:
    labels = table.labels(roles.action[0])
    place = {name: code for code, name in enumerate(roles.action_names or ())}
    codes = np.array([place.get(str(label), -1) for label in labels], dtype=np.int64)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise InputError(
            f"the action '{labels[row]}' in row {row + 1} is not among those of the file's header: "
            f"{nearest(str(labels[row]), place)}"
        )
    return codes


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _listed(names: str | Sequence[str] | None) -> list[str]:
    return [] if names is None else [names] if isinstance(names, str) else list(names)


def _is_header(found: Any) -> bool:
    """Are the fields there, each with the type that was written?"""

    def texts(value: Any) -> bool:
        return isinstance(value, list) and all(isinstance(text, str) for text in value)

    return (
        isinstance(found, dict)
        and found.keys() == Roles.__dataclass_fields__.keys()
        and all(texts(found[name]) and found[name] for name in ("action", "features", "action_names"))
        and all(isinstance(found[name], str | None) for name in ("episode", "weight"))
        and isinstance(found["discrete"], bool)
        and isinstance(found["blocks"], dict)
        and all(texts(inside) for inside in found["blocks"].values())
        and isinstance(found["metadata"], dict)
        and isinstance(found["rows"], int | None)
        and len(found["action"]) == (1 if found["discrete"] else len(found["action_names"]))
    )
