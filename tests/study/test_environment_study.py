"""Studies of Gymnasium environments: any agent, one file, and no code that the file names."""

import dataclasses
import json
import sqlite3
import sys
from contextlib import closing

import gymnasium
import numpy as np
import pytest

import policyspace
from policyspace import GymnasiumWorld, InputError, Sample, Study
from policyspace.study import Round

PARAMETERS = {"length": (0.3, 1.0), "gravity": (5, 15)}
MODULE = """
from pathlib import Path
import gymnasium

Path({mark!r}).touch()

def light(length=0.5):
    env = gymnasium.make("CartPole-v1")
    env.unwrapped.length = length
    return env
"""


def balancer(seed=0):
    """An agent that looks at the pole alone: the angle and its velocity."""
    rng = np.random.default_rng(seed)
    return lambda seen: int(rng.random() < 1 / (1 + np.exp(-10 * seen[2] - 2 * seen[3])))


def make_study(path, **options):
    return Study.create(path, env="CartPole-v1", parameters=PARAMETERS, **{"max_rounds": 1, "episodes": 15} | options)


def test_from_create_to_answer_and_the_same_again(tmp_path):
    answers = []
    for name in ("a.sqlite", "b.sqlite"):
        agent = balancer()
        study = make_study(tmp_path / name)
        first = study.play(agent)
        assert first.configuration == {"length": 0.5, "gravity": 9.8} and study.settings["design"] == "simulated"
        request = Study.open(tmp_path / name).ask()  # from the file alone: the id is one that Gymnasium knows
        assert "simulated in many configurations" in request.why and request.forecasts
        assert Study.open(tmp_path / name).play(agent).configuration == request.configuration
        assert study.play(agent) is None
        answers.append(Study.open(tmp_path / name).status().to_dict()["rounds"])
    for rounds in answers:
        for one in rounds:
            del one["told_at"]
    assert answers[0] == answers[1]
    assert answers[0][-1]["selected"] == ("observation[2]", "observation[3]")


def test_a_person_tells_a_log(tmp_path):
    """What was logged elsewhere, by name and in any order of columns."""
    study = make_study(tmp_path / "a.sqlite", design="space-filling")
    env, act = GymnasiumWorld.of("CartPole-v1", PARAMETERS).environment(study.ask().configuration), balancer(1)
    rows, actions, episodes = [], [], []
    for episode in range(12):
        seen, _ = env.reset(seed=episode)
        ended = False
        while not ended:
            rows.append(seen[::-1])
            actions.append(act(seen))
            episodes.append(episode)
            seen, _, terminated, truncated, _ = env.step(actions[-1])
            ended = terminated or truncated
    names = tuple(f"observation[{i}]" for i in (3, 2, 1, 0))
    result = study.tell(Sample(np.array(rows), np.array(actions), names, ("0", "1"), np.array(episodes)))
    assert set(result.newly_selected) == {"observation[2]", "observation[3]"} and result.num_episodes == 12
    assert "no configuration has been near yet" in study.ask().why
    with pytest.raises(InputError, match=r"lack the feature 'observation.0.' of the world"):
        study.tell(Sample(np.array(rows), np.array(actions), ("a", "b", "c", "d"), ("0", "1"), np.array(episodes)))


def test_continuous_actions_and_a_budget(tmp_path):
    """A controller of the pendulum that brakes, wherever the pendulum is; the spread of its noise is not known."""
    rng = np.random.default_rng(0)
    study = Study.create(tmp_path / "a.sqlite", env="Pendulum-v1", parameters={"g": (5, 15), "m": (0.5, 2)}, budget=30)
    assert study.settings["environment"]["ways"] == {"g": "keyword", "m": "attribute"}
    while study.play(lambda seen: np.array([-0.3 * seen[2] + 0.3 * rng.normal()], np.float32)) is not None:
        pass
    status = study.status()
    assert status.selected == ("observation[2]",) and status.total_episodes == 30
    assert len(status.rounds) > 1


def test_the_file_keeps_how_the_configuration_travels(tmp_path):
    stored = make_study(tmp_path / "a.sqlite").settings["environment"]
    assert stored["ways"] == {"length": "attribute", "gravity": "attribute"}
    assert "polemass_length follows" in stored["parameters"][0]["description"]


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A study of an environment that a function of the user's makes, and the file that its module touches."""
    mark = tmp_path / "imported"
    (tmp_path / "own_place.py").write_text(MODULE.format(mark=str(mark)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    study = Study.create(
        "own.sqlite", env="own_place:light", parameters={"length": (0.3, 1.0)}, max_rounds=2, episodes=10
    )
    study.play(balancer())
    sys.modules.pop("own_place")
    mark.unlink()
    yield mark
    sys.modules.pop("own_place", None)


def test_opening_a_study_imports_nothing_that_it_names(own):
    study = Study.open("own.sqlite")
    assert study.status().rounds[0].num_episodes == 10 and study.demonstrations(0).num_episodes == 10
    assert study.world.name == "own_place:light"
    with pytest.raises(InputError, match="no code named in a file is run: give its function again"):
        study.ask()
    with pytest.raises(InputError, match="give its function again"):
        study.play(balancer())
    assert not own.exists()


def test_the_same_function_must_be_given_again(own):
    with pytest.raises(InputError, match="'own_place:light', found 'CartPole-v1': give the same one"):
        Study.open("own.sqlite", env="CartPole-v1")
    assert not own.exists()
    study = Study.open("own.sqlite", env="own_place:light")
    assert own.exists() and study.ask().number == 1 and study.play(balancer()).number == 1


@pytest.mark.parametrize("name", ["own_place:CartPole-v1", "own_place:light", "own_place"])
def test_no_name_in_a_file_makes_gymnasium_import_a_module(own, name):
    with sqlite3.connect("own.sqlite") as file:
        (text,) = file.execute("SELECT value FROM settings WHERE name = 'environment'").fetchone()
        changed = json.loads(text) | {"name": name}
        file.executescript("DROP TABLE seals; PRAGMA user_version=1")  # files of version 1 have none
        file.execute("UPDATE settings SET value = ? WHERE name = 'environment'", (json.dumps(changed),))
    file.close()
    with pytest.raises(InputError, match="no code named in a file is run"):
        Study.open("own.sqlite").ask()
    assert not own.exists()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "say what the study is about"),
        ({"world": "gridworld", "env": "CartPole-v1"}, "say what the study is about"),
        ({"world": "gridworld", "parameters": PARAMETERS}, "parameters belong to an environment"),
        ({"world": gymnasium}, "expected a Gymnasium environment"),
        ({"env": "CartPole-v1", "parameters": PARAMETERS, "design": "d-optimal"}, "weights trajectories by densities"),
        ({"env": "CartPole-v1", "parameters": PARAMETERS, "configuration": {"mass": 1}}, "names 'mass'"),
        ({"env": "CartPole-v1", "parameters": PARAMETERS, "test": "eprocess"}, "any form, found the e-process"),
        ({"env": "CartPole-v1", "parameters": PARAMETERS, "paper_rule": True}, "any form, found the paper's rule"),
        (
            {"env": "Acrobot-v1", "parameters": {"LINK_LENGTH_1": (0.5, 1.5)}, "groups": "parameter"},
            "any form, found single weights as groups",
        ),
    ],
)
def test_what_cannot_be_studied_is_a_sentence(tmp_path, given, sentence):
    with pytest.raises(InputError, match=sentence):
        Study.create(tmp_path / "a.sqlite", **given)
    assert not (tmp_path / "a.sqlite").exists()


def test_a_file_that_asks_for_what_is_refused_is_not_obeyed(tmp_path):
    """The e-process takes the agent to be of the linear space, of which nothing is known here."""
    make_study(tmp_path / "a.sqlite")
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as file, file:
        file.executescript("DROP TABLE seals; PRAGMA user_version=1")  # files of version 1 have none
        file.execute("UPDATE settings SET value = '\"eprocess\"' WHERE name = 'test'")
    study = Study.open(tmp_path / "a.sqlite")
    with pytest.raises(InputError, match="may be of any form, found the e-process"):
        study.ask()


def test_an_agent_that_never_wavers_is_not_tested_by_a_model(tmp_path):
    """A linear rule tells its actions apart perfectly: no test holds for it, whatever its form, and the round says so."""
    study = Study.create(tmp_path / "a.sqlite", env="CartPole-v1", parameters=PARAMETERS, episodes=10, max_rounds=0)
    found = study.play(lambda seen: int(seen[2] + seen[3] > 0))
    assert found.newly_selected == () and "this batch alone could not be tested" in found.warnings[-1]
    assert "without chance" in found.warnings[-1]


def test_our_worlds_have_no_environment_to_play(tmp_path):
    study = Study.create(tmp_path / "a.sqlite", "gridworld")
    with pytest.raises(InputError, match="expected a Gymnasium environment, found 'gridworld'"):
        study.play(balancer())
    with pytest.raises(InputError, match="about the world 'gridworld', no environment"):
        Study.open(tmp_path / "a.sqlite", env="CartPole-v1")


def test_an_environment_is_no_world_by_name(tmp_path):
    make_study(tmp_path / "a.sqlite")
    with pytest.raises(InputError, match="is about the environment 'CartPole-v1', found the world 'gridworld' named"):
        Study.open(tmp_path / "a.sqlite", "gridworld")


class Endless(gymnasium.Env):
    """Readings of the deviation k that never end."""

    observation_space = gymnasium.spaces.Box(-9, 9, (2,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, k=1.0):
        self.k = k

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.k * self.np_random.normal(size=2), {}

    def step(self, action):
        return self.k * self.np_random.normal(size=2), 0.0, False, False, {}


def test_episodes_that_were_cut_off_are_a_warning_of_the_round(tmp_path):
    rng = np.random.default_rng(0)
    study = Study.create(tmp_path / "a.sqlite", env=Endless, parameters={"k": (0.2, 1)}, episodes=2, max_rounds=0)
    study.play(lambda seen: int(rng.integers(2)))
    (told,) = Study.open(tmp_path / "a.sqlite").rounds()
    assert told.warnings[0].startswith("2 of 2 episodes were cut off after 1000 steps")


@pytest.mark.slow
def test_what_an_agent_does_not_use_is_rarely_selected(tmp_path):
    """Loops with an agent that uses the pole's angle and velocity alone: a false selection in at most δ of them."""
    from scipy.stats import binom

    false, count = 0, 200
    for seed in range(count):
        study = make_study(tmp_path / f"{seed}.sqlite", design="space-filling", seed=seed, significance=0.1)
        agent = balancer(seed)
        while study.play(agent) is not None:
            pass
        false += bool({"observation[0]", "observation[1]"} & set(study.status().selected))
    assert false <= binom.ppf(0.999, count, 0.1)


# -- Rounds whose readings are drawn.


class Remembers:
    """Sees the angle alone and remembers the last one: watched, it seems to use how fast the angle changes."""

    def __init__(self):
        self.rng, self.before = np.random.default_rng(4), 0.0

    def predict(self, seen, deterministic=False, state=None, episode_start=None):
        turning = 0.0 if state is None or episode_start[0] else 50 * (seen[2] - self.before)
        self.before = seen[2]
        return int(self.rng.random() < 1 / (1 + np.exp(-6 * seen[2] - 4 * turning))), 1


def test_a_study_may_draw_what_the_agent_reads(tmp_path):
    study = make_study(tmp_path / "a.sqlite", design="space-filling")
    one = study.play(Remembers(), randomise=True)
    assert one.selected == ("observation[2]",)
    assert study.play(Remembers(), randomise=True).selected == ("observation[2]",)
    again = Study.open(tmp_path / "a.sqlite")
    assert again.status().selected == ("observation[2]",) and [r.exact for r in again.status().rounds] == [True, True]
    assert again.table().rows[0][1] == "as it was, readings drawn"
    assert again.notes()[1].startswith("Exact: rounds 1 and 2, tested by readings that were drawn")
    watched = make_study(tmp_path / "b.sqlite", design="space-filling")
    assert not watched.play(Remembers()).exact and "drawn" not in " ".join(watched.notes())


def test_a_study_of_before_knows_no_drawn_rounds():
    given = {"number": 0, "configuration": {}, "design": None, "asked_for": [], "reasons": {}, "num_episodes": 1,
             "total_episodes": 1, "significance": 0.05, "tests": [], "fell": [], "selected": [], "undecided": [],
             "supports": [], "warnings": []}  # fmt: skip
    assert not Round.from_dict(given).exact


def test_a_log_with_draws_is_told_and_tested_by_them(tmp_path):
    study = make_study(tmp_path / "a.sqlite", design="space-filling")
    env = GymnasiumWorld.of("CartPole-v1", PARAMETERS).environment(study.ask().configuration)
    names = [f"observation[{i}]" for i in range(4)]
    drawing = policyspace.RandomisedReadings(env, features=names, seed=7)
    sample = policyspace.watch(drawing, Remembers(), 15)
    assert study.tell(sample).selected == ("observation[2]",)
    changed = dataclasses.replace(sample, actions=np.roll(sample.actions, 1))
    other = make_study(tmp_path / "b.sqlite", design="space-filling")
    assert "not the one that was recorded" in other.tell(changed).warnings[-1]


def test_categories_are_not_drawn_in_a_study(tmp_path):
    study = Study.create(
        tmp_path / "a.sqlite", env=slippery_lake, parameters={"success_rate": (0.3, 0.9)}, max_rounds=1, episodes=5
    )
    with pytest.raises(InputError, match="readings of numbers alone are drawn in a study"):
        study.play(lambda seen: 1, randomise=True)


def slippery_lake(success_rate=0.5):
    """A lake of which the agent sees its place, a category."""
    return gymnasium.make("FrozenLake-v1", success_rate=success_rate)
