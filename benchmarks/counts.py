"""How often features that nobody uses are rejected in counts: `python -m benchmarks.counts --runs 100 --seed 1`.

Decisions are counted in 20 to 60 states, each with a chance of its own (beta-binomial) or with one chance for all; events
are counted in 40 to 300 rows, with a spread beyond Poisson's. The likelihood ratio and the test by state, or by row, at .05.
"""

import argparse

import numpy as np

from policyspace import PolicySpec, Sample, likelihood_of
from policyspace.inference import RobustWald, WilksTest

NAMES = ("a", "b", "c")
LEVEL = 0.05


def decisions(rng: np.random.Generator, states: int, shared: bool) -> Sample:
    """Two labels counted in some states, which no feature has to do with."""
    features = np.column_stack([rng.normal(size=(states, 2)), rng.integers(0, 2, states)])
    trials = rng.integers(5, 60, states)
    hits = rng.binomial(trials, rng.beta(5, 5, states) if shared else 0.4)
    counts = np.stack([hits, trials - hits], axis=1).ravel().astype(float)
    return Sample(np.repeat(features, 2, axis=0), np.tile([0, 1], states), NAMES, ("yes", "no"), weights=counts)


def events(rng: np.random.Generator, rows: int) -> Sample:
    """Counts of events with the variance μ + μ²."""
    return Sample.from_arrays(rng.normal(size=(rows, 3)), rng.poisson(1.6 * rng.gamma(1, 1, rows)), NAMES, counts=True)


def rejected(data: Sample) -> np.ndarray:
    """How many features are rejected by the likelihood ratio and by the robust test."""
    space = PolicySpec("poisson" if data.counts else None).bind(data)
    likelihood = likelihood_of(space, data)
    supports = [space.support_without(g) for g in space.tested]
    tests = (WilksTest(likelihood), RobustWald(likelihood, data))
    return np.array([sum(found.p_value <= LEVEL for found in test.test_many(supports)) for test in tests])


def main() -> None:
    """A line a cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    words = parser.parse_args()
    rng = np.random.default_rng(words.seed)
    cells = [("one chance", states, False) for states in (20, 30, 60)] + [
        ("own chances", n, True) for n in (20, 30, 60)
    ]
    print("| counts | units | likelihood ratio | robust |\n|---|---|---|---|")
    for name, size, shared in cells:
        found = sum((rejected(decisions(rng, size, shared)) for _ in range(words.runs)), np.zeros(2)) / (3 * words.runs)
        print(f"| decisions, {name} | {size} states | {found[0]:.3f} | {found[1]:.3f} |", flush=True)
    for size in (40, 100, 300):
        found = sum((rejected(events(rng, size)) for _ in range(words.runs)), np.zeros(2)) / (3 * words.runs)
        print(f"| events | {size} rows | {found[0]:.3f} | {found[1]:.3f} |", flush=True)


if __name__ == "__main__":
    main()
