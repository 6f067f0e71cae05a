"""Gymnasium environments: every way in is found and right, and what cannot work is refused with a sentence."""

import json

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

from policyspace.errors import InputError
from policyspace.policies import BoltzmannLinear
from policyspace.policies.jax_setup import jax
from policyspace.worlds.episode_player import acting, play
from policyspace.worlds.gymnasium_world import Facts, GymnasiumWorld

KEY = jax.random.key(3)


class Walk(gymnasium.Env):
    """A random walk with a drift that comes by keyword, attribute, option or function; actions are 5, 6 and 7."""

    observation_space = gymnasium.spaces.Dict({"place": gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)})
    action_space = gymnasium.spaces.Discrete(3, start=5)
    pull = 0.0

    def __init__(self, drift=0.0):
        self.drift, self.scale = drift, 1.0
        self.twice = 2 * self.scale
        self.unused = 1.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = np.array([(options or {}).get("start", 0.0), 0.0]), 0
        return {"place": self.place.copy()}, {}

    def step(self, action):
        assert action in (5, 6, 7)
        self.steps += 1
        self.place += self.drift + self.pull + self.twice * self.np_random.normal(size=2) + (action - 6)
        return {"place": self.place.copy()}, 1.0, self.steps == 7, False, {}


def test_every_way_is_found_and_reaches_the_environment():
    bounds = {"drift": (-1, 1), "scale": (0.5, 2), "pull": (0, 1), "start": (-3, 3)}
    world = GymnasiumWorld.of(Walk, bounds)
    assert world.facts.ways == {"drift": "keyword", "scale": "attribute", "pull": "attribute", "start": "options"}
    assert [p.default for p in world.parameters] == [0.0, 1.0, 0.0, 0.0]
    assert "twice follows" in world.parameters[1].description and world.feature_names == ("place[0]", "place[1]")
    env = world.environment({"drift": 0.25, "scale": 1.5, "pull": 0.5, "start": 2.0})
    assert (env.unwrapped.drift, env.unwrapped.scale, env.unwrapped.twice, env.unwrapped.pull) == (0.25, 1.5, 3.0, 0.5)
    assert env.reset(seed=0)[0]["place"].tolist() == [2.0, 0.0]
    assert "__setattr__" not in vars(Walk) and Walk().scale == 1.0  # the class is as it was


def test_a_stated_way_is_taken_and_verified():
    world = GymnasiumWorld.of(Walk, {"drift": (-1, 1)}, by={"drift": "attribute"})
    assert world.facts.ways == {"drift": "attribute"} and world.environment({"drift": 0.5}).unwrapped.drift == 0.5
    with pytest.raises(InputError, match=r"'drift' changes nothing between -1 and 1 \(tried: options\)"):
        GymnasiumWorld.of(Walk, {"drift": (-1, 1)}, by={"drift": "options"})
    with pytest.raises(InputError, match="no way 'telepathy'"):
        GymnasiumWorld.of(Walk, {"drift": (-1, 1)}, by={"drift": "telepathy"})
    with pytest.raises(InputError, match="no parameter 'drifd' to reach"):
        GymnasiumWorld.of(Walk, {"drift": (-1, 1)}, by={"drifd": "options"})


def test_a_function_of_the_configuration_makes_the_environment():
    world = GymnasiumWorld.of(lambda omega: Walk(drift=2 * omega["half"]), {"half": (-1, 1)})
    assert world.facts.ways == {"half": "make"} and world.environment({"half": 0.5}).drift == 1.0
    with pytest.raises(InputError, match="'half' changes nothing"):
        GymnasiumWorld.of(lambda omega: Walk(), {"half": (-1, 1)})


def test_what_derives_from_an_attribute_follows_it():
    """Dynamics as of a CartPole whose attributes are all set by hand, as its equations want them."""
    bounds = {"length": (0.3, 1.0), "masspole": (0.05, 0.5)}
    env = GymnasiumWorld.of("CartPole-v1", bounds).environment({"length": 0.8, "masspole": 0.3})
    hand = CartPoleEnv()
    hand.length, hand.masspole, hand.total_mass, hand.polemass_length = 0.8, 0.3, 0.3 + 1.0, 0.3 * 0.8
    for one in (env, hand):
        one.reset(seed=4)
    for action in np.random.default_rng(0).integers(2, size=8):
        assert np.array_equal(env.step(action)[0], hand.step(action)[0])


@pytest.mark.parametrize(
    ("env", "bounds", "way", "default"),
    [
        ("Pendulum-v1", {"g": (5, 15)}, "keyword", 10.0),
        ("Pendulum-v1", {"m": (0.5, 2)}, "attribute", 1.0),
        ("Pendulum-v1", {"y_init": (0.1, 2)}, "options", 1.05),
        ("Acrobot-v1", {"LINK_LENGTH_1": (0.5, 2)}, "attribute", 1.0),
        ("CartPole-v1", {"high": (0.06, 0.2, 0.1)}, "options", 0.1),
        ("CartPole-v1", {"gravity": (20, 30)}, "attribute", 25.0),  # its own 9.8 is not allowed
    ],
)
def test_environments_of_gymnasium(env, bounds, way, default):
    world = GymnasiumWorld.of(env, bounds)
    (parameter,) = world.parameters
    assert world.facts.ways[parameter.name] == way and parameter.default == pytest.approx(default)


class Restless(Walk):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=None, options=options)


@pytest.mark.parametrize(
    ("env", "bounds", "sentence"),
    [
        (Walk, {"unused": (0, 1)}, r"'unused' changes nothing between 0 and 1 \(tried: attribute, options\)"),
        (Walk, {}, "needs a parameter"),
        (Walk, {"drift": (1, 1)}, "needs bounds low < high"),
        (Walk, {"drift": (0, 1, 2)}, "default of 'drift' must lie between 0 and 1, found 2"),
        (Walk, {"drift": "ab"}, "needs bounds low < high"),
        (lambda one: Restless(), {"x": (0, 1)}, "plays differently under one seed"),
        ("CartPole-v7", {"gravity": (5, 15)}, "knows no environment 'CartPole-v7'"),
        ("no_such_module:make", {"gravity": (5, 15)}, "cannot be imported"),
        ("math:pie", {"gravity": (5, 15)}, "has no function and registers no environment 'pie'"),
        (3, {"gravity": (5, 15)}, "a Gymnasium id or a function"),
        ("FrozenLake-v1", {"success_rate": (0.2, 0.9)}, "observations must be numbers"),
        ("CartPole-v1", {"tau": (0.01, float("inf"))}, "needs bounds low < high"),
    ],
)
def test_what_cannot_work_is_a_sentence(env, bounds, sentence):
    with pytest.raises(InputError, match=sentence):
        GymnasiumWorld.of(env, bounds)


def test_names_of_the_numbers_of_an_observation():
    assert GymnasiumWorld.of(Walk, {"drift": (-1, 1)}, names=["east", "north"]).feature_names == ("east", "north")
    with pytest.raises(InputError, match="an observation has 2 numbers, found the names east"):
        GymnasiumWorld.of(Walk, {"drift": (-1, 1)}, names=["east"])


def test_facts_survive_json_and_no_named_code_is_imported():
    world = GymnasiumWorld.of(Walk, {"drift": (-1, 1), "start": (-3, 3)})
    facts = Facts.from_dict(json.loads(json.dumps(world.facts.to_dict())))
    assert facts == world.facts
    reopened = GymnasiumWorld.from_facts(facts)
    assert reopened.check_configuration({"drift": 0.5})["start"] == 0.0
    with pytest.raises(InputError, match="no code named in a file is run"):
        reopened.environment({})
    assert GymnasiumWorld.from_facts(facts, Walk).environment({"drift": 0.5}).unwrapped.drift == 0.5
    with pytest.raises(InputError, match="give the same one"):
        GymnasiumWorld.from_facts(facts, "CartPole-v1")


def test_the_player_sees_what_a_loop_by_hand_sees():
    def act(observation, _=False):
        return 5 + int(observation["place"][0] > 0)

    seen = play(Walk(drift=0.1), act, 3, seed=8)
    env, rows, actions = Walk(drift=0.1), [], []
    for episode in range(3):
        observation, _ = env.reset(seed=8 if episode == 0 else None)
        ended = False
        while not ended:
            rows.append(observation["place"])
            actions.append(act(observation) - 5)
            observation, _, ended, _, _ = env.step(act(observation))
    assert np.array_equal(seen.features.reshape(-1, 2), rows) and np.array_equal(seen.actions.ravel(), actions)
    assert seen.mask.all() and seen.mask.shape == (3, 7) and seen.returns().tolist() == [7.0] * 3


def test_a_simulated_policy_acts_with_its_own_chances():
    """P(action) of a linear Boltzmann policy against how often it is chosen; the same key, the same episodes."""
    world = GymnasiumWorld.of(Walk, {"drift": (-1, 1)})
    space = world.policy_space()
    assert isinstance(space, BoltzmannLinear) and space.guess
    theta = np.array([0.5, 0.0, 0.0, -0.5, 0.0, 0.0])
    seen = world.simulate(space, theta, world.check_configuration({}), KEY, 300)
    odds = np.exp([0.5, -0.5, 0.0])
    count = np.bincount(np.asarray(seen.actions).ravel(), minlength=3)
    error = np.sqrt(count.sum() * odds / odds.sum())
    assert np.all(np.abs(count - count.sum() * odds / odds.sum()) < 4 * error)
    again = world.simulate(space, theta, world.check_configuration({}), KEY, 300)
    assert np.array_equal(seen.features, again.features) and np.array_equal(seen.actions, again.actions)


def test_an_agent_is_a_function_a_model_or_what_learns():
    world = GymnasiumWorld.of(Walk, {"drift": (-1, 1)})
    assert world.observe(lambda seen: 6)(KEY, {"drift": 0.0}, 2).actions.tolist() == [[1] * 7] * 2

    class Model:
        def predict(self, observation, deterministic):
            assert not deterministic
            return 7, None

    learned_in = []
    observe = world.observe(learn=lambda env: learned_in.append(env.unwrapped.drift) or Model())
    assert observe(KEY, {"drift": 0.5}, 1).actions.tolist() == [[2] * 7] and learned_in == [0.5]
    with pytest.raises(InputError, match="say who acts"):
        world.observe()
    with pytest.raises(InputError, match="found int"):
        acting(3, 0)
