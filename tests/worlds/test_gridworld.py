"""The grid world against an oracle in plain Python and against its own exact solution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from policyspace import ConfMDP, Trajectories, rollout
from policyspace.worlds import Gridworld, expected_return, start_probabilities, visitation

WORLD = Gridworld()
SPACE = WORLD.policy_space()
THETA = np.random.default_rng(3).normal(0.0, 0.7, SPACE.num_parameters)
OMEGA = WORLD.random_configuration(jax.random.key(1))
EPISODES = 20_000
RETURN = jax.jit(jax.value_and_grad(lambda theta: expected_return(WORLD, SPACE, theta, OMEGA)))


def oracle_step(state: tuple[int, ...], action: int) -> tuple[tuple[int, ...], float, bool]:
    """The move, the reward and the end, from the description alone."""
    row, col, goal_row, goal_col = state
    if action == 0 and row > 0:
        row -= 1
    elif action == 1 and row < 4:
        row += 1
    elif action == 2 and col > 0:
        col -= 1
    elif action == 3 and col < 4:
        col += 1
    reached = (row, col) == (goal_row, goal_col)
    return (row, col, goal_row, goal_col), (0.0 if reached else -1.0), reached


class Untabled(Gridworld):
    """The grid world simulated as any other."""

    begin = ConfMDP.begin


def generic_rollout(key: int) -> Trajectories:
    """The path that every world shares, without the table."""
    return rollout(Untabled(), SPACE, THETA, OMEGA, jax.random.key(key), EPISODES)


@pytest.fixture(scope="module")
def tables() -> Trajectories:
    return rollout(WORLD, SPACE, THETA, OMEGA, jax.random.key(0), EPISODES)


def test_every_state_and_action_moves_as_the_oracle_says() -> None:
    states = jnp.asarray(WORLD.states())

    def move(state: jax.Array, action: int) -> tuple[jax.Array, ...]:
        moved = WORLD.transition(jax.random.key(0), state, action, OMEGA)
        return moved, WORLD.reward(state, action, moved), WORLD.terminal(moved)

    everywhere = jax.jit(jax.vmap(move, (0, None)))
    for action in range(4):
        moved, rewards, ends = everywhere(states, action)
        arrays = (np.asarray(array) for array in (moved, rewards, ends))
        for state, *found in zip(WORLD.states(), *arrays, strict=True):
            following, reward, end = oracle_step(tuple(int(c) for c in state), action)
            assert (tuple(int(c) for c in found[0]), float(found[1]), bool(found[2])) == (following, reward, end)
        assert np.array_equal(WORLD.state_index(np.asarray(moved)), WORLD.successors()[:, action])


def test_features_are_the_first_four_levels_of_each_coordinate() -> None:
    phi = dict(zip(WORLD.feature_names, np.asarray(WORLD.features(jnp.array([0, 4, 3, 2]))), strict=True))
    assert [name for name, value in phi.items() if value] == ["row_0", "goal_row_3", "goal_col_2"]
    assert len(phi) == 16


@pytest.mark.parametrize("which", ["tables", "generic"])
def test_rollouts_match_the_exact_recursion(tables: Trajectories, which: str) -> None:
    seen = tables if which == "tables" else generic_rollout(7)
    returns = np.asarray(seen.returns(WORLD.discount))
    exact = float(RETURN(jnp.asarray(THETA))[0])
    assert abs(returns.mean() - exact) < 5 * returns.std() / np.sqrt(EPISODES)
    chances = np.asarray(visitation(WORLD, SPACE, jnp.asarray(THETA), OMEGA))
    index = np.asarray(WORLD.state_index(np.asarray(seen.states[:, :-1])))
    for t in (0, 1, 5, 20, 49):
        found = np.bincount(index[:, t][np.asarray(seen.mask)[:, t]], minlength=625) / EPISODES
        error = np.sqrt(chances[t] * (1 - chances[t]) / EPISODES)
        assert np.all(np.abs(found - chances[t]) < 5.5 * error + 3 / EPISODES)


def test_trajectories_obey_the_oracle(tables: Trajectories) -> None:
    states, actions = np.asarray(tables.states), np.asarray(tables.actions)
    rewards, mask = np.asarray(tables.rewards), np.asarray(tables.mask)
    for i in range(200):
        alive = True
        for t in range(WORLD.horizon):
            assert mask[i, t] == alive
            if not alive:
                assert rewards[i, t] == 0
                assert np.array_equal(states[i, t + 1], states[i, t])
                continue
            following, reward, end = oracle_step(tuple(states[i, t].tolist()), int(actions[i, t]))
            assert (tuple(states[i, t + 1].tolist()), rewards[i, t]) == (following, reward)
            alive = not end


def test_actions_follow_the_policy(tables: Trajectories) -> None:
    """Pearson's χ² over all states that were seen often, three degrees of freedom each."""
    mask = np.asarray(tables.mask)
    index = np.asarray(WORLD.state_index(np.asarray(tables.states[:, :-1])))[mask]
    counts = np.zeros((625, 4))
    np.add.at(counts, (index, np.asarray(tables.actions)[mask]), 1)
    policy = np.asarray(WORLD.action_probabilities(SPACE, jnp.asarray(THETA)))
    often = counts.sum(axis=1) > 200
    counts, expected = counts[often], counts[often].sum(axis=1, keepdims=True) * policy[often]
    z = (counts - expected) / np.sqrt(expected * (1 - policy[often]))
    assert np.abs(z).max() < 5
    statistic = np.sum((counts - expected) ** 2 / expected)
    assert 1e-4 < stats.chi2.sf(statistic, 3 * often.sum()) < 1 - 1e-4


def test_the_exact_start_is_the_product_of_softmaxes() -> None:
    chances = np.asarray(start_probabilities(WORLD, OMEGA))
    assert chances.sum() == pytest.approx(1.0, abs=1e-12)
    peak = [int(np.argmax(OMEGA[name])) for name in ("row", "col", "goal_row", "goal_col")]
    one = np.exp(5) / (np.exp(5) + 4 * np.exp(1))
    assert one == pytest.approx(0.932, abs=5e-4)
    assert chances[WORLD.state_index(np.array(peak))] == pytest.approx(one**4, rel=1e-12)


def test_the_exact_gradient_is_the_slope_of_the_exact_return() -> None:
    gradient = np.asarray(RETURN(jnp.asarray(THETA))[1])
    for i in (0, 7, 50):
        step = np.zeros_like(THETA)
        step[i] = 1e-5
        up, down = (float(RETURN(jnp.asarray(THETA + s))[0]) for s in (step, -step))
        assert gradient[i] == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-8)


def test_an_episode_may_start_on_the_goal() -> None:
    omega = WORLD.check_configuration({f"{name}[0]": 10.0 for name in ("row", "col", "goal_row", "goal_col")})
    seen = rollout(WORLD, SPACE, np.zeros(SPACE.num_parameters), omega, jax.random.key(0), EPISODES)
    corner = np.all(np.asarray(seen.states[:, 0]) == 0, axis=1)
    assert corner.mean() > 0.99
    # Up and left run into the wall, and into the goal; down and right leave it.
    stays = np.isin(np.asarray(seen.actions[:, 0]), [0, 2])
    assert np.array_equal(seen.lengths[corner] == 1, stays[corner])
