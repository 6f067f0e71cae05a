"""`continuous-gridworld`: what configuring the continuous grid world shows of its agents (Appendix C.2)."""

from policyspace.experiments.configured_run import run
from policyspace.experiments.configuring import Configuring

__all__ = ["cells", "run"]

RUNS = 25

SETTINGS = Configuring(
    experiment="continuous-gridworld",
    quick_episodes=(100,),
    totals=(40, 120, 400),
    # The paper's example: unknown to the agent are the goal's features in the two top rows.
    story={
        "controls": [
            *(f"agent_rbf_{i}_{j}" for i in range(5) for j in range(5)),
            *(f"goal_rbf_{i}_{j}" for i in range(5) for j in range(3)),
        ],
        "initial": {"x": -1.0, "y": -1.0, "goal_x": 1.0, "goal_y": 1.0},
    },
    story_episodes=100,
    guesses={
        "learning rate 0.01 instead of 0.1": {"learning": {"learning_rate": 0.01}},
        "configuration rate 0.1 instead of 0.01": {"design_options": {"learning_rate": 0.1}},
    },
)
cells = SETTINGS.cells
