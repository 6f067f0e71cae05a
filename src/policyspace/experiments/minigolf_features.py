"""`minigolf-features`: random features, found with and without configuring the putter (Appendix, Minigolf)."""

from typing import Any

import numpy as np

from policyspace.experiments.configured_run import observed_agent
from policyspace.experiments.minigolf_features_panels import analyse
from policyspace.experiments.minigolf_learning import AS_PUBLISHED, BRIEF, OURS, deviation_of, golf, learned
from policyspace.experiments.panel import Scale
from policyspace.experiments.records import Cell
from policyspace.worlds.confmdp import Configuration, Key

__all__ = ["analyse", "cells", "run"]

TITLE = "Minigolf: random features"
RUNS = 100
AUTHORS_HOURS = 170.0  # 34 min a configured run × 3 numbers of episodes × 100 runs

EPISODES = (10, 30, 100)
"""n; the paper shows several and does not say which."""
PAPER = {"penalty": 0.25, "num_updates": 100}
"""ζ and the updates of C_I."""

TOTALS = (12, 40, 120)
TOTALS_RUNS = 40
NUM_ATTEMPTS = 3
"""Rounds after the first one of a joint design."""


def cells(scale: Scale) -> list[Cell]:
    """Ways of configuring at equal numbers of episodes a round, as the paper compares them, and at equal totals."""
    features = [
        _cell(scale, "features", design, options, attempts, seed, num_episodes=n)
        for n in ((40,) if scale.quick else EPISODES)
        for design, options, attempts in _ways(scale)
        for seed in range(scale.num_runs(RUNS, 2))
    ]
    totals = [
        _cell(scale, "totals", design, options, 0 if design == "none" else NUM_ATTEMPTS, seed, budget=total)
        for total in ((40,) if scale.quick else TOTALS)
        for design, options in (("none", {}), ("uniform", {}), ("paper", {**PAPER, "joint": True}), ("d-optimal", {}))
        for seed in range(scale.num_runs(TOTALS_RUNS, 2))
    ]
    return features + ([] if scale.as_published else totals)


def _ways(scale: Scale) -> list[tuple[str, dict[str, Any], int]]:
    """(design, its options, attempts): none, Algorithm 4 with N_conf = 10 attempts a feature, and our default."""
    if scale.as_published:
        return [("none", {}, 0), ("paper", {**PAPER, "last_point": True}, 10)]
    return [("none", {}, 0), ("paper", PAPER, 1 if scale.quick else 10), ("d-optimal", {}, NUM_ATTEMPTS)]


def _cell(
    scale: Scale, part: str, design: str, options: dict[str, Any], attempts: int, seed: int, **episodes: int
) -> Cell:
    return Cell(
        "minigolf-features",
        {
            "part": part,
            "design": design,
            "design_options": options,
            "num_attempts": attempts,
            **episodes,
            "learning": AS_PUBLISHED if scale.as_published else BRIEF[OURS],
            "significance": 0.01,
            "paper_rule": scale.as_published,
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
