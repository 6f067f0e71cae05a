"""Which columns of a table are what: what a caller says of them, and what follows for the others."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, final

from policyspace.data.alternatives import Choices
from policyspace.data.bookkeeping import is_bookkeeping, looks_like_episodes
from policyspace.data.columns import Table
from policyspace.data.missing import Missing, complete
from policyspace.data.vocabulary import names_of
from policyspace.errors import InputError, nearest, repeated

FROM_READING = ("left_out", "warnings")
"""What reading a table puts into the metadata of its demonstrations: it is about that table, and written to no file."""


@final
@dataclass(frozen=True)
class Columns:
    """What is said about the columns of a table; without features, all that play no other role and are no bookkeeping."""

    actions: str | Sequence[str] | None = None
    features: str | Sequence[str] | None = None
    episodes: str | None = None
    weights: str | None = None
    subjects: str | None = None
    categorical: str | Sequence[str] | None = None
    missing: Missing = "error"
    recorded: Sequence[str] = ()
    choices: Choices | None = None

    def __post_init__(self) -> None:
        for word in ("episodes", "weights", "subjects"):
            if not isinstance(getattr(self, word), str | None):
                found = type(getattr(self, word)).__name__
                raise InputError(f"of a table or a file, {word}= names a column, found a value of type {found}.")

    @property
    def others(self) -> list[str]:
        """The columns that are neither action nor feature."""
        return [name for name in (self.episodes, self.weights, self.subjects) if name is not None]

    @property
    def named(self) -> set[str]:
        """All columns that have a role of their own."""
        return {*listed(self.actions), *listed(self.features), *self.others}


@final
@dataclass(frozen=True)
class Choice:
    """A table without missing values in the columns that are used, its features, and what a reader must be told."""

    table: Table
    features: list[str]
    left_out: list[str]
    warnings: list[str]

    @property
    def metadata(self) -> dict[str, Any]:
        """What was left out and must be told, where there is any."""
        told = {"left_out": self.left_out, "warnings": self.warnings}
        return {name: value for name, value in told.items() if value}


def choose(table: Table, columns: Columns, texts: bool = True) -> Choice:
    """The columns to use; without `texts`, no text counts as a missing value."""
    if not table.frame.height:
        raise InputError("a table needs at least one row, found none: check the file or the filter behind it.")
    actions, categorical = listed(columns.actions), list(dict.fromkeys(listed(columns.categorical)))
    if not actions:
        raise InputError("the action needs at least one column, found none.")
    taken = [*actions, *columns.others, *columns.recorded]
    table.only([*taken, *categorical])
    features, left_out = chosen_features(table, columns.features, taken)
    used = [*actions, *columns.others, *features]
    if (twice := repeated(used)) is not None:
        raise InputError(f"every column has one role, found '{twice}' in two: name it once.")
    for name in categorical:
        if name not in used:
            raise InputError(f"only a column that is used can be categorical, found '{name}': add it to the features.")
    warnings = [] if columns.episodes is not None else episode_warnings(table, [*features, *left_out])
    frame, dropped = complete(table.frame, used, columns.missing, texts)
    return Choice(
        Table(frame).with_categories(categorical), features, left_out, [*([dropped] if dropped else []), *warnings]
    )


def chosen_features(
    table: Table, features: str | Sequence[str] | None, taken: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """The feature columns, and those left out because they look like bookkeeping."""
    if features is not None:
        wanted = _matched(table, listed(features), taken)
        left_out: list[str] = []
    else:
        rest = [name for name in table.frame.columns if name not in taken]
        no_sensors = {name for name in rest if is_bookkeeping(table.frame[name])}
        left_out = [name for name in rest if name in no_sensors]
        wanted = [name for name in rest if name not in no_sensors]
    if not wanted:
        found = f"only bookkeeping ({', '.join(map(repr, left_out))})" if left_out else "none"
        raise InputError(f"at least one column must be a feature, found {found} besides the action: name the features.")
    return wanted, left_out


def episode_warnings(table: Table, names: Sequence[str]) -> list[str]:
    """A sentence for each of these columns that may be the one of the episodes."""
    found = [name for name in names if name and looks_like_episodes(table.frame[name])]
    return [f"column '{name}' looks like episodes: declare it with --episodes {name}." for name in found]


def listed(names: str | Sequence[str] | None) -> list[str]:
    """One name or several as a list."""
    return [] if names is None else list(names_of(names, "the columns"))


def _matched(table: Table, wanted: list[str], taken: Sequence[str]) -> list[str]:
    """The columns that names and patterns such as obs_* stand for; a pattern adds those that have no role yet."""
    columns = dict.fromkeys(table.frame.columns)
    found: list[str] = []
    for name in wanted:
        if name in columns or not any(mark in name for mark in "*?["):
            if name not in columns:
                table.only([name])
            found.append(name)
            continue
        matching = [column for column in columns if fnmatchcase(column, name)]
        if not matching:
            near = nearest(name.strip("*?[]"), columns)
            raise InputError(f"no column matches the pattern '{name}': {near}")
        if set(matching) <= set(taken):
            raise InputError(
                f"the pattern '{name}' matches only '{matching[0]}' and its like, which have another role: name them."
            )
        known = {*found, *taken, *wanted}
        found += [column for column in matching if column not in known]
    return found
