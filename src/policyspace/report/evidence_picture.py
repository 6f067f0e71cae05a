"""The picture of an answer: the evidence for each group, beside the line that it must cross."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from policyspace.answer import GroupTest, Identification
from policyspace.printable import printable
from policyspace.report.style import (
    AMBER,
    DARK_AMBER,
    DASHED,
    GREEN,
    GREY,
    INK,
    QUIET,
    bare,
    format_of,
    new_figure,
    save,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"controlled": GREEN, "undecided": AMBER, "no evidence": GREY}
TEXT = {"controlled": GREEN, "undecided": DARK_AMBER, "no evidence": QUIET}

MOST_BARS = 150
"""More would not be read, and beyond some thousands could not be drawn."""


def plot_evidence(answer: Identification, path: str | Path) -> None:
    """Save the picture; the suffix of the file names the format."""
    format_of(path)
    save(draw_evidence(answer), path)


def draw_evidence(answer: Identification) -> "Figure":
    """One bar a group, as long as −log₁₀ of its adjusted p-value; what passes the line is used, or controlled."""
    tests = _strongest(answer.tests)[::-1]
    title = textwrap.wrap(printable(answer.sentence), 68, max_lines=4, placeholder=" …", break_on_hyphens=False)
    height = 0.95 + 0.2 * len(title) + 0.32 * len(tests)
    figure = new_figure(height, width=8.2)
    figure.suptitle("\n".join(title), x=0.012, ha="left", fontsize=11.5, color=INK, fontweight="bold")
    axes = figure.add_subplot()
    _draw_bars(axes, tests, [answer.verdict_in_words(test) for test in tests])
    promise = "" if answer.promise else "; no promise is made, see the report"
    _draw_scale(axes, tests, float(answer.settings["significance"]), f"test '{answer.test}'{promise}")
    if len(tests) < len(answer.tests):
        axes.set_title(f"the {len(tests)} strongest of {len(answer.tests)} groups", loc="left", fontsize=9, color=INK)
    return figure


def _strongest(tests: list[GroupTest]) -> list[GroupTest]:
    """As many as a picture can hold, in their own order."""
    limit = sorted(test.adjusted_p_value for test in tests)[:MOST_BARS][-1]
    return [test for test in tests if test.adjusted_p_value <= limit][:MOST_BARS]


def _draw_bars(axes: "Axes", tests: list[GroupTest], verdicts: list[str]) -> None:
    """The bars, their names on the left, their verdicts on the right where no line crosses them."""
    evidence, positions = _evidence(tests), np.arange(len(tests))
    axes.barh(positions, evidence, height=0.6, color=[COLOURS[test.verdict] for test in tests], zorder=2)
    short = evidence < 0.02  # a bar of no length is still shown
    axes.scatter(evidence[short], positions[short], s=22, color=COLOURS["no evidence"], zorder=3, clip_on=False)
    axes.set_ylim(-0.65, len(tests) - 0.35)
    names = [_shortened(printable(test.group)) for test in tests]
    if len(set(names)) < len(names):  # then their place in the table tells them apart
        names = [f"{len(names) - i}. {name}" for i, name in enumerate(names)]
    axes.set_yticks(positions, names, fontsize=9.5, color=INK)
    for position, test, verdict in zip(positions, tests, verdicts, strict=True):
        p = test.adjusted_p_value
        label = f"{verdict}, p = {p:.2g}" if p > 1e-300 else f"{verdict}, p < 1e-300"
        axes.annotate(
            label, (1, position), xycoords=("axes fraction", "data"), xytext=(8, 0), textcoords="offset points",
            va="center", fontsize=9, color=TEXT[test.verdict], annotation_clip=False,
        )  # fmt: skip


def _draw_scale(axes: "Axes", tests: list[GroupTest], significance: float, note: str) -> None:
    """The axis of p-values, the line to cross, and which test decided."""
    threshold = -np.log10(significance)
    # Short bars and long ones must both be readable: the root of the evidence is proportional to the effect.
    axes.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
    right = max(float(_evidence(tests).max()) * 1.04, threshold * 1.8)
    axes.set_xlim(0, right)
    axes.axvline(threshold, color=INK, linewidth=1, linestyle=DASHED, zorder=3)
    ticks = [threshold]
    for tick in (0, 0.3, 1, 3, 10, 30, 100, 300):
        if tick <= right and all(abs(np.sqrt(tick) - np.sqrt(other)) > 0.075 * np.sqrt(right) for other in ticks):
            ticks.append(tick)
    axes.set_xticks(ticks, [_tick(tick) for tick in ticks], fontsize=8.5)
    axes.set_xlabel(
        f"adjusted p-value (evidence grows to the right; dashed: δ = {significance:g}; {note})", fontsize=9, color=INK
    )
    bare(axes, grid="x")
    axes.tick_params(axis="y", pad=7)


def _evidence(tests: list[GroupTest]) -> np.ndarray:
    return -np.log10(np.maximum([test.adjusted_p_value for test in tests], 1e-300)) + 0.0


def _tick(evidence: float) -> str:
    p = 10.0**-evidence
    return f"{p:.2g}" if p >= 1e-3 or evidence != round(evidence) else f"$10^{{-{evidence:g}}}$"


def _shortened(name: str, width: int = 36) -> str:
    """A long name keeps both its ends, for either may be what tells it from others."""
    return name if len(name) <= width else f"{name[: width // 2]}…{name[-(width // 2 - 1) :]}"
