"""Arrays and lists from outside as float64 numbers or as codes of labels, or one sentence about what is wrong."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from policyspace.errors import InputError, nearest

MAX_LABELS = 100
"""An action with more distinct values, and more than a tenth of the rows, looks continuous."""


def as_array(values: Any, what: str) -> np.ndarray:
    """An array of one or two dimensions, complete and not ragged."""
    if np.ma.is_masked(values):
        raise InputError(f"{what} must not miss any value, found masked entries: drop or fill these rows.")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise InputError(f"{what} must be rows of the same length, found a ragged or unreadable array.") from error
    if array.ndim not in (1, 2):
        raise InputError(f"{what} must be an array with one row a pair, found {array.ndim} dimensions: reshape it.")
    return array


def as_vector(values: Any, what: str) -> np.ndarray:
    """One value a row [n]."""
    array = as_array(values, what)
    if array.ndim == 2 and array.shape[1] != 1:
        raise InputError(f"{what} must be one value a row, found {array.shape[1]} columns.")
    return array.reshape(-1)


def as_matrix(values: Any, what: str) -> np.ndarray:
    """Numbers [n, columns] in float64; text, dates and complex numbers are not read as numbers."""
    array = as_array(values, what)
    return as_floats(array[:, None] if array.ndim == 1 else array, what)


def as_floats(array: np.ndarray, what: str) -> np.ndarray:
    """Numbers in float64; the array itself, if they are."""
    if array.dtype.kind == "O":
        numbers = (bool, int, float, np.bool_, np.integer, np.floating)
        for (row, *_), value in np.ndenumerate(array):
            if not isinstance(value, numbers):
                raise InputError(f"{what} must be numbers, found {_shown(value)} in row {row + 1}.")
    elif array.dtype.kind not in "biuf":
        raise InputError(f"{what} must be numbers, found an array of type {array.dtype}.")
    try:
        with np.errstate(over="ignore"):  # what overflows is infinite, and refused as such later
            return array.astype(np.float64, copy=False)
    except OverflowError as error:
        raise InputError(f"{what} must fit in 64-bit floats, found a larger number.") from error


def factorise(values: Any, what: str) -> np.ndarray:
    """Any labels as 0, 1, … in the order in which they first appear [n]."""
    labels = as_vector(values, what)
    try:
        missing = labels != labels if labels.dtype.kind != "O" else np.array([v is None or v != v for v in labels])
        if missing.any():
            raise InputError(f"{what} must be complete, found a missing value in row {int(np.argmax(missing)) + 1}.")
        if labels.dtype.kind == "O":
            codes: dict[Any, int] = {}
            return np.array([codes.setdefault(label, len(codes)) for label in labels], dtype=np.int64)
        _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    except TypeError as error:
        raise InputError(f"{what} must be labels, text or numbers, found an array of type {labels.dtype}.") from error
    return np.argsort(np.argsort(first))[inverse]


def is_discrete(actions: np.ndarray, discrete: bool | None) -> bool:
    """What the caller says; else floats and several columns are continuous."""
    if actions.ndim == 1:
        return actions.dtype.kind != "f" if discrete is None else discrete
    if discrete or (discrete is None and actions.dtype.kind != "f"):
        raise InputError(
            f"discrete actions must be one column, found {actions.shape[1]} columns of type {actions.dtype}: "
            "choose one, or take the Gaussian policy (discrete=False) if they are numbers."
        )
    return False


def encode(actions: np.ndarray, names: Sequence[str] | None, trusted: bool) -> tuple[np.ndarray, tuple[str, ...]]:
    """Codes [n] and the labels they stand for: sorted, or in the order of `names`.

    `names` holds every label, or names the codes 0, 1, …. Many distinct values are refused unless `trusted`.
    """
    levels, codes = _levels(actions)
    found = [label_text(level) for level in levels]
    if not trusted and len(found) > MAX_LABELS and len(found) > len(actions) / 10:
        raise InputError(
            f"the action has {len(found)} distinct values in {len(actions)} rows, too many to be labels: it looks "
            "continuous, so pass policy gaussian, or choose another column."
        )
    if names is None:
        return codes, tuple(found)
    names = tuple(str(name) for name in names)
    if actions.dtype.kind in "biuf" and not set(found) <= set(names):  # no labels, so codes of the names
        codes = codes if not len(levels) else np.asarray(levels, dtype=np.int64)[codes]
        check_codes(codes, names)
        found = [names[int(level)] for level in levels]
    else:
        for label in found:
            if label not in names:
                raise InputError(f"the action '{label}' is not among the action names: {nearest(label, names)}")
        codes = np.array([names.index(label) for label in found], dtype=np.int64)[codes]
    for name in names:
        if name not in found:
            raise InputError(
                f"the action '{name}' is never played, so it has no finite parameters: drop it from the action names."
            )
    return codes, names


def check_codes(codes: np.ndarray, names: Sequence[str]) -> None:
    """Every code must have a name."""
    bad = (codes < 0) | (codes >= len(names))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"action codes must be 0 to {len(names) - 1}, found {codes[row]} in row {row + 1}.")


def label_text(label: Any) -> str:
    """The name of a label: a whole float is named as the integer that it is."""
    whole = isinstance(label, float | np.floating) and float(label).is_integer()
    return str(int(label)) if whole else str(label)


def _levels(actions: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """The sorted distinct labels and the place of each row among them."""
    kind = actions.dtype.kind
    if kind == "f":
        whole = np.isfinite(actions) & (actions == np.round(actions)) & (np.abs(actions) < 2**53)
        if not whole.all():
            row = int(np.argmin(whole))
            raise InputError(
                f"discrete actions must be labels or whole numbers, found {actions[row]} in row {row + 1}."
            )
        actions = actions.astype(np.int64)
    elif kind == "O":
        return _object_levels(actions.tolist())
    elif kind not in "biuU":
        raise InputError(f"actions must be labels or numbers, found an array of type {actions.dtype}.")
    levels, codes = np.unique(actions, return_inverse=True)
    return levels.tolist(), codes.astype(np.int64)


def _object_levels(actions: list[Any]) -> tuple[list[Any], np.ndarray]:
    allowed = (str, bool, int, np.integer, np.bool_)
    if not all(issubclass(kind, allowed) for kind in {type(value) for value in actions}):
        row = next(i for i, value in enumerate(actions) if not isinstance(value, allowed))
        found = _shown(actions[row])
        raise InputError(f"discrete actions must be labels or whole numbers, found {found} in row {row + 1}.")
    distinct = set(actions)
    if len({isinstance(value, str) for value in distinct}) > 1:
        raise InputError("discrete actions must be all text or all numbers, found a mixture.")
    levels = sorted(distinct)
    place = {level: code for code, level in enumerate(levels)}
    return levels, np.array([place[value] for value in actions], dtype=np.int64)


def _shown(value: Any) -> str:
    return "a missing value" if value is None else repr(value)
