"""Libraries that only some sources need: imported when used, and a sentence where one is not installed."""

from importlib import import_module
from typing import Any

from policyspace.errors import InputError


def library(name: str, extra: str, what: str) -> Any:
    """The module `name`, without which `what` cannot be done."""
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(
            f"{what} needs the package '{name}', which is not installed: pip install 'policyspace[{extra}]'."
        ) from error
