"""The worlds as Gymnasium sees them."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from policyspace import InputError
from policyspace.worlds import IDS, WorldEnv


@pytest.mark.parametrize("name", IDS)
def test_the_checker_has_nothing_to_say(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(name, render_mode="rgb_array").unwrapped)


@pytest.mark.parametrize("name", IDS)
def test_episodes_stay_in_their_spaces_and_end(name: str) -> None:
    env = gymnasium.make(name)
    env.action_space.seed(0)
    world = env.unwrapped.world
    for seed in range(3):
        observation, info = env.reset(seed=seed)
        steps = 0
        terminated = truncated = False
        while not (terminated or truncated):
            assert env.observation_space.contains(observation)
            assert info["features"].shape == (len(world.feature_names),)
            observation, _, terminated, truncated, info = env.step(env.action_space.sample())
            steps += 1
        assert terminated != truncated
        assert steps == world.horizon if truncated else steps <= world.horizon


def test_the_spec_is_plain_text_and_back() -> None:
    env = gymnasium.make("policyspace/Minigolf-v0", configuration={"putter_length": 3.0}, horizon=7)
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert float(again.unwrapped.configuration["putter_length"]) == 3.0
    assert again.unwrapped.world.horizon == 7


def test_the_configuration_comes_by_keyword_or_by_reset() -> None:
    env = gymnasium.make(
        "policyspace/Gridworld-v0", configuration="row[2]=10, col[2]=10, goal_row[4]=10, goal_col[4]=10"
    )
    starts = [env.reset(seed=seed)[0].tolist() for seed in range(20)]
    assert starts.count([2, 2, 4, 4]) > 17
    env.reset(options={"configuration": {"row[0]": 10.0, "col[0]": 10.0}})
    starts = [env.reset(seed=seed)[0].tolist()[:2] for seed in range(20)]
    assert starts.count([0, 0]) > 17
    with pytest.raises(InputError, match="did you mean 'goal_row'"):
        env.reset(options={"configuration": {"goalrow": 1.0}})


def test_actions_are_stretched_to_the_worlds_units() -> None:
    """A putt of 0.5 in Gymnasium's [−1, 1] is a stroke of 1.5: the ball rolls (1.5·5)²/2D on average."""
    env = WorldEnv("minigolf", noise=1e-9)
    (x, f, _), _ = env.reset(seed=1)
    (moved, *_), *_ = env.step(np.array([0.5]))
    assert x - moved == pytest.approx((1.5 * 5) ** 2 / (2 * 5 / 7 * 9.81 * f), rel=1e-6)


def test_the_same_seed_gives_the_same_episode() -> None:
    def play() -> list[float]:
        env = gymnasium.make("policyspace/Car-v0")
        env.action_space.seed(3)
        observation, _ = env.reset(seed=3)
        return [*observation, *(x for _ in range(5) for x in env.step(env.action_space.sample())[0])]

    assert play() == play()


@pytest.mark.parametrize("name", ["gridworld", "continuous-gridworld", "minigolf", "car", "cartpole"])
def test_pictures_show_the_agent_move(name: str) -> None:
    env = WorldEnv(name, render_mode="rgb_array")
    env.action_space.seed(0)
    env.reset(seed=0)
    first = env.render()
    for _ in range(3):
        env.step(env.action_space.sample())
    second = env.render()
    assert first is not None
    assert second is not None
    assert first.dtype == np.uint8
    assert first.ndim == 3
    assert first.shape == second.shape
    assert np.any(first != second)
    assert WorldEnv(name).render() is None


def test_unknown_render_modes_are_told() -> None:
    with pytest.raises(InputError, match="rgb_array"):
        WorldEnv("gridworld", render_mode="human")
