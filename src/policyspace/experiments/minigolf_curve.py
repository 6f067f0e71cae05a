"""`minigolf-curve`: what the best policies of two agents return with each putter length ω (Figure 2, left)."""

from typing import Any

from policyspace.experiments.literal import LITERAL
from policyspace.experiments.minigolf_learning import best_returns, learnings
from policyspace.experiments.records import Cell
from policyspace.experiments.scale import Scale
from policyspace.policies.jax_setup import jax
from policyspace.worlds.minigolf import AGENT_A2, Minigolf

RUNS = {"literal": LITERAL["minigolf"].runs.value, "ours": 10}  # independent optimisations of a whole curve

LENGTHS = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.5, 13.0, 15.0]
FEW_LENGTHS = [1.0, 2.0, 3.0, 5.0, 11.5, 15.0]
AGENTS = {"A1": frozenset(Minigolf.feature_names), "A2": AGENT_A2}


def cells(scale: Scale) -> list[Cell]:
    """One whole curve a cell: an agent, a σ_π and a seed."""
    return [
        Cell(
            "minigolf-curve",
            {
                "procedure": procedure,
                "agent": agent,
                "learning": learning,
                "putter_lengths": FEW_LENGTHS if scale.quick else LENGTHS,
                "num_episodes": 4000 if scale.quick else 20_000,
                "seed": seed,
            },
        )
        for procedure, _, learning in learnings(scale)
        for seed in range(scale.num_runs(RUNS[procedure], 2))
        for agent in AGENTS
    ]


def run(setting: dict[str, Any]) -> dict[str, Any]:
    """The undiscounted return of the best policy found with each putter."""
    returns = best_returns(
        setting["learning"], AGENTS[setting["agent"]], setting["putter_lengths"], jax.random.key(setting["seed"]),
        setting["num_episodes"],
    )  # fmt: skip
    return {"returns": returns}
