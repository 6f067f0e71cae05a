"""Plans: rounds that a budget pays for, against the sizes worked out by hand, and what is said of them."""

import pytest

from policyspace import Study
from policyspace.configuration.plan import needed_episodes, plan_rounds
from policyspace.worlds import make_world


@pytest.mark.parametrize(
    ("name", "columns", "constant", "needed"),
    [("gridworld", 17, 9, 43), ("continuous-gridworld", 50, 25, 125), ("minigolf", 6, 3, 15)],
)
def test_a_round_is_never_smaller_than_its_weights_need(name, columns, constant, needed):
    """Goals, the friction and the constant stay the same within an episode; 5 pairs a column, 2 steps an episode."""
    world = make_world(name)
    space = world.policy_space()
    assert needed_episodes(columns, constant) == needed
    for budget in (1, needed - 1, 2 * needed - 1, 2 * needed, 3 * needed + 1, 40 * needed):
        plan = plan_rounds(world, space, budget)
        assert (plan.num_columns, plan.num_constant, plan.needed) == (columns, constant, needed)
        assert sum(plan.sizes) == budget and len(plan.sizes) == max(1, min(4, budget // needed))
        assert len(plan.sizes) == 1 or min(plan.sizes) >= needed
        assert plan.flat == (name == "gridworld")


def test_features_that_stay_the_same_within_an_episode_ask_for_more_episodes():
    assert needed_episodes(4, 4) == 16 and needed_episodes(4, 1) == 10


def test_the_plan_is_said_and_kept_by_a_study(tmp_path):
    plan = plan_rounds(make_world("gridworld"), make_world("gridworld").policy_space(), 120)
    assert plan.sentences[0] == "Plan for 120 episodes: 2 rounds of 60 and 60."
    assert "17 columns of weights" in plan.sentences[1] and "fewer than 43 episodes" in plan.sentences[1]
    assert "flat configuration" in plan.sentences[2]
    planned = Study.create(tmp_path / "a.sqlite", "gridworld", budget=120)
    assert planned.settings["num_rounds"] == 2 and planned.ask().num_episodes == 60
    told = Study.create(tmp_path / "b.sqlite", "gridworld", budget=120, attempts=5)
    assert told.settings["num_rounds"] == 6
