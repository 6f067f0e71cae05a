"""Observations and actions of any Gymnasium space as named columns: `position[0]`, `arm.angle[1]`, `observation[2]`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from policyspace.errors import InputError

OBSERVATION = "observation"
"""What an observation is called that has no name of its own; the entries of a Dict have theirs."""

ACTION = "action"

SMALLEST_PICTURE = 16
"""Two-dimensional observations whose sides are at least so long are pictures."""


class Column(NamedTuple):
    """One value a row; categories are whole numbers without an order."""

    name: str
    values: np.ndarray
    category: bool = False


def each_array(function: Callable[..., Any], first: Any, *others: Any) -> Any:
    """The same nested dicts and tuples, with `function` of the arrays that stand at the same place in all of them."""
    if hasattr(first, "items"):
        return {key: each_array(function, inside, *(o[key] for o in others)) for key, inside in first.items()}
    if isinstance(first, tuple):
        return tuple(each_array(function, *inside) for inside in zip(first, *others, strict=True))
    return function(first, *others)


def num_rows(values: Any) -> int:
    """The length of the first array inside."""
    while hasattr(values, "items") or isinstance(values, tuple):
        inside = list(values.values() if isinstance(values, Mapping) else values)
        if not inside:
            raise InputError("an observation or action needs at least one entry, found an empty one: leave it out.")
        values = inside[0]
    return len(values)


def flatten(name: str, values: Any, space: Any = None, frames: int = 1) -> list[Column]:
    """The columns of arrays [n, …] inside nested dicts and tuples; `space`, if known, says which are categories.

    Of arrays that hold several `frames`, the oldest first, the names say which: `speed@t-1`, `speed@t`.
    """
    if isinstance(values, Mapping):
        inner = {key: key if name == OBSERVATION else f"{name}.{key}" for key in values}
        return [
            column
            for key, inside in values.items()
            for column in flatten(str(inner[key]), inside, None if space is None else space[key], frames)
        ]
    if isinstance(values, tuple):
        return [
            column
            for i, inside in enumerate(values)
            for column in flatten(f"{name}[{i}]", inside, None if space is None else space[i], frames)
        ]
    return _of_array(name, values, _kind(name, space), frames)


def in_frames(names: Sequence[str], frames: int) -> list[str]:
    """The names of one frame for each of several, the oldest first."""
    if frames == 1:
        return list(names)
    ages = [f"t-{age}" if age else "t" for age in reversed(range(frames))]
    return [f"{name}@{age}" for age in ages for name in names]


def _of_array(name: str, values: Any, kind: str, frames: int) -> list[Column]:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"'{name}' must be rows of the same shape, found different ones: log fixed shapes.") from error
    if array.dtype.kind not in "biuf":
        raise InputError(f"'{name}' must be numbers, found the type {array.dtype}: log numbers, or leave it out.")
    if array.ndim == 0:
        raise InputError(f"'{name}' must have one row a step, found a single number: check it.")
    shape = array.shape[1:]
    if len(shape) > 2 or (len(shape) == 2 and (array.dtype == np.uint8 or min(shape) >= SMALLEST_PICTURE)):
        size = "×".join(str(side) for side in shape)
        raise InputError(
            f"'{name}' holds images ({size}), whose pixels have no meaning one by one: log what they show as numbers "
            "(positions, speeds, a small embedding), and leave the images out."
        )
    flat = array.reshape(len(array), -1)
    if kind or array.dtype.kind == "b":
        flat = flat.astype(np.float64 if kind == "amount" else np.int64)
    stacked = frames > 1 and flat.shape[1] % frames == 0
    one = (flat.shape[1] // frames,) if stacked else shape
    single = int(np.prod(one)) == 1
    names = [name if single else f"{name}[{','.join(map(str, place))}]" for place in np.ndindex(one)]
    names = in_frames(names, frames if stacked else 1)
    return [Column(n, column, kind == "category") for n, column in zip(names, flat.T, strict=True)]


def _kind(name: str, space: Any) -> str:
    """Category, truth or amount, by the space of the values; nothing where the space is not known."""
    if space is None:
        return ""
    from gymnasium import spaces  # whoever has a space has imported it

    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        return "category"
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return "amount" if isinstance(space, spaces.Box) else "truth"
    raise InputError(
        f"'{name}' is of the space {type(space).__name__}, which has no fixed numbers: use a wrapper that makes it a Box, "
        "Discrete, MultiDiscrete or MultiBinary space, or a Dict or Tuple of these."
    )
