"""Whom the loops of `benchmarks.loops` are about: random agents, where each begins, and how it is observed.

In the worlds of the package an agent learns anew in every configuration, or, "not learned", acts by chance alone: it then
controls nothing, and its later states are made of its own noise. In Gymnasium environments it is one that nobody
here knows: a linear policy or a network of random weights, with actions drawn by chance, or a network whose best action is
taken but for one step in ten. Every feature is seen by half of the agents. Those of `benchmarks.loop_readings` are harder.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks.loop_readings import READERS, Readings
from policyspace.environments.gymnasium_world import GymnasiumWorld
from policyspace.families.base import PolicySpace
from policyspace.families.jax_backend import jax
from policyspace.worlds import make_world
from policyspace.worlds.agents import Agent, learn
from policyspace.worlds.base import Configurable, Configuration, generator
from policyspace.worlds.confmdp import ConfMDP

BRIEF = {"gridworld": 200, "continuous-gridworld": 100, "minigolf": 300, "cartpole": 100}
"""Steps of agents that hardly learn; what they do not control is exactly zero all the same."""
PARAMETERS = {
    "CartPole-v1": {"length": (0.3, 1.0), "gravity": (5.0, 15.0)},
    "Pendulum-v1": {"g": (2.0, 15.0), "l": (0.5, 2.0)},
}
"""What is configured in the Gymnasium environments."""
SCALES = {"CartPole-v1": (1.0, 1.0, 0.1, 1.0), "Pendulum-v1": (1.0, 1.0, 3.0)}
"""How large each number of an observation typically is."""
STEEPNESS, HIDDEN = 2.0, 8
"""How strongly an agent answers to a typical observation, and the units of its network."""
READINGS = "readings"
"""An environment of our own, whose agents break what simpler tests take for granted."""
EXPLORING = 0.1
"""How often an abrupt agent takes any action."""


class Subject(NamedTuple):
    """One agent of a loop."""

    world: Configurable
    space: PolicySpace
    truth: frozenset[str]  # what it perceives
    start: Configuration  # where the first round is
    observe: Callable[[Any, Any, int], Any]


@cache
def world_of(name: str) -> tuple[Configurable, PolicySpace]:
    """One object each, so that what is compiled for one cell serves all."""
    world = GymnasiumWorld.of(name, PARAMETERS[name]) if name in PARAMETERS else make_world(name)
    return world, world.policy_space()


def subject(name: str, kind: str, seed: int) -> tuple[Subject, Any]:
    """An agent, the same for the same seed, and the random key of its loop."""
    own, start, key = jax.random.split(jax.random.key(seed), 3)
    if name == READINGS:
        return _reader(kind, own, start), key
    world, space = world_of(name)
    if isinstance(world, ConfMDP):
        truth = frozenset[str]() if kind == "not learned" else world.random_controls(own)
        begin = world.random_configuration(start)
        return Subject(world, space, truth, begin, _learner(world, space, truth, kind)), key
    assert isinstance(world, GymnasiumWorld)
    rng = generator(own)
    seen = rng.random(len(world.feature_names)) < 0.5
    truth = frozenset(feature for feature, is_seen in zip(world.feature_names, seen, strict=True) if is_seen)
    agent = _stranger(name, kind, seen, rng)
    return Subject(world, space, truth, world.uniform_configuration(start), world.observe(agent)), key


def _reader(kind: str, own: Any, start: Any) -> Subject:
    """One of `benchmarks.loop_readings`, in a world of its own."""
    reader = READERS[kind](generator(own))
    world = GymnasiumWorld.of(lambda spread=1.0: Readings(reader, spread), {"spread": (0.5, 2.0)})
    truth = frozenset(world.feature_names[i] for i in reader.used)
    return Subject(world, world.policy_space(), truth, world.uniform_configuration(start), world.observe(reader))


_learned: dict[Any, Agent] = {}


def _learner(world: ConfMDP, space: PolicySpace, truth: frozenset[str], kind: str) -> Callable[[Any, Any, int], Any]:
    """An agent that learns anew in every configuration; what it learned in one is learned once."""

    def observe(key: Any, omega: Any, size: int) -> Any:
        learning, acting = jax.random.split(key)
        settings = {} if kind == "learned well" else {"num_steps": 0 if kind == "not learned" else BRIEF[world.name]}
        chance, where = jax.random.key_data(learning).tobytes(), tuple(value.tobytes() for value in omega.values())
        known = (world.name, kind, chance, where)
        if known not in _learned:
            _learned[known] = learn(world, space, truth, omega, learning, **settings)
        return _learned[known].act(world, omega, acting, size)

    return observe


def _stranger(name: str, kind: str, seen: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray], Any]:
    """A function of the observation that looks at the numbers that it sees, and at no others."""
    scales = np.where(seen, np.array(SCALES[name]), np.inf)
    inner = rng.normal(size=(HIDDEN, len(seen)))
    shift, outer = rng.normal(size=HIDDEN), rng.normal(size=HIDDEN) / np.sqrt(HIDDEN)
    weights = rng.normal(size=len(seen))

    def answer(observation: np.ndarray) -> float:
        given = observation / scales
        return STEEPNESS * float(weights @ given if kind == "linear" else outer @ np.tanh(2 * inner @ given + shift))

    if kind == "abrupt network":
        return lambda observation: int(rng.integers(2)) if rng.random() < EXPLORING else int(answer(observation) > 0)
    if name == "CartPole-v1":
        return lambda observation: int(rng.random() < 1 / (1 + np.exp(-answer(observation))))
    return lambda observation: np.array([answer(observation) / 4 + 0.4 * rng.normal()], dtype=np.float32)
