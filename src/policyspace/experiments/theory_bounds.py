"""`theory`: the bounds of Section 4 against simulation, and sample sizes proven, planned and seen."""

from functools import cache
from typing import Any

import numpy as np

from policyspace import theory as bounds
from policyspace.data.chunks import single_threaded_blas
from policyspace.data.demonstrations import Demonstrations
from policyspace.experiments.records import Cell
from policyspace.experiments.scale import Scale
from policyspace.fits import likelihood_of
from policyspace.fits.law import ChiSquare
from policyspace.inference.rules import one_at_a_time
from policyspace.inference.wilks import WilksTest
from policyspace.policies import BoltzmannLinear, GaussianLinear

RUNS = 1
"""The paper simulates no bound: `--runs` multiplies the simulated data sets below."""

FEATURES = ("a", "b", "c")
WEIGHTS = {
    "gaussian": np.array([[0.2, 0.5, -0.3, 0.0]]),
    "boltzmann": np.array([[0.2, 0.9, -0.5, 0.0], [-0.1, 0.3, 0.6, 0.0]]),
}
"""A constant and three features on [−1, 1], of which the agent does not control the last."""
COVARIANCE = 0.5

PAIRS = (100, 1000)
FACTORS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Of the number of pairs that is planned."""
CONCENTRATION_LEVEL, CORRECTNESS_LEVEL = 0.1, 0.05


def cells(scale: Scale) -> list[Cell]:
    """Data sets in batches with a seed each; a multiple of them with `runs`. The paper's settings change nothing here."""
    batches, size = (1, 40) if scale.quick else (5, 100)
    batches *= scale.num_runs(RUNS, 1)
    found = []
    for family in WEIGHTS:
        for n in PAIRS:
            setting = {"kind": "concentration", "num_pairs": n, "significance": CONCENTRATION_LEVEL}
            found.append(setting | {"family": family, "num_runs": size})
        for factor in (0.5, 1.0) if scale.quick else FACTORS:
            setting = {"kind": "correctness", "factor": factor, "significance": CORRECTNESS_LEVEL}
            found.append(setting | {"family": family, "num_runs": size})
    return [Cell("theory", {**setting, "seed": seed}) for setting in found for seed in range(batches)]


@single_threaded_blas()
def run(setting: dict[str, Any]) -> dict[str, Any]:
    """One batch of simulated data sets of one agent."""
    return _concentration(setting) if setting["kind"] == "concentration" else _correctness(setting)


def agent(family: str) -> tuple[GaussianLinear | BoltzmannLinear, np.ndarray]:
    """The policy space of a family, and θ*."""
    if family == "gaussian":
        return GaussianLinear(FEATURES, covariance=COVARIANCE), WEIGHTS[family].ravel()
    return BoltzmannLinear(FEATURES, ("left", "right", "stay")), WEIGHTS[family].ravel()


@cache
def expectation(family: str) -> bounds.Assessment:
    """What theory and planning say when nothing is unknown: θ*, its gaps and λ_min over a fine grid of states.

    Actions weighted by their probabilities make θ* the best fit, and λ_i/n of every group 2·KL(θ*‖Θ_i).
    """
    space, theta = agent(family)
    middle = (np.arange(12) + 0.5) / 6 - 1
    states = np.stack(np.meshgrid(middle, middle, middle), axis=-1).reshape(-1, 3)
    if not space.discrete:
        data = Demonstrations(states, np.asarray(space.natural(theta, states)), FEATURES, space.action_names)
    else:
        codes = np.tile(np.arange(3), len(states))
        rows = np.repeat(states, 3, axis=0)
        weights = np.exp(np.asarray(space.log_prob(theta, rows, codes)))
        data = Demonstrations(rows, codes, FEATURES, space.action_names, weights=weights)
    return bounds.assess_likelihood(likelihood_of(space, data), data, CORRECTNESS_LEVEL)


def _simulate(
    space: GaussianLinear | BoltzmannLinear, theta: np.ndarray, n: int, rng: np.random.Generator
) -> Demonstrations:
    states = rng.uniform(-1, 1, size=(n, 3))
    return Demonstrations(states, space.sample(rng, theta, states), FEATURES, space.action_names)


def _concentration(setting: dict[str, Any]) -> dict[str, Any]:
    """Everything that Theorem 4.1 and Lemma A.3 bound, as a share of its bound, one number a data set."""
    space, theta = agent(setting["family"])
    n, d, delta = setting["num_pairs"], space.num_parameters, setting["significance"]
    shares: dict[str, list[float]] = {"score": [], "parameters": [], "expected": [], "empirical": []}
    for r in range(setting["num_runs"]):
        data = _simulate(space, theta, n, np.random.default_rng([setting["seed"], r]))
        states, actions, full = data.features, data.actions, likelihood_of(space, data).full
        scale = bounds.subgaussian_scale(space, bounds.plug_in_feature_bound(space, states))
        # The theorem needs the smallest eigenvalue on the way from θ* to θ̂.
        way = [theta + t * (full.theta - theta) for t in (0.0, 0.5, 1.0)]
        smallest = min(bounds.smallest_eigenvalue(bounds.empirical_fisher(space, t, states)) for t in way)
        score = np.asarray(space.score(theta, states, actions)).mean(axis=0)
        eta, fitted = space.natural(theta, states), space.natural(full.theta, states)
        gained = np.sum((fitted - eta) * space.cumulant_gradient(eta), axis=1)
        expected = float(np.mean(space.cumulant(fitted) - space.cumulant(eta) - gained))
        empirical = (full.log_likelihood - float(np.sum(space.log_prob(theta, states, actions)))) / n
        most = bounds.likelihood_bound(n, d, scale, smallest, delta)
        shares["score"].append(float(np.linalg.norm(score)) / bounds.score_bound(n, d, scale, delta))
        error = float(np.linalg.norm(full.theta - theta))
        shares["parameters"].append(error / bounds.parameter_bound(n, d, scale, smallest, delta))
        shares["expected"].append(float(expected / most))
        shares["empirical"].append(float(empirical / most))
    return {"shares": shares}


def _correctness(setting: dict[str, Any]) -> dict[str, Any]:
    """Rule 2 on data sets of the planned size times a factor, beside what is foretold for that size."""
    space, theta = agent(setting["family"])
    foretold, delta = expectation(setting["family"]), setting["significance"]
    assert foretold.typical_pairs is not None and foretold.setting is not None
    n = round(setting["factor"] * foretold.typical_pairs)
    level = delta / 2 / (foretold.num_tests - len(foretold.gaps))  # as planned: half of δ for each kind of error
    found = dict.fromkeys(FEATURES, 0)
    exact = 0
    for r in range(setting["num_runs"]):
        data = _simulate(space, theta, n, np.random.default_rng([setting["seed"], r]))
        tests = one_at_a_time(WilksTest(likelihood_of(space, data)), level).tests
        selected = {space.groups[g].name for g, test in tests.items() if test.p_value <= level}
        exact += selected == set(foretold.gaps)
        for name in selected:
            found[name] += 1
    law, size = ChiSquare(), len(space.row_names)
    power = {name: law.power(2 * n * gap, level, size) for name, gap in foretold.gaps.items()}
    return {
        "num_pairs": n,
        "exact": exact,
        "found": found,
        "controlled": sorted(foretold.gaps),
        "predicted": {name: power.get(name, level) for name in FEATURES},
        "bound": bounds.best_critical_value(n, foretold.setting)[1],
        "planned_pairs": foretold.typical_pairs,
        **proven(foretold, delta),
    }


def proven(foretold: bounds.Assessment, significance: float) -> dict[str, float]:
    """The n from which Theorem 4.2 proves Rule 2 right, and P(Î ≠ I*) there, with its c(1), by the law of λ."""
    assert foretold.setting is not None
    n = bounds.pairs_for_correctness(significance, foretold.setting)
    critical = n * bounds.best_critical_value(n, foretold.setting)[0]
    law, size = ChiSquare(), foretold.num_parameters // (len(FEATURES) + 1)
    false = (foretold.num_tests - len(foretold.gaps)) * law.p_value(critical, size)
    missed = sum(law.cumulative(critical, 2 * n * gap, size) for gap in foretold.gaps.values())
    return {"proven_pairs": n, "wrong_when_proven": false + missed}
