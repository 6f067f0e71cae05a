"""Data from where they are: what each tool keeps becomes the same demonstrations as its arrays do by hand."""

import json
import sys
from dataclasses import dataclass

import gymnasium
import h5py
import minari
import numpy as np
import polars
import pytest
from gymnasium import spaces
from stable_baselines3 import A2C, DQN
from stable_baselines3.common.buffers import DictRolloutBuffer, ReplayBuffer

import policyspace
from policyspace import InputError, identify, read
from policyspace.cli import main

RNG = np.random.default_rng(18)
SIZES = (30, 20, 25)
NUMBERS = np.repeat(np.arange(3), SIZES)
EPISODES = [(RNG.normal(size=(size + 1, 2)), RNG.integers(0, 2, size=size)) for size in SIZES]
SEEN = np.concatenate([seen[:-1] for seen, _ in EPISODES])
ACTED = np.concatenate([acted for _, acted in EPISODES])
ENDS = np.append(np.diff(NUMBERS) > 0, True)


def check(data, names=("observation[0]", "observation[1]")):
    """T+1 observations trimmed, episodes kept, names as said."""
    assert data.names == names
    np.testing.assert_array_equal(data.features, SEEN)
    np.testing.assert_array_equal(data.actions, ACTED)
    np.testing.assert_array_equal(data.episodes, NUMBERS)
    assert data.action_names == ("0", "1")


def test_lists_of_episodes():
    check(read(EPISODES))
    check(read(path=EPISODES))  # what the argument was called once
    check(read([(seen[:-1], acted.tolist()) for seen, acted in EPISODES]))
    check(read([{"obs": seen, "acts": acted} for seen, acted in EPISODES]))
    named = [({"speed": seen[:, 0], "left": seen[:, 1]}, acted) for seen, acted in EPISODES]
    check(read(named), ("speed", "left"))
    assert read(named, features=["left"]).names == ("left",)


def test_identify_takes_what_read_takes():
    one = identify(EPISODES)
    assert (
        one.to_dict()
        == identify(SEEN, ACTED, features=["observation[0]", "observation[1]"], episodes=NUMBERS).to_dict()
    )
    assert identify({"obs": SEEN, "actions": ACTED, "eps_id": NUMBERS}).to_dict() == one.to_dict()


def test_a_row_of_two_numbers_is_no_episode():
    rows = SEEN.tolist()
    labels = ["go" if a else "stop" for a in ACTED]
    assert identify(rows, labels).to_dict() == identify(SEEN, labels).to_dict()


def test_dicts_of_arrays():
    check(read({"observations": SEEN, "actions": ACTED, "terminals": ENDS}))
    batch = {"obs": SEEN, "actions": ACTED, "eps_id": NUMBERS + 700, "terminateds": ENDS, "t": np.arange(len(ACTED))}
    data = read(batch)
    check(data)
    np.testing.assert_array_equal(data.recorded["terminated"], ENDS)
    timeouts = {"terminals": ENDS & (NUMBERS == 1), "timeouts": ENDS & (NUMBERS != 1)}
    check(read({"observations": SEEN, "actions": ACTED} | timeouts))
    one = read({"observations": EPISODES[0][0], "actions": EPISODES[0][1]})
    assert (one.num_rows, one.num_episodes) == (30, 1)
    trip = read({"obs": SEEN, "actions": ACTED, "trip": NUMBERS}, episodes="trip")
    assert trip.num_episodes == 3


class Batch(dict):
    """RLlib's SampleBatch is a dict that has a method `columns`."""

    def columns(self, keys):
        return [self[key] for key in keys]


def test_batches_of_rllib():
    check(read(Batch(obs=SEEN, actions=ACTED, eps_id=NUMBERS + 700, terminateds=ENDS)))
    pytest.importorskip("ray", reason="RLlib is large: the class above has the same shape")
    from ray.rllib.policy.sample_batch import SampleBatch

    check(read(SampleBatch({"obs": SEEN, "actions": ACTED, "eps_id": NUMBERS + 700, "terminateds": ENDS})))


def test_a_dict_of_columns_is_a_table():
    columns = {"speed": SEEN[:, 0].tolist(), "left": SEEN[:, 1], "move": ACTED}
    data = read(columns, actions="move")
    assert data.names == ("speed", "left")
    np.testing.assert_array_equal(data.features, SEEN)
    with pytest.raises(InputError, match="say which column is the action"):
        read(columns)
    with pytest.raises(InputError, match="'observations' and 'actions', or columns of one length"):
        read({"speed": [1, 2], "left": [1, 2, 3]})


def test_hdf5_files_of_d4rl(tmp_path):
    with h5py.File(tmp_path / "walk.hdf5", "w") as file:
        file["observations"], file["actions"], file["rewards"] = SEEN, ACTED.astype(np.float32)[:, None], ENDS * 1.5
        file["terminals"], file["timeouts"] = ENDS & (NUMBERS == 1), ENDS & (NUMBERS != 1)
        file["infos/qpos"], file["next_observations"] = SEEN, SEEN
    data = read(tmp_path / "walk.hdf5")
    assert not data.discrete
    assert data.action_names == ("action",)
    check(read(tmp_path / "walk.hdf5", discrete=True))
    np.testing.assert_array_equal(data.recorded["reward"], ENDS * 1.5)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["data/demo_0/actions"] = ACTED
    with pytest.raises(InputError, match=r"other\.h5: expected the array 'observations' at the top .* found 'data'"):
        read(tmp_path / "other.h5")
    (tmp_path / "text.h5").write_text("no")
    with pytest.raises(InputError, match="expected a readable HDF5 file"):
        read(tmp_path / "text.h5")
    with pytest.raises(InputError, match="there is no such file"):
        read(tmp_path / "none.hdf5")


# Minari -----------------------------------------------------------------------------------------------------------------


class Room(gymnasium.Env):
    """Observations of many kinds; the option 'configuration' is remembered by whoever records."""

    observation_space = spaces.Dict(
        {
            "position": spaces.Box(-9, 9, (2,), np.float64),
            "seen": spaces.Tuple((spaces.Discrete(3), spaces.MultiBinary(2))),
        }
    )

    def __init__(self, action_space):
        self.action_space = action_space

    def observation(self):
        rng = self.np_random
        return {
            "position": rng.normal(size=2),
            "seen": (int(rng.integers(3)), rng.integers(0, 2, size=2).astype(np.int8)),
        }

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observation(), {}

    def step(self, action):
        self.steps += 1
        return self.observation(), 1.0, self.steps == 20, False, {}


def collected(name, action_space, configurations, data_format="hdf5"):
    """A dataset of Minari, and what its environment showed."""
    env = minari.DataCollector(Room(action_space), data_format=data_format)
    action_space.seed(3)
    shown = []
    for i, configuration in enumerate(configurations):
        options = None if configuration is None else {"configuration": configuration}
        observation, _ = env.reset(seed=i, options=options)
        for _ in range(20):
            action = action_space.sample()
            shown.append((observation, action))
            observation, *_ = env.step(action)
    return env.create_dataset(name), shown


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return tmp_path / "minari"


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("data_format", ["hdf5", "arrow"])
def test_minari_datasets(store, data_format, monkeypatch):
    omegas = [{"friction": 0.1, "size": np.array([1.0, 2.0])}, {"friction": 0.4, "size": np.array([3.0, 2.0])}]
    omegas = (
        [{"friction": w["friction"], "size": w["size"].tolist()} for w in omegas] if data_format == "arrow" else omegas
    )
    dataset, shown = collected("rooms/small-v0", spaces.Discrete(2), omegas, data_format)
    data = read(dataset)
    assert data.names == ("position[0]", "position[1]", "seen[0]=0", "seen[0]=1", "seen[1][0]", "seen[1][1]")
    assert dict(data.blocks) == {"seen[0]": ("seen[0]=0", "seen[0]=1")}
    by_hand = [[*o["position"], o["seen"][0] == 0, o["seen"][0] == 1, *o["seen"][1]] for o, _ in shown]
    np.testing.assert_allclose(data.features, np.array(by_hand, dtype=float))
    np.testing.assert_array_equal(data.actions, [a for _, a in shown])
    np.testing.assert_array_equal(data.episodes, np.repeat([0, 1], 20))
    np.testing.assert_array_equal(data.recorded["configuration.friction"], np.repeat([0.1, 0.4], 20))
    np.testing.assert_array_equal(data.recorded["configuration.size[0]"], np.repeat([1.0, 3.0], 20))
    assert data.recorded["terminated"].sum() == 2
    assert data.origin.configuration is None
    for source in (store / "rooms" / "small-v0", str(store / "rooms/small-v0/data"), "rooms/small-v0"):
        np.testing.assert_array_equal(read(source).features, data.features)
    assert identify("rooms/small-v0").num_episodes == 2
    assert "configuration.friction" in read(dataset, features=["position*", "configuration.friction"]).names
    with pytest.raises(
        InputError, match=r"the pattern 'configuration\.\*' matches only 'configuration.friction' and its like"
    ):
        read(dataset, features=["position*", "configuration.*"])
    assert read(dataset.filter_episodes(lambda episode: episode.id == 1)).recorded["configuration.friction"][0] == 0.4


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_configuration_that_never_varies_is_that_of_the_demonstrations(store):
    dataset, _ = collected("one-v0", spaces.Box(-1, 1, (2,)), [{"friction": 0.25}] * 2)
    data = read(dataset)
    assert data.origin.configuration == {"friction": 0.25}
    assert data.action_names == ("action[0]", "action[1]")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_options_that_are_no_numbers_are_told(store):
    dataset, _ = collected("words-v0", spaces.Discrete(2), [{"friction": 0.25, "floor": "ice"}] * 2)
    data = read(dataset)
    assert data.origin.configuration == {"friction": 0.25}
    assert list(data.origin.cautions) == [
        "The reset options floor are no numbers, and are not part of the configuration."
    ]
    assert any("floor" in warning for warning in identify(data).warnings)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", [spaces.MultiDiscrete([2, 3]), spaces.MultiBinary(2)])
def test_of_several_choices_one_is_named(store, kind, monkeypatch, capfd):
    dataset, shown = collected("many-v0", kind, [None, None])
    with pytest.raises(InputError, match=r"several choices.* name one of 'action\[0\]', 'action\[1\]' with actions="):
        read(dataset)
    data = read(dataset, actions="action[1]")
    np.testing.assert_array_equal(np.array(data.action_names, dtype=int)[data.actions], [a[1] for _, a in shown])
    assert "action[0]" not in data.names
    monkeypatch.setattr(sys, "argv", ["policyspace", "identify", "many-v0", "--actions", "action[1]", "--json", "-"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    assert json.loads(capfd.readouterr().out)["data"]["num_episodes"] == 2


def test_an_id_that_is_not_here(store):
    with pytest.raises(InputError, match="no Minari dataset of this id here: `minari download D4RL/door/human-v2`"):
        read("D4RL/door/human-v2")


# imitation --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trajectory:
    """The published shape of imitation.data.types.Trajectory."""

    obs: np.ndarray
    acts: np.ndarray
    infos: None
    terminal: bool


def test_trajectories_of_the_published_shape():
    data = read([Trajectory(seen, acted, None, i == 1) for i, (seen, acted) in enumerate(EPISODES)])
    check(data)
    np.testing.assert_array_equal(np.flatnonzero(data.recorded["terminated"]), [49])
    assert read(Trajectory(*EPISODES[0], None, True)).num_rows == 30


def test_trajectories_of_imitation():
    """imitation 1.0.1 asks for Gymnasium 0.29, so it is no part of the dev extra: `pip install --no-deps imitation`."""
    types = pytest.importorskip("imitation.data.types", reason="imitation is not installed")
    check(read([types.Trajectory(seen, acted, None, True) for seen, acted in EPISODES]))
    rewarded = [types.TrajectoryWithRew(seen, acted, None, True, np.ones(len(acted))) for seen, acted in EPISODES]
    check(read(rewarded))
    dicts = [types.DictObs({"speed": seen[:, 0], "left": seen[:, 1]}) for seen, _ in EPISODES]
    named = [types.Trajectory(seen, acted, None, True) for seen, (_, acted) in zip(dicts, EPISODES, strict=True)]
    check(read(named), ("speed", "left"))
    infos = np.array([{}] * len(ACTED))
    check(read(types.Transitions(SEEN, ACTED, infos, SEEN, ENDS)))


# LeRobot ----------------------------------------------------------------------------------------------------------------


def lerobot(folder, cameras=False, names=("pan", "lift")):
    said = {"dtype": "float32", "shape": [2], "names": names and {"motors": list(names)}}
    features = {"observation.state": said, "action": said, "episode_index": {"dtype": "int64"}}
    features |= {"observation.images.top": {"dtype": "video", "shape": [480, 640, 3]}} if cameras else {}
    (folder / "meta").mkdir(parents=True)
    (folder / "meta" / "info.json").write_text(json.dumps({"codebase_version": "v2.1", "features": features}))
    (folder / "data" / "chunk-000").mkdir(parents=True)
    move = (2 * SEEN + 1 + np.random.default_rng(1).normal(size=SEEN.shape)).astype(np.float32)
    for i in (1, 0, 2):
        rows = np.flatnonzero(i == NUMBERS)[::-1]  # the order is that of the frames, not that of the file
        polars.DataFrame(
            {
                "observation.state": SEEN[rows].astype(np.float32).tolist(),
                "action": move[rows].tolist(),
                "episode_index": NUMBERS[rows],
                "frame_index": rows,
                "task_index": np.zeros(len(rows), dtype=int),
            }
        ).write_parquet(folder / "data" / "chunk-000" / f"episode_{i:06}.parquet")
    return move


def test_folders_of_lerobot(tmp_path):
    move = lerobot(tmp_path / "arm", cameras=True)
    data = read(tmp_path / "arm")
    assert data.names == ("observation.state.pan", "observation.state.lift")
    assert data.action_names == ("action.pan", "action.lift")
    np.testing.assert_allclose(data.features, SEEN, rtol=1e-6)
    np.testing.assert_array_equal(data.actions, move)
    np.testing.assert_array_equal(data.episodes, NUMBERS)
    assert any("images were excluded (observation.images.top)" in warning for warning in identify(data).warnings)
    lerobot(tmp_path / "plain", names=None)
    assert read(str(tmp_path / "plain")).names == ("observation.state[0]", "observation.state[1]")
    (tmp_path / "plain" / "meta" / "info.json").write_text("{}")
    with pytest.raises(InputError, match="with a table 'features', found otherwise"):
        read(tmp_path / "plain")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="a folder of neither Minari nor LeRobot"):
        read(tmp_path / "empty")


# Buffers of stable-baselines3 -------------------------------------------------------------------------------------------


class Counting(gymnasium.Env):
    """Observations (number of the episode, step), so that every row says where it belongs."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Discrete(2)
    episode = -1

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.now = self.episode + 1, 0
        return np.array([self.episode, 0.0]), {}

    def step(self, action):
        self.now += 1
        return np.array([self.episode, float(self.now)]), 0.0, self.now == 7, False, {}


@pytest.mark.parametrize("trained", [False, True])
def test_rollout_buffers_hold_whole_episodes_of_every_environment(trained):
    from stable_baselines3.common.vec_env import DummyVecEnv

    model = A2C("MlpPolicy", DummyVecEnv([Counting, Counting]), n_steps=20, seed=0, device="cpu")
    model.learn(40)
    if trained:  # what training does to the buffer
        next(model.rollout_buffer.get(8))
    data = read(model.rollout_buffer)
    assert data.discrete
    assert (data.num_rows, data.num_episodes) == (40, 6)
    np.testing.assert_array_equal(data.features[:, 1], np.tile(np.arange(20) % 7, 2))
    np.testing.assert_array_equal(data.episodes, np.concatenate([np.arange(20) // 7, 3 + np.arange(20) // 7]))
    assert (data.recorded["log_probability"] < 0).all()


def test_replay_buffers_are_rings():
    model = DQN("MlpPolicy", Counting(), buffer_size=25, learning_starts=0, seed=0, device="cpu")
    model.learn(60)
    data = read(model.replay_buffer)
    steps = np.arange(35, 60)
    np.testing.assert_array_equal(data.features, np.column_stack([steps // 7, steps % 7]))
    np.testing.assert_array_equal(data.episodes, steps // 7 - 5)
    np.testing.assert_array_equal(data.recorded["terminated"], steps % 7 == 6)
    assert any("while it was learning" in warning for warning in identify(data).warnings)


def test_buffers_of_other_spaces():
    import torch

    space = spaces.Dict({"speed": spaces.Box(-1, 1, (2,)), "gear": spaces.Discrete(3)})
    buffer = DictRolloutBuffer(30, space, spaces.MultiDiscrete([2, 2]), "cpu")
    for i in range(30):
        row = {"speed": np.full((1, 2), i), "gear": np.array([[i % 3]])}
        buffer.add(
            row, np.array([[i % 2, 1 - i % 2]]), np.zeros(1), np.array([i % 10 == 0]), torch.zeros(1), torch.zeros(1)
        )
    data = read(buffer, actions="action[0]")
    assert data.names == ("gear=0", "gear=1", "speed[0]", "speed[1]")  # Gymnasium sorts them
    assert data.num_episodes == 3
    with pytest.raises(InputError, match="found it empty: collect some steps first"):
        read(ReplayBuffer(10, space["speed"], spaces.Discrete(2), "cpu"))


# What cannot be read ----------------------------------------------------------------------------------------------------


def test_images_are_refused_with_advice():
    pictures = np.zeros((40, 84, 84, 3), dtype=np.uint8)
    with pytest.raises(InputError, match=r"'observation' holds images \(84×84×3\).*positions, speeds"):
        read({"obs": pictures, "actions": np.arange(40) % 2})
    with pytest.raises(InputError, match=r"'camera' holds images \(84×84\)"):
        read([({"speed": np.zeros(40), "camera": pictures[..., 0] / 255.0}, np.arange(40) % 2)])


def test_bad_episodes_are_one_sentence():
    with pytest.raises(InputError, match="as many observations as actions, or one more, found 5 and 3 in episode 0"):
        read([(np.zeros((5, 2)), np.zeros(3, dtype=int))])
    with pytest.raises(InputError, match="of one shape, found different ones"):
        read([(np.zeros((3, 2)), [0, 1, 0]), (np.zeros((3, 4)), [0, 1, 0])])
    with pytest.raises(InputError, match="found int as episode 1"):
        read([(np.zeros((3, 2)), [0, 1, 0]), 3])
    with pytest.raises(InputError, match="'observation' must be numbers, found the type"):
        read([(np.array(["a", "b"]), [0, 1])])
    with pytest.raises(InputError, match="the same number of rows, found 3 of 'observation' and 4 of 'action'"):
        read({"obs": np.zeros(3), "actions": np.zeros(4)})
    with pytest.raises(InputError, match="a table must be"):
        read(3)


@pytest.mark.parametrize(("name", "extra", "source"), [("h5py", "hdf5", "walk.hdf5"), ("minari", "minari", "walk-v1")])
def test_a_library_that_is_missing_is_named_with_its_extra(name, extra, source, tmp_path, monkeypatch):
    (tmp_path / f"{name}.py").write_text("raise ImportError('not here')\n")  # for the process that reads
    (tmp_path / "walk.hdf5").write_bytes(b"1")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=rf"needs the extra \[{extra}\]: pip install 'policyspace\[{extra}\]'"):
        read(source)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "npz"])
def test_what_was_recorded_survives_a_file(suffix, tmp_path):
    data = read({"obs": SEEN, "actions": ACTED, "terminateds": ENDS, "action_logp": np.where(ENDS, np.nan, -0.5)})
    policyspace.write(data, tmp_path / f"log.{suffix}")
    again = read(tmp_path / f"log.{suffix}")
    check(again)
    for name in ("terminated", "log_probability"):
        np.testing.assert_array_equal(again.recorded[name], data.recorded[name])
    some = data.take(np.flatnonzero(NUMBERS == 0))
    assert len(some.recorded["terminated"]) == 30
