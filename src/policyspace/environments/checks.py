"""Errors in users' environments and agents, and the observation spaces that can be read."""

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, final

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple, flatten

from policyspace.data.columns import MAX_LEVELS
from policyspace.data.connectors import OBSERVATION, each_array
from policyspace.data.connectors import flatten as columns_of
from policyspace.errors import InputError, reason_of
from policyspace.worlds.base import CannotBePlayed

# -- Code of a user's own: named on a command line as `module:name`, never by a file, and blamed in a sentence if it fails.


class NotInstalled(InputError):
    """A library that a user's code needs is missing, which is no fault of that code."""


def imported(spec: str, what: str) -> Any:
    """The object `name` of `module:name` or `file.py:name`, found from the working folder too."""
    module, colon, name = spec.partition(":")
    if not colon or not name:
        raise InputError(f"{what} is written module:function, found '{spec}': correct it.")
    inside = vars(imported_module(module, what))
    if name not in inside:
        raise InputError(f"{what} '{spec}' cannot be found: the module '{module}' has no '{name}'.")
    return inside[name]


def imported_module(module: str, what: str) -> Any:
    """A module, or the file of one, whose own errors become one sentence."""
    path = Path(module)
    if path.suffix == ".py":
        module, here = path.stem, str(path.resolve().parent)
    else:
        here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    with Blamed(f"{what} '{module}' cannot be imported", "run where its module is, or install it"):
        return import_module(module)


class Blamed:
    """Whatever a user's own code raises in here becomes one sentence, even if it ends the program; Ctrl-C goes on."""

    def __init__(self, failed: str, to_do: str, kind: type[InputError] = InputError) -> None:
        self._failed, self._to_do, self._kind = failed, to_do, kind

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception | SystemExit) or isinstance(error, NotInstalled):
            return
        name, reason = type(error).__name__, reason_of(error)
        told = reason if isinstance(error, InputError) or reason == name else f"{name}: {reason}"
        raise self._kind(f"{self._failed} ({told}): {self._to_do}.") from error


# -- What an observation of an environment is made of: numbers and categories, and the features that they are.

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
        if len(levels) > MAX_LEVELS:
            raise InputError(
                f"'{name}' is one of {len(levels)} categories, found more than the {MAX_LEVELS} that can be compared: use a "
                "wrapper that shows what it is made of, such as a row and a column."
            )
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


# -- An environment that somebody else wrote, at one configuration: what it does is checked, and what is wrong is said.

CORRECT = "correct the environment, or choose other bounds"
"""What to do about one that fails."""


class Moment(NamedTuple):
    """What is seen, as the agent sees it and as numbers [n] of their own; then what the step before was worth."""

    observation: Any
    numbers: np.ndarray
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False


@final
class CheckedEnvironment:
    """Plays an environment at ω; whatever fails, or does not fit its spaces, is one sentence with ω in it."""

    def __init__(self, env: Any, configuration: Mapping[str, Any], to_do: str = CORRECT) -> None:
        self.at, self._to_do = place(configuration), to_do
        if not isinstance(env, gymnasium.Env):
            found = f"the class {env.__name__}" if isinstance(env, type) else type(env).__name__
            raise CannotBePlayed(f"a function must return one Gymnasium environment, found {found} {self.at}: {to_do}.")
        for name in ("observation_space", "action_space"):
            if not isinstance(getattr(env, name, None), gymnasium.Space):
                raise CannotBePlayed(f"an environment must have an {name}, found none {self.at}: {to_do}.")
        self.env = env
        whiles = ("in reset", "in step", "in what step returns", "in what it shows")
        self._while = {at: Blamed(f"the environment failed {self.at}, {at}", to_do, CannotBePlayed) for at in whiles}

    def reset(self, seed: int | None) -> Moment:
        """Begin an episode."""
        with self._while["in reset"]:
            found = self.env.reset(seed=seed)
        if not (isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], Mapping)):
            raise self._wrong("reset must return an observation and a dict", found)
        return Moment(found[0], self._numbers(found[0]))

    def step(self, action: Any) -> Moment:
        """What follows an action."""
        with self._while["in step"]:
            found = self.env.step(action)
        if not (isinstance(found, tuple) and len(found) == 5):
            raise self._wrong("step must return an observation, a reward, two booleans about the end and a dict", found)
        observation, reward, terminated, truncated, _ = found
        with self._while["in what step returns"]:
            worth, ends = float(reward), (bool(terminated), bool(truncated))
        if not math.isfinite(worth):
            raise CannotBePlayed(f"rewards must be finite, found {worth} {self.at}: {self._to_do}.")
        return Moment(observation, self._numbers(observation), worth, *ends)

    def _numbers(self, observation: Any) -> np.ndarray:
        with self._while["in what it shows"]:
            return numbers_of(self.env.observation_space, observation)

    def _wrong(self, expected: str, found: Any) -> CannotBePlayed:
        shown = f"{len(found)} things" if isinstance(found, tuple) else f"a {type(found).__name__}"
        return CannotBePlayed(f"{expected}, found {shown} {self.at}: {self._to_do}.")


def close(env: Any) -> None:
    """Let an environment go."""
    with Blamed("the environment failed in close", "correct the environment", CannotBePlayed):
        env.close()


def place(configuration: Mapping[str, Any]) -> str:
    """ω in words."""
    listed = ", ".join(f"{name}={float(np.asarray(value)):g}" for name, value in configuration.items())
    return f"at {listed}" if listed else "where nothing is set"
