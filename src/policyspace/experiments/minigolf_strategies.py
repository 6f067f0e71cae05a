"""`minigolf-strategies`: what an agent blind to the friction returns with a putter chosen for it (Figure 2, right)."""

import json
from functools import lru_cache
from typing import Any

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.experiments.minigolf_learning import (
    best_learned,
    best_returns,
    deviation_of,
    golf,
    learned,
    learnings,
    mean_return,
)
from policyspace.experiments.printed_algorithms import in_closed_form
from policyspace.experiments.printed_rules import one_out, rule_2
from policyspace.experiments.records import Cell
from policyspace.experiments.scale import Scale
from policyspace.identification import simplified
from policyspace.policies import PolicySpace
from policyspace.policies.jax_setup import jax
from policyspace.worlds.confmdp import Key, rollout
from policyspace.worlds.minigolf import AGENT_A2, Minigolf

RUNS = 100

LENGTHS = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 9.0, 11.5, 15.0]
FEW_LENGTHS = [1.5, 2.0, 3.0, 5.0, 11.5]
STRATEGIES = {
    "uniform": "(i) at random",
    "full": "(ii) best for A₁, that sees all",
    "identified": "(iii) best for what was identified",
    "oracle": "(iv) best for A₂, by an oracle",
}


def cells(scale: Scale) -> list[Cell]:
    """One agent a cell: A₂ with a seed and a σ_π."""
    return [
        Cell(
            "minigolf-strategies",
            {
                "procedure": procedure,
                "observed_learning": observed,
                "learning": learning,
                "putter_lengths": FEW_LENGTHS if scale.quick else LENGTHS,
                "curve_seeds": [1_000_000 + i for i in range(10 if procedure == "literal" and not scale.quick else 1)],
                "curve_episodes": 4000 if scale.quick else 20_000,
                "num_observed": 100,
                "significance": 0.01,
                "num_episodes": 4000 if scale.quick else 10_000,
                "seed": seed,
            },
        )
        for procedure, observed, learning in learnings(scale)
        for seed in range(scale.num_runs(RUNS, 4))
    ]


def run(setting: dict[str, Any]) -> dict[str, Any]:
    """A₂ is observed with a putter drawn uniformly, each strategy chooses one, and A₂ learns with that anew."""
    start, learning_key, acting, anew, measuring = jax.random.split(jax.random.key(setting["seed"]), 5)
    learning = setting["learning"]
    world, space = golf(deviation_of(learning))
    drawn = float(world.random_configuration(start)["putter_length"])
    theta = learned(setting["observed_learning"], AGENT_A2, drawn, learning_key)
    seen = rollout(world, space, theta, {"putter_length": drawn}, acting, setting["num_observed"])
    pairs = seen.pairs(world.feature_names, world.action_names)
    selected = _identified(setting, space, pairs) & set(world.feature_names)
    lengths = {
        "uniform": drawn,
        "full": _best_length(setting, Minigolf.feature_names),
        "identified": _best_length(setting, selected),
        "oracle": _best_length(setting, AGENT_A2),
    }
    # The same putter is the same learning: strategies that agree are compared without noise between them.
    returns = {length: _learned_return(setting, length, anew, measuring) for length in set(lengths.values())}
    return {
        "selected": sorted(selected),
        "putter_lengths": lengths,
        "returns": {strategy: returns[length] for strategy, length in lengths.items()},
    }


def _identified(setting: dict[str, Any], space: PolicySpace, pairs: Demonstrations) -> set[str]:
    """By Rule 2 as it is printed, or as this library tests where nobody says otherwise."""
    if setting["procedure"] == "literal":
        statistics, _ = in_closed_form(space)(pairs, one_out(space))
        return set(rule_2(space, statistics, setting["significance"]))
    return set(simplified(space, pairs, setting["significance"]).core)


def _learned_return(setting: dict[str, Any], length: float, anew: Key, measuring: Key) -> float:
    """What A₂ returns when it has learned with a putter."""
    learning, num_episodes = setting["learning"], setting["num_episodes"]
    choosing, measuring = jax.random.split(measuring)
    theta = best_learned(learning, AGENT_A2, length, (anew, choosing), num_episodes)
    return mean_return(deviation_of(learning), theta, length, measuring, num_episodes)


def _best_length(setting: dict[str, Any], controls: Any) -> float:
    """The putter whose best policy inside a space returns most: a function of the space and the setting alone.

    What the paper's learning returns differs from one time to the next: there, means of several curves are compared.
    """
    names = ("learning", "putter_lengths", "curve_seeds", "curve_episodes")
    return _best_of(json.dumps({name: setting[name] for name in names}), tuple(sorted(controls)))


@lru_cache
def _best_of(setting: str, controls: tuple[str, ...]) -> float:
    how = json.loads(setting)
    lengths = how["putter_lengths"]
    keys = [jax.random.key(seed) for seed in how["curve_seeds"]]
    curves = [best_returns(how["learning"], controls, lengths, key, how["curve_episodes"]) for key in keys]
    return float(lengths[int(np.argmax(np.mean(curves, axis=0)))])
