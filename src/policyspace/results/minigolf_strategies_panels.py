"""Records of the putters chosen for a golfer → what each way of choosing returns, and whether the identified space pays."""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from policyspace.experiments.minigolf_strategies import STRATEGIES
from policyspace.experiments.records import Record
from policyspace.report.estimates import Mean, mean_of
from policyspace.report.style import BLUE, GREEN, GREY, INK, QUIET, RED, bare, new_figure
from policyspace.results.frames import groups, means, paired, tidy
from policyspace.results.judging import FEWEST, Part, above, verdict_of, why
from policyspace.results.literal_settings import settings_panels
from policyspace.results.minigolf_curve_panels import by_deviation
from policyspace.results.panel import Panel
from policyspace.worlds.minigolf import AGENT_A2

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


TITLE = "Minigolf: choosing the putter by what was identified"
COLOURS = {"uniform": GREY, "full": RED, "identified": GREEN, "oracle": BLUE}

NOTABLE = 0.2
"""The part of the distance from random to oracle below which a difference is none to speak of."""


def analyse(records: list[Record]) -> list[Panel]:
    """One panel for each σ_π."""
    made = [_panel(deviation, own) for deviation, own in by_deviation(records)]
    return made + settings_panels("minigolf-strategies", "minigolf", records, ())


def outcomes(records: list[Record]) -> pl.DataFrame:
    """A row a run and strategy: the putter that was chosen, and what it returned."""

    def rows(record: Record) -> list[dict[str, Any]]:
        lengths, returns = record.result["putter_lengths"], record.result["returns"]
        seed = record.setting["seed"]
        return [{"strategy": s, "seed": seed, "length": lengths[s], "return": returns[s]} for s in STRATEGIES]

    return tidy(records, rows)


def judge(found: pl.DataFrame) -> list[Part]:
    """Both halves of the claim, by differences on the same agents, in parts of what there is to gain."""
    room = _gain(found, "oracle", "uniform")
    lost, gained = _gain(found, "oracle", "identified"), _gain(found, "identified", "full")
    notable = NOTABLE * room.value
    there_is = room.low > 0
    return [
        Part(f"The identified space returns {lost.words} less than the oracle, of {room.words} between random and oracle",
             (True if lost.high <= notable else False if lost.low > notable else None) if there_is else None),
        Part(f"It returns {gained.words} more than the wrong space", above(gained, notable) if there_is else None),
    ]  # fmt: skip


def _gain(found: pl.DataFrame, one: str, other: str) -> Mean:
    return mean_of(paired(found, "return", "strategy", one, other)["difference"].to_list())


CRITERIA = (
    "The yardstick is what there is to gain: the distance from random (i) to oracle (iv), which must surely be above 0, or "
    f"nothing can be told. (iii) is comparable with (iv) if it surely loses at most {NOTABLE:.0%} of that distance, and is "
    f"not if it surely loses more. (iii) is notably higher than (ii) if it surely gains more than {NOTABLE:.0%} of it, and "
    f"is not if it surely gains less. At least {FEWEST} runs."
)


def _panel(deviation: float, records: list[Record]) -> Panel:
    found = outcomes(records)
    parts = judge(found)
    returns = means(found, "return", "strategy")
    lengths = {name: own["length"].to_list() for name, own in groups(found, "strategy").items()}
    exact = sum(set(r.result["selected"]) == AGENT_A2 for r in records)
    return Panel(
        name=f"minigolf-strategies-{deviation:g}",
        title=f"A₂'s return with a putter chosen in four ways, σ = {deviation:g}",
        claim="The performance of the identification procedure (iii) is comparable with that of the oracle (iv) and notably "
        "higher than the performance when employing an incorrect policy space (ii).",
        verdict=verdict_of(parts, len(records)),
        why=f"{why(parts)} From {records[0].setting['num_observed']} episodes, A₂'s features were identified exactly in "
        f"{exact} of {len(records)} runs.",
        figure=draw(found, f"Minigolf, σ = {deviation:g}: A₂'s return by choice of putter"),
        columns=("strategy", "runs", "mean return (95 %)", "putter lengths"),
        rows=[
            (label, str(len(records)), returns[name].words, _range(lengths[name])) for name, label in STRATEGIES.items()
        ],
        numbers={
            "policy_deviation": deviation,
            "identified_exactly": exact,
            **{name: {**returns[name].numbers, "putter_length": float(np.mean(lengths[name]))} for name in STRATEGIES},
        },
        criteria=CRITERIA,
    )


def _range(lengths: list[float]) -> str:
    """One length, or the median and the range of several."""
    low, middle, high = np.min(lengths), np.median(lengths), np.max(lengths)
    return f"{middle:.3g}" if low == high else f"{middle:.3g} ({low:.3g}–{high:.3g})"


def draw(found: pl.DataFrame, title: str) -> "Figure":
    """Left, where the runs lie; right, their means with 95 % intervals, on the scale of the putters that were chosen."""
    figure = new_figure(3.3, title, width=9.6)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    returns = {name: own["return"].to_list() for name, own in groups(found, "strategy").items()}
    averages = {name: mean_of(values) for name, values in returns.items()}
    chosen = [mean for name, mean in averages.items() if name != "uniform"]
    ends = [mean.value + side * (mean.margin or 0.0) for mean in chosen for side in (-1, 1)]
    for y, (name, values) in enumerate(returns.items()):
        _draw_runs(left, y, values, COLOURS[name])
        _draw_mean(right, y, averages[name], COLOURS[name], min(ends))
    room = 0.1 * (max(ends) - min(ends)) or 1.0
    right.set_xlim(min(ends) - room, max(ends) + room)
    left.set_yticks(range(len(STRATEGIES)), list(STRATEGIES.values()))
    left.set_ylim(len(STRATEGIES) - 0.5, -0.5)
    left.set_xlabel("return of a run (bars: nine of ten, thick: half; line: the median)")
    right.set_xlabel("mean return")
    for axes, words in ((left, "where the runs lie"), (right, "their means, with 95 % intervals")):
        bare(axes)
        axes.set_title(words, loc="left", fontsize=10.5, color=INK)
    return figure


def _draw_runs(axes: "Axes", y: int, values: list[float], colour: str) -> None:
    """A bar that nine of ten runs lie in, thick where half of them do, and their median."""
    for share, width in ((0.9, 5), (0.5, 13)):
        ends = np.quantile(values, [0.5 - share / 2, 0.5 + share / 2])
        axes.plot(ends, [y, y], color=colour, alpha=0.4, linewidth=width, solid_capstyle="butt", zorder=2)
    axes.plot(np.median(values), y, "|", color=colour, markersize=17, markeredgewidth=2, zorder=3)


def _draw_mean(axes: "Axes", y: int, mean: Mean, colour: str, left: float) -> None:
    """A mean and its interval, or the way to it from the left edge; its number on the right."""
    if mean.value < left:
        axes.annotate("← off this scale", (0, y), xycoords=("axes fraction", "data"), xytext=(2, 0),
                      textcoords="offset points", va="center", fontsize=9, color=QUIET)  # fmt: skip
    else:
        axes.errorbar(mean.value, y, xerr=mean.margin, fmt="o", color=colour, markersize=5, elinewidth=2, capsize=5)
    axes.annotate(
        mean.words, (1, y), xycoords=("axes fraction", "data"), xytext=(8, 0), textcoords="offset points",
        va="center", fontsize=9.5, color=INK, annotation_clip=False,
    )  # fmt: skip
