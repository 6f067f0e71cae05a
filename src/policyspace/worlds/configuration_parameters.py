"""The entries of a configuration ω: their names, shapes and bounds, and how a user writes them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from policyspace.data.input_files import parse_json, read_toml
from policyspace.errors import InputError, nearest


@dataclass(frozen=True)
class ConfigurationParameter:
    """One named entry of ω, a number or an array, whose elements lie between `low` and `high`."""

    name: str
    shape: tuple[int, ...]
    low: float
    high: float
    default: float | tuple[Any, ...]
    description: str

    def default_array(self) -> np.ndarray:
        """The default as an array of the parameter's shape; one number fills it."""
        return np.broadcast_to(np.asarray(self.default, dtype=np.float64), self.shape).copy()


def checked_configuration(
    parameters: Sequence[ConfigurationParameter], given: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """ω complete and valid: what is not given keeps its default; `name[i]` (or `name[i,j]`) sets one element."""
    known = {parameter.name: parameter for parameter in parameters}
    configuration = {parameter.name: parameter.default_array() for parameter in parameters}
    # Whole parameters first, so that `row[2]=5, row=[…]` does not depend on the order of writing.
    for name, value in sorted(given.items(), key=lambda item: "[" in item[0]):
        base, index = _element(name)
        if base not in known:
            raise InputError(
                f"the configuration names '{name}', which this world does not have: {nearest(base, known)}"
            )
        shape = known[base].shape
        if index is None:
            configuration[base] = _numbers(name, value, shape)
        elif len(index) != len(shape) or any(not 0 <= i < size for i, size in zip(index, shape, strict=True)):
            raise InputError(f"the configuration sets '{name}', but '{base}' has shape {shape}: indices start at 0.")
        else:
            configuration[base][index] = _numbers(name, value, ())
    for name, value in configuration.items():
        _check_bounds(known[name], value)
    return configuration


def parse_configuration(text: str | Path) -> dict[str, Any]:
    """What a user wrote: `name=value,…` (`row[2]=5, col=[1,1,5,1,1]`) or the path of a TOML file."""
    if isinstance(text, Path) or str(text).endswith(".toml"):
        try:
            return read_toml(text)
        except InputError as error:
            raise InputError(f"the configuration file '{text}': {error}") from error
    given: dict[str, Any] = {}
    # A comma parts two entries only where another `name=` follows: the others are inside an array.
    for entry in re.split(r",\s*(?=[A-Za-z_][\w\-]*(?:\[[\d,\s]*\])?\s*=)", text.strip()):
        name, equals, value = entry.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InputError(f"a configuration is written name=value,… or is a .toml file, found '{entry}'.")
        if name in given:
            raise InputError(f"the configuration sets '{name}' twice: give one value.")
        try:
            given[name] = parse_json(value, finite=False)
        except InputError as error:
            raise InputError(
                f"the configuration's '{name}' must be a number or [numbers], found '{value:.60}'."
            ) from error
    return given


def _element(name: str) -> tuple[str, tuple[int, ...] | None]:
    """`row[2]` → ("row", (2,)); `row` → ("row", None)."""
    match = re.fullmatch(r"([^\[\]]+)\[\s*(\d{1,9}(?:\s*,\s*\d{1,9})*)\s*\]", name)
    if match is None:
        return name, None
    return match[1].strip(), tuple(int(i) for i in match[2].split(","))


def _numbers(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        found = f"{value!r:.60}" if not isinstance(value, int) else "a whole number beyond 64-bit floats"
        raise InputError(f"the configuration's '{name}' must be made of numbers, found {found}.") from error
    if array.shape != shape:
        wanted = "one number" if shape == () else f"numbers of shape {shape}"
        raise InputError(f"the configuration's '{name}' must be {wanted}, found shape {array.shape}.")
    return array


def _check_bounds(parameter: ConfigurationParameter, value: np.ndarray) -> None:
    if not np.isfinite(value).all():
        raise InputError(f"the configuration's '{parameter.name}' must be finite, found NaN or infinity.")
    outside = value[(value < parameter.low) | (value > parameter.high)]
    if outside.size:
        raise InputError(
            f"the configuration's '{parameter.name}' must lie between {parameter.low:g} and {parameter.high:g}, "
            f"found {outside[0]:g}."
        )
