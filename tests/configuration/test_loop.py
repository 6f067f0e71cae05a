"""The configuring loop: levels that add up, decisions that stand, unions of supports, budgets."""

from dataclasses import replace
from itertools import pairwise, product

import jax
import numpy as np
import pytest
from scipy.linalg import hadamard
from scipy.stats import chi2

from policyspace import GaussianLinear, InputError, Sample, SoftmaxLinear, configure, make_world, rollout, simplified
from policyspace.study import (
    PaperObjective,
    Schedule,
    Status,
    Uniform,
    estimated_theta,
    made_of_noise,
    outcome_of_batch,
    outcome_with_rounds_before,
    union_of_supports,
    without_unplayed_actions,
)

KEY = jax.random.key(3)
OWNED = ("row_0", "col_1", "goal_row_2", "goal_col_3")


@pytest.fixture(scope="module")
def grid():
    """A grid world and an agent of known weights that does not re-learn, so that rounds are quick."""
    world = make_world("gridworld", horizon=15)
    space = world.policy_space()
    free = space.free_mask(frozenset(i for i, g in enumerate(space.groups) if g.name in OWNED))
    theta = np.where(free, np.asarray(2.0 * jax.random.normal(KEY, (space.num_parameters,))), 0.0)

    def observe(key, configuration, num_episodes):
        return rollout(world, space, theta, configuration, key, num_episodes)

    return world, space, observe


def test_levels_add_up_to_the_significance_and_decisions_stand(grid):
    world, space, observe = grid
    rounds = list(configure(world, observe, KEY, space, significance=0.04, design=Uniform(), num_episodes=300))
    assert len(rounds) == 4
    assert sum(r.significance for r in rounds) == pytest.approx(0.04)
    assert [r.total_episodes for r in rounds] == [300, 600, 900, 1200]
    for before, after in pairwise(rounds):
        assert set(before.selected) <= set(after.selected)
        assert not set(after.newly_selected) & set(before.selected)
        assert not set(after.asked_for) & set(before.selected), "what has been decided is not asked again"
    assert set(rounds[-1].selected) == set(OWNED)
    assert set(rounds[-1].selected) | set(rounds[-1].undecided) == set(world.feature_names)
    assert rounds[-1].supports == [[name for name in world.feature_names if name in OWNED]]


@pytest.mark.parametrize("test", ["batches", "eprocess"])
def test_rounds_are_tested_as_is_said(grid, test):
    world, space, observe = grid
    run = configure(world, observe, KEY, space, design=Uniform(), episodes=30, max_rounds=1, test=test)
    levels = [r.significance for r in run]
    assert run.status().schedule.test == test
    assert levels == ([0.05, 0.05] if test == "eprocess" else [0.025, 0.025])
    with pytest.raises(InputError, match="there is no test 'eproces' of a study"):
        configure(world, observe, KEY, space, test="eproces")


def test_a_batch_that_needs_no_penalty_is_tested_by_rule_2_as_anywhere(grid):
    world, space, _ = grid
    theta = 0.5 * np.asarray(jax.random.normal(KEY, (space.num_parameters,)))  # so gentle that all is played everywhere
    seen = rollout(world, space, theta, world.default_configuration(), KEY, 600)
    seen = seen.pairs(world.feature_names, world.action_names)
    outcome = outcome_of_batch(space, Schedule.of(space, True, significance=0.04, test="batches"), seen, ("row_0",))
    found = outcome.identification
    alone = simplified(space.with_assumed(("row_0",)), seen, 0.01, "holm")
    assert (
        found.test.name != "firth"
        and found.selected == alone.selected
        and set(outcome.newly_selected) == set(alone.selected) - {"row_0"}
    )
    assert [t.group for t in found.groups] == [t.group for t in alone.groups]
    np.testing.assert_allclose(
        [t.statistic for t in found.groups], [t.statistic for t in alone.groups], rtol=1e-9, atol=1e-9
    )


def test_the_paper_objective_asks_for_each_undecided_unit_in_turn(grid):
    world, space, observe = grid
    design = PaperObjective(num_updates=5)
    rounds = list(configure(world, observe, KEY, space, design=design, num_episodes=40, max_rounds=1))
    assert rounds[0].design is None and rounds[0].asked_for == ()
    asked = [r.asked_for for r in rounds[1:]]
    assert all(len(units) == 1 for units in asked)
    for before, units in zip(rounds, asked, strict=False):
        assert units[0] in before.undecided
    assert rounds[0].significance == pytest.approx(0.05 / 32)


def test_the_paper_rule_tests_every_round_at_full_significance(grid):
    world, space, observe = grid
    rounds = list(
        configure(world, observe, KEY, space, design=Uniform(), max_rounds=1, num_episodes=40, paper_rule=True)
    )
    assert [r.significance for r in rounds] == [0.05, 0.05]


def test_the_paper_rule_tests_all_units_in_every_round_of_the_loop(grid):
    world, space, observe = grid
    options = {"design": Uniform(), "max_rounds": 2, "num_episodes": 300, "significance": 0.05}
    rounds = list(configure(world, observe, KEY, space, paper_rule=True, **options))
    d = len(world.feature_names)
    assert len(rounds) == 3 and len(rounds[0].selected) > 1
    earlier = set()
    for one in rounds:
        assert [row["group"] for row in one.tests] == list(world.feature_names)
        critical = chi2.isf(0.05 / d, [row["degrees_of_freedom"] for row in one.tests])
        above = {row["group"] for row, c in zip(one.tests, critical, strict=True) if row["statistic"] > c}
        assert {row["group"] for row in one.tests if row["rejected"]} == above
        assert set(one.newly_selected) == above - earlier and set(one.selected) == above | earlier
        earlier |= above


def test_the_paper_rule_keeps_the_critical_value_of_d_units_when_some_are_selected():
    """On orthogonal columns with noise of variance 1, λ of a unit is n·b² for its weight b: it is given, not estimated."""
    units, columns = ("a", "b", "c", "d"), hadamard(64).astype(float)
    space = GaussianLinear(units, ("move",), covariance=1.0)
    schedule = Schedule.of(space, True, significance=0.05, max_rounds=3, paper_rule=True)
    critical = chi2.isf(0.05 / len(units), 1)
    below, above = critical * (1 - 1e-6), critical * (1 + 1e-6)
    planned = [(40.0, 0.0, 0.0, 0.0), (0.0, below, 0.0, 0.0), (0.0, above, below, below), (below, 0.0, above, below)]
    new, selected = [("a",), (), ("b",), ("c",)], ()
    for number, (statistics, expected) in enumerate(zip(planned, new, strict=True)):
        assert schedule.level_of(number) == 0.05
        actions = columns[:, 1:5] @ np.sqrt(np.array(statistics) / 64) + columns[:, 5]  # the last is noise
        data = Sample(columns[:, 1:5], actions[:, None], units, ("move",))
        outcome = outcome_of_batch(space, schedule, data, selected)
        assert [row["group"] for row in outcome.tests] == list(units)
        np.testing.assert_allclose([row["statistic"] for row in outcome.tests], statistics, rtol=1e-9, atol=1e-9)
        assert outcome.newly_selected == expected
        if number == 1:  # where what was selected is not tested again, the same λ is enough
            fewer = outcome_of_batch(space, replace(schedule, max_rounds=0, paper_rule=False), data, selected)
            assert len(fewer.tests) == 3 and fewer.newly_selected == ("b",)
        selected = outcome.selected
    assert selected == ("a", "b", "c") and outcome.undecided == ("d",)


def test_a_budget_is_kept(grid):
    world, space, observe = grid
    rounds = list(configure(world, observe, KEY, space, design=Uniform(), budget=161, max_rounds=3))
    assert [r.num_episodes for r in rounds] == [41, 40, 40, 40]
    planned = list(configure(world, observe, KEY, space, design=Uniform(), budget=129))
    assert [r.num_episodes for r in planned] == [43, 43, 43]
    one_by_one = list(
        configure(world, observe, KEY, space, design=PaperObjective(num_updates=5), num_episodes=40, budget=80)
    )
    assert one_by_one[-1].total_episodes == 80
    with pytest.raises(InputError, match="shared out over its rounds, found 40 episodes a round too"):
        configure(world, observe, KEY, space, design=Uniform(), episodes=40, budget=80)


def test_the_same_key_gives_the_same_rounds(grid):
    world, space, observe = grid
    first, second = (
        [(r.selected, r.configuration) for r in configure(world, observe, KEY, space, num_episodes=40, max_rounds=1)]
        for _ in range(2)
    )
    assert first == second


def test_united_supports_are_the_minimal_ones_that_explain_every_round():
    rng = np.random.default_rng(0)
    names = "abcd"
    for _ in range(50):
        before, now = (
            [list(s) for s in {tuple(n for n in names if rng.random() < 0.4) for _ in range(3)}] for _ in range(2)
        )
        explained = [
            frozenset(n for n, inside in zip(names, bits, strict=True) if inside)
            for bits in product((0, 1), repeat=4)
            if all(
                any(set(s) <= {n for n, i in zip(names, bits, strict=True) if i} for s in side)
                for side in (before, now)
            )
        ]
        expected = {s for s in explained if not any(other < s for other in explained)}
        assert {frozenset(s) for s in union_of_supports(before, now)} == expected


def test_combinatorial_rounds_unite_their_supports(grid):
    world, space, observe = grid
    small = space.with_assumed(n for n in world.feature_names if n not in (*OWNED[:2], "row_3", "col_3"))
    rounds = list(
        configure(world, observe, KEY, small, "combinatorial", design=Uniform(), max_rounds=1, num_episodes=300)
    )
    assert set(OWNED[:2]) <= set(rounds[-1].selected)
    assert "row_3" not in rounds[-1].selected


def test_actions_never_played_have_no_parameters_to_test():
    rng = np.random.default_rng(2)
    space = SoftmaxLinear(("x", "y"), ("a", "b", "c"))
    features = rng.standard_normal((80, 2))
    actions = np.where(features[:, 0] + rng.logistic(size=80) > 0, 0, 2)
    reduced, smaller, notes = without_unplayed_actions(space, Sample(features, actions, ("x", "y"), ("a", "b", "c")))
    assert reduced.action_names == ("a", "c")
    assert set(smaller.actions) == {0, 1}
    assert notes == ["never played in this batch: b."]
    theta = estimated_theta(space, Sample(features, actions, ("x", "y"), ("a", "b", "c")))
    chances = np.exp([space.log_prob(theta, features, np.full(80, a)) for a in range(3)])
    assert np.allclose(chances.sum(axis=0), 1)
    assert chances[1].mean() < 0.1
    assert np.corrcoef(chances[0], features[:, 0])[0, 1] > 0.8


def test_a_batch_too_small_to_test_is_said_not_thrown(grid):
    world, space, _ = grid
    features = np.eye(len(world.feature_names))[:4]
    short = Sample(features, np.array([0, 1, 2, 3]), world.feature_names, world.action_names)
    outcome = outcome_of_batch(space, Schedule.of(space, True, max_rounds=0), short)
    assert outcome.identification is None and outcome.tests == []
    assert outcome.newly_selected == ()
    assert "could not be tested" in outcome.warnings[-1]


def test_batches_that_show_a_single_action_do_not_end_the_loop(grid):
    world, space, _ = grid
    always_right = np.zeros(space.num_parameters)
    always_right[0 :: len(space.column_names)] = -200.0  # every action but the reference, which is the last

    def observe(key, configuration, num_episodes):
        return rollout(world, space, always_right, configuration, key, num_episodes)

    rounds = list(configure(world, observe, KEY, space, num_episodes=40, max_rounds=1))
    assert len(rounds) == 2
    assert all(r.identification is None and "never chooses" in r.warnings[-1] for r in rounds)
    assert rounds[-1].selected == ()


def test_a_batch_made_of_noise_is_not_tested_and_the_round_says_so():
    """An agent that does nothing but its own noise: 25 goal features stay the same within an episode."""
    world = make_world("continuous-gridworld")
    space, omega = world.policy_space(), world.default_configuration()
    still = rollout(world, space, np.zeros(space.num_parameters), omega, KEY, 30)
    data = still.pairs(world.feature_names, world.action_names)
    said = made_of_noise(data)
    assert "at least 504 episodes are needed, found 30" in said
    outcome = outcome_with_rounds_before(space, Status(Schedule.of(space, True)), data)
    assert outcome.selected == () and all(row["p_value"] == 1 for row in outcome.tests)
    assert said in outcome.warnings[-1]
    for told in ({"test": "batches"}, {"rule": "combinatorial"}):
        alone = outcome_of_batch(space, Schedule.of(space, True, **told), data)
        assert alone.selected == () and alone.tests == [] and said in alone.warnings[-1]
    literal = outcome_of_batch(space, Schedule.of(space, True, paper_rule=True), data)
    assert literal.tests and not literal.warnings  # the paper tests every batch
    moving = rollout(world, space, np.random.default_rng(1).normal(size=100), omega, KEY, 30)
    assert made_of_noise(moving.pairs(world.feature_names, world.action_names)) is None
    assert made_of_noise(Sample(np.eye(4), np.array([0, 1, 0, 1]), tuple("abcd"), ("l", "r"))) is None


def test_agents_that_hardly_ever_waver_must_show_by_both_laws(grid):
    """The p-value of a round is the larger of Firth's and Wilks', unit by unit."""
    world, space, _ = grid
    free = space.free_mask(frozenset(i for i, g in enumerate(space.groups) if g.name in OWNED))
    sharp = np.where(free, 12.0 * np.sign(np.random.default_rng(3).normal(size=space.num_parameters)), 0.0)
    data = rollout(world, space, sharp, world.default_configuration(), KEY, 80)
    data = data.pairs(world.feature_names, world.action_names)
    schedule = Schedule.of(space, True)
    alone = outcome_of_batch(space, replace(schedule, test="batches"), data)
    rows = {row["group"]: row["p_value"] for row in outcome_with_rounds_before(space, Status(schedule), data).tests}
    assert alone.identification.test.name == "firth"
    assert all(rows[row["group"]] >= row["p_value"] for row in alone.tests)
    assert any(rows[row["group"]] > 1.01 * row["p_value"] for row in alone.tests)
