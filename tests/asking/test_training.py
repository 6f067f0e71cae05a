"""A callback of stable-baselines3: when the policy began to use an input, known by when the input became useful."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, DQN

from policyspace import InputError
from policyspace.asking import EvidenceCallback

torch.set_num_threads(1)


class Useful(gymnasium.Env):
    """The action should say the sign of the first number; after some episodes, that of the second."""

    observation_space, action_space = spaces.Box(-3, 3, (3,), np.float32), spaces.Discrete(2)
    steps, change = 0, 800

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.at = self.np_random.normal(size=3).astype(np.float32)
        return self.at, {}

    def step(self, action):
        reward = float(action == (self.at[int(self.steps >= self.change)] > 0))
        self.steps += 1
        return self.reset()[0], reward, True, False, {}


@pytest.fixture(scope="module")
def trained():
    evidence = EvidenceCallback(every=400, threshold=0.1, features=["first", "second", "radio"])
    model = A2C("MlpPolicy", Useful(), gamma=0.0, learning_rate=0.01, n_steps=20, seed=0, device="cpu")
    return model.learn(2000, callback=evidence), evidence


def test_it_began_when_the_input_became_useful(trained):
    began, frame = trained[1].began, trained[1].to_frame()
    assert frame["step"].to_list()[:3] == [400, 800, 1200] and frame["step"][-1] == 2000
    assert began["second"] in (1200, 1600) and began["first"] is None and began["radio"] is None
    early, late = frame.row(1, named=True), frame.row(-1, named=True)
    assert early["first"] > 5 * early["second"] and late["second"] > 5 * late["first"]
    axes = trained[1].plot()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["first", "second", "radio"]


def test_training_goes_on_as_without_it(trained):
    alone = A2C("MlpPolicy", Useful(), gamma=0.0, learning_rate=0.01, n_steps=20, seed=0, device="cpu").learn(2000)
    for ours, theirs in zip(trained[0].policy.parameters(), alone.policy.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_effects_reach_the_logger(tmp_path):
    from stable_baselines3.common.logger import configure

    model = DQN("MlpPolicy", Useful(), seed=0, device="cpu", learning_starts=10)
    model.set_logger(configure(str(tmp_path), ["csv"]))
    model.learn(300, callback=EvidenceCallback(every=100), log_interval=50)
    assert "ask/observation[0]" in (tmp_path / "progress.csv").read_text().splitlines()[0]


def test_bad_input():
    with pytest.raises(InputError, match="every so many steps, found every=0"):
        EvidenceCallback(every=0)
