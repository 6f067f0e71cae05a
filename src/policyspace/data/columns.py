"""A table, and the role of each column: action, feature, episode, weight, subject or excluded."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from policyspace.data.origin import Origin
from policyspace.data.validation import TEXTS, Missing, as_names, complete
from policyspace.errors import InputError, check_unique, nearest, repeated

if TYPE_CHECKING:
    import polars


# -- Named features out of a table: numbers as they are, categories one-hot.

CONFIGURATION = "configuration."
"""How columns begin that say where a row was collected."""

MAX_LEVELS = 50
"""A text column with more levels is more likely free text than a category."""


@final
@dataclass(frozen=True)
class DataTable:
    """A table whose columns are checked as they are taken out; rows are counted from 1, without the header."""

    frame: "polars.DataFrame"

    @classmethod
    def of(cls, frame: Any) -> Self:
        """From a polars, pandas or Arrow table."""
        import polars

        if isinstance(frame, polars.DataFrame):
            return cls(frame)
        if isinstance(frame, polars.LazyFrame):
            return cls(frame.collect())
        if not (hasattr(frame, "columns") and type(frame).__module__.split(".")[0] in ("pandas", "pyarrow")):
            raise InputError(f"a table must be a polars, pandas or Arrow table, found {type(frame).__name__}.")
        return cls(_to_polars(frame))

    def only(self, names: Sequence[str]) -> "polars.DataFrame":
        """These columns, every name being known."""
        known = set(self.frame.columns)
        for name in names:
            if name not in known:
                raise InputError(f"there is no column '{name}': {nearest(name, self.frame.columns)}")
        return self.frame[list(dict.fromkeys(names))]

    def with_categories(self, names: Sequence[str]) -> Self:
        """The same table, in which these columns hold categories, also where those are whole numbers."""
        return type(self)(self.frame.with_columns([_as_categories(self.frame[name]) for name in names]))

    def features(self, names: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...], dict[str, tuple[str, ...]]]:
        """The features [n, q], their names, and the one-hot block of each categorical column."""
        columns: list[np.ndarray] = []
        found: list[str] = []
        blocks: dict[str, tuple[str, ...]] = {}
        for name in names:
            series = self.column(name)
            if _is_text(series):
                levels = _levels(series)
                columns += [(series == level).to_numpy().astype(np.float64) for level in levels[:-1]]
                blocks[name] = tuple(f"{name}={level}" for level in levels[:-1])
                found += blocks[name]
            else:
                columns.append(_finite(series))
                found.append(name)
        return np.column_stack(columns), tuple(found), blocks

    def actions(self, names: Sequence[str], discrete: bool | None) -> np.ndarray:
        """One action column as it is, or as numbers if it is said to be so; several numeric ones side by side."""
        if len(names) == 1 and discrete is not False:
            return _values(self.column(names[0]))
        return np.column_stack([self.numbers(name) for name in names])

    def is_label(self, name: str, discrete: bool | None) -> bool:
        """Is this action column made of labels?"""
        return not self.column(name).dtype.is_float() if discrete is None else discrete

    def labels(self, name: str) -> np.ndarray:
        """Any labels, such as those of the episodes."""
        series = self.column(name, text_is_label=True)
        return _values(series) if series.dtype.is_numeric() else np.array(series.cast(str).to_list(), dtype=object)

    def recorded(self, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Numbers and truths as they are, also those that are not known."""
        return {name: self.only([name])[name].to_numpy() for name in names}

    def configuration(self, used: Collection[str]) -> dict[str, np.ndarray]:
        """ω as a log has it, a column of numbers `configuration.gravity` for each entry, but for those that are used."""
        import polars

        names = [name for name in self.frame.columns if name.startswith(CONFIGURATION) and name not in used]
        found = {name: self.frame[name] for name in names if self.frame[name].dtype.is_numeric()}
        return {name: series.cast(polars.Float64, strict=False).to_numpy() for name, series in found.items()}

    def numbers(self, name: str) -> np.ndarray:
        """A numeric column as float64."""
        series = self.column(name)
        if _is_text(series):
            raise InputError(f"column '{name}' must be numbers, found text: '{series[0]}' in row 1; choose another.")
        return _finite(series)

    def column(self, name: str, text_is_label: bool = False) -> "polars.Series":
        """A column without missing values, of numbers (text that holds numbers becomes them) or of labels."""
        import polars

        series = self.frame[name]
        if series.null_count():
            row = int(series.is_null().arg_max() or 0) + 1
            raise InputError(f"column '{name}' must be complete, found a missing value in row {row}: drop or fill it.")
        if series.dtype in (polars.Int128, polars.UInt128):  # which NumPy does not have
            series = series.cast(polars.String) if text_is_label else series.cast(polars.Float64)
        if text_is_label:
            if series.dtype.is_nested() or series.dtype in (polars.Object, polars.Duration):
                raise InputError(f"column '{name}' must hold labels, found the type {series.dtype}.")
            return series
        if series.dtype == polars.String:
            return _numbers_in_text(series)
        if not (series.dtype.is_numeric() or series.dtype == polars.Boolean or _is_text(series)):
            raise InputError(f"column '{name}' must be numbers or categories, found the type {series.dtype}.")
        return series.cast(polars.Float64) if series.dtype.is_decimal() else series


def _to_polars(frame: Any) -> "polars.DataFrame":
    import polars
    import pyarrow

    arrow = isinstance(frame, pyarrow.Table)
    names = [str(name) for name in (frame.column_names if arrow else frame.columns)]
    check_unique(names)
    try:
        if (
            arrow
        ):  # without what polars may panic at: damaged metadata of the schema, a zero byte in a name, long decimals
            plain = [f"column_{j}" for j in range(len(names))]
            columns = [c.cast("float64") if pyarrow.types.is_decimal(c.type) else c for c in frame.columns]
            made = polars.from_arrow(pyarrow.Table.from_arrays(columns, names=plain))
            categorical = [pyarrow.types.is_dictionary(kind) for kind in frame.schema.types]
        else:
            made = polars.from_pandas(_without_texts_for_nothing(frame))
            categorical = [str(kind) == "category" for kind in frame.dtypes]
    except (pyarrow.ArrowException, polars.exceptions.PolarsError, TypeError, ValueError) as error:
        raise InputError(f"a column must hold one type, found a mixture ({error}): convert it first.") from error
    assert isinstance(made, polars.DataFrame)
    made.columns = names  # an empty name is a name, which polars replaces
    numbers = [name for name, yes in zip(names, categorical, strict=True) if yes and made[name].dtype.is_numeric()]
    return DataTable(made).with_categories(numbers).frame


def _without_texts_for_nothing(frame: Any) -> Any:
    """A pandas frame whose columns of numbers and texts hold None where a text says that there is no value."""
    made = frame.copy(deep=False)
    for name in [name for name, kind in frame.dtypes.items() if str(kind) == "object"]:
        if all(isinstance(value, str) or value is None or value != value for value in frame[name]):
            continue
        made[name] = frame[name].map(lambda value: None if isinstance(value, str) and value.strip() in TEXTS else value)
    return made


def _as_categories(series: "polars.Series") -> "polars.Series":
    """Text, truths and numbers as categories by name; a whole float is named as the integer that it is."""
    import polars

    if isinstance(series.dtype, polars.Categorical | polars.Enum):
        return series
    if not (series.dtype.is_numeric() or series.dtype in (polars.Boolean, polars.String)):
        raise InputError(
            f"categories must be numbers or text, found the type {series.dtype} in column '{series.name}'."
        )
    if series.dtype.is_float():
        whole = (
            series.is_finite() & (series == series.round()) & (series.abs() < 2.0**63)
        )  # beyond, as they are written
        series = series.cast(polars.Int64) if (series.is_null() | whole).all() else series
    return series.cast(polars.String).str.strip_chars().cast(polars.Categorical)


def _is_text(series: "polars.Series") -> bool:
    import polars

    return isinstance(series.dtype, polars.String | polars.Categorical | polars.Enum)


def _values(series: "polars.Series") -> np.ndarray:
    """Numbers as numbers, finite; labels as text."""
    if series.dtype.is_float():
        return _finite(series)
    return np.array(series.to_list(), dtype=object) if _is_text(series) else series.to_numpy()


def _finite(series: "polars.Series") -> np.ndarray:
    array = series.cast(float).to_numpy()
    bad = ~np.isfinite(array)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"column '{series.name}' must be finite numbers, found {array[row]} in row {row + 1}: drop or fill it."
        )
    return array


def _as_meant(series: "polars.Series") -> "polars.Series":
    """Text of which most is numbers: beside marks such as NA they are numbers, and alone, whole and few, labels."""
    import polars

    if series.dtype != polars.String:
        return series
    stripped = series.str.strip_chars()
    marks = stripped.is_in(list(TEXTS)).fill_null(True)
    numbers = stripped.set(marks, None).cast(polars.Float64, strict=False)
    if (numbers.is_null() != marks).any() or marks.all():
        return series
    if series.is_null().any() or marks.any():
        whole = stripped.set(marks, None).cast(polars.Int64, strict=False)
        return numbers if (whole.is_null() != marks).any() else whole
    whole = stripped.cast(polars.Int64, strict=False)
    few = stripped.n_unique() <= min(MAX_LEVELS, len(series) // 2)
    return stripped.cast(polars.Categorical) if few and not whole.null_count() else series


def _numbers_in_text(series: "polars.Series") -> "polars.Series":
    """Text as it is, unless most of it is numbers: then all of it must be."""
    import polars

    stripped = series.str.strip_chars()
    parsed = stripped.cast(polars.Float64, strict=False)
    failed = parsed.is_null()
    if 2 * failed.sum() >= len(series):
        return series
    if failed.any():
        row = int(failed.arg_max() or 0)
        raise InputError(
            f"column '{series.name}' has text where numbers belong: found '{series[row]}' in row {row + 1}; "
            "correct it, or drop that row."
        )
    whole = stripped.cast(polars.Int64, strict=False)
    return parsed if whole.null_count() else whole


def _levels(series: "polars.Series") -> list[str]:
    """The sorted levels of a categorical column."""
    import polars

    # Categories that are whole numbers stand in the order of the numbers, others in that of the alphabet.
    whole = series.cast(polars.String).cast(polars.Int64, strict=False).null_count() == 0
    levels = sorted((str(level) for level in series.unique().to_list()), key=int if whole else str)
    if len(levels) == 1 and len(series):
        raise InputError(f"column '{series.name}' is constant, '{levels[0]}' in every row: drop it.")
    if len(levels) > MAX_LEVELS or len(levels) == len(series):
        kind = "texts" if series.dtype == polars.String else "categories"
        raise InputError(
            f"column '{series.name}' has {len(levels)} different {kind} in {len(series)} rows, found '{series[0]}' in "
            "row 1: free text is no feature, so leave the column out."
        )
    return levels


# -- Trials: successes out of so many, as rows of two labels that stand for as many decisions.


def split_trials(frame: "polars.DataFrame", successes: str, trials: str, counts: str) -> "polars.DataFrame":
    """Two rows a state, one a label, with how many decisions they stand for in the column `counts`."""
    from polars import Series, col, concat

    table = DataTable(frame)
    table.only([successes, trials])
    total, found = table.numbers(trials), table.numbers(successes)
    if not ((total >= 1) & (total == np.round(total))).all():
        raise InputError(
            f"column '{trials}' must hold whole numbers of trials of at least 1, found others: correct it."
        )
    if frame[successes].dtype.is_float() and (found <= 1).all():  # shares
        found = np.where(
            np.abs(found * total - np.round(found * total)) < SHARE_ERROR, np.round(found * total), found * total
        )
    if not ((found >= 0) & (found <= total) & (found == np.round(found))).all():
        row = int(np.argmax((found < 0) | (found > total) | (found != np.round(found))))
        raise InputError(
            f"column '{successes}' must hold whole numbers between 0 and '{trials}', or shares of them, found "
            f"{frame[successes][row]} of {total[row]:g} in row {row + 1}: correct it."
        )
    parts = [
        frame.drop(successes, trials).with_columns(Series(successes, [label] * len(frame)), Series(counts, values))
        for label, values in ((successes, found), (f"not {successes}", total - found))
    ]
    return concat(parts).filter(col(counts) > 0)


SHARE_ERROR = 0.02
"""How far a share times its trials may be from a whole number: shares are written with few digits."""


# -- Choices among alternatives that have attributes: which columns hold them, one row a choice or one an alternative.

AttributeColumns = str | Sequence[str] | Mapping[str, str]
"""The columns of an attribute: a pattern such as cost_*, a list in the order of the alternatives, or a table by them."""

Attributes = Mapping[str, AttributeColumns]
"""The columns of every attribute."""


@final
@dataclass(frozen=True)
class LongFormat:
    """The columns of a table with one row an alternative.

    Parameters
    ----------
    choice_id : str
        Says which rows are the alternatives of one choice.
    chosen : str
        1 or true in the row of the alternative that was taken.
    alternative : str, optional
        The names of the alternatives; without it they have none, only a place in their choice.

    Examples
    --------
    >>> import polars
    >>> import policyspace
    >>> rows = {"trip": [0, 0, 1, 1], "mode": ["bus", "car"] * 2, "taken": [1, 0, 0, 1], "cost": [2, 9, 4, 3]}
    >>> trips = policyspace.ChoiceLinear(long=policyspace.LongFormat("trip", "taken", "mode"))
    >>> policyspace.read(polars.DataFrame(rows), choices=trips.choices).action_names
    ('bus', 'car')
    """

    choice_id: str
    chosen: str
    alternative: str | None = None

    @property
    def columns(self) -> list[str]:
        """Those that are named."""
        return [name for name in (self.choice_id, self.chosen, self.alternative) if name is not None]


@final
@dataclass(frozen=True)
class AlternativeColumns:
    """What is said about alternatives: their attributes, whether each is available, and whether the table is a long one.

    In a long table attributes are names of columns, by default of all that differ within a choice, and `available` is one.
    """

    attributes: Attributes | Sequence[str] | None = None
    available: AttributeColumns | None = None
    long: LongFormat | None = None

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


def columns_of(said: AttributeColumns, names: Sequence[str], labels: Sequence[str], what: str) -> dict[str, str]:
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


# -- Columns that are no sensors: rewards, ends of episodes, counters and row numbers; and columns that look like episodes.

PATTERNS = (
    "reward", "rewards", "done", "dones", "terminated", "truncated", "terminal", "terminals", "timeout", "timeouts",
    "next_*", "timestep", "timesteps", "step", "steps", "episode*", "timestamp", "timestamps", "info*", "seed",
    "", "unnamed:*", "__index_level_*",
)  # fmt: skip
"""Names, whatever their case, of what a recorder writes beside the state; the last three are those of nameless columns."""

CLOCKS = ("t", "time")
"""Names that may be a sensor: bookkeeping only where they grow from every row to the next."""

FEWEST_ROWS = 10
"""In fewer rows, 0, 1, 2, … may well be a sensor."""

LONG_RUN = 5
"""Rows that a value of an episode-like column lasts, on average."""


def is_bookkeeping(series: "polars.Series") -> bool:
    """Is this column about the recording, by its name, because it is a date or a time, or because it numbers the rows?"""
    name = series.name.strip().lower()
    if series.dtype.is_temporal():
        return True
    if any(fnmatchcase(name, pattern) for pattern in PATTERNS):
        return True
    if name in CLOCKS and _orders(series) and len(series) > 1 and bool((series[1:] > series[:-1]).all()):
        return True
    # Is it 0, 1, 2, … or 1, 2, 3, …?
    whole = series.dtype.is_integer() and not series.null_count()
    return whole and len(series) >= FEWEST_ROWS and series[0] in (0, 1) and bool((series.diff()[1:] == 1).all())


def looks_like_episodes(series: "polars.Series") -> bool:
    """Does it hold each of its values through one long run, or count runs up, perhaps beginning again at the first?"""
    if not _orders(series) or len(series) < 3 * LONG_RUN:
        return False
    runs = series.rle().struct.field("value")
    if len(runs) * LONG_RUN > len(series) or series.n_unique() < 3:
        return False
    if len(runs) == series.n_unique():
        return True
    steps = runs.diff().drop_nulls() if runs.dtype.is_integer() else None
    return steps is not None and bool(((steps == 1) | (runs[1:] == runs[0])).all())


def _orders(series: "polars.Series") -> bool:
    """Is it complete, and of a type with an order that tells more than two values apart?"""
    import polars

    return not (series.null_count() or series.dtype.is_nested() or series.dtype in (polars.Boolean, polars.Object))


# -- Which columns of a table are what: what a caller says of them, and what follows for the others.


@final
@dataclass(frozen=True)
class ColumnRoles:
    """What is said about the columns of a table; without features, all that play no other role and are no bookkeeping."""

    actions: str | Sequence[str] | None = None
    features: str | Sequence[str] | None = None
    episodes: str | None = None
    weights: str | None = None
    subjects: str | None = None
    categorical: str | Sequence[str] | None = None
    missing: Missing = "error"
    recorded: Sequence[str] = ()
    choices: AlternativeColumns | None = None
    na: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.na is not None and not (
            isinstance(self.na, list | tuple) and all(isinstance(one, str) for one in self.na)
        ):
            raise InputError(f"texts that mean a missing value are a list such as ['NA', ''], found {self.na!r:.40}.")
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
class ColumnSelection:
    """A table without missing values in the columns that are used, its features, and what a reader must be told."""

    table: DataTable
    features: list[str]
    excluded: list[str]
    notes: list[str]

    def noted(self, origin: Origin) -> Origin:
        """The origin of the table with the columns that were excluded and the notes of this reading."""
        excluded, notes = tuple(self.excluded), tuple(self.notes)
        return replace(origin, excluded_columns=excluded or origin.excluded_columns, notes=notes or origin.notes)


def choose(table: DataTable, columns: ColumnRoles, texts: Collection[str] = TEXTS) -> ColumnSelection:
    """The columns to use; of text only these `texts` count as missing values."""
    if not table.frame.height:
        raise InputError("a table needs at least one row, found none: check the file or the filter behind it.")
    actions, categorical = listed(columns.actions), list(dict.fromkeys(listed(columns.categorical)))
    if not actions:
        raise InputError("the action needs at least one column, found none.")
    taken = [*actions, *columns.others, *columns.recorded]
    table.only([*taken, *categorical])
    features, excluded = chosen_features(table, columns.features, taken)
    used = [*actions, *columns.others, *features]
    if (twice := repeated(used)) is not None:
        raise InputError(f"every column has one role, found '{twice}' in two: name it once.")
    for name in categorical:
        if name not in used:
            raise InputError(f"only a column that is used can be categorical, found '{name}': add it to the features.")
    named = columns.episodes is not None or columns.features is not None
    notes = [] if named else episode_notes(table, [*features, *excluded])
    frame = table.frame.with_columns([_as_meant(table.frame[name]) for name in features if name not in categorical])
    frame, dropped = complete(frame, used, columns.missing, texts)
    return ColumnSelection(
        DataTable(frame).with_categories(categorical), features, excluded, [*([dropped] if dropped else []), *notes]
    )


def chosen_features(
    table: DataTable, features: str | Sequence[str] | None, taken: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """The feature columns, and those excluded because they look like bookkeeping."""
    if features is not None:
        wanted = _matched(table, listed(features), taken)
        excluded: list[str] = []
    else:
        rest = [name for name in table.frame.columns if name not in taken]
        no_sensors = {name for name in rest if is_bookkeeping(table.frame[name])}
        excluded = [name for name in rest if name in no_sensors]
        wanted = [name for name in rest if name not in no_sensors]
    if not wanted:
        found = f"only log data ({', '.join(map(repr, excluded))})" if excluded else "none"
        raise InputError(f"at least one column must be a feature, found {found} besides the action: name the features.")
    return wanted, excluded


def episode_notes(table: DataTable, names: Sequence[str]) -> list[str]:
    """A sentence for each of these columns that may be the one of the episodes."""
    found = [name for name in names if name and looks_like_episodes(table.frame[name])]
    return [f"column '{name}' looks like episodes: declare it with --episodes {name}." for name in found]


def listed(names: str | Sequence[str] | None) -> list[str]:
    """One name or several as a list."""
    return [] if names is None else list(as_names(names, "the columns"))


def _matched(table: DataTable, wanted: list[str], taken: Sequence[str]) -> list[str]:
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
