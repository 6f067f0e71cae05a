"""Missing values: an error that counts them, or rows that are dropped."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

from policyspace.errors import InputError

if TYPE_CHECKING:
    import polars

Missing = Literal["error", "drop"]

TEXTS = ("", "NA", "NaN", "nan", "null", "None")
"""Texts that say that there is no value."""

MOST_NAMED = 5
"""Columns that a sentence counts one by one."""


def complete(
    frame: "polars.DataFrame", names: Sequence[str], missing: Missing, texts: bool = True
) -> tuple["polars.DataFrame", str]:
    """The rows with a value in each of these columns, and a sentence about those that were dropped, if any.

    Without `texts`, no text counts as missing: labels are as they were written.
    """
    if missing not in get_args(Missing):
        raise InputError(
            f"missing values are an 'error' or a reason to 'drop' their rows, found '{missing}': choose one."
        )
    masks = {name: is_missing(frame[name], texts) for name in dict.fromkeys(names)}
    masks = {name: mask for name, mask in masks.items() if mask.any()}
    if not masks:
        return frame, ""
    if missing == "error":
        raise InputError(_sentence(frame, masks))
    first, *others = masks.values()
    gone = first
    for mask in others:
        gone = gone | mask
    if gone.all():
        raise InputError(f"every row misses a value, in {_counted(masks)}: leave such columns out.")
    return frame.filter(~gone), f"rows dropped for missing values: {gone.sum()} of {len(gone)} ({_counted(masks)})."


def is_missing(series: "polars.Series", texts: bool = True) -> "polars.Series":
    """Which values are missing [n]: null, not a number, or one of the texts that say so."""
    import polars

    mask = series.is_null()
    if series.dtype.is_float():
        return mask | series.is_nan().fill_null(True)
    if texts and isinstance(series.dtype, polars.String | polars.Categorical | polars.Enum):
        return mask | series.cast(polars.String).str.strip_chars().is_in(list(TEXTS)).fill_null(True)
    return mask


def _sentence(frame: "polars.DataFrame", masks: dict[str, "polars.Series"]) -> str:
    """How many values each column misses, and where the first is."""
    found = []
    for name, mask in list(masks.items())[:MOST_NAMED]:
        row = int(mask.arg_max() or 0)
        value = frame[name][row]
        shown = "" if value is None else f" ('{value}')"
        where = f"a missing value in row {row + 1}" if mask.sum() == 1 else f"{mask.sum()} missing values"
        first = "" if mask.sum() == 1 else f", the first in row {row + 1}"
        found.append(f"column '{name}' must be complete, found {where}{first}{shown}")
    more = [f"{len(masks) - MOST_NAMED} more columns alike"] if len(masks) > MOST_NAMED else []
    return f"{'; '.join(found + more)}: fill such rows, or drop them (--missing drop, missing='drop')."


def _counted(masks: dict[str, "polars.Series"]) -> str:
    return ", ".join(f"'{name}' misses {mask.sum()}" for name, mask in masks.items())
