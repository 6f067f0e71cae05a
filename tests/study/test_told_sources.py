"""What `identify` reads a study is told too: every source leaves the same round as the plain demonstrations do."""

import warnings

import gymnasium
import h5py
import minari
import numpy as np
import polars
import pytest
from stable_baselines3.common.buffers import RolloutBuffer
from typer.testing import CliRunner

from policyspace import GymnasiumWorld, InputError, Sample, Study, watch, write
from policyspace.cli import app
from policyspace.data import Origin, Request
from policyspace.environments import EnvironmentSpec
from policyspace.study import batch_of
from tests.some_episodes import some_episodes

NAMES = ("position", "velocity", "angle", "angular_velocity")
UNNAMED = tuple(f"observation[{i}]" for i in range(4))
COLUMNS = {"actions": "move", "episodes": "run"}
NOTE = (
    "the numbers of an observation have no names in the data: they are taken for position, velocity, angle, "
    "angular_velocity, in this order."
)


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Episodes of an agent that looks at the pole, one list a kind of array; and the store with a dataset of them."""
    home, rng = tmp_path_factory.mktemp("seen"), np.random.default_rng(0)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(action="ignore"):  # Minari misses an author
        patch.setenv("MINARI_DATASETS_PATH", str(home / "minari"))
        env, episodes = minari.DataCollector(gymnasium.make("CartPole-v1")), []
        for seed in range(12):
            rows, actions, (row, _), ended = [], [], env.reset(seed=seed), False
            while not ended:
                rows.append(row)
                actions.append(int(rng.random() < 1 / (1 + np.exp(-10 * row[2] - 2 * row[3]))))
                row, _, terminated, truncated, _ = env.step(actions[-1])
                ended = terminated or truncated
            episodes.append((np.array([*rows, row]), np.array(actions)))
        env.create_dataset("pole/seen-v0")
    return Seen(home, episodes)


class Seen:
    """The same episodes as each tool keeps them: data, and what must be said of their columns."""

    def __init__(self, home, episodes):
        self.home, self.episodes = home, episodes
        self.rows = np.concatenate([rows[:-1] for rows, _ in episodes])
        self.actions = np.concatenate([actions for _, actions in episodes])
        sizes = [len(actions) for _, actions in episodes]
        self.numbers = np.repeat(np.arange(len(sizes)), sizes)
        self.ends = np.append(np.diff(self.numbers) > 0, True)

    def demonstrations(self, names=NAMES):
        return Sample(self.rows.astype(float), self.actions, names, ("0", "1"), self.numbers)

    def frame(self, names=NAMES):
        columns = dict(zip(names, self.rows.T.astype(float), strict=True)) | {"move": self.actions, "run": self.numbers}
        return polars.DataFrame(columns).with_columns(weather=polars.lit("fair"))

    def parts(self, home):
        for i in range(3):
            self.frame().filter(polars.col("run") // 4 == i).write_parquet(home / f"part-{i}.parquet")
        return home

    def d4rl(self, path):
        with h5py.File(path, "w") as file:
            file["observations"], file["actions"] = self.rows, self.actions.astype(np.float32)[:, None]
            file["terminals"], file["timeouts"] = self.ends, np.zeros_like(self.ends)
        return path

    def buffer(self):
        import torch

        env = gymnasium.make("CartPole-v1")
        buffer = RolloutBuffer(len(self.rows), env.observation_space, env.action_space, "cpu")
        starts = np.roll(self.ends, 1)
        for row, action, start in zip(self.rows, self.actions, starts, strict=True):
            buffer.add(row[None], np.array([[action]]), np.zeros(1), np.array([start]), torch.zeros(1), torch.zeros(1))
        return buffer

    def csv(self, path):
        self.frame().write_csv(path)
        return path

    def written(self, path):
        write(self.demonstrations(UNNAMED), path)
        return path


FILES = {  # a source, what is said of its columns, and whether its observations have names
    "csv": (lambda seen, home: seen.csv(home / "log.csv"), COLUMNS, True),
    "folder": (lambda seen, home: seen.parts(home), COLUMNS, True),
    "pattern": (lambda seen, home: f"{seen.parts(home)}/part-*.parquet", COLUMNS, True),
    "written": (lambda seen, home: seen.written(home / "log.npz"), {}, False),
    "d4rl": (lambda seen, home: seen.d4rl(home / "pole.hdf5"), {}, False),
    "d4rl, action named": (lambda seen, home: seen.d4rl(home / "pole.hdf5"), {"actions": "action"}, False),
    "minari folder": (lambda seen, home: seen.home / "minari" / "pole" / "seen-v0", {}, False),
    "minari id": (lambda seen, home: "pole/seen-v0", {}, False),
}
OBJECTS = {
    "unnamed demonstrations": (lambda seen, home: seen.demonstrations(UNNAMED), {}, False),
    "dict": (lambda seen, home: {"obs": seen.rows, "actions": seen.actions, "terminals": seen.ends}, {}, False),
    "dict of columns": (lambda seen, home: seen.frame().to_dict(as_series=False), COLUMNS, True),
    "polars": (lambda seen, home: seen.frame(), COLUMNS, True),
    "pandas": (lambda seen, home: seen.frame().to_pandas(), COLUMNS, True),
    "unnamed columns": (lambda seen, home: seen.frame(UNNAMED).drop("weather"), COLUMNS, False),
    "list of episodes": (lambda seen, home: seen.episodes, {}, False),
    "sb3 buffer": (lambda seen, home: seen.buffer(), {}, False),
}


def make_study(path):
    world = GymnasiumWorld.of("CartPole-v1", {"length": (0.3, 1.0)}, NAMES)
    return Study.create(path, world, design="space-filling", max_rounds=1, episodes=12)


@pytest.fixture(scope="module")
def expected(seen):
    """The round that plain demonstrations leave."""
    found = make_study(seen.home / "plain.sqlite").tell(seen.demonstrations())
    assert set(found.newly_selected) == {"angle", "angular_velocity"}
    return found.to_dict()


def check(found, expected, named):
    notes = [] if named else [NOTE]
    assert found.to_dict() == expected | {"warnings": [*notes, *expected["warnings"]]}


@pytest.mark.parametrize("source", [*FILES, *OBJECTS])
def test_every_source_leaves_the_same_round(source, seen, expected, tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(seen.home / "minari"))
    make, said, named = (FILES | OBJECTS)[source]
    (tmp_path / "data").mkdir()
    study = make_study(tmp_path / "s.sqlite")
    check(study.tell(make(seen, tmp_path / "data"), **said), expected, named)
    check(Study.open(tmp_path / "s.sqlite").rounds()[0], expected, named)
    again = "12 of these 12 episodes" if source.startswith("minari") else "these very data"  # Minari keeps rewards, too
    with pytest.raises(InputError, match=f"{again} were reported before"):
        study.tell(seen.demonstrations())


@pytest.mark.parametrize("source", FILES)
def test_the_command_takes_them_too(source, seen, expected, tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(seen.home / "minari"))
    make, said, named = FILES[source]
    (tmp_path / "data").mkdir()
    make_study(tmp_path / "s.sqlite")
    options = [text for word, column in said.items() for text in (f"--{word}", column)]
    arguments = ["tell", str(tmp_path / "s.sqlite"), str(make(seen, tmp_path / "data")), *options]
    done = CliRunner().invoke(app, ["study", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    assert ("Warning: the numbers of an observation have no names" in " ".join(done.output.split())) is not named
    check(Study.open(tmp_path / "s.sqlite").rounds()[0], expected, named)


def test_arrays_take_the_names_of_the_study(seen, expected, tmp_path):
    study = make_study(tmp_path / "s.sqlite")
    check(study.tell(seen.rows, actions=seen.actions, episodes=seen.numbers), expected, named=True)
    world = GymnasiumWorld(EnvironmentSpec("arm", (), {}, ("a", "b"), ("action[0]", "action[1]"), (-1.0, 1.0)))
    rows = np.random.default_rng(0).normal(size=(20, 2))
    batch, notes = batch_of(world, Request(rows, rows[::-1], {"episodes": np.arange(20)}))
    assert (batch.names, batch.action_names, notes) == (("a", "b"), ("action[0]", "action[1]"), [])


@pytest.mark.parametrize(
    ("feature_names", "found", "taken"),
    [
        (("a",), ("observation",), True),
        (("a", "b", "c", "d"), ("observation[0,0]", "observation[0,1]", "observation[1,0]", "observation[1,1]"), True),
        (("a", "b"), ("observation[1]", "observation[0]"), False),
        (("a", "b"), ("observation[0]", "observation[9999999999]"), False),
        (("a", "b"), ("observation[0]", "speed"), False),
        (("a", "b"), ("x0", "x1"), False),
        (("a", "b", "c"), ("observation[0]", "observation[1]"), False),
        (("observation[1]", "observation[0]"), ("observation[0]", "observation[1]"), False),  # by name, as ever
    ],
)
def test_only_the_numbers_of_one_observation_in_order_are_taken(feature_names, found, taken):
    world = GymnasiumWorld(EnvironmentSpec("place", (), {}, feature_names, ("0", "1"), None))
    rows = np.random.default_rng(0).normal(size=(20, len(found)))
    data = Sample(rows, np.arange(20) % 2, found, ("0", "1"), np.arange(20), recorded={"reward": np.zeros(20)})
    batch, notes = batch_of(world, Request(data))
    assert batch.names == (feature_names if taken else found)
    assert len(notes) == taken


def test_what_a_reader_must_be_told_is_in_the_round(seen, tmp_path):
    data = seen.demonstrations()
    careful = Sample(
        data.features,
        data.actions,
        data.names,
        data.action_names,
        data.episodes,
        origin=Origin(cautions=("take care.",)),
    )
    assert make_study(tmp_path / "s.sqlite").tell(careful).warnings[0] == "take care."


def at_lengths(seen, *lengths):
    """The log of the pole with a column of its length, episode by episode."""
    values = [lengths[i % len(lengths)] for i in seen.numbers]
    return seen.frame().with_columns(polars.Series("configuration.length", values, polars.Float64))


def test_a_configuration_in_the_rows_is_where_they_were_collected(seen, tmp_path):
    at_lengths(seen, 0.7).write_csv(tmp_path / "log.csv")
    for number, data in enumerate((at_lengths(seen, 0.7), tmp_path / "log.csv")):
        study = make_study(tmp_path / f"{number}.sqlite")
        assert study.tell(data, **COLUMNS).configuration == {"length": 0.7}
    other = at_lengths(seen, 0.7).rename({"configuration.length": "configuration.colour"})
    for number, (data, said, expected) in enumerate(
        [(at_lengths(seen, 0.7), {"length": 0.4}, 0.4), (other, None, 0.5), (at_lengths(seen, None), None, 0.5)]
    ):
        study = make_study(tmp_path / f"other-{number}.sqlite")
        assert study.tell(data, said, **COLUMNS).configuration == {"length": expected}


def test_rows_of_several_configurations_are_no_round(seen, tmp_path):
    study = make_study(tmp_path / "s.sqlite")
    for lengths, found in [((0.4, 0.7), "length = 0.4, 0.7"), ((0.5, None), "length = 0.5, nan")]:
        with pytest.raises(InputError, match=f"one configuration, found {found} in the data: split them by"):
            study.tell(at_lengths(seen, *lengths), **COLUMNS)
    with pytest.raises(InputError, match="'length' must lie between"):
        study.tell(at_lengths(seen, 2.0), **COLUMNS)
    assert study.rounds() == []
    assert study.tell(at_lengths(seen, 0.4, 0.7), {"length": 0.5}, **COLUMNS).configuration == {"length": 0.5}


@pytest.mark.parametrize(("highs", "sentence"), [((0.03, 0.18), "found high = 0.03, 0.18 in the data"), ((0.1,), None)])
def test_the_reset_options_of_minari_are_where_it_was_collected(highs, sentence, tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    rng = np.random.default_rng(0)
    with warnings.catch_warnings(action="ignore"):  # Minari misses an author
        env = minari.DataCollector(gymnasium.make("CartPole-v1"))
        for seed in range(12):
            env.reset(seed=seed, options={"low": -0.01, "high": highs[seed % len(highs)]})
            while not any(env.step(int(rng.integers(2)))[2:4]):
                pass
        env.create_dataset("pole/starts-v0")
    bounds = {"low": (-0.05, 0.0), "high": (0.02, 0.2)}
    study = Study.create(tmp_path / "s.sqlite", env="CartPole-v1", parameters=bounds, design="space-filling")
    if sentence is None:
        assert study.tell("pole/starts-v0").configuration == {"low": -0.01, "high": 0.1}
    else:
        with pytest.raises(InputError, match=sentence):
            study.tell("pole/starts-v0")


def test_rows_with_missing_values_drop_out_if_that_is_said(seen, tmp_path):
    first = polars.int_range(polars.len()) == 0
    frame = seen.frame().with_columns(angle=polars.when(first).then(None).otherwise(polars.col("angle")))
    frame.write_csv(tmp_path / "log.csv")
    study = make_study(tmp_path / "s.sqlite")
    with pytest.raises(InputError, match=r"found a missing value in row 1: .* drop them .--missing drop, missing="):
        study.tell(frame, **COLUMNS)
    with pytest.raises(InputError, match="an 'error' or a reason to 'drop' their rows, found 'drp'"):
        study.tell(frame, missing="drp", **COLUMNS)
    told = study.tell(frame, missing="drop", **COLUMNS)
    assert told.warnings[0].startswith("rows dropped for missing values: 1 of ")
    assert study.demonstrations(0).num_rows == len(seen.rows) - 1
    make_study(tmp_path / "c.sqlite")
    columns = [text for word, column in COLUMNS.items() for text in (f"--{word}", column)]
    arguments = ["tell", str(tmp_path / "c.sqlite"), str(tmp_path / "log.csv"), *columns, "--missing", "drop"]
    assert CliRunner().invoke(app, ["study", *arguments], catch_exceptions=False).exit_code == 0
    assert Study.open(tmp_path / "c.sqlite").rounds()[0] == told


def test_what_cannot_be_told_is_a_sentence_and_leaves_nothing(seen, tmp_path, monkeypatch):
    study = make_study(tmp_path / "s.sqlite")
    for data, said, sentence in [
        (3, {}, "the actions are missing"),
        (seen.frame(), {}, "the actions are missing"),
        (seen.frame(), {"actions": "mov", "episodes": "run"}, "did you mean 'move'"),
        (seen.frame(), {"actions": "move"}, "found demonstrations without them: name the episode column"),
        (seen.frame(("a", "b", "c", "d")), COLUMNS, "no column 'position'"),
        (seen.frame(UNNAMED[::-1]), COLUMNS, "no column 'position'"),
        (seen.demonstrations(("a", "b", "c", "d")), {}, "lack the feature 'position' of the world 'CartPole-v1'"),
        (seen.demonstrations(), {"actions": "move"}, "have said what their actions are"),
        ({"obs": seen.rows[:, :3], "actions": seen.actions, "dones": seen.ends}, {}, "lack the feature 'position'"),
        (seen.home / "nowhere", {}, "there is no such file"),
        (f"{seen.home}/*.parquet", {}, "no file matches this pattern"),
        (seen.demonstrations(), {"action": "move"}, "have said what their actions are"),
        (seen.demonstrations(), {"episods": "run"}, "tell has no argument 'episods': did you mean 'episodes'"),
    ]:
        with pytest.raises(InputError, match=sentence):
            study.tell(data, **said)
    monkeypatch.setenv("POLICYSPACE_MAX_BYTES_AT_ONCE", "1000")
    with pytest.raises(InputError, match="this needs all rows in memory"):
        study.tell(seen.parts(tmp_path), **COLUMNS)
    scanned = Request(tmp_path, "move", {"features": list(NAMES), "episodes": "run"}).sample()
    with pytest.raises(InputError, match=f"keeps every row, found a log of {len(seen.rows)} rows"):
        study.tell(scanned)
    assert study.rounds() == []


def test_observations_of_our_worlds_are_not_their_features(tmp_path):
    """They are states: as many numbers by chance would be other ones."""
    study = Study.create(tmp_path / "s.sqlite", "minigolf", design="none", max_rounds=1)
    world, names = study.world, study.world.feature_names
    rows = np.random.default_rng(0).normal(size=(40, len(names)))
    with pytest.raises(InputError, match=f"lack the feature '{names[0]}' of the world 'minigolf'"):
        study.tell({"obs": rows, "actions": np.abs(rows[:, :1]), "episodes": np.arange(40) // 4})
    import jax

    space = world.policy_space()
    seen = some_episodes(world, space, space.fixed, world.default_configuration(), jax.random.key(0), 4)
    with pytest.raises(InputError, match="trajectories hold their actions, found actions= too: leave it out"):
        study.tell(seen, actions="move")
    with pytest.raises(InputError, match="trajectories have no missing values, found missing= too: leave it out"):
        study.tell(seen, missing="drop")


LAKE = {"success_rate": (0.2, 0.9)}


def wanderer(seed):
    """An agent on the lake that leans to one action in each state."""
    rng = np.random.default_rng(seed)
    return lambda state: int(rng.integers(4)) if rng.random() < 0.7 else int(state) % 4


@pytest.fixture(scope="module")
def lake():
    """What was logged on the lake, and the states in it."""
    log = watch("FrozenLake-v1", wanderer(0), episodes=200, seed=3)
    levels = [int(name.partition("=")[2]) for name in log.names]
    last = np.where(log.features.any(axis=1), 0, 14)  # the log leaves out its largest level, just before the goal
    return log, last + log.features @ np.array(levels)


def lake_study(path):
    return Study.create(path, env="FrozenLake-v1", parameters=LAKE, max_rounds=1, episodes=200, design="space-filling")


def test_logs_of_categories_are_told_by_their_levels_or_numbers(lake, tmp_path):
    log, states = lake
    world = lake_study(tmp_path / "plain.sqlite").world
    levels = np.column_stack([states == int(name.partition("=")[2]) for name in world.feature_names]).astype(float)
    plain = Sample(levels, log.actions, world.feature_names, log.action_names, log.episodes)
    told = lake_study(tmp_path / "told.sqlite").tell(plain)
    assert told.newly_selected == ("observation",)
    expected = told.to_dict()
    frame = polars.DataFrame({"observation": states, "move": log.actions, "run": log.episodes})
    text = frame.with_columns(polars.col("observation").cast(int).cast(str).cast(polars.Categorical))
    write(log, tmp_path / "log.parquet")
    note = "the data do not say which level of 'observation' they leave out: it is taken for 14."
    for name, data, said, notes in [
        ("numbers", frame, COLUMNS, []),
        ("categories", text, COLUMNS, [note]),
        ("watched", log, {}, [note]),
        ("file", tmp_path / "log.parquet", {}, [note]),
    ]:
        found = lake_study(tmp_path / f"{name}.sqlite").tell(data, **said).to_dict()
        assert found == expected | {"warnings": [*notes, *expected["warnings"]]}, name


def test_a_log_that_leaves_out_the_start_or_nothing_needs_no_guess(lake):
    log, states = lake
    world = GymnasiumWorld.of("FrozenLake-v1", LAKE)
    for left_out in (0, None):
        names = tuple(f"observation={level}" for level in range(16) if level != left_out)
        levels = np.column_stack([states == int(name.partition("=")[2]) for name in names]).astype(float)
        data = Sample(levels, log.actions, names, log.action_names, log.episodes)
        batch, notes = batch_of(world, Request(data))
        assert (batch.names, notes) == (world.feature_names, [])
        assert np.array_equal(batch.features, np.column_stack([states == level for level in range(1, 16)]))


def test_levels_that_the_environment_has_not_are_refused(lake, tmp_path):
    log, states = lake
    frame = polars.DataFrame({"observation": states + 4, "move": log.actions, "run": log.episodes})
    with pytest.raises(InputError, match="have the levels observation=17, observation=18"):
        lake_study(tmp_path / "s.sqlite").tell(frame, **COLUMNS)
    frame = polars.DataFrame({"observation": np.maximum(states, 0.5), "move": log.actions, "run": log.episodes})
    with pytest.raises(InputError, match="'observation' is a category, whose levels are whole numbers, found others"):
        lake_study(tmp_path / "t.sqlite").tell(frame, **COLUMNS)


def test_a_category_may_be_all_that_is_in_question(tmp_path):
    study = Study.create(
        tmp_path / "s.sqlite", env="FrozenLake-v1", parameters=LAKE, features=["observation"], episodes=20
    )
    assert study.status().undecided == ("observation",)
    with pytest.raises(InputError, match="no feature 'observation=3' in 'FrozenLake-v1'"):
        Study.create(tmp_path / "t.sqlite", env="FrozenLake-v1", parameters=LAKE, features=["observation=3"])


class Signs(gymnasium.Env):
    """Two numbers and a colour, as a Dict."""

    observation_space = gymnasium.spaces.Dict(
        {"place": gymnasium.spaces.Box(-9, 9, (2,), np.float64), "colour": gymnasium.spaces.Discrete(3)}
    )
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, drift=0.0):
        self.drift = drift

    def _seen(self):
        return {"place": self.np_random.normal(self.drift, 1, 2), "colour": int(self.np_random.integers(3))}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._seen(), {}

    def step(self, action):
        self.steps += 1
        return self._seen(), 0.0, self.steps >= 8, False, {}


def test_the_entries_of_a_dict_are_told_under_the_names_of_the_study(tmp_path):
    rng = np.random.default_rng(1)
    log = watch(Signs(), lambda seen: int(rng.random() < 1 / (1 + np.exp(-2 * seen["place"][1]))), episodes=60, seed=0)
    world = GymnasiumWorld.of(Signs, {"drift": (-1, 1)}, names=["hue", "left", "right"])
    assert world.facts.own_names == ("colour", "place[0]", "place[1]")
    found = Study.create(tmp_path / "s.sqlite", world, max_rounds=1, episodes=60, design="uniform").tell(log)
    assert found.newly_selected == ("right",)
    assert found.warnings[0].endswith("they are taken for hue, left, right, in this order.")
    assert Study.open(tmp_path / "s.sqlite").rounds()[0].to_dict() == found.to_dict()
