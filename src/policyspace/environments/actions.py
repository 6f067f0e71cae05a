"""What an agent does in an environment: one of several actions, or numbers; as its space wants it, and as it is logged."""

import math
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from policyspace.errors import InputError

UNBOUNDED = 1e300
"""In place of infinity, which JSON does not have."""


def names_and_bounds(space: Any) -> tuple[tuple[str, ...], tuple[float, float] | None]:
    """Discrete actions by their numbers, or the components of a continuous one and the widest of their bounds."""
    if isinstance(space, Discrete):
        return tuple(str(int(space.start) + i) for i in range(int(space.n))), None
    if isinstance(space, Box) and len(space.shape) == 1:
        size = space.shape[0]
        names = ("action",) if size == 1 else tuple(f"action[{i}]" for i in range(size))
        return names, (max(float(space.low.min()), -UNBOUNDED), min(float(space.high.max()), UNBOUNDED))
    raise InputError(
        f"actions must be Discrete, or a Box of one row, found {space}: wrap the environment in a function."
    )


def taken(space: Any, action: Any, at: str) -> tuple[Any, Any]:
    """An action as the environment takes it, and as it is logged: a code from 0, or numbers that are never codes.

    What an agent returns may be of another type or shape, so long as it says the same.
    """
    found = _numbers(action)
    if found is None or found.size != math.prod(space.shape) or not np.isfinite(found).all():
        raise _refused(space, action, at)
    if isinstance(space, Discrete):
        code = found.item() - int(space.start)
        if code not in range(int(space.n)):
            raise _refused(space, action, at)
        return int(code + space.start), int(code)
    found = found.reshape(space.shape)
    if space.dtype.kind in "iu" and (found != np.rint(found)).any():
        raise _refused(space, action, at)
    if found.dtype.kind != "f" or space.dtype.kind in "iu":
        found = found.astype(space.dtype)
    return found, found.astype(found.dtype if found.dtype.kind == "f" else np.float64)  # a copy


def _numbers(action: Any) -> np.ndarray | None:
    """An array of numbers, if it is one."""
    try:
        found = np.asarray(action)
    except Exception:  # whatever an agent's own type does
        return None
    return found if found.dtype.kind in "iufb" else None


def _refused(space: Any, action: Any, at: str) -> InputError:
    if isinstance(space, Discrete):
        wanted = f"one of the actions {int(space.start)} to {int(space.start + space.n) - 1}"
    else:
        whole, size = "whole " if space.dtype.kind in "iu" else "", math.prod(space.shape)
        wanted = f"{size} finite {whole}number{'s' if size > 1 else ''}"
    return InputError(f"the agent must choose {wanted}, found {action!r:.60} {at}: correct the agent.")
