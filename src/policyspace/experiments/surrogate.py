"""`surrogate`: does the paper's objective rank configurations as the gap that it stands for does (Section 5)?

In the discrete grid world that gap is computable: the agent learns anew in each ω with and without the tested feature.
"""

from typing import Any, cast

import numpy as np

from policyspace.configuration.objective import (
    expected_information,
    gradient_terms,
    information_terms,
    log_det_gain,
    paper_objective,
)
from policyspace.experiments.configured_run import world_and_space
from policyspace.experiments.literal import LITERAL
from policyspace.experiments.records import Cell
from policyspace.experiments.scale import Scale
from policyspace.policies import PolicySpace
from policyspace.policies.base import ExponentialFamily
from policyspace.policies.jax_setup import jax, jnp
from policyspace.theory import gradient_step_gap_bound, population_gap
from policyspace.worlds.agents import Agent, learn
from policyspace.worlds.confmdp import Configuration, Key
from policyspace.worlds.exact_gridworld import expected_return, visitation
from policyspace.worlds.gridworld import Gridworld
from policyspace.worlds.trajectories import Trajectories

RUNS = 16
"""Agents; the paper makes no such experiment."""
CONFIGURATIONS = 16
"""Of each agent: from hardly moved to far away."""
NUM_EPISODES = 100
FARTHEST = 3.0
"""Standard deviation of the noise on the logits of the farthest configuration."""

SURROGATES = {
    "paper": "the paper's objective",
    "d-optimal": "D-optimality",
    "bound": "bound of Theorem 5.1",
    "gradient": "its gradient, without λ",
    "again": "the gap, learned again",
}


def cells(scale: Scale) -> list[Cell]:
    """One agent, its tested feature and all its configurations a cell."""
    count = 3 if scale.quick else CONFIGURATIONS
    return [
        Cell("surrogate", {"num_configurations": count, "num_episodes": NUM_EPISODES, "seed": seed})
        for seed in range(scale.num_runs(RUNS, 2))
    ]


def run(setting: dict[str, Any]) -> dict[str, Any]:
    """An agent at ω₀, one feature of it that is tested; in every ω the gap, twice, and what stands for it."""
    world, space = world_and_space("gridworld")
    assert isinstance(world, Gridworld)
    owned, start, learning, acting, drawing, anew = jax.random.split(jax.random.key(setting["seed"]), 6)
    controls = sorted(world.random_controls(owned)) or [world.feature_names[0]]
    tested = controls[int(jax.random.randint(owned, (), 0, len(controls)))]
    agent = learn(world, space, controls, world.random_configuration(start), learning)
    seen = agent.act(world, agent.configuration, acting, setting["num_episodes"])
    count = setting["num_configurations"]
    found: dict[str, list[float]] = {name: [] for name in ("gap", *SURROGATES)}
    for number in range(count):
        omega = _moved(world, agent.configuration, jax.random.fold_in(drawing, number), FARTHEST * (number + 1) / count)
        for name, value in surrogates(world, agent, tested, seen, omega).items():
            found[name].append(value)
        for name, key in zip(("gap", "again"), jax.random.split(jax.random.fold_in(anew, number)), strict=True):
            found[name].append(gap(world, space, agent.controls, tested, omega, key))
    return {"tested": tested, "num_controlled": len(controls), **found}


def _moved(world: Gridworld, configuration: Configuration, key: Key, deviation: float) -> Configuration:
    """ω₀ with noise on all its logits."""
    noise = dict(zip(configuration, jax.random.normal(key, (len(configuration), world.size)), strict=True))
    return {name: jnp.clip(value + deviation * noise[name], -10.0, 10.0) for name, value in configuration.items()}


def gap(
    world: Gridworld, space: PolicySpace, controls: tuple[str, ...], tested: str, omega: Configuration, key: Key
) -> float:
    """ℓ(θ_I*(ω)) − ℓ(θ*(ω)), the ideal objective: both policies learned in ω, on the states that the full one visits."""
    full, without = (
        learn(world, space, names, omega, key).theta
        for names in (controls, [name for name in controls if name != tested])
    )
    visits = np.asarray(visitation(world, space, full, omega)).sum(axis=0)
    return population_gap(cast(ExponentialFamily, space), full, without, _features(world), visits / visits.sum())


def surrogates(
    world: Gridworld, agent: Agent, tested: str, seen: Trajectories, omega: Configuration
) -> dict[str, float]:
    """What the episodes at ω₀ say of ω, and the bound of Theorem 5.1 with the exact gradient, as it is and without λ_min.

    The step is the same for every ω, so the order does not need it. λ_min is that of the information that a state visited
    in ω carries at θ*(ω₀); the theorem has the infimum over all θ, which no order could be better than.
    """
    space, theta = cast(ExponentialFamily, agent.space), jnp.asarray(agent.theta)
    indices = np.array(next(group.indices for group in space.groups if group.name == tested))
    mask = np.isin(np.arange(space.num_parameters), indices)
    stated = LITERAL["gridworld"].penalty
    assert stated is not None
    logged = gradient_terms(world, space, theta, seen, jnp.asarray(indices))
    objective = paper_objective(world, logged, omega, jnp.asarray(stated.value))[0]
    information = expected_information(world, information_terms(world, space, theta, seen), omega)[0]
    num_episodes = jnp.asarray(float(seen.rewards.shape[0]))
    design = log_det_gain(information, jnp.asarray(mask), jnp.asarray(~mask), num_episodes)
    slope = np.asarray(jax.grad(lambda one: expected_return(world, space, one, omega))(theta))
    gradient = gradient_step_gap_bound(slope, mask, step=1.0, smallest_eigenvalue=1.0)
    return {
        "paper": float(objective),
        "d-optimal": float(design),
        "bound": smallest_eigenvalue(world, space, np.asarray(agent.theta), omega) * gradient,
        "gradient": gradient,
    }


def smallest_eigenvalue(world: Gridworld, space: ExponentialFamily, theta: np.ndarray, omega: Configuration) -> float:
    """λ_min of F(θ), the mean over the states that θ visits in ω; zero where a direction is never seen."""
    visits = np.asarray(visitation(world, space, jnp.asarray(theta), omega)).sum(axis=0)
    features, weights = _features(world), visits / visits.sum()
    mean = space.cumulant_gradient(space.natural(theta, features))  # π(a|s) of all actions but the last [n, k]
    spread = np.eye(mean.shape[1]) * mean[:, :, None] - mean[:, :, None] * mean[:, None, :]
    x = np.asarray(space.design(features))
    information = np.einsum("n,nab,nij->aibj", weights, spread, x[:, :, None] * x[:, None, :], optimize=True)
    size = mean.shape[1] * x.shape[1]
    return max(0.0, float(np.linalg.eigvalsh(information.reshape(size, size))[0]))


def _features(world: Gridworld) -> np.ndarray:
    return np.asarray(jax.vmap(world.features)(world.states()))
