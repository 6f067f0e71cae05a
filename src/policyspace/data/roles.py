"""Column roles: what a file written here says about its columns, so that reading it back needs no arguments."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from policyspace.data.choice_tables import choice_demonstrations
from policyspace.data.column_choice import FROM_READING, Columns, choose, listed
from policyspace.data.columns import Table
from policyspace.data.demonstrations import Demonstrations
from policyspace.data.input_files import parse_json
from policyspace.errors import InputError, nearest

if TYPE_CHECKING:
    import polars

KEY = "policyspace"
"""Where a file keeps its roles: in the schema of Parquet and Arrow, an entry of NPZ, the first line of CSV."""

VERSION = 1

LATER: dict[str, Any] = {"subject": None, "recorded": []}
"""What older files do not know of, and so say nothing about."""


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
    subject: str | None = None
    recorded: tuple[str, ...] = ()

    @classmethod
    def of(cls, demonstrations: Demonstrations) -> Self:
        """Column names for everything, each different from those of the features."""
        taken = {*demonstrations.names, *demonstrations.recorded}
        wanted = ("action",) if demonstrations.discrete else demonstrations.action_names
        action = tuple(free_name(name, taken) for name in wanted)
        return cls(
            action,
            demonstrations.names,
            None if demonstrations.episodes is None else free_name("episode", taken),
            None if demonstrations.weights is None else free_name("weight", taken),
            demonstrations.discrete,
            demonstrations.action_names,
            demonstrations.blocks,
            {name: value for name, value in demonstrations.metadata.items() if name not in FROM_READING},
            subject=None if demonstrations.subjects is None else free_name("subject", taken),
            recorded=tuple(demonstrations.recorded),
        )

    @property
    def beside(self) -> dict[str, str | None]:
        """The columns beside features and actions, by what they hold."""
        return {"episodes": self.episode, "weights": self.weight, "subjects": self.subject}

    def blocks_among(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The blocks of features, as far as they are among these."""
        inside = {name: tuple(f for f in block if f in names) for name, block in self.blocks.items()}
        return {name: block for name, block in inside.items() if block}

    def to_json(self) -> str:
        """One line of ASCII."""
        try:
            said = {name: value for name, value in asdict(self).items() if name not in LATER or value}
            return json.dumps({"version": VERSION} | said)
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"metadata must be something that JSON can hold, found otherwise ({error}).") from error

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse, which trusts nothing."""
        try:
            found = parse_json(text, finite=False)
        except InputError as error:
            raise InputError(f"its policyspace header must be JSON, found otherwise: it {error}") from error
        version = found.pop("version", None) if isinstance(found, dict) else None
        if isinstance(version, int) and version > VERSION:
            raise InputError(f"its policyspace header has version {version}, known is {VERSION}: update policyspace.")
        if isinstance(found, dict):
            found = {name: none for name, none in LATER.items() if name not in found} | found
        if version != VERSION or not _is_header(found):
            raise InputError("its policyspace header is damaged: remove it, or write the file again.")
        found |= {name: tuple(found[name]) for name in ("action", "features", "action_names", "recorded")}
        found["metadata"] = {name: value for name, value in found["metadata"].items() if name not in FROM_READING}
        found["blocks"] = {name: tuple(inside) for name, inside in found["blocks"].items()}
        return cls(**found)


Stored = tuple["polars.DataFrame", Roles | None]
"""A table, and what its file says about its columns."""


def to_frame(demonstrations: Demonstrations, roles: Roles) -> "polars.DataFrame":
    """One column a feature, then the action (as labels if discrete), the episode, the weight and the subject."""
    import polars

    columns: dict[str, Any] = dict(zip(roles.features, demonstrations.features.T, strict=True))
    if demonstrations.discrete:
        labels = polars.Series(demonstrations.action_names, dtype=polars.String)
        columns[roles.action[0]] = labels.gather(demonstrations.actions)
    else:
        columns |= dict(zip(roles.action, demonstrations.actions.T, strict=True))
    columns |= {name: getattr(demonstrations, word) for word, name in roles.beside.items() if name is not None}
    columns |= demonstrations.recorded
    return polars.DataFrame({name: polars.Series(name, values) for name, values in columns.items()})


def assemble(
    frame: "polars.DataFrame",
    roles: Roles | None,
    columns: Columns,
    discrete: bool | None = None,
    reference: Any = None,
) -> Demonstrations:
    """Demonstrations from a table and what its file says about it; what the caller says comes first."""
    long = columns.choices is not None and columns.choices.long is not None
    if roles is None and columns.actions is None and not long:
        names = ", ".join(f"'{name}'" for name in frame.columns)
        raise InputError(f"say which column is the action, with actions= or --actions; the columns are {names}.")
    if roles is not None and not roles.action and columns.actions is None:
        rest = {*roles.features, *roles.recorded, roles.episode}
        names = ", ".join(f"'{name}'" for name in frame.columns if name not in rest)
        raise InputError(
            f"every step has several choices, of which one is tested at a time: name one of {names} with actions= or "
            "--actions."
        )
    if roles is None or columns.choices is not None:
        return _by_name(frame, columns, discrete, reference, {})
    columns = with_roles(columns, roles)
    if is_as_written(roles, columns, discrete):
        made = _exactly(frame, roles, columns)
        made = made if reference is None else made.with_reference(reference)
    else:
        made = _by_name(frame, columns, discrete, reference, roles.metadata)
    return replace(made, blocks=roles.blocks_among(made.names) | dict(made.blocks))


def with_roles(columns: Columns, roles: Roles) -> Columns:
    """What the caller says about the columns, and for the rest what the file says."""
    given = columns.named
    kept: dict[str, Any] = {
        word: name for word, name in roles.beside.items() if getattr(columns, word) is None and name not in given
    }
    kept["actions"] = tuple(listed(columns.actions)) or roles.action
    kept["recorded"] = [name for name in roles.recorded if name not in given]
    if columns.features is None:
        kept["features"] = [name for name in roles.features if name not in given]
    return replace(columns, **kept)


def is_as_written(roles: Roles, columns: Columns, discrete: bool | None) -> bool:
    """Are the actions those that the file was written with, so that its labels keep their order?"""
    same = tuple(listed(columns.actions)) == roles.action
    return roles.action_names is not None and same and discrete in (None, roles.discrete)


def _by_name(
    frame: "polars.DataFrame", columns: Columns, discrete: bool | None, reference: Any, metadata: Mapping[str, Any]
) -> Demonstrations:
    if columns.choices is not None:
        return choice_demonstrations(Table(frame), columns, metadata, reference)
    said: dict[str, Any] = {word: value for word, value in vars(columns).items() if word != "choices"}
    return Demonstrations.from_frame(frame, **said, discrete=discrete, reference=reference, metadata=metadata)


def _exactly(frame: "polars.DataFrame", roles: Roles, columns: Columns) -> Demonstrations:
    """With the labels of the action as they were written, so that the reference survives."""
    assert roles.action_names is not None
    choice = choose(Table(frame), columns, texts=False)
    table = choice.table
    values, names, blocks = table.features(choice.features)
    return Demonstrations(
        values,
        codes_of(table, roles) if roles.discrete else np.column_stack([table.numbers(name) for name in roles.action]),
        names,
        roles.action_names,
        None if columns.episodes is None else table.labels(columns.episodes),
        None if columns.weights is None else table.numbers(columns.weights),
        blocks,
        dict(roles.metadata) | choice.metadata,
        None if columns.subjects is None else table.labels(columns.subjects),
        table.recorded(columns.recorded),
    )


def codes_of(table: Table, roles: Roles) -> np.ndarray:
    """The codes of the labels in a table, in the order in which they were written."""
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


def free_name(name: str, taken: set[str]) -> str:
    """The name, or one like it that is not taken; it is taken then."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _is_header(found: Any) -> bool:
    """Are the fields there, each with the type that was written?"""

    def texts(value: Any) -> bool:
        return isinstance(value, list) and all(isinstance(text, str) for text in value)

    return (
        isinstance(found, dict)
        and found.keys() == Roles.__dataclass_fields__.keys()
        and all(texts(found[name]) and found[name] for name in ("action", "features", "action_names"))
        and texts(found["recorded"])
        and all(isinstance(found[name], str | None) for name in ("episode", "weight", "subject"))
        and isinstance(found["discrete"], bool)
        and isinstance(found["blocks"], dict)
        and all(texts(inside) for inside in found["blocks"].values())
        and isinstance(found["metadata"], dict)
        and isinstance(found["rows"], int | None)
        and len(found["action"]) == (1 if found["discrete"] else len(found["action_names"]))
    )
