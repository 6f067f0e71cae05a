"""One simulated log whose truth is known, and the pieces that agents and their inputs are made of."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

Array = np.ndarray
Agent = Callable[[Array], Array]
"""The actions of an agent on features [n, q]. Its noise is drawn beforehand, so that only the inputs can change them."""


@dataclass(frozen=True)
class Scenario:
    """A log, which of its inputs the agent uses, and the agent itself."""

    features: Array
    names: tuple[str, ...]
    agent: Agent
    used: frozenset[str]
    words: str
    episodes: Array | None = None
    subjects: Array | None = None

    @cached_property
    def actions(self) -> Array:
        """What the agent did: real numbers [n] or [n, k], or labels [n]."""
        return self.agent(self.features)

    @property
    def discrete(self) -> bool:
        """Labels rather than real numbers?"""
        return np.issubdtype(self.actions.dtype, np.integer)

    @property
    def clusters(self) -> Array | None:
        """The largest units of rows that may depend on each other: subjects where there are any, else episodes."""
        return self.episodes if self.subjects is None else self.subjects


def inputs(num: int) -> tuple[str, ...]:
    """x1, x2, …"""
    return tuple(f"x{j + 1}" for j in range(num))


def equal_episodes(num_episodes: int, length: int) -> Array:
    """The number of the episode of every row."""
    return np.repeat(np.arange(num_episodes), length)


def drifting(rng: np.random.Generator, num_episodes: int, length: int, num: int, memory: float = 0.9) -> Array:
    """Independent stationary AR(1) inputs [num_episodes·length, num] of variance one, started afresh in every episode."""
    steps = rng.normal(size=(length, num_episodes, num))
    path = np.empty_like(steps)
    path[0] = steps[0]
    for t in range(1, length):
        path[t] = memory * path[t - 1] + np.sqrt(1 - memory**2) * steps[t]
    return path.swapaxes(0, 1).reshape(num_episodes * length, num)


def smooth(rng: np.random.Generator, num_episodes: int, length: int, num: int) -> Array:
    """Inputs without kinks: in every episode a sum of four slow sines, of variance one on average."""
    frequencies = rng.uniform(0.02, 0.12, size=(4, num_episodes, 1, num))
    phases = rng.uniform(0, 2 * np.pi, size=(4, num_episodes, 1, num))
    time = np.arange(length)[None, None, :, None]
    waves = np.sin(frequencies * time + phases).sum(axis=0) / np.sqrt(2)
    return waves.reshape(num_episodes * length, num)


def network(rng: np.random.Generator, sizes: tuple[int, ...], gain: float = 1.0, bias: float = 0.3) -> Agent:
    """A random tanh network without a last nonlinearity: weights of variance gain²/inputs, biases of variance bias²."""
    weights = [gain * rng.normal(size=(m, n)) / np.sqrt(m) for m, n in pairwise(sizes)]
    biases = [bias * rng.normal(size=n) for n in sizes[1:]]

    def outputs(x: Array) -> Array:
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            x = np.tanh(x @ weight + bias)
        return x @ weights[-1] + biases[-1]

    return outputs


def at_random(rng: np.random.Generator, scores: Agent, num_rows: int, num_actions: int) -> Agent:
    """An agent that takes action i with the probability softmax(scores)_i."""
    gumbel = rng.gumbel(size=(num_rows, num_actions))
    return lambda x: np.argmax(scores(x) + gumbel, axis=1)
