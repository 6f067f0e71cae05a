"""What experiments at equal totals share: one agent, one design, α̂ and β̂ of what it finds."""

from typing import Any

from policyspace.configuration import DESIGNS, configure
from policyspace.confmdp import Configuration, ConfMDP, Key
from policyspace.experiments.store import Cell
from policyspace.jax_setup import jax
from policyspace.policies import PolicySpace
from policyspace.trajectories import Trajectories
from policyspace.worlds import make_world
from policyspace.worlds.agents import learn

NUM_ATTEMPTS = 3
"""Looks after the first one, re-designed each time."""

COMPARED: dict[str, dict[str, Any]] = {
    "none": {},
    "uniform": {},
    "paper": {"joint": True},
    "d-optimal": {},
    "noncentrality": {},
}
"""The designs that are compared, and their options; the paper's objective asks for all undecided units together."""

_SPACES: dict[str, tuple[ConfMDP, PolicySpace]] = {}


def world_and_space(name: str) -> tuple[ConfMDP, PolicySpace]:
    """One world and one space a process, so that what was compiled for them is used again."""
    if name not in _SPACES:
        world = make_world(name)
        _SPACES[name] = world, world.policy_space()
    return _SPACES[name]


def equal_totals(experiment: str, world: str, totals: tuple[int, ...], runs: int, significance: float) -> list[Cell]:
    """Every design at every total of episodes, on the same agents; without configuration all episodes are one look."""
    return [
        Cell(
            experiment,
            {
                "world": world,
                "design": design,
                "design_options": options,
                "budget": total,
                "num_attempts": 0 if design == "none" else NUM_ATTEMPTS,
                "significance": significance,
                "seed": seed,
            },
        )
        for total in totals
        for design, options in COMPARED.items()
        for seed in range(runs)
    ]


def run(setting: dict[str, Any]) -> dict[str, Any]:
    """One agent with random controls in a random first configuration, looked at until the rounds or the budget end.

    The agent learns anew in every configuration. The seed decides controls, first configuration, learning and episodes,
    so that ways of configuring are compared on the same agents.
    """
    world, space = world_and_space(setting["world"])
    key = jax.random.key(setting["seed"])
    controls, start, rounds_key = jax.random.split(key, 3)
    truth = world.random_controls(controls)
    initial = world.random_configuration(start)
    design = DESIGNS[setting["design"]](**setting.get("design_options", {}))

    def observe(key: Key, configuration: Configuration, num_episodes: int) -> Trajectories:
        learning, acting = jax.random.split(key)
        agent = learn(world, space, truth, configuration, learning)
        return agent.act(world, configuration, acting, num_episodes)

    rounds = list(
        configure(
            world, observe, rounds_key, space, "simplified", setting["significance"], design,
            setting.get("num_episodes", 100), setting["num_attempts"], setting.get("budget"), initial,
            setting.get("paper_rule", False),
        )
    )  # fmt: skip
    last = rounds[-1]
    return {
        "truth": sorted(truth),
        "selected": list(last.selected),
        "num_rounds": len(rounds),
        "total_episodes": last.total_episodes,
        **error_rates(truth, set(last.selected), world.feature_names),
    }


def error_rates(truth: frozenset[str], selected: set[str], names: tuple[str, ...]) -> dict[str, Any]:
    """α̂: the share of uncontrolled units selected; β̂: the share of controlled units missed; none where there are none."""
    wrong, missed = selected - truth, truth - selected
    uncontrolled = len(names) - len(truth)
    return {
        "false_positive_rate": len(wrong) / uncontrolled if uncontrolled else None,
        "false_negative_rate": len(missed) / len(truth) if truth else None,
        "any_false": bool(wrong),
    }
