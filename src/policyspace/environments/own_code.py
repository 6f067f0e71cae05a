"""Code of a user's own: named on a command line as `module:name`, never by a file, and blamed in a sentence if it fails."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from policyspace.errors import InputError, reason_of


class NotInstalled(InputError):
    """A library that a user's code needs is missing, which is no fault of that code."""


def imported(spec: str, what: str) -> Any:
    """The object `name` of `module:name`, found from the working folder too."""
    module, colon, name = spec.partition(":")
    if not colon or not name:
        raise InputError(f"{what} is written module:function, found '{spec}': correct it.")
    inside = vars(imported_module(module, what))
    if name not in inside:
        raise InputError(f"{what} '{spec}' cannot be found: the module '{module}' has no '{name}'.")
    return inside[name]


def imported_module(module: str, what: str) -> Any:
    """A module, whose own errors become one sentence."""
    if (here := str(Path.cwd())) not in sys.path:
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
