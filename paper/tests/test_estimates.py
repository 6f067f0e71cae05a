"""Means and rates with their intervals, against closed forms and another library."""

import numpy as np
import pytest
from policyspace_paper.estimates import Mean, Rate, mean_of, mean_share
from scipy.stats import beta, t
from statsmodels.stats.proportion import proportion_confint


def test_intervals_are_clopper_and_pearsons():
    for count, runs in ((0, 20), (3, 40), (40, 40)):
        found = Rate(count, runs, "x", 0.05).interval
        np.testing.assert_allclose(found, proportion_confint(count, runs, method="beta"), atol=1e-9)
    assert Rate(3, 40, "x", 0.05).interval[0] == pytest.approx(beta.ppf(0.025, 3, 38))


def test_a_rate_is_judged_by_its_interval():
    assert Rate(0, 20, "x", 0.05).verdict == "as promised"  # 20 runs cannot show more
    assert Rate(0, 200, "x", 0.05).verdict == "less often"
    assert Rate(10, 40, "x", 0.05).verdict == "too often"
    assert Rate(2, 40, "x", 0.05).words == "0.050 (0.006–0.169)"


def test_a_mean_has_students_interval():
    values = [0.5, -1.0, 2.0, 0.25]
    found = mean_of(values, 0.9)
    assert found.value == pytest.approx(0.4375)
    half = t.ppf(0.95, 3) * np.std(values, ddof=1) / 2
    assert (found.low, found.high) == (pytest.approx(0.4375 - half), pytest.approx(0.4375 + half))
    assert Mean(-0.125, 0.25, 4).rounded(3) == "−0.125 ± 0.250"


def test_one_run_says_nothing_about_the_spread():
    one = mean_of([2.0])
    assert (one.margin, one.low, one.high, one.words) == (None, -np.inf, np.inf, "2.00")
    assert one.numbers == {"mean": 2.0, "margin": None, "runs": 1}


def test_shares_that_are_all_none_or_all_have_the_interval_of_their_units():
    none, everything = mean_share([0.0] * 25, 200), mean_share([1.0] * 25)
    assert none.value == 0 and none.low == 0
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 200))  # the largest p at which none of 200 is no surprise
    assert (everything.low, everything.high) == (pytest.approx(0.025 ** (1 / 25)), 1.0)
    assert none.rounded(3) == "0.000 (0.000–0.018)" and none.numbers["high"] == none.high
    assert mean_share([0.0, 0.5, 0.25], 12) == mean_of([0.0, 0.5, 0.25])
    assert mean_share([0.5, 0.5], 8) == mean_of([0.5, 0.5]) and mean_share([0.0]) == mean_of([0.0])
