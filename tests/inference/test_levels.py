"""Type-I error and power at fixed seeds: every test keeps its level where it claims to, and Wilks' failures are real."""

import pytest
from policyspace_paper.calibration import SCENARIOS, measure
from scipy.stats import binom

NOMINAL = 0.05


def within(level, nominal=NOMINAL):
    """Whether so many errors are believable at the nominal level: their chance is above one in a thousand."""
    return binom.sf(round(level.error * level.num_runs) - 1, level.num_runs, nominal) > 1e-3


def test_levels_are_reproducible_and_count_what_they_say():
    first, second = (measure(SCENARIOS["linear"], "universal", 5, seed=3) for _ in range(2))
    assert first == second
    assert first.error == 0.0 and first.num_runs == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "test", "runs", "power"),
    [
        ("linear", "wilks", 300, 0.8),
        ("linear", "bootstrap", 60, 0.8),
        ("linear-long", "universal", 100, 0.5),
        ("linear-long", "eprocess", 40, 0.5),
        ("linear", "mixture", 300, 0.5),
        ("separated", "firth", 60, 0.8),
        ("separated", "bootstrap", 20, 0.7),
        ("separated", "universal", 200, 0.3),
        ("separated", "eprocess", 60, 0.2),
        ("network", "bootstrap", 10, 0.8),
        ("network", "universal", 15, 0.4),
        ("peeking", "eprocess", 50, 0.6),
        ("peeking", "mixture", 60, 0.8),
    ],
)
def test_the_level_is_kept(scenario, test, runs, power):
    level = measure(SCENARIOS[scenario], test, runs)
    assert within(level), level
    assert level.power >= power, level


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "runs"), [("network", 10), ("peeking", 40), ("separated", 100)])
def test_wilks_does_not_keep_it_there(scenario, runs):
    level = measure(SCENARIOS[scenario], "wilks", runs)
    assert not within(level), level
