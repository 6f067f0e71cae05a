"""NPZ archives: one array a role, or one array a column; objects are never unpickled."""

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.data.limits import check_limit
from policyspace.data.npy import read_archive
from policyspace.data.roles import KEY, Roles, Stored
from policyspace.errors import InputError, check_unique

if TYPE_CHECKING:
    import polars

FEATURE_ARRAYS = ("features", "observations", "states")
"""The names under which a log may keep its features [n, q]."""

OTHER_ARRAYS = ("episodes", "weights", "subjects")
"""Arrays with one value a row beside features and actions."""

Columns = list[tuple[str, np.ndarray]]
Arrays = dict[str, np.ndarray]


def read_npz(path: Path) -> Stored:
    """The table in an archive: as written here, or `features` and `actions`, or one array a column."""
    arrays = read_archive(path)
    header = arrays.pop(KEY, None)
    if header is not None:
        return _as_written(arrays, Roles.from_json(str(header)))
    chosen = next((name for name in FEATURE_ARRAYS if name in arrays and arrays[name].ndim == 2), None)
    if chosen is None or "actions" not in arrays:
        return _frame([(name, array) for name, array in arrays.items() if array.ndim == 1]), None
    return _by_role(arrays, arrays.pop(chosen), arrays.pop("actions"))


def write_npz(demonstrations: Demonstrations, roles: Roles, file: BinaryIO) -> None:
    """The arrays as they are, and the roles as text."""
    arrays = {"features": demonstrations.features, "actions": demonstrations.actions}
    arrays |= {word: getattr(demonstrations, word) for word, name in roles.beside.items() if name is not None}
    arrays |= {f"recorded.{name}": values for name, values in demonstrations.recorded.items()}
    np.savez(file, **arrays, **{KEY: np.array(roles.to_json())})  # type: ignore[arg-type]


def _by_role(arrays: Arrays, features: np.ndarray, actions: np.ndarray) -> Stored:
    """Features and actions beside the other arrays with a value a row, which the caller may name."""
    k = 1 if actions.ndim < 2 else actions.shape[-1]
    check_limit("MAX_COLUMNS", features.shape[1] + k, "the columns of a table")
    said = arrays.pop("names", np.empty(0, dtype=str))
    names = [str(name) for name in said.ravel()] or [f"x{j}" for j in range(features.shape[1])]
    action = ["actions"] if k == 1 else [f"actions_{a}" for a in range(k)]
    shape = (len(actions),)
    others = [(name, a) for name, a in arrays.items() if a.shape == shape or name in OTHER_ARRAYS]
    frame = _frame([*_split(features, names), *_split(actions, action), *others])
    episode, weight, subject = (name if name in arrays else None for name in OTHER_ARRAYS)
    return frame, Roles(tuple(action), tuple(names), episode, weight, subject=subject)


def _as_written(arrays: Arrays, roles: Roles) -> Stored:
    others = roles.beside
    kept = {f"recorded.{name}": "" for name in roles.recorded}
    for name, wanted in ({"features": "", "actions": ""} | others | kept).items():
        if wanted is not None and name not in arrays:
            raise InputError(f"its header promises the array '{name}', found none: write the file again.")
    columns = _split(arrays["features"], list(roles.features))
    actions = arrays["actions"]
    if roles.discrete:
        names = np.array(roles.action_names, dtype=object)
        if actions.dtype.kind != "i" or not ((actions >= 0) & (actions < len(names))).all():
            raise InputError(f"its actions must be codes from 0 to {len(names) - 1}, found others: write it again.")
        actions = names[actions]
    columns += _split(actions, list(roles.action))
    columns += [(wanted, arrays[name]) for name, wanted in others.items() if wanted is not None]
    columns += [(name, arrays[f"recorded.{name}"]) for name in roles.recorded]
    return _frame(columns), roles


def _split(array: np.ndarray, names: list[str]) -> Columns:
    columns = array[:, None] if array.ndim == 1 else array
    if columns.ndim != 2 or columns.shape[1] != len(names):
        shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        raise InputError(f"expected an array with the columns {shown}, found the shape {array.shape}.")
    return list(zip(names, columns.T, strict=True))


def _frame(columns: Columns) -> "polars.DataFrame":
    import polars

    if not columns:
        raise InputError("expected the arrays 'features' and 'actions', or one array a column, found neither.")
    first, shape = columns[0][0], columns[0][1].shape
    check_limit("MAX_COLUMNS", len(columns), "the columns of a table")
    for name, array in columns:
        if array.shape != shape:
            raise InputError(
                f"arrays must have the same length, found {shape} for '{first}', {array.shape} for '{name}'."
            )
    check_unique(name for name, _ in columns)
    frame = polars.DataFrame([_series(name, array) for name, array in columns])
    frame.columns = [name for name, _ in columns]  # an empty name is a name, which polars replaces
    return frame


def _series(name: str, array: np.ndarray) -> "polars.Series":
    import polars

    if array.dtype.kind in "UO":
        return polars.Series(name, array.tolist(), dtype=polars.String)
    if array.dtype.kind not in "biuf":
        raise InputError(f"array '{name}' must be numbers or text, found the type {array.dtype}.")
    kind = np.float64 if array.dtype.kind == "f" else array.dtype.newbyteorder("=")
    return polars.Series(name, np.ascontiguousarray(array, dtype=kind))
