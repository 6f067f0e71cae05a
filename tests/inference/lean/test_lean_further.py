"""What the lean test takes in beside the inputs, what echoes the policy, and what is made once instead of often."""

import numpy as np
import pytest

from policyspace import Sample, identify
from policyspace.data import RowBlock
from policyspace.inference import ScoreTest
from policyspace.inference.lean import LeanTest, Projector, past_determines

LENGTH = 50


def remembering(seed: int, num_episodes: int = 40, quiet: bool = True, noise: float = 1.0) -> Sample:
    """x0 now and one row earlier decide; x3 is a copy of x0 that comes one row late, and is not used."""
    rng = np.random.default_rng(seed)
    n = LENGTH * num_episodes
    x = np.zeros((n, 3))
    for t in range(n):
        x[t] = (0.8 * x[t - 1] if t % LENGTH else 0) + 0.6 * rng.normal(size=3)
    late = np.where(np.arange(n) % LENGTH == 0, x[:, 0], np.roll(x[:, 0], 1))
    action = np.tanh(x[:, 0]) + np.tanh(late) * (not quiet) + noise * rng.normal(size=n)
    return Sample(np.column_stack([x, 3 * late + rng.normal(size=n)]), action, episodes=np.arange(n) // LENGTH)


def test_a_late_copy_of_what_an_agent_remembers_is_not_used():
    answers = [identify(remembering(seed, 30, quiet=False)) for seed in range(4)]
    assert all("x0" in one.selected and "four rows earlier" in one.test.note for one in answers)
    assert sum("x3" in one.selected for one in answers) <= 1  # P(2 or more of 4 | .05) = .014
    assert all(one.guarantee is not None and "a memory of at most 4 rows" in str(one) for one in answers)


def test_nothing_earlier_is_taken_in_where_nothing_is_remembered():
    logs = [remembering(seed, 20) for seed in range(6)]
    tests = [ScoreTest(one.features, one.actions, [(0,), (1,), (2,), (3,)], episodes=one.episodes) for one in logs]
    assert sum("earlier" in " ".join(one.further.names) for one in tests) <= 1  # at a level of .01


def test_a_memory_that_rows_are_too_few_to_take_in_leaves_no_guarantee():
    found = identify(remembering(1, num_episodes=5, quiet=False, noise=0.4))
    assert found.guarantee is None
    assert "up to four rows earlier" in str(found.no_guarantee[0]) and "too few" in str(found.no_guarantee[0])


def test_earlier_inputs_are_those_of_the_same_episode():
    log = remembering(0, num_episodes=3)
    rows = ScoreTest(log.features, log.actions, [(0,), (1,), (2,), (3,)], episodes=log.episodes).rows
    used = np.array([0, 1, 2, 49, 50, 52, 149])
    assert np.array_equal(rows.before(2, used), rows.inputs[[0, 0, 0, 47, 50, 50, 147]])


def test_an_echo_is_what_is_curved_in_both_guesses():
    rng = np.random.default_rng(4)
    n = 4000
    x = rng.normal(size=(n, 3))
    policy = np.abs(x[:, 0]) + np.maximum(x[:, 1], 0.3)
    sensor = 2 * policy + rng.normal(size=n)
    test = ScoreTest(np.column_stack([x, sensor]), policy + rng.normal(size=n), [(0,), (1,), (2,), (3,)])
    plan, scorer = test._plan(frozenset({0, 1, 2})), test._scorer
    table = scorer.basis.columns(scorer.rows.inputs)
    targets = np.column_stack([scorer.rows.actions, scorer.rows.inputs[:, 3]])

    def guess(mask):
        return table[:, mask] @ np.linalg.lstsq(table[:, mask], targets, rcond=None)[0]

    curved = guess(plan.mask) - guess(plan.mask & scorer.linear)
    assert curved[:, 1].var() > 0.1
    by_hand = abs(np.corrcoef(curved.T)[0, 1])
    assert test.echo(3) == pytest.approx(by_hand, abs=0.04) and by_hand > 0.9  # noise is subtracted: a little more
    assert test.echo(2) == 0.0


def test_small_logs_without_an_echo_keep_their_guarantee():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(300, 4))
        found = identify(Sample(x, x[:, 0] + np.tanh(x[:, 1]) + rng.normal(size=300)))
        assert found.selected and "echo" not in {one.name for one in found.assumptions if one.status == "violated"}


def test_what_is_kept_of_rows_changes_no_number(monkeypatch):
    log = remembering(2)
    groups = [(0,), (1,), (2,), (3,)]

    def p_values():
        test = ScoreTest(log.features, log.actions, groups, episodes=log.episodes)
        return [one.p_value for one in test.one_out().values()], test.effect(0)

    kept = p_values()
    monkeypatch.setattr("policyspace.inference.lean.clusters.MOST_KEPT", 0)
    assert p_values() == kept


def test_further_columns_are_regressed_on_as_if_they_had_been_there_from_the_start():
    rng = np.random.default_rng(6)
    table, beside, targets = (rng.normal(size=(200, width)) for width in (5, 3, 2))
    beside += table[:, :3]
    mask = np.array([True, True, False, True, True])
    projector = Projector(table.T @ table, mask)
    slopes, weights = projector.beside(table.T @ beside, beside.T @ beside, table.T @ targets, beside.T @ targets)
    expected = np.linalg.lstsq(np.hstack([table[:, mask], beside]), targets, rcond=None)[0]
    np.testing.assert_allclose(np.vstack([slopes[mask], weights]), expected, atol=1e-8)
    assert not slopes[2].any()


def test_some_columns_of_a_basis_are_those_of_the_whole():
    log = remembering(3)
    test = ScoreTest(log.features, log.actions, [(0,), (1,), (2,), (3,)], episodes=log.episodes)
    basis, inputs = test._scorer.basis, test.rows.inputs
    mask = np.random.default_rng(0).random(basis.width) < 0.5
    np.testing.assert_allclose(basis.only(mask).columns(inputs), basis.columns(inputs)[:, mask], atol=1e-12)
    assert len(RowBlock(inputs, test.rows.actions)) == test.rows.num


def test_bounds_of_supports_change_no_answer_of_the_combinatorial_rule(monkeypatch):
    log = remembering(5, num_episodes=20)
    quick = identify(log, rule="combinatorial", test="lean")
    monkeypatch.setattr(LeanTest, "evidence_lower_bound", lambda self, test: 0.0)
    slow = identify(log, rule="combinatorial", test="lean")
    assert quick.supports == slow.supports and quick.selected == slow.selected
    assert [one.rejected for one in quick.groups] == [one.rejected for one in slow.groups]


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_earlier_inputs_determine_those_of_now_in_a_world_without_noise(noise):
    """A position is the one before and what the speed was: without noise nothing of it is left, with noise most is."""
    rng = np.random.default_rng(1)
    speed = rng.normal(size=(2000, 1))
    place = np.zeros((2000, 1))
    for t in range(1, 2000):
        place[t] = 0.5 * speed[t - 1] + 0.3 * speed[t - 2] + noise * rng.normal()
    inputs = np.hstack([place, speed])
    past = [np.roll(inputs, lag, axis=0) for lag in (1, 2)]
    assert past_determines(inputs, past, np.zeros((2000, 1)), [(0,), (1,)]) == (noise == 0)
