"""An environment that somebody else wrote, at one configuration: what it does is checked, and what is wrong is said."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, final

import gymnasium
import numpy as np

from policyspace.environments.observations import numbers_of
from policyspace.environments.own_code import Blamed
from policyspace.worlds.configurable import CannotBePlayed

CORRECT = "correct the environment, or choose other bounds"
"""What to do about one that fails."""


class Moment(NamedTuple):
    """What is seen, as the agent sees it and as numbers [n] of their own; then what the step before was worth."""

    observation: Any
    numbers: np.ndarray
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False


@final
class CheckedEnvironment:
    """Plays an environment at ω; whatever fails, or does not fit its spaces, is one sentence with ω in it."""

    def __init__(self, env: Any, configuration: Mapping[str, Any], to_do: str = CORRECT) -> None:
        self.at, self._to_do = place(configuration), to_do
        if not isinstance(env, gymnasium.Env):
            found = f"the class {env.__name__}" if isinstance(env, type) else type(env).__name__
            raise CannotBePlayed(f"a function must return one Gymnasium environment, found {found} {self.at}: {to_do}.")
        for name in ("observation_space", "action_space"):
            if not isinstance(getattr(env, name, None), gymnasium.Space):
                raise CannotBePlayed(f"an environment must have an {name}, found none {self.at}: {to_do}.")
        self.env = env
        whiles = ("in reset", "in step", "in what step returns", "in what it shows")
        self._while = {at: Blamed(f"the environment failed {self.at}, {at}", to_do, CannotBePlayed) for at in whiles}

    def reset(self, seed: int | None) -> Moment:
        """Begin an episode."""
        with self._while["in reset"]:
            found = self.env.reset(seed=seed)
        if not (isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], Mapping)):
            raise self._wrong("reset must return an observation and a dict", found)
        return Moment(found[0], self._numbers(found[0]))

    def step(self, action: Any) -> Moment:
        """What follows an action."""
        with self._while["in step"]:
            found = self.env.step(action)
        if not (isinstance(found, tuple) and len(found) == 5):
            raise self._wrong("step must return an observation, a reward, two truths about the end and a dict", found)
        observation, reward, terminated, truncated, _ = found
        with self._while["in what step returns"]:
            worth, ends = float(reward), (bool(terminated), bool(truncated))
        if not math.isfinite(worth):
            raise CannotBePlayed(f"rewards must be finite, found {worth} {self.at}: {self._to_do}.")
        return Moment(observation, self._numbers(observation), worth, *ends)

    def _numbers(self, observation: Any) -> np.ndarray:
        with self._while["in what it shows"]:
            return numbers_of(self.env.observation_space, observation)

    def _wrong(self, expected: str, found: Any) -> CannotBePlayed:
        shown = f"{len(found)} things" if isinstance(found, tuple) else f"a {type(found).__name__}"
        return CannotBePlayed(f"{expected}, found {shown} {self.at}: {self._to_do}.")


def close(env: Any) -> None:
    """Let an environment go."""
    with Blamed("the environment failed in close", "correct the environment", CannotBePlayed):
        env.close()


def place(configuration: Mapping[str, Any]) -> str:
    """ω in words."""
    listed = ", ".join(f"{name}={float(np.asarray(value)):g}" for name, value in configuration.items())
    return f"at {listed}" if listed else "where nothing is set"
