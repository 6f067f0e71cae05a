"""`agents`: how far the observed agents are from the best policy known for them; the paper assumes that they play it."""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from policyspace.experiments.configured_run import world_and_space
from policyspace.experiments.frames import groups, in_order, rates, tidy
from policyspace.experiments.literal import LITERAL, procedures
from policyspace.experiments.minigolf_learning import BRIEF, OURS, PUBLISHED, golf, learned
from policyspace.experiments.panel import Panel, Scale
from policyspace.experiments.records import Cell, Record
from policyspace.policies import PolicySpace
from policyspace.policies.jax_setup import jax
from policyspace.report.estimates import mean_of
from policyspace.report.style import BLUE, INK, bare, new_figure
from policyspace.worlds.agents import Agent, learn
from policyspace.worlds.best_known import returns_of
from policyspace.worlds.car import ROAD_LENGTH, Y
from policyspace.worlds.confmdp import Configuration, ConfMDP, Key
from policyspace.worlds.trajectories import Trajectories

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "How well the agents have learned"
RUNS = 20
NUM_EPISODES = 1000
LEARNED = 0.9
"""An agent has failed to learn when fewer than this share of its episodes reach their end."""
WORLDS = {
    "gridworld": "discrete grid world",
    "continuous-gridworld": "continuous grid world",
    "minigolf": "minigolf",
    "car": "car",
}


def cells(scale: Scale) -> list[Cell]:
    """Agents of every world by both procedures, in the first configurations of the other experiments."""
    return [
        Cell("agents", {"procedure": procedure, "world": world, "num_episodes": NUM_EPISODES, "seed": seed})
        for world in WORLDS
        for procedure in procedures(scale)
        for seed in range(scale.num_runs(RUNS, 1))
    ]


def run(setting: dict[str, Any]) -> dict[str, Any]:
    """J of one agent, that of the best policy known in its space, and how many of its episodes reach their end."""
    name = setting["world"]
    deviation = PUBLISHED if setting["procedure"] == "literal" else OURS
    world, space = golf(deviation) if name == "minigolf" else world_and_space(name)
    owned, start, learning, measuring, acting = jax.random.split(jax.random.key(setting["seed"]), 5)
    controls = world.true_controls if name == "car" else world.random_controls(owned)
    initial = world.default_configuration() if name == "car" else world.random_configuration(start)
    agent = _agent(setting["procedure"], world, space, tuple(sorted(controls)), initial, learning)
    found = returns_of(agent, world, measuring)
    episodes = agent.act(world, world.check_configuration(agent.configuration), acting, setting["num_episodes"])
    return found.to_dict() | {"reached": round(float(reached(name, episodes).mean()), 4)}


def _agent(
    procedure: str, world: ConfMDP, space: PolicySpace, controls: tuple[str, ...], initial: Configuration, key: Key
) -> Agent:
    """As the experiments have it learn."""
    if procedure == "literal":
        return learn(world, space, controls, initial, key, **LITERAL[world.name].learning)
    if world.name != "minigolf":
        return learn(world, space, controls, initial, key)
    theta = learned(BRIEF[OURS], controls, float(initial["putter_length"]), key)
    return learn(world, space, controls, initial, key, num_steps=0, start=theta)


def reached(world: str, episodes: Trajectories) -> np.ndarray:
    """Which episodes came to the goal, into the hole, or to the end of the road [m]."""
    if world == "car":
        return np.asarray(episodes.states)[..., Y].max(axis=1) > ROAD_LENGTH
    # The step that reaches the goal, or the hole, is the only one that costs nothing.
    return np.any((np.asarray(episodes.rewards) == 0) & np.asarray(episodes.mask), axis=1)


def analyse(records: list[Record]) -> list[Panel]:
    """Return, distance and failures by world."""
    if not records:
        return []
    found = measured(records)
    failed = rates(found, "failed", "world")
    worst = max(failed, key=lambda world: failed[world].value)
    return [
        Panel(
            "agents",
            "How far the agents are from the best policy known",
            "The paper observes demonstrations of the optimal policy. How far are these agents from the best policy known "
            "for them, and how many failed to learn?",
            "our own",
            f"Of {failed[worst].num_runs} agents of each world, most failed in: {WORLDS[worst]}, {failed[worst].count}. The "
            "best policy known is the best of the agent and two others that control the same and learned as agents of that "
            "world do by default; an agent failed if fewer than nine of ten of its episodes reach the goal, the hole or the "
            "end of the road.",
            draw(found),
            (
                "world",
                "agents",
                "return (95 %)",
                "best known (95 %)",
                "distance (95 %)",
                "episodes lost",
                "agents failed",
            ),
            [_row(world, own) for world, own in groups(found, "world").items()],
            {w: {"failed": r.count, "agents": r.num_runs} for w, r in failed.items()},
        )
    ]


def measured(records: list[Record]) -> pl.DataFrame:
    """A row an agent."""
    rows = tidy(records, lambda r: [r.setting | r.result | {"failed": r.result["reached"] < LEARNED}])
    return in_order(rows, "world", WORLDS, "seed")


def _row(world: str, own: pl.DataFrame) -> tuple[str, ...]:
    numbers = [mean_of(own[name].to_list()).words for name in ("agent", "best_known", "distance")]
    lost = f"{1 - mean_of(own['reached'].to_list()).value:.1%}"
    return WORLDS[world], str(len(own)), *numbers, lost, rates(own, "failed", "world")[world].words


def draw(found: pl.DataFrame) -> "Figure":
    """A plot a world: every agent's return against the best known one; below the line is what learning left."""
    figure = new_figure(3.2, "Agents and the best policy known for them (discounted return)", width=10.0)
    own = groups(found, "world")
    for axes, (world, agents) in zip(figure.subplots(1, len(own), squeeze=False)[0], own.items(), strict=True):
        bare(axes)
        best, mine = agents["best_known"].to_numpy(), agents["agent"].to_numpy()
        low, high = min(best.min(), mine.min()), max(best.max(), mine.max())
        room = 0.05 * (high - low) or 1.0
        axes.plot([low - room, high + room], [low - room, high + room], color=INK, linewidth=1, alpha=0.4)
        axes.scatter(best, mine, s=22, color=BLUE, alpha=0.6, linewidths=0, zorder=3)
        distance = mean_of(agents["distance"].to_list())
        axes.set_title(f"{WORLDS[world]}\ndistance {distance.words}", loc="left", fontsize=9.5, color=INK)
        axes.set(xlim=(low - room, high + room), ylim=(low - room, high + room), xlabel="best known")
        axes.locator_params(nbins=4)
    figure.axes[0].set_ylabel("the agent's")
    return figure
