"""Curves of golfers that learned for ever more steps → how the best putter moves, and why the paper's is at 11.5."""

from typing import TYPE_CHECKING

import polars as pl

from policyspace.experiments.minigolf_curve import AGENTS
from policyspace.experiments.minigolf_learning import OURS
from policyspace.experiments.minigolf_training import NUM_EPISODES, RATE
from policyspace.experiments.records import Record
from policyspace.report.estimates import Mean
from policyspace.report.plots import draw_lines, legend, logarithmic
from policyspace.report.style import AMBER, DASHED, GREY, INK, PURPLE, RED, bare, new_figure
from policyspace.results.frames import groups, means
from policyspace.results.minigolf_curve_panels import COLOURS, NAMES, PAPER, best_putter, curves
from policyspace.results.panel import Panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TITLE = "Minigolf: the best putter of agents that have not finished learning"


def analyse(records: list[Record]) -> list[Panel]:
    """ω* against the steps of learning, and the curves that it is the top of."""
    if not records:
        return []
    found = curves(records, "num_steps").sort("agent", "num_steps", "seed", "length")
    best = best_putters(found)
    last = found["num_steps"].to_numpy().max()
    told = "; ".join(
        f"{NAMES[agent].split(',')[0]} "
        + ", ".join(f"{mean.words} after {n}" for (other, n), mean in best.items() if other == agent)
        for agent in AGENTS
    )
    return [
        Panel(
            "minigolf-training",
            "The best putter against the steps of learning",
            "The paper's best putter for A₂ is 11.5; that of fully learned agents is much shorter. Does the number of steps "
            "that the agents learned explain it?",
            "our own",
            f"Best putter, as a mean over runs: {told} steps. Before an agent doses its strokes well a long putter costs it "
            f"least; what {last} steps leave is still not the end. {_together(best)} Learning is G(PO)MDP with "
            f"{NUM_EPISODES} episodes a step at the rate {RATE:g}, from weights in [0, 0.1), σ = {OURS:g}; "
            "rate and start are guesses.",
            draw(found, best),
            (
                "agent",
                "steps",
                "best putter, of each run (95 %)",
                "best putter, of the mean curve",
                "its return (95 %)",
            ),
            [(NAMES[agent], str(n), mean.words, *_top(found, agent, n)) for (agent, n), mean in best.items()],
            {f"{agent}, {n}": mean.numbers for (agent, n), mean in best.items()},
        )
    ]


def _together(best: dict[tuple[str, int], Mean]) -> str:
    """After how many steps both of the paper's lengths lie in the intervals."""
    steps = sorted({n for _, n in best})
    agree = [str(n) for n in steps if all(best[a, n].low <= PAPER[a] <= best[a, n].high for a in PAPER)]
    where = f"after {', '.join(agree)} steps" if agree else "after none of these numbers of steps"
    alone = [str(n) for n in steps if best["A2", n].low <= PAPER["A2"] <= best["A2", n].high]
    first = f"after {', '.join(alone)} steps" if alone else "nowhere"
    return f"The paper's 11.5 for A₂ lies in the interval {first}; that and its 5 for A₁ together do {where}."


def best_putters(found: pl.DataFrame) -> dict[tuple[str, int], Mean]:
    """The putter with which a run returns most, as a mean over runs."""
    tops = [
        {"agent": agent, "steps": steps, "best": best_putter(own)}
        for (agent, steps, _), own in groups(found, "agent", "num_steps", "seed").items()
    ]
    return means(pl.DataFrame(tops), "best", "agent", "steps")


def _top(found: pl.DataFrame, agent: str, steps: int) -> tuple[str, str]:
    """The best putter of the mean curve, and what it returns."""
    own = found.filter((pl.col("agent") == agent) & (pl.col("num_steps") == steps))
    best = best_putter(own)
    return f"{best:g}", means(own, "return", "length")[best].words


def draw(found: pl.DataFrame, best: dict[tuple[str, int], Mean]) -> "Figure":
    """ω* against the steps on the left; on the right, what A₂ returns with each putter after each number of steps."""
    figure = new_figure(4.0, "Minigolf: agents that have not finished learning", width=9.6)
    left, right = figure.subplots(1, 2)
    for axes in (left, right):
        bare(axes)
    draw_lines(left, best, COLOURS, NAMES)
    for agent, length in PAPER.items():
        left.axhline(length, color=COLOURS[agent], linewidth=1, linestyle=DASHED)
    left.set_ylim(0, 15.5)
    logarithmic(left, sorted({n for _, n in best}))
    left.set(xlabel="steps of learning (dashed: what the paper states)", ylabel="best putter length")
    left.set_title("the best putter moves as agents learn", loc="left", fontsize=10.5, color=INK)
    legend(left, loc="lower left")
    steps = found["num_steps"].unique().sort().to_list()
    shades = dict(zip(map(str, steps), (GREY, AMBER, RED, PURPLE, INK), strict=False))
    own = found.filter(pl.col("agent") == "A2")
    labels = {name: f"{name} steps" for name in shades}
    lost = own.with_columns(pl.col("num_steps").cast(pl.String), lost=-pl.col("return"))
    draw_lines(right, means(lost, "lost", "num_steps", "length"), shades, labels, apart=0, dense=True)
    right.set_yscale("log")
    ticks = [tick for tick in (1, 2, 3, 4, 6, 10, 20, 40) if right.get_ylim()[0] <= tick <= right.get_ylim()[1]]
    right.set_yticks(ticks, [f"−{tick}" for tick in ticks])
    right.minorticks_off()
    right.invert_yaxis()  # up is better
    right.set(xlabel="putter length", ylabel="mean undiscounted return")
    right.set_title("return of A₂, after so many steps", loc="left", fontsize=10.5, color=INK)
    legend(right, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
