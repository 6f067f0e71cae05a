"""Named features out of a table: numbers as they are, categories one-hot."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from policyspace.data.missing import TEXTS
from policyspace.errors import InputError, check_unique, nearest

if TYPE_CHECKING:
    import polars

CONFIGURATION = "configuration."
"""How columns begin that say where a row was collected."""

MAX_LEVELS = 50
"""A text column with more levels is more likely free text than a category."""


@final
@dataclass(frozen=True)
class Table:
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
        if series.dtype == polars.Int128:  # which NumPy does not have
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
    return Table(made).with_categories(numbers).frame


def _without_texts_for_nothing(frame: Any) -> Any:
    """A pandas frame whose object columns hold None where a text says that there is no value, so that numbers stay."""
    made = frame.copy(deep=False)
    for name in [name for name, kind in frame.dtypes.items() if str(kind) == "object"]:
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
    if series.dtype.is_float() and (series.is_null() | (series.is_finite() & (series == series.round()))).all():
        series = series.cast(polars.Int64)
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

    levels = sorted((str(level) for level in series.unique().to_list()), key=_order_of(series))
    if len(levels) == 1 and len(series):
        raise InputError(f"column '{series.name}' is constant, '{levels[0]}' in every row: drop it.")
    if len(levels) > MAX_LEVELS or len(levels) == len(series):
        kind = "texts" if series.dtype == polars.String else "categories"
        raise InputError(
            f"column '{series.name}' has {len(levels)} different {kind} in {len(series)} rows, found '{series[0]}' in "
            "row 1: free text is no feature, so leave the column out."
        )
    return levels


def _order_of(series: "polars.Series") -> Callable[[str], Any]:
    """Categories that are whole numbers stand in the order of the numbers, others in that of the alphabet."""
    import polars

    numbers = series.cast(polars.String).cast(polars.Int64, strict=False)
    return str if numbers.null_count() else int
