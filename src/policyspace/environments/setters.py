"""How a parameter of an environment is set: by a setter, an attribute, or a new environment."""

import inspect
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Lock
from typing import Any, NamedTuple, TypeGuard, final

import gymnasium
import numpy as np
from gymnasium.envs.registration import load_env_creator

from policyspace.environments.checks import (
    CORRECT,
    Blamed,
    CheckedEnvironment,
    Moment,
    NotInstalled,
    close,
    imported_module,
    place,
)
from policyspace.errors import InputError, nearest, reason_of
from policyspace.worlds.base import CannotBePlayed

# -- What makes an environment: an id that Gymnasium knows, or a function of the user's.

Make = Callable[..., Any]
"""Makes an environment: from keywords or, where a parameter travels by "make", from the whole configuration."""

Environment = str | Make
"""A registered Gymnasium id, `module:function`, a function () → env, or a function make(configuration) → env."""


@final
@dataclass(frozen=True)
class RegisteredEnvironment:
    """Makes environments of an id that Gymnasium knows."""

    id: str

    @cached_property
    def entry_point(self) -> Callable[..., Any]:
        """The class or function behind the id."""
        found = gymnasium.registry[self.id].entry_point
        with _installed(self.id):
            creator: Callable[..., Any] = found if callable(found) else load_env_creator(found)
        return creator

    @property
    def keywords(self) -> Mapping[str, Any]:
        """What the id gives to its class."""
        found: Mapping[str, Any] = gymnasium.registry[self.id].kwargs
        return found

    def __call__(self, **keywords: Any) -> Any:
        """An environment."""
        with _installed(self.id):
            return gymnasium.make(self.id, disable_env_checker=True, **keywords)


def environment(env: Environment) -> tuple[str, Make]:
    """The name under which an environment is stored, and what makes it."""
    if not isinstance(env, str):
        if not callable(env):
            raise InputError(f"an environment is a Gymnasium id or a function that makes one, found {env!r:.60}.")
        return f"{env.__module__}:{getattr(env, '__qualname__', type(env).__qualname__)}", env
    if ":" not in env:
        if env not in gymnasium.registry:
            raise _unknown(env)
        return env, RegisteredEnvironment(env)
    module, _, name = env.partition(":")
    inside = vars(imported_module(module, "the environment"))
    if callable(inside.get(name)):
        return env, inside[name]
    if name in gymnasium.registry:
        return env, RegisteredEnvironment(name)
    raise InputError(f"the module '{module}' has no function and registers no environment '{name}': check the name.")


@contextmanager
def _installed(name: str) -> Iterator[None]:
    """What an id needs, or a sentence about it; other errors are those of the environment."""
    try:
        yield
    except (gymnasium.error.Error, ImportError) as error:
        if name not in gymnasium.registry:
            raise _unknown(name) from error
        raise NotInstalled(
            f"the environment '{name}' could not be made ({reason_of(error)}): install what it needs."
        ) from error


def _unknown(name: str) -> InputError:
    known = [known for known in gymnasium.registry if not known.startswith(("phys2d/", "tabular/"))]
    return InputError(f"Gymnasium knows no environment '{name}': {nearest(name, known)}")


# -- How a configuration reaches a Gymnasium environment: the ways in, which of them are open, and an environment at ω.

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

    def __init__(self, env: Any, options: Mapping[str, float]) -> None:
        super().__init__(env)
        self.options = options

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Any, dict]:
        """Start an episode."""
        return self.env.reset(seed=seed, options={**self.options, **(options or {})})


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
    others = [name for name, p in needed.items() if name not in parameters or p.kind == p.POSITIONAL_ONLY]
    if not others:
        return False
    if len(needed) == 1 and needed[others[0]].kind != inspect.Parameter.KEYWORD_ONLY and not is_registered(make):
        return True
    are = "is no parameter" if len(others) == 1 else "are no parameters"
    raise InputError(
        "a function that makes an environment needs arguments that are parameters, or one that is none, the whole "
        f"configuration; found that it needs {', '.join(needed)}, of which {' and '.join(others)} {are}: "
        "give such arguments defaults, or name them as parameters."
    )


def is_registered(make: Make) -> bool:
    """Whether Gymnasium makes it, by an id."""
    return hasattr(make, "entry_point")


def complete(make: Make, values: Mapping[str, float]) -> Make:
    """The same, with these values for the parameters that it needs and is not given, so that each can be tried alone."""
    needed = {name: values[name] for name in needed_by(make) if name in values}
    return partial(make, **needed) if needed else make


def needed_by(make: Make) -> dict[str, inspect.Parameter]:
    """The arguments that must be given; a Gymnasium id has some that it gives itself."""
    known = getattr(make, "keywords", {})
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {
        name: p
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


# -- Which way a parameter reaches an environment: as it is said, or found out, by playing it at both bounds.

PROBES = (180, 3000)
"""Steps that are played at a bound: most parameters show soon, and rare events need many."""

Bounds = Mapping[str, tuple[float, float]]


class Reached(NamedTuple):
    """How a parameter reaches the environment, and whether anything was seen to change."""

    way: str
    seen: bool = True

    @property
    def words(self) -> str:
        """For people."""
        doubt = "" if self.seen else f", as was said, though nothing changed in {PROBES[-1]} random steps"
        return f"reaches the environment by {WAYS[self.way]}{doubt}"


@final
class Probe:
    """An environment that is tried out at the bounds of its parameters; `said` are the ways that the user knows."""

    def __init__(self, make: Make, bounds: Bounds, said: Mapping[str, str]) -> None:
        for name, way in said.items():
            if name not in bounds:
                raise InputError(f"there is no parameter '{name}' to reach: {nearest(name, bounds)}")
            if way not in WAYS:
                raise InputError(f"there is no way '{way}' to reach an environment: {nearest(way, WAYS)}")
        self.make, self.bounds, self.said = make, bounds, said
        self.middle = {name: (low + high) / 2 for name, (low, high) in bounds.items()}
        self.alone = make if self.whole else complete(make, self.middle)

    @cached_property
    def whole(self) -> bool:
        """Whether a function is given the whole configuration: because it is said, or because it needs that."""
        named = "make" in self.said.values()
        if named and is_registered(self.make):
            raise InputError(
                "make(configuration) is a function of yours, found an id of Gymnasium to be reached by 'make': give such a "
                "function as the environment, or leave the way out."
            )
        if not named and not takes_configuration(self.make, self.bounds):
            return False
        for name, way in self.said.items():
            if way != "make":
                raise InputError(
                    f"the function is given the whole configuration, so '{name}' reaches it by 'make', found '{way}': leave "
                    "that out, or give a function whose arguments have defaults."
                )
        return True

    @cached_property
    def example(self) -> Any:
        """One to look at, before anything is played."""
        if self.whole:
            return made(self.make, dict.fromkeys(self.bounds, "make"), self.middle)
        return usual(self.alone)

    @cached_property
    def own(self) -> dict[str, dict[str, object]]:
        """What the environment itself has for each parameter, of any type, by the ways where that can be read."""
        if self.whole:
            return {name: {} for name in self.bounds}
        with Blamed("the attributes of the environment cannot be read", "correct the environment"):
            attributes = {name: getattr(self.example.unwrapped, name, None) for name in self.bounds}
        return {name: {"keyword": own_keyword(self.alone, name), "attribute": attributes[name]} for name in self.bounds}

    def reached(self) -> dict[str, Reached]:
        """Every parameter: as said, or by the first way that changes what happens."""
        if self.whole:
            return {name: self._tried(name, ["make"]) for name in self.bounds}
        needed = needed_by(self.make)
        for name in needed:
            if self.said.get(name, "keyword") != "keyword":
                raise InputError(
                    f"the function needs its argument '{name}', so that it must come by keyword, found "
                    f"'{self.said[name]}': leave that out, or give the argument a default."
                )
        return {name: self._tried(name, ["keyword"] if name in needed else self._open(name)) for name in self.bounds}

    def _open(self, name: str) -> list[str]:
        """The ways that are open to a name, the most telling first; options cannot be looked up, only tried."""
        self._check_no_truth(name)
        ways = ["keyword"] if takes_keyword(self.alone, name, perhaps=name in self.said) else []
        ways += ["attribute"] if is_number(self.own[name]["attribute"]) else []
        if name not in self.said:
            return [*ways, "options"]
        if (way := self.said[name]) in [*ways, "options"]:
            return [way]
        what = "keyword" if way == "keyword" else "attribute that is a number"
        raise InputError(
            f"'{name}' was said to be {WAYS[way]}, found no such {what} in the environment: check the name, or leave "
            "the way out."
        )

    def _check_no_truth(self, name: str) -> None:
        for way, value in self.own[name].items():
            if isinstance(value, bool | np.bool) and self.said.get(name, way) == way:
                low, high = self.bounds[name]
                raise InputError(
                    f"the parameter '{name}' is a boolean in the environment ({value}), found bounds {low:g}:{high:g} of "
                    f"numbers: give a function make(configuration) that sets it, such as configuration['{name}'] > 0.5."
                )

    def _tried(self, name: str, ways: Sequence[str]) -> Reached:
        """The way by which something changes; a way that is said is believed where it surely exists."""
        for steps in PROBES:
            for way in ways:
                if self._changes(name, way, steps):
                    return Reached(way)
        if name in self.said and ways[0] != "options":
            return Reached(ways[0], seen=False)
        low, high = self.bounds[name]
        how = f" (tried: {', '.join(ways)})" if not self.whole else ""
        raise InputError(
            f"the parameter '{name}' changes nothing between {low:g} and {high:g}{how} in {PROBES[-1]} random steps: check "
            "its name, or, if it matters in other places, say how it reaches the environment (by=, --by)."
        )

    def _changes(self, name: str, way: str, steps: int) -> bool:
        low, high = (self._story(name, way, value, steps) for value in self.bounds[name])
        if low == high:
            return False
        if self._story(name, way, self.bounds[name][0], steps) != low:
            raise InputError(
                "the environment plays differently under one seed and one configuration, so it cannot be seen whether "
                f"'{name}' reaches it: draw its random numbers from reset(seed=…)."
            )
        return True

    def _story(self, name: str, way: str, value: float, steps: int) -> list[Any]:
        """What happens at ω under fixed seeds and actions, every number of it in brief; an episode is a third at most."""
        configuration = {**(self.middle if self.whole else {}), name: value}
        to_do = self._to_do(name, way)
        env = made(self.alone, dict.fromkeys(configuration, way), configuration, to_do)
        stage = CheckedEnvironment(env, configuration, to_do)
        env.action_space.seed(0)
        told: list[Any] = []
        done = 0
        while done < steps:
            now, begun = stage.reset(done), done
            told.append(_brief(now))
            while not (now.terminated or now.truncated) and done - begun < steps // 3:
                now, done = stage.step(env.action_space.sample()), done + 1
                told.append(_brief(now))
        close(env)
        return told

    def _to_do(self, name: str, way: str) -> str:
        own = self.own[name].get(way)
        if not is_number(own) or not isinstance(own, int | np.integer):
            return CORRECT
        return (
            f"{CORRECT}; or, if '{name}' must be a whole number there, as {own} is, give a function make(configuration) "
            "that rounds it"
        )


def _brief(now: Moment) -> tuple[int, float, bool]:
    """Every number of a moment, in few."""
    return hash((now.numbers + 0.0).tobytes()), now.reward, now.terminated
