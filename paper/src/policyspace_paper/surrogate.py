"""`surrogate` and `agents`: what stands for the gap in likelihood, and how far agents are from the best policy known."""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np
import polars as pl
from scipy.stats import rankdata, spearmanr

from policyspace.families.base import ExponentialFamily, PolicySpace
from policyspace.families.jax_backend import jax, jnp
from policyspace.report.figures import BLUE, GREEN, GREY, INK, PURPLE, RED
from policyspace.study.designs import (
    expected_information,
    gradient_terms,
    information_terms,
    log_det_gain,
    paper_objective,
)
from policyspace.theory import gradient_step_gap_bound, population_gap
from policyspace.worlds.agents import Agent, learn, returns_of
from policyspace.worlds.base import Configuration, Key, Trajectories
from policyspace.worlds.car import ROAD_LENGTH, Y
from policyspace.worlds.gridworld import Gridworld, expected_return, visitation
from policyspace_paper.configuring import world_and_space
from policyspace_paper.estimates import Mean, difference, groups, in_order, mean_of, means, rates, tidy
from policyspace_paper.execution import Experiment, Record, RunSetting, RunSize
from policyspace_paper.minigolf import AS_PUBLISHED, BY_STAGES, OURS, PUBLISHED, golf, learned
from policyspace_paper.panels import Claim, Panel
from policyspace_paper.plots import Plot, draw
from policyspace_paper.printed import LITERAL, procedures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# -- `surrogate`: does the paper's objective rank configurations as the gap that it stands for does (Section 5)?

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


class SurrogateSetting(RunSetting):
    """An agent, its configurations, and the episodes at ω₀ that are to tell of them."""

    num_configurations: int


SurrogateResult = dict[str, Any]
"""The `tested` feature, `num_controlled`, and for each configuration the "gap" and what each of SURROGATES says."""
SurrogateRecord = Record[SurrogateSetting, SurrogateResult]


def settings(size: RunSize) -> Iterable[SurrogateSetting]:
    """One agent, its tested feature and all its configurations a cell."""
    count = 3 if size.quick else CONFIGURATIONS
    for seed in range(size.num_runs(RUNS, 2)):
        yield {"num_configurations": count, "num_episodes": NUM_EPISODES, "seed": seed}


def run(setting: SurrogateSetting) -> SurrogateResult:
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
        # ω₀ with noise on all its logits
        key, deviation = jax.random.fold_in(drawing, number), FARTHEST * (number + 1) / count
        noise = dict(
            zip(agent.configuration, jax.random.normal(key, (len(agent.configuration), world.size)), strict=True)
        )
        omega = {name: jnp.clip(x + deviation * noise[name], -10.0, 10.0) for name, x in agent.configuration.items()}
        for name, value in surrogates(world, agent, tested, seen, omega).items():
            found[name].append(value)
        for name, key in zip(("gap", "again"), jax.random.split(jax.random.fold_in(anew, number)), strict=True):
            found[name].append(gap(world, space, agent.controls, tested, omega, key))
    return {"tested": tested, "num_controlled": len(controls), **found}


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


# -- `agents`: how far the observed agents are from the best policy known for them; the paper assumes that they play it.

LEARNED_RUNS = 20
LEARNED_NUM_EPISODES = 1000
LEARNED = 0.9
"""An agent has failed to learn when fewer than this share of its episodes reach their end."""
WORLDS = {
    "gridworld": "discrete grid world",
    "continuous-gridworld": "continuous grid world",
    "minigolf": "minigolf",
    "car": "car",
}


RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
"""Of learning, which the paper does not state: the literal ones are among those whose agents are best."""
RATES_RUNS = 25
READINGS = {
    "gridworld": {"discrete grid world": LITERAL["gridworld"].learning_rate.value},
    "continuous-gridworld": {"continuous grid world": LITERAL["continuous-gridworld"].learning_rate.value},
    "minigolf": {
        f"minigolf, σ = {deviation:g}": learning["stages"][-1][3] for deviation, learning in AS_PUBLISHED.items()
    },
    "car": {"car": LITERAL["car"].learning_rate.value},
}
"""The literal learning rates by world; two of minigolf, whose Σ = 0.01 is read in two ways."""


class LearnedSetting(RunSetting, total=False):
    """An agent of a world, that learns by one procedure; literally with another rate, where that is tried."""

    world: str
    reading: str
    learning_rate: float


class LearnedResult(TypedDict, total=False):
    """J of the agent, of the best policy known in its space, their distance; episodes that reached their end."""

    agent: float
    best_known: float
    distance: float
    reached: float


LearnedRecord = Record[LearnedSetting, LearnedResult]


def learned_settings(size: RunSize) -> Iterable[LearnedSetting]:
    """Agents of every world by both procedures, in the first configurations of the other experiments."""
    for world in ("gridworld", "minigolf") if size.quick else WORLDS:  # a miniature has those that learn at once
        for procedure in procedures(size):
            for seed in range(size.num_runs(LEARNED_RUNS, 1)):
                yield {"procedure": procedure, "world": world, "num_episodes": LEARNED_NUM_EPISODES, "seed": seed}
    for world, readings in () if size.quick else READINGS.items():
        for reading in readings:
            for rate in RATES:
                for seed in range(size.num_runs(RATES_RUNS, 1)):
                    yield {
                        "procedure": "literal", "world": world, "reading": reading, "learning_rate": rate,
                        "num_episodes": LEARNED_NUM_EPISODES, "seed": seed,
                    }  # fmt: skip


def run_learned(setting: LearnedSetting) -> LearnedResult:
    """One agent, that learns as the experiments have it learn."""
    name, literal, tried = setting["world"], setting["procedure"] == "literal", "learning_rate" in setting
    deviation = PUBLISHED if literal else OURS
    if "reading" in setting and name == "minigolf":
        deviation = next(d for d in AS_PUBLISHED if setting["reading"].endswith(f"{d:g}"))
    world, space = golf(deviation) if name == "minigolf" else world_and_space(name)
    owned, start, learning, measuring, acting = jax.random.split(jax.random.key(setting["seed"]), 5)
    controls = tuple(sorted(world.true_controls if name == "car" else world.random_controls(owned)))
    initial = world.default_configuration() if name == "car" else world.random_configuration(start)
    if literal:
        how = LITERAL[name].learning
        if tried:
            how = {**how, "learning_rate": setting["learning_rate"]}
        agent = learn(world, space, controls, initial, learning, **how)
    elif name == "minigolf":
        theta = learned(BY_STAGES[OURS], controls, float(initial["putter_length"]), learning)
        agent = learn(world, space, controls, initial, learning, num_steps=0, start=theta)
    else:
        agent = learn(world, space, controls, initial, learning)
    episodes = agent.act(world, world.check_configuration(agent.configuration), acting, setting["num_episodes"])
    if tried:
        return {
            "agent": round(float(np.mean(episodes.returns(world.discount))), 4),
            "reached": round(float(reached(name, episodes).mean()), 4),
        }
    found = returns_of(agent, world, measuring)
    return cast(LearnedResult, found.to_dict() | {"reached": round(float(reached(name, episodes).mean()), 4)})


def reached(world: str, episodes: Trajectories) -> np.ndarray:
    """Which episodes came to the goal, into the hole, or to the end of the road [m]."""
    if world == "car":
        return np.asarray(episodes.states)[..., Y].max(axis=1) > ROAD_LENGTH
    # The step that reaches the goal, or the hole, is the only one that costs nothing.
    return np.any((np.asarray(episodes.rewards) == 0) & np.asarray(episodes.mask), axis=1)


# -- Gaps of many configurations and what stands for them → how well each ranks them as the gap does.

COLOURS = {"paper": RED, "d-optimal": GREEN, "bound": BLUE, "gradient": PURPLE, "again": GREY}


def analyse(records: list[SurrogateRecord]) -> list[Panel]:
    """How well each surrogate ranks the configurations of an agent."""
    found = ranks(records)
    known = means(correlations(found), "rho", "surrogate")
    rho = {name: known[name] for name in SURROGATES if name in known}
    told = "; ".join(f"{SURROGATES[name]} {mean.words}" for name, mean in rho.items())
    return [
        Panel(
            "surrogate",
            "Does the objective rank configurations as the gap in likelihood does?",
            Claim(
                "The ideal goal is the ω in which the agent loses most likelihood without the tested feature (Section 5). "
                "Does what stands for it, from 100 episodes at ω₀, put the configurations of an agent in the same order?"
            ),
            f"Spearman's ρ with the gap, over {records[0].setting['num_configurations']} configurations of an agent, as a "
            f"mean over {len(records)} agents, but for those to whom all configurations are worth the same by it: {told}. "
            "The gap learned again from other random starts says how well the order can be known at all; the bound is given "
            "the exact gradient, where the objective has an estimate and a penalty.",
            draw_ranks(found, {name: mean.words for name, mean in rho.items()}),
            ("what stands for the gap", "agents", "Spearman's ρ (95 %)"),
            [(SURROGATES[name], str(mean.num_runs), mean.words) for name, mean in rho.items()],
            {name: mean.numbers for name, mean in rho.items()},
        )
    ]


def ranks(records: list[SurrogateRecord]) -> pl.DataFrame:
    """A row an agent, surrogate and configuration: the places of surrogate and gap, from 0 to 1."""

    def places(values: list[float]) -> list[float]:
        return list((rankdata(values) - 1) / max(1, len(values) - 1))

    def rows(record: SurrogateRecord) -> Iterable[dict[str, object]]:
        for name in SURROGATES:
            for place, gap in zip(places(record.result[name]), places(record.result["gap"]), strict=True):
                yield {"seed": record.setting["seed"], "surrogate": name, "place": place, "gap": gap}

    return tidy(records, rows)


def correlations(found: pl.DataFrame) -> pl.DataFrame:
    """Spearman's ρ of every agent and surrogate; none where all are equal."""
    rows = []
    for (name, seed), own in groups(found, "surrogate", "seed").items():
        known = own["place"].n_unique() > 1 and own["gap"].n_unique() > 1
        rho = float(spearmanr(own["place"], own["gap"]).statistic) if known else None
        rows.append({"surrogate": name, "seed": seed, "rho": rho})
    return pl.DataFrame(rows)


def draw_ranks(found: pl.DataFrame, rho: dict[str, str]) -> "Figure":
    """A plot a surrogate: the mean place of the gap at each place of the surrogate; the diagonal is the same order."""
    whole = found.with_columns(fifth=(pl.col("place") * 4).round() / 4)

    def points(axes: "Axes", own: pl.DataFrame, colour: str) -> None:
        axes.plot([0, 1], [0, 1], color=INK, linewidth=1, alpha=0.4, zorder=1.5)  # behind the line
        axes.scatter(own["place"], own["gap"], s=7, color=colour, alpha=0.18, linewidths=0)
        axes.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])

    plots = []
    for name, label in SURROGATES.items():
        own = whole.filter(pl.col("surrogate") == name)
        more = partial(points, own=own, colour=COLOURS[name])
        plots.append(
            Plot(means(own, "gap", "surrogate", "fifth"), f"{label}\nρ = {rho.get(name, 'unknown')}", more=more)
        )
    return draw(
        "Configurations in order: by what stands for the gap, and by the gap", plots, COLOURS, height=3.4, width=10.0,
        shares=True, xlabel="place by it", ylabel="place by the gap",
        xscale="linear",
    )  # fmt: skip


# -- Returns of the observed agents → how far they are from the best policy known, and how many failed to learn.


def analyse_learned(records: list[LearnedRecord]) -> list[Panel]:
    """Return, distance and failures by world; the literal learning by other rates."""
    tried = [r for r in records if "learning_rate" in r.setting]
    records = [r for r in records if "learning_rate" not in r.setting]
    return [*(_distances(records) if records else []), *(_rates_tried(tried) if tried else [])]


def _rates_tried(records: list[LearnedRecord]) -> list[Panel]:
    """The paper's learning at every rate that was tried, and whether the literal one is among the best."""
    found = tidy(records).sort("reading", "learning_rate", "seed")
    literal = {reading: rate for own in READINGS.values() for reading, rate in own.items()}
    rows, lost, told = [], dict[str, Mean](), list[str]()
    for (reading, rate), own in groups(found, "reading", "learning_rate").items():
        share = mean_of(own["reached"].to_list()).value
        mark = "literal" if rate == literal[reading] else ""
        rows.append((reading, f"{rate:g}", str(len(own)), mean_of(own["agent"].to_list()).words, f"{share:.0%}", mark))
    for reading, own in groups(found, "reading").items():
        returns = means(own, "agent", "learning_rate")
        best = max(returns, key=lambda rate: returns[rate].value)
        gap = difference(own, "agent", "learning_rate", best, literal[reading])
        if gap is not None:
            lost[reading] = gap
            told.append(
                f"{reading} {literal[reading]:g}"
                + ("" if best == literal[reading] else f" (best {best:g}, by {gap.words})")
            )
    return [
        Panel(
            "agents-rates",
            "The rates of learning that the paper does not state",
            Claim(
                "The paper's agents play their optimal policies; it states steps and batches, but no rate. At which rate "
                "does its learning bring agents furthest? That is the literal one, unless another is as good."
            ),
            f"Literal: {'; '.join(told)}. Return by the paper's steps and batches, on the same agents at every rate.",
            None,
            ("world", "rate", "agents", "return (95 %)", "episodes that reached their end", ""),
            rows,
            {reading: gap.numbers for reading, gap in lost.items()},
        )
    ]


def _distances(records: list[LearnedRecord]) -> list[Panel]:
    found = measured(records)
    failed = rates(found, "failed", "world")
    worst = max(failed, key=lambda world: failed[world].value)
    rows = []
    for world, own in groups(found, "world").items():
        numbers = [mean_of(own[name].to_list()).words for name in ("agent", "best_known", "distance")]
        lost = f"{1 - mean_of(own['reached'].to_list()).value:.1%}"
        rows.append((WORLDS[world], str(len(own)), *numbers, lost, failed[world].words))
    return [
        Panel(
            "agents",
            "How far the agents are from the best policy known",
            Claim(
                "The paper observes demonstrations of the optimal policy. How far are these agents from the best policy "
                "known for them, and how many failed to learn?"
            ),
            f"Of {failed[worst].num_runs} agents of each world, most failed in: {WORLDS[worst]}, {failed[worst].count}. The "
            "best policy known is the best of the agent and two others that control the same and learned as agents of that "
            "world do by default or, of drivers, one that learned for 600 steps; an agent failed if fewer than nine in ten "
            "of its episodes reach the goal, the hole or the end of the road.",
            draw_learned(found),
            (
                "world",
                "agents",
                "return (95 %)",
                "best known (95 %)",
                "distance (95 %)",
                "episodes lost",
                "agents failed",
            ),
            rows,
            {world: {"failed": rate.count, "agents": rate.num_runs} for world, rate in failed.items()},
        )
    ]


def measured(records: list[LearnedRecord]) -> pl.DataFrame:
    """A row an agent."""
    rows = tidy(records, lambda r: [{**r.setting, **r.result, "failed": r.result["reached"] < LEARNED}])
    return in_order(rows, "world", WORLDS, "seed")


def draw_learned(found: pl.DataFrame) -> "Figure":
    """A plot a world: every agent's return against the best known one; below the line is what learning left."""

    def points(axes: "Axes", agents: pl.DataFrame) -> None:
        best, mine = agents["best_known"].to_numpy(), agents["agent"].to_numpy()
        low, high = min(best.min(), mine.min()), max(best.max(), mine.max())
        room = 0.05 * (high - low) or 1.0
        axes.plot([low - room, high + room], [low - room, high + room], color=INK, linewidth=1, alpha=0.4)
        axes.scatter(best, mine, s=22, color=BLUE, alpha=0.6, linewidths=0, zorder=3)
        axes.set(xlim=(low - room, high + room), ylim=(low - room, high + room))
        axes.locator_params(nbins=4)

    plots = []
    for world, agents in groups(found, "world").items():
        title = f"{WORLDS[world]}\ndistance {mean_of(agents['distance'].to_list()).words}"
        plots.append(Plot({}, title, more=partial(points, agents=agents)))
    return draw(
        "Agents and the best policy known for them (discounted return)", plots, {}, height=3.2, width=10.0,
        xlabel="best known", ylabel="the agent's",  xscale="linear", sharey=False,
    )  # fmt: skip


EXPERIMENT = Experiment("surrogate", "The objective of a configuration, and what it stands for", settings, run, analyse)
AGENTS_LEARNED = Experiment(
    "agents", "How well the agents have learned", learned_settings, run_learned, analyse_learned
)
