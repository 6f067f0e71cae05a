"""`agents`: how far the observed agents are from the best policy known for them; the paper assumes that they play it."""

from typing import Any

import numpy as np

from policyspace.experiments.configured_run import world_and_space
from policyspace.experiments.literal import LITERAL, procedures
from policyspace.experiments.minigolf_learning import BY_STAGES, OURS, PUBLISHED, golf, learned
from policyspace.experiments.records import Cell
from policyspace.experiments.scale import Scale
from policyspace.policies import PolicySpace
from policyspace.policies.jax_setup import jax
from policyspace.worlds.agents import Agent, learn
from policyspace.worlds.best_known import returns_of
from policyspace.worlds.car import ROAD_LENGTH, Y
from policyspace.worlds.confmdp import Configuration, ConfMDP, Key
from policyspace.worlds.trajectories import Trajectories

RUNS = 20
NUM_EPISODES = 1000
LEARNED = 0.9
"""An agent has failed to learn when fewer than this share of its episodes reach their end."""
WORLDS = {
    "gridworld": "discrete grid world",
    "continuous-gridworld": "continuous grid world",
    "minigolf": "minigolf",
    "car": "car",
}


def cells(scale: Scale) -> list[Cell]:
    """Agents of every world by both procedures, in the first configurations of the other experiments."""
    return [
        Cell("agents", {"procedure": procedure, "world": world, "num_episodes": NUM_EPISODES, "seed": seed})
        for world in WORLDS
        for procedure in procedures(scale)
        for seed in range(scale.num_runs(RUNS, 1))
    ]


def run(setting: dict[str, Any]) -> dict[str, Any]:
    """J of one agent, that of the best policy known in its space, and how many of its episodes reach their end."""
    name = setting["world"]
    deviation = PUBLISHED if setting["procedure"] == "literal" else OURS
    world, space = golf(deviation) if name == "minigolf" else world_and_space(name)
    owned, start, learning, measuring, acting = jax.random.split(jax.random.key(setting["seed"]), 5)
    controls = world.true_controls if name == "car" else world.random_controls(owned)
    initial = world.default_configuration() if name == "car" else world.random_configuration(start)
    agent = _agent(setting["procedure"], world, space, tuple(sorted(controls)), initial, learning)
    found = returns_of(agent, world, measuring)
    episodes = agent.act(world, world.check_configuration(agent.configuration), acting, setting["num_episodes"])
    return found.to_dict() | {"reached": round(float(reached(name, episodes).mean()), 4)}


def _agent(
    procedure: str, world: ConfMDP, space: PolicySpace, controls: tuple[str, ...], initial: Configuration, key: Key
) -> Agent:
    """As the experiments have it learn."""
    if procedure == "literal":
        return learn(world, space, controls, initial, key, **LITERAL[world.name].learning)
    if world.name != "minigolf":
        return learn(world, space, controls, initial, key)
    theta = learned(BY_STAGES[OURS], controls, float(initial["putter_length"]), key)
    return learn(world, space, controls, initial, key, num_steps=0, start=theta)


def reached(world: str, episodes: Trajectories) -> np.ndarray:
    """Which episodes came to the goal, into the hole, or to the end of the road [m]."""
    if world == "car":
        return np.asarray(episodes.states)[..., Y].max(axis=1) > ROAD_LENGTH
    # The step that reaches the goal, or the hole, is the only one that costs nothing.
    return np.any((np.asarray(episodes.rewards) == 0) & np.asarray(episodes.mask), axis=1)
