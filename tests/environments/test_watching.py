"""Watching an agent: exactly what it saw and did, whole episodes, nothing of a reset."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import FlattenObservation, FrameStackObservation, TransformObservation
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize

import policyspace
from policyspace import InputError, identify, read, watch, write
from policyspace.environments import agent_from_file


class Counting(gymnasium.Env):
    """Shows (environment, episode, step); the action must be what `answer` says, or the environment complains."""

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self, number=0):
        self.number, self.episode = number, -1

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.now = self.episode + 1, 0
        return np.array([self.number, self.episode, 0.0]), {}

    def step(self, action):
        self.now += 1
        length = 3 + self.number + self.episode % 2
        late = self.now == length and self.episode % 2 == 1
        return np.array([self.number, self.episode, float(self.now)]), 1.0, self.now == length and not late, late, {}


def answer(observation):
    """A function of what is seen, so that a row whose action belongs to another observation shows."""
    observation = np.asarray(observation)
    return (observation.sum(axis=-1) % 2).astype(np.int64)


def expected(quotas):
    """The rows of all episodes, by hand."""
    return np.array(
        [
            (number, episode, now)
            for number, quota in enumerate(quotas)
            for episode in range(quota)
            for now in range(3 + number + episode % 2)
        ],
        dtype=float,
    )


def check(data, quotas):
    rows = expected(quotas)
    np.testing.assert_array_equal(data.features, rows)
    np.testing.assert_array_equal(data.actions, answer(rows))
    pairs = rows[:, 0] * 100 + rows[:, 1]
    np.testing.assert_array_equal(np.diff(data.episodes), (np.diff(pairs) != 0).astype(int))
    last = np.append(np.diff(pairs) != 0, True)
    np.testing.assert_array_equal(data.recorded["terminated"], last & (rows[:, 1] % 2 == 0))
    np.testing.assert_array_equal(data.recorded["truncated"], last & (rows[:, 1] % 2 == 1))
    np.testing.assert_array_equal(data.recorded["reward"], np.ones(len(rows)))


def test_one_environment():
    data = watch(Counting(), answer, 5)
    check(data, [5])
    assert data.names == ("observation[0]", "observation[1]", "observation[2]")
    assert data.action_names == ("0", "1")
    assert data.origin.agent == "answer"


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_rows_of_a_reset_are_no_rows_and_every_environment_plays_as_many_episodes(mode):
    env = SyncVectorEnv([lambda i=i: Counting(i) for i in range(3)], autoreset_mode=mode)
    check(watch(env, answer, 7), [3, 2, 2])


def test_vectors_of_stable_baselines():
    env = DummyVecEnv([lambda i=i: Counting(i) for i in range(2)])
    data = watch(env, answer, 4)
    np.testing.assert_array_equal(data.features[:, 2], expected([2, 2])[:, 2])
    assert data.num_episodes == 4


def test_what_a_wrapper_shows_is_what_is_logged():
    hidden = TransformObservation(Counting(), lambda seen: seen[1:] / 2, spaces.Box(-9, 9, (2,), np.float64))
    data = watch(hidden, lambda seen: int(seen.sum() * 2) % 2, 4, features=["episode", "step"])
    assert data.names == ("episode", "step")
    np.testing.assert_array_equal(data.features, expected([4])[:, 1:] / 2)


def by_step(seen):
    """Of stacked frames too: the last number is the step."""
    return int(np.asarray(seen).ravel()[-1]) % 2


def test_names_say_which_frame():
    stacked = FrameStackObservation(Counting(), 3)
    data = watch(stacked, by_step, 2)
    assert data.names[:3] == ("observation[0]@t-2", "observation[1]@t-2", "observation[2]@t-2")
    column = {name: data.features[:, data.names.index(name)] for name in data.names}
    now = column["observation[2]@t"]
    np.testing.assert_array_equal(now, expected([2])[:, 2])
    np.testing.assert_array_equal(column["observation[2]@t-1"], np.maximum(now - 1, 0))
    named = watch(
        FlattenObservation(FrameStackObservation(Counting(), 3)), by_step, 2, features=["i", "episode", "step"]
    )
    assert named.names[-4:] == ("step@t-1", "i@t", "episode@t", "step@t")
    np.testing.assert_array_equal(named.features, data.features)
    vector = watch(VecFrameStack(DummyVecEnv([Counting]), 2), lambda seen: (seen[:, -1] % 2).astype(int), 2)
    assert vector.names[2:4] == ("observation[2]@t-1", "observation[0]@t")
    np.testing.assert_array_equal(vector.features[:, -1], now)


def test_tuples_of_discrete_observations_are_blocks():
    rng = np.random.default_rng(2)
    data = watch("Blackjack-v1", lambda seen: int(rng.random() < 1 / (1 + np.exp(seen[0] - 15))), 300, seed=1)
    assert set(data.blocks) == {"observation[0]", "observation[1]", "observation[2]"}
    assert data.origin.environment == "Blackjack-v1"
    assert "observation[2]=0" in data.names


def test_a_category_that_never_varies_is_kept_and_too_many_are_refused():
    fixed = TransformObservation(
        Counting(), lambda seen: (0, seen), spaces.Tuple((spaces.Discrete(3), Counting.observation_space))
    )
    assert watch(fixed, lambda seen: int(seen[1][2] % 2), 3).names[0] == "observation[0]"
    many = TransformObservation(Counting(), lambda seen: int(4 * seen[1] + seen[2]), spaces.Discrete(500))
    with pytest.raises(InputError, match=r"'observation' is one of 70 categories, found more than the 50"):
        watch(many, lambda seen: seen % 2, 20)


class Camera(Counting):
    observation_space = spaces.Box(0, 255, (64, 64, 3), np.uint8)

    def reset(self, seed=None, options=None):
        return np.zeros((64, 64, 3), np.uint8), {}

    def step(self, action):
        raise AssertionError("nothing is played")


def test_images_are_refused_before_the_work():
    with pytest.raises(InputError, match=r"holds images \(64×64×3\)"):
        watch(Camera(), lambda seen: 0)


class Switches(Counting):
    action_space = spaces.MultiDiscrete([2, 3])


def test_several_choices():
    rng = np.random.default_rng(2)
    with pytest.raises(InputError, match=r"name one of 'action\[0\]', 'action\[1\]'"):
        watch(Switches(), lambda seen: rng.integers(0, (2, 3)), 9)
    assert watch(Switches(), lambda seen: rng.integers(0, (2, 3)), 9, actions="action[1]").action_names == (
        "0",
        "1",
        "2",
    )


# Agents of stable-baselines3 --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ppo():
    return PPO("MlpPolicy", "CartPole-v1", n_steps=256, seed=1, device="cpu").learn(256)


def test_log_probabilities_are_those_of_the_policy(ppo):
    data = watch("CartPole-v1", ppo, 8, seed=4)
    import torch

    with torch.no_grad():
        logits = ppo.policy.get_distribution(torch.tensor(data.features, dtype=torch.float32)).distribution.logits
    wanted = torch.log_softmax(logits, 1).numpy()[np.arange(data.num_rows), data.actions]
    np.testing.assert_allclose(data.recorded["log_probability"], wanted, atol=1e-5)
    assert not data.origin.cautions
    chosen = np.exp(data.recorded["log_probability"])
    assert abs(chosen.mean() - 0.5) < 0.2  # an agent that has hardly learned


def test_same_seed_same_data(ppo):
    one, two = (watch("CartPole-v1", ppo, 3, seed=7) for _ in range(2))
    np.testing.assert_array_equal(one.features, two.features)
    np.testing.assert_array_equal(one.actions, two.actions)
    other = watch("CartPole-v1", ppo, 3, seed=8)
    assert other.num_rows != one.num_rows or (other.features != one.features).any()


def test_densities_are_given_but_where_an_action_was_clipped():
    from scipy.stats import norm

    agent = PPO("MlpPolicy", "Pendulum-v1", n_steps=64, seed=1, device="cpu")
    data = watch("Pendulum-v1", agent, 2)
    import torch

    with torch.no_grad():
        law = agent.policy.get_distribution(torch.tensor(data.features, dtype=torch.float32)).distribution
    wanted = norm.logpdf(data.actions, law.mean.numpy(), law.stddev.numpy())[:, 0]
    inside = np.abs(data.actions[:, 0]) < 2
    assert 0 < (~inside).sum() < len(inside)
    np.testing.assert_allclose(data.recorded["log_probability"][inside], wanted[inside], atol=1e-4)
    assert np.isnan(data.recorded["log_probability"][~inside]).all()


def test_a_normalised_vector_shows_what_the_agent_saw(ppo):
    raw = watch(DummyVecEnv([lambda: gymnasium.make("CartPole-v1")]), lambda seen: np.array([0]) + (seen[:, 2] > 0), 5)
    env = VecNormalize(DummyVecEnv([lambda: gymnasium.make("CartPole-v1")]), training=False, norm_reward=False)
    env.obs_rms.mean[:], env.obs_rms.var[:] = 1.0, 4.0
    seen = watch(env, lambda shown: np.array([0]) + (shown[:, 2] * 2 + 1 > 0), 5)
    np.testing.assert_allclose(seen.features, (raw.features - 1) / 2, atol=1e-6)


def test_greedy_playing_is_pointed_out(ppo, tmp_path):
    for agent in (ppo, lambda seen: int(seen[2] > 0)):
        data = watch("CartPole-v1", agent, 5, deterministic=agent is ppo)
        assert "log_probability" not in data.recorded
        policyspace.write(data, tmp_path / "greedy.parquet")
        warnings = identify(read(tmp_path / "greedy.parquet")).warnings
        assert any("the agent played greedily" in warning for warning in warnings)


class Remembering:
    """Plays the number of steps since the episode started, modulo 2, out of its own memory."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        state = np.zeros(1, dtype=int) if state is None or episode_start[0] else state + 1
        return int(state[0] % 2), state


def test_agents_with_a_memory_are_told_where_episodes_start():
    data = watch(Counting(), Remembering(), 4)
    np.testing.assert_array_equal(data.actions, data.features[:, 2].astype(int) % 2)


@pytest.mark.parametrize(
    ("kind", "env"),
    [(PPO, "CartPole-v1"), (A2C, "CartPole-v1"), (DQN, "CartPole-v1")]
    + [(kind, "Pendulum-v1") for kind in (SAC, TD3, DDPG)],
)
def test_saved_agents_play_as_they_were(kind, env, tmp_path):
    model = kind("MlpPolicy", env, seed=3, device="cpu", **({"buffer_size": 100} if kind not in (PPO, A2C) else {}))
    model.save(tmp_path / "model.zip")
    found = agent_from_file(tmp_path / "model.zip")
    assert isinstance(found, kind) or kind is DDPG
    named = agent_from_file(tmp_path / "model.zip", kind.__name__)
    seen = np.stack([model.observation_space.sample() for _ in range(20)])
    seen = np.clip(seen, -8, 8)
    for agent in (found, named):
        np.testing.assert_allclose(
            agent.predict(seen, deterministic=True)[0], model.predict(seen, deterministic=True)[0]
        )


# What does not fit ------------------------------------------------------------------------------------------------------


def test_bad_arguments_are_one_sentence(ppo, tmp_path):
    with pytest.raises(InputError, match="no environment 'CartPol-v1': did you mean 'CartPole-v"):
        watch("CartPol-v1", answer)
    with pytest.raises(InputError, match="an agent has predict"):
        watch(Counting(), 3)
    with pytest.raises(InputError, match="watched in a Gymnasium environment"):
        watch(3, answer)
    with pytest.raises(InputError, match="at least one episode, found 0"):
        watch(Counting(), answer, 0)
    with pytest.raises(InputError, match=r"PPO could not take its first step .* Unexpected observation shape"):
        watch("Pendulum-v1", ppo, 1)
    with pytest.raises(InputError, match=r"one name for each of .*, found 2: correct features="):
        watch(Counting(), answer, 2, features=["a", "b"])
    with pytest.raises(InputError, match=r"none\.zip: there is no such file"):
        watch(Counting(), tmp_path / "none.zip")
    (tmp_path / "text.zip").write_text("no")
    with pytest.raises(InputError, match=r"expected an agent saved by stable-baselines3 \(.zip\)"):
        watch(Counting(), tmp_path / "text.zip")
    np.savez(tmp_path / "arrays.zip", a=np.zeros(2))
    (tmp_path / "arrays.zip.npz").rename(tmp_path / "arrays.zip")
    with pytest.raises(InputError, match="no algorithm of stable-baselines3 is seen in this file"):
        agent_from_file(tmp_path / "arrays.zip")
    ppo.save(tmp_path / "ppo.zip")
    with pytest.raises(InputError, match="no algorithm 'PPPO': did you mean 'PPO'"):
        agent_from_file(tmp_path / "ppo.zip", "PPPO")
    with pytest.raises(InputError, match="could not be loaded by SAC"):
        agent_from_file(tmp_path / "ppo.zip", "SAC")


def test_progress_counts_episodes():
    seen = []
    watch(Counting(), answer, 3, progress=lambda done, wanted: seen.append((done, wanted)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


class Remembers:
    """Does what it should have done one step before."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        late = 0 if state is None or episode_start[0] else int(state[0])
        return late, (answer(observation),)


def test_a_memory_is_recorded(tmp_path):
    data = watch(Counting(), Remembers(), 3)
    assert data.origin.memory is True
    write(data, tmp_path / "log.parquet")
    assert read(tmp_path / "log.parquet").origin.memory is True
    assert not watch(Counting(), answer, 3).origin.memory
