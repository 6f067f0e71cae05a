"""The e-process over batches: evidence that multiplies, and errs as rarely as promised however often it is tested."""

import numpy as np
import pytest
from scipy.stats import binom

from policyspace import GaussianLinear, Sample, SoftmaxLinear, likelihood_of
from policyspace.inference import EProcess
from policyspace.study import History, evidence_after

LINEAR = GaussianLinear(tuple("abc"), ("push",), 1.0)


def linear_batch(seed, weights, num_episodes=12):
    """Episodes of five steps of an agent whose third weight is whatever it is given."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(5 * num_episodes, 3))
    actions = (features @ np.asarray(weights))[:, None] + rng.normal(size=(len(features), 1))
    return Sample(features, actions, tuple("abc"), ("push",), np.arange(len(features)) // 5)


def moved(rows, told):
    """What was told so far, all of it in other configurations."""
    by_unit = {row["group"]: row for row in rows}
    return History(by_unit, by_unit, (), told)


def test_evidence_is_that_of_the_batches_multiplied():
    """By the e-process test of each batch alone: E = Π (½ + ½ E_b)."""
    batches = [linear_batch(1, (0.6, 0.1, 0.0)), linear_batch(2, (0.2, 0.3, 0.0), 20), linear_batch(3, (0.4, 0.0, 0.0))]
    rows, told, expected = [], 0, dict.fromkeys("abc", 0.0)
    for batch in batches:
        units = evidence_after(LINEAR, batch, 1e-9, moved(rows, told))  # at such a level nothing is ever decided
        rows, told = [unit.to_dict() for unit in units], told + batch.num_episodes
        alone = EProcess(likelihood_of(LINEAR, batch), batch)
        for g in LINEAR.tested:
            log_e = alone.test_many([LINEAR.full_support - {g}])[0].statistic / 2
            expected[LINEAR.groups[g].name] += np.log(0.5 + 0.5 * np.exp(log_e))
        for unit in units:
            assert unit.log_e == pytest.approx(expected[unit.group], abs=1e-6)
            assert unit.highest >= unit.log_e and unit.state == "open" and unit.decided_at is None
            assert [episode for episode, _ in unit.looks] == list(range(told - batch.num_episodes + 1, told + 1))
            assert unit.looks[-1][1] == unit.log_e
            assert unit.to_dict()["e_value"] == pytest.approx(np.exp(unit.log_e))


@pytest.mark.slow
def test_a_false_controlled_is_as_rare_as_promised_whatever_the_looking():
    """Three batches, the weights of the others other in each, a look after every episode: P(any false ever) ≤ δ."""
    runs, level, false, found = 150, 0.2, 0, 0
    for run in range(runs):
        rows, told = [], 0
        for number in range(3):
            own = np.random.default_rng([run, number]).normal(0.0, 0.5, 2)
            units = evidence_after(
                LINEAR, linear_batch(10 * run + number, (0.9, own[0], 0.0), 8), level, moved(rows, told)
            )
            rows, told = [unit.to_dict() for unit in units], told + 8
        states = {row["group"]: row["state"] for row in rows}
        false, found = false + (states["c"] == "controlled"), found + (states["a"] == "controlled")
    assert found > 0.9 * runs
    assert binom.sf(false - 1, runs, level) > 1e-3, f"{false} of {runs}"


@pytest.mark.slow
def test_a_choice_among_actions_keeps_the_level_too():
    """Two of three features unused by a Boltzmann agent: a look after every episode, over two batches."""
    space, runs, false = SoftmaxLinear(tuple("abc"), ("left", "right")), 40, 0
    for run in range(runs):
        rng, rows = np.random.default_rng(run), []
        for number in range(2):
            features = rng.normal(size=(60, 3))
            actions = (rng.random(60) < 1 / (1 + np.exp(-1.5 * features[:, 0]))).astype(np.int64)
            data = Sample(features, actions, tuple("abc"), ("left", "right"), np.arange(60) // 10)
            rows = [unit.to_dict() for unit in evidence_after(space, data, 0.2, moved(rows, 6 * number))]
        false += any(row["state"] == "controlled" for row in rows if row["group"] != "a")
    assert binom.sf(false - 1, runs, 0.2) > 1e-3, f"{false} of {runs}"
