"""How a configuration reaches a Gymnasium environment: found out, verified by playing, and written down."""

import inspect
import math
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any, TypeGuard

import gymnasium
import numpy as np
from gymnasium.spaces import flatten

from policyspace.errors import InputError, nearest, reason_of

Make = Callable[..., Any]
"""Makes an environment: from keywords or, where a parameter travels by "make", from the whole configuration."""

WAYS = ("keyword", "attribute", "options", "make")
"""By a keyword of the constructor, an attribute of the bare environment, reset(options=…), or make(configuration)."""

PROBE_SEEDS = (0, 1, 2)
PROBE_STEPS = 60
_assigning = Lock()


class ResetWith(gymnasium.Wrapper):  # type: ignore[misc]
    """An environment whose every reset is given some options, beside those of the caller."""

    def __init__(self, env: Any, options: dict[str, Any]) -> None:
        super().__init__(env)
        self.options = options

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        """Start an episode."""
        return self.env.reset(seed=seed, options=self.options | (options or {}))


def made(make: Make, ways: Mapping[str, str], configuration: Mapping[str, Any]) -> Any:
    """An environment at ω.

    While it is made, whatever its constructor assigns to a configured attribute is replaced by ω's value, so that
    attributes computed from it (a CartPole's `polemass_length` from its `length`) follow.
    """
    values = {name: float(np.asarray(value)) for name, value in configuration.items()}
    by = {way: {name: v for name, v in values.items() if ways[name] == way} for way in WAYS}
    if by["make"]:
        env = make(values)
    elif by["attribute"]:
        bare = make(**by["keyword"])
        kind = type(bare.unwrapped)
        bare.close()
        with _assigned(kind, by["attribute"]):
            env = make(**by["keyword"])
        for name, value in by["attribute"].items():
            setattr(env.unwrapped, name, value)  # one that the class has, and no constructor assigns
    else:
        env = make(**by["keyword"])
    return ResetWith(env, by["options"]) if by["options"] else env


def found_ways(
    make: Make, bounds: Mapping[str, tuple[float, float]], said: Mapping[str, str], own: Mapping[str, float]
) -> dict[str, str]:
    """The way of every parameter: as said, or the first that changes what happens; every one is tried by playing."""
    for name, way in said.items():
        if name not in bounds:
            raise InputError(f"there is no parameter '{name}' to reach: {nearest(name, bounds)}")
        if way not in WAYS:
            raise InputError(f"there is no way '{way}' to reach an environment: {nearest(way, WAYS)}")
    if "make" in said.values() or takes_configuration(make, bounds):
        ways = dict.fromkeys(bounds, "make")
        for name in bounds:
            _must_change(make, ways, own, name, bounds[name], [])
        return ways
    needed = _needed(make)
    for name in needed:
        if said.get(name, "keyword") != "keyword":
            raise InputError(
                f"the function needs its argument '{name}', so that it must come by keyword, found '{said[name]}': leave "
                "that out, or give the argument a default."
            )
    make, ways = complete(make, own), {}
    for name in bounds:
        tried = [said[name]] if name in said else ["keyword"] if name in needed else _possible(make, name)
        for way in tried:
            if _changes(make, {name: way}, {}, name, bounds[name]):
                ways[name] = way
                break
        else:
            _must_change(make, {name: tried[-1]}, {}, name, bounds[name], tried)
            ways[name] = tried[-1]
    return ways


def takes_configuration(make: Make, parameters: Container[str]) -> bool:
    """Whether a function wants the whole configuration: it needs one argument, which is no parameter's name.

    One that needs parameters alone takes them by keyword; what else it needs nobody could give, and is refused.
    """
    needed = _needed(make)
    others = [
        name for name, kind in needed.items() if name not in parameters or kind == inspect.Parameter.POSITIONAL_ONLY
    ]
    if not others:
        return False
    if len(needed) == 1 and needed[others[0]] != inspect.Parameter.KEYWORD_ONLY and not hasattr(make, "entry_point"):
        return True
    raise InputError(
        "a function that makes an environment needs arguments that are parameters, or one that is none, the whole "
        f"configuration; found that it needs {', '.join(needed)}, of which {' and '.join(others)} {_is(others)}: "
        "give such arguments defaults, or name them as parameters."
    )


def complete(make: Make, values: Mapping[str, float]) -> Make:
    """The same, with these values for the parameters that it needs and is not given, so that each can be tried alone."""
    needed = {name: values[name] for name in _needed(make) if name in values}
    return partial(make, **needed) if needed else make


def own_value(make: Make, way: str, name: str) -> float | None:
    """What the environment itself has for a parameter, where that can be read."""
    if way == "keyword":
        parameter = _arguments(make).get(name)
        value = None if parameter is None else parameter.default
    elif way == "attribute":
        env = _usual(make)
        value = getattr(env.unwrapped, name)
        env.close()
    else:
        value = None
    return float(value) if _is_number(value) else None


def followers(make: Make, way: str, name: str, bounds: tuple[float, float]) -> tuple[str, ...]:
    """The attributes that change together with one: the environment computes them from it."""
    if way != "attribute":
        return ()
    both = []
    for value in bounds:
        env = made(make, {name: way}, {name: value})
        both.append({key: float(found) for key, found in vars(env.unwrapped).items() if _is_number(found)})
        env.close()
    return tuple(key for key in both[0] if key != name and both[0][key] != both[1].get(key))


def _possible(make: Make, name: str) -> list[str]:
    """The ways that might be open to a name, the most telling first; options cannot be looked up, only tried."""
    ways = ["keyword"] if name in _arguments(make) else []
    env = _usual(make)
    if _is_number(getattr(env.unwrapped, name, None)):
        ways.append("attribute")
    env.close()
    return [*ways, "options"]


def _usual(make: Make) -> Any:
    """The environment as it is made when nothing is set."""
    try:
        return make()
    except Exception as error:  # whatever a user's function does
        raise InputError(
            f"an environment must be made before its parameters are set, found an error ({reason_of(error)}): correct the "
            "function, or give one make(configuration)."
        ) from error


def _changes(make: Make, ways: Mapping[str, str], rest: Mapping[str, float], name: str, bounds: Any) -> bool:
    low, high = (_story(make, ways, {**rest, name: value}) for value in bounds)
    return low != high


def _must_change(
    make: Make, ways: Mapping[str, str], rest: Mapping[str, float], name: str, bounds: Any, tried: list[str]
) -> None:
    """Refuse a parameter that changes nothing, and an environment in which that cannot be seen."""
    if _story(make, ways, {**rest, name: bounds[0]}) != _story(make, ways, {**rest, name: bounds[0]}):
        raise InputError(
            "the environment plays differently under one seed and one configuration, so it cannot be seen whether "
            f"'{name}' reaches it: draw its random numbers from reset(seed=…)."
        )
    if not _changes(make, ways, rest, name, bounds):
        how = f" (tried: {', '.join(tried)})" if tried else ""
        raise InputError(
            f"the parameter '{name}' changes nothing between {bounds[0]:g} and {bounds[1]:g}{how}: check its name, say "
            "how it reaches the environment, or give a function make(configuration)."
        )


def _story(make: Make, ways: Mapping[str, str], configuration: Mapping[str, float]) -> list[Any]:
    """What happens at ω under fixed seeds and actions, every number of it; or the error that it ends with."""
    try:
        env = made(make, ways, configuration)
        env.action_space.seed(0)
        told: list[Any] = []
        for seed in PROBE_SEEDS:
            observation, _ = env.reset(seed=seed)
            told.append(flatten(env.observation_space, observation).tolist())
            for _ in range(PROBE_STEPS):
                observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
                told.append((flatten(env.observation_space, observation).tolist(), float(reward), bool(terminated)))
                if terminated or truncated:
                    break
        env.close()
    except Exception as error:  # whatever a user's environment does
        at = ", ".join(f"{name}={value:g}" for name, value in configuration.items())
        raise InputError(
            f"the environment cannot be played at {at} ({reason_of(error)}): choose other bounds."
        ) from error
    return told


@contextmanager
def _assigned(kind: type, values: Mapping[str, float]) -> Iterator[None]:
    """While it lasts, environments of a class assign ω's values to these attributes, whatever they mean to assign."""
    inherited: Callable[..., None] = kind.__setattr__
    own = "__setattr__" in vars(kind)

    def replaced(self: Any, name: str, value: Any) -> None:
        inherited(self, name, values.get(name, value))

    with _assigning:
        kind.__setattr__ = replaced  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            if own:
                kind.__setattr__ = inherited  # type: ignore[method-assign]
            else:
                del kind.__setattr__


def _arguments(make: Make) -> Mapping[str, inspect.Parameter]:
    """The arguments of a function, or of the class behind a Gymnasium id."""
    behind = getattr(make.func if isinstance(make, partial) else make, "entry_point", make)
    try:
        return inspect.signature(behind).parameters
    except (TypeError, ValueError):
        return {}


def _needed(make: Make) -> dict[str, Any]:
    """The arguments that must be given, and of which kind each is; a Gymnasium id has some that it gives itself."""
    known = getattr(make, "keywords", {})
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {
        name: p.kind
        for name, p in _arguments(make).items()
        if p.default is p.empty and p.kind not in several and name not in known
    }


def _is(others: list[str]) -> str:
    return "is no parameter" if len(others) == 1 else "are no parameters"


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(value)
