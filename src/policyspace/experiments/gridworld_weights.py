"""`gridworld-weights`: the discrete grid world with each scalar weight tested alone, as Rule 2 is written (Figure 1)."""

from functools import lru_cache
from typing import Any

import numpy as np

from policyspace.experiments.configured_run import designed, error_rates, observer, printed, world_and_space
from policyspace.experiments.configuring import DEFAULT, STILL
from policyspace.experiments.configuring_gridworld import SETTINGS
from policyspace.experiments.literal import procedures
from policyspace.experiments.records import Cell
from policyspace.experiments.scale import Scale
from policyspace.policies import PolicySpace
from policyspace.policies.jax_setup import jax
from policyspace.worlds.agents import learn
from policyspace.worlds.confmdp import Configuration, Key

RUNS = SETTINGS.stated.runs.value
EPISODES = (10, 100, 1000)
"""Every other number of `gridworld`: a run of Algorithm 4 has up to 144 rounds here."""


def cells(scale: Scale) -> list[Cell]:
    """The agents of `gridworld` with and without configuration, by both procedures. A miniature leaves Algorithm 4 out."""
    stated = SETTINGS.stated
    literal = {"learning": stated.learning, "adam": stated.adam, "design_options": stated.objective}
    assert stated.num_attempts is not None
    printed_rounds = {"design": "paper", "num_attempts": stated.num_attempts.value}
    ways = {"literal": (STILL | literal, literal | printed_rounds)[: 1 if scale.quick else 2], "ours": (STILL, DEFAULT)}
    return [
        Cell(
            "gridworld-weights",
            {"procedure": procedure, "significance": stated.significance.value, "num_episodes": n, "seed": seed, **way},
        )
        for procedure in procedures(scale)
        for n in (SETTINGS.quick_episodes if scale.quick else EPISODES)
        for way in ways[procedure]
        for seed in range(scale.num_runs(RUNS, 1))
    ]


@lru_cache
def _weights() -> PolicySpace:
    """The space whose units are single weights: 48 of them, and the constants."""
    return world_and_space("gridworld")[0].policy_space(groups="parameter")


def run(setting: dict[str, Any]) -> dict[str, Any]:
    """One agent, whose weights of a feature that it owns are all controlled; α̂ and β̂ over single weights."""
    world, space = world_and_space("gridworld")
    weights = _weights()
    controls, start, rounds_key = jax.random.split(jax.random.key(setting["seed"]), 3)
    owned = world.random_controls(controls)

    def learned(truth: frozenset[str], configuration: Configuration, key: Key) -> np.ndarray:
        return learn(world, space, truth, configuration, key, **setting.get("learning", {})).theta

    observe = observer(world, space, owned, learned)
    made = printed if setting["procedure"] == "literal" else designed
    rounds = made(setting, world, weights, observe, rounds_key, world.random_configuration(start))
    names = tuple(weights.groups[g].name for g in weights.tested)
    truth = frozenset(name for name in names if name.partition("[")[0] in owned)
    return {"num_rounds": len(rounds), **error_rates(truth, set(rounds[-1].selected), names)}
