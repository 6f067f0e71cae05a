"""Curves of the minigolf → where each agent's best putter lies, and whether that is where the paper says."""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from policyspace.experiments.minigolf_curve import AGENTS
from policyspace.experiments.minigolf_learning import OURS, deviation_of
from policyspace.experiments.records import Record
from policyspace.report.estimates import Mean, mean_of
from policyspace.report.plots import draw_lines, legend_below
from policyspace.report.style import BLUE, RED, new_plot
from policyspace.results.frames import groups, means, paired, tidy
from policyspace.results.judging import FEWEST, Part, verdict_of, why
from policyspace.results.literal_settings import settings_panels
from policyspace.results.panel import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


TITLE = "Minigolf: the best putter for each agent"
PAPER = {"A1": 5.0, "A2": 11.5}
"""The best putter lengths that the paper states."""

REFERENCE = {
    "A1": {2.0: -1.91, 3.0: -0.62, 5.0: -0.06, 7.0: -0.13, 9.0: -0.23, 11.5: -0.37, 15.0: -0.59},
    "A2": {2.0: -3.84, 3.0: -3.84, 5.0: -3.92, 7.0: -4.00, 9.0: -4.13, 11.5: -4.26, 15.0: -4.47},
}
"""Returns at σ_π = 0.01 that an independent optimisation of the same dynamics reached, on 20 000 episodes."""

EQUAL = 0.1
"""Strokes: putters whose returns differ by less are as good as each other."""

SUBSCRIPTS = {"A1": "A₁", "A2": "A₂"}
NAMES = {"A1": "A₁, sees distance and friction", "A2": "A₂, sees distance alone"}
COLOURS = {"A1": BLUE, "A2": RED}


def analyse(records: list[Record]) -> list[Panel]:
    """One panel for each σ_π that has records of both agents."""
    found = by_deviation(records)
    made = [_panel(deviation, own) for deviation, own in found if {r.setting["agent"] for r in own} == set(AGENTS)]
    return made + settings_panels("minigolf-curve", "minigolf", records, ())


def by_deviation(records: list[Record]) -> list[tuple[float, list[Record]]]:
    """Records of one procedure by σ_π."""
    found: dict[float, list[Record]] = {}
    for record in records:
        found.setdefault(deviation_of(record.setting["learning"]), []).append(record)
    return sorted(found.items())


def curves(records: list[Record], *kept: str) -> pl.DataFrame:
    """A row an agent, run and putter length, with what else is kept of a setting."""

    def rows(record: Record) -> list[dict[str, Any]]:
        points = zip(record.setting["putter_lengths"], record.result["returns"], strict=True)
        run = {name: record.setting[name] for name in ("agent", *kept, "seed")}
        return [run | {"length": length, "return": value} for length, value in points]

    return tidy(records, rows).sort("agent", maintain_order=True)


def best_putter(own: pl.DataFrame) -> float:
    """The length with which the curves of one agent return most on average."""
    found = means(own, "return", "length")
    return max(found, key=lambda length: found[length].value)


def shortfall(own: pl.DataFrame, length: float) -> Mean:
    """How much less than at the best putter an agent returns at another, curve by curve.

    The best is the luckiest of many, too: its interval holds for all comparisons with one putter at once (Bonferroni).
    """
    lost = paired(own, "return", "length", best_putter(own), length)["difference"].to_list()
    return mean_of(lost, 1 - 0.05 / (own["length"].n_unique() - 1))


def judge(found: pl.DataFrame) -> list[Part]:
    """The optimum of each agent, and that they differ."""
    own = groups(found, "agent")
    return [_optimum(agent, own[agent]) for agent in own] + [_depends(own)]


def _optimum(agent: str, own: pl.DataFrame) -> Part:
    """The paper's ω* of an agent, by the simultaneous intervals of the differences from the best putter."""
    best, loss = best_putter(own), shortfall(own, PAPER[agent])
    same = best == PAPER[agent]
    more = "" if same else f", {loss.words} more than at {PAPER[agent]:g}"
    return Part(
        f"{SUBSCRIPTS[agent]}, whose optimum is said to be {PAPER[agent]:g}, is best at {best:g} with "
        f"{means(own, 'return', 'length')[best].words}{more}",
        True if same or loss.high < EQUAL else False if loss.low > 0 else None,
    )


def _depends(own: dict[Any, pl.DataFrame]) -> Part:
    """Whether an agent loses by the other's best putter."""
    best = {agent: best_putter(curves) for agent, curves in own.items()}
    losses = {agent: shortfall(own[agent], best[other]) for agent, other in (("A1", "A2"), ("A2", "A1"))}
    said = ", ".join(f"{SUBSCRIPTS[agent]} {loss.words}" for agent, loss in losses.items())
    apart = best["A1"] != best["A2"]
    surely = apart and any(loss.low > 0 for loss in losses.values())
    as_good = not apart or all(loss.high < EQUAL for loss in losses.values())
    return Part(
        f"With the putter that is best for the other {said} is lost", True if surely else False if as_good else None
    )


CRITERIA = (
    "On the same curves, by intervals that hold for all putters at once. An optimum is where the paper says if it is the "
    f"best of the putters tried, or if the best surely returns less than {EQUAL:g} more; it is not if the best surely "
    "returns more. The best putter depends on the space if an agent surely loses by the one that is best for the other; it "
    f"does not if both surely lose less than {EQUAL:g}. At least {FEWEST} curves of each agent."
)


def _panel(deviation: float, records: list[Record]) -> Panel:
    found, learning = curves(records), records[0].setting["learning"]
    parts, num_curves = judge(found), sum(r.setting["agent"] == "A1" for r in records)
    if "warm" in learning:
        how = "the best of fresh starts and of warm ones from both neighbours along ω"
    else:
        how = (
            "100 steps of 100 episodes, as published"
            if learning["start"] == "uniform"
            else "one brief learning a putter"
        )
    returns = {agent: means(own, "return", "length") for agent, own in groups(found, "agent").items()}
    reference = REFERENCE if deviation == OURS else {}
    agents = [SUBSCRIPTS[agent] for agent in AGENTS]
    return Panel(
        name=f"minigolf-curve-{deviation:g}",
        title=f"Return of the best policy with each putter, σ = {deviation:g}",
        claim="For agent A₁, which sees distance and friction, the optimal putter length is ω* = 5, while for agent A₂, "
        "which sees the distance alone, it is ω* = 11.5: the best configuration depends on the policy space.",
        verdict=verdict_of(parts, num_curves),
        why=f"{why(parts)} Each curve is one optimisation ({how}); {num_curves} for each agent.",
        figure=draw(found, reference, f"Minigolf, σ = {deviation:g}: return against putter length"),
        columns=("putter length ω", *(f"{agent} (95 %)" for agent in agents), *(f"reference {a}" for a in agents)),
        rows=[
            (
                f"{length:g}",
                *(returns[agent][length].words for agent in AGENTS),
                *(_known(reference.get(agent, {}).get(length)) for agent in AGENTS),
            )
            for length in returns["A1"]
        ],
        numbers={
            "policy_deviation": deviation,
            "putter_lengths": list(returns["A1"]),
            **{agent: [mean.numbers for mean in returns[agent].values()] for agent in AGENTS},
            "best": {agent: best_putter(own) for agent, own in groups(found, "agent").items()},
        },
        criteria=CRITERIA,
    )


def _known(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}".replace("-", "−")


def draw(found: pl.DataFrame, reference: dict[str, dict[float, float]], title: str) -> "Figure":
    """Mean curves with their 95 % bands; the best putter and the paper's are marked."""
    figure, axes = new_plot(4.2, title)
    for agent, own in groups(found, "agent").items():
        returns = means(own, "return", "length")
        _mark(axes, agent, {length: mean.value for length, mean in returns.items()})
        if agent in reference:
            axes.plot(*zip(*reference[agent].items(), strict=True), "x", color=COLOURS[agent], markersize=6, zorder=5)
    shown = means(found, "return", "agent", "length")
    draw_lines(axes, shown, COLOURS, NAMES, apart=0, dense=True)
    lowest = [mean.low if np.isfinite(mean.low) else mean.value for (_, length), mean in shown.items() if length > 1]
    axes.set_ylim(min(-5.0, 1.04 * min(lowest)), 0.8)
    axes.set_xlim(0.7, 15.3)
    axes.set_xticks([1, 3, 5, 7, 9, 11, 13, 15])
    crosses = "; crosses: an independent optimisation" if reference else ""
    axes.set_xlabel(f"putter length ω (diamonds: the optimum that the paper states{crosses})")
    axes.set_ylabel("mean undiscounted return")
    legend_below(axes)
    return figure


def _mark(axes: "Axes", agent: str, curve: dict[float, float]) -> None:
    """The best putter of an agent, named above the upper line and below the lower one, and the paper's."""
    colour, best, above = COLOURS[agent], max(curve, key=lambda length: curve[length]), agent == "A1"
    axes.plot(best, curve[best], "o", color=colour, markersize=8, zorder=4)
    axes.annotate(f"best at {best:g}", (best, curve[best]), xytext=(5, 9) if above else (-2, -26),
                  textcoords="offset points", ha="left", color=colour, fontsize=9)  # fmt: skip
    paper = float(np.interp(PAPER[agent], list(curve), list(curve.values())))
    axes.plot(
        PAPER[agent], paper, "D", markerfacecolor="none", markeredgewidth=1.6, color=colour, markersize=13, zorder=3
    )
