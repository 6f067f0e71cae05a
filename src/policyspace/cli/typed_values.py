"""What the text of an option stands for: names, columns of attributes and offsets, hidden layers, groups, a covariance."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from policyspace.errors import InputError, reason_of


def split(given: list[str] | None) -> list[str]:
    """Names from options that may be repeated; a name that holds a comma stands in double quotes."""
    try:
        fields = [name.strip() for row in csv.reader(given or [], skipinitialspace=True) for name in row]
    except csv.Error as error:
        raise InputError(f"names of columns must be separated by commas, found otherwise ({error}).") from error
    return [name for name in fields if name]


def attributes(given: list[str], long: bool) -> Any:
    """Columns by attribute from NAME=COLUMNS, or of a file with one row an alternative the names of columns."""
    if long:
        for name, sign, _ in (text.partition("=") for text in given):
            if sign:
                raise InputError(f"with --choice-id attributes are columns, found '{name}=…': name the columns alone.")
        return given or None
    named = pairs("--attributes", "must be such as 'cost=cost_*,time=time_*'", given)
    return {name: columns_of(columns, long) for name, columns in named.items()}


def offset(given: list[str]) -> Any:
    """One column, or columns by action from ACTION=COL."""
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    return pairs("--offset", "must be one column, or such as 'left=col1,right=col2'", given, last=True) or None


def pairs(option: str, form: str, given: Sequence[str] | None, last: bool = False) -> dict[str, str]:
    """Values by name from NAME=VALUE, parted at the first sign or at the last; `form` says how they are written."""
    found: dict[str, str] = {}
    for text in given or ():
        name, sign, value = (part.strip() for part in (text.rpartition("=") if last else text.partition("=")))
        if not (name and sign and value):
            raise InputError(f"{option} {form}, found '{text}': correct it.")
        if name in found:
            raise InputError(f"{option} names '{name}' twice: give it once.")
        found[name] = value
    return found


def columns_of(text: str, long: bool) -> Any:
    """A pattern, or columns separated by bars; of a file with one row an alternative one column."""
    return text.strip() if long or "|" not in text else [part.strip() for part in text.split("|")]


def widths(text: str) -> tuple[int, ...]:
    """The hidden layers of a network: whole numbers with commas, or nothing for none."""
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise InputError(f"--hidden must be whole numbers with commas, such as 8 or 16,8, found '{text}'.") from error


def read_groups(text: str) -> tuple[Any, tuple[str, ...], Any]:
    """(groups, always, fixed) from a word or from a TOML file with a table [groups], a list always, a table [fixed]."""
    if text in ("feature", "parameter", "input", "hidden", "output"):
        return text, (), None
    if not text.lower().endswith(".toml"):
        raise InputError(
            f"--groups must be 'feature', 'parameter', for a network 'hidden' or 'output', or a TOML file, found '{text}'."
        )
    from policyspace.data.input_files import read_toml
    from policyspace.data.readers import located

    with located(text):
        table = read_toml(text)
    unknown = set(table) - {"groups", "always", "fixed"}
    groups, always, fixed = table.get("groups", "feature"), table.get("always", []), table.get("fixed", {})
    if unknown:
        raise InputError(f"{text}: unknown entry '{min(unknown)}': a groups file has [groups], always and [fixed].")
    if not isinstance(groups, dict | str) or not _names(always):
        raise InputError(
            f'{text}: expected a table [groups] with lines such as position = ["x", "y"], and a list always.'
        )
    if isinstance(groups, dict) and not all(_names(inside) for inside in groups.values()):
        raise InputError(f"{text}: every group in [groups] must be a list of feature names.")
    numbers = isinstance(fixed, dict) and all(type(v) in (int, float) for v in fixed.values())
    if not numbers:
        raise InputError(f"{text}: [fixed] must give a number for each name.")
    return groups, tuple(always), fixed


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def covariance(text: str | None) -> Any:
    """A number, several numbers, a matrix from a file, or the word 'estimate'."""
    if text is None or text == "estimate":
        return text
    try:
        numbers = [float(part) for part in text.split(",")]
        return numbers[0] if len(numbers) == 1 else numbers
    except ValueError:
        return _matrix(text)


def _matrix(text: str) -> Any:
    import numpy as np

    from policyspace.data.input_files import parse_json, settings_text
    from policyspace.data.npy import read_npy

    path = Path(text)
    try:
        if not path.is_file():
            raise InputError(
                f"--covariance must be a number, numbers, 'estimate' or a file with a matrix, found '{text}', which is none."
            )
        if path.suffix == ".npy":
            return read_npy(path)
        content = settings_text(path)
        if path.suffix == ".json":
            return np.asarray(parse_json(content))
        rows = [line.replace(",", " ").split() for line in content.splitlines()]
        return np.array([[float(entry) for entry in row] for row in rows if row])
    except (OSError, ValueError, OverflowError) as error:
        if str(error).startswith("--covariance"):
            raise
        raise InputError(f"{path}: is not a matrix of numbers ({reason_of(error)}): give CSV, NPY or JSON.") from error
