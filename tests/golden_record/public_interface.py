"""Public names with their parameters and defaults, and the commands with their options."""

import inspect
import re
from types import FunctionType
from typing import Any, get_args
from unittest import mock

import policyspace

from .command_line import SCREEN, said

DEFAULT = re.compile(r"\[default: (.*)\] *│")


def interface() -> dict[str, Any]:
    """Everything by its name: of the package, of the selector of scikit-learn, and of the command line."""
    from policyspace.sklearn import PolicySelector

    names = {name: described(getattr(policyspace, name)) for name in sorted(policyspace.__all__)}
    return names | {"sklearn.PolicySelector": described(PolicySelector)} | commands()


def described(value: Any) -> Any:
    """A function by its parameters; a class by those of its constructor and its own public methods, and other members."""
    if not inspect.isclass(value):
        return parameters(value) if callable(value) else type(value).__name__
    own = [one for one in value.__mro__ if one.__module__.startswith("policyspace")]
    members = {
        name: inspect.getattr_static(value, name) for one in own for name in vars(one) if not name.startswith("_")
    }
    methods = {name: parameters(getattr(value, name)) for name, member in sorted(members.items()) if is_method(member)}
    others = {name for name in members if name not in methods}
    fields = {name for one in own for name in vars(one).get("__annotations__", {}) if not name.startswith("_")}
    return {"constructor": parameters(value), "methods": methods, "others": sorted(others | fields)}


def is_method(member: Any) -> bool:
    return isinstance(member, FunctionType | classmethod | staticmethod)


def parameters(function: Any) -> list[str]:
    """In their order, with defaults; after * by name only, and after ** the words of a table. Types are left out."""
    found, after_star = [], False
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.KEYWORD_ONLY and not after_star:
            found, after_star = [*found, "*"], True
        after_star |= one.kind is one.VAR_POSITIONAL
        if one.kind is one.VAR_KEYWORD and (table := get_args(one.annotation)):
            found += [f"**{name}" for name in table[0].__annotations__]
            continue
        star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        found.append(f"{star}{one.name}" + ("" if one.default is one.empty else f"={one.default!r}"))
    return found


def commands(*command: str) -> dict[str, Any]:
    """The options of a command and of those below it, all spellings with the default, as its help says."""
    with mock.patch.dict(SCREEN, {"COLUMNS": "500"}):
        code, words = said(*command, "--help")
    assert code == 0, words
    options, below, panel = [], dict[str, Any](), ""
    for line in words.splitlines():
        panel = line.split()[1] if line.startswith("╭") else panel
        if not line.startswith("│"):
            continue
        first, *others = re.split(r"\s{2,}", line.strip("│* "))
        if panel == "Commands" and line[2] != " ":
            below |= commands(*command, first)
        elif panel == "Arguments" or first.startswith("-"):
            spelt = [first, *(one for one in others if re.fullmatch(r"--?[a-z-]+", one) and one != "-h")]
            default = DEFAULT.search(line)
            options.append(",".join(spelt) + (f"={default[1]}" if default else ""))
    return {" ".join(["policyspace", *command]): options} | below
