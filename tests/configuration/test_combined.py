"""Evidence over rounds: the law of its sum, against integrals and simulation, and the promise over all looks."""

import numpy as np
import pytest
from scipy.stats import binom

from policyspace import GaussianLinear, Sample, simplified
from policyspace.inference import holm
from policyspace.study import (
    Round,
    Schedule,
    Status,
    combined_p_value,
    evidence_rows,
    log_evidence,
    looked_at,
    outcome_with_rounds_before,
)


def test_an_e_value_has_the_mean_one_under_a_uniform_p():
    log_p = np.linspace(-400, 0, 2_000_001)
    values = np.exp(log_evidence(np.exp(log_p))) * np.exp(log_p)
    assert np.trapezoid(values, log_p) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("p", [1.0, 0.3, 1e-2, 1e-5, 1e-12, 1e-20])
def test_the_evidence_of_one_round_is_its_p_value(p):
    """Rounded up, never down, by no more than the grid."""
    found = combined_p_value(float(log_evidence(np.array([p]))[0]), 1)
    assert p * (1 - 1e-12) <= found <= p * 1.01


@pytest.mark.parametrize("total", [0.0, 2.0, 5.0, 15.0, 30.0])
def test_two_rounds_agree_with_the_integral(total):
    """P(X + Y ≥ t) = ∫ P(Y ≥ t − x(u)) du over log u, by the midpoint rule."""
    edges = np.linspace(-60, 0, 1_000_001)
    log_u = (edges[1:] + edges[:-1]) / 2
    rest = (np.exp(total - log_evidence(np.exp(log_u))) - 0.5) / 0.05
    tail = np.where(rest <= 1, 1.0, np.maximum(rest, 1.0) ** (-1 / 0.9))
    exact = float((tail * np.exp(log_u)).sum() * (edges[1] - edges[0])) + np.exp(-60)
    assert exact * (1 - 1e-6) <= combined_p_value(total, 2) <= exact * 1.005


@pytest.mark.parametrize("num_rounds", [3, 8])
def test_more_rounds_agree_with_simulation(num_rounds):
    sums = log_evidence(np.random.default_rng(1).random((400_000, num_rounds))).sum(axis=1)
    for share in (0.5, 0.9, 0.99, 0.999):
        found = combined_p_value(float(np.quantile(sums, share)), num_rounds)
        assert abs(found - (1 - share)) < 5 * np.sqrt(share * (1 - share) / len(sums)) + 0.005 * (1 - share)


def test_any_look_errs_as_rarely_as_promised_though_rounds_depend_on_what_was_seen():
    """Whether a round can test the unit at all depends on the evidence before it: min_s p^(s)/a_s stays a p-value."""
    shares, runs, level = Schedule(("a",), True, test="combined").shares, 4000, 0.05
    rng, false = np.random.default_rng(2), 0
    for _ in range(runs):
        looks = {}
        for number in range(4):
            testable = not looks or looks["a"].log_evidence < rng.normal()
            looks = looked_at({"a": rng.random() if testable else 1.0}, looks, number, shares)
        false += looks["a"].p_value <= level
    assert binom.sf(false - 1, runs, level) > 1e-3, f"{false} of {runs}"
    assert false > 0.3 * level * runs  # and not for want of ever saying anything


def round_of(rows, number):
    return Round(number, {}, None, (), {}, 1, number + 1, 0.0, rows, (), (), (), [])


def test_weak_evidence_of_every_round_shows_together_and_stays():
    """p = 0.004 in each of four rounds: none is below δ/4/2, all together are."""
    shares, rounds = Schedule(("a", "b"), True, significance=0.01, test="combined").shares, []
    for number in range(4):
        tests = [{"group": "a", "p_value": 0.004}]
        rows = {row["group"]: row for row in evidence_rows(tests, ("a", "b"), rounds, shares, 0.01)}
        rounds.append(round_of(list(rows.values()), number))
        assert rows["b"]["p_value"] == 1.0 and not rows["b"]["testable"] and not rows["b"]["rejected"]
    assert rows["a"]["rejected"] and not rounds[0].tests[0]["rejected"]
    p_values = [r.tests[0]["combined_p_value"] for r in rounds]
    assert p_values == sorted(p_values, reverse=True)
    later = evidence_rows([], ("a", "b"), [*rounds[:3], round_of(rounds[3].tests, 3)], (*shares, 1.0), 0.01)
    assert later[0]["rejected"], "what was shown is not taken back"


def test_what_was_selected_is_not_tested_again_and_changes_nothing_for_the_others():
    """The same rounds with every unit tested in each, combined by hand: the same units are selected after every round."""
    space = GaussianLinear(tuple("abcd"), ("push",), 1.0)
    schedule = Schedule.of(space, True, significance=0.1, max_rounds=3)
    rng, rounds, looks, again = np.random.default_rng(3), [], {}, 0
    for number in range(4):
        features = rng.normal(size=(60, 4))
        actions = features @ np.array([0.6, 0.3, 0.15, 0.0]) + rng.normal(size=60)
        data = Sample(features, actions[:, None], tuple("abcd"), ("push",), np.arange(60) // 4)
        found = outcome_with_rounds_before(space, Status(schedule, rounds), data)
        alone = {test.group: test.p_value for test in simplified(space, data, test="wilks", checked=False).groups}
        looks = looked_at(alone, looks, number, schedule.shares)
        shown = holm(np.array([looks[unit].p_value for unit in "abcd"])) <= 0.1
        assert found.selected == tuple(unit for unit, so in zip("abcd", shown, strict=True) if so)
        for row in found.tests:
            before = rounds[-1].selected if rounds else ()
            assert row["testable"] == (row["group"] not in before)
            again += row["group"] in before
        rounds.append(Round(number, {}, None, (), {}, 15, 15 * (number + 1), 0.0, *found[:5]))
    assert again >= 3 and "d" not in rounds[-1].selected


def test_units_that_are_not_controlled_are_selected_as_rarely_as_promised_over_batches():
    """Two rounds of a linear agent whose other weights change: P(any false) ≤ δ."""
    space = GaussianLinear(tuple("abcd"), ("push",), 1.0)
    schedule = Schedule.of(space, True, significance=0.1, max_rounds=1)
    assert schedule.test == "combined"
    rng, runs, false = np.random.default_rng(5), 300, 0
    for _ in range(runs):
        rounds = []
        for number in range(2):
            features = rng.normal(size=(40, 4))
            actions = features @ np.array([0.4, rng.normal(), 0.0, 0.0]) + rng.normal(size=40)
            data = Sample(features, actions[:, None], tuple("abcd"), ("push",), np.arange(40) // 4)
            found = outcome_with_rounds_before(space, Status(schedule, rounds), data)
            rounds.append(Round(number, {}, None, (), {}, 10, 10 * (number + 1), 0.0, *found[:5]))
        false += bool({"c", "d"} & set(rounds[-1].selected))
    assert binom.sf(false - 1, runs, 0.1) > 1e-3, f"{false} of {runs}"
