"""The same words everywhere; older ones mean what they meant, and misspelt ones are told apart."""

import inspect

import numpy as np
import polars
import pytest

import policyspace
from policyspace import InputError, Sample, Study, identify, plan, read
from policyspace.theory import assess

RNG = np.random.default_rng(5)
X = RNG.normal(size=(90, 2))
FORCE = X[:, 0] + RNG.normal(size=90)
TRIP, COUNT = np.arange(90) // 9, RNG.integers(1, 3, 90).astype(float)
FRAME = polars.DataFrame({"speed": X[:, 0], "left": X[:, 1], "force": FORCE, "trip": TRIP, "count": COUNT})
COLUMNS = {"features": ["speed", "left"], "episodes": "trip", "weights": "count"}
OLD_COLUMNS = {"names": ["speed", "left"], "episode": "trip", "weight": "count"}
OLDER = {"names", "action", "episode", "weight", "subject", "path", "dependence", "metadata", "always", "weights_are"}


@pytest.fixture
def file(tmp_path):
    FRAME.write_csv(tmp_path / "log.csv")
    return tmp_path / "log.csv"


def same(one, other):
    for name in Sample.__dataclass_fields__.keys() - {"rows"}:  # which are made of the others
        np.testing.assert_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("call", [identify, plan, assess])
def test_older_words_give_the_same_answer(call, file):
    wanted = call(FRAME, "force", **COLUMNS).to_json()
    assert call(FRAME, "force", **OLD_COLUMNS).to_json() == wanted
    assert call(FRAME, action="force", **OLD_COLUMNS).to_json() == wanted
    assert call(file, action="force", **OLD_COLUMNS).to_json() == wanted
    arrays = {"episodes": TRIP, "weights": COUNT}
    new = call(X, FORCE, features=["speed", "left"], **arrays).to_json()
    assert call(features=X, actions=FORCE, names=["speed", "left"], **arrays).to_json() == new
    assert call(X, FORCE, names=["speed", "left"], episode=TRIP, weight=COUNT).to_json() == new


def test_older_words_make_the_same_demonstrations(file):
    wanted = Sample.from_frame(FRAME, "force", **COLUMNS)
    old = {"features": ["speed", "left"], "episode": "trip", "weight": "count"}
    same(Sample.from_frame(FRAME, action="force", **old), wanted)
    same(read(file, action="force", **old), wanted)
    same(read(file, "force", **COLUMNS), wanted)
    arrays = Sample.from_arrays(X, FORCE, features=["speed", "left"])
    same(Sample.from_arrays(X, FORCE, names=["speed", "left"]), arrays)
    same(Sample.from_arrays(features=X, actions=FORCE, names=["speed", "left"]), arrays)
    same(Sample.from_arrays(X, FORCE, ["speed", "left"]), arrays)
    assert Sample.from_arrays(X[:, :1], FORCE, features="speed").names == ("speed",)


@pytest.mark.parametrize("call", [identify, plan, assess, Sample.from_arrays, Sample.from_frame, read])
def test_unknown_words_are_named_with_what_was_meant(call):
    for given, meant in (("feature", "features"), ("weigths", "weights"), ("acttions", "actions")):
        with pytest.raises(InputError, match=f"{call.__name__} has no argument '{given}': did you mean '{meant}'"):
            call(X, **{given: 1})
    with pytest.raises(InputError, match="has no argument 'qqq': valid names are"):
        call(X, qqq=1)


def test_words_of_the_plan_and_of_the_policy_are_known_to_plan():
    for given, meant in (("powr", "power"), ("covarance", "covariance"), ("hiden", "hidden")):
        with pytest.raises(InputError, match=f"plan has no argument '{given}': did you mean '{meant}'"):
            plan(X, FORCE, **{given: 1})


def test_a_study_takes_the_words_of_its_command_and_the_older_ones(tmp_path):
    new, old = tmp_path / "new.sqlite", tmp_path / "old.sqlite"
    here = Study.create(new, "minigolf", max_rounds=2, episodes=30, configuration={"putter_length": 9.0})
    with pytest.warns(DeprecationWarning, match=r"create: num_attempts= is now max_rounds="):
        there = Study.create(old, "minigolf", num_attempts=2, num_episodes=30, initial={"putter_length": 9.0})
    assert here.settings == there.settings
    assert (here.settings["max_rounds"], here.settings["num_episodes"]) == (2, 30)
    assert here.settings["initial"]["putter_length"] == 9.0
    with pytest.raises(InputError, match="create has no argument 'max_round': did you mean 'max_rounds'"):
        Study.create(tmp_path / "none.sqlite", "minigolf", max_round=2)


@pytest.mark.parametrize(
    ("test", "old", "new"),
    [
        ("lean", {"always": ["left"]}, {"assume": ["left"]}),
        ("wilks", {"weights": COUNT, "weights_are": "counts"}, {"weights": COUNT, "weight_type": "frequency"}),
        ("lean", {"dependence": "rows"}, {"clusters": "rows"}),
    ],
)
def test_renamed_words_warn_once_and_mean_the_same(test, old, new):
    wanted = identify(X, FORCE, features=["speed", "left"], test=test, **new).to_json()
    (word,), (now,) = old.keys() - new.keys(), new.keys() - old.keys()
    with pytest.warns(DeprecationWarning, match=f"identify: {word}= is now {now}="):
        assert identify(X, FORCE, features=["speed", "left"], test=test, **old).to_json() == wanted


@pytest.mark.parametrize("kind", [policyspace.GaussianLinear, policyspace.PolicySpec, policyspace.SoftmaxNetwork])
def test_policies_know_the_older_word_for_assumed_groups(kind):
    with pytest.warns(DeprecationWarning, match=f"{kind.__name__}: always= is now assume="):
        made = kind(always=["left"])
    assert vars(made) == vars(kind(assume=["left"]))
    with pytest.raises(InputError, match=f"{kind.__name__} has no argument 'asume': did you mean 'assume'"):
        kind(asume=["left"])


def test_a_word_and_its_older_form_are_one_too_many():
    with pytest.raises(InputError, match="names= is an older word for features=, found both"):
        identify(X, FORCE, features=["a", "b"], names=["a", "b"])
    with pytest.raises(InputError, match="action= is an older word for actions=, found both"):
        identify(FRAME, "force", action="force")


def test_every_call_takes_the_same_words():
    """The table that plan and assess share holds just what identify says about data and policy."""
    words = [inspect.get_annotations(call)["source"] for call in (identify, plan, assess)]
    assert words == words[:1] * 3
    for call in (Sample.from_arrays, Sample.from_frame, read):
        assert {"actions", "features", "episodes", "weights", "subjects"} <= set(inspect.signature(call).parameters)
    for call in (identify, plan, assess, Sample.from_arrays, Sample.from_frame, read):
        assert OLDER.isdisjoint(inspect.signature(call).parameters)
    assert policyspace.identify.__doc__.startswith("Test which features")
