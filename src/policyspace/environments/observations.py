"""What an observation of an environment is made of: numbers and categories, and the features that they are."""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple, flatten

from policyspace.data.columns import MAX_LEVELS
from policyspace.data.connectors.flattening import OBSERVATION, each_array
from policyspace.data.connectors.flattening import flatten as columns_of
from policyspace.errors import InputError

LEVEL = re.compile(r"(.+)=(-?\d+)")
"""What a level of a category is called, as in `watch` and `identify`: observation=3."""


def own_names(space: Any) -> list[str]:
    """What the numbers and categories of an observation are called where nobody names them, as in `watch`."""
    if all(levels is not None and len(levels) == 1 for levels in _levels(space)):
        raise InputError(
            f"an observation must have something that can vary, found {space}: nothing can be tested in it."
        )
    rows = each_array(lambda array: np.array(array)[None], space.sample())
    return [column.name for column in columns_of(OBSERVATION, rows, space)]


def levels_of(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The features that are levels, by the category that they are of: only names of levels end so."""
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        if level := LEVEL.fullmatch(name):
            found[level[1]] = (*found.get(level[1], ()), name)
    return found


def feature_names(space: Any, flat: np.ndarray, found: Sequence[str]) -> tuple[str, ...]:
    """One a number; of a category one a level, but for the level at the start (`flat`), which surely occurs."""
    kinds, features, place = list(_levels(space)), list[str](), 0
    if len(found) != len(kinds) or len(set(found)) != len(kinds):
        what = "numbers" if not any(kinds) else "numbers and categories"
        raise InputError(f"an observation has {len(kinds)} {what}, found the names {', '.join(found)}: name each once.")
    for name, levels in zip(found, kinds, strict=True):
        if LEVEL.fullmatch(name):
            raise InputError(
                f"names such as '{name}' are those of the levels of a category, found one as a name: rename it."
            )
        if levels is None:
            features.append(name)
            place += 1
            continue
        _check_levels(name, len(levels))
        start = levels[int(np.argmax(flat[place : place + len(levels)]))]
        features += [f"{name}={level}" for level in levels if level != start]
        place += len(levels)
    return tuple(features)


def numbers_of(space: Any, observation: Any) -> np.ndarray:
    """The numbers of an observation [n], copied: as many as its space has, and finite."""
    _check_fits(space, observation)
    row = np.asarray(flatten(space, observation), dtype=np.float64)
    if not np.isfinite(row).all():
        worst = int(np.argmin(np.isfinite(row)))
        raise InputError(f"observations must be finite, found {row[worst]} as number {worst}")
    return row


def _check_fits(space: Any, found: Any) -> None:
    """Gymnasium flattens what does not fit its space, too: it drops numbers, and takes other levels for the last ones."""
    if isinstance(space, Box | MultiBinary):
        _check_size(space, found)
    elif isinstance(space, Dict):
        if set(found) != set(space.spaces):
            raise InputError(
                f"an observation has {', '.join(map(str, space.spaces))}, found {', '.join(map(str, found))}"
            )
        for name, inside in space.spaces.items():
            _check_fits(inside, found[name])
    elif isinstance(space, Tuple):
        for inside, part in zip(space.spaces, found, strict=True):
            _check_fits(inside, part)
    else:
        _check_size(space, found)
        above = np.asarray(found) - space.start
        if (above < 0).any() or (above >= (space.n if isinstance(space, Discrete) else space.nvec)).any():
            raise InputError(f"a category must be one of {space}, found {found}")


def _check_size(space: Any, found: Any) -> None:
    if np.size(found) != math.prod(space.shape):
        raise InputError(f"{math.prod(space.shape)} numbers are expected in {space}, found {np.size(found)}")


def _levels(space: Any) -> Iterator[range | None]:
    """Of every number and category of an observation, in order: the levels of a category, None of a number."""
    if isinstance(space, Dict | Tuple):
        for inside in space.values() if isinstance(space, Dict) else space.spaces:
            yield from _levels(inside)
    elif isinstance(space, Discrete):
        yield range(int(space.start), int(space.start + space.n))
    elif isinstance(space, MultiDiscrete):
        for first, size in zip(np.ravel(space.start), np.ravel(space.nvec), strict=True):
            yield range(int(first), int(first + size))
    elif isinstance(space, Box | MultiBinary):
        yield from [None] * int(np.prod(space.shape))
    else:
        raise InputError(
            "observations must be numbers or categories (a Box, Discrete, MultiDiscrete or MultiBinary, or a Dict or Tuple "
            f"of these), found {space}: wrap the environment in a function."
        )


def _check_levels(name: str, count: int) -> None:
    if count > MAX_LEVELS:
        raise InputError(
            f"'{name}' is one of {count} categories, found more than the {MAX_LEVELS} that can be compared: use a wrapper "
            "that shows what it is made of, such as a row and a column."
        )


def kept_numbers(space: Any, names: Sequence[str]) -> list[int]:
    """Which numbers of a flattened observation are features: of a category, one level is none."""
    ahead, kept, place = list(names), list[int](), 0
    for levels in _levels(space):
        width = 1 if levels is None else len(levels) - 1
        now, ahead = [LEVEL.fullmatch(name) for name in ahead[:width]], ahead[width:]
        known = [int(level[2]) for level in now if level]
        fits = not known if levels is None else len(known) == width and set(known) <= set(levels)
        if len(now) != width or not fits:
            ahead = ["other features"]
            break
        kept += [place] if levels is None else [place + levels.index(level) for level in known]
        place += 1 if levels is None else len(levels)
    if ahead:
        raise InputError(
            f"observations must have the features {', '.join(names)}, found {space}: use the environment that they are of, "
            "whose observations are the same in all configurations."
        )
    return kept
