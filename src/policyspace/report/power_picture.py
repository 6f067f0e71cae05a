"""The picture of a plan: power against the number of pairs, as practice has it and as theory proves it."""

from typing import TYPE_CHECKING

import numpy as np

from policyspace.planning import GroupPlan, Plan
from policyspace.report.style import DASHED, INK, SERIES, bare, new_figure
from policyspace.theory import Setting, power_bound

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BANDS = 3
"""More bands than this hide one another: then a bar at the wanted power shows the range of the pairs."""


def draw_power(plan: Plan, setting: Setting | None) -> "Figure":
    """Left: the power of each test, with what the pilot leaves open. Right: the same beside what Theorem 4.2 proves."""
    shown, left, right = _range(plan)
    figure = new_figure(4.4, width=9.6)
    near, far = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    _draw_practice(near, plan)
    end = _proven_end(plan, setting, shown)
    _curves(far, plan, shown, np.geomspace(left, max(end, right), 240), bands=False)
    if setting is not None and shown:
        _proven(far, plan, setting, shown, np.geomspace(left, max(end, right), 240))
    far.set_title("solid: practice, dashed: proven", loc="left", fontsize=10.5, color=INK, fontweight="bold", pad=10)
    _finish(far, plan.power)
    return figure


def draw_power_for_page(plan: Plan) -> "Figure":
    """The power of each test alone, narrow enough for a phone."""
    figure = new_figure(3.6, width=4.8)
    _draw_practice(figure.add_subplot(), plan)
    return figure


def _shown(plan: Plan) -> tuple[list[GroupPlan], list[GroupPlan]]:
    """The groups that show an effect, and those of them that there are colours for: the weakest."""
    seen = sorted((g for g in plan.groups if 0 < g.rate.value < np.inf), key=lambda g: g.pairs.value)
    return seen, seen[-len(SERIES) :]


def _range(plan: Plan) -> tuple[list[GroupPlan], float, float]:
    """The groups to draw, and the fewest and most pairs of the axis."""
    _, shown = _shown(plan)
    left = max(plan.procedure.fewest, plan.num_pairs / 20, 2.0)
    right = max([3 * plan.num_pairs, *(2 * g.pairs.value for g in shown if g.pairs.value < np.inf)])
    return shown, left, right


def _draw_practice(axes: "Axes", plan: Plan) -> None:
    """The curves with what the pilot leaves open, and where the pilot is now."""
    shown, left, right = _range(plan)
    _curves(axes, plan, shown, np.geomspace(left, right, 120), bands=True)
    axes.axvline(plan.num_pairs, color=INK, linewidth=1, linestyle=(0, (1, 2)))
    axes.annotate(
        "now", (plan.num_pairs, 0.0), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=8.5, color=INK,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
    )  # fmt: skip
    axes.set_ylabel("power: the chance that the test finds the group", fontsize=9, color=INK)
    axes.set_title(
        _title(plan, _shown(plan)[0], shown), loc="left", fontsize=10.5, color=INK, fontweight="bold", pad=10
    )
    if shown:
        axes.legend(fontsize=8.5, loc="best", labelcolor=INK, framealpha=0.9, edgecolor="none")
    _finish(axes, plan.power)


def _curves(axes: "Axes", plan: Plan, groups: list[GroupPlan], pairs: np.ndarray, bands: bool) -> None:
    for colour, group in zip(SERIES, groups, strict=False):
        axes.plot(
            pairs, _powers(plan, pairs, group.rate.value, group), color=colour, linewidth=1.8, label=_label(group)
        )
        if not bands or group.rate.low == group.rate.high:
            continue
        if len(groups) > MOST_BANDS:
            row = plan.power - 0.014 * (1 + len(axes.lines) // 2)
            ends = [min(n, float(pairs[-1])) for n in (group.pairs.low, group.pairs.high)]
            axes.plot(ends, [row, row], color=colour, linewidth=1.2, alpha=0.7)
        else:
            low, high = (_powers(plan, pairs, rate, group) for rate in (group.rate.low, group.rate.high))
            axes.fill_between(pairs, low, high, color=colour, alpha=0.1, linewidth=0)


def _label(group: GroupPlan) -> str:
    """The name, which matplotlib would leave out of its legend if it began with an underscore."""
    return f" {group.group}" if group.group.startswith("_") else group.group


def _powers(plan: Plan, pairs: np.ndarray, rate: float, group: GroupPlan) -> list[float]:
    return [plan.procedure.power(n, rate, group.degrees_of_freedom) for n in pairs.tolist()]


def _proven(axes: "Axes", plan: Plan, setting: Setting, groups: list[GroupPlan], pairs: np.ndarray) -> None:
    for colour, group in zip(SERIES, groups, strict=False):
        proven = [power_bound(plan.significance, n, group.rate.value / 2, setting, len(plan.groups)) for n in pairs]
        axes.plot(pairs, proven, color=colour, linewidth=1.4, linestyle=(0, (4, 2)))


def _proven_end(plan: Plan, setting: Setting | None, groups: list[GroupPlan]) -> float:
    """The number of pairs by which all the proven curves have risen."""
    end = float(plan.num_pairs)
    for group in groups if setting is not None else []:
        while (
            setting is not None
            and end < 1e40
            and power_bound(plan.significance, end, group.rate.value / 2, setting, len(plan.groups)) < 0.99
        ):
            end *= 2
    return end


def _title(plan: Plan, seen: list[GroupPlan], shown: list[GroupPlan]) -> str:
    if not seen:
        return "The pilot shows no effect to plan for"
    rest = f" (the {len(shown)} weakest of {len(seen)} groups)" if len(shown) < len(seen) else ""
    return f"Power against the number of pairs{rest}"


def _finish(axes: "Axes", wanted: float) -> None:
    axes.set_xscale("log")
    axes.set_ylim(-0.02, 1.02)
    axes.axhline(wanted, color=INK, linewidth=0.8, linestyle=DASHED)
    axes.set_xlabel("pairs (state, action)")
    bare(axes)
