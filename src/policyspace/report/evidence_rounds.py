"""The picture of a study: the evidence of each unit over the rounds, and the line that it must cross.

Where evidence adds up over rounds it is a line a unit. Where every round counts by itself (rounds tested in batches, the
combinatorial rule, the paper's rule) it is a point for each unit that a round tested, joined by nothing.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from policyspace.configuration.round import Round
from policyspace.configuration.status import Status
from policyspace.errors import InputError
from policyspace.printable import number_of
from policyspace.report.point_names import MOST_NAMES, Spot, name_points, shared
from policyspace.report.style import (
    AMBER,
    DASHED,
    GREEN,
    GREY,
    INK,
    PAPER,
    QUIET,
    RED,
    bare,
    new_figure,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDEST, MARGINS, GAP, LETTER = 16.0, 1.2, 0.45, 0.068
"""Inches: of a picture of many rounds, beside its rounds, between the names of two rounds, and of a letter of a name."""
LONGEST, SHORTEST = 28, 6
"""Letters of a name; where rounds stand too close for the shortest, there are none."""

ON_TOP = (RED, GREEN, AMBER, GREY)
"""Where lines of several colours are one, the first of these is seen."""


class Point(NamedTuple):
    """What one round alone says of a unit."""

    unit: str
    number: int  # of the round, from 1
    value: float  # −log₁₀ of its adjusted p-value
    crossed: bool


class Scale(NamedTuple):
    """From the least evidence to the most, by its root, so that weak and strong evidence can both be read."""

    low: float
    high: float

    @classmethod
    def of(cls, axes: "Axes", values: Sequence[float], needed: float) -> "Scale":
        """Of the values and of what is needed, with room for marks at both ends; the axes get it, too."""
        low, high = float(_root(min([0.0, *values]))), float(_root(max([1.15 * needed, *values])))
        scale = cls(low - 0.03 * (high - low), high + 0.03 * (high - low))
        bare(axes)
        axes.set_yscale("function", functions=(_root, _square))
        axes.set_ylim(float(_square(scale.low)), float(_square(scale.high)))
        return scale

    def height(self, value: float) -> float:
        """Where a value stands, as a share of the picture's height."""
        return float((_root(value) - self.low) / (self.high - self.low))


def _root(y: Any) -> Any:
    return np.sign(y) * np.sqrt(np.abs(y))


def _square(y: Any) -> Any:
    return np.sign(y) * np.square(y)


def draw_evidence_over_rounds(status: Status) -> "Figure":
    """How small the adjusted p-value of each unit has become, or how large its E; or how small it was in each round."""
    if not status.rounds:
        raise InputError("there is nothing to draw yet, found no rounds: report the first one.")
    schedule = status.schedule
    return _draw_adding_up(status) if schedule.sequential or schedule.combined else _draw_one_by_one(status)


def _draw_adding_up(status: Status) -> "Figure":
    """A line a unit, after so many episodes."""
    from matplotlib.lines import Line2D

    paths = {unit: points or [(0, 0.0)] for unit, points in evidence_paths(status).items()}
    rounds, schedule = status.rounds, status.schedule
    height = 3.8 + 0.09 * min(len(paths), MOST_NAMES)
    figure = new_figure(height, _counts(status), width=8.2)
    axes = figure.add_subplot()
    needed, end = float(-np.log10(schedule.significance)), rounds[-1].total_episodes
    axes.axhline(needed, color=INK, linewidth=1, linestyle=DASHED, zorder=3.5)
    marks = "-" if schedule.sequential else "-o"  # after every episode they would hide the lines
    for unit, points in paths.items():
        colour, places = _colour(status, unit), zip((0, 0.0), *points, strict=True)
        above = 3 - 0.1 * ON_TOP.index(colour)
        axes.plot(*places, marks, color=colour, linewidth=1.6, markersize=3.5, clip_on=False, zorder=above)
    scale = Scale.of(axes, [value for points in paths.values() for _, value in points], needed)
    for unit, points in paths.items():
        if points[-1][0] < end:  # decided before the end, and not followed any more
            axes.plot([points[-1][0], end], [points[-1][1]] * 2, color=_colour(status, unit), linewidth=0.7)
            axes.plot(*points[-1], "o", color=_colour(status, unit), markersize=4.5)
    axes.set_xlim(0, end)
    ends = {unit: points[-1][1] for unit, points in paths.items()}
    spots = [Spot(scale.height(value), unit, (end, value)) for unit, value in ends.items()]
    named = [(_words(some, LONGEST, schedule.sequential, needed), some) for some in shared(spots, scale.height(needed))]
    name_points(axes, named, 1.045 * end)
    axes.set_xticks(_far_enough_apart([0, *(r.total_episodes for r in rounds)]))
    axes.set_ylabel("log₁₀ E" if schedule.sequential else "−log₁₀ of the p-value of all rounds, by Holm")
    axes.set_xlabel("episodes reported")
    level = f"E = {10**needed:.4g}" if schedule.sequential else f"δ = {schedule.significance:g}"
    line = Line2D([], [], color=INK, linewidth=1, linestyle=DASHED, label=f"to be crossed ({level})")
    _explain(figure, [line, *_colours(status, linewidth=2)])
    return figure


def _counts(status: Status) -> str:
    return f"{len(status.selected)} of {number_of(len(status.schedule.units), 'unit')} shown to be controlled"


def evidence_paths(status: Status) -> dict[str, list[tuple[int, float]]]:
    """(episodes, evidence on the scale of −log₁₀ δ) of every unit after every look, where evidence adds up."""
    paths: dict[str, list[tuple[int, float]]] = {unit: [] for unit in status.schedule.units}
    for record in status.rounds:
        for row in record.tests:
            if row["group"] in paths:
                paths[row["group"]] += _looks(row, record.total_episodes)
    return paths


def _looks(row: dict[str, Any], total: int) -> list[tuple[int, float]]:
    if "looks" in row:
        return [(int(episode), float(log_e / np.log(10.0))) for episode, log_e in row["looks"]]
    return [(total, _evidence(row["adjusted_p_value"]))]


def _words(spots: Sequence[Spot], width: int, sequential: bool, needed: float) -> str:
    """The name of a unit, of a few, or how many there are and what is known of them all."""
    names = ", ".join(spot.unit for spot in spots)
    if len(spots) == 1 or len(names) <= width:
        return shortened(names, width)
    values = [spot.place[1] for spot in spots]
    above = min(values) > needed
    bound = min(values) if above else max(values)
    figure = f"{10.0 ** (bound if sequential else -bound):.2g}"
    same = np.ptp(values) < 0.02
    sign = "=" if same else "≥" if above == sequential else "≤"
    return f"{len(spots)} units, {'E' if sequential else 'p'} {sign} {figure}"


def _far_enough_apart(ticks: list[int]) -> list[int]:
    """Those that can be read beside each other; the last is one of them."""
    kept = [ticks[-1]]
    for tick in reversed(ticks[:-1]):
        if kept[-1] - tick >= 0.06 * ticks[-1]:
            kept.append(tick)
    return kept[::-1]


def _draw_one_by_one(status: Status) -> "Figure":
    """A point for every unit that a round tested, beside the line that it must cross in that round."""
    rounds, schedule = status.rounds, status.schedule
    points = evidence_of_rounds(status)
    if not points:
        raise InputError(
            "there is nothing to draw, found no round that could be tested by itself: `study status` says why."
        )
    named = _named(points)
    longest = min(max((len(point.unit) for point in named), default=0), LONGEST)
    width = min(max(8.2, MARGINS + (GAP + LETTER * longest) * len(rounds)), WIDEST)
    figure = new_figure(
        4.4 + 0.09 * min(len(schedule.units), MOST_NAMES), f"{_counts(status)}; every round counts by itself", width
    )
    axes = figure.add_subplot()
    _draw_lines_to_cross(axes, rounds)
    for point in points:
        colour = _colour(status, point.unit)
        filled = colour if point.crossed else PAPER
        axes.plot(point.number, point.value, "o", color=colour, markerfacecolor=filled, markersize=5, zorder=3)
    needed = max(float(-np.log10(r.significance)) for r in rounds)
    scale = Scale.of(axes, [point.value for point in points], needed)
    axes.set_xlim(0.5, len(rounds) + 0.5)
    column = (width - MARGINS) / len(rounds)
    letters = min(int((column - GAP) / LETTER), LONGEST)
    for record in rounds if letters >= SHORTEST else ():
        line, number = float(-np.log10(record.significance)), record.number + 1
        spots = [Spot(scale.height(p.value), p.unit, (number, p.value)) for p in named if p.number == number]
        some = [(_in_column(one, letters), one) for one in shared(spots, scale.height(line))]
        name_points(axes, some, number + 0.2 / column)
    step = 1 + len(rounds) // 40
    shown = rounds[::step]
    axes.set_xticks([r.number + 1 for r in shown], [f"{r.number + 1}\n{r.num_episodes}" for r in shown])
    axes.set_ylabel("−log₁₀ of the adjusted p-value of that round alone")
    left_out = "" if letters >= SHORTEST else " (too many for names: `policyspace study status` says them)"
    axes.set_xlabel(f"round, and its episodes{left_out}")
    _explain(figure, [*_marks(rounds), *_colours(status, linestyle="", marker="s", markersize=6)])
    return figure


def evidence_of_rounds(status: Status) -> list[Point]:
    """What each round by itself says of the units that it tested: those selected before need not be among them."""
    return [
        Point(row["group"], record.number + 1, _evidence(p), p <= record.significance)
        for record in status.rounds
        for row in record.tests
        if row["group"] in status.schedule.units and (p := row.get("adjusted_p_value")) is not None
    ]


def _draw_lines_to_cross(axes: "Axes", rounds: Iterable[Round]) -> None:
    """−log₁₀ of the share of δ that each round has, or, where it could not be tested, words that say so."""
    for record in rounds:
        middle, needed = record.number + 1, -np.log10(record.significance)
        axes.plot([middle - 0.46, middle + 0.46], [needed, needed], color=INK, linewidth=1, linestyle=DASHED)
        if not record.tests:
            axes.text(
                middle, 0.5, "not tested", transform=axes.get_xaxis_transform(), rotation=90, ha="center", va="center",
                fontsize=8, color=QUIET,
            )  # fmt: skip


def _named(points: list[Point]) -> list[Point]:
    """The points with a name beside them: all that crossed, and the highest of each unit that never did, weakest first."""
    crossed = [point for point in points if point.crossed]
    highest: dict[str, Point] = {}
    for point in points:
        highest[point.unit] = max(highest.get(point.unit, point), point, key=lambda one: one.value)
    never = highest.keys() - {point.unit for point in crossed}
    found = [*crossed, *(point for unit, point in highest.items() if unit in never and point.value > 0)]
    return sorted(found, key=lambda point: (point.value, point.unit))


def _in_column(spots: Sequence[Spot], letters: int) -> str:
    """The name of a unit, of a few, or how many there are."""
    names = ", ".join(spot.unit for spot in spots)
    return shortened(names, letters) if len(spots) == 1 or len(names) <= letters else f"{len(spots)} units"


def _marks(rounds: list[Round]) -> list[Any]:
    """What the line and the points mean."""
    from matplotlib.lines import Line2D

    levels = sorted({r.significance for r in rounds})
    level = " to ".join(f"{one:.3g}" for one in dict.fromkeys((levels[0], levels[-1])))
    words = f"to be crossed by one round alone (its δ = {level})"
    dots: dict[str, Any] = {"linestyle": "", "marker": "o", "color": INK, "markersize": 5}
    return [
        Line2D([], [], color=INK, linewidth=1, linestyle=DASHED, label=words),
        Line2D([], [], **dots, label="crossed in that round"),
        Line2D([], [], **dots, markerfacecolor=PAPER, label="not crossed in it"),
    ]


def _colours(status: Status, **style: Any) -> list[Any]:
    """What the colours mean, those that occur."""
    from matplotlib.lines import Line2D

    known = status.truth is not None
    words = {
        GREEN: "shown, and truly controlled" if known else "shown to be controlled",
        RED: "shown, but not controlled",
        AMBER: "controlled, but not shown",
        GREY: "not controlled, and not shown" if known else "not shown to be controlled",
    }
    found = {_colour(status, unit) for unit in status.schedule.units}
    return [Line2D([], [], color=c, label=said, **style) for c, said in words.items() if c in found]


def _explain(figure: "Figure", handles: list[Any]) -> None:
    """A legend below the picture."""
    figure.legend(handles=handles, loc="outside lower left", ncols=3, frameon=False, fontsize=8, labelcolor=INK)


def _evidence(p_value: float) -> float:
    return float(-np.log10(max(p_value, 1e-300)) + 0.0)


def _colour(status: Status, unit: str) -> str:
    """Green: selected; red: wrongly; amber: controlled, and not selected; grey: the others."""
    shown, true = unit in status.selected, status.truth is None or unit in status.truth
    return (GREEN if true else RED) if shown else GREY if status.truth is None or not true else AMBER
