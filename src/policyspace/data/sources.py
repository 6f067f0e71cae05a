"""Whatever a user calls data, as demonstrations: arrays, a table, a file, what a tool keeps, or ready demonstrations."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from policyspace.data.alternatives import Choices
from policyspace.data.choice_tables import choice_demonstrations
from policyspace.data.column_choice import Choice, Columns, chosen_features, episode_warnings
from policyspace.data.columns import Table
from policyspace.data.connectors import recognised
from policyspace.data.demonstrations import Demonstrations
from policyspace.data.formula import Formula, parse_formula
from policyspace.data.lags import with_lags
from policyspace.data.large import data_set_of, is_large
from policyspace.data.large.files import is_many
from policyspace.data.large.log import open_log
from policyspace.data.large.parts import DataSet
from policyspace.data.missing import Missing, complete
from policyspace.data.offsets import named_offset, with_offset
from policyspace.data.readers import read
from policyspace.data.roles import Stored, assemble
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
    formula: str | None = None,
) -> Demonstrations:
    """The pairs in `data`: of a table or a file the other arguments name the columns, beside an array they are arrays.

    `features` names the columns of an array, too. Demonstrations that are ready take another reference, nothing else. A
    `formula` says which columns of a table are actions and features, and what is made of them.
    """
    if formula is not None:
        if choices is not None:
            raise InputError(
                "a formula is about features, found attributes of alternatives too: leave one of them out."
            )
        read_as = formula_of(formula, data, actions, features)
        columns = (episodes, weights, reference, discrete, subjects, categorical, missing)
        return read_as.expand(demonstrations_of(data, one_or_many(read_as.actions), read_as.columns, *columns))
    said = {"episodes": episodes, "weights": weights, "subjects": subjects}
    of_columns = {"categorical": categorical, "missing": None if missing == "error" else missing}
    if isinstance(data, Demonstrations):
        _check_nothing_said({"actions": actions, "features": features} | said | of_columns, of_columns)
        return data if reference is None else data.with_reference(reference)
    if (stored := data_set_of(data)) is not None:
        roles = Columns(actions, features, **said, categorical=categorical, missing=missing, choices=choices)
        return assemble(*_at_once(stored, data), roles, discrete, reference)
    named = actions is None or is_names(actions)
    words: dict[str, Any] = said | {"discrete": discrete, "reference": reference}
    if isinstance(data, str | Path) or (named and recognised(data)):
        return read(data, actions, features, categorical=categorical, missing=missing, choices=choices, **words)
    table = hasattr(data, "columns")
    if table and choices is not None:
        roles = Columns(actions, features, **said, categorical=categorical, missing=missing, choices=choices)
        return choice_demonstrations(Table.of(data), roles, {}, reference)
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


def logged(data: Any, actions: Any = None, backend: Any = None, **words: Any) -> Demonstrations:
    """The same for data of any size: what is too large to be read at once becomes a sample that knows the log it is of.

    The log is read in passes by the `backend`, which is the threads of this machine or a dask client.
    """
    stored = None if isinstance(data, Demonstrations) else data_set_of(data, backend is not None)
    if backend is not None and stored is None:
        raise InputError(
            "a cluster reads Parquet, Arrow or CSV files, found other data: leave the backend (--dask) out."
        )
    if stored is None or not (is_large(stored) or backend is not None):
        return demonstrations_of(data, actions, **words)
    for word in ("formula", "choices"):
        if words.pop(word, None) is not None:
            raise InputError(
                f"{_shown(data)}: {word} need{'s' * (word == 'formula')} all rows in memory, found about "
                f"{stored.num_bytes >> 20} MB of them: name the columns instead, or set POLICYSPACE_MAX_BYTES_AT_ONCE."
            )
    discrete, reference = words.pop("discrete", None), words.pop("reference", None)
    return open_log(stored, Columns(actions, **words), discrete, reference, backend)


def _check_nothing_said(said: dict[str, Any], of_columns: Collection[str]) -> None:
    """Demonstrations that are ready have their columns."""
    for word, value in said.items():
        if value is not None:
            what = "columns" if word in of_columns else word
            raise InputError(
                f"the demonstrations have said what their {what} are, found {word}= too: leave it out, or give the "
                "arrays or the file instead of the demonstrations."
            )


def _at_once(stored: DataSet, data: Any) -> Stored:
    """The table in a data set that fits in memory."""
    if is_large(stored):
        raise InputError(
            f"{_shown(data)}: this needs all rows in memory, found about {stored.num_bytes >> 20} MB of them: identify and "
            "plan read as many in passes; else take fewer, or set POLICYSPACE_MAX_BYTES_AT_ONCE."
        )
    return stored.read()


def _shown(data: Any) -> str:
    """What was asked for, in a few words."""
    return str(data) if isinstance(data, str | Path) else f"{data[0]} and others"


def formula_of(formula: str, data: Any, actions: Any, features: Any) -> Formula:
    """What a formula says, which must be all that is said about the actions and features of a table."""
    if isinstance(data, Demonstrations) or not (
        isinstance(data, str | Path) or hasattr(data, "columns") or is_many(data)
    ):
        raise InputError("a formula is about the columns of a table or a file, found arrays: put them in one table.")
    if actions is not None or features is not None:
        found = "actions" if actions is not None else "features"
        raise InputError(f"a formula names the actions and the features, found {found} beside it: leave them out.")
    return parse_formula(formula)


def one_or_many(names: Sequence[str]) -> str | list[str]:
    """One name as it is, several as a list."""
    return names[0] if len(names) == 1 else list(names)


def prepared(
    data: Demonstrations, lags: int | None = None, weights_are: str | None = None, offset: Any = None
) -> Demonstrations:
    """The same pairs with the agent's last actions as features, with what its weights mean, and with what is known."""
    if weights_are not in (None, "counts", "sampling"):
        raise InputError(f"weights are 'counts' or 'sampling' weights, found {weights_are!r}: choose one.")
    if data.whole is not None and (lags is not None or weights_are == "sampling" or offset is not None):
        what = "sampling weights" if weights_are == "sampling" else "an offset"
        what = what if lags is None else "the agent's last actions as features"
        raise InputError(
            f"{what} need all rows in memory, found {data.num_logged} that are read in passes: take fewer rows, or set "
            "POLICYSPACE_MAX_BYTES_AT_ONCE."
        )
    if weights_are is not None:
        if data.weights is None:
            raise InputError(f"the weights are said to be '{weights_are}', found none: name them, or leave that out.")
        data = replace(data, metadata=dict(data.metadata) | {"weights_are": weights_are})
        if weights_are == "sampling":  # they say how rows compare, not how many there are
            assert data.weights is not None
            data = replace(data, weights=data.weights * (np.count_nonzero(data.weights) / data.weights.sum()))
    data, known = (data, {}) if offset is None else named_offset(data, offset)
    data = data if lags is None else with_lags(data, lags)
    return with_offset(data, known) if known else data


def _beside(table: Table, actions: Any, features: Sequence[str] | None, words: dict[str, Any]) -> Demonstrations:
    """The features from a table, the rest from arrays beside it."""
    wanted, left_out = chosen_features(table, features)
    complete(table.frame, wanted, "error")
    values, names, blocks = table.features(wanted)
    warnings = [] if words["episodes"] is not None else episode_warnings(table, [*wanted, *left_out])
    choice = Choice(table, wanted, left_out, warnings)
    return Demonstrations.from_arrays(values, actions, names, blocks=blocks, metadata=choice.metadata, **words)
