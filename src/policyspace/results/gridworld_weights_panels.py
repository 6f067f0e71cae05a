"""Records of single weights → α̂ and β̂ as in the paper's figure."""

from policyspace.experiments.gridworld_weights import EPISODES
from policyspace.experiments.records import Record
from policyspace.results.configuring_panels import by_episodes
from policyspace.results.literal_settings import settings_panels
from policyspace.results.panel import Panel

TITLE = "Discrete grid world, weight by weight"


def analyse(records: list[Record]) -> list[Panel]:
    """The paper's figure, by single weights."""
    if not records:
        return []
    shown = by_episodes("gridworld-weights", TITLE, records)
    return [shown, *settings_panels("gridworld-weights", "gridworld", records, EPISODES)]
