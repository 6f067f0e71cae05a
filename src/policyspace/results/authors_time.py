"""What the experiments would cost in the authors' own code: estimates, and how each was made."""

from typing import NamedTuple


class AuthorsTime(NamedTuple):
    """Hours on one core, and which times of single runs they are multiplied from."""

    hours: float
    measured: str


LEARNING = 112
"""Seconds that one golfer takes to learn in the authors' code."""

AUTHORS_TIMES = {
    "gridworld": AuthorsTime(
        25 * (4 * 1.0 + 2.75 + 5 * 0.1),
        "25 runs × (1 h with configuration at each n ≤ 300 and 2¾ h at n = 1000, where single ones took 2 to 3½ h; 6 min "
        "without)",
    ),
    "continuous-gridworld": AuthorsTime(
        25 * 4 * (5.5 + 0.06),
        "25 runs × 4 numbers of episodes × (5½ h with configuration, where single ones took 4½ to 6½ h; 4 min without)",
    ),
    "minigolf-curve": AuthorsTime(100 * 30 * LEARNING / 3600, "100 runs × 30 learnings × 112 s"),
    "minigolf-strategies": AuthorsTime(
        100 * 5 * LEARNING / 3600, "100 runs × 5 learnings (one to watch, one for each strategy) × 112 s"
    ),
    "minigolf-features": AuthorsTime(100 * 3 * 34 / 60, "100 runs × 3 numbers of episodes × 34 min with configuration"),
    "car": AuthorsTime(
        470.0, "100 runs × (940 s of learning and 1 h of fits at 100 episodes, more and fewer in proportion)"
    ),
    "imitation": AuthorsTime(
        25 * (4 * 1.0 + 2.75 + 8.0), "25 runs × (1 h at each n ≤ 300, 2¾ h at 1000 and, in proportion, 8 h at 3000)"
    ),
}
"""Of the experiments that they have: single runs were timed on one core, their number is the paper's; none ran whole."""
