"""What makes an environment: an id that Gymnasium knows, or a function of the user's."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import gymnasium
from gymnasium.envs.registration import load_env_creator

from policyspace.environments.own_code import NotInstalled, imported_module
from policyspace.errors import InputError, nearest, reason_of

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
