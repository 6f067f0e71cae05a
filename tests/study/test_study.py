"""Studies: the same answers as the loop, one file that outlives its process, and a sentence for whatever is wrong."""

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy.stats import binom

from policyspace import InputError, Sample, Study, configure, make_world, rollout
from policyspace.study import PaperObjective, RoundPlan, SQLiteStore, Uniform, load_world
from policyspace.study.store import VERSION, digest
from tests.some_episodes import some_episodes

WORLD = make_world("gridworld")
SPACE = WORLD.policy_space()
EXAMPLES = Path(__file__).parents[2] / "examples"


def weights(*owned, size=3.0):
    """θ of an agent that goes one way on each of the features that it owns."""
    theta = np.zeros((3, 17))
    for i, name in enumerate(owned):
        theta[i % 3, 1 + WORLD.feature_names.index(name)] = size
    return theta.ravel()


def episodes(theta, configuration=None, seed=0, count=40):
    omega = WORLD.check_configuration(configuration or {})
    return some_episodes(WORLD, SPACE, theta, omega, jax.random.key(seed), count)


def pairs(seen, **origin):
    return seen.pairs(WORLD.feature_names, WORLD.action_names, origin)


@pytest.fixture
def study(tmp_path):
    return Study.create(tmp_path / "a.sqlite", "gridworld", design="none", max_rounds=2)


def test_levels_add_up_and_rounds_end(study):
    theta, spent = weights("row_0"), 0.0
    for number in range(3):
        assert study.ask().number == number
        record = study.tell(episodes(theta, seed=number))
        spent += record.significance
        assert record.total_episodes == 40 * (number + 1)
    assert spent == pytest.approx(0.05, abs=1e-15)
    assert study.ask() is None and study.status().finished == "all 3 rounds have been reported"
    with pytest.raises(InputError, match="shared out over 3 rounds"):
        study.tell(episodes(theta, seed=9))


@pytest.mark.parametrize("rule", ["simplified", "combinatorial"])
@pytest.mark.parametrize("paper_rule", [False, True])
def test_a_study_decides_what_the_loop_decides(tmp_path, rule, paper_rule):
    """The same episodes, told one batch after the other, and seen by `configure` through a replay."""
    theta = weights("row_0", "col_1", "goal_row_2", size=1.2)
    asked = ("row_0", "row_1", "col_1", "col_2", "goal_row_2")
    assume = [name for name in WORLD.feature_names if name not in asked]
    batches = [episodes(theta, seed=s) for s in range(4)]
    space = WORLD.policy_space(assume=assume)
    replay = iter(batches)
    loop = configure(
        WORLD, lambda key, omega, count: next(replay), jax.random.key(0), space, rule, 0.05, Uniform(),
        num_episodes=40, paper_rule=paper_rule,
    )  # fmt: skip
    study = Study.create(
        tmp_path / "b.sqlite", "gridworld", rule=rule, paper_rule=paper_rule, design="uniform", num_episodes=40,
        assume=assume,
    )  # fmt: skip
    for batch, wanted in zip(batches, loop, strict=False):
        study.ask()
        record = study.tell(batch)
        assert (record.newly_selected, record.selected, record.undecided) == (
            wanted.newly_selected, wanted.selected, wanted.undecided,
        )  # fmt: skip
        assert record.supports == wanted.supports and record.significance == wanted.significance
        tested = [t for t in record.tests if "statistic" in t]  # what was selected before is not tested again
        assert [t["statistic"] for t in tested] == [t.statistic for t in wanted.identification.groups]
    assert "row_0" in study.status().selected


def test_the_papers_design_asks_unit_by_unit_as_algorithm_4_does(tmp_path):
    """Which unit is asked for depends only on what fell: the loop is the reference."""
    theta = weights("row_0", size=1.5)
    assume = [name for name in WORLD.feature_names if name not in ("row_0", "row_1", "col_1")]
    batches = {number: episodes(theta, seed=number, count=12) for number in range(9)}
    seen = iter(range(9))
    loop = configure(
        WORLD,
        lambda key, omega, count: replace(batches[next(seen)], configuration=omega),
        jax.random.key(0),
        WORLD.policy_space(assume=assume),
        design=PaperObjective(num_updates=5),
        max_rounds=2,
    )
    study = Study.create(tmp_path / "c.sqlite", "gridworld", assume=assume, design="paper", max_rounds=2)
    asked, wanted = [], []
    for told in loop:
        wanted.append(told.asked_for)
        request = study.ask()
        asked.append(() if request.design is None else request.asked_for)
        study.tell(replace(batches[told.number], configuration=WORLD.check_configuration(request.configuration)))
    assert asked == wanted and len(asked) >= 5
    assert study.ask() is None


def test_asking_is_the_same_until_told_in_every_process_and_every_copy(tmp_path):
    theta = weights("row_0", "col_1")
    first, second = (Study.create(tmp_path / f"{i}.sqlite", "gridworld", max_rounds=2) for i in range(2))
    for study in (first, second):
        study.ask()
        study.tell(pairs(episodes(theta)))
    asked = first.ask()
    assert asked.design == "d-optimal" and asked.forecasts and asked == first.ask() == second.ask()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.sqlite", "1.sqlite"]  # one file, nothing beside it
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(tmp_path / "0.sqlite", tmp_path / "elsewhere" / "moved.sqlite")
    moved = Study.open(tmp_path / "elsewhere" / "moved.sqlite")
    assert moved.ask() == asked and moved.status().to_dict() == first.status().to_dict()
    record = moved.tell(pairs(episodes(theta, asked.configuration, seed=5)))
    assert record.design == "d-optimal" and moved.ask() != asked
    assert RoundPlan.from_dict(json.loads(json.dumps(asked.to_dict()))) == asked


def test_demonstrations_in_any_order_of_columns_are_the_trajectories_they_come_from(study, tmp_path):
    """Columns reversed, one action never played and left out: still the very same data."""
    seen = episodes(weights("row_0", "col_1"))
    data = pairs(seen)
    study.ask()
    record = study.tell(data)
    twin = Study.create(tmp_path / "twin.sqlite", "gridworld", design="none", max_rounds=2)
    again = twin.tell(seen)
    assert again.tests == record.tests and again.newly_selected == record.newly_selected
    order = np.arange(16)[::-1]
    code = [3, 1, 0, 2]
    shuffled = Sample(
        data.features[:, order],
        np.argsort(code)[data.actions],
        tuple(data.names[i] for i in order),
        tuple(data.action_names[a] for a in code),
        data.episodes,
    )
    with pytest.raises(InputError, match="reported before, in round 1"):
        study.tell(shuffled)
    np.testing.assert_array_equal(study.demonstrations(0).features, data.features)
    np.testing.assert_array_equal(twin.demonstrations(0).actions, data.actions)


def test_where_data_were_collected(study):
    """The argument, else what the data say, else what was asked; only what was asked counts as following."""
    theta, elsewhere = weights("row_0"), {"row": [1.0, 1, 1, 1, 3]}
    asked = study.ask()
    record = study.tell(pairs(episodes(theta), configuration=elsewhere))
    assert record.configuration["row"] == [1, 1, 1, 1, 3] and asked.configuration["row"] == [1] * 5
    study.ask()
    assert study.tell(pairs(episodes(theta, seed=1))).configuration == record.configuration  # "none" stays
    study.ask()
    record = study.tell(episodes(theta, seed=2), {"row[0]": 2.0})
    assert record.configuration["row"][0] == 2.0 and record.design is None


def test_a_budget_is_shared_out_over_what_is_left(tmp_path):
    study = Study.create(tmp_path / "b.sqlite", "gridworld", design="none", budget=103, max_rounds=3)
    sizes = []
    while (asked := study.ask()) is not None:
        sizes.append(asked.num_episodes)
        study.tell(pairs(episodes(weights("row_0"), seed=len(sizes), count=asked.num_episodes)))
    assert sizes == [26, 26, 26, 25]


def test_features_in_question_are_the_units(tmp_path):
    study = Study.create(tmp_path / "f.sqlite", "gridworld", features=["row_0", "col_1"], design="none")
    assert study.settings["units"] == ["row_0", "col_1"]
    record = study.tell(episodes(weights("row_0", "goal_col_1"), count=80))
    assert record.selected == ("row_0",) and record.undecided == ("col_1",)
    groups = {"position": ["row_0", "row_1", "row_2", "row_3"]}
    grouped = Study.create(tmp_path / "g.sqlite", "gridworld", groups=groups, design="none")
    assert "position" in grouped.settings["units"] and len(grouped.settings["units"]) == 13
    assert "position" in grouped.tell(episodes(weights("row_0"), count=80)).selected


def test_every_unit_decided_ends_the_study(tmp_path):
    study = Study.create(tmp_path / "e.sqlite", "gridworld", features=["row_0"], design="none")
    study.tell(episodes(weights("row_0"), count=80))
    assert study.ask() is None and study.status().finished == "every group is shown to be controlled"


def test_a_world_of_the_user(tmp_path, monkeypatch):
    shutil.copy(EXAMPLES / "own_world.py", tmp_path / "my_rover.py")
    monkeypatch.chdir(tmp_path)
    study = Study.create("rover.sqlite", "my_rover:Rover", max_rounds=1)
    world = study.world
    theta = np.array([0.0, -0.5, 0.0])
    omega = world.default_configuration()
    study.ask()
    record = study.tell(rollout(world, study.space, theta, omega, jax.random.key(0), 50))
    assert record.selected == ("position",)
    asked = study.ask()
    assert asked.asked_for == ("temperature",) and 0.2 <= asked.configuration["gain"] <= 3.0
    (tmp_path / "not_a_world.py").write_text("Thing = dict\n")
    for spec, message in (
        ("no_such_module:World", "cannot be imported"),
        ("my_rover:Rovr", "cannot be found: the module 'my_rover' has no 'Rovr'"),
        ("not_a_world:Thing", "must be a policyspace.worlds.confmdp.ConfMDP"),
    ):
        with pytest.raises(InputError, match=message):
            load_world(spec)


BAD_SETTINGS = [
    ({"world": "gridwrld"}, "did you mean 'gridworld'"),
    ({"significance": 0.0}, "between 0 and 1"),
    ({"rule": "simple"}, "did you mean 'simplified'"),
    ({"design": "doptimal"}, "did you mean 'd-optimal'"),
    ({"features": ["row_9"]}, "no feature 'row_9'"),
    ({"features": ["row_0"], "groups": "parameter"}, "exclude each other"),
    ({"assume": ["rows"]}, "did you mean 'row_"),
    ({"assume": list(WORLD.feature_names)}, "at least one group"),
    ({"budget": 3, "max_rounds": 3}, "too small for 4 rounds"),
    ({"budget": 100, "episodes": 10}, "shared out over its rounds, found 10 episodes a round too: leave one of them"),
    ({"max_rounds": -1}, "at least 0"),
    ({"num_episodes": 0}, "at least 1"),
    ({"initial": {"rows": 1}}, "did you mean 'row'"),
]


@pytest.mark.parametrize(("settings", "message"), BAD_SETTINGS)
def test_bad_settings_are_one_sentence_and_leave_no_file(tmp_path, settings, message):
    with pytest.raises(InputError, match=message) as caught:
        Study.create(tmp_path / "s.sqlite", **{"world": "gridworld", **settings})
    assert "\n" not in str(caught.value) and list(tmp_path.iterdir()) == []


def bad_demonstrations():
    good = pairs(episodes(weights("row_0"), count=5))
    fields = {name: getattr(good, name) for name in ("features", "actions", "names", "action_names", "episodes")}

    def other(**changes):
        return Sample(**{**fields, **changes})

    renamed = ("rov_0", *good.names[1:])
    wider = np.hstack([good.features, good.features[:, :1]])
    return [
        (other(names=renamed), "lack the feature 'row_0'"),
        (other(features=wider, names=(*good.names, "weather")), "'weather', which the world"),
        (other(action_names=("up", "down", "left", "wait")), "action 'wait'"),
        (other(actions=good.actions[:, None] + 0.5, action_names=("push",)), "are discrete, found continuous"),
        (other(episodes=None), "counts episodes"),
        (other(origin={"world": "minigolf"}), "from the world 'minigolf'"),
        (other(origin={"configuration": {"rows": 1}}), "did you mean 'row'"),
        (other(origin={"configuration": [1, 2]}), "table of names"),
        ("demos.parquet", "there is no such file"),
    ]


def test_bad_demonstrations_are_one_sentence_and_change_nothing(study):
    before = study.path.read_bytes()
    for data, message in bad_demonstrations():
        with pytest.raises(InputError, match=message) as caught:
            study.tell(data)
        assert "\n" not in str(caught.value)
    seen = episodes(weights("row_0"), count=5)
    for broken, message in (
        (replace(seen, rewards=seen.rewards * np.nan), "finite"),
        (replace(seen, features=seen.features[..., :3]), "need features of shape"),
        (replace(seen, states=seen.states[..., :2]), "states in 'gridworld' have the shapes"),
        (replace(seen, actions=seen.actions + 7), "codes from 0 to 3"),
    ):
        with pytest.raises(InputError, match=message):
            study.tell(broken)
    assert study.path.read_bytes() == before


def test_what_is_no_study_is_said_to_be_none(tmp_path, study):
    (tmp_path / "text.sqlite").write_text("not a database, but long enough to be taken for one" * 50)
    (tmp_path / "empty.sqlite").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    with sqlite3.connect(tmp_path / "other.sqlite") as other:
        other.execute("CREATE TABLE t (x)")
    newer = tmp_path / "newer.sqlite"
    shutil.copy(study.path, newer)
    with sqlite3.connect(newer) as connection:
        connection.execute(f"PRAGMA user_version={VERSION + 1}")
    for name, message in (
        ("text.sqlite", "not a database"),
        ("empty.sqlite", "is no study"),
        ("folder", "found a folder"),
        ("nowhere.sqlite", "found no file"),
        ("other.sqlite", "is no study"),
        ("newer.sqlite", f"version {VERSION + 1}"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            Study.open(tmp_path / name)
        assert "\n" not in str(caught.value) and name in str(caught.value)
    with pytest.raises(InputError, match="there is a file already"):
        Study.create(study.path, "gridworld")
    with pytest.raises(InputError, match="kept in a file, found None as its path: give the name of one"):
        Study.open(None)
    with pytest.raises(InputError, match="kept in a file, found 3 as its path"):
        Study.create(3, "gridworld")


def test_damaged_data_are_noticed(study):
    study.tell(episodes(weights("row_0"), count=5))
    blob = sqlite3.connect(study.path).execute("SELECT data FROM rounds").fetchone()[0]
    for damaged in (blob[: len(blob) // 2], b"PK not an archive"):
        with sqlite3.connect(study.path) as connection:
            connection.execute("UPDATE rounds SET data = ?", (damaged,))
        with pytest.raises(InputError, match="damaged"):
            study.demonstrations(0)


def test_two_tellers_do_not_tell_the_same_round(study):
    """The other process was faster: the slower one is told so, and nothing of its round is kept."""
    record = study.tell(episodes(weights("row_0"), count=5))
    store = SQLiteStore.open(study.path)
    with pytest.raises(InputError, match="another process reported round 1 meanwhile"):
        store.tell(0, "now", record.to_dict(), {}, {"features": np.zeros(3)})
    assert len(study.rounds()) == 1


def test_status_needs_no_simulator(study):
    code = (
        "import sys; from policyspace import Study; "
        "print(Study.open(sys.argv[1]).status().sentence, 'jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(study.path)], capture_output=True, text=True, timeout=120)
    assert done.stdout.split("\n")[0] == "Nothing has been reported yet. False"


TELLER = """
import os, signal, sqlite3, sys
import numpy as np
from policyspace.study.store import SQLiteStore
path, start, statement = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
store = SQLiteStore.open(path)
if statement >= 0:
    left = [statement]
    def trace(_):
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
    connect = sqlite3.connect
    def connect_and_trace(*given, **named):
        connection = connect(*given, **named)
        connection.set_trace_callback(trace)
        return connection
    sqlite3.connect = connect_and_trace
random = np.random.default_rng(start)
print("ready", flush=True)
for number in range(start, start + 10_000):
    arrays = {"features": random.random((1500, 100)), "number": np.array(number)}
    store.tell(number, "now", {"number": number}, {}, arrays)
    print(number, flush=True)
    if statement >= 0:
        break
"""


def held(path):
    """How many rounds a study holds, after checking that they are whole."""
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    store = SQLiteStore.open(path)
    rounds = store.rounds()
    for number, (record, _, _) in enumerate(rounds):
        assert record == {"number": number}
    for number in range(max(0, len(rounds) - 3), len(rounds)):  # earlier ones were read after earlier kills
        assert int(store.data(number)["number"]) == number
    return len(rounds)


def test_killed_at_every_statement_the_study_holds_the_old_state_or_the_new(tmp_path):
    """SIGKILL just before the first, second, … statement of a tell; the last run is not killed."""
    path = tmp_path / "k.sqlite"
    SQLiteStore.create(path, {"world": "gridworld"})
    killed, number = 0, 0
    for statement in range(40):
        arguments = [sys.executable, "-c", TELLER, str(path), str(number), str(statement)]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        if done.returncode == 0:
            break
        killed += 1
        assert held(path) == number
    assert killed >= 5 and held(path) == number + 1


@pytest.mark.slow
def test_killed_at_random_moments_the_study_holds_the_old_state_or_the_new(tmp_path):
    """A process that tells megabytes without end, killed again and again where it happens to be."""
    path, chance, number = tmp_path / "r.sqlite", random.Random(0), 0
    SQLiteStore.create(path, {"world": "gridworld"})
    for kill in range(8):
        arguments = [sys.executable, "-c", TELLER, str(path), str(number), "-1"]
        child = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "ready\n"
        told = [child.stdout.readline()] if kill == 7 else []  # something is told, however busy the machine is
        time.sleep(chance.uniform(0.0, 0.4))
        os.kill(child.pid, signal.SIGKILL)
        lines = [*told, *child.stdout.read().split()]
        child.wait()
        finished = int(lines[-1]) + 1 if lines else number
        number = held(path)
        assert number in (finished, finished + 1)
    assert number > 0


@pytest.mark.slow
def test_a_full_tell_killed_at_random_moments(tmp_path):
    """The whole of `Study.tell`, tests included, in a process that is killed; the study goes on where it stands."""
    path, chance = tmp_path / "s.sqlite", random.Random(1)
    study = Study.create(path, "gridworld", design="none", max_rounds=400)
    np.savez(
        tmp_path / "d.npz",
        **{k: np.asarray(getattr(episodes(weights("row_0")), k)) for k in ("features", "actions", "mask")},
    )
    code = (
        "import sys, numpy as np\n"
        "from policyspace import Demonstrations, Study\n"
        "d = np.load(sys.argv[2]); study = Study.open(sys.argv[1]); w = study.world; m = d['mask']\n"
        "random = np.random.default_rng(len(study.rounds()))\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    rows = random.integers(m.sum(), size=200)\n"
        "    data = (d['features'][m][rows], d['actions'][m][rows], w.feature_names, w.action_names, np.arange(200))\n"
        "    print(study.tell(Demonstrations(*data)).number, flush=True)\n"
    )
    finished = 0
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(path), str(tmp_path / "d.npz")], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0.3, 1.5))
        os.kill(child.pid, signal.SIGKILL)
        lines = child.stdout.read().split()
        child.wait()
        finished = int(lines[-1]) + 1 if lines else finished
        opened = Study.open(path)
        count = len(opened.rounds())
        assert count in (finished, finished + 1)
        finished = count
        for number in range(count):
            assert opened.demonstrations(number).num_rows == 200
    assert study.tell(episodes(weights("row_0"), seed=3)).number == count


def test_the_digest_tells_types_shapes_and_numbers_apart():
    base = {"a": np.arange(6.0)}
    others = [
        {"a": np.arange(6)},
        {"a": np.arange(6.0).reshape(2, 3)},
        {"b": np.arange(6.0)},
        {"a": np.arange(6.0) + 1e-15},
    ]
    assert len({digest(arrays) for arrays in [base, *others]}) == 5
    assert digest({"a": np.arange(12.0)[::2]}) == digest({"a": np.arange(0.0, 12.0, 2.0)})


@pytest.mark.slow
def test_over_many_studies_a_false_selection_is_as_rare_as_promised(tmp_path):
    """Golfers that own one feature of five, three rounds each: P(any false) ≤ δ = 0.2.

    The covariance is known, so that λ has its χ² law exactly and only the split of δ is on trial.
    """
    world, runs, false, found = make_world("minigolf"), 150, 0, 0
    space, theta = world.policy_space(), np.array([0.3, 0.02, 0.0, 0.0, 0.0, 0.0])
    omega = world.default_configuration()
    for run in range(runs):
        study = Study.create(tmp_path / f"{run}.sqlite", "minigolf", design="none", max_rounds=2, significance=0.2)
        for number in range(3):
            seen = rollout(world, space, theta, omega, jax.random.key(1000 * run + number), 30)
            study.tell(seen.pairs(world.feature_names, world.action_names))
        selected = set(study.status().selected)
        false, found = false + bool(selected - {"x"}), found + ("x" in selected)
    assert found > 0.9 * runs
    assert binom.sf(false - 1, runs, 0.2) > 1e-3, f"{false} of {runs}"
    assert false > 0  # features that go together fall together: fewer than δ·runs, but not none


def test_a_call_opens_the_file_once(tmp_path, monkeypatch):
    """Two reads of one answer are of one connection."""
    opened, connect = [], sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **words: opened.append(given) or connect(*given, **words))
    study = Study.create(tmp_path / "golf.study", "minigolf", episodes=20, seed=1)
    for call in (study.status, study.ask, study.rounds):
        opened.clear()
        call()
        assert len(opened) == 1
