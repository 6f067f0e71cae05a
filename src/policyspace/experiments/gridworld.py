"""`gridworld`: how many controlled features each design misses, at equal totals of episodes."""

from policyspace.experiments.equal_totals import equal_totals, run
from policyspace.experiments.store import Cell

__all__ = ["cells", "run"]

TITLE = "Discrete grid world"
TOTALS = (40, 120, 400, 1200)


def cells(runs: int) -> list[Cell]:
    """Every design at every total, on the same agents."""
    return equal_totals("gridworld", "gridworld", TOTALS, runs, significance=0.01)
