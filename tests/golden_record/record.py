"""The record in its files: one line a problem, so that a change shows as the lines of the problems it touches."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "records"
DIGITS = 9
WORDS = ("answer", "warnings", "version", "told_at")
CHECKED = ("guarantee", "no_guarantee", "assumptions", "clusters", "excluded_columns")
"""What an answer says of its assumptions, which are measured by tests of their own."""
MEASURED = ("evidence", "action_effect", "effect_low", "effect_high")
"""What it says of a group beside its p-value, which is measured by tests of its own too."""
RECORDED_AS = {
    "num_rows": "num_pairs",
    "coefficient_norm": "effect",
    "minimum_detectable_effect": "detectable_effect",
}
"""Names of fields under which the record has what another name says today."""


def plain(value: Any) -> Any:
    """As JSON has it, numbers rounded to what is compared at most."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): plain(inside) for name, inside in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inside) for inside in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else str(value)
    return value


def without_words(value: Any) -> Any:
    """What a file says in numbers and names: sentences may be worded anew, times and versions differ."""
    if isinstance(value, dict):
        kept = {name: inside for name, inside in value.items() if name not in WORDS + CHECKED}
        return {
            n: [recorded_row(row) for row in v] if n == "tests" else without_words(v)
            for n, v in recorded_names(kept).items()
        }
    return [without_words(inside) for inside in value] if isinstance(value, list | tuple) else value


def recorded_row(row: Any) -> Any:
    """A row of tests; the record calls features controlled, too."""
    kept = recorded_names(without(row, WORDS + MEASURED))
    return kept | {"verdict": "controlled"} if kept.get("verdict") == "used" else kept


def recorded_names(found: dict[str, Any]) -> dict[str, Any]:
    return {RECORDED_AS.get(name, name): value for name, value in found.items()}


def without(value: Any, names: tuple[str, ...]) -> Any:
    """Plain data without what stands under some names, however deep."""
    if isinstance(value, dict):
        return {name: without(inside, names) for name, inside in value.items() if name not in names}
    return [without(inside, names) for inside in value] if isinstance(value, list | tuple) else value


def read(section: str) -> dict[str, Any]:
    path = FOLDER / f"{section}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(section: str, answers: dict[str, Any]) -> None:
    lines = [f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in answers.items()]
    (FOLDER / f"{section}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[+-]?\d+)?")


def _numbers_of_one_text(found: str, recorded: str) -> list[tuple[float, float]]:
    """The decimal numbers of two texts that differ in nothing else: the last digits depend on the processor."""
    if found == recorded or NUMBER.sub("#", found) != NUMBER.sub("#", recorded):
        return []
    return [(float(one), float(other)) for one, other in zip(*map(NUMBER.findall, (found, recorded)), strict=True)]


def differences(found: Any, recorded: Any, rtol: float, atol: float, where: str = "") -> list[str]:
    """Where two answers differ: numbers by more than rounding, all else at all."""
    if isinstance(found, dict) and isinstance(recorded, dict):
        if found.keys() != recorded.keys():
            return [f"{where}: the names {sorted(found.keys() ^ recorded.keys())} are in one of them only"]
        pairs = [(f"{where}/{name}", found[name], recorded[name]) for name in recorded]
    elif isinstance(found, list) and isinstance(recorded, list) and len(found) == len(recorded):
        pairs = [(f"{where}[{i}]", *both) for i, both in enumerate(zip(found, recorded, strict=True))]
    elif isinstance(found, str) and isinstance(recorded, str) and (both := _numbers_of_one_text(found, recorded)):
        pairs = [(where, *pair) for pair in both]
    else:
        numbers = all(isinstance(v, float | int) and not isinstance(v, bool) for v in (found, recorded))
        same = math.isclose(found, recorded, rel_tol=rtol, abs_tol=atol) if numbers else found == recorded
        return [] if same else [f"{where}: found {found!r}, recorded {recorded!r}"]
    return [line for place, one, other in pairs for line in differences(one, other, rtol, atol, place)]
