"""The panels of the continuous grid world."""

from policyspace.experiments.records import Record
from policyspace.results.configuring_panels import panels
from policyspace.results.panel import Panel

TITLE = "Continuous grid world"


def analyse(records: list[Record]) -> list[Panel]:
    """By episodes of a round, at equal totals, and one agent's story."""
    return panels("continuous-gridworld", TITLE, records)
