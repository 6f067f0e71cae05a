"""One agent, observed in one configuration after another: what a run of the configuration experiments is."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from policyspace.configuration import DESIGNS, configure
from policyspace.configuration.designs import PaperObjective
from policyspace.configuration.loop import Observe
from policyspace.configuration.round import Round
from policyspace.experiments.printed_algorithms import PrintedAlgorithm, by_adam, in_closed_form
from policyspace.policies import PolicySpace
from policyspace.policies.jax_setup import jax
from policyspace.worlds import make_world
from policyspace.worlds.agents import learn
from policyspace.worlds.confmdp import Configuration, ConfMDP, Key, rollout
from policyspace.worlds.trajectories import Trajectories

Learned = Callable[[frozenset[str], Configuration, Key], np.ndarray]
"""θ of an agent that owns these features and learned in this configuration."""


@lru_cache
def world_and_space(name: str) -> tuple[ConfMDP, PolicySpace]:
    """One world and one space a process, so that what was compiled for them is used again."""
    world = make_world(name)
    return world, world.policy_space()


def run(setting: dict[str, Any]) -> dict[str, Any]:
    """One agent that learns as its world's agents do, or as the setting says."""
    world, space = world_and_space(setting["world"])

    def learned(truth: frozenset[str], configuration: Configuration, key: Key) -> np.ndarray:
        return learn(world, space, truth, configuration, key, **setting.get("learning", {})).theta

    return observed_agent(setting, world, space, learned)


def observed_agent(setting: dict[str, Any], world: ConfMDP, space: PolicySpace, learned: Learned) -> dict[str, Any]:
    """One agent in a random first configuration, observed until the rounds or the budget end; α̂ and β̂ of what is found.

    The agent learns anew in every configuration. The seed decides controls, first configuration, learning and episodes,
    so that ways of configuring are compared on the same agents; a setting may also name controls and configuration, or
    begin at the world's flat configuration, if it has one.
    """
    controls, start, rounds_key = jax.random.split(jax.random.key(setting["seed"]), 3)
    truth = frozenset(setting["controls"]) if "controls" in setting else world.random_controls(controls)
    named = "initial" in setting
    initial = world.check_configuration(setting["initial"]) if named else world.random_configuration(start)
    if setting.get("flat_first"):
        initial = world.flat_configuration() or initial
    observe = observer(world, space, truth, learned)
    made = printed if setting.get("procedure") == "literal" else designed
    rounds = made(setting, world, space, observe, rounds_key, initial)
    last = rounds[-1]
    story = {"rounds": [r.to_dict() for r in rounds]} if setting.get("keep_rounds") else {}
    return {
        "truth": sorted(truth),
        "selected": list(last.selected),
        "num_rounds": len(rounds),
        "total_episodes": last.total_episodes,
        **error_rates(truth, set(last.selected), world.feature_names),
        **story,
    }


def observer(world: ConfMDP, space: PolicySpace, truth: frozenset[str], learned: Learned) -> Observe:
    """Watches an agent that learns anew in every configuration."""

    def observe(key: Key, configuration: Configuration, num_episodes: int) -> Trajectories:
        learning, acting = jax.random.split(key)
        theta = learned(truth, configuration, learning)
        return rollout(world, space, theta, configuration, acting, num_episodes)

    return observe


def designed(
    setting: dict[str, Any], world: ConfMDP, space: PolicySpace, observe: Observe, key: Key, initial: Configuration
) -> list[Round]:
    """The rounds that this library makes, δ kept over all of them."""
    design = DESIGNS[setting["design"]](**setting["design_options"])
    rounds = configure(
        world, observe, key, space, "simplified", setting["significance"], design,
        setting.get("num_episodes"), setting.get("num_attempts"), setting.get("budget"), initial,
    )  # fmt: skip
    return list(rounds)


def printed(
    setting: dict[str, Any], world: ConfMDP, space: PolicySpace, observe: Observe, key: Key, initial: Configuration
) -> list[Round]:
    """The rounds of the paper's Algorithm 4."""
    return algorithm(setting, world, space, observe, key).simplified(initial)


def algorithm(
    setting: dict[str, Any], world: ConfMDP, space: PolicySpace, observe: Observe, key: Key
) -> PrintedAlgorithm:
    """The paper's algorithms by the settings of a cell."""
    adam = setting["adam"]
    return PrintedAlgorithm(
        world, space, observe, key, PaperObjective(**setting["design_options"]),
        in_closed_form(space) if adam is None else by_adam(space, adam),
        setting["significance"], setting["num_episodes"], setting["num_attempts"],
    )  # fmt: skip


def error_rates(truth: frozenset[str], selected: set[str], names: tuple[str, ...]) -> dict[str, Any]:
    """α̂: the share of uncontrolled units selected; β̂: the share of controlled units missed; none where there are none."""
    wrong, missed = selected - truth, truth - selected
    uncontrolled = len(names) - len(truth)
    return {
        "false_positive_rate": len(wrong) / uncontrolled if uncontrolled else None,
        "false_negative_rate": len(missed) / len(truth) if truth else None,
        "any_false": bool(wrong),
    }
