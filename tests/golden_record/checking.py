"""Problems of tests that assume less than a policy, of how a test is chosen by itself, and of coefficients."""

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import policyspace

from . import data_sets as data
from .answers import by_value, identified, selector, weights

KINDS = {"labels": True, "amounts": False}
DEPENDENCE: dict[str, tuple[Any, dict[str, Any]]] = {
    "rows": (data.rows_alone, {"clusters": "rows"}),
    "blocks": (data.one_long_log, {}),
    "episodes": (data.in_episodes, {"episodes": "run"}),
    "named episodes": (data.in_episodes, {"episodes": "run", "clusters": "episodes"}),
    "subjects": (data.of_people, {"subjects": "who", "features": data.NAMES}),
}


def solve(make: Any, options: dict[str, Any], folder: Path) -> dict[str, Any]:
    return identified(policyspace.identify(make(), "action", **options))


def _lean() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for (kind, discrete), (name, (make, options)) in product(KINDS.items(), DEPENDENCE.items()):
        found[f"lean, {kind}, {name}"] = partial(solve, partial(make, discrete), options | {"test": "lean"})
    for kind, discrete in KINDS.items():
        rows = partial(data.rows_alone, discrete)
        both = {"test": "lean", "rule": "combinatorial"}
        found[f"lean, {kind}, combinatorial"] = partial(solve, rows, both)
        found[f"lean, {kind}, no policy"] = partial(solve, rows, {"policy": "any", "seed": 4})
        found[f"lean, {kind}, bent"] = partial(solve, partial(data.rows_alone, discrete, bend=0.8), {"test": "lean"})
        groups = {"ahead": ["near", "far"], "aside": ["left", "right"]}
        found[f"lean, {kind}, own groups"] = partial(solve, rows, {"test": "lean", "groups": groups})
        found[f"lean, {kind}, few rows"] = partial(solve, partial(data.rows_alone, discrete, n=60), {"test": "lean"})
    return found


def _robust() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, discrete in KINDS.items():
        people = {"subjects": "who", "features": data.NAMES, "test": "robust"}
        many, few = (partial(data.of_people, discrete, num, each) for num, each in ((120, 4), (12, 30)))
        found[f"robust, {kind}, many subjects"] = partial(solve, many, people)
        found[f"robust, {kind}, few subjects"] = partial(solve, few, people)
        found[f"robust, {kind}, combinatorial"] = partial(solve, many, people | {"rule": "combinatorial"})
        shares = {"features": data.NAMES, "weights": "share", "weight_type": "sampling"}
        found[f"sampling weights, {kind}"] = partial(solve, partial(data.of_people, discrete), shares)
        both = shares | {"subjects": "who"}
        found[f"sampling weights of subjects, {kind}"] = partial(solve, partial(data.of_people, discrete), both)
    return found


def _chosen() -> dict[str, Any]:
    """Which test is chosen, and whether anything is promised, where each assumption is broken."""
    found: dict[str, Any] = {}
    for kind, discrete in KINDS.items():
        makes = {
            "nothing broken": (partial(data.rows_alone, discrete), {}),
            "bent": (partial(data.rows_alone, discrete, n=800, bend=1.0), {}),
            "bent, likelihood ratio": (partial(data.rows_alone, discrete, n=800, bend=1.0), {"test": "wilks"}),
            "dependent rows": (partial(data.one_long_log, discrete), {}),
            "dependent rows, likelihood ratio": (partial(data.one_long_log, discrete), {"test": "wilks"}),
            "moods": (partial(data.in_episodes, discrete), {"episodes": "run"}),
            "subjects": (partial(data.of_people, discrete), {"subjects": "who", "features": data.NAMES}),
            "parameters": (partial(data.rows_alone, discrete), {"groups": "parameter"}),
            "few rows": (partial(data.rows_alone, discrete, n=30), {}),
            "lagged actions": (partial(data.in_episodes, discrete), {"episodes": "run", "lags": 1}),
        }
        found |= {f"chosen, {kind}, {name}": partial(solve, *asked) for name, asked in makes.items()}
    return found


def bookkeeping(folder: Path) -> dict[str, Any]:
    """Columns that look like bookkeeping are left out."""
    import polars

    frame = data.rows_alone(True).with_columns(reward=polars.lit(1.0), step=polars.int_range(400), done=polars.lit(0))
    return identified(policyspace.identify(frame, "action"))


# -- coefficients --------------------------------------------------------------------------------------------------------


def table(discrete: bool, options: dict[str, Any], interval: Any, errors: Any, folder: Path) -> dict[str, Any]:
    answer = policyspace.identify(data.of_people(discrete), "action", features=data.NAMES, test="wilks", **options)
    return weights(answer.coefficients(interval, errors))


def _coefficients() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, discrete in KINDS.items():
        found[f"coefficients, {kind}, Wald"] = partial(table, discrete, {}, "wald", "model")
        found[f"coefficients, {kind}, profile"] = partial(table, discrete, {}, "profile", "auto")
        people = {"subjects": "who"}
        found[f"coefficients, {kind}, clustered"] = partial(table, discrete, people, "wald", "auto")
    return found


# -- everyone alone, and scikit-learn ------------------------------------------------------------------------------------


def alone(discrete: bool, by: str, options: dict[str, Any], folder: Path) -> dict[str, Any]:
    told = {"features": data.NAMES} | options
    return by_value(policyspace.identify_by(data.of_people(discrete, 6, 60), by, "action", told=told))


def of_sexes(folder: Path) -> dict[str, Any]:
    found = policyspace.identify_by(
        data.of_people(True), "sex", "action", subjects="who", correction="bonferroni", told={"features": data.NAMES}
    )
    return by_value(found)


def selected(discrete: bool, options: dict[str, Any], folder: Path) -> dict[str, Any]:
    from policyspace.sklearn import PolicySelector

    frame = data.rows_alone(discrete)
    made = PolicySelector(**options).fit(frame.select(data.NAMES).to_pandas(), frame["action"].to_numpy())
    return selector(made)


def selected_of_people(folder: Path) -> dict[str, Any]:
    from policyspace.sklearn import PolicySelector

    frame = data.of_people(False)
    features, actions = frame.select(data.NAMES).to_numpy(), frame["action"].to_numpy()
    made = PolicySelector(weight_type="sampling")
    return selector(made.fit(features, actions, weights=frame["share"].to_numpy(), subjects=frame["who"].to_numpy()))


ALONE = {
    "each person, labels": partial(alone, True, "who", {}),
    "each person, amounts": partial(alone, False, "who", {"test": "wilks"}),
    "each sex, subjects": of_sexes,
    "selector, labels": partial(selected, True, {}),
    "selector, amounts, combinatorial": partial(selected, False, {"rule": "combinatorial", "keep_undecided": True}),
    "selector, always": partial(selected, True, {"assume": ["far"], "test": "wilks", "significance": 0.01}),
    "selector, people": selected_of_people,
}

PROBLEMS = _lean() | _robust() | _chosen() | {"left out as bookkeeping": bookkeeping} | _coefficients() | ALONE
