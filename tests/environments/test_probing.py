"""Before a world is believed: what is said of it fits, it can be played, and its parameters reach it."""

import gymnasium
import numpy as np
import pytest

from policyspace import GymnasiumWorld, InputError
from tests.environments import faulty

K = {"k": (0.2, 1.0)}


@pytest.mark.parametrize(
    ("env", "bounds", "sentence"),
    [
        (faulty.Unseeded, {"nonsense": (0, 1)}, "plays differently under one seed"),
        (
            faulty.NotANumber,
            {"nonsense": (0, 1)},
            "at nonsense=0, in what it shows .* must be finite, found nan as number 1",
        ),
        (faulty.Priceless, K, "rewards must be finite, found inf at k=0.2: correct the environment, or choose other"),
        (
            faulty.ThreeNumbers,
            K,
            r"2 numbers are expected in Box.*, found 3\): correct the environment, or choose other",
        ),
        (faulty.OldReset, K, "reset must return an observation and a dict, found a ndarray at k=0.2"),
        (faulty.PairReset, K, "reset must return an observation and a dict, found 2 things at k=0.2"),
        (faulty.OldStep, K, "step must return .* and a dict, found 4 things at k=0.2"),
        (
            faulty.Raises,
            K,
            r"failed at k=0.2, in step \(RuntimeError: boom in step\): correct the environment, or choose",
        ),
        (faulty.Exits, K, r"failed at k=0.2, in step \(SystemExit: 3\)"),
        (faulty.NoSuchRoom, K, r"a category must be one of Discrete\(3\), found -1"),
        (faulty.OtherKeys, K, "an observation has room, found room, light"),
        (faulty.NotClosing, K, r"failed in close \(OSError: stuck\)"),
        (faulty.NoActions, K, "must have an action_space, found none"),
        (faulty.Empty, K, "something that can vary, found Box"),
        (faulty.Sequences, K, "must be numbers or categories .*, found Sequence"),
        (
            faulty.ReadOnly,
            K,
            r"attributes cannot be set at k=0.2 \(AttributeError: .*no setter\): correct the environment",
        ),
        (faulty.Whole, {"n": (1, 4)}, r"cannot be made at n=1 .* whole number there, as 3 is, .* that rounds it"),
        (faulty.Windy, {"windy": (0, 1)}, r"'windy' is a boolean in the environment \(False\), found bounds 0:1"),
        (faulty.nothing, K, "must return one Gymnasium environment, found NoneType"),
        (faulty.a_class, K, "must return one Gymnasium environment, found the class Base"),
        (faulty.a_vector, K, "must return one Gymnasium environment, found CartPoleVectorEnv"),
        (lambda configuration: None, K, "must return one Gymnasium environment, found NoneType at k=0.6"),
        (faulty.by_another_name, K, r"cannot be made at k=0.6 \(KeyError: 'q'\): correct the environment"),
    ],
)
def test_an_environment_that_is_wrong_is_a_sentence(env, bounds, sentence):
    with pytest.raises(InputError, match=sentence) as raised:
        GymnasiumWorld.of(env, bounds)
    assert "\n" not in str(raised.value)


def test_the_error_of_a_users_own_code_is_kept_as_the_cause():
    with pytest.raises(InputError) as raised:
        GymnasiumWorld.of(faulty.Raises, K)
    assert isinstance(raised.value.__cause__, RuntimeError)


def rare(configuration):
    """In Blackjack the rule of Sutton and Barto matters in about one game of six hundred."""
    return gymnasium.make("Blackjack-v1", sab=configuration["sab"] > 0.5)


def test_what_happens_rarely_is_found():
    assert GymnasiumWorld.of(rare, {"sab": (0, 1)}).facts.ways == {"sab": "make"}


def wide(x_threshold=2.4):
    env = gymnasium.make("CartPole-v1")
    env.unwrapped.x_threshold = x_threshold
    return env


def widened(configuration):
    return wide(configuration["x_threshold"])


@pytest.mark.parametrize(("env", "way"), [("CartPole-v1", "attribute"), (wide, "keyword"), (widened, "make")])
def test_a_way_that_is_said_is_believed_though_random_actions_never_show_it(env, way):
    """No random agent comes to the edge of a track that is wider than one."""
    bounds = {"x_threshold": (1, 3)}
    with pytest.raises(InputError, match=r"nothing between 1 and 3.* in 3000 random steps: check its name, or, .*--by"):
        GymnasiumWorld.of(env, bounds)
    world = GymnasiumWorld.of(env, bounds, by={"x_threshold": way})
    assert "as was said, though nothing changed in 3000 random steps" in world.parameters[0].description
    assert world.environment({"x_threshold": 1.5}).unwrapped.x_threshold == 1.5


@pytest.mark.parametrize(
    ("env", "way", "sentence"),
    [
        ("CartPole-v1", "keyword", "'k' was said to be a keyword of its constructor, found no such keyword"),
        ("CartPole-v1", "attribute", "'k' was said to be an attribute, found no such attribute that is a number"),
        ("CartPole-v1", "make", "is a function of yours, found an id of Gymnasium"),
        (faulty.by_configuration, "keyword", "so 'k' reaches it by 'make', found 'keyword': leave that out"),
        (faulty.by_configuration, "attribute", "so 'k' reaches it by 'make', found 'attribute'"),
    ],
)
def test_a_way_that_is_not_open_is_refused(env, way, sentence):
    with pytest.raises(InputError, match=sentence):
        GymnasiumWorld.of(env, K, by={"k": way})


def test_any_keyword_reaches_a_function_that_takes_all_if_that_is_said():
    def any_keyword(**keywords):
        return faulty.Base(**keywords)

    assert GymnasiumWorld.of(any_keyword, K).facts.ways == {"k": "attribute"}
    assert GymnasiumWorld.of(any_keyword, K, by={"k": "keyword"}).facts.ways == {"k": "keyword"}


def test_where_it_is_is_what_an_id_gives_to_its_class():
    gymnasium.register("Low-v0", faulty.Base, kwargs={"k": 0.25})
    try:
        assert GymnasiumWorld.of("Low-v0", K).parameters[0].default == 0.25
    finally:
        del gymnasium.registry["Low-v0"]


@pytest.mark.parametrize(
    "parameters",
    [[("k", 0, 1)], {"k"}, "k=0:1", {1: (0, 1)}],
)
def test_parameters_are_names_with_bounds(parameters):
    with pytest.raises(InputError, match=r"parameters are names with bounds, .*, found .*: write them so"):
        GymnasiumWorld.of(faulty.Base, parameters)


@pytest.mark.parametrize(
    "bounds",
    ["59", "0:1", ("0", "1"), (False, True), (0, 10**400), {0, 1}, 1, (0, 1, None), (0, 1, 1, 1), (n for n in (0, 1))],
)
def test_bounds_are_two_numbers(bounds):
    with pytest.raises(InputError, match="'k' needs bounds low < high"):
        GymnasiumWorld.of(faulty.Base, {"k": bounds})
    assert GymnasiumWorld.of(faulty.Base, {"k": np.array([0.5, 2])}).parameters[0].high == 2.0


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"by": "keyword"}, "by= is a way for each name, .*, found 'keyword'"),
        ({"by": ["keyword"]}, "by= is a way for each name"),
        ({"by": {"k": 3}}, "there is no way '3'"),
        ({"names": "ab"}, "names are texts, .*, found 'ab'"),
        ({"names": [1, 2]}, r"names are texts, .*, found \[1, 2\]"),
        ({"names": 3}, "names are texts"),
    ],
)
def test_what_else_is_said_is_checked(said, sentence):
    with pytest.raises(InputError, match=sentence):
        GymnasiumWorld.of(faulty.Base, K, **said)


@pytest.mark.parametrize("name", ["LunarLander-v3", "Ant-v5", "phys2d/CartPole-v1"])
def test_a_library_that_is_missing_is_named_alike_by_studies_and_by_watching(name, monkeypatch):
    """Whether or not the machine has them: Gymnasium's own error, for want of the library."""
    from policyspace import watch
    from policyspace.environments import setters as makers

    def missing(*_, **__):
        raise gymnasium.error.DependencyNotInstalled("it is not installed, run `pip install it`")

    monkeypatch.setattr(makers, "load_env_creator", missing)
    monkeypatch.setattr(gymnasium, "make", missing)
    sentence = rf"'{name}' could not be made \(it is not installed, run `pip install it`\): install what it needs"
    for use in (lambda: GymnasiumWorld.of(name, {"gravity": (-11, -5)}), lambda: watch(name, lambda seen: 0)):
        with pytest.raises(InputError, match=sentence):
            use()
