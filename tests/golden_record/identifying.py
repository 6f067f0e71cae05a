"""Problems of `identify`: rules, policy spaces, tests, and data that are hard in every way that is provided for."""

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import policyspace

from . import data_sets as data
from .answers import verdict

TWO_BY_TWO = [[1.0, 0.3], [0.3, 0.8]]

LINEAR = {
    "gaussian known": (data.gaussian, {"covariance": 1.0}),
    "gaussian estimated": (data.gaussian, {}),
    "gaussian 2 actions known": (partial(data.gaussian, actions=2), {"covariance": TWO_BY_TWO}),
    "gaussian 3 actions estimated": (partial(data.gaussian, actions=3), {}),
    "boltzmann 2 actions": (data.boltzmann, {}),
    "boltzmann 4 actions": (partial(data.boltzmann, actions=4), {}),
}
NETWORKS = {
    "gaussian network known": (data.bent_gaussian, {"policy": "network", "hidden": (2,), "covariance": 0.25}),
    "gaussian network estimated": (data.bent_gaussian, {"policy": "network", "hidden": (2,)}),
    "boltzmann network": (data.bent_boltzmann, {"policy": "network", "hidden": (2,)}),
}
RULES = {
    "holm": {},
    "bonferroni": {"correction": "bonferroni"},
    "bh": {"correction": "bh"},
    "simplified paper": {"paper_rule": True},
    "combinatorial": {"rule": "combinatorial"},
    "combinatorial paper": {"rule": "combinatorial", "paper_rule": True},
}
TESTS = ("bootstrap", "universal", "eprocess", "mixture", "wilks")


def answer(made: policyspace.Identification) -> dict[str, Any]:
    """The numbers and verdicts of an answer, without its words."""
    found = made.to_dict()
    fit, data = found["fit"], found["data"]
    # Where many parameters are equally likely, or none that is finite, the one that is shown says nothing.
    determined = fit["identifiable"] and (made.test.name == "firth" or not fit["separated"])
    sizes = {"parameters": fit["parameters"], "smallest_eigenvalue": fit["smallest_eigenvalue"]} if determined else {}
    return {
        "rule": found["rule"],
        "supports": found["supports"],
        "core": found["selected"],
        "undecided": found["undecided"],
        "tests": {row["group"]: tested(row, determined) for row in found["groups"]},
        "log_likelihood": fit["log_likelihood"],
        "num_pairs": data["num_rows"],
        "num_episodes": data["num_episodes"],
        "num_parameters": fit["num_parameters"],
        "identifiable": fit["identifiable"],
        "separated": fit["separated"],
        "exhaustive": found["exhaustive"],
        "converged": fit["converged"],
        "truth": found["ground_truth"],
        "test": made.test.name,
        **sizes,
    }


RECORDED = ("statistic", "degrees_of_freedom", "p_value", "adjusted_p_value", "rejected")
SIZES = {"effect": "coefficient_norm", "detectable_effect": "minimum_detectable_effect"}
"""What the record calls the size of weights, where it says something."""


def tested(row: dict[str, Any], determined: bool) -> dict[str, Any]:
    """The test of one group; p-values of statistics that are zero up to rounding are 1 up to its root."""
    kept = {name: row[name] for name in RECORDED}
    kept |= {name: 1.0 for name in ("p_value", "adjusted_p_value") if kept[name] > 0.999}
    kept["verdict"] = verdict(row)
    return kept | ({name: row[now] for name, now in SIZES.items()} if determined else {})


def by_likelihood(options: dict[str, Any]) -> dict[str, Any]:
    """Unless a test is named, the one that needs nothing but the likelihood: which test is chosen is tested elsewhere."""
    network = options.get("policy") == "network"
    named = options.get("test", "auto") != "auto" or options.get("firth")
    return options if named else options | {"test": "universal" if network else "wilks"}


def solve(make: Any, options: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The answer; or that there is none, for options that do not go together."""
    features, actions = make()
    if isinstance(features, np.ndarray) and "names" not in options:
        options = options | {"names": [*data.NAMES, "extra"][: features.shape[1]]}
    try:
        return answer(policyspace.identify(features, actions, **by_likelihood(options)))
    except policyspace.InputError:
        return {"refused": True}


def field_names(folder: Path) -> dict[str, list[str]]:
    """The names in a file of answers."""
    features, actions = data.gaussian()
    plain = policyspace.identify(features, actions, names=data.NAMES).to_dict()
    parts = ("test", "policy", "data", "fit", "guarantee", "clusters")
    return {
        "answer": list(plain),
        "groups": list(plain["groups"][0]),
        "assumptions": list(plain["assumptions"][0]),
        **{name: list(plain[name]) for name in parts},
    }


def custom_policy() -> tuple[policyspace.CustomPolicy, policyspace.Sample]:
    """A logistic policy over two of its own parameters, in the words of a user."""
    import jax.numpy as jnp

    def log_prob(params: Any, state: Any, action: Any) -> Any:
        eta = params["weights"] @ state + params["bias"]
        return jnp.where(action == 0, eta, 0.0) - jnp.logaddexp(eta, 0.0)

    start = {"bias": np.zeros(()), "weights": np.zeros(2)}
    groups = {"near": "weights[0]", "far": "weights[1]"}
    space = policyspace.CustomPolicy(log_prob, start, ("near", "far"), ("go", "stay"), groups)
    features, actions = data.boltzmann(11, 200, weights=(0.6, 0.0))
    return space, policyspace.Sample(features, actions, ("near", "far"), ("go", "stay"))


def custom(options: dict[str, Any], folder: Path) -> dict[str, Any]:
    space, demonstrations = custom_policy()
    return answer(policyspace.identify(demonstrations, policy=space, **by_likelihood(options)))


def from_frame(discrete: bool, options: dict[str, Any], folder: Path) -> dict[str, Any]:
    return answer(policyspace.identify(data.frame(discrete), "action", **by_likelihood(options)))


def _linear() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for (family, (make, space)), (name, rule) in product(LINEAR.items(), RULES.items()):
        found[f"{family}, {name}"] = partial(solve, make, space | rule)
    for (family, (make, space)), test, rule in product(LINEAR.items(), TESTS, ("simplified", "combinatorial")):
        found[f"{family}, {test}, {rule}"] = partial(solve, make, space | {"test": test, "rule": rule, "seed": 3})
    for family, rule in product(("boltzmann 2 actions", "boltzmann 4 actions"), ("simplified", "combinatorial")):
        found[f"{family}, firth, {rule}"] = partial(solve, LINEAR[family][0], {"firth": True, "rule": rule})
    return found


def _networks() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for (family, (make, space)), test in product(NETWORKS.items(), ("auto", "wilks", "universal", "eprocess")):
        if (family, test) != ("gaussian network known", "eprocess"):  # two peaks as high: rounding says which is found
            found[f"{family}, {test}"] = partial(solve, make, space | {"test": test, "seed": 3})
    for family, (make, space) in NETWORKS.items():
        both = space | {"rule": "combinatorial", "test": "universal"}
        found[f"{family}, universal, combinatorial"] = partial(solve, make, both)
        found[f"{family}, mixture"] = partial(solve, make, space | {"test": "mixture"})
    for groups, hidden in product(("hidden", "output", "input"), ((3,),)):
        space = {"policy": "network", "hidden": hidden, "covariance": 0.25, "groups": groups}
        found[f"gaussian network, {groups} groups"] = partial(solve, data.bent_gaussian, space)
    short = partial(data.bent_gaussian, n=60)
    found["gaussian network, bootstrap"] = partial(
        solve, short, NETWORKS["gaussian network known"][1] | {"test": "bootstrap"}
    )
    for test in ("auto", "universal"):
        found[f"custom policy, {test}"] = partial(custom, {"test": test})
    return found


def _hard_data() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for test in ("auto", "bootstrap", "universal", "eprocess"):
        found[f"separated, {test}"] = partial(solve, data.separated, {"test": test})
    found["separated, firth"] = partial(solve, data.separated, {"firth": True})
    found["separated 3 actions"] = partial(solve, partial(data.separated, 3), {})
    found["separated, combinatorial"] = partial(solve, data.separated, {"rule": "combinatorial"})
    for exchangeable, discrete, rule in product((True, False), (True, False), ("simplified", "combinatorial")):
        name = f"{'exchangeable' if exchangeable else 'dependent'}, {'boltzmann' if discrete else 'gaussian'}, {rule}"
        found[name] = partial(solve, partial(data.collinear, exchangeable, discrete), {"rule": rule})
    wide = np.linspace(0.5, 0.0, 12)
    names = {"names": [f"x{i}" for i in range(12)]}
    for n, covariance, rule in product((9, 16), (1.0, "estimate"), ("simplified", "combinatorial")):
        make = partial(data.gaussian, n=n, weights=wide)
        space = names | {"covariance": covariance, "rule": rule}
        found[f"{n} rows of 12 columns, gaussian {covariance}, {rule}"] = partial(solve, make, space)
    for n in (9, 30):
        make = partial(data.boltzmann, n=n, weights=wide)
        found[f"{n} rows of 12 columns, boltzmann"] = partial(solve, make, names)
    return found


def _options() -> dict[str, Any]:
    own = {"ahead": ["near", "far"], "sides": ["left", "right"]}
    both: dict[str, dict[str, Any]] = {
        "groups feature": {"groups": "feature"},
        "own groups": {"groups": own},
        "own groups, combinatorial": {"groups": own, "rule": "combinatorial"},
        "always": {"assume": ["far"]},
        "always, combinatorial": {"assume": ["near"], "rule": "combinatorial"},
        "fixed": {"fixed": 0.5},
        "fixed by name": {"fixed": {"near": 0.6, "left": 0.2}},
        "no intercept": {"intercept": False},
        "significance": {"significance": 0.2, "rule": "combinatorial"},
    }
    found: dict[str, Any] = {}
    families = {"gaussian": partial(data.gaussian, actions=2), "boltzmann": partial(data.boltzmann, actions=3)}
    for (family, make), (name, options) in product(families.items(), both.items()):
        found[f"{family}, {name}"] = partial(solve, make, options)
    single = {"groups": "parameter"}
    found["boltzmann, groups parameter"] = partial(solve, families["boltzmann"], single)
    found["gaussian, groups parameter"] = partial(solve, families["gaussian"], single | {"covariance": TWO_BY_TWO})
    found["gaussian estimated, groups parameter"] = partial(solve, families["gaussian"], single)
    for family, test, (name, weigh) in product(
        families, ("auto", "eprocess"), (("whole", data.whole_weights), ("fractional", data.fractional_weights))
    ):
        make = families[family]
        options = {"weights": weigh(len(make()[0])), "test": test}
        found[f"{family}, {name} weights, {test}"] = partial(solve, make, options)
    for reference in (0, 1):
        found[f"boltzmann, reference {reference}"] = partial(solve, families["boltzmann"], {"reference": reference})
    roles = {"episodes": "run", "weights": "count"}
    for discrete, test in product((True, False), ("auto", "eprocess", "bootstrap")):
        kind = "labels" if discrete else "amounts"
        found[f"frame of {kind}, {test}"] = partial(from_frame, discrete, {"episodes": "run", "test": test})
        found[f"frame of {kind}, weighted, {test}"] = partial(from_frame, discrete, roles | {"test": test})
    return found


PROBLEMS = {"names of the fields": field_names} | _linear() | _hard_data() | _options()
NETWORK_PROBLEMS = _networks()
