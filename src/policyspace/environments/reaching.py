"""How a configuration reaches a Gymnasium environment: the ways in, which of them are open, and an environment at ω."""

import inspect
import sys
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any, TypeGuard

import gymnasium
import numpy as np

from policyspace.environments.checked_environment import CORRECT, CheckedEnvironment, close, place
from policyspace.environments.makers import Make
from policyspace.environments.own_code import Blamed
from policyspace.errors import InputError
from policyspace.worlds.configurable import CannotBePlayed

WAYS = {
    "keyword": "a keyword of its constructor",
    "attribute": "an attribute",
    "options": "reset(options=…)",
    "make": "your function",
}
"""By a keyword of the constructor, an attribute of the bare environment, reset(options=…), or make(configuration)."""

_assigning = Lock()


class ResetWith(gymnasium.Wrapper):  # type: ignore[misc]
    """An environment whose every reset is given some options, beside those of the caller."""

    def __init__(self, env: Any, options: dict[str, Any]) -> None:
        super().__init__(env)
        self.options = options

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        """Start an episode."""
        return self.env.reset(seed=seed, options=self.options | (options or {}))


def made(make: Make, ways: Mapping[str, str], configuration: Mapping[str, Any], to_do: str = CORRECT) -> Any:
    """An environment at ω; `to_do` is what is said if there is none.

    While it is made, whatever its constructor assigns to a configured attribute is replaced by ω's value, so that
    attributes computed from it (a CartPole's `polemass_length` from its `length`) follow.
    """
    values = {name: float(np.asarray(value)) for name, value in configuration.items()}
    by = {way: {name: v for name, v in values.items() if ways[name] == way} for way in WAYS}
    arguments = ((values,), {}) if by["make"] else ((), by["keyword"])

    def new() -> CheckedEnvironment:
        with Blamed(f"the environment cannot be made {place(values)}", to_do, CannotBePlayed):
            env = make(*arguments[0], **arguments[1])
        return CheckedEnvironment(env, values, to_do)

    if not by["attribute"]:
        env = new().env
    else:
        bare = new().env
        close(bare)
        with _assigned(type(bare.unwrapped), by["attribute"]):
            env = new().env
        with Blamed(f"the environment's attributes cannot be set {place(values)}", to_do, CannotBePlayed):
            for name, value in by["attribute"].items():
                setattr(env.unwrapped, name, value)  # one that the class has, and no constructor assigns
    return ResetWith(env, by["options"]) if by["options"] else env


def takes_configuration(make: Make, parameters: Container[str]) -> bool:
    """Whether a function wants the whole configuration: it needs one argument, which is no parameter's name.

    One that needs parameters alone takes them by keyword; what else it needs nobody could give, and is refused.
    """
    needed = needed_by(make)
    others = [
        name for name, kind in needed.items() if name not in parameters or kind == inspect.Parameter.POSITIONAL_ONLY
    ]
    if not others:
        return False
    if len(needed) == 1 and needed[others[0]] != inspect.Parameter.KEYWORD_ONLY and not is_registered(make):
        return True
    raise InputError(
        "a function that makes an environment needs arguments that are parameters, or one that is none, the whole "
        f"configuration; found that it needs {', '.join(needed)}, of which {' and '.join(others)} {_is(others)}: "
        "give such arguments defaults, or name them as parameters."
    )


def is_registered(make: Make) -> bool:
    """Whether Gymnasium makes it, by an id."""
    return hasattr(make, "entry_point")


def complete(make: Make, values: Mapping[str, float]) -> Make:
    """The same, with these values for the parameters that it needs and is not given, so that each can be tried alone."""
    needed = {name: values[name] for name in needed_by(make) if name in values}
    return partial(make, **needed) if needed else make


def needed_by(make: Make) -> dict[str, Any]:
    """The arguments that must be given, and of which kind each is; a Gymnasium id has some that it gives itself."""
    known = getattr(make, "keywords", {})
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {
        name: p.kind
        for name, p in _arguments(make).items()
        if p.default is p.empty and p.kind not in several and name not in known
    }


def takes_keyword(make: Make, name: str, perhaps: bool) -> bool:
    """Whether a function, or the class behind an id, has this keyword; `perhaps`, that it takes any."""
    found = _arguments(make)
    return name in found or (perhaps and any(p.kind == inspect.Parameter.VAR_KEYWORD for p in found.values()))


def usual(make: Make) -> Any:
    """The environment as it is made when nothing is set."""
    to_do = "correct the function, or give one make(configuration)"
    with Blamed("an environment must be made before its parameters are set, found an error", to_do):
        env = make()
    return CheckedEnvironment(env, {}, to_do).env


def own_keyword(make: Make, name: str) -> Any:
    """What an environment is made with if nothing is said: what its id gives, else the default of the argument."""
    inner: Any = make.func if isinstance(make, partial) else make
    if is_registered(inner) and name in inner.keywords:
        return inner.keywords[name]
    parameter = _arguments(make).get(name)
    return None if parameter is None or parameter.default is parameter.empty else parameter.default


def followers(make: Make, way: str, name: str, bounds: tuple[float, float]) -> tuple[str, ...]:
    """The attributes that change together with one: the environment computes them from it."""
    if way != "attribute":
        return ()
    both = []
    for value in bounds:
        env = made(make, {name: way}, {name: value})
        both.append({key: float(found) for key, found in vars(env.unwrapped).items() if is_number(found)})
        close(env)
    return tuple(key for key in both[0] if key != name and both[0][key] != both[1].get(key))


def is_number(value: Any) -> TypeGuard[float]:
    """Whether this is a finite number, and no truth."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return number and bool(abs(value) <= sys.float_info.max)


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


def _is(others: list[str]) -> str:
    return "is no parameter" if len(others) == 1 else "are no parameters"
