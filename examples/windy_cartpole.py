"""A cart-pole in gusts of wind, with a wind sensor, and agents of stable-baselines3 that learn in it.

Is the sensor used? In calm air it reads zero, whatever the agent would do about wind: only an experiment can tell.
The guide docs/configure-any-environment.md asks; it needs `pip install 'policyspace[agents]'`.
"""

from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.base_class import BaseAlgorithm

PUSH = 8.0  # angular acceleration of the pole in a wind of one, in rad/s²; the cart's motor makes about 15


class Wind(gymnasium.Wrapper):
    """Gusts that last for some ten steps push the pole; a fifth number of the observation is the wind to come."""

    def __init__(self, env: gymnasium.Env, gust: float) -> None:
        super().__init__(env)
        limit = np.append(env.observation_space.high, np.inf).astype(np.float32)
        self.observation_space = gymnasium.spaces.Box(-limit, limit, dtype=np.float32)
        self.gust = gust
        self.wind = 0.0

    def reset(self, **options: Any) -> tuple[np.ndarray, dict]:
        """Start an episode."""
        observation, info = self.env.reset(**options)
        self.wind = self.gust * self.env.np_random.normal()
        return np.append(observation, self.wind).astype(np.float32), info

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        """A step of the cart-pole, the push of the wind, and the next wind."""
        _, reward, terminated, truncated, info = self.env.step(action)
        bare = self.env.unwrapped
        bare.state = np.array(bare.state) + np.array([0.0, 0.0, 0.0, bare.tau * PUSH * self.wind])
        self.wind = 0.9 * self.wind + self.gust * np.sqrt(1 - 0.9**2) * self.env.np_random.normal()
        return np.append(bare.state, self.wind).astype(np.float32), float(reward), terminated, truncated, info


def windy(gust: float = 0.0) -> gymnasium.Env:
    """A cart-pole in wind of this standard deviation; episodes of at most 200 steps."""
    return Wind(gymnasium.make("CartPole-v1", max_episode_steps=200), gust)


def learn(env: gymnasium.Env, seed: int = 0) -> BaseAlgorithm:
    """An agent that learns with all five inputs."""
    torch.set_num_threads(1)
    settings: dict[str, Any] = {"n_steps": 256, "batch_size": 128, "n_epochs": 8, "gae_lambda": 0.8, "gamma": 0.98}
    model = PPO("MlpPolicy", env, learning_rate=2e-3, seed=seed, device="cpu", **settings)
    return model.learn(4096)


class WithoutWind(gymnasium.ObservationWrapper):
    """The same environment for an agent whose wind sensor is broken: it always reads zero."""

    def observation(self, observation: np.ndarray) -> np.ndarray:
        """Without the last number."""
        return observation * np.array([1, 1, 1, 1, 0], np.float32)


def learn_blind(env: gymnasium.Env, seed: int = 0) -> Any:
    """An agent that learns, and acts, without the wind sensor."""
    model = learn(WithoutWind(env), seed)
    return lambda seen: model.predict(seen * np.array([1, 1, 1, 1, 0], np.float32))[0]
