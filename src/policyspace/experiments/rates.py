"""A count out of so many, its exact interval, and the figure of many such beside what was promised."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binomtest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {"too often": "#c0392b", "as promised": "#0b6e4f", "less often": "#2f80c2"}
INK, FAINT = "#1f2933", "#e4e7eb"


@dataclass(frozen=True)
class Share:
    """How often something happened in so many runs."""

    count: int
    num_runs: int

    @property
    def value(self) -> float:
        """The share."""
        return self.count / self.num_runs

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of Clopper and Pearson."""
        found = binomtest(self.count, self.num_runs).proportion_ci(0.95, method="exact")
        return float(found.low), float(found.high)

    @property
    def words(self) -> str:
        """The share with its interval."""
        low, high = self.interval
        return f"{self.value:.3f} ({low:.3f}–{high:.3f})"


@dataclass(frozen=True)
class Rate(Share):
    """A share under a name; `nominal` is how often it may happen."""

    name: str
    nominal: float

    @property
    def verdict(self) -> str:
        """Too often or less often where the interval lies on one side of the nominal level, else as promised."""
        low, high = self.interval
        return "too often" if low > self.nominal else "less often" if high < self.nominal else "as promised"


def draw_rates(blocks: Sequence[tuple[str, Sequence[Rate]]], title: str, label: str) -> "Figure":
    """One dot and whisker a rate, in blocks with headings; the nominal level is the dashed line."""
    from matplotlib.figure import Figure

    lines: list[Rate | str] = []
    for heading, rates in blocks:
        lines += [heading, *rates]
    figure = Figure(figsize=(7.2, 0.95 + 0.25 * len(lines)), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    for y, line in enumerate(lines):
        if isinstance(line, str):
            continue
        low, high = line.interval
        colour = COLOURS[line.verdict]
        axes.plot([low, high], [y, y], color=colour, linewidth=2, solid_capstyle="round", zorder=2)
        axes.plot([line.value], [y], "o", color=colour, markersize=6, zorder=3, clip_on=False)
    for nominal in {line.nominal for line in lines if not isinstance(line, str)}:
        axes.axvline(nominal, color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    axes.set_yticks(range(len(lines)), [line if isinstance(line, str) else line.name for line in lines], color=INK)
    for tick, line in zip(axes.get_yticklabels(), lines, strict=True):
        tick.set_fontweight("bold" if isinstance(line, str) else "normal")
        tick.set_fontsize(9)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    # Rates near 5 % and rates near 1 must both be readable.
    axes.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
    ticks = [0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=8.5)
    axes.set_xlim(0, 1)
    axes.set_xlabel(label, fontsize=9, color=INK)
    axes.set_title(title, loc="left", fontweight="bold", fontsize=11)
    axes.xaxis.grid(color=FAINT)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=INK)
    axes.tick_params(axis="y", pad=7)
    axes.spines[:].set_visible(False)
    return figure
