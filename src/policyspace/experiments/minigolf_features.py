"""`minigolf-features`: random features, found with and without configuring the putter (Appendix, Minigolf)."""

from typing import Any

import numpy as np

from policyspace.experiments.configured_run import observed_agent
from policyspace.experiments.configuring import DEFAULT, STILL, rounds_at
from policyspace.experiments.literal import LITERAL, procedures
from policyspace.experiments.minigolf_learning import (
    AS_PUBLISHED,
    BY_STAGES,
    OURS,
    PUBLISHED,
    deviation_of,
    golf,
    learned,
)
from policyspace.experiments.records import Cell
from policyspace.experiments.scale import Scale
from policyspace.worlds.confmdp import Configuration, Key

STATED = LITERAL["minigolf"]
RUNS = STATED.runs.value
EPISODES = STATED.num_episodes.value
PAPER = {"penalty": 0.25, "num_updates": 100}
"""ζ and the updates of C_I."""

TOTALS = (12, 40, 120)
TOTALS_RUNS = 40


def cells(scale: Scale) -> list[Cell]:
    """Ways of configuring at equal numbers of episodes a round, as the paper compares them, and at equal totals."""
    features = [
        _cell(procedure, "features", seed, num_episodes=n, **way)
        for procedure in procedures(scale)
        for n in ((40,) if scale.quick else EPISODES)
        for way in _ways(scale, procedure)
        for seed in range(scale.num_runs(RUNS, 2))
    ]
    totals = [
        _cell("ours", "totals", seed, design=design, design_options=options, **rounds_at(total, design))
        for total in ((40,) if scale.quick else TOTALS)
        for design, options in (("none", {}), ("uniform", {}), ("paper", {**PAPER, "joint": True}), ("d-optimal", {}))
        for seed in range(scale.num_runs(TOTALS_RUNS, 2))
    ]
    return features + ([] if scale.as_published else totals)


def _ways(scale: Scale, procedure: str) -> list[dict[str, Any]]:
    """No configuration, and Algorithm 4 with N_conf = 10 attempts a feature or, by ours, our default."""
    printed = {"design": "paper", "design_options": STATED.objective, "num_attempts": 1 if scale.quick else 10}
    return [STILL, printed if procedure == "literal" else DEFAULT]


def _cell(procedure: str, part: str, seed: int, **way: Any) -> Cell:
    literal = procedure == "literal"
    return Cell(
        "minigolf-features",
        {
            "procedure": procedure,
            "part": part,
            **way,
            "learning": AS_PUBLISHED[PUBLISHED] if literal else BY_STAGES[OURS],
            **({"adam": STATED.adam} if literal else {}),
            "significance": STATED.significance.value,
            "seed": seed,
        },
    )


def run(setting: dict[str, Any]) -> dict[str, Any]:
    """A golfer with random features, seen first with a random putter, then with those that the design asks for.

    Each feature is owned with probability ½, the constant always; the golfer learns anew with every putter.
    """
    learning = setting["learning"]

    def with_putter(truth: frozenset[str], configuration: Configuration, key: Key) -> np.ndarray:
        return learned(learning, sorted(truth), float(configuration["putter_length"]), key)

    return observed_agent(setting, *golf(deviation_of(learning)), with_putter)
