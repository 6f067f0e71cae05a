"""Named features out of a table: numbers as they are, categories one-hot."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from policyspace.errors import InputError, nearest

if TYPE_CHECKING:
    import polars

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

    def roles(self, action: list[str], features: list[str] | None, others: list[str]) -> list[str]:
        """The feature columns, every name being known and in one role only."""
        if not self.frame.height:
            raise InputError("a table needs at least one row, found none: check the file or the filter behind it.")
        if not action:
            raise InputError("the action needs at least one column, found none.")
        taken = [*action, *others]
        self.only([*taken, *(features or [])])
        rest = [name for name in self.frame.columns if name not in taken] if features is None else features
        all_roles = [*taken, *rest]
        for name in all_roles:
            if all_roles.count(name) > 1:
                raise InputError(f"every column has one role, found '{name}' in two: name it once.")
        index = next((name for name in rest if name == "" or name.startswith("__index_level_")), None)
        if features is None and index is not None:
            raise InputError(f"column '{index}' has no name of its own and may be a row index: name the features.")
        if not rest:
            raise InputError("at least one column must be a feature, found none besides the action: name the features.")
        return rest

    def only(self, names: Sequence[str]) -> "polars.DataFrame":
        """These columns, every name being known."""
        for name in names:
            if name not in self.frame.columns:
                raise InputError(f"there is no column '{name}': {nearest(name, self.frame.columns)}")
        return self.frame[list(dict.fromkeys(names))]

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
        if text_is_label:
            if series.dtype.is_nested() or series.dtype == polars.Object:
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
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"every column needs a name of its own, found '{twice}' twice: rename one.")
    try:
        if arrow:  # without what polars may panic at: damaged metadata of the schema, a zero byte in a name
            plain = [f"column_{j}" for j in range(len(names))]
            made = polars.from_arrow(pyarrow.Table.from_arrays(frame.columns, names=plain))
        else:
            made = polars.from_pandas(frame)
    except (pyarrow.ArrowException, polars.exceptions.PolarsError, TypeError, ValueError) as error:
        raise InputError(f"a column must hold one type, found a mixture ({error}): convert it first.") from error
    assert isinstance(made, polars.DataFrame)
    made.columns = names  # an empty name is a name, which polars replaces
    return made


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
    levels = sorted(str(level) for level in series.unique().to_list())
    if len(levels) == 1 and len(series):
        raise InputError(f"column '{series.name}' is constant, '{levels[0]}' in every row: drop it.")
    if len(levels) > MAX_LEVELS or len(levels) == len(series):
        raise InputError(
            f"column '{series.name}' has {len(levels)} different texts in {len(series)} rows, found '{series[0]}' in "
            "row 1: free text is no feature, so leave the column out."
        )
    return levels
