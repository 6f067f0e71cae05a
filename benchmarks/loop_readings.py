"""Agents that break what simpler tests take for granted, in an environment that only shows readings.

Each sees three numbers a step, in episodes of thirty, and never uses the last one, which tells much about what it does use.
The deviation of the first reading is configured. `GymnasiumWorld` and the loop know nothing of it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, final

import gymnasium
import numpy as np

NUM_STEPS, FORGETTING = 30, 0.9


def chance(score: float) -> float:
    """The probability of a choice."""
    return float(1 / (1 + np.exp(-score)))


class Reader(ABC):
    """One agent, and what it is shown."""

    num_labels = 0  # 0: its action is an amount
    used: tuple[int, ...] = (0, 1)

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def begin(self, rng: np.random.Generator) -> None:
        """Another episode, with two readings that drift and two numbers that stay."""
        self.drift, self.still, self.kept = rng.normal(size=2), rng.normal(size=3), -1

    def go_on(self, rng: np.random.Generator) -> None:
        """Another step."""
        self.drift = FORGETTING * self.drift + np.sqrt(1 - FORGETTING**2) * rng.normal(size=2)

    @abstractmethod
    def shown(self, rng: np.random.Generator, spread: float) -> list[float]:
        """Three numbers."""

    @abstractmethod
    def act(self, seen: np.ndarray) -> float:
        """What it does."""

    def __call__(self, seen: np.ndarray) -> Any:
        """The agent."""
        return int(self.act(seen)) if self.num_labels else np.array([self.act(seen)])


@final
class Alarm(Reader):
    """Stops at every alarm, which separates one action; else it keeps its side four times in five."""

    num_labels = 3

    def begin(self, rng: np.random.Generator) -> None:
        """No alarm at first."""
        super().begin(rng)
        self.alarm = False

    def shown(self, rng: np.random.Generator, spread: float) -> list[float]:
        """A reading, the alarm, and another reading."""
        self.alarm = bool(rng.random() < (0.6 if self.alarm else 0.1))
        return [spread * self.drift[0], float(self.alarm), self.drift[1]]

    def act(self, seen: np.ndarray) -> float:
        """Left, right or stop."""
        if self.kept < 0 or self.rng.random() < 0.2:
            self.kept = int(self.rng.random() < chance(seen[0]))
        return 2 if seen[1] else self.kept


@final
class Goal(Reader):
    """Uses a goal, which stays the same in an episode, in a curve."""

    def shown(self, rng: np.random.Generator, spread: float) -> list[float]:
        """A reading, the goal, and its square with noise."""
        return [spread * self.drift[0], self.still[0], self.still[0] ** 2 + 0.5 * rng.normal()]

    def act(self, seen: np.ndarray) -> float:
        """An amount."""
        return seen[0] + np.cos(2 * seen[1]) + 0.5 * self.rng.normal()


@final
class Intensity(Reader):
    """Uses the logarithm of an intensity, which has a heavy tail."""

    def shown(self, rng: np.random.Generator, spread: float) -> list[float]:
        """The intensity, a reading, and the logarithm with noise."""
        return [np.exp(1.5 * spread * self.drift[0]), self.drift[1], self.drift[0] + 0.5 * rng.normal()]

    def act(self, seen: np.ndarray) -> float:
        """An amount."""
        return np.log(seen[0]) / 1.5 + 0.5 * seen[1] + 0.5 * self.rng.normal()


@final
class Saturating(Reader):
    """Changes over fast along a line, beside another sensor of the same."""

    def shown(self, rng: np.random.Generator, spread: float) -> list[float]:
        """Two readings, and where they are on the line, with noise."""
        x, y = spread * self.drift[0], self.drift[1]
        return [x, y, np.tanh(3 * (x + y - 0.3)) + 0.5 * rng.normal()]

    def act(self, seen: np.ndarray) -> float:
        """An amount."""
        return np.tanh(3 * (seen[0] + seen[1] - 0.3)) + 0.5 * self.rng.normal()


@final
class Coin(Reader):
    """Takes one action in an episode, by a coin, beside numbers that stay the same in it."""

    num_labels, used = 2, ()

    def shown(self, rng: np.random.Generator, spread: float) -> list[float]:
        """Three numbers that stay."""
        return [spread * self.still[0], *self.still[1:]]

    def act(self, seen: np.ndarray) -> float:
        """Left or right."""
        self.kept = int(self.rng.integers(2)) if self.kept < 0 else self.kept
        return self.kept


@final
class Readings(gymnasium.Env[np.ndarray, Any]):
    """Shows what an agent is shown, whatever it does."""

    def __init__(self, reader: Reader, spread: float) -> None:
        self.reader, self.spread, self.count = reader, spread, 0
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float64)
        self.action_space: Any = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)
        if reader.num_labels:
            self.action_space = gymnasium.spaces.Discrete(reader.num_labels)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Another episode."""
        super().reset(seed=seed)
        self.count = 0
        self.reader.begin(self.np_random)
        return np.array(self.reader.shown(self.np_random, self.spread)), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Another step."""
        self.count += 1
        self.reader.go_on(self.np_random)
        return np.array(self.reader.shown(self.np_random, self.spread)), 0.0, False, self.count >= NUM_STEPS, {}


READERS: dict[str, Callable[[np.random.Generator], Reader]] = {
    "sticky, stops at alarms": Alarm,
    "curve of a goal": Goal,
    "log of an intensity": Intensity,
    "saturating": Saturating,
    "one action an episode": Coin,
}
"""By what is said of them in the table."""
