"""`gridworld`: α̂ and β̂ against the number of episodes, with and without configuration, and at equal totals."""

from typing import Any

from policyspace.experiments.grids import run
from policyspace.experiments.store import Cell

__all__ = ["cells", "run"]

NAME, WORLD, SIGNIFICANCE = "gridworld", "gridworld", 0.01
TOTALS = (40, 120, 400, 1200)
DESIGNS = ("none", "uniform", "d-optimal", "noncentrality")
NUM_ATTEMPTS = 3


def cells(runs: int = 25, totals: tuple[int, ...] = TOTALS, first_seed: int = 0) -> list[Cell]:
    """Every design at every total of episodes, on the same agents."""
    return [
        Cell(NAME, setting(design, total, seed))
        for total in totals
        for design in DESIGNS
        for seed in range(first_seed, first_seed + runs)
    ]


def setting(design: str, budget: int, seed: int) -> dict[str, Any]:
    """Plain data for one run; without configuration all episodes are one look, at full δ."""
    return {
        "world": WORLD,
        "design": design,
        "budget": budget,
        "num_attempts": 0 if design == "none" else NUM_ATTEMPTS,
        "significance": SIGNIFICANCE,
        "seed": seed,
    }
