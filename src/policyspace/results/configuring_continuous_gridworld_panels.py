"""The panels of the continuous grid world."""

from dataclasses import replace

from policyspace.experiments.records import Record
from policyspace.results.configuring_panels import FLAT, agents, panels
from policyspace.results.error_rates import WRONG
from policyspace.results.frames import means
from policyspace.results.panel import Panel

TITLE = "Continuous grid world"
EPISODES = "continuous-gridworld-episodes"
GOAL_FEATURES = 25


def analyse(records: list[Record]) -> list[Panel]:
    """By episodes of a round, at equal totals, and one agent's story."""
    made = panels("continuous-gridworld", TITLE, records)
    more = _where_too_many(records)
    return [replace(panel, why=f"{panel.why} {more}") if more and panel.name == EPISODES else panel for panel in made]


def _where_too_many(records: list[Record]) -> str:
    """Why others are selected where there are few more episodes than features of the goal, if they are."""
    found = agents([r for r in records if r.setting["part"] == "episodes"], "num_episodes")
    wrong = {} if found.is_empty() else {n: mean.value for n, mean in means(found, WRONG, "episodes").items()}
    worst = max(wrong, key=lambda n: wrong[n], default=0)
    if not GOAL_FEATURES < worst < 3 * GOAL_FEATURES or wrong[worst] <= FLAT:
        return ""
    return (
        f"Others are selected most at n = {worst}: the {GOAL_FEATURES} features of the goal stay the same within an "
        "episode, so few more episodes than that hardly tell them apart, and agents that hardly learned wander by their own "
        "noise, of which their states are then made. λ of what is not controlled is larger there than χ² says."
    )
