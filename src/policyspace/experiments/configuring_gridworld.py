"""`gridworld`: what configuring the discrete grid world shows of its agents (Figure 1, Appendix C.1)."""

from policyspace.experiments.configured_run import run
from policyspace.experiments.configuring import Configuring

__all__ = ["cells", "run"]

RUNS = 25

SETTINGS = Configuring(
    experiment="gridworld",
    quick_episodes=(10, 30),
    totals=(40, 120, 400),
    # The paper's example: all but the goal's column is known; starts lower left, goals lower right.
    story={
        "controls": [f"{name}_{level}" for name in ("row", "col", "goal_row") for level in range(4)],
        "initial": {
            name: [5.0 if level == peak else 1.0 for level in range(5)]
            for name, peak in (("row", 4), ("col", 0), ("goal_row", 4), ("goal_col", 4))
        },
    },
    story_episodes=100,  # a round of 1000 shows nearly everything at once
    guesses={
        "learning rate 0.03 instead of 0.1": {"learning": {"learning_rate": 0.03}},
        "configuration rate 0.1 instead of 0.01": {"design_options": {"learning_rate": 0.1}},
        "the best point of Adam's path instead of the last": {"adam": {"point": "best"}},
    },
)
cells = SETTINGS.cells
