"""One vocabulary: the words that every call takes, what older words became, and what a misspelt one was meant to be."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, get_args

import numpy as np

from policyspace.errors import InputError, nearest

RENAMED = {
    "names": "features", "action": "actions", "episode": "episodes", "weight": "weights", "subject": "subjects",
    "num_attempts": "attempts", "num_episodes": "episodes", "initial": "configuration", "path": "source",
}  # fmt: skip
"""Words of earlier versions, which still work, and what they are called now."""

P = ParamSpec("P")
R = TypeVar("R")


def one_vocabulary(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, which understands older words and says which word an unknown one was meant to be."""
    signature = inspect.signature(function)
    known = _argument_names(signature)

    @functools.wraps(function)
    def call(*args: P.args, **given: P.kwargs) -> R:
        words: Any = _current(function.__name__, known, list(signature.bind_partial(*args).arguments), dict(given))
        return function(*args, **words)

    return call


def is_names(value: Any) -> bool:
    """Is this one name, or a list of names?"""
    return isinstance(value, str) or (isinstance(value, list | tuple) and all(isinstance(name, str) for name in value))


def names_of(value: Any, what: str) -> tuple[str, ...]:
    """One name or several, each of them text or a number."""
    if isinstance(value, str):
        return (value,)
    try:
        found = tuple(value)
    except TypeError as error:
        raise InputError(f"{what} must be a list of names, found {value!r:.40}.") from error
    if not all(isinstance(name, str | int | float | np.generic) for name in found):
        raise InputError(f"{what} must be a list of names, found {value!r:.60}.")
    return tuple(str(name) for name in found)


def _argument_names(signature: inspect.Signature) -> list[str]:
    """The names of the arguments; `**more: Unpack[Table]` stands for those of the table."""
    found = []
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            found += list(get_args(parameter.annotation)[0].__annotations__)
        elif name != "cls":
            found.append(name)
    return found


def _current(function: str, known: Sequence[str], filled: Sequence[str], given: dict[str, Any]) -> dict[str, Any]:
    """The words as they are called now."""
    first = known[0]
    if first not in (*filled, *given) and not is_names(given.get("features", "")):
        given[first] = given.pop("features")  # the name that the data once had
    for old, new in RENAMED.items():
        if old in given and old not in known and new in known:
            if new in given or new in filled:
                raise InputError(f"{old}= is an older word for {new}=, found both: keep {new}=.")
            given[new] = given.pop(old)
    for name in given:
        if name not in known:
            raise InputError(f"{function} has no argument '{name}': {nearest(name, known)}")
    return given
