"""Problems of `plan`, `profile_intervals` and the theory, and the files that the command line writes about them."""

import json
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import policyspace

from . import data_sets as data
from .command_line import run
from .record import recorded_names, without, without_words

FAMILIES = {
    "gaussian known": (data.gaussian, {"covariance": 1.0}),
    "gaussian 2 actions": (partial(data.gaussian, actions=2), {}),
    "boltzmann 3 actions": (partial(data.boltzmann, actions=3), {}),
}
SIZELESS = {
    "separated": data.separated,
    "dependent": partial(data.collinear, False, True),
}
"""Where no finite parameter is most likely, or many are: the size of the one that is shown hangs on rounding."""
SIZES = ("effect", "estimate", "parameter_size")


def planned(make: Any, options: dict[str, Any], folder: Path) -> dict[str, Any]:
    features, actions = make()
    return without_words(policyspace.plan(features, actions, **options).to_dict())


def assessed(make: Any, options: dict[str, Any], folder: Path) -> dict[str, Any]:
    features, actions = make()
    return without_words(json.loads(policyspace.theory.assess(features, actions, **options).to_json()))


def sizeless(solve: Any, make: Any, options: dict[str, Any], folder: Path) -> Any:
    return without(solve(make, options, folder), SIZES)


def intervals(discrete: bool, folder: Path) -> list[list[Any]]:
    features, actions = data.boltzmann(actions=3) if discrete else data.gaussian()
    made = policyspace.Sample.from_arrays(features, actions, names=data.NAMES)
    kind = policyspace.SoftmaxLinear if discrete else policyspace.GaussianLinear
    likelihood = policyspace.likelihood_of(kind(made.names, made.action_names), made)
    found = policyspace.profile_intervals(likelihood, 0.1)
    return [[i.parameter, i.group, i.fixed, i.estimate, i.lower, i.upper] for i in found]


def bounds(folder: Path) -> dict[str, float]:
    """The formulas of the paper at one setting."""
    theory = policyspace.theory
    setting = theory.Setting(6, 2, (0.05, 0.1), 1.2, 0.4)
    return {
        "parameter": theory.parameter_bound(500, 6, 1.2, 0.4, 0.05),
        "likelihood": theory.likelihood_bound(500, 6, 1.2, 0.4, 0.05),
        "critical": theory.critical_value(0.05, 500, 6, 1.2, 0.4, 4),
        "correctness": theory.pairs_for_correctness(0.05, setting),
        "boltzmann scale": theory.boltzmann_scale(2.0),
        "gaussian scale": theory.gaussian_scale(2.0, np.diag([1.0, 0.5])),
    }


def commands(command: str, arguments: tuple[str, ...], folder: Path) -> dict[str, Any]:
    """What the command line writes about a file of data."""
    file, out = folder / "log.csv", folder / "out.json"
    data.frame(discrete="labels" in arguments).write_csv(file)
    more = [a for a in arguments if a != "labels"]
    if command == "identify" and "--firth" not in arguments:
        more += ["--test", "wilks"]  # which test is chosen is tested elsewhere
    run(command, file, "--action", "action", "--episode", "run", "--json", out, *more)
    written = json.loads(out.read_text(encoding="utf-8"))
    settings = {"settings": sorted(written["settings"])} if "settings" in written else {}
    return without_words(written) | settings | {"names of the fields": list(recorded_names(written))}


PROBLEMS: dict[str, Any] = {
    f"plan, {family}, {test}": partial(planned, make, options | {"test": test})
    for (family, (make, options)), test in product(FAMILIES.items(), ("wilks", "universal", "eprocess"))
}
PROBLEMS |= {
    f"plan, {family}, {test}": partial(sizeless, planned, make, {"test": test})
    for (family, make), test in product(SIZELESS.items(), ("wilks", "universal", "eprocess"))
}
PROBLEMS |= {
    "plan, given effect": partial(planned, data.gaussian, {"effect": 0.2, "power": 0.8}),
    "plan, own groups": partial(planned, data.boltzmann, {"groups": {"ahead": ["x0", "x1"]}, "significance": 0.01}),
    "plan, episodes": partial(planned, data.gaussian, {"episodes": np.arange(160) // 8, "confidence": 0.5}),
    "intervals, gaussian": partial(intervals, False),
    "intervals, boltzmann": partial(intervals, True),
    "formulas of the theory": bounds,
}
PROBLEMS |= {f"theory, {family}": partial(assessed, make, space) for family, (make, space) in FAMILIES.items()}
PROBLEMS |= {f"theory, {family}": partial(sizeless, assessed, make, {}) for family, make in SIZELESS.items()}
PROBLEMS |= {
    f"command {command}, {' '.join(arguments)}": partial(commands, command, arguments)
    for command, arguments in (
        ("identify", ("--weight", "count")),
        ("identify", ("labels", "--rule", "combinatorial", "--assume", "far")),
        ("identify", ("labels", "--firth", "--features", "near,far,left")),
        ("plan", ("labels", "--power", "0.8", "--features", "near,far,left,weather")),
        ("theory", ("--covariance", "1", "--features", "near,far,left")),
    )
}
