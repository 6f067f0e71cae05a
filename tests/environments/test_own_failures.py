"""Agents, learners and environments that fail while they play: one sentence that says who, how and where."""

import sys

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

from policyspace import GymnasiumWorld, InputError, configure, watch
from policyspace.environments import play
from policyspace.environments.checks import imported
from policyspace.worlds import CannotBePlayed
from tests.environments import faulty

KEY = jax.random.key(3)
K = {"k": (0.2, 1.0)}


@pytest.fixture(scope="module")
def worlds():
    """Worlds by how an agent acts in them."""
    return {
        "two": GymnasiumWorld.of(faulty.Base, K),
        "from -1": GymnasiumWorld.of(faulty.FromMinusOne, K),
        "lake": GymnasiumWorld.of("FrozenLake-v1", {"success_rate": (0.2, 0.9)}),
        "pendulum": GymnasiumWorld.of("Pendulum-v1", {"g": (5, 15)}),
        "box": GymnasiumWorld.of(faulty.Box2, K),
        "whole box": GymnasiumWorld.of(faulty.WholeBox, K),
    }


@pytest.mark.parametrize(
    ("world", "action", "wanted"),
    [
        *[
            ("two", action, "one of the actions 0 to 1")
            for action in (2, -1, 0.5, "left", None, (0, None), [0, 1], np.nan)
        ],
        ("from -1", 2, "one of the actions -1 to 1"),
        ("from -1", 10**30, "one of the actions -1 to 1"),
        ("lake", 7, "one of the actions 0 to 3"),
        ("pendulum", "x", "1 finite number,"),
        ("pendulum", [np.nan], "1 finite number,"),
        ("pendulum", [1.0, 1.0], "1 finite number,"),
        ("box", 0.5, "2 finite numbers"),
        ("whole box", [0.5], "1 finite whole number,"),
    ],
)
def test_an_action_that_is_not_of_its_space_is_a_sentence(worlds, world, action, wanted):
    with pytest.raises(InputError, match=rf"the agent must choose {wanted}.*found .* at \w+=.*: correct the agent"):
        worlds[world].observe(lambda seen: action)(KEY, worlds[world].check_configuration({}), 1)


@pytest.mark.parametrize(
    ("world", "action", "logged"),
    [
        ("two", 1.0, 1), ("two", True, 1), ("two", [1], 1), ("two", np.array(1), 1), ("two", np.array([1]), 1),
        ("from -1", -1.0, 0), ("from -1", 1, 2), ("lake", 3.0, 3),
        ("pendulum", np.array([1]), [1.0]), ("pendulum", 0, [0.0]), ("pendulum", np.array([[0.5]]), [0.5]),
        ("pendulum", [9.0], [9.0]),  # the environment itself clips it
        ("box", np.array([0, 1]), [0.0, 1.0]), ("whole box", [1.0], [1.0]), ("whole box", -1, [-1.0]),
    ],
)  # fmt: skip
def test_the_space_decides_what_an_action_is(worlds, world, action, logged):
    """Codes from 0 where actions are discrete, numbers elsewhere, whatever the type that the agent returned."""
    place = worlds[world]
    seen = place.observe(lambda seen: action)(KEY, place.check_configuration({}), 1)
    assert np.array_equal(seen.actions[0, 0], logged)
    assert seen.actions.dtype.kind == ("i" if place.action_bounds is None else "f")


def test_an_action_that_the_agent_changes_later_is_logged_as_it_was(worlds):
    buffer = np.zeros(2, np.float32)

    def act(_):
        buffer[:] += 0.1
        return buffer

    seen = worlds["box"].observe(act)(KEY, {"k": 1.0}, 1)
    assert np.allclose(seen.actions[0, :, 0], 0.1 * np.arange(1, 11))


def test_what_was_seen_is_logged_and_not_what_the_agent_left_of_it(worlds):
    def act(seen):
        seen[1] = 0.0
        return int(seen[0] > 0)

    assert (worlds["two"].observe(act)(KEY, {"k": 1.0}, 2).features[..., 1] != 0).all()


class Forgetful:
    def predict(self, observation):
        return 0, None


class Unseedable:
    def set_random_seed(self, seed):
        raise OSError("no chances")

    def predict(self, observation, deterministic=False):
        return 0, None


def tires(count=5):
    steps = iter(range(count))

    def act(seen):
        next(steps)
        return 0

    return act


@pytest.mark.parametrize(
    ("agent", "sentence"),
    [
        (lambda seen: 1 / 0, r"the agent <lambda> failed at k=0.5 \(ZeroDivisionError: division by zero\): correct it"),
        (lambda: 0, r"the agent <lambda> failed at k=0.5 \(TypeError: .* takes 0 positional arguments"),
        (lambda seen, more: 0, r"failed at k=0.5 \(TypeError: .* missing 1 required positional argument"),
        (tires(), r"the agent act failed at k=0.5 \(StopIteration\)"),
        (
            Forgetful(),
            r"the agent Forgetful failed at k=0.5 \(TypeError: .*unexpected keyword argument 'deterministic'",
        ),
        (Forgetful, r"the agent Forgetful failed at k=0.5 \(TypeError"),
        (Unseedable(), r"the agent Unseedable failed at k=0.5 \(OSError: no chances\)"),
    ],
)
def test_an_agent_that_fails_is_named(worlds, agent, sentence):
    with pytest.raises(InputError, match=sentence) as raised:
        worlds["two"].observe(agent)(KEY, {"k": 0.5}, 1)
    assert raised.value.__cause__ is not None


def exits(env):
    raise SystemExit(4)


def fails(env):
    raise RuntimeError("no gradient\nand more")


@pytest.mark.parametrize(
    ("learn", "sentence"),
    [
        (fails, r"learn\(env\) failed at k=0.5 \(RuntimeError: no gradient\): correct that function"),
        (exits, r"learn\(env\) failed at k=0.5 \(SystemExit: 4\)"),
        (lambda: None, r"learn\(env\) failed at k=0.5 \(TypeError: .* takes 0 positional arguments"),
        (lambda env: None, r"learn\(env\) must return an agent, found another thing at k=0.5: .* found NoneType"),
    ],
)
def test_learning_that_fails_is_named(worlds, learn, sentence):
    with pytest.raises(InputError, match=sentence):
        worlds["two"].observe(learn=learn)(KEY, {"k": 0.5}, 1)


def test_what_learns_is_a_function(worlds):
    with pytest.raises(InputError, match=r"learn is a function learn\(env\) that returns an agent, found 5"):
        worlds["two"].observe(learn=5)


def test_an_environment_that_fails_between_its_bounds_says_where_and_how_to_go_on():
    world = GymnasiumWorld.of(faulty.Late, K)
    with pytest.raises(
        CannotBePlayed, match=r"failed at k=0.5, in step \(ValueError: k may not be there\): .* --configuration"
    ):
        world.observe(lambda seen: 0)(KEY, {"k": 0.5}, 1)
    with pytest.raises(CannotBePlayed, match=r"at k=0.5"):
        world.simulate(world.policy_space(), np.zeros(3), {"k": 0.5}, KEY, 1)


def test_watching_names_who_fails_after_the_first_step_too():
    with pytest.raises(InputError, match=r"the agent act failed \(StopIteration\)"):
        watch(faulty.Base(), tires(), 2)
    with pytest.raises(InputError, match=r"could not take its first step .* \(RuntimeError: boom in step\)"):
        watch(faulty.Raises(), lambda seen: 0, 1)


# How long an episode is -------------------------------------------------------------------------------------------------


def test_the_limit_of_an_environment_is_its_own():
    for env in (TimeLimit(faulty.Endless(), 1200), gymnasium.Wrapper(TimeLimit(faulty.Endless(), 1200))):
        seen = play(env, lambda seen, starts: 0, 1, seed=0)
        assert seen.lengths.tolist() == [1200] and not seen.notes
    short = play(TimeLimit(faulty.Endless(), 7), lambda seen, starts: 0, 2, seed=0)
    assert short.lengths.tolist() == [7, 7] and not short.notes


def test_what_is_cut_off_is_said_in_the_round():
    world, rng = GymnasiumWorld.of(faulty.Endless, K), np.random.default_rng(0)
    run = configure(world, world.observe(lambda seen: int(rng.integers(2))), KEY, episodes=2, max_rounds=0)
    (warning,) = [w for r in run for w in r.warnings if "cut off" in w]
    assert warning.startswith("2 of 2 episodes were cut off after 1000 steps, for the environment sets no limit")
    simulated = world.simulate(world.policy_space(), np.zeros(3), {"k": 1.0}, KEY, 1)
    assert simulated.lengths.tolist() == [1000]


def test_a_function_in_a_file_is_found_by_the_path_of_the_file(tmp_path, monkeypatch):
    (tmp_path / "own_agent_in_a_file.py").write_text("def act(observation):\n    return 1\n")
    monkeypatch.setattr("sys.path", list(sys.path))
    assert imported(f"{tmp_path}/own_agent_in_a_file.py:act", "the agent")(None) == 1
    with pytest.raises(InputError, match="has no 'acts'"):
        imported(f"{tmp_path}/own_agent_in_a_file.py:acts", "the agent")
