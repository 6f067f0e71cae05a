"""What an answer says, in numbers and verdicts under names of this record's own: one function for each kind of answer.

Where an answer gives a field another name, only the function here changes, and the records stay as they are.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import policyspace

Problem = Callable[[Path], Any]

NEARLY_ONE = 0.999
"""Above it p-values of statistics that are zero up to rounding differ by its root."""


def identified(answer: policyspace.Identification) -> dict[str, Any]:
    """The test that decided, what it rests on, and what it shows of every group."""
    found = answer.to_dict()
    data, fit = found["data"], found["fit"]
    return {
        "rule": found["rule"],
        "test": found["test"]["name"],
        "asked for": found["test"]["reason"]["reason"] == "as_requested",
        "guaranteed": found["guarantee"] is not None,
        "assumptions": {a["name"]: [a["status"], a["p_value"]] for a in found["assumptions"]},
        "clusters": found["clusters"]["kind"],
        "excluded": data["excluded_columns"],
        "supports": found["supports"],
        "selected": found["selected"],
        "undecided": found["undecided"],
        "groups": {row["group"]: tested(row) for row in found["groups"]},
        "rows": data["num_rows"],
        "episodes": data["num_episodes"],
        "num parameters": fit["num_parameters"],
        "log-likelihood": fit["log_likelihood"],
        "parameters": fit["parameters"],
        "smallest eigenvalue": fit["smallest_eigenvalue"],
        "identifiable": fit["identifiable"],
        "separated": fit["separated"],
        "exhaustive": found["exhaustive"],
        "converged": fit["converged"],
        "ground truth": found["ground_truth"],
        "warnings": len(found["warnings"]),
        "features": data["features"],
        "actions": data["actions"],
        "offset": found["policy"]["offset"] or None,
        "lagged actions": data["lagged_actions"] or None,
        "withheld": answer.withheld,
        "in passes": data["out_of_core"] is not None,
        "sampled": found["test"]["on_sample"],
    }


def verdict(row: dict[str, Any]) -> str:
    """The record calls features controlled, too."""
    return "controlled" if row["verdict"] == "used" else row["verdict"]


def tested(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "verdict": verdict(row),
        "statistic": row["statistic"],
        "degrees of freedom": row["degrees_of_freedom"],
        "p": 1.0 if row["p_value"] > NEARLY_ONE else row["p_value"],
        "adjusted p": 1.0 if row["adjusted_p_value"] > NEARLY_ONE else row["adjusted_p_value"],
        "norm": row["coefficient_norm"],
        "detectable": row["minimum_detectable_effect"],
        "e-value": row["evidence"],
    }


def by_value(answer: Any) -> dict[str, Any]:
    """Of `identify_by`: every value alone, and all together; why a value was refused is words."""
    return {
        "groups": answer.groups,
        "users": {group: answer.users(group) for group in answer.groups},
        "alone": {name: identified(one) for name, one in answer.answers.items()},
        "refused": list(answer.refused),
        "together": None if answer.pooled is None else identified(answer.pooled),
    }


def weights(table: Any) -> dict[str, Any]:
    """The table of coefficients, how well the policy fits, and how often labels were chosen as expected."""
    found = table.to_dict()
    names = {
        "group": "group", "estimate": "estimate", "standard error": "standard_error", "lower": "lower", "upper": "upper",
        "odds ratio": "odds_ratio", "p": "p_value", "standardised": "standardised",
    }  # fmt: skip
    fits = {
        "rows": "num_rows", "parameters": "num_parameters", "log-likelihood": "log_likelihood",
        "null": "null_log_likelihood", "equal shares": "equal_shares_log_likelihood", "McFadden": "mcfadden", "AIC": "aic",
        "BIC": "bic", "hits": "hit_rate", "explained": "explained",
    }  # fmt: skip
    return {
        "weights": {row["parameter"]: {n: row[own] for n, own in names.items()} for row in found["coefficients"]},
        "fit": {name: found["fit"][own] for name, own in fits.items()},
        "calibration": [list(one.values()) for one in found["calibration"]],
    }


def selector(fitted: Any) -> dict[str, Any]:
    """A selector of scikit-learn after `fit`."""
    return {
        "kept": fitted.get_support(),
        "scores": fitted.scores_,
        "p": fitted.pvalues_,
        "answer": identified(fitted.identification_),
    }


def logged(made: policyspace.Sample) -> dict[str, Any]:
    """Demonstrations, as sums that change with every number and with the order of rows."""
    order = np.cos(np.arange(made.num_rows))
    kept = {name: np.asarray(values, dtype=float) for name, values in sorted(made.recorded.items())}
    return {
        "features": list(made.names),
        "actions": list(made.action_names),
        "categories": {name: list(levels) for name, levels in made.blocks.items()},
        "rows": made.num_rows,
        "episodes": made.num_episodes,
        "discrete": made.discrete,
        "weighted features": order @ np.asarray(made.features),
        "weighted actions": order @ np.asarray(made.actions, dtype=float),
        "weighted episodes": None if made.episodes is None else float(order @ np.asarray(made.episodes, dtype=float)),
        "weighted records": {name: float(order @ np.nan_to_num(values)) for name, values in kept.items()},
    }


def asked(request: Any) -> dict[str, Any] | None:
    """What a study asks for next."""
    if request is None:
        return None
    found = request.to_dict()
    return {
        "number": found["number"],
        "configuration": found["configuration"],
        "design": found["design"],
        "groups": list(found["asked_for"]),
        "reasons": {name: value for name, value in found["reasons"].items() if not isinstance(value, str)},
        "episodes": found["num_episodes"],
        "significance": found["significance"],
        "forecasts": [list(one.values()) for one in found["forecasts"]],
    }


def told(found: Any) -> dict[str, Any]:
    """A round of a study or of `configure`; the size of weights that hardly change the likelihood is no result."""
    rows = [
        {
            n: v
            for n, v in row.items()
            if n == "group" or not (isinstance(v, str) or n in ("effect", "coefficient_norm"))
        }
        for row in found.tests
    ]
    return {
        "number": found.number,
        "configuration": found.to_dict()["configuration"],
        "design": found.design,
        "groups": list(found.asked_for),
        "episodes": found.num_episodes,
        "episodes so far": found.total_episodes,
        "significance": found.significance,
        "tests": {row.pop("group"): list(row.values()) for row in rows},
        "newly selected": list(found.newly_selected),
        "selected": list(found.selected),
        "undecided": list(found.undecided),
        "supports": found.supports,
        "warnings": len(found.warnings),
    }


def standing(status: Any) -> dict[str, Any]:
    """Where a study stands."""
    return {
        "selected": list(status.selected),
        "undecided": list(status.undecided),
        "supports": status.supports,
        "evidence": status.evidence,
        "episodes": status.total_episodes,
        "finished": status.finished is not None,
        "ground truth": status.truth,
        "rounds": [told(one) for one in status.rounds],
        "next": asked(status.request),
    }


def refused(problem: Problem, folder: Path) -> dict[str, bool]:
    """Whether what is asked for is refused; the sentence is words."""
    try:
        problem(folder)
    except policyspace.InputError:
        return {"refused": True}
    return {"refused": False}
