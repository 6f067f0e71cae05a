"""The picture of a study: the evidence of each unit over the rounds, and the line that it must cross.

Where evidence adds up over rounds it is a line a unit. Where every round counts by itself (rounds tested in batches, the
combinatorial rule, the paper's rule) it is a point for each unit that a round tested, joined by nothing.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from policyspace.configuration.round import Round
from policyspace.configuration.status import Status
from policyspace.errors import InputError
from policyspace.printable import printable
from policyspace.report.style import AMBER, DASHED, GREEN, GREY, INK, PAPER, QUIET, RED, bare, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NAMES = 16
"""More names beside the lines could not be read: those of the strongest are shown."""
APART = 0.052
"""Of the height of the picture: two names nearer than this would touch."""
WIDEST, COLUMN = 16.0, 0.95
"""Inches: of a picture of many rounds, and of a round in it, if names are to stand beside points."""


class Point(NamedTuple):
    """What one round alone says of a unit."""

    unit: str
    number: int  # of the round, from 1
    value: float  # −log₁₀ of its adjusted p-value
    crossed: bool


def draw_evidence_over_rounds(status: Status) -> "Figure":
    """How small the adjusted p-value of each unit has become, or how large its E; or how small it was in each round."""
    if not status.rounds:
        raise InputError("there is nothing to draw yet, found no rounds: report the first one.")
    schedule = status.schedule
    return _draw_adding_up(status) if schedule.sequential or schedule.combined else _draw_one_by_one(status)


def _draw_adding_up(status: Status) -> "Figure":
    """A line a unit, after so many episodes."""
    paths = evidence_paths(status)
    rounds, schedule = status.rounds, status.schedule
    height = 3.4 + 0.09 * min(len(paths), MOST_NAMES)
    figure = new_figure(height, f"{len(status.selected)} of {len(paths)} units shown to be controlled", width=8.2)
    axes = figure.add_subplot()
    needed = -np.log10(schedule.significance)
    axes.axhline(needed, color=INK, linewidth=1, linestyle=DASHED)
    for unit, points in paths.items():
        places = zip((0, 0.0), *points, strict=True)
        axes.plot(*places, "-o", color=_colour(status, unit), linewidth=1.6, markersize=3.5)
    top = max([needed * 1.15, *(value for points in paths.values() for _, value in points)])
    _scale(axes, top)
    axes.set_xlim(0, rounds[-1].total_episodes)
    ends = {unit: points[-1][1] for unit, points in paths.items() if points and points[-1][1] > 0}
    strongest = sorted((value, unit) for unit, value in ends.items())[-MOST_NAMES:]
    _name(axes, strongest, top, rounds[-1].total_episodes)
    axes.set_xticks([0, *(r.total_episodes for r in rounds)])
    axes.set_ylabel("log₁₀ E" if schedule.sequential else "−log₁₀ of the p-value of all rounds, by Holm")
    axes.set_xlabel(f"episodes reported, a mark after every test (dashed: δ = {schedule.significance:g})")
    return figure


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
        return [(int(episode), max(log_e, 0.0) / np.log(10.0)) for episode, log_e in row["looks"]]
    return [(total, _evidence(row["adjusted_p_value"]))]


def _draw_one_by_one(status: Status) -> "Figure":
    """A point for every unit that a round tested, beside the line that it must cross in that round."""
    rounds, schedule = status.rounds, status.schedule
    points = evidence_of_rounds(status)
    if not points:
        raise InputError(
            "there is nothing to draw, found no round that could be tested by itself: `study status` says why."
        )
    counts = f"{len(status.selected)} of {len(schedule.units)} units shown to be controlled"
    width = min(max(8.2, 1.2 + COLUMN * len(rounds)), WIDEST)
    figure = new_figure(
        4.0 + 0.09 * min(len(schedule.units), MOST_NAMES), f"{counts}; every round counts by itself", width
    )
    axes = figure.add_subplot()
    _draw_lines_to_cross(axes, rounds)
    for point in points:
        colour = _colour(status, point.unit)
        filled = colour if point.crossed else PAPER
        axes.plot(point.number, point.value, "o", color=colour, markerfacecolor=filled, markersize=5, clip_on=False)
    needed = max(-np.log10(r.significance) for r in rounds)
    top = max([needed * 1.15, *(point.value for point in points)])
    _scale(axes, top)
    axes.set_xlim(0.5, len(rounds) + 0.5)
    named = _named(points)
    for number in range(1, len(rounds) + 1):
        _name(axes, [(p.value, p.unit) for p in named if p.number == number][-MOST_NAMES:], top, number)
    step = 1 + len(rounds) // 40
    shown = rounds[::step]
    axes.set_xticks([r.number + 1 for r in shown], [f"{r.number + 1}\n{r.num_episodes}" for r in shown])
    axes.set_ylabel("−log₁₀ of the adjusted p-value of that round alone")
    axes.set_xlabel("round, and its episodes")
    _explain(figure, rounds)
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


def _explain(figure: "Figure", rounds: list[Round]) -> None:
    """A legend below the picture."""
    from matplotlib.lines import Line2D

    levels = sorted({r.significance for r in rounds})
    level = " to ".join(f"{one:.3g}" for one in dict.fromkeys((levels[0], levels[-1])))
    words = f"to be crossed by one round alone (its δ = {level})"
    dots: dict[str, Any] = {"linestyle": "", "marker": "o", "color": INK, "markersize": 5}
    handles = [
        Line2D([], [], color=INK, linewidth=1, linestyle=DASHED, label=words),
        Line2D([], [], **dots, label="crossed in that round"),
        Line2D([], [], **dots, markerfacecolor=PAPER, label="not crossed in it"),
    ]
    figure.legend(handles=handles, loc="outside lower left", ncols=3, frameon=False, fontsize=8, labelcolor=INK)


def _evidence(p_value: float) -> float:
    return float(-np.log10(max(p_value, 1e-300)) + 0.0)


def _colour(status: Status, unit: str) -> str:
    """Green: selected; red: wrongly; amber: controlled, and not selected; grey: the others."""
    shown, true = unit in status.selected, status.truth is None or unit in status.truth
    return (GREEN if true else RED) if shown else GREY if status.truth is None or not true else AMBER


def _scale(axes: "Axes", top: float) -> None:
    """Bare, and of a height at which weak evidence and strong evidence can both be read."""
    bare(axes)
    axes.set_yscale("function", functions=(lambda y: np.sqrt(np.maximum(y, 0)), np.square))
    axes.set_ylim(0, top * 1.05)


def _name(axes: "Axes", named: list[tuple[float, str]], top: float, place: float) -> None:
    """The names of units, the weakest first, right of their points, far enough apart to be read."""
    heights: list[float] = []
    for value, _ in named:
        heights.append(max(float(np.sqrt(value / (1.05 * top))), heights[-1] + APART if heights else 0.0))
    for below in range(len(heights)):  # from the top down, so that none stands above the picture
        heights[-1 - below] = min(heights[-1 - below], 1.0 - APART * below)
    for (_, unit), height in zip(named, heights, strict=True):
        axes.annotate(
            printable(unit), (place, height), xycoords=axes.get_xaxis_transform(), xytext=(6, 0),
            textcoords="offset points", va="center", fontsize=8, color=INK, annotation_clip=False, parse_math=False,
        )  # fmt: skip
