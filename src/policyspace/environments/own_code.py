"""Code of a user's own, named on a command line as `module:name`; never code that a file names."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from policyspace.errors import InputError, reason_of


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
    try:
        return import_module(module)
    except Exception as error:  # whatever a user's module does
        raise InputError(
            f"{what} '{module}' cannot be imported ({reason_of(error)}): run where its module is, or install it."
        ) from error
