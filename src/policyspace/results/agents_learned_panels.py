"""Returns of the observed agents → how far they are from the best policy known, and how many failed to learn."""

from typing import TYPE_CHECKING

import polars as pl

from policyspace.experiments.agents_learned import LEARNED, WORLDS
from policyspace.experiments.records import Record
from policyspace.report.estimates import mean_of
from policyspace.report.style import BLUE, INK, bare, new_figure
from policyspace.results.frames import groups, in_order, rates, tidy
from policyspace.results.panel import Panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TITLE = "How well the agents have learned"


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
            "world do by default or, of drivers, one that learned for 600 steps; an agent failed if fewer than nine in ten "
            "of its episodes reach the goal, the hole or the end of the road.",
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
