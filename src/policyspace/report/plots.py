"""How estimates are drawn: lines with bands, points with whiskers, and rates beside what was promised."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from policyspace.report.estimates import Mean, Rate
from policyspace.report.style import BLUE, DASHED, GREEN, INK, RED, new_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"too often": RED, "as promised": GREEN, "less often": BLUE}

Points = Iterable[tuple[float, Mean | Rate]]
"""Estimates with their places on the horizontal axis."""


def draw_lines(
    axes: "Axes",
    found: Mapping[tuple[str, Any], Mean | Rate],
    colours: Mapping[str, str],
    labels: Mapping[str, str] = MappingProxyType({}),
    floor: float = -np.inf,
    marker: str = "o",
    apart: float = 1.0,
) -> None:
    """Estimates by name and place: a line for each name that has a colour, the intervals a band not below a floor.

    Lines that may coincide are drawn `apart`: the places of each are this factor to the right of those of the one before.
    """
    for name, points in _beside_each_other(found, colours, apart).items():
        x, value, low, high = _arrays(sorted(points, key=lambda point: point[0]))
        axes.plot(x, value, marker=marker, markersize=4, color=colours[name], linewidth=2, label=labels.get(name))
        axes.fill_between(x, np.maximum(low, floor), high, color=colours[name], alpha=0.13, linewidth=0)


def draw_whiskers(axes: "Axes", points: Points, colour: str, label: str | None = None, **options: Any) -> None:
    """Estimates as points, their intervals as whiskers."""
    x, value, low, high = _arrays(points)
    ends = [np.maximum(value - low, 0), np.maximum(high - value, 0)]
    axes.errorbar(x, value, ends, fmt="o", markersize=5, color=colour, label=label, **options)


def draw_apart(
    axes: "Axes",
    found: Mapping[tuple[str, Any], Mean | Rate],
    colours: Mapping[str, str],
    apart: float = 1.08,
) -> None:
    """Estimates by name and place as whiskers beside each other: where many are the same, as zero is, all are seen."""
    for name, points in _beside_each_other(found, colours, apart).items():
        draw_whiskers(axes, points, colours[name], elinewidth=1.6, capsize=2)


def _beside_each_other(
    found: Mapping[tuple[str, Any], Mean | Rate], names: Iterable[str], apart: float
) -> dict[str, list[tuple[float, Mean | Rate]]]:
    """The points of every name, each name by a factor to the right of the one before."""
    shown = [name for name in names if any(other == name for other, _ in found)]
    aside = {name: apart ** (place - (len(shown) - 1) / 2) for place, name in enumerate(shown)}
    return {name: [(x * aside[name], e) for (other, x), e in found.items() if other == name] for name in shown}


def _arrays(points: Points) -> tuple[np.ndarray, ...]:
    """Places, values and ends of the intervals [p]; an interval that is not known has no length."""
    x, value, low, high = (np.array(row) for row in zip(*((x, e.value, e.low, e.high) for x, e in points), strict=True))
    known = np.isfinite(low)
    return x, value, np.where(known, low, value), np.where(known, high, value)


def logarithmic(axes: "Axes", ticks: Sequence[int]) -> None:
    """A logarithmic horizontal axis with marks at numbers that were tried."""
    axes.set_xscale("log")
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()


def legend(axes: "Axes", **options: Any) -> None:
    """Names of the lines, without a frame."""
    axes.legend(**{"frameon": False, "fontsize": 8.5} | options)


def draw_rates(blocks: Sequence[tuple[str, Sequence[Rate]]], title: str, label: str) -> "Figure":
    """One dot and whisker a rate, in blocks with headings; the nominal level is the dashed line."""
    lines: list[Rate | str] = []
    for heading, rates in blocks:
        lines += [heading, *rates] if rates else []
    figure, axes = new_plot(0.95 + 0.25 * len(lines), title)
    for y, line in enumerate(lines):
        if not isinstance(line, str):
            colour = COLOURS[line.verdict]
            axes.plot(line.interval, [y, y], color=colour, linewidth=2, solid_capstyle="round", zorder=2)
            axes.plot([line.value], [y], "o", color=colour, markersize=6, zorder=3, clip_on=False)
    for nominal in {line.nominal for line in lines if not isinstance(line, str)}:
        axes.axvline(nominal, color=INK, linewidth=1, linestyle=DASHED, zorder=1)
    axes.set_yticks(range(len(lines)), [line if isinstance(line, str) else line.name for line in lines])
    for tick, line in zip(axes.get_yticklabels(), lines, strict=True):
        tick.set_fontweight("bold" if isinstance(line, str) else "normal")
    axes.set_ylim(len(lines) - 0.4, -0.6)
    # Rates near 5 % and rates near 1 must both be readable.
    axes.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
    ticks = [0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlim(0, 1)
    axes.set_xlabel(label)
    axes.yaxis.grid(False)
    axes.tick_params(axis="y", pad=7)
    return figure
