"""Read an identification from JSON, of this format and of format 1."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from policyspace.answer import FORMAT, Grade, Identification, Reason
from policyspace.errors import InputError
from policyspace.safe_io import parse_json, settings_text, structured

NOT_THERE = "is no answer of policyspace identify"


def read_answer(path: str | Path) -> Identification:
    """Read the answer of `identify` from a JSON file.

    Parameters
    ----------
    path : str or Path
        A file that holds what `Identification.to_json` gave, or what `policyspace identify --json` wrote.

    Returns
    -------
    Identification
        The same answer, without the data behind its coefficients; what JSON could not hold is NaN.

    Raises
    ------
    InputError
        If the file holds no such answer, or one of a later version.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import policyspace
    >>> states = np.random.default_rng(0).normal(size=(300, 2))
    >>> answer = policyspace.identify(states, states[:, 0] + np.random.default_rng(1).normal(size=300))
    >>> path = Path(tempfile.mkdtemp()) / "answer.json"
    >>> _ = path.write_text(answer.to_json())
    >>> read_answer(path).selected
    ('x0',)
    """
    try:
        found = parse_json(settings_text(path))
        if not isinstance(found, dict):
            raise InputError(f"{NOT_THERE}: save one with --json.")
        number = found.get("format", 1)
        if number == 1:
            found = _of_format_1(found)
        elif number != FORMAT:
            raise InputError(f"is of format {number!r:.20}, and this version reads 1 and {FORMAT}: update policyspace.")
        parts = [one for one in fields(Identification) if one.compare]
        told = [one for one in parts if one.name != "subjects" or one.name in found]
        return Identification(**{one.name: structured(found[one.name], one.type) for one in told})
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise InputError(f"{path}: {error}") from error
        where = f"'{error.args[0]}' is missing" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{path}: {NOT_THERE} ({where}): save it again with --json.") from error


ASSUMPTIONS = {
    "independent units": "independent clusters",
    "decisions with chance": "stochastic actions",
    "enough pairs": "enough rows",
    "weights are counts": "frequency weights",
    "rows are their own subjects": "one row per subject",
}
"""Of format 1, and what they are called now."""

STATUS = {True: "held", False: "violated", None: "unchecked"}


def _of_format_1(old: Mapping[str, Any]) -> dict[str, Any]:
    """The same answer in the words of format 2."""
    settings: Mapping[str, Any] = old["settings"]
    features, test = bool(settings.get("about_features")), settings["test"]
    stated, needed = Reason.STATED.value, [ASSUMPTIONS.get(name, name) for name in settings.get("assumes", ())]
    assumptions = []
    for one in old.get("assumptions", ()):
        name = ASSUMPTIONS.get(one["name"], one["name"])
        # Only some of the numbers beside assumptions were p-values, and they stand in the words, too.
        p_value = one["measure"] if name in ("form", "noise", "independent rows") else None
        status = STATUS[one["held"]]
        assumptions.append({"name": name, "status": status, "p_value": p_value, "message": one["words"]})
    because = old.get("test_reason", "as asked for")
    reason = {"reason": "as_requested", "values": {}}
    if because != "as asked for":
        reason = {"reason": stated, "values": {"message": because}}
    promise, missing = old.get("promise"), []
    if promise is None:
        missing = [
            {"reason": "assumption_violated", "values": {"assumption": one["name"], "message": one["message"]}}
            for one in assumptions
            if one["status"] == "violated" and one["name"] in needed
        ]
        if settings.get("withheld"):
            missing.append({"reason": stated, "values": {"message": settings["withheld"]}})
    offset, covariance, fixed = settings.get("offset", []), settings.get("covariance"), settings.get("fixed")
    return {
        "selected": old["core"],
        "undecided": old["undecided"],
        "supports": old["supports"],
        "groups": [_group_of_format_1(row, features) for row in old["tests"]],
        "test": {
            "name": test,
            "reason": reason,
            "note": settings.get("test_note", test),
            "statistic": settings.get("statistic", "λ"),
            "null_distribution": settings.get("reference_law", ""),
            "assumes": needed,
            "on_sample": "sample" in settings,
        },
        "policy": {
            "family": settings["policy"],
            "groups": settings["groups"],
            "assumed_groups": settings.get("always", []),
            "tested": "features" if features else "parameters",
            "covariance": covariance,
            "intercept": settings.get("intercept"),
            "hidden": settings.get("hidden") or [],
            "fixed": fixed if isinstance(fixed, list) else [],
            "offset": [f"{c} of {a}" for a, c in offset.items()] if isinstance(offset, dict) else offset,
        },
        "data": {
            "num_rows": old["num_rows"] if "num_rows" in old else old["num_pairs"],
            "num_episodes": old.get("num_episodes"),
            "features": settings["features"],
            "actions": settings["actions"],
            "action_type": "discrete" if settings["discrete"] else "continuous",
            "lagged_actions": settings.get("habit", []),
            "formula": settings.get("formula"),
            "weight_type": "frequency" if settings.get("weights_are") == "counts" else settings.get("weights_are"),
            "excluded_columns": old.get("left_out", []),
        },
        "fit": {name: old[name] for name in FIT if name in old},
        "guarantee": None if promise is None else _guarantee_of_format_1(promise, test, settings, stated),
        "no_guarantee": missing,
        "assumptions": assumptions,
        "clusters": {"kind": old.get("dependence", "rows")},
        "rule": old["rule"],
        "significance": settings["significance"],
        "correction": settings["correction"],
        "exhaustive": old["exhaustive"],
        "warnings": old["warnings"],
        "ground_truth": old.get("truth"),
        "version": old["version"],
    }


FIT = (
    "log_likelihood", "num_parameters", "parameters", "identifiable", "smallest_eigenvalue", "separated", "converged",
)  # fmt: skip


def _group_of_format_1(row: Mapping[str, Any], features: bool) -> dict[str, Any]:
    """One test; features were called controlled, too."""
    kept = {name: row[name] for name in ("group", "verdict", "statistic", "degrees_of_freedom", "p_value", "rejected")}
    return kept | {
        "verdict": "used" if features and row["verdict"] == "controlled" else row["verdict"],
        "adjusted_p_value": row["adjusted_p_value"],
        "coefficient_norm": row["effect"],
        "minimum_detectable_effect": row["detectable_effect"],
        "evidence": row.get("evidence"),
        "action_effect": row.get("behavioural_effect"),
    }


def _guarantee_of_format_1(promise: str, test: str, settings: Mapping[str, Any], stated: str) -> dict[str, Any]:
    """What a promise was, in a sentence: "the chance of …, by the test …, if CONDITION; CHECKED."."""
    condition = promise.partition(", if ")[2].rpartition("; ")[0] or promise
    return {
        "quantity": "fdr" if settings["correction"] == "bh" else "fwer",
        "level": settings["significance"],
        "test": f"test '{test}'",
        "correction": settings["correction"],
        "conditions": [{"reason": stated, "values": {"message": f"that {condition}"}}],
        "checked": "not checked" not in promise,
        "grade": (Grade.MODEL_FREE if test == "lean" else Grade.MODEL_BASED).value,
        "verdict": "used" if settings.get("about_features") else "controlled",
    }
