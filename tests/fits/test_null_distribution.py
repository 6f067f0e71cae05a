"""The laws of λ against scipy.stats: tails, quantiles, power, and Rao's F against simulation."""

import numpy as np
import pytest
from scipy import stats

from policyspace.families import ChiSquare, WilksLambda, WorstCaseThreshold

LEVELS = (0.5, 0.05, 1e-3, 0.05 / 2**20)


@pytest.mark.parametrize("m", [1, 2, 5, 48])
@pytest.mark.parametrize("level", LEVELS)
def test_chi_square_is_scipys(m, level):
    law = ChiSquare()
    assert law.critical(level, m) == pytest.approx(stats.chi2.isf(level, m), rel=1e-10)
    assert law.p_value(law.critical(level, m), m) == pytest.approx(level, rel=1e-9)
    assert law.p_value(700.0, m) == pytest.approx(stats.chi2.sf(700.0, m), rel=1e-9)
    assert law.power(9.0, level, m) == pytest.approx(
        stats.ncx2.sf(stats.chi2.isf(level, m), m, 9.0), rel=1e-6, abs=1e-12
    )


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("m", [1, 2, 6])
def test_one_action_is_the_f_test(m, level):
    n, q = 40, 7
    law = WilksLambda(n, q, 1)
    f = stats.f.isf(level, m, n - q)
    assert law.critical(level, m) == pytest.approx(n * np.log1p(f * m / (n - q)), rel=1e-9)
    assert law.p_value(law.critical(level, m), m) == pytest.approx(level, rel=1e-8)
    assert law.power(9.0, level, m) == pytest.approx(stats.ncf.sf(f, m, n - q, 9.0), rel=1e-6, abs=1e-10)


@pytest.mark.parametrize(("k", "h"), [(2, 1), (2, 3), (3, 1), (3, 2), (4, 4)])
def test_several_actions_follow_the_law_of_determinant_ratios(k, h):
    # Λ = Π B_i, B_i ~ Beta((ν − i + 1)/2, h/2): the exact law, simulated without any regression.
    n, q, draws = 30, 8, 40_000
    rng = np.random.default_rng(0)
    ratios = np.prod([rng.beta((n - q - i) / 2, h / 2, draws) for i in range(k)], axis=0)
    law = WilksLambda(n, q, k)
    for level in (0.5, 0.1, 0.02):
        critical = law.critical(level, k * h)
        seen = np.mean(-n * np.log(ratios) > critical)
        assert abs(seen - level) < 4.5 * np.sqrt(level * (1 - level) / draws)
        assert law.p_value(critical, k * h) == pytest.approx(level, rel=1e-8)


@pytest.mark.parametrize("law", [ChiSquare(), WilksLambda(50, 4, 2), WorstCaseThreshold(ChiSquare(), 5)])
def test_what_fixes_nothing_cannot_be_rejected(law):
    assert law.critical(0.05, 0) == np.inf
    assert law.p_value(3.0, 0) == 1.0
    assert law.power(100.0, 0.05, 0) == 0.0


@pytest.mark.parametrize("law", [ChiSquare(), WilksLambda(60, 10, 1)])
def test_critical_values_grow_with_the_degrees_of_freedom(law):
    # Rule 1 sets groups aside by the critical value of the smallest support, which must be the largest of all.
    for level in LEVELS:
        criticals = [law.critical(level, m) for m in range(1, 11)]
        assert (np.diff(criticals) > 0).all()


def test_the_constant_threshold_is_that_of_the_smallest_support():
    law = WorstCaseThreshold(ChiSquare(), 7)
    for m in (1, 3, 7):
        assert law.critical(0.05, m) == pytest.approx(stats.chi2.isf(0.05, 7), rel=1e-12)
        assert law.p_value(9.0, m) == pytest.approx(stats.chi2.sf(9.0, 7), rel=1e-12)
