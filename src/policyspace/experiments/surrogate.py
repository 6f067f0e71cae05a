"""`surrogate`: does the paper's objective rank configurations as the gap that it stands for does (Section 5)?

In the discrete grid world that gap is computable: the agent learns anew in each ω with and without the tested feature.
"""

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl
from scipy.stats import rankdata, spearmanr

from policyspace.configuration.objective import (
    expected_information,
    gradient_terms,
    information_terms,
    log_det_gain,
    paper_objective,
)
from policyspace.experiments.configured_run import world_and_space
from policyspace.experiments.frames import groups, means, tidy
from policyspace.experiments.literal import LITERAL
from policyspace.experiments.panel import Panel, Scale
from policyspace.experiments.records import Cell, Record
from policyspace.policies import PolicySpace
from policyspace.policies.base import ExponentialFamily
from policyspace.policies.jax_setup import jax, jnp
from policyspace.report.plots import draw_lines
from policyspace.report.style import BLUE, GREEN, GREY, INK, RED, bare, new_figure
from policyspace.theory import gradient_step_gap_bound, population_gap
from policyspace.worlds.agents import Agent, learn
from policyspace.worlds.confmdp import Configuration, Key
from policyspace.worlds.exact_gridworld import expected_return, visitation
from policyspace.worlds.gridworld import Gridworld
from policyspace.worlds.trajectories import Trajectories

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "The objective of a configuration, and what it stands for"
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
    "again": "the gap, learned again",
}
COLOURS = {"paper": RED, "d-optimal": GREEN, "bound": BLUE, "again": GREY}


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
    """What the episodes at ω₀ say of ω, and the bound of Theorem 5.1 with the exact gradient.

    Its constants, the step and the smallest eigenvalue over all of Θ, are the same for every ω: the order needs neither.
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
    bound = gradient_step_gap_bound(slope, mask, step=1.0, smallest_eigenvalue=1.0)
    return {"paper": float(objective), "d-optimal": float(design), "bound": bound}


def _features(world: Gridworld) -> np.ndarray:
    return np.asarray(jax.vmap(world.features)(world.states()))


def analyse(records: list[Record]) -> list[Panel]:
    """How well each surrogate ranks the configurations of an agent."""
    if not records:
        return []
    found = ranks(records)
    known = means(correlations(found), "rho", "surrogate")
    rho = {name: known[name] for name in SURROGATES if name in known}
    told = "; ".join(f"{SURROGATES[name]} {mean.words}" for name, mean in rho.items())
    return [
        Panel(
            "surrogate",
            "Does the objective rank configurations as the gap in likelihood does?",
            "The ideal goal is the ω in which the agent loses most likelihood without the tested feature (Section 5). Does "
            "what stands for it, from 100 episodes at ω₀, put the configurations of an agent in the same order?",
            "our own",
            f"Spearman's ρ with the gap, over {records[0].setting['num_configurations']} configurations of an agent, as a "
            f"mean over {len(records)} agents, but for those to whom all configurations are worth the same by it: {told}. "
            "The gap learned again from other random starts says how well the order can be known at all; the bound is given "
            "the exact gradient, where the objective has an estimate and a penalty.",
            draw(found, {name: mean.words for name, mean in rho.items()}),
            ("what stands for the gap", "agents", "Spearman's ρ (95 %)"),
            [(SURROGATES[name], str(mean.num_runs), mean.words) for name, mean in rho.items()],
            {name: mean.numbers for name, mean in rho.items()},
        )
    ]


def ranks(records: list[Record]) -> pl.DataFrame:
    """A row an agent, surrogate and configuration: the places of surrogate and gap, from 0 to 1."""

    def rows(record: Record) -> list[dict[str, Any]]:
        truth = _places(record.result["gap"])
        return [
            {"seed": record.setting["seed"], "surrogate": name, "place": place, "gap": gap}
            for name in SURROGATES
            for place, gap in zip(_places(record.result[name]), truth, strict=True)
        ]

    return tidy(records, rows)


def _places(values: list[float]) -> list[float]:
    return list((rankdata(values) - 1) / max(1, len(values) - 1))


def correlations(found: pl.DataFrame) -> pl.DataFrame:
    """Spearman's ρ of every agent and surrogate; none where all are equal."""
    rows = []
    for (name, seed), own in groups(found, "surrogate", "seed").items():
        known = own["place"].n_unique() > 1 and own["gap"].n_unique() > 1
        rho = float(spearmanr(own["place"], own["gap"]).statistic) if known else None
        rows.append({"surrogate": name, "seed": seed, "rho": rho})
    return pl.DataFrame(rows)


def draw(found: pl.DataFrame, rho: dict[str, str]) -> "Figure":
    """A plot a surrogate: the mean place of the gap at each place of the surrogate; the diagonal is the same order."""
    figure = new_figure(3.4, "Configurations in order: by what stands for the gap, and by the gap", width=10.0)
    plots = figure.subplots(1, len(SURROGATES), sharey=True)
    for axes, (name, label) in zip(plots, SURROGATES.items(), strict=True):
        bare(axes)
        own = found.filter(pl.col("surrogate") == name).with_columns(fifth=(pl.col("place") * 4).round() / 4)
        axes.plot([0, 1], [0, 1], color=INK, linewidth=1, alpha=0.4)
        axes.scatter(own["place"], own["gap"], s=7, color=COLOURS[name], alpha=0.18, linewidths=0)
        draw_lines(axes, {(name, x): mean for x, mean in means(own, "gap", "fifth").items()}, COLOURS)
        axes.set_title(f"{label}\nρ = {rho.get(name, 'unknown')}", loc="left", fontsize=9.5, color=INK)
        axes.set_xlabel("place by it")
        axes.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    plots[0].set_ylabel("place by the gap")
    return figure
