"""The agents of the table of errors: what is said of them is true of the code that makes them."""

import numpy as np
import pytest

from benchmarks.honesty import SCENARIOS
from benchmarks.honesty.scenario import drifting, equal_episodes, smooth


@pytest.fixture(params=SCENARIOS)
def name(request):
    return request.param


def test_an_input_is_used_if_and_only_if_replacing_it_changes_actions(name):
    """The noise of an agent is drawn beforehand, so that only the replaced input can change what it does."""
    rng = np.random.default_rng(1)
    changes = set()
    for seed in range(3):
        scenario = SCENARIOS[name](seed)
        np.testing.assert_array_equal(scenario.agent(scenario.features), scenario.actions)
        for j, column in enumerate(scenario.names):
            replaced = scenario.features.copy()
            replaced[:, j] = rng.permutation(replaced[:, j])
            if np.any(scenario.agent(replaced) != scenario.actions):
                changes.add(column)
    assert changes == scenario.used


def test_a_scenario_is_its_seed_alone(name):
    first, again, other = (SCENARIOS[name](seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.features, again.features)
    np.testing.assert_array_equal(first.actions, again.actions)
    assert not np.array_equal(first.features, other.features)


def test_shapes_agree(name):
    scenario = SCENARIOS[name](0)
    n, q = scenario.features.shape
    assert len(scenario.names) == len(set(scenario.names)) == q and scenario.used < set(scenario.names)
    assert len(scenario.actions) == n and np.all(np.isfinite(scenario.features))
    for units in (scenario.episodes, scenario.subjects):
        assert units is None or len(units) == n
    if scenario.discrete:
        assert len(np.unique(scenario.actions)) >= 2


def test_drift_has_the_autocorrelation_of_its_name_and_starts_afresh():
    """corr(x_t, x_{t+l}) = .9^l within an episode and 0 between episodes."""
    x = drifting(np.random.default_rng(0), 4000, 10, 1).reshape(4000, 10)
    for lag in (1, 3, 6):
        assert np.mean(x[:, 0] * x[:, lag]) == pytest.approx(0.9**lag, abs=0.06)
    assert np.var(x, axis=0) == pytest.approx(np.ones(10), abs=0.1)
    assert np.mean(x[:-1, -1] * x[1:, 0]) == pytest.approx(0, abs=0.06)


def test_smooth_inputs_have_small_steps():
    """A wave of frequency w moves by at most w a row; four of them over √2 by at most 4·.12/√2."""
    x = smooth(np.random.default_rng(0), 500, 20, 2).reshape(500, 20, 2)
    assert np.abs(np.diff(x, axis=1)).max() <= 4 * 0.12 / np.sqrt(2)
    assert np.var(x[:, 0]) == pytest.approx(1, abs=0.15)


def test_held_actions_change_every_fourth_row_only():
    for name in ("held-actions", "held-choice"):
        scenario = SCENARIOS[name](0)
        assert np.array_equal(scenario.actions.reshape(-1, 4), np.repeat(scenario.actions[::4, None], 4, axis=1))
        assert np.all(np.bincount(scenario.episodes) % 4 == 0)


def test_habits_are_an_autoregression():
    """With a_t = .7 a_{t−1} + .4 x_t + ε, the regression on the action before recovers both weights."""
    scenario = SCENARIOS["habit"](0)
    actions, x = scenario.actions.reshape(20, 50), scenario.features[:, 0].reshape(20, 50)
    design = np.column_stack([actions[:, :-1].ravel(), x[:, 1:].ravel()])
    weights = np.linalg.lstsq(design, actions[:, 1:].ravel(), rcond=None)[0]
    np.testing.assert_allclose(weights, [0.7, 0.4], atol=0.1)


def test_footsteps_are_the_sum_of_actions_so_far():
    scenario = SCENARIOS["own-footsteps"](0)
    position = scenario.features[:, 1].reshape(10, 50)
    np.testing.assert_allclose(np.diff(position, axis=1).ravel(), scenario.actions.reshape(10, 50)[:, :-1].ravel())
    assert np.all(position[:, 0] == 0)


def test_episodes_have_equal_length():
    assert equal_episodes(2, 3).tolist() == [0, 0, 0, 1, 1, 1]
