"""Records of single weights → α̂ and β̂ as in the paper's figure."""

from policyspace.experiments.records import Record
from policyspace.results.configuring_panels import by_episodes
from policyspace.results.panel import Panel

TITLE = "Discrete grid world, weight by weight"


def analyse(records: list[Record]) -> list[Panel]:
    """The paper's figure, by single weights."""
    return [by_episodes("gridworld-weights", TITLE, records)] if records else []
