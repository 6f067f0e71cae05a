"""`minigolf-training`: where an agent's best putter lies after ever more steps of learning, and why the paper's is at 11.5.

An agent that has not learned to dose its strokes does best with a putter that hides it: under-training moves ω*.
"""

from typing import Any

from policyspace.experiments.minigolf_curve import AGENTS
from policyspace.experiments.minigolf_learning import OURS, golf, mean_return
from policyspace.experiments.records import Cell
from policyspace.experiments.scale import Scale
from policyspace.policies.jax_setup import jax
from policyspace.worlds.agents import learn

RUNS = 10
STEPS = (100, 300, 1000, 3000, 10_000)
"""The paper states 100; agents go on learning beyond 3000."""
LENGTHS = (2.0, 3.0, 4.0, 5.0, 6.5, 8.0, 10.0, 11.5, 13.0, 15.0)
FEW_LENGTHS = (3.0, 5.0, 11.5)
NUM_EPISODES, RATE = 100, 0.001
"""Of a step of learning: the paper's number, and a rate that its authors' code uses and the paper does not state."""
MEASURED = 10_000
"""Episodes that tell what a policy returns."""


def cells(scale: Scale) -> list[Cell]:
    """One agent, number of steps and seed a cell: a whole curve over putters."""
    return [
        Cell(
            "minigolf-training",
            {
                "agent": agent,
                "num_steps": steps,
                "putter_lengths": list(FEW_LENGTHS if scale.quick else LENGTHS),
                "num_episodes": NUM_EPISODES,
                "learning_rate": RATE,
                "seed": seed,
            },
        )
        for steps in (STEPS[:2] if scale.quick else STEPS)
        for agent in AGENTS
        for seed in range(scale.num_runs(RUNS, 2))
    ]


def run(setting: dict[str, Any]) -> dict[str, Any]:
    """The undiscounted return with each putter after so many steps of G(PO)MDP, from U[0, 0.1), at one rate throughout."""
    world, space = golf(OURS)
    learning, measuring = jax.random.split(jax.random.key(setting["seed"]))
    returns = []
    for number, length in enumerate(setting["putter_lengths"]):
        agent = learn(
            world, space, AGENTS[setting["agent"]], {"putter_length": length}, jax.random.fold_in(learning, number),
            setting["num_steps"], setting["num_episodes"], setting["learning_rate"], decay=1.0,
        )  # fmt: skip
        returns.append(mean_return(OURS, agent.theta, length, jax.random.fold_in(measuring, number), MEASURED))
    return {"returns": returns}
