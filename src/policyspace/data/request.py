"""Request: all that a caller says about data, and the sample that it stands for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack, final

import numpy as np

from policyspace.data.choices import choice_sample
from policyspace.data.columns import (
    AlternativeColumns,
    ColumnRoles,
    DataTable,
    chosen_features,
    episode_notes,
    listed,
    split_trials,
)
from policyspace.data.connectors import find_connector
from policyspace.data.draws import with_assigned
from policyspace.data.files import read, table_of
from policyspace.data.large.parts import data_set_of, is_large, is_many
from policyspace.data.order import sort_keys, without_order
from policyspace.data.origin import Origin
from policyspace.data.sample import Sample
from policyspace.data.schema import assemble
from policyspace.data.terms import (
    Formula,
    named_offset,
    parse_formula,
    with_lags,
    with_lags_of_inputs,
    with_offset,
    with_offset_columns,
    without_factors,
)
from policyspace.data.validation import MISSING_LABELS, Missing, complete, is_names
from policyspace.errors import InputError

if TYPE_CHECKING:
    from policyspace.families.registry import PolicySpec

TRIALS = "\0trials"
"""The column of counts that is made of trials, which no table has."""

WeightType = Literal["frequency", "sampling"]


class ReadOptions(TypedDict):
    """What every way of reading rows takes, as `ColumnOptions` says it."""

    episodes: Any
    weights: Any
    subjects: Any
    discrete: bool | None
    reference: Any


class ColumnOptions(TypedDict, total=False):
    """What the columns of the data are: of a table or a file names, beside an array of states arrays."""

    features: Sequence[str] | None
    """Columns of states, or patterns such as obs_*; by default all that have no other role and are no bookkeeping."""
    episodes: Any
    """Which episode a row is from."""
    weights: Any
    """How many rows a row stands for, or how much of a population: see `weight_type`."""
    subjects: Any
    """Which person or animal a row is from."""
    categorical: Sequence[str] | None
    """Columns whose numbers are categories."""
    na: Sequence[str] | None
    """Labels that stand for a missing value: of a table by default empty ones and NaN, of a file NA, null and None too."""
    missing: Missing
    """Whether missing values are an "error", or a reason to "drop" their rows."""
    reference: Any
    """The action that the others are compared with."""
    formula: str | None
    """Actions and features in one, instead of both."""
    lags: int | None
    """How many of the agent's own last actions become features."""
    lags_of_inputs: int | None
    """How many of the last values of every feature count as one with it: for an agent that remembers."""
    weight_type: WeightType | None
    """Whether weights are the "frequency" of equal rows (default) or "sampling" weights."""
    trials: str | None
    """The column that says of how many trials the action counts the successes, or is the share of them."""
    exchangeable: bool | None
    """Whether the order of the rows means nothing, as in a table of people; by default rows are in the order of time,
    unless the table was sorted by its action or by a category and is in random order otherwise."""
    offset: Any
    """A known part of the policy, which has the weight 1."""
    assigned: Mapping[str, str] | None
    """How features were drawn by an experimenter: "uniform", "permuted:session", or chances such as "0.3,0.7"."""


@final
@dataclass(frozen=True, eq=False)
class Request:
    """Data, and all that a caller says about them and about the policy, before anything is read.

    `identify`, `plan`, `assess`, `identify_by`, the selector of scikit-learn, the commands and `Study.tell` each make one.

    Examples
    --------
    >>> request = Request([[0.1, 1.0], [0.4, 2.0], [0.2, 1.5]], [1.2, 0.7, 0.9], {"features": ["speed", "left"]})
    >>> request.sample().names
    ('speed', 'left')
    """

    data: Any
    """Arrays, a table, a file, what a tool keeps, or a sample."""
    actions: Any = None
    """Names of columns, or beside an array of states an array."""
    columns: ColumnOptions = field(default_factory=lambda: ColumnOptions())
    policy: "PolicySpec | None" = None
    """What is said about the policy."""
    as_labels: bool | None = None
    """Whether actions must be read as labels, or as numbers; None: as they look."""
    choices: AlternativeColumns | None = None
    """Which columns are attributes of alternatives, where that was said."""
    backend: Any = None
    """Who reads files that do not fit in memory: the threads of this machine, or a dask client."""

    @classmethod
    def of(
        cls, data: Any, actions: Any, policy: "PolicySpec", backend: Any = None, **columns: Unpack[ColumnOptions]
    ) -> Self:
        """A request whose actions and columns are read as the policy says."""
        return cls(data, actions, columns, policy, policy.discrete, policy.choices, backend)

    def with_columns(self, **columns: Unpack[ColumnOptions]) -> "Request":
        """The same request with other words about the columns."""
        return replace(self, columns={**self.columns, **columns})

    @property
    def roles(self) -> ColumnRoles:
        """The columns of a table or a file by role."""
        said = self.columns
        return ColumnRoles(
            self.actions, said.get("features"), said.get("episodes"), said.get("weights"), said.get("subjects"),
            said.get("categorical"), said.get("missing", "error"), choices=self.choices, na=said.get("na"),
        )  # fmt: skip

    def sample(self) -> Sample:
        """The rows, or where they are too large to be read at once a sample that knows the log it is of."""
        offset = self.columns.get("offset")
        if offset is None:
            return self._with_derived_columns(self._rows())
        if self.choices is not None:
            raise InputError(
                "an offset of alternatives is one of their attributes, found offset= beside the policy: say it inside, as "
                "in ChoiceLinear(attributes=…, offset=['known'])."
            )
        features = with_offset_columns(self.columns.get("features"), offset)
        return self._with_derived_columns(self.with_columns(features=features)._rows())

    def _rows(self) -> Sample:
        stored = None if isinstance(self.data, Sample) else data_set_of(self.data, self.backend is not None)
        if stored is None and self.backend is not None:
            raise InputError(
                "a cluster reads Parquet, Arrow or CSV files, found other data: leave the backend (--dask) out."
            )
        if stored is None or not (is_large(stored) or self.backend is not None):
            return self.in_memory()
        for word, said in {"formula": self.columns.get("formula"), "choices": self.choices}.items():
            if said is not None:
                raise InputError(
                    f"{_shown(self.data)}: {word} need{'s' * (word == 'formula')} all rows in memory, found about "
                    f"{stored.num_bytes >> 20} MB of them: name the columns instead, or set POLICYSPACE_MAX_BYTES_AT_ONCE."
                )
        from policyspace.data.large.log import open_log  # only logs that are too large for memory need it

        return open_log(stored, self.roles, self.as_labels, self.columns.get("reference"), self.backend)

    def in_memory(self) -> Sample:
        """The rows with no derived columns; too large a log is refused."""
        if self.columns.get("trials") is not None:
            return self._with_trials().in_memory()
        data, said, reference = self.data, self.columns, self.columns.get("reference")
        if (formula := said.get("formula")) is not None:
            if self.choices is not None:
                raise InputError(
                    "a formula is about features, found attributes of alternatives too: leave one of them out."
                )
            plain, factors = without_factors(formula) if isinstance(formula, str) else (formula, [])
            parsed = formula_of(plain, data, self.actions, said.get("features"))
            names = parsed.actions[0] if len(parsed.actions) == 1 else list(parsed.actions)
            factors += listed(said.get("categorical"))
            named = self.with_columns(features=parsed.columns, formula=None, categorical=factors or None)
            return parsed.expand(replace(named, actions=names).in_memory())
        as_said: ReadOptions = {
            "episodes": said.get("episodes"),
            "weights": said.get("weights"),
            "subjects": said.get("subjects"),
            "discrete": self.as_labels,
            "reference": reference,
        }
        missing = said.get("missing", "error")
        of_columns = {"categorical": said.get("categorical"), "missing": None if missing == "error" else missing}
        if isinstance(data, Sample):
            beside = {word: said.get(word) for word in ("features", "episodes", "weights", "subjects")}
            given = {"actions": self.actions, **beside, **of_columns}
            if (word := next((word for word, value in given.items() if value is not None), None)) is not None:
                raise InputError(
                    f"the demonstrations have said what their {'columns' if word in of_columns else word} are, found "
                    f"{word}= too: leave it out, or give the arrays or the file instead of the demonstrations."
                )
            return data if reference is None else data.with_reference(reference)
        if (stored := data_set_of(data)) is not None:
            if is_large(stored):
                raise InputError(
                    f"{_shown(data)}: this needs all rows in memory, found about {stored.num_bytes >> 20} MB of them: "
                    "identify and plan read as many in passes; else take fewer, or set POLICYSPACE_MAX_BYTES_AT_ONCE."
                )
            return assemble(*stored.read(), self.roles, self.as_labels, reference)
        named_actions = self.actions is None or is_names(self.actions)
        features, categorical = said.get("features"), said.get("categorical")
        if isinstance(data, str | Path) or (named_actions and find_connector(data)):
            return read(
                data,
                self.actions,
                features,
                categorical=categorical,
                missing=missing,
                choices=self.choices,
                na=said.get("na"),
                **as_said,
            )
        is_table = hasattr(data, "columns")
        if is_table and self.choices is not None:
            return choice_sample(DataTable.of(data), self.roles, Origin(), reference)
        if is_table and self.actions is not None and named_actions:
            na = said.get("na")
            return Sample.from_frame(
                data,
                self.actions,
                features,
                categorical=categorical,
                missing=missing,
                na=MISSING_LABELS if na is None else na,
                **as_said,
            )
        if self.actions is None:
            raise InputError("the actions are missing: give an array of actions, or the name of the action column.")
        for word, value in of_columns.items():
            if value is not None:
                raise InputError(
                    f"{word}= is about a table that holds its actions too, found arrays: put them in one table."
                )
        if is_table:
            table = DataTable.of(data)
            wanted, excluded = chosen_features(table, features)
            complete(table.frame, wanted, "error")
            values, columns, blocks = table.features(wanted)
            notes = [] if as_said["episodes"] is not None else episode_notes(table, [*wanted, *excluded])
            origin = Origin(excluded_columns=tuple(excluded), notes=tuple(notes))
            return Sample.from_arrays(values, self.actions, columns, blocks=blocks, origin=origin, **as_said)
        return Sample.from_arrays(data, self.actions, features, **as_said)

    def _with_trials(self) -> "Request":
        """The same with two rows a state: as many successes and failures as were counted."""
        said, trials = self.columns, self.columns.get("trials")
        for word in ("weights", "formula", "episodes", "subjects", "lags", "lags_of_inputs"):
            if said.get(word) is not None:
                raise InputError(f"trials are counted by state, found {word} too: leave one of them out.")
        if not (isinstance(self.data, str | Path) or hasattr(self.data, "columns")) or self.choices is not None:
            raise InputError("trials are a column of a table or a file, found other data: put all in one table.")
        if not isinstance(self.actions, str) or not isinstance(trials, str):
            raise InputError("trials need one column of successes as the action, and the name of their own column.")
        frame = table_of(self.data)[0] if isinstance(self.data, str | Path) else DataTable.of(self.data).frame
        named = self.with_columns(trials=None, weights=TRIALS)
        return replace(named, data=split_trials(frame, self.actions, trials, TRIALS))

    def _with_derived_columns(self, data: Sample) -> Sample:
        """With the agent's last actions as features, with what its weights mean, and with what is known."""
        said = self.columns
        lags, weight_type, offset = said.get("lags"), said.get("weight_type"), said.get("offset")
        earlier = said.get("lags_of_inputs")
        if (assigned := said.get("assigned")) is not None:
            if not data.in_memory:
                raise InputError("columns that were drawn need all rows in memory, found a log that is read in passes.")
            data = with_assigned(data, assigned, lambda column: self._labels(column, data))
        weight_type = "frequency" if weight_type == "counts" else weight_type  # type: ignore[comparison-overlap]
        if weight_type not in (None, "frequency", "sampling"):
            raise InputError(f"the weight type must be 'frequency' or 'sampling', found {weight_type!r}: choose one.")
        derived = {
            "the agent's last actions as features": lags,
            "earlier inputs as features": earlier,
            "an offset": offset,
        }
        derived["sampling weights"] = "" if weight_type == "sampling" else None
        if not data.in_memory and any(value is not None for value in derived.values()):
            what = next(word for word, value in derived.items() if value is not None)
            raise InputError(
                f"{what} need all rows in memory, found {data.num_rows_total} that are read in passes: take fewer rows, or "
                "set POLICYSPACE_MAX_BYTES_AT_ONCE."
            )
        if weight_type is not None:
            if data.weights is None:
                raise InputError(
                    f"the weight type is said to be '{weight_type}', found no weights: name them, or leave that out."
                )
            data = replace(data, origin=replace(data.origin, weight_type=weight_type))
            if weight_type == "sampling":  # they say how rows compare, not how many there are
                assert data.weights is not None
                data = replace(data, weights=data.weights * (np.count_nonzero(data.weights) / data.weights.sum()))
        data, known = (data, {}) if offset is None else named_offset(data, offset)
        if earlier is not None:
            if self.choices is not None:
                raise InputError(
                    "lags of inputs are of states, found alternatives with attributes: leave the lags out."
                )
            data = with_lags_of_inputs(data, earlier)
        data = data if lags is None else with_lags(data, lags)
        data = with_offset(data, known) if known else data
        return self._in_order(data)

    def _in_order(self, data: Sample) -> Sample:
        """Rows without order in an order that is drawn: where that was said, or where a table was sorted by labels."""
        said = self.columns.get("exchangeable")
        if said not in (None, True, False):
            raise InputError(f"exchangeable is True or False, found {said!r}: choose one.")
        origin = data.origin
        timed = {
            "episodes": data.episodes,
            "lags": self.columns.get("lags"),
            "lags_of_inputs": self.columns.get("lags_of_inputs"),
            "readings that were drawn": origin.draws or origin.assigned or None,
        }
        if said and (other := next((word for word, value in timed.items() if value is not None), None)) is not None:
            raise InputError(f"rows whose order means nothing have no {other}, found both: leave one of them out.")
        if said and not data.in_memory:
            raise InputError("rows without order must fit in memory, found a log that is read in passes: leave it out.")
        if said:
            return without_order(data)
        read_as_log = origin.environment or origin.agent or origin.policy or origin.world or origin.exchangeable
        named = data.subjects is not None or data.weights is not None or any(v is not None for v in timed.values())
        if said is False or read_as_log or named or not data.in_memory or self.choices or isinstance(self.data, Sample):
            return data
        if not (keys := sort_keys(data)):
            return data
        words = (
            f"rows are sorted by {' and '.join(keys)} and in random order otherwise, so that their order was taken to mean "
            "nothing; if it is that of time, say so (exchangeable=False, --rows-are ordered)."
        )
        return without_order(replace(data, origin=origin.noted(words)))

    def _labels(self, column: str, data: Sample) -> np.ndarray:
        """Another column of the table, as labels [n]."""
        for word in ("episodes", "subjects"):
            if column == self.columns.get(word) and getattr(data, word) is not None:
                return np.asarray(getattr(data, word))
        if not (isinstance(self.data, str | Path) or hasattr(self.data, "columns")):
            raise InputError(f"'{column}' is no column, found arrays: put all in one table, or name it as episodes.")
        table = DataTable(table_of(self.data)[0])
        table.only([column])
        labels = table.labels(column)
        if len(labels) != data.num_rows:
            raise InputError(
                f"column '{column}' has {len(labels)} rows, found {data.num_rows} complete ones: leave rows with missing "
                "values out of the file."
            )
        return labels


def load_sample(
    data: Any,
    actions: Any = None,
    features: Any = None,
    *,
    discrete: bool | None = None,
    choices: AlternativeColumns | None = None,
    **columns: Any,
) -> Sample:
    """The rows that `identify` would read, all in memory and without derived columns."""
    request = Request(data, actions, as_labels=discrete, choices=choices)
    return request.with_columns(features=features, **columns).in_memory()


def _shown(data: Any) -> str:
    """What was asked for, in a few words."""
    return str(data) if isinstance(data, str | Path) else f"{data[0]} and others"


def formula_of(formula: str, data: Any, actions: Any, features: Any) -> Formula:
    """What a formula says, which must be all that is said about the actions and features of a table."""
    if isinstance(data, Sample) or not (isinstance(data, str | Path) or hasattr(data, "columns") or is_many(data)):
        raise InputError("a formula is about the columns of a table or a file, found arrays: put them in one table.")
    if actions is not None or features is not None:
        found = "actions" if actions is not None else "features"
        raise InputError(f"a formula names the actions and the features, found {found} beside it: leave them out.")
    return parse_formula(formula)
