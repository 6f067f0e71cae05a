"""Validation of arrays, action codes, names, missing values and keyword arguments."""

import functools
import inspect
import warnings
from collections.abc import Callable, Collection, Sequence
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

import numpy as np

from policyspace.errors import InputError, nearest

if TYPE_CHECKING:
    import polars


# -- Arrays and lists from outside as float64 numbers or as codes of labels, or one sentence about what is wrong.

MAX_LABELS = 100
"""An action with more distinct values, and more than a tenth of the rows, looks continuous."""


MOST_SINGLE_LABELS = 10
"""More rows of which no two have the same label say nothing about any label."""


def as_array(values: Any, what: str) -> np.ndarray:
    """An array of one or two dimensions, complete and not ragged."""
    if np.ma.is_masked(values):
        raise InputError(f"{what} must not miss any value, found masked entries: drop or fill these rows.")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise InputError(f"{what} must be rows of the same length, found a ragged or unreadable array.") from error
    if array.ndim not in (1, 2):
        raise InputError(f"{what} must be an array with one row a decision, found {array.ndim} dimensions: reshape it.")
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
            "continuous, so pass policy gaussian (poisson for counts), or choose another column."
        )
    if not trusted and len(found) == len(actions) > MOST_SINGLE_LABELS:
        raise InputError(
            f"an action must be taken more than once, found {len(found)} labels in as many rows: choose another column."
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


# -- Missing values: an error that counts them, or rows that are dropped.

Missing = Literal["error", "drop"]

TEXTS = ("", "NA", "NaN", "nan", "null", "None")
"""Texts that say that there is no value."""

MISSING_LABELS = ("", "NaN", "nan")
"""Those that say so of a label in a table: other texts are levels, for a table has nulls where it has no value."""

MOST_NAMED = 5
"""Columns that a sentence counts one by one."""


def complete(
    frame: "polars.DataFrame", names: Sequence[str], missing: Missing, texts: Collection[str] = TEXTS
) -> tuple["polars.DataFrame", str]:
    """The rows with a value in each of these columns, and a sentence about those that were dropped, if any.

    Only these `texts` count as missing: other labels are as they were written.
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


def is_missing(series: "polars.Series", texts: Collection[str] = TEXTS) -> "polars.Series":
    """Which values are missing [n]: null, not a number, or one of the texts that say so."""
    import polars

    mask = series.is_null()
    if series.dtype.is_float():
        return mask | series.is_nan().fill_null(True)
    if texts and isinstance(series.dtype, polars.String | polars.Categorical | polars.Enum):
        return mask | series.cast(polars.String).str.strip_chars().is_in(list(texts)).fill_null(True)
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


# -- One vocabulary: the words that every call takes, what older words became, and what a misspelt one was meant to be.

RENAMED = {
    "names": "features", "action": "actions", "episode": "episodes", "weight": "weights", "subject": "subjects",
    "num_attempts": "max_rounds", "attempts": "max_rounds", "num_episodes": "episodes", "initial": "configuration",
    "path": "source", "dependence": "clusters", "always": "assume", "weights_are": "weight_type",
    "metadata": "origin",
}  # fmt: skip
"""Words of earlier versions, which still work with a warning, and what they are called now."""

P = ParamSpec("P")
R = TypeVar("R")


def translate_keywords(function: Callable[P, R], called: str = "") -> Callable[P, R]:
    """The same function, which understands older words and says which word an unknown one was meant to be."""
    signature = inspect.signature(function)
    known = _argument_names(signature)
    name = called or function.__name__

    @functools.wraps(function)
    def call(*args: P.args, **given: P.kwargs) -> R:
        words: Any = _current(name, known, list(signature.bind_partial(*args).arguments), dict(given))
        return function(*args, **words)

    return call


def translate_constructor(cls: type[R]) -> type[R]:
    """The same class, whose constructor understands older words too."""
    cls.__init__ = translate_keywords(cls.__init__, cls.__name__)  # type: ignore[method-assign]
    return cls


def explain_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """The same function: where it fails on an argument that is not of the kind of its type hint, one sentence says so.

    Scalars of NumPy are taken as the numbers that they are.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: P.args, **given: P.kwargs) -> R:
        scalars = (np.bool_, np.integer, np.floating)
        plain: Any = [value.item() if isinstance(value, scalars) else value for value in args]
        named: Any = {name: value.item() if isinstance(value, scalars) else value for name, value in given.items()}
        try:
            return function(*plain, **named)
        except InputError:
            raise
        except Exception as error:
            try:
                bound = signature.bind(*plain, **named).arguments
            except TypeError:  # of a call that fits no function of these arguments
                raise error from None
            for name, value in bound.items():
                hint = signature.parameters[name].annotation
                if signature.parameters[name].kind not in (2, 4) and not fits_hint(value, hint):
                    wanted = hint if isinstance(hint, str) else inspect.formatannotation(hint).replace("typing.", "")
                    found = f"{value!r:.60}".splitlines()[0]
                    raise InputError(f"{function.__name__}: '{name}' must be {wanted}, found {found}.") from error
            raise

    return call


def fits_hint(value: Any, hint: Any) -> bool:
    """Is a value of the kind of a type hint, as far as that can be told?"""
    outer, inner = get_origin(hint), get_args(hint)
    if hint in (Any, inspect.Parameter.empty):
        return True
    if isinstance(hint, str):  # a class that is imported for its type alone
        return not hint.isidentifier() or any(kind.__name__ == hint for kind in type(value).__mro__)
    if outer in (Union, UnionType):
        return any(fits_hint(value, one) for one in inner)
    if outer is Literal:
        return any(type(value) is type(one) and value == one for one in inner)
    if outer is Sequence:
        some = isinstance(value, str) or (isinstance(value, Sequence) and not isinstance(value, bytes))
        return some and all(fits_hint(one, inner[0]) for one in value[:100])
    if outer is Callable:
        return callable(value)
    if hint is None:
        return value is None
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    try:
        return isinstance(value, outer or hint)
    except TypeError:  # of a hint that is no class, such as a type variable
        return True


def is_names(value: Any) -> bool:
    """Is this one name, or a list of names?"""
    return isinstance(value, str) or (isinstance(value, list | tuple) and all(isinstance(name, str) for name in value))


def as_names(value: Any, what: str) -> tuple[str, ...]:
    """One name or several, each of them text or a number."""
    if isinstance(value, str):
        return (value,)
    try:
        found = tuple(value)
    except TypeError as error:
        raise InputError(f"{what} must be a list of names, found {value!r:.40}.") from error
    if not all(isinstance(name, str | int | float | np.generic) for name in found):
        raise InputError(f"{what} must be a list of names, found {value!r:.60}.")
    return tuple(str(name) for name in found)


def _argument_names(signature: inspect.Signature) -> list[str]:
    """The names of the arguments; `**more: Unpack[Table]` stands for those of the table."""
    found = []
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            found += list(get_args(parameter.annotation)[0].__annotations__)
        elif name not in ("cls", "self"):
            found.append(name)
    return found


def _current(function: str, known: Sequence[str], filled: Sequence[str], given: dict[str, object]) -> dict[str, object]:
    """The words as they are called now."""
    first = known[0]
    if first not in (*filled, *given) and not is_names(given.get("features", "")):
        given[first] = given.pop("features")  # the name that the data once had
    for old, new in RENAMED.items():
        if old in given and old not in known and new in known:
            if new in given or new in filled:
                raise InputError(f"{old}= is an older word for {new}=, found both: keep {new}=.")
            warnings.warn(f"{function}: {old}= is now {new}=.", DeprecationWarning, stacklevel=4)
            given[new] = given.pop(old)
    for name in given:
        if name not in known:
            raise InputError(f"{function} has no argument '{name}': {nearest(name, known)}")
    return given
