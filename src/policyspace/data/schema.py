"""Column roles: what a file written here says about its columns, so that reading it back needs no arguments."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from policyspace.data.choices import choice_sample
from policyspace.data.columns import ColumnRoles, DataTable, choose, listed
from policyspace.data.origin import Origin
from policyspace.data.sample import ACTION_TYPES, ActionKind, ActionType, Sample
from policyspace.data.validation import TEXTS
from policyspace.errors import InputError
from policyspace.safe_io import JSON, conforms, parse_json

if TYPE_CHECKING:
    import polars

KEY = "policyspace"
"""Where a file keeps its roles: in the schema of Parquet and Arrow, an entry of NPZ, the first line of CSV."""

VERSION = 2
"""Of the header. Version 1 has `discrete` and `counts` instead of `kind`, and `metadata` instead of `origin`."""


@final
@dataclass(frozen=True)
class Schema:
    """Which column is what; `action_names` in the order of the codes, None where the labels are still to be found."""

    action: tuple[str, ...]
    features: tuple[str, ...]
    episode: str | None = None
    weight: str | None = None
    kind: ActionKind | None = None
    action_names: tuple[str, ...] | None = None
    blocks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    origin: Origin = field(default_factory=Origin)
    rows: int | None = None
    subject: str | None = None
    recorded: tuple[str, ...] = ()

    @property
    def action_type(self) -> ActionType:
        """What kind of actions were written."""
        return ACTION_TYPES[self.kind or "continuous"](self.action_names or self.action)

    @classmethod
    def of(cls, sample: Sample) -> Self:
        """Column names for everything, each different from those of the features."""
        taken = {*sample.names, *sample.recorded}
        action = tuple(free_name(name, taken) for name in sample.action_type.file_columns)
        return cls(
            action,
            sample.names,
            None if sample.episodes is None else free_name("episode", taken),
            None if sample.weights is None else free_name("weight", taken),
            sample.action_type.kind,
            sample.action_names,
            sample.blocks,
            sample.origin,
            subject=None if sample.subjects is None else free_name("subject", taken),
            recorded=tuple(sample.recorded),
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
            return json.dumps({"version": VERSION, **self.to_table()})
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(
                f"the origin of data must be something that JSON can hold, found otherwise ({error})."
            ) from error

    def to_table(self) -> Mapping[str, object]:
        """The fields that are not empty, as plain data."""
        table = {**vars(self), "origin": self.origin.to_dict()}
        return {name: value for name, value in table.items() if value not in (None, (), {})}

    @classmethod
    def from_table(cls, found: Mapping[str, Any]) -> Self:
        """The inverse of `to_table`, where lists are tuples again."""
        lists = {name: tuple(value) for name, value in found.items() if isinstance(value, list)}
        blocks = {name: tuple(inside) for name, inside in found.get("blocks", {}).items()}
        empty = {"action": (), "features": ()}
        return cls(**{**empty, **found, **lists, "blocks": blocks, "origin": Origin.of(found.get("origin", {}))})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse, which trusts nothing."""
        try:
            found = parse_json(text, finite=False)
        except InputError as error:
            raise InputError(f"its policyspace header must be JSON, found otherwise: it {error}") from error
        version = found.get("version") if isinstance(found, dict) else None
        if isinstance(version, int) and version > VERSION:
            raise InputError(f"its policyspace header has version {version}, known is {VERSION}: update policyspace.")
        if version == 1:
            found = _from_version_1(found)
        if found is None or version not in (1, VERSION) or not _is_header(found):
            raise InputError("its policyspace header is damaged: remove it, or write the file again.")
        del found["version"]
        return cls.from_table(found)


def _from_version_1(found: dict[str, JSON]) -> dict[str, JSON] | None:
    """Such a header in the words of today."""
    discrete, counts = found.pop("discrete", None), found.pop("counts", False)
    if not (isinstance(discrete, bool) and isinstance(counts, bool) and isinstance(found.get("metadata"), dict)):
        return None
    kind = "discrete" if discrete else "count" if counts else "continuous"
    return found | {"kind": kind, "origin": found.pop("metadata")}


def _is_header(found: Mapping[str, Any]) -> bool:
    """Are the fields there, each with the type that was written?"""
    fields = {name: value for name, value in found.items() if name not in ("version", "origin")}
    names = found.get("action_names") or ()
    return (
        conforms(fields, Schema)
        and isinstance(found.get("origin", {}), dict)
        and bool(found["action"] and found["features"] and names and found.get("kind"))
        and len(found["action"]) == (1 if found["kind"] == "discrete" else len(names))
    )


StoredTable = tuple["polars.DataFrame", Schema | None]
"""A table, and what its file says about its columns."""


def to_frame(sample: Sample, roles: Schema) -> "polars.DataFrame":
    """One column a feature, then the action (as labels if discrete), the episode, the weight and the subject."""
    import polars

    columns: dict[str, np.ndarray] = dict(zip(roles.features, sample.features.T, strict=True))
    actions = sample.action_type.decode(sample.actions).reshape(sample.num_rows, -1)
    columns |= dict(zip(roles.action, actions.T, strict=True))
    columns |= {name: getattr(sample, word) for word, name in roles.beside.items() if name is not None}
    columns |= sample.recorded
    return polars.DataFrame({name: polars.Series(name, values) for name, values in columns.items()})


def assemble(
    frame: "polars.DataFrame",
    roles: Schema | None,
    columns: ColumnRoles,
    discrete: bool | None = None,
    reference: Any = None,
) -> Sample:
    """A sample from a table and what its file says about it; what the caller says comes first."""
    check_action_is_named(columns, roles, frame.columns)
    if roles is None or columns.choices is not None:
        return _by_name(frame, columns, discrete, reference, Origin())
    columns = with_roles(columns, roles)
    if is_as_written(roles, columns, discrete):
        made = _as_written(frame, roles, columns)
        made = made if reference is None else made.with_reference(reference)
    else:
        made = _by_name(frame, columns, discrete, reference, roles.origin)
    return replace(made, blocks=roles.blocks_among(made.names) | dict(made.blocks))


def check_action_is_named(columns: ColumnRoles, roles: Schema | None, names: Sequence[str]) -> None:
    """One sentence where neither the caller nor the file says which column is the action."""
    if columns.actions is not None or (columns.choices is not None and columns.choices.long is not None):
        return
    if roles is None:
        found = ", ".join(f"'{name}'" for name in names)
        raise InputError(f"say which column is the action, with actions= or --actions; the columns are {found}.")
    if not roles.action:
        rest = {*roles.features, *roles.recorded, roles.episode}
        found = ", ".join(f"'{name}'" for name in names if name not in rest)
        raise InputError(
            f"every step has several choices, of which one is tested at a time: name one of {found} with actions= or "
            "--actions."
        )


def with_roles(columns: ColumnRoles, roles: Schema) -> ColumnRoles:
    """What the caller says about the columns, and for the rest what the file says."""
    given = columns.named
    free = {word: None if name in given else name for word, name in roles.beside.items()}
    return replace(
        columns,
        actions=tuple(listed(columns.actions)) or roles.action,
        features=[f for f in roles.features if f not in given] if columns.features is None else columns.features,
        episodes=free["episodes"] if columns.episodes is None else columns.episodes,
        weights=free["weights"] if columns.weights is None else columns.weights,
        subjects=free["subjects"] if columns.subjects is None else columns.subjects,
        recorded=[name for name in roles.recorded if name not in given],
    )


def is_as_written(roles: Schema, columns: ColumnRoles, discrete: bool | None) -> bool:
    """Are the actions those that the file was written with, so that its labels keep their order?"""
    same = tuple(listed(columns.actions)) == roles.action
    return roles.action_names is not None and same and discrete in (None, roles.action_type.as_text)


def _by_name(
    frame: "polars.DataFrame", columns: ColumnRoles, discrete: bool | None, reference: Any, origin: Origin
) -> Sample:
    if columns.choices is not None:
        return choice_sample(DataTable(frame), columns, origin, reference)
    said = {word: value for word, value in vars(columns).items() if word != "choices"}
    said["na"] = TEXTS if columns.na is None else columns.na
    return Sample.from_frame(frame, **said, discrete=discrete, reference=reference, origin=origin)


def _as_written(frame: "polars.DataFrame", roles: Schema, columns: ColumnRoles) -> Sample:
    """With the labels of the action as they were written, so that the reference survives."""
    assert roles.action_names is not None
    choice = choose(DataTable(frame), columns, ())
    table = choice.table
    values, names, blocks = table.features(choice.features)
    return Sample(
        values,
        roles.action_type.encode(
            table.labels(roles.action[0])
            if roles.action_type.as_text
            else np.column_stack([table.numbers(name) for name in roles.action])
        ),
        names,
        roles.action_names,
        None if columns.episodes is None else table.labels(columns.episodes),
        None if columns.weights is None else table.numbers(columns.weights),
        blocks,
        choice.noted(roles.origin),
        None if columns.subjects is None else table.labels(columns.subjects),
        table.recorded(columns.recorded),
        counts=roles.kind == "count",
    )


def free_name(name: str, taken: set[str]) -> str:
    """The name, or one like it that is not taken; it is taken then."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name
