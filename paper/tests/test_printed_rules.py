"""The rules as printed, against the same rules written out with sets."""

from itertools import combinations

import numpy as np
import pytest
from policyspace_paper.printed import all_of, both_rules, one_out, rule_1, rule_2
from scipy.stats import chi2

from policyspace import GaussianLinear, Sample, combinatorial, likelihood_of, simplified

NAMES = ("a", "b", "c", "d")
SPACE = GaussianLinear(NAMES, ("x", "y"), 1.0)


def test_supports_stand_where_their_bits_say():
    supports = all_of(SPACE)
    assert len(supports) == 16 and supports[-1] == SPACE.full_support
    assert SPACE.named(supports[0b0101]) == ["a", "c"]
    assert [SPACE.named(s) for s in one_out(SPACE)] == [[n for n in NAMES if n != out] for out in NAMES]


@pytest.mark.parametrize("seed", range(20))
def test_rule_1_is_its_definition_even_where_the_statistic_is_negative(seed):
    """λ drawn at random: neither monotone nor positive, as the ends of Adam's paths may be."""
    statistics = np.append(np.random.default_rng(seed).normal(12, 12, size=15), 0.0)
    value = {frozenset(SPACE.named(s)): x for s, x in zip(all_of(SPACE), statistics, strict=True)}

    def holds(support):
        zeroed = 2 * (4 - len(support))
        return not zeroed or value[support] <= chi2.ppf(1 - 0.1 / 16, zeroed)

    everything = [frozenset(s) for size in range(5) for s in combinations(NAMES, size)]
    expected = {s for s in everything if holds(s) and not any(holds(s - {i}) for i in s)}
    assert {frozenset(found) for found in rule_1(SPACE, statistics, 0.1)} == expected


def test_on_exact_maxima_they_are_the_rules_of_the_library():
    rng = np.random.default_rng(7)
    features = rng.normal(size=(120, 4))
    actions = features @ rng.normal(size=(4, 2)) * np.array([0.3]) + rng.normal(size=(120, 2))
    data = Sample(features, actions, NAMES, ("x", "y"))
    likelihood = likelihood_of(SPACE, data)
    values = np.array([fit.log_likelihood for fit in likelihood.fit_many(all_of(SPACE))])
    found = both_rules(SPACE, 2 * (likelihood.full.log_likelihood - values), 0.1)
    first = combinatorial(SPACE, data, 0.1, paper_rule=True, test="wilks", checked=False)
    second = simplified(SPACE, data, 0.1, "bonferroni", test="wilks", checked=False)
    assert sorted(map(tuple, found["rule_1"])) == sorted(first.supports)
    assert tuple(found["rule_2"]) == second.selected
    assert found["statistics"] == {t.group: pytest.approx(t.statistic, abs=1e-3) for t in second.groups}


def test_rule_2_tests_all_units_at_the_same_level():
    critical = chi2.ppf(1 - 0.1 / 4, 2)
    assert rule_2(SPACE, np.array([critical - 0.01, critical + 0.01, -5.0, 100.0]), 0.1) == ["b", "d"]
