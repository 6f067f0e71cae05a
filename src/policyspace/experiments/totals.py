"""Records of designs at equal totals → α̂ and β̂ with their intervals, a table, and a figure."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from policyspace.experiments.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    "none": "no configuration",
    "uniform": "uniform configuration",
    "paper": "the paper's C_I, joint",
    "d-optimal": "D-optimal",
    "noncentrality": "non-centrality",
}
COLOURS = {
    "none": "#9aa5b1",
    "uniform": "#2f80c2",
    "paper": "#c0392b",
    "d-optimal": "#0b6e4f",
    "noncentrality": "#d98e04",
}


@dataclass(frozen=True)
class Summary:
    """What one design found at one total of episodes: means over agents with half-widths of 95 % intervals."""

    design: str
    total_episodes: int
    num_agents: int
    false_positive_rate: float
    false_positive_margin: float
    false_negative_rate: float
    false_negative_margin: float
    share_with_false: float  # of the agents of whom anything was selected wrongly


def summarise(records: list[Record]) -> list[Summary]:
    """One summary a design and total, designs in the order of LABELS."""
    cells: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        cells.setdefault((record.setting["design"], record.setting["budget"]), []).append(record)
    order = list(LABELS)
    return [
        _summary(design, total, cells[design, total])
        for design, total in sorted(cells, key=lambda cell: (cell[1], order.index(cell[0])))
    ]


def _summary(design: str, total: int, records: list[Record]) -> Summary:
    positive = [r.result["false_positive_rate"] for r in records if r.result["false_positive_rate"] is not None]
    negative = [r.result["false_negative_rate"] for r in records if r.result["false_negative_rate"] is not None]
    any_false = float(np.mean([r.result["any_false"] for r in records]))
    return Summary(design, total, len(records), *_mean(positive), *_mean(negative), any_false)


def _mean(values: list[float]) -> tuple[float, float]:
    """The mean and the half-width of its 95 % interval, by the normal law."""
    if not values:
        return float("nan"), float("nan")
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return float(np.mean(values)), 1.96 * spread / np.sqrt(len(values))


def table(summaries: list[Summary]) -> list[tuple[str, ...]]:
    """Rows of text under (design, episodes, agents, β̂, α̂, agents with a false selection)."""
    return [
        (
            LABELS[s.design],
            str(s.total_episodes),
            str(s.num_agents),
            f"{s.false_negative_rate:.3f} ± {s.false_negative_margin:.3f}",
            f"{s.false_positive_rate:.4f} ± {s.false_positive_margin:.4f}",
            f"{s.share_with_false:.0%}",
        )
        for s in summaries
    ]


def draw(summaries: list[Summary], title: str) -> "Figure":
    """β̂ against the total number of episodes, one line a design."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    for design, label in LABELS.items():
        own = [s for s in summaries if s.design == design]
        if not own:
            continue
        totals = np.array([s.total_episodes for s in own])
        rate = np.array([s.false_negative_rate for s in own])
        margin = np.nan_to_num([s.false_negative_margin for s in own])
        axes.plot(totals, rate, marker="o", color=COLOURS[design], label=label, linewidth=2)
        axes.fill_between(
            totals, np.maximum(rate - margin, 0), rate + margin, color=COLOURS[design], alpha=0.15, linewidth=0
        )
    axes.set_xscale("log")
    ticks = sorted({s.total_episodes for s in summaries})
    axes.set_xticks(ticks, [str(t) for t in ticks])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("episodes observed in total")
    axes.set_ylabel("controlled features missed, β̂")
    axes.set_title(title, loc="left", fontweight="bold", fontsize=11)
    axes.legend(frameon=False)
    axes.grid(color="#e4e7eb")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure
