"""How golfers learn: no ball lost at the start, close to the best known return, and nothing outside what they own."""

import jax
import numpy as np
import pytest
from policyspace_paper.minigolf import (
    AS_PUBLISHED,
    BY_STAGES,
    OURS,
    PUBLISHED,
    REFERENCE,
    THOROUGH,
    best_returns,
    deviation_of,
    learned,
    mean_return,
)

from policyspace import rollout
from policyspace.worlds import AGENT_A2, Minigolf, deceleration


def full_strokes(num_balls):
    """The mean return of always hitting as hard as possible at ω = 1, ball by ball in NumPy: k strokes cost k − 1."""
    rng = np.random.default_rng(0)
    x, f = rng.uniform(1, 20, num_balls), rng.uniform(0.02, 0.5, num_balls)
    strokes = np.ceil(x / (2.0**2 / (2 * deceleration(f))))
    return -np.minimum(strokes - 1, 20).mean()


def test_the_safe_start_loses_no_ball_but_by_chance():
    world = Minigolf(noise=0.0, policy_deviation=1e-9)
    space = world.policy_space()
    for omega in (1.5, 5.0, 15.0):
        theta = world.first_weights(space, {"putter_length": omega})
        assert np.count_nonzero(theta) == 1 and world.first_weights(world.policy_space(intercept=False), {}) is None
        seen = rollout(world, space, theta, {"putter_length": omega}, jax.random.key(0), 2000)
        assert np.asarray(seen.rewards).min() == -1


def test_with_the_shortest_putter_learning_finds_that_hitting_hard_is_best():
    learning = {"start": "safe", "stages": [BY_STAGES[OURS]["stages"][-1]]}
    (found,) = best_returns(learning, AGENT_A2, [1.0], jax.random.key(1), 20_000)
    assert found == pytest.approx(full_strokes(200_000), abs=0.15)


@pytest.mark.parametrize("agent", ["A1", "A2"])
def test_brief_learning_comes_near_the_best_known_return_and_stays_in_its_space(agent):
    owned = Minigolf.feature_names if agent == "A1" else tuple(AGENT_A2)
    theta = learned(BY_STAGES[OURS], owned, 5.0, jax.random.key(2))
    assert mean_return(OURS, theta, 5.0, jax.random.key(3), 10_000) > REFERENCE[agent][5.0] - 0.7
    names = ("intercept", *Minigolf.feature_names)
    assert all(theta[i] == 0 for i, name in enumerate(names) if name not in ("intercept", *owned))


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["A1", "A2"])
def test_thorough_learning_reaches_what_an_independent_optimisation_did(agent):
    owned = Minigolf.feature_names if agent == "A1" else AGENT_A2
    lengths = [2.0, 3.0, 5.0]
    found = best_returns(THOROUGH[OURS], owned, lengths, jax.random.key(4), 20_000)
    expected = [REFERENCE[agent][length] for length in lengths]
    # Lost balls cost 100: the mean return of 20 000 episodes of A₂ is known to ±0.15.
    np.testing.assert_array_less(np.array(expected) - (0.05 if agent == "A1" else 0.2), found)


def test_learning_is_a_function_of_its_key():
    learning = {"start": "uniform", "stages": [[PUBLISHED, 5, 50, 0.01]]}
    one, same, other = (learned(learning, ("x",), 4.0, jax.random.key(seed)) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_every_way_of_learning_ends_at_its_policy_deviation():
    for deviation in (OURS, PUBLISHED):
        assert deviation_of(BY_STAGES[deviation]) == deviation_of(THOROUGH[deviation]) == deviation
        assert THOROUGH[deviation]["warm"][0] == deviation
        assert deviation_of(AS_PUBLISHED[deviation]) == deviation
    assert AS_PUBLISHED[PUBLISHED]["stages"] == [[0.1, 100, 100, 0.01, 1.0]]
