"""`calibration`: how often tests, degrees of freedom and rules err where the truth is known, against what they promise."""

from typing import Any

import numpy as np
from scipy.special import chdtri

from policyspace.configuration.batch_tests import outcome_of_batch
from policyspace.configuration.schedule import Schedule
from policyspace.data.chunks import single_threaded_blas
from policyspace.data.demonstrations import Demonstrations
from policyspace.experiments.records import Cell
from policyspace.experiments.scale import Scale
from policyspace.fits import likelihood_of
from policyspace.inference.levels import SCENARIOS, measure
from policyspace.policies import BoltzmannLinear, GaussianLinear

RUNS = 1
"""The paper has no such table: `--runs` multiplies the simulated data sets below."""

SIGNIFICANCE = 0.05

TESTS = {
    "linear": {
        "wilks": (10, 100),
        "bootstrap": (8, 10),
        "universal": (4, 50),
        "eprocess": (2, 50),
        "mixture": (4, 100),
    },
    "linear-long": {"wilks": (2, 100), "universal": (2, 100), "eprocess": (3, 20), "mixture": (2, 100)},
    "separated": {
        "wilks": (4, 100),
        "firth": (2, 100),
        "bootstrap": (4, 10),
        "universal": (4, 50),
        "eprocess": (2, 50),
    },
    "peeking": {"wilks": (4, 20), "mixture": (4, 20), "eprocess": (4, 20)},
    "network": {"wilks": (6, 5), "universal": (4, 5), "bootstrap": (7, 2)},
}
"""How many cells of how many data sets, by scenario and test: a cell takes at most half a minute."""

QUICK_TESTS = {
    "linear": {"wilks": (1, 50)},
    "separated": {"wilks": (1, 20), "firth": (1, 20)},
    "peeking": {"wilks": (1, 4), "eprocess": (1, 4)},
}

RULES: dict[str, dict[str, Any]] = {
    "simplified": {"rule": "simplified", "num_rounds": 1, "paper_rule": False},
    "simplified, paper": {"rule": "simplified", "num_rounds": 1, "paper_rule": True},
    "combinatorial": {"rule": "combinatorial", "num_rounds": 1, "paper_rule": False},
    "combinatorial, paper": {"rule": "combinatorial", "num_rounds": 1, "paper_rule": True},
    "simplified, united": {"rule": "simplified", "num_rounds": 10, "paper_rule": False},
    "simplified, united, paper": {"rule": "simplified", "num_rounds": 10, "paper_rule": True},
    "combinatorial, united": {"rule": "combinatorial", "num_rounds": 10, "paper_rule": False},
    "combinatorial, united, paper": {"rule": "combinatorial", "num_rounds": 10, "paper_rule": True},
}
"""One round, and ten: the first and N_conf = 3 for each of the three features that the agent does not control."""

BOLTZMANN_WEIGHTS = np.array([[0.2, 0.8, -0.4, 0.0], [-0.1, 0.3, 0.5, 0.0], [0.0, -0.6, 0.2, 0.0]])
BOLTZMANN_PAIRS = 400
GAUSSIAN_FEATURES, GAUSSIAN_PAIRS, SIZES = 8, 100, (1, 2, 4, 6, 7)


def cells(scale: Scale) -> list[Cell]:
    """Data sets in batches with a seed each; a multiple of them with `runs`. The paper's settings change nothing here."""
    times = scale.num_runs(RUNS, 1)
    settings: list[tuple[dict[str, Any], int]] = [
        ({"kind": "test", "scenario": scenario, "test": test, "num_runs": size}, batches)
        for scenario, tests in (QUICK_TESTS if scale.quick else TESTS).items()
        for test, (batches, size) in tests.items()
    ]
    for policy in ("boltzmann", "gaussian"):
        batches, size = (1, 50) if scale.quick else (5, 400)
        settings.append(({"kind": "degrees", "policy": policy, "num_runs": size}, batches))
    for name, options in RULES.items():
        costs = options["num_rounds"] * (4 if options["rule"] == "combinatorial" else 1)
        batches, size = (1, max(2, 40 // costs)) if scale.quick else (4, max(10, 400 // costs))
        settings.append(({"kind": "rule", "name": name, **options, "num_runs": size}, batches))
    return [
        Cell("calibration", {**setting, "significance": SIGNIFICANCE, "seed": seed})
        for setting, batches in settings
        for seed in range(batches * times)
    ]


@single_threaded_blas()
def run(setting: dict[str, Any]) -> dict[str, Any]:
    """One batch: in how many of its data sets anything false was found, and how much of the truth."""
    kind, num_runs, level, seed = (setting[name] for name in ("kind", "num_runs", "significance", "seed"))
    if kind == "test":
        scenario = SCENARIOS[setting["scenario"]]
        found = measure(scenario, setting["test"], num_runs, level, seed)
        return {"errors": round(found.error * num_runs), "power": found.power}
    if kind == "rule":
        return _rule(setting)
    one = _boltzmann_statistics if setting["policy"] == "boltzmann" else _gaussian_statistics
    counts: dict[str, int] = {}
    for r in range(num_runs):
        for name, statistic, degrees in one(np.random.default_rng([seed, r])):
            counts[name] = counts.get(name, 0) + bool(statistic > chdtri(degrees, level))
    return {"rejections": counts}


def _rule(setting: dict[str, Any]) -> dict[str, Any]:
    """Fresh data sets of the linear scenario, united as the rounds of the configuring loop are."""
    scenario = SCENARIOS["linear"]
    truth, errors, found, exact = set(scenario.controlled), 0, 0, 0
    for r in range(setting["num_runs"]):
        rng = np.random.default_rng([setting["seed"], r])
        space = scenario.draw(rng)[0]
        schedule = Schedule.of(
            space,
            joint=True,
            significance=setting["significance"],
            rule=setting["rule"],
            attempts=setting["num_rounds"] - 1,
            paper_rule=setting["paper_rule"],
            test="batches",
        )
        united: tuple[str, ...] = ()
        supports: list[list[str]] | None = None
        for _ in range(setting["num_rounds"]):
            outcome = outcome_of_batch(space, schedule, scenario.draw(rng)[1], united, supports)
            united, supports = outcome.selected, outcome.supports or None
        selected = set(united)
        errors += bool(selected - truth)
        found += len(selected & truth)
        exact += selected == truth
    return {"errors": errors, "power": found / (setting["num_runs"] * len(truth)), "exact": exact}


def _boltzmann_statistics(rng: np.random.Generator) -> list[tuple[str, float, int]]:
    """λ of a feature of no weight among four actions, and of one of its three weights, with degrees of freedom to try."""
    names, actions = ("x0", "x1", "x2"), ("up", "down", "left", "right")
    features = rng.normal(size=(BOLTZMANN_PAIRS, 3))
    by_feature = BoltzmannLinear(names, actions)
    actions_taken = by_feature.sample(rng, BOLTZMANN_WEIGHTS.ravel(), features)
    data = Demonstrations(features, actions_taken, names, actions)
    by_weight = BoltzmannLinear(names, actions, groups="parameter")
    feature = _statistic(by_feature, data, next(i for i, g in enumerate(by_feature.groups) if g.name == "x2"))
    weight = _statistic(by_weight, data, next(i for i, g in enumerate(by_weight.groups) if g.indices == (3,)))
    return [("feature, 3", feature, 3), ("feature, 4", feature, 4), ("weight, 1", weight, 1)]


def _statistic(space: BoltzmannLinear, data: Demonstrations, group: int) -> float:
    likelihood = likelihood_of(space, data)
    smaller = likelihood.fit(space.everything - {group})
    return 2 * (likelihood.full.log_likelihood - smaller.log_likelihood)


def _gaussian_statistics(rng: np.random.Generator) -> list[tuple[str, float, int]]:
    """λ_I of the sets of the first |I| features, of which the agent uses one; d − |I| and the paper's |I| to try."""
    d = GAUSSIAN_FEATURES
    names = tuple(f"x{j}" for j in range(d))
    space = GaussianLinear(names, covariance=1.0, intercept=False)
    features = rng.normal(size=(GAUSSIAN_PAIRS, d))
    actions = features[:, :1] * 0.5 + rng.normal(size=(GAUSSIAN_PAIRS, 1))
    likelihood = likelihood_of(space, Demonstrations(features, actions, names, space.row_names))
    of_all = likelihood.statistics_of_all(list(range(d)))
    return [
        (f"{size}, {words}", float(of_all[2**size - 1]), degrees)
        for size in SIZES
        for words, degrees in (("d − |I|", d - size), ("|I|", size))
    ]
