"""Choices among alternatives that have attributes: which columns hold them, one row a choice or one an alternative.

Either way the pairs have one column an attribute and alternative, such as cost_car: they are demonstrations like others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import final

from policyspace.errors import InputError, nearest

Columns = str | Sequence[str] | Mapping[str, str]
"""The columns of an attribute: a pattern such as cost_*, a list in the order of the alternatives, or a table by them."""

Attributes = Mapping[str, Columns]
"""The columns of every attribute."""


@final
@dataclass(frozen=True)
class LongTable:
    """The columns of a table with one row an alternative; without `alternative`, alternatives have no names."""

    choice_id: str
    chosen: str
    alternative: str | None = None

    @property
    def columns(self) -> list[str]:
        """Those that are named."""
        return [name for name in (self.choice_id, self.chosen, self.alternative) if name is not None]


@final
@dataclass(frozen=True)
class Choices:
    """What is said about alternatives: their attributes, whether each is available, and whether the table is a long one.

    In a long table attributes are names of columns, by default of all that differ within a choice, and `available` is one.
    """

    attributes: Attributes | Sequence[str] | None = None
    available: Columns | None = None
    long: LongTable | None = None

    def __post_init__(self) -> None:
        if self.long is None and not isinstance(self.attributes, Mapping):
            raise InputError(
                "attributes must say which columns hold them, as in {'cost': 'cost_*'} or --attributes 'cost=cost_*', found "
                f"{self.attributes!r}: say it so, or name the choice_id of a table with one row an alternative."
            )
        if self.long is not None and isinstance(self.attributes, Mapping):
            raise InputError(
                "the attributes of a table with one row an alternative are columns, as in ['cost', 'time'], found a table "
                "of patterns: name the columns."
            )
        if self.long is not None and not isinstance(self.available, str | None):
            raise InputError("the availability in a table with one row an alternative is one column: name it.")

    @property
    def flags(self) -> list[str]:
        """The column of a long table that says what is available, where there is one."""
        return [self.available] if isinstance(self.available, str) else []


def columns_of(said: Columns, names: Sequence[str], labels: Sequence[str], what: str) -> dict[str, str]:
    """The column of each alternative; only a table by alternative may leave some out."""
    if isinstance(said, str):
        return _matching(said, names, labels, what)
    if isinstance(said, Mapping):
        found = {str(label): column for label, column in said.items()}
        for label in found:
            if label not in labels:
                raise InputError(
                    f"{what} has a column for '{label}', which is no alternative: {nearest(label, labels)}"
                )
    else:
        if len(said) != len(labels):
            raise InputError(
                f"{what} must have one column an alternative ({', '.join(labels)}), found {len(said)}: name as many, in "
                "this order."
            )
        found = dict(zip(labels, said, strict=True))
    for column in found.values():
        if column not in names:
            raise InputError(f"{what} names the column '{column}', which does not exist: {nearest(column, names)}")
    return found


def _matching(pattern: str, names: Sequence[str], labels: Sequence[str], what: str) -> dict[str, str]:
    """The columns of a pattern whose star stands for the alternative."""
    if pattern.count("*") != 1:
        raise InputError(
            f"{what} must be a pattern with one star for the alternative, such as cost_*, or a list of columns, found "
            f"'{pattern}'."
        )
    found = {label: pattern.replace("*", label) for label in labels}
    matching = [name for name in names if fnmatchcase(name, pattern.replace("[", "[[]"))]
    missing = [label for label, column in found.items() if column not in names]
    if missing:
        raise InputError(
            f"{what} must have a column for every alternative, found none for '{missing[0]}' ('{found[missing[0]]}'); the "
            f"pattern matches {', '.join(map(repr, matching)) or 'nothing'}: rename columns, or list them in the order "
            f"{', '.join(labels)}."
        )
    for name in matching:
        if name not in found.values():
            raise InputError(
                f"{what} must have columns of the alternatives ({', '.join(labels)}) alone, found '{name}', which belongs "
                "to none that is ever chosen: rename it, or list the columns."
            )
    return found
