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
    shortened,
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
    title = _wrapped(answer)
    figure = new_figure(0.2 * len(title) + _height(answer), width=8.2)
    figure.suptitle("\n".join(title), x=0.012, ha="left", fontsize=11.5, color=INK, fontweight="bold", parse_math=False)
    _fill(figure.add_subplot(), answer, _scale_in_words(answer))
    return figure


def draw_evidence_for_page(answer: Identification) -> "Figure":
    """The same, narrow enough for a phone, and without what the page says beside it."""
    figure = new_figure(_height(answer), width=4.8)
    words = f"adjusted p-value (evidence grows to the right; dashed: δ = {_level(answer):g})"
    _fill(figure.add_subplot(), answer, "\n".join(textwrap.wrap(words, 48)), narrow=True)
    return figure


def evidence_axes(answer: Identification, axes: "Axes | None" = None) -> "Axes":
    """The same in given axes, or in those of a new figure of pyplot, which notebooks show."""
    if axes is None:
        from matplotlib import pyplot

        height = 0.2 * len(_wrapped(answer)) + _height(answer)
        _, axes = pyplot.subplots(figsize=(8.2, height), layout="constrained")
    _fill(axes, answer, _scale_in_words(answer))
    words = "\n".join([*_wrapped(answer), axes.get_title(loc="left")]).strip()
    axes.set_title(words, loc="left", fontsize=11, color=INK, fontweight="bold", parse_math=False)
    return axes


def _fill(axes: "Axes", answer: Identification, scale: str, narrow: bool = False) -> None:
    """Bars, names, verdicts and the scale; where it is narrow, shorter names and verdicts without p-values."""
    tests = _strongest(answer.tests)[::-1]
    verdicts = [answer.verdict_in_words(test) for test in tests]
    labels = verdicts if narrow else [f"{v}, p {_smallest(t)}" for v, t in zip(verdicts, tests, strict=True)]
    _draw_bars(axes, tests, labels, 24 if narrow else 36)
    _draw_scale(axes, tests, _level(answer), scale)
    if len(tests) < len(answer.tests):
        axes.set_title(f"the {len(tests)} strongest of {len(answer.tests)} groups", loc="left", fontsize=9, color=INK)


def _wrapped(answer: Identification) -> list[str]:
    return textwrap.wrap(printable(answer.sentence), 68, max_lines=4, placeholder=" …", break_on_hyphens=False)


def _height(answer: Identification) -> float:
    return 0.95 + 0.32 * len(_strongest(answer.tests))


def _level(answer: Identification) -> float:
    return float(answer.settings["significance"])


def _scale_in_words(answer: Identification) -> str:
    promise = "" if answer.promise else "; no promise is made, see the report"
    note = f"test '{answer.test}'{promise}"
    return f"adjusted p-value (evidence grows to the right; dashed: δ = {_level(answer):g}; {note})"


def _strongest(tests: list[GroupTest]) -> list[GroupTest]:
    """As many as a picture can hold, in their own order."""
    limit = sorted(test.adjusted_p_value for test in tests)[:MOST_BARS][-1]
    return [test for test in tests if test.adjusted_p_value <= limit][:MOST_BARS]


def _draw_bars(axes: "Axes", tests: list[GroupTest], labels: list[str], width: int) -> None:
    """The bars, their names on the left, their verdicts on the right where no line crosses them."""
    evidence, positions = _evidence(tests), np.arange(len(tests))
    axes.barh(positions, evidence, height=0.6, color=[COLOURS[test.verdict] for test in tests], zorder=2)
    short = evidence < 0.02  # a bar of no length is still shown
    axes.scatter(evidence[short], positions[short], s=22, color=COLOURS["no evidence"], zorder=3, clip_on=False)
    axes.set_ylim(-0.65, len(tests) - 0.35)
    names = [shortened(printable(test.group), width) for test in tests]
    if len(set(names)) < len(names):  # then their place in the table tells them apart
        names = [f"{len(names) - i}. {name}" for i, name in enumerate(names)]
    axes.set_yticks(positions, names, fontsize=9.5, color=INK, parse_math=False)
    for position, test, label in zip(positions, tests, labels, strict=True):
        axes.annotate(
            label, (1, position), xycoords=("axes fraction", "data"), xytext=(8, 0), textcoords="offset points",
            va="center", fontsize=9, color=TEXT[test.verdict], annotation_clip=False,
        )  # fmt: skip


def _draw_scale(axes: "Axes", tests: list[GroupTest], significance: float, scale: str) -> None:
    """The axis of p-values, what it says, and the line to cross."""
    threshold = -np.log10(significance)
    # Short bars and long ones must both be readable: the root of the evidence is proportional to the effect.
    axes.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
    right = max(float(_evidence(tests).max()) * 1.04, threshold * 1.8)
    axes.set_xlim(0, right)
    axes.axvline(threshold, color=INK, linewidth=1, linestyle=DASHED, zorder=3)
    ticks = [threshold]
    for tick in (0, 0.3, 1, 3, 10, 30, 100, 300):
        if tick <= right and all(abs(np.sqrt(tick) - np.sqrt(other)) > 0.11 * np.sqrt(right) for other in ticks):
            ticks.append(tick)
    axes.set_xticks(ticks, [_tick(tick) for tick in ticks], fontsize=8.5)
    axes.set_xlabel(scale, fontsize=9, color=INK)
    bare(axes, grid="x")
    axes.tick_params(axis="y", pad=7)


def _evidence(tests: list[GroupTest]) -> np.ndarray:
    return -np.log10(np.maximum([test.adjusted_p_value for test in tests], 1e-300)) + 0.0


def _smallest(test: GroupTest) -> str:
    return f"= {test.adjusted_p_value:.2g}" if test.adjusted_p_value > 1e-300 else "< 1e-300"


def _tick(evidence: float) -> str:
    p = 10.0**-evidence
    return f"{p:.2g}" if p >= 1e-3 or evidence != round(evidence) else f"$10^{{-{evidence:g}}}$"
