"""Whatever a user calls data, as demonstrations: arrays, a table, a file, what a tool keeps, or ready demonstrations."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from policyspace.data.alternatives import Choices
from policyspace.data.choice_tables import choice_demonstrations
from policyspace.data.column_choice import Choice, Columns, chosen_features, episode_warnings
from policyspace.data.columns import Table
from policyspace.data.connectors import recognised
from policyspace.data.demonstrations import Demonstrations
from policyspace.data.missing import Missing, complete
from policyspace.data.readers import read
from policyspace.data.vocabulary import is_names
from policyspace.errors import InputError


def demonstrations_of(
    data: Any,
    actions: Any = None,
    features: Sequence[str] | None = None,
    episodes: Any = None,
    weights: Any = None,
    reference: Any = None,
    discrete: bool | None = None,
    subjects: Any = None,
    categorical: Sequence[str] | None = None,
    missing: Missing = "error",
    choices: Choices | None = None,
) -> Demonstrations:
    """The pairs in `data`: of a table or a file the other arguments name the columns, beside an array they are arrays.

    `features` names the columns of an array, too. Demonstrations that are ready take another reference, nothing else.
    """
    said = {"episodes": episodes, "weights": weights, "subjects": subjects}
    of_columns = {"categorical": categorical, "missing": None if missing == "error" else missing}
    if isinstance(data, Demonstrations):
        for word, value in ({"actions": actions, "features": features} | said | of_columns).items():
            if value is not None:
                what = "columns" if word in of_columns else word
                raise InputError(
                    f"the demonstrations have said what their {what} are, found {word}= too: leave it out, or give the "
                    "arrays or the file instead of the demonstrations."
                )
        return data if reference is None else data.with_reference(reference)
    named = actions is None or is_names(actions)
    words: dict[str, Any] = said | {"discrete": discrete, "reference": reference}
    if isinstance(data, str | Path) or (named and recognised(data)):
        return read(data, actions, features, categorical=categorical, missing=missing, choices=choices, **words)
    table = hasattr(data, "columns")
    if table and choices is not None:
        columns = Columns(actions, features, **said, categorical=categorical, missing=missing, choices=choices)
        return choice_demonstrations(Table.of(data), columns, {}, reference)
    if table and actions is not None and named:
        return Demonstrations.from_frame(data, actions, features, categorical=categorical, missing=missing, **words)
    if actions is None:
        raise InputError("the actions are missing: give an array of actions, or the name of the action column.")
    for word, value in of_columns.items():
        if value is not None:
            raise InputError(
                f"{word}= is about a table that holds its actions too, found arrays: put them in one table."
            )
    return (
        _beside(Table.of(data), actions, features, words)
        if table
        else (Demonstrations.from_arrays(data, actions, features, **words))
    )


def _beside(table: Table, actions: Any, features: Sequence[str] | None, words: dict[str, Any]) -> Demonstrations:
    """The features from a table, the rest from arrays beside it."""
    wanted, left_out = chosen_features(table, features)
    complete(table.frame, wanted, "error")
    values, names, blocks = table.features(wanted)
    warnings = [] if words["episodes"] is not None else episode_warnings(table, [*wanted, *left_out])
    choice = Choice(table, wanted, left_out, warnings)
    return Demonstrations.from_arrays(values, actions, names, blocks=blocks, metadata=choice.metadata, **words)
