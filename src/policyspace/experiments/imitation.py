"""`imitation`: how near to the agent one comes by maximum likelihood inside the identified space (discrete grid world)."""

from functools import lru_cache, partial
from typing import Any

import numpy as np

from policyspace.configuration.round import Round
from policyspace.experiments.configured_run import designed, printed, world_and_space
from policyspace.experiments.configuring import DEFAULT
from policyspace.experiments.imitators import PENALTY, Counts, adam, divergence, in_gauge, lasso, ridge
from policyspace.experiments.literal import LITERAL, procedures
from policyspace.experiments.records import Cell
from policyspace.experiments.scale import Scale
from policyspace.policies.jax_setup import jax
from policyspace.worlds.agents import Agent, learn
from policyspace.worlds.confmdp import Configuration, Key
from policyspace.worlds.exact_gridworld import visitation
from policyspace.worlds.gridworld import Gridworld
from policyspace.worlds.trajectories import Trajectories

RUNS = 25

EPISODES = (10, 30, 100, 300, 1000, 3000)
SIGNIFICANCE = 0.01
GRID = LITERAL["gridworld"]
LEARNING = GRID.learning
"""The paper's learning: weights that are learned better grow without end, and nobody imitates them."""


def cells(scale: Scale) -> list[Cell]:
    """The same agents at every number of episodes; those of one agent follow each other, so that it learns once."""
    episodes = (30, 300) if scale.quick else EPISODES
    return [
        Cell("imitation", {"procedure": procedure, "num_episodes": n, "seed": seed})
        for procedure in procedures(scale)
        for seed in range(scale.num_runs(RUNS, 2))
        for n in episodes
    ]


def run(setting: dict[str, Any]) -> dict[str, Any]:
    """One agent watched for n episodes at ω₀, its space identified there and by the configuring loop, and all imitators.

    The loop's further data serve identification alone: every imitator learns from the n episodes at ω₀.
    """
    world, space = world_and_space("gridworld")
    assert isinstance(world, Gridworld)
    published, n = setting["procedure"] == "literal", setting["num_episodes"]
    agent, initial, rounds_key = _agent(setting["seed"])
    batches: list[Trajectories] = []

    def observe(key: Key, configuration: Configuration, num_episodes: int) -> Trajectories:
        learning, acting = jax.random.split(key)
        new = learn(world, space, agent.controls, configuration, learning, **LEARNING) if batches else agent
        batches.append(new.act(world, configuration, acting, num_episodes))
        return batches[-1]

    made = printed if published else designed
    rounds = made(_configuring(published, n), world, space, observe, rounds_key, initial)
    spaces = {
        "true": agent.controls,
        "no-conf": _identified(rounds[0], published),
        "conf": rounds[-1].selected,
    }
    data = counts_of(world, batches[0])
    masks = {name: np.array([True, *(f in names for f in world.feature_names)]) for name, names in spaces.items()}
    fits = _fits(data, masks, n, published)
    visits = np.asarray(visitation(world, space, agent.theta, initial)).sum(axis=0)
    truth = in_gauge(np.vstack([agent.theta.reshape(3, -1), np.zeros(data.shape[1])]))
    return {
        "size": float(np.linalg.norm(truth)),
        "num_pairs": int(data.counts.sum()),
        "num_controlled": len(agent.controls),
        "missed": {name: len(set(agent.controls) - set(spaces[name])) for name in ("no-conf", "conf")},
        "wrong": {name: len(set(spaces[name]) - set(agent.controls)) for name in ("no-conf", "conf")},
        "error": {name: float(np.linalg.norm(in_gauge(fit) - truth)) for name, fit in fits.items()},
        "divergence": {name: divergence(truth, fit, design_of(world), visits) for name, fit in fits.items()},
    }


def _configuring(published: bool, num_episodes: int) -> dict[str, Any]:
    """How the space is identified: by Algorithm 4 as printed, or as this library does."""
    common = {"significance": SIGNIFICANCE, "num_episodes": num_episodes}
    if not published:
        return common | DEFAULT
    attempts = GRID.num_attempts and GRID.num_attempts.value
    return common | {"adam": GRID.adam, "design_options": GRID.objective, "num_attempts": attempts}


def _fits(data: Counts, masks: dict[str, np.ndarray], n: int, published: bool) -> dict[str, np.ndarray]:
    """Maximum likelihood in the spaces and in all of Θ; ridge; lasso.

    Maximum likelihood bears a penalty so weak that it only makes it exist, the same in all spaces. Literally all is
    fitted by Adam, whose early stop is the only penalty of maximum likelihood.
    """
    if published:
        likely = partial(adam, data)
        penalised = {"ridge": adam(data, squares=PENALTY * n), "lasso": adam(data, sizes=PENALTY * n)}
    else:
        likely = partial(ridge, data, PENALTY)
        penalised = {"ridge": ridge(data, PENALTY * n), "lasso": lasso(data, PENALTY * n)}
    return {name: likely(mask) for name, mask in masks.items()} | {"plain": likely()} | penalised


@lru_cache(maxsize=1)
def _agent(seed: int) -> tuple[Agent, Configuration, Key]:
    """The agent of a seed at its random ω₀, and the key of the rounds."""
    world, space = world_and_space("gridworld")
    controls, start, learning, rounds_key = jax.random.split(jax.random.key(seed), 4)
    initial = world.random_configuration(start)
    return learn(world, space, world.random_controls(controls), initial, learning, **LEARNING), initial, rounds_key


def _identified(first: Round, published: bool) -> tuple[str, ...]:
    """Rule 2 on the episodes at ω₀ alone, at full δ instead of that round's share; nothing where they cannot be tested."""
    if published:
        return first.selected  # every round of Algorithm 4 has full δ
    tests = [] if first.identification is None else first.identification.tests
    return tuple(test.group for test in tests if test.adjusted_p_value <= SIGNIFICANCE)


def counts_of(world: Gridworld, seen: Trajectories) -> Counts:
    """The pairs of some episodes, counted by state and action, over the states that were seen."""
    mask = np.asarray(seen.mask, dtype=bool)
    index = np.asarray(world.state_index(np.asarray(seen.states)[:, :-1]))[mask]
    counts = np.zeros((world.num_states, 4))
    np.add.at(counts, (index, np.asarray(seen.actions)[mask]), 1.0)
    seen_at_all = counts.sum(axis=1) > 0
    return Counts(design_of(world)[seen_at_all], counts[seen_at_all])


def design_of(world: Gridworld) -> np.ndarray:
    """The constant and the features of every state [n⁴, q]."""
    features = np.asarray(jax.vmap(world.features)(world.states()))
    return np.hstack([np.ones((len(features), 1)), features])
