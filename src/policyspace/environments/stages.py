"""Where an agent is watched: an environment, a vector of them, or stable-baselines3's kind of vector, played alike."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, final

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from policyspace.data.connectors.flattening import each_array
from policyspace.environments.makers import RegisteredEnvironment
from policyspace.errors import InputError


class Step(NamedTuple):
    """What the agent sees next, and of each environment [num] the reward and whether the episode has ended."""

    observation: Any
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray


class Stage(ABC):
    """`num` environments that play on by themselves after the end of an episode."""

    num = 1
    reset_takes_a_step = False
    """Is the action after the end of an episode ignored, because an environment then begins anew?"""

    def __init__(self, env: Any) -> None:
        self.env = env

    @property
    def spaces(self) -> tuple[Any, Any]:
        """Of one observation and of one action."""
        return self.env.observation_space, self.env.action_space

    def reset(self, seed: int | None) -> Any:
        """The first observation, as the agent sees it."""
        return self.env.reset(seed=seed)[0]

    @abstractmethod
    def step(self, action: Any) -> Step:
        """One step; after the end of an episode the observation is the first of the next one, unless that takes a step."""

    def batch(self, values: Any) -> Any:
        """Observations or actions as arrays [num, …], copied."""
        return each_array(np.array, values)

    def one(self, rows: Any) -> Any:
        """The inverse of `batch`."""
        return rows


@final
class OneEnvironment(Stage):
    """A Gymnasium environment."""

    def step(self, action: Any) -> Step:
        """One step in each environment."""
        observation, reward, terminated, truncated, _ = self.env.step(action)
        if terminated or truncated:
            observation = self.reset(None)
        return Step(observation, np.array([reward]), np.array([terminated]), np.array([truncated]))

    def batch(self, values: Any) -> Any:
        """With one row."""
        return each_array(lambda array: np.array(array)[None], values)

    def one(self, rows: Any) -> Any:
        """The only row."""
        return each_array(lambda array: array[0], rows)


@final
class VectorOfEnvironments(Stage):
    """A Gymnasium vector environment, whichever its way of beginning anew."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.num = env.num_envs
        self.mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self.reset_takes_a_step = self.mode == AutoresetMode.NEXT_STEP

    @property
    def spaces(self) -> tuple[Any, Any]:
        """The environment's own."""
        return self.env.single_observation_space, self.env.single_action_space

    def step(self, action: Any) -> Step:
        """One step in each environment."""
        observation, reward, terminated, truncated, _ = self.env.step(action)
        ended = terminated | truncated
        if self.mode == AutoresetMode.DISABLED and ended.any():
            observation = self.env.reset(options={"reset_mask": ended})[0]
        return Step(observation, np.array(reward), np.array(terminated), np.array(truncated))


@final
class VectorOfStableBaselines(Stage):
    """A vector environment of stable-baselines3, with its wrappers: normalised, stacked."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.num = env.num_envs

    def reset(self, seed: int | None) -> Any:
        """Begin an episode everywhere."""
        if seed is not None:
            self.env.seed(seed)
        return self.env.reset()

    def step(self, action: Any) -> Step:
        """One step in each environment."""
        observation, reward, done, infos = self.env.step(action)
        late = np.array([bool(info.get("TimeLimit.truncated", False)) for info in infos])
        return Step(observation, np.array(reward), done & ~late, late)


def stage_of(env: Any) -> Stage:
    """Something to act in, from an environment, a vector of them, or an id of Gymnasium."""
    if isinstance(env, str):
        return OneEnvironment(RegisteredEnvironment(env)())
    if isinstance(env, VectorEnv):
        return VectorOfEnvironments(env)
    if hasattr(env, "step_wait") and hasattr(env, "num_envs"):
        return VectorOfStableBaselines(env)
    if isinstance(env, gymnasium.Env):
        return OneEnvironment(env)
    raise InputError(
        f"an agent is watched in a Gymnasium environment, a vector environment or an id, found {type(env).__name__}."
    )


def frames_in(env: Any) -> int:
    """How many frames an observation holds, by the wrapper that stacks them."""
    while env is not None:
        if type(env).__name__ == "FrameStackObservation":
            return int(env.stack_size)
        if hasattr(env, "stacked_obs") and hasattr(env.stacked_obs, "n_stack"):
            return int(env.stacked_obs.n_stack)
        inside = getattr(env, "envs", None)
        env = inside[0] if inside else getattr(env, "venv", getattr(env, "env", None))
    return 1
