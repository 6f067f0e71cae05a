"""What a user says of an environment, checked: parameters with bounds, names, and ways to reach it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from policyspace.environments.reaching import is_number
from policyspace.errors import InputError


def checked_bounds(parameters: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, float]]:
    """The bounds of every parameter."""
    if not isinstance(parameters, Mapping) or not all(isinstance(name, str) for name in parameters):
        raise InputError(
            f"parameters are names with bounds, {{'gravity': (5, 15)}}, found {parameters!r:.60}: write them so."
        )
    if not parameters:
        raise InputError("a world to configure needs a parameter, found none: name one with its bounds, gravity=5:15.")
    return {name: _bounds(name, given) for name, given in parameters.items()}


def checked_names(names: Sequence[str] | None) -> list[str] | None:
    """Names of the numbers and categories of an observation, if there are some."""
    if names is None:
        return None
    listed: list[Any] = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [None]
    if not all(isinstance(name, str) for name in listed):
        raise InputError(f"names are texts, ['east', 'north'], found {names!r:.60}: write them so.")
    return listed


def checked_ways(by: Mapping[str, str] | None) -> Mapping[str, str]:
    """How parameters reach an environment, as far as that is said."""
    if not isinstance(by, Mapping | None):
        raise InputError(f"by= is a way for each name, {{'gravity': 'attribute'}}, found {by!r:.60}: write it so.")
    return by or {}


def _bounds(name: str, given: Sequence[float]) -> tuple[float, float]:
    """The first two of two or three numbers; the third is the default."""
    listed = list(given) if isinstance(given, Sequence | np.ndarray) else []
    if len(listed) not in (2, 3) or not all(map(is_number, listed)) or not listed[0] < listed[1]:
        raise InputError(f"the parameter '{name}' needs bounds low < high, found {given!r:.40}: write (5, 15) or 5:15.")
    return float(listed[0]), float(listed[1])
