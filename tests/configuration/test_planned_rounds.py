"""Plans: rounds that a budget pays for, against the sizes worked out by hand, and what is said of them."""

import gymnasium
import numpy as np
import pytest

from policyspace import GymnasiumWorld, Sample, Study, make_world
from policyspace.study import (
    Schedule,
    Status,
    in_words,
    needed_episodes,
    outcome_with_rounds_before,
    plan_rounds,
    same_configuration,
    sizes_of,
)
from policyspace.worlds import parse_configuration


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
        assert plan.needed == needed and f"{columns} columns of weights anew, {constant} of which" in plan.why
        assert sum(plan.sizes) == budget and len(plan.sizes) == max(1, min(4, budget // needed))
        assert len(plan.sizes) == 1 or min(plan.sizes) >= needed
        assert plan.flat == (name == "gridworld")


def test_features_that_stay_the_same_within_an_episode_ask_for_more_episodes():
    assert needed_episodes(4, 4) == 16 and needed_episodes(4, 1) == 10


def test_the_plan_is_said_and_kept_by_a_study(tmp_path):
    plan = plan_rounds(make_world("gridworld"), make_world("gridworld").policy_space(), 120)
    assert plan.sentences[0] == "Plan for 120 episodes: 2 rounds of 60 and 60."
    assert "17 columns of weights" in plan.sentences[1] and "fewer than 43 episodes" in plan.sentences[1]
    assert plan.sentences[2] == (
        "The first round is at the flat configuration, which shows every feature at least sometimes."
    )
    planned = Study.create(tmp_path / "a.sqlite", "gridworld", budget=120)
    assert planned.settings["num_rounds"] == 2 and planned.ask().num_episodes == 60
    told = Study.create(tmp_path / "b.sqlite", "gridworld", budget=120, max_rounds=5)
    assert told.settings["num_rounds"] == 6


def test_little_is_expected_only_far_below_what_a_round_needs():
    """A round of 40 episodes at the flat configuration finds four fifths of what is controlled (docs/designs.md)."""
    world = make_world("gridworld")

    def expects_little(budget):
        return any(
            "expect little" in sentence for sentence in plan_rounds(world, world.policy_space(), budget).sentences
        )

    assert not expects_little(40) and not expects_little(22) and expects_little(21)


def test_the_plan_says_where_the_first_round_is_and_how_to_name_the_flat_configuration():
    world = make_world("gridworld")
    plan = plan_rounds(world, world.policy_space(), 120, initial={"row": [1, 1, 1, 5, 1]})
    equal = "[1,1,1,1,1]"
    typed = f"row={equal},col={equal},goal_row={equal},goal_col={equal}"
    assert plan.sentences[-1].startswith("The first round is at the configuration given")
    assert plan.sentences[-1].endswith(f'--configuration "{typed}".')
    assert same_configuration(world.check_configuration(parse_configuration(typed)), world.flat_configuration())


@pytest.mark.parametrize(("budget", "sizes"), [(1, (1,)), (3, (1, 1, 1)), (10, (3, 3, 2, 2)), (40, (10, 10, 10, 10))])
def test_followed_evidence_has_four_rounds_or_as_many_as_there_are_episodes(tmp_path, budget, sizes):
    for name, options in (("car", {}), ("gridworld", {"test": "eprocess"})):
        world = make_world(name)
        plan = plan_rounds(world, world.policy_space(), budget, sequential=True)
        assert plan.sizes == sizes and "after every episode" in plan.why and len(plan.sentences) == 3
        study = Study.create(tmp_path / f"{name}.sqlite", name, budget=budget, **options)
        assert sizes_of(study.status().schedule) == sizes


def test_a_network_is_planned_by_its_weights():
    world = make_world("car")
    plan = plan_rounds(world, world.policy_space(), 300)
    assert plan.why.startswith("every round fits a network of 66 weights anew") and plan.needed == 83  # ⌈5·33/2⌉


def test_sizes_are_said_in_words():
    assert in_words((7,)) == "one round of 7" and in_words((3, 3, 2)) == "3 rounds of 3, 3 and 2"
    assert in_words((5,) * 40) == "40 rounds of at most 5"


class Trial(gymnasium.Env):
    """Observations of so many numbers for so many steps, which stay the same within an episode unless they `move`."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, width=3, steps=1, move=False, spread=1.0):
        self.steps, self.move, self.spread = steps, move, spread
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (width,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count, self.seen = 0, self._drawn()
        return self.seen, {}

    def step(self, action):
        self.count += 1
        self.seen = self._drawn() if self.move else self.seen
        return self.seen, 0.0, self.count >= self.steps, False, {}

    def _drawn(self):
        return (self.spread * self.np_random.normal(size=self.observation_space.shape)).astype(np.float32)


@pytest.mark.parametrize(
    ("steps", "move", "short_of"), [(1, False, "rows"), (12, False, "episodes"), (4, True, "rows")]
)
def test_a_round_of_an_unknown_agent_is_as_large_as_its_test_needs(steps, move, short_of):
    """By the plan's own number of episodes a batch of an unknown agent gets a promise, with a third of them none.

    An input that is used may still follow by chance what the others say of the actions, where it keeps its value for a whole
    episode and episodes are few: nothing is promised then, but not for want of episodes for regressions.
    """
    world = GymnasiumWorld.of(lambda spread=1.0: Trial(3, steps, move, spread), {"spread": (0.5, 2.0)})
    space = world.policy_space()
    plan = plan_rounds(world, space, 10)
    assert "without a model" in plan.why and "expect little" in " ".join(plan.sentences)
    rng = np.random.default_rng(4)

    def batch(num_episodes, weight=1.0):
        episodes = np.repeat(np.arange(num_episodes), steps)
        seen = rng.normal(size=(num_episodes * steps, 3)) if move else rng.normal(size=(num_episodes, 3))[episodes]
        actions = (rng.random(len(seen)) < 1 / (1 + np.exp(-weight * seen[:, 0]))).astype(int)
        return Sample(seen, actions, world.feature_names, world.action_names, episodes)

    status = Status(Schedule.of(space, True))
    assert not outcome_with_rounds_before(space, status, batch(plan.needed, weight=0.0)).warnings
    said = outcome_with_rounds_before(space, status, batch(plan.needed)).warnings
    assert all("(correlation)" in one for one in said) and (not said or short_of == "episodes")
    said = outcome_with_rounds_before(space, status, batch(plan.needed // 3)).warnings[-1]
    assert "are too few for regressions" in said and short_of in said
