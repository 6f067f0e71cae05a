"""`gridworld-rule-1`: Rule 1 with configuration, by Algorithm 3 as printed and by ours, on the grid's four coordinates."""

from functools import lru_cache
from typing import Any

import numpy as np

from policyspace.configuration import DESIGNS, configure
from policyspace.experiments.configured_run import algorithm, observer, world_and_space
from policyspace.experiments.literal import LITERAL, procedures
from policyspace.experiments.records import Cell
from policyspace.experiments.scale import Scale
from policyspace.policies import PolicySpace
from policyspace.policies.jax_setup import jax
from policyspace.worlds.agents import learn
from policyspace.worlds.confmdp import Configuration, ConfMDP, Key

STATED = LITERAL["gridworld"]
RUNS = STATED.runs.value
EPISODES = (30, 100, 300)
COORDINATES = ("row", "col", "goal_row", "goal_col")
"""The units: all features of a coordinate together, so that there are 16 sets to search and to configure for."""
NUM_ATTEMPTS = 3
"""N_conf for each set, as the paper has it for each feature of Rule 2; by ours, rounds of the joint design."""


def cells(scale: Scale) -> list[Cell]:
    """The same agents by both procedures."""
    literal = {"learning": STATED.learning, "adam": STATED.adam, "design_options": STATED.objective}
    return [
        Cell(
            "gridworld-rule-1",
            {
                "procedure": procedure,
                "num_episodes": n,
                "num_attempts": NUM_ATTEMPTS,
                "significance": STATED.significance.value,
                "seed": seed,
            }
            | (literal if procedure == "literal" else {"design": "d-optimal"}),
        )
        for procedure in procedures(scale)
        for n in (EPISODES[1:2] if scale.quick else EPISODES)
        for seed in range(scale.num_runs(RUNS, 1))
    ]


@lru_cache
def grouped() -> tuple[ConfMDP, PolicySpace]:
    """The grid world, and its space with a group a coordinate."""
    world = world_and_space("gridworld")[0]
    groups = {
        name: [f for f in world.feature_names if f.rpartition("_")[0] == name and f[-1].isdigit()]
        for name in COORDINATES
    }
    return world, world.policy_space(groups=groups)


def run(setting: dict[str, Any]) -> dict[str, Any]:
    """One agent that sees each coordinate with probability ½: the sets returned after the first round and at the end."""
    world, space = grouped()
    controls, start, key = jax.random.split(jax.random.key(setting["seed"]), 3)
    seen = np.asarray(jax.random.bernoulli(controls, 0.5, (len(COORDINATES),)))
    truth = frozenset(name for name, own in zip(COORDINATES, seen, strict=True) if own)

    def learned(truth: frozenset[str], configuration: Configuration, key: Key) -> np.ndarray:
        return learn(world, space, truth, configuration, key, **setting.get("learning", {})).theta

    observe, initial = observer(world, space, truth, learned), world.random_configuration(start)
    if setting["procedure"] == "literal":
        found = algorithm(setting, world, space, observe, key).combinatorial(initial)
    else:
        rounds = configure(
            world, observe, key, space, "combinatorial", setting["significance"], DESIGNS[setting["design"]](),
            setting["num_episodes"], setting["num_attempts"], None, initial,
        )  # fmt: skip
        found = [one.supports for one in rounds]
    return {
        "truth": [name for name in COORDINATES if name in truth],
        "first": found[0],
        "last": found[-1],
        "num_rounds": len(found),
    }
