"""Agents in files: one JSON text, readable by people and by any language, never pickled."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from policyspace import __version__
from policyspace.data.input_files import parse_json, settings_text
from policyspace.data.limits import check_seed
from policyspace.data.whole_file import replacing
from policyspace.errors import InputError
from policyspace.policies import BoltzmannLinear, GaussianLinear
from policyspace.policies.groups import Group
from policyspace.policies.network import BoltzmannNetwork, GaussianNetwork
from policyspace.worlds.agents import Agent, support_of
from policyspace.worlds.confmdp import ConfMDP

FORMAT = "policyspace agent 1"
FAMILIES: dict[str, Any] = {
    "boltzmann": BoltzmannLinear,
    "gaussian": GaussianLinear,
    "boltzmann-network": BoltzmannNetwork,
    "gaussian-network": GaussianNetwork,
}
"""The class behind each name that a space's `describe` gives its family."""


def save_agent(agent: Agent, path: str | Path) -> None:
    """An agent into a file: the whole file appears at once, or nothing changes."""
    space = agent.space
    said = space.describe()
    if said["family"] not in FAMILIES or said.get("covariance") == "estimate":
        raise InputError(
            f"a space that can be written to a file is one of {', '.join(FAMILIES)}, with a known covariance, found a "
            f"{type(space).__name__}."
        )
    content = {
        "format": FORMAT,
        "version": __version__,
        "world": agent.world,
        "controls": list(agent.controls),
        "configuration": {name: np.asarray(value).tolist() for name, value in agent.configuration.items()},
        "seed": agent.seed,
        "returns": agent.returns,
        "policy": said,
        "features": list(space.feature_names),
        "actions": list(space.action_names),
        "groups": [{"name": g.name, "indices": list(g.indices), "always": g.always} for g in space.groups],
        "fixed": space.fixed.tolist(),
        "theta": agent.theta.tolist(),
        "learning_curve": agent.learning_curve.tolist(),
    }
    with replacing(path) as file:
        file.write((json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def load_agent(path: str | Path, world: ConfMDP | None = None) -> Agent:
    """The agent in a file; with `world`, it must be one that learned there."""
    path = Path(path)
    try:
        content = parse_json(settings_text(path))
    except InputError as error:
        reason = str(error).rstrip(".")
        raise InputError(f"'{path}' is not a saved agent ({reason}): write one with --save-agent.") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"'{path}' is not a saved agent ('{FORMAT}'): write one with --save-agent.")
    if world is not None and content.get("world") != world.name:
        raise InputError(
            f"the agent in '{path}' learned in the world '{content.get('world')}', not in '{world.name}': "
            "simulate it there, or load another agent."
        )
    try:
        agent = _agent(content)
        _check(agent, world)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError) as error:
        reason = str(error).rstrip(".") if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise InputError(f"the agent file '{path}' is damaged ({reason}): save the agent again.") from error
    return agent


def _agent(content: dict[str, Any]) -> Agent:
    """An agent from what its file says."""
    policy = dict(content["policy"])
    space = FAMILIES[policy.pop("family")](content["features"], content["actions"], **policy)
    size = space.num_parameters
    space.groups = tuple(Group(g["name"], tuple(g["indices"]), g["always"]) for g in content["groups"])
    space.fixed = np.asarray(content["fixed"], dtype=np.float64)
    if space.fixed.shape != (size,):
        raise ValueError(f"its space has {size} parameters, its fixed values have the shape {space.fixed.shape}")
    return Agent(
        world=content["world"],
        space=space,
        controls=tuple(content["controls"]),
        theta=np.asarray(content["theta"], dtype=np.float64),
        configuration={name: np.asarray(v, dtype=np.float64) for name, v in content["configuration"].items()},
        learning_curve=np.asarray(content["learning_curve"], dtype=np.float64),
        seed=content["seed"],
        returns=content.get("returns"),
    )


def _check(agent: Agent, world: ConfMDP | None) -> None:
    """What the parts of an agent must agree on."""
    check_seed(0 if agent.seed is None else agent.seed)
    space, size = agent.space, agent.space.num_parameters
    support = support_of(space, agent.controls)
    if sorted(i for group in space.groups for i in group.indices) != list(range(size)):
        raise ValueError("its groups are no partition of its parameters")
    if agent.theta.shape != (size,) or not np.isfinite(agent.theta).all():
        raise ValueError(f"it needs {size} finite parameters")
    if not np.array_equal(agent.theta[~space.free(support)], space.fixed[~space.free(support)]):
        raise ValueError("it moves parameters that it does not control")
    if agent.learning_curve.ndim != 1 or not np.isfinite(agent.learning_curve).all():
        raise ValueError("its learning curve is not a list of finite numbers")
    if agent.returns is not None and not (
        set(agent.returns) == {"agent", "best_known", "distance"} and np.isfinite([*agent.returns.values()]).all()
    ):
        raise ValueError("its returns are not those of the agent and of the best policy known")
    if world is not None:
        if tuple(space.feature_names) != tuple(world.feature_names):
            raise ValueError(f"its features are not those of this {world.name}")
        if tuple(space.action_names) != tuple(world.action_names):
            raise ValueError(f"its actions are not those of this {world.name}")
        world.check_configuration(agent.configuration)
