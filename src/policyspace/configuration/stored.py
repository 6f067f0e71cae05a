"""What a file says about rounds, checked before it is believed: every entry there, of its type, and within its range."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from policyspace.errors import InputError

MOST = 10**9
"""Rounds or episodes that anyone plans."""

Check = Callable[[Any], bool]


def is_count(value: Any) -> bool:
    """A whole number, not negative, that one can count to."""
    return type(value) is int and 0 <= value <= MOST


def is_number(value: Any) -> bool:
    """A finite number."""
    return type(value) in (int, float) and abs(value) < 1e300 and math.isfinite(value)


def is_share(value: Any) -> bool:
    """A probability strictly between 0 and 1."""
    return is_number(value) and 0 < value < 1


def is_text(value: Any) -> bool:
    """A text."""
    return isinstance(value, str)


def is_truth(value: Any) -> bool:
    """True or false."""
    return isinstance(value, bool)


def is_names(value: Any) -> bool:
    """A list of different texts."""
    return isinstance(value, list | tuple) and all(map(is_text, value)) and len(set(value)) == len(value)


def is_list_of(check: Check) -> Check:
    """A list whose elements pass a check."""
    return lambda value: isinstance(value, list) and all(map(check, value))


def is_table_of(check: Check) -> Check:
    """A table with names, whose values pass a check."""
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def or_nothing(check: Check) -> Check:
    """What passes a check, or nothing."""
    return lambda value: value is None or check(value)


def is_setting(value: Any) -> bool:
    """A number, or lists of numbers: the value of one entry of ω."""
    return is_number(value) or (isinstance(value, list) and all(map(is_setting, value)))


def is_test(value: Any) -> bool:
    """One row of tests: its group, and evidence that later rounds add to."""
    return (
        isinstance(value, dict)
        and is_text(value.get("group"))
        and all(is_number(value[name]) for name in ("log_e", "highest", "log_evidence") if name in value)
        and all(is_number(value[name]) and value[name] > 0 for name in ("combined_p_value",) if name in value)
        and all(or_nothing(is_number)(value[name]) for name in ("e_value", "decided_at") if name in value)
    )


ROUND: dict[str, Check] = {
    "number": is_count,
    "configuration": is_table_of(is_setting),
    "design": or_nothing(is_text),
    "asked_for": is_names,
    "reasons": is_table_of(or_nothing(is_number)),
    "num_episodes": is_count,
    "significance": is_share,
    "warnings": is_list_of(is_text),
}
"""The entries of a round and of a request for one."""


def check_entries(given: Any, checks: Mapping[str, Check], what: str) -> None:
    """One sentence about the first entry that is missing or not what it must be."""
    if not isinstance(given, dict):
        raise InputError(f"{what} must be a table, found {given!r:.40}: the file is damaged.")
    for name, check in checks.items():
        if name not in given:
            raise InputError(f"{what} must have the entry '{name}', found none: the file is damaged.")
        if not check(given[name]):
            raise InputError(f"{what} cannot have '{name}' = {_shown(given[name])}: the file is damaged.")


def _shown(value: Any) -> str:
    if isinstance(value, int) and abs(value) > MOST**2:
        return "a number that large"
    return f"{value!r:.60}"
