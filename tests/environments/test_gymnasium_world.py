"""Gymnasium environments: every way in is found and right, and what cannot work is refused with a sentence."""

import json
from dataclasses import replace

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

from policyspace import GymnasiumWorld, InputError, SoftmaxLinear, Study, watch
from policyspace.environments import EnvironmentSpec, as_actor, play

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


def needs_both(drift, start):
    env = Walk(drift)
    env.pull = start
    return env


def needs_one_by_keyword(*, drift):
    return Walk(drift)


def test_a_function_that_needs_parameters_is_given_them_by_keyword():
    world = GymnasiumWorld.of(needs_both, {"drift": (-1, 1), "start": (0, 2)})
    assert world.facts.ways == {"drift": "keyword", "start": "keyword"}
    assert [p.default for p in world.parameters] == [0.0, 1.0]
    env = world.environment({"drift": 0.5})
    assert (env.drift, env.pull) == (0.5, 1.0)
    for one in (lambda drift: Walk(drift), needs_one_by_keyword):  # one parameter is no configuration
        world = GymnasiumWorld.of(one, {"drift": (-1, 1), "scale": (0.5, 2)})
        assert world.facts.ways == {"drift": "keyword", "scale": "attribute"}
        env = world.environment({"drift": 0.25, "scale": 2.0})
        assert (env.drift, env.twice) == (0.25, 4.0)
    assert GymnasiumWorld.from_facts(world.facts, needs_one_by_keyword).environment({}).scale == 1.0


def test_a_parameter_that_must_be_given_may_still_be_a_configuration_if_that_is_said():
    world = GymnasiumWorld.of(lambda drift: Walk(drift["drift"]), {"drift": (-1, 1)}, by={"drift": "make"})
    assert world.facts.ways == {"drift": "make"} and world.environment({"drift": 0.5}).drift == 0.5


def test_what_an_id_gives_to_its_class_need_not_be_a_parameter():
    gymnasium.register("NeedsBoth-v0", needs_both, kwargs={"start": 0.5})
    try:
        world = GymnasiumWorld.of("NeedsBoth-v0", {"drift": (-1, 1)})
        assert world.facts.ways == {"drift": "keyword"} and world.environment({"drift": 0.5}).unwrapped.pull == 0.5
    finally:
        del gymnasium.registry["NeedsBoth-v0"]


def fails():
    raise TypeError("no rope")


@pytest.mark.parametrize(
    ("env", "by", "sentence"),
    [
        (lambda drift, rope: Walk(drift), {}, "needs drift, rope, of which rope is no parameter: give such arguments"),
        (
            lambda rope, hook: Walk(),
            {},
            "needs rope, hook, of which rope and hook are no parameters: give such arguments",
        ),
        (lambda *, rope: Walk(), {}, "needs rope, of which rope is no parameter"),
        (
            lambda drift: Walk(drift),
            {"drift": "attribute"},
            "'drift', so that it must come by keyword, found 'attribute'",
        ),
        (fails, {}, r"must be made before its parameters are set, found an error \(.*no rope"),
    ],
)
def test_a_function_that_needs_what_nobody_gives_is_a_sentence(env, by, sentence):
    with pytest.raises(InputError, match=sentence):
        GymnasiumWorld.of(env, {"drift": (-1, 1)}, by=by)


class Rooms(gymnasium.Env):
    """Categories, truths and a number; the agent's action is the next room, if the door does not stick."""

    observation_space = gymnasium.spaces.Dict(
        {
            "both": gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(2), gymnasium.spaces.Box(-9, 9, (1,))]),
            "dials": gymnasium.spaces.MultiDiscrete([2, 3], start=[0, 4]),
            "lamps": gymnasium.spaces.MultiBinary(2),
            "room": gymnasium.spaces.Discrete(3, start=1),
        }
    )
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, sticks=0.5):
        self.sticks = sticks

    def seen(self):
        dials, lamps = np.array([0, 4]) + self.np_random.integers(2, size=2), self.np_random.integers(2, size=2)
        tail = (int(self.np_random.integers(2)), self.np_random.normal(size=1).clip(-9, 9))
        return {"dials": dials, "lamps": lamps, "room": self.room, "both": tail}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.room, self.steps = 2, 0
        return self.seen(), {}

    def step(self, action):
        self.room, self.steps = 1 + action if self.np_random.random() > self.sticks else self.room, self.steps + 1
        return self.seen(), float(self.room), self.steps == 10, False, {}


def test_categories_are_levels_under_the_names_that_watching_gives_them():
    """All levels but one that occurs, one unit a category; truths are numbers; the rows are those of a loop by hand."""
    world = GymnasiumWorld.of(Rooms, {"sticks": (0.1, 0.9)})
    blocks = {name: {int(level.rpartition("=")[2]) for level in inside} for name, inside in world.blocks.items()}
    whole = {"dials[0]": {0, 1}, "dials[1]": {4, 5, 6}, "room": {1, 2, 3}, "both[0]": {0, 1}}
    assert blocks.keys() == whole.keys() and all(len(whole[name] - blocks[name]) == 1 for name in whole)
    assert world.blocks["room"] == ("room=1", "room=3")  # it starts in the other one
    units = {group.name for group in world.policy_space().groups}
    assert units == {"intercept", *whole, "lamps[0]", "lamps[1]", "both[1]"}
    watched = watch(Rooms(), lambda seen: int(seen["room"]) % 3, 30)
    assert set(watched.blocks) == set(whole) and {"lamps[0]", "lamps[1]", "both[1]"} < set(watched.names)
    assert set(watched.names) <= {*world.feature_names, *(f"{n}={level}" for n in whole for level in whole[n])}
    kept = []

    def act(seen):
        kept.append(seen)
        return int(seen["room"]) % 3

    rows = world.observe(act)(KEY, {"sticks": 0.5}, 3).features.reshape(-1, len(world.feature_names))
    for row, seen in zip(rows, kept, strict=True):
        told = dict(zip(world.feature_names, row, strict=True))
        dials, (flag, warmth) = seen["dials"], seen["both"]
        levels = {"dials[0]": dials[0], "dials[1]": dials[1], "room": seen["room"], "both[0]": flag}
        for name, inside in world.blocks.items():
            assert {one: told[one] for one in inside} == {one: float(one == f"{name}={levels[name]}") for one in inside}
        assert [told["lamps[0]"], told["lamps[1]"]] == seen["lamps"].tolist()
        assert told["both[1]"] == pytest.approx(warmth[0], rel=1e-6)  # the space is one of 32 bits


def test_names_of_categories_and_facts_of_another_environment():
    names = ["flag", "warmth", "left", "right", "red", "green", "place"]  # Gymnasium sorts the entries of a Dict
    world = GymnasiumWorld.of(Rooms, {"sticks": (0.1, 0.9)}, names=names)
    assert world.blocks["place"] == ("place=1", "place=3") and set(world.blocks) == {"left", "right", "place", "flag"}
    with pytest.raises(InputError, match="an observation has 7 numbers and categories, found the names left"):
        GymnasiumWorld.of(Rooms, {"sticks": (0.1, 0.9)}, names=["left"])
    for features in (("place=1",), ("place=7", "place=3"), (*world.feature_names, "more"), world.feature_names[1:]):
        other = GymnasiumWorld(replace(world.facts, feature_names=features), Rooms)
        with pytest.raises(InputError, match="use the environment that they are of"):
            other.observe(lambda seen: 0)(KEY, {"sticks": 0.5}, 1)


def test_a_study_in_rooms_finds_the_category_that_is_used(tmp_path):
    """From create to an answer, and from the file again; what is not used is not found."""
    rng = np.random.default_rng(0)

    def agent(seen):
        return int(rng.choice(3, p=[0.6, 0.3, 0.1] if seen["room"] == 1 else [0.1, 0.3, 0.6]))

    study = Study.create(tmp_path / "a.sqlite", env=Rooms, parameters={"sticks": (0.1, 0.9)}, max_rounds=1, episodes=60)
    first = study.play(agent)
    assert first.newly_selected == ("room",) and not first.warnings
    reopened = Study.open(tmp_path / "a.sqlite", env=Rooms)
    assert set(reopened.status().undecided) == {"dials[0]", "dials[1]", "lamps[0]", "lamps[1]", "both[0]", "both[1]"}
    assert 0.1 <= reopened.ask().configuration["sticks"] <= 0.9  # by simulations of the estimated policy
    assert reopened.play(agent) is not None and reopened.status().selected == ("room",)


def test_a_study_of_frozen_lake_goes_from_create_to_a_round(tmp_path):
    """Tiles in which episodes end are never acted in, so that their levels never vary: the others are tested."""
    chances = np.random.default_rng(5).dirichlet(np.full(4, 10.0), 16)
    rng = np.random.default_rng(0)
    study = Study.create(
        tmp_path / "a.sqlite", env="FrozenLake-v1", parameters={"success_rate": (0.2, 0.9)}, max_rounds=1, episodes=300
    )
    assert study.world.feature_names == tuple(f"observation={i}" for i in range(1, 16))
    found = study.play(lambda tile: int(rng.choice(4, p=chances[tile])))
    assert found.newly_selected == ("observation",) and found.configuration["success_rate"] == pytest.approx(1 / 3)


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


class Said(Walk):
    observation_space = gymnasium.spaces.Text(9, charset="-.0123456789")

    def reset(self, *, seed=None, options=None):
        return str(super().reset(seed=seed, options=options)[0]["place"][0])[:9], {}

    def step(self, action):
        seen, *others = super().step(action)
        return str(seen["place"][0])[:9], *others


class Lone(Walk):
    observation_space = gymnasium.spaces.Discrete(1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        return 0, {}

    def step(self, action):
        seen, *others = super().step(action)
        return 0, float(seen["place"][0]), *others[1:]


class Many(Lone):
    observation_space = gymnasium.spaces.Discrete(500)


class Levels(Walk):
    observation_space = gymnasium.spaces.Dict({"place=3": gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)})

    def reset(self, *, seed=None, options=None):
        return {"place=3": super().reset(seed=seed, options=options)[0]["place"][:1]}, {}

    def step(self, action):
        seen, *others = super().step(action)
        return {"place=3": seen["place"][:1]}, *others


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
        (
            lambda drift=0.0: Many(drift),
            {"drift": (-1, 1)},
            "'observation' is one of 500 categories, found more than the 50",
        ),
        (lambda drift=0.0: Said(drift), {"drift": (-1, 1)}, "must be numbers or categories .* found Text"),
        (lambda drift=0.0: Lone(drift), {"drift": (-1, 1)}, "something that can vary, found Discrete"),
        (lambda drift=0.0: Levels(drift), {"drift": (-1, 1)}, "'place=3' are those of the levels of a category"),
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
    facts = EnvironmentSpec.from_dict(json.loads(json.dumps(world.facts.to_dict())))
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
    assert isinstance(space, SoftmaxLinear) and space.guess
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
        as_actor(3, 0)
