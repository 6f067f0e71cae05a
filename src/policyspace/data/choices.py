"""Samples from tables of choices: wide (one row a choice) or long (one row an alternative)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from policyspace.data.columns import (
    AlternativeColumns,
    ColumnRoles,
    DataTable,
    LongFormat,
    chosen_features,
    columns_of,
    is_bookkeeping,
    listed,
)
from policyspace.data.origin import Origin
from policyspace.data.sample import Sample
from policyspace.data.validation import complete, encode, factorise, is_missing, label_text
from policyspace.errors import InputError

if TYPE_CHECKING:
    import polars

FLAGS = {"1": True, "yes": True, "true": True, "y": True, "0": False, "no": False, "false": False, "n": False}
"""Texts that say whether an alternative was chosen or is available."""


def choice_sample(table: DataTable, columns: ColumnRoles, origin: Origin, reference: Any) -> Sample:
    """The pairs of a table of choices: features of the chooser, then a column an attribute and alternative, then whether
    each alternative is available, where that is not always so. The policy that belongs to them is recorded beside them.
    """
    assert columns.choices is not None
    if not table.frame.height:
        raise InputError("a table needs at least one row, found none: check the file or the filter behind it.")
    labels = None
    if columns.choices.long is not None:
        table, columns, labels, origin = _one_row_a_choice(table, columns, columns.choices.long, origin)
    made = _rows(table, columns, labels, origin)
    return made if reference is None else made.with_reference(reference)


def _rows(table: DataTable, columns: ColumnRoles, labels: Sequence[str] | None, origin: Origin) -> Sample:
    """From one row a choice; `labels` are the alternatives, unless they are those that are chosen."""
    choices, actions = columns.choices, listed(columns.actions)
    assert choices is not None and isinstance(choices.attributes, Mapping)
    if len(actions) != 1:
        raise InputError(f"choices need one action column, found {len(actions)}: name it with actions= or --actions.")
    taken = [*actions, *columns.others]
    table.only([*taken, *listed(columns.categorical)])
    features = [] if columns.features is None else chosen_features(table, columns.features, taken)[0]
    frame, dropped = complete(table.frame, [*taken, *features], columns.missing)
    labels = encode(DataTable(frame).actions(actions, True), None, trusted=True)[1] if labels is None else labels
    if len(labels) < 2:
        raise InputError(f"every row has the action '{labels[0]}': nothing can be identified from one alternative.")
    attributes = {
        str(name): columns_of(by, frame.columns, labels, f"attribute '{name}'")
        for name, by in choices.attributes.items()
    }
    available = {}
    if choices.available is not None:
        available = columns_of(choices.available, frame.columns, labels, "the availability")
    # What belongs to one alternative stands together.
    inside = list(dict.fromkeys(by[label] for label in labels for by in attributes.values() if label in by))
    _check_roles(taken, features, inside, list(available.values()))
    frame, also = complete(_filled(frame, attributes, available), [*inside, *available.values()], columns.missing)
    table = DataTable(frame).with_categories(listed(columns.categorical))
    place = {label: code for code, label in enumerate(labels)}
    codes = np.array([place[label_text(value)] for value in table.actions(actions, True)], dtype=np.int64)
    there = np.ones((len(codes), len(labels)), dtype=bool)
    for label, name in available.items():
        there[:, place[label]] = _flags(table, name)
    notes = [*(text for text in (dropped, also) if text), *_checked(there, codes, labels)]
    own, own_names, blocks = table.features(features) if features else (np.zeros((len(codes), 0)), (), {})
    flags = [there[:, place[label]] * 1.0 for label in available]
    policy = {"family": "choice", "attributes": attributes, "available": available or None, **(origin.policy or {})}
    return Sample(
        np.column_stack([own, *(table.numbers(name) for name in inside), *flags]),
        codes,
        (*own_names, *inside, *available.values()),
        tuple(labels),
        None if columns.episodes is None else table.labels(columns.episodes),
        None if columns.weights is None else table.numbers(columns.weights),
        blocks,
        replace(origin, policy=policy, notes=(*origin.notes, *notes)),
        None if columns.subjects is None else table.labels(columns.subjects),
    )


def _check_roles(*roles: Sequence[str]) -> None:
    """Every column has one role; attributes may share one among themselves."""
    every = [name for role in roles for name in role]
    for name in every:
        if every.count(name) > 1:
            raise InputError(f"every column has one role, found '{name}' in two: name it once.")


def _filled(
    frame: "polars.DataFrame", attributes: Mapping[str, Mapping[str, str]], available: Mapping[str, str]
) -> "polars.DataFrame":
    """The same table with zeros for the attributes of alternatives where they are not available: nothing depends on them."""
    filled = {}
    for by in attributes.values():
        for label, column in by.items():
            if label in available and not is_missing(frame[available[label]]).any():
                gone = ~_flags(DataTable(frame), available[label])
                if (gone & is_missing(frame[column]).to_numpy()).any():
                    values = frame[column].cast(float, strict=False).to_numpy().copy()
                    values[gone] = 0.0
                    filled[column] = values
    return frame.with_columns(**filled)


def _checked(there: np.ndarray, codes: np.ndarray, labels: Sequence[str]) -> list[str]:
    """What was chosen must have been available; a choice without an alternative is counted."""
    wrong = ~there[np.arange(len(codes)), codes]
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"what is chosen must be available, found '{labels[codes[row]]}' chosen and not available in row {row + 1} "
            f"({wrong.sum()} such rows): correct the choice or the availability."
        )
    alone = int((there.sum(axis=1) == 1).sum())
    if alone == len(codes):
        raise InputError("every choice has one available alternative: nothing can be identified without a second one.")
    return [f"{alone} of {len(codes)} choices have one available alternative, and tell nothing."] if alone else []


def _flags(table: DataTable, name: str) -> np.ndarray:
    """A column of yes and no [n]."""
    found = [FLAGS.get(label_text(value).strip().lower()) for value in table.labels(name)]
    if None in found:
        row = found.index(None)
        raise InputError(
            f"column '{name}' must say yes or no (1 and 0, true and false), found '{table.frame[name][row]}' in row "
            f"{row + 1}: correct it."
        )
    return np.array(found, dtype=bool)


# -- one row an alternative ----------------------------------------------------------------------------------------


def _one_row_a_choice(
    table: DataTable, columns: ColumnRoles, long: LongFormat, origin: Origin
) -> tuple[DataTable, ColumnRoles, Sequence[str], Origin]:
    """A long table as a wide one: a column an attribute and alternative, and whether the choice has that alternative."""
    import polars

    choices = columns.choices
    assert choices is not None
    if columns.actions is not None:
        raise InputError(
            f"'{long.chosen}' says what is chosen, found the action column '{columns.actions}' too: leave it out."
        )
    attributes, excluded = _long_attributes(table, columns, long)
    features = [] if columns.features is None else chosen_features(table, columns.features, long.columns)[0]
    if features and long.alternative is None:
        raise InputError(
            f"features of the chooser, such as '{features[0]}', need alternatives with names: add their column "
            "(--alternative)."
        )
    kept = [*columns.others, *features]
    _check_roles(long.columns, kept, attributes, choices.flags)
    frame, dropped = _complete_choices(table, long, [*long.columns, *kept, *attributes, *choices.flags], columns)
    table = DataTable(frame)
    chosen = _flags(table, long.chosen)
    choice = factorise(table.labels(long.choice_id), f"column '{long.choice_id}'")
    if choices.available is not None:
        there = _flags(table, choices.flags[0])
        _check_available(table, long, chosen & ~there)
        table, chosen, choice = DataTable(frame.filter(there)), chosen[there], choice[there]
        choice = factorise(choice, "the choices")
    _check_one_chosen(table, long, choice, chosen)
    slot, labels = _slots(table, long, choice)
    _, first = np.unique(choice, return_index=True)
    wide = {name: table.frame[name].gather(first) for name in kept}
    _check_same(table, kept, choice, first)
    present = np.zeros((len(first), len(labels)), dtype=bool)
    present[choice, slot] = True
    names: dict[str, dict[str, str]] = {}
    for attribute in attributes:
        values = np.zeros(present.shape)
        values[choice, slot] = table.numbers(attribute)
        names[attribute] = {label: f"{attribute}[{label}]" for label in labels}
        wide |= {f"{attribute}[{label}]": polars.Series(values[:, j]) for j, label in enumerate(labels)}
    available = {label: f"available[{label}]" for j, label in enumerate(labels) if not present[:, j].all()}
    wide |= {name: polars.Series(present[:, list(labels).index(label)]) for label, name in available.items()}
    action = np.empty(len(first), dtype=object)
    action[choice[chosen]] = np.array(labels, dtype=object)[slot[chosen]]
    wide["choice"] = polars.Series(action.tolist(), dtype=polars.String)
    notes = [dropped] if dropped else []
    if excluded:
        shown = ", ".join(f"'{name}'" for name in excluded)
        notes += [f"not tested, for no attribute of alternatives: {shown}; --features names features of the chooser."]
    policy = {"intercept": False} if long.alternative is None else origin.policy  # places without names: no constants
    origin = replace(origin, notes=tuple(notes) or origin.notes, policy=policy)
    said = replace(
        columns, actions="choice", choices=AlternativeColumns(names, available or None), features=features or None
    )
    return DataTable(polars.DataFrame(wide)), said, labels, origin


def _long_attributes(table: DataTable, columns: ColumnRoles, long: LongFormat) -> tuple[list[str], list[str]]:
    """The columns that are named, or all numbers that differ between the alternatives of a choice; and those left out."""
    assert columns.choices is not None
    table.only([*long.columns, *columns.others, *columns.choices.flags])
    taken = [*long.columns, *columns.others, *columns.choices.flags]
    said = columns.choices.attributes
    if said is not None:
        return chosen_features(table, list(said), taken)[0], []
    features = [] if columns.features is None else chosen_features(table, columns.features, taken)[0]
    rest = [name for name in table.frame.columns if name not in (*taken, *features)]
    choice = table.frame[long.choice_id]
    found = [name for name in rest if not is_bookkeeping(table.frame[name]) and table.frame[name].dtype.is_numeric()]
    within = [name for name in found if table.frame.select(long.choice_id, name).unique().height > choice.n_unique()]
    if not within:
        raise InputError("no column differs between the alternatives of a choice: name the attributes (--attributes).")
    return within, [name for name in rest if name not in within]


def _complete_choices(
    table: DataTable, long: LongFormat, used: Sequence[str], columns: ColumnRoles
) -> tuple["polars.DataFrame", str]:
    """Without missing values; where rows are to be dropped, whole choices are."""
    if columns.missing != "drop":
        return complete(table.frame, used, columns.missing)
    gone = np.any([is_missing(table.frame[name]).to_numpy() for name in used], axis=0)
    if not gone.any():
        return table.frame, ""
    lost = table.frame[long.choice_id].filter(gone).unique().to_list()
    kept = table.frame.filter(~(table.frame[long.choice_id].is_in(lost) | table.frame[long.choice_id].is_null()))
    if not kept.height:
        raise InputError("every choice misses a value: leave such columns out.")
    return kept, f"choices dropped for missing values: {len(lost)}."


def _check_available(table: DataTable, long: LongFormat, wrong: np.ndarray) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        name = "an alternative" if long.alternative is None else f"'{table.frame[long.alternative][row]}'"
        raise InputError(
            f"what is chosen must be available, found {name} chosen and not available in row {row + 1} ({wrong.sum()} such "
            "rows): correct the choice or the availability."
        )


def _check_one_chosen(table: DataTable, long: LongFormat, choice: np.ndarray, chosen: np.ndarray) -> None:
    counts = np.bincount(choice, weights=chosen)
    if (counts != 1).any():
        wrong = int(np.argmax(counts != 1))
        name = table.frame[long.choice_id][int(np.argmax(choice == wrong))]
        raise InputError(
            f"every choice must have one chosen alternative, found {int(counts[wrong]) or 'none'} in choice '{name}' "
            f"({(counts != 1).sum()} such choices): correct '{long.chosen}', or drop these choices."
        )


def _slots(table: DataTable, long: LongFormat, choice: np.ndarray) -> tuple[np.ndarray, Sequence[str]]:
    """The place of every row among the alternatives, and their names.

    Alternatives without names are turned by a random number of places in each choice: the place means nothing, and a table
    that lists what is chosen first must not look like an agent that never chooses.
    """
    if long.alternative is None:
        order = np.argsort(choice, kind="stable")
        sizes = np.bincount(choice)
        rank = np.empty(len(choice), dtype=np.int64)
        rank[order] = np.arange(len(choice)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        turn = np.random.default_rng(0).integers(sizes)
        return (rank + turn[choice]) % sizes[choice], [str(j + 1) for j in range(sizes.max())]
    slot, labels = encode(table.actions([long.alternative], True), None, trusted=True)
    both = choice * len(labels) + slot
    if len(np.unique(both)) < len(both):
        row = int(np.setdiff1d(np.arange(len(both)), np.unique(both, return_index=True)[1])[0])
        raise InputError(
            f"an alternative occurs once in a choice, found '{labels[slot[row]]}' again in row {row + 1} (choice "
            f"'{table.frame[long.choice_id][row]}'): drop one of the rows."
        )
    return slot, labels


def _check_same(table: DataTable, names: Sequence[str], choice: np.ndarray, first: np.ndarray) -> None:
    for name in names:
        column = table.frame[name]
        differs = (column != column.gather(first[choice])).to_numpy()
        if differs.any():
            raise InputError(
                f"column '{name}' describes the whole choice, found another value in row {int(np.argmax(differs)) + 1} of "
                "the same choice: name it as an attribute, or correct it."
            )
