"""The picture of a study: the evidence of each unit over the rounds, and the line that it must cross."""

from typing import TYPE_CHECKING, Any

import numpy as np

from policyspace.configuration.status import Status
from policyspace.errors import InputError
from policyspace.printable import printable
from policyspace.report.style import AMBER, DASHED, GREEN, GREY, INK, RED, bare, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NAMES = 16
"""More names beside the lines could not be read: those of the strongest are shown."""
APART = 0.052
"""Of the height of the picture: two names nearer than this would touch."""


def draw_evidence_over_rounds(status: Status) -> "Figure":
    """A line a unit: how small its adjusted p-value has become, or how large its E, after so many episodes."""
    paths = evidence_paths(status)
    rounds, schedule = status.rounds, status.schedule
    height = 3.4 + 0.09 * min(len(paths), MOST_NAMES)
    figure = new_figure(height, f"{len(status.selected)} of {len(paths)} units shown to be controlled", width=8.2)
    axes = figure.add_subplot()
    bare(axes)
    needed = -np.log10(schedule.significance)
    axes.axhline(needed, color=INK, linewidth=1, linestyle=DASHED)
    for unit, points in paths.items():
        shown, true = unit in status.selected, status.truth is None or unit in status.truth
        colour = (GREEN if true else RED) if shown else GREY if status.truth is None or not true else AMBER
        axes.plot(*zip((0, 0.0), *points, strict=True), "-o", color=colour, linewidth=1.6, markersize=3.5)
    top = max([needed * 1.15, *(value for points in paths.values() for _, value in points)])
    # Weak evidence and strong evidence must both be readable.
    axes.set_yscale("function", functions=(lambda y: np.sqrt(np.maximum(y, 0)), np.square))
    axes.set_ylim(0, top * 1.05)
    axes.set_xlim(0, rounds[-1].total_episodes)
    _name_ends(axes, paths, top)
    axes.set_xticks([0, *(r.total_episodes for r in rounds)])
    what = "log₁₀ E" if schedule.sequential else "−log₁₀ of the p-value of all rounds, by Holm"
    axes.set_ylabel(what)
    axes.set_xlabel(f"episodes reported, a mark after every test (dashed: δ = {schedule.significance:g})")
    return figure


def evidence_paths(status: Status) -> dict[str, list[tuple[int, float]]]:
    """(episodes, evidence on the scale of −log₁₀ δ) of every unit after every look."""
    schedule = status.schedule
    if not status.rounds:
        raise InputError("there is nothing to draw yet, found no rounds: report the first one.")
    if not (schedule.sequential or schedule.combined):
        raise InputError(
            "evidence is drawn where it adds up over rounds, found rounds that are tested one by one: draw their "
            "configurations with --rounds."
        )
    paths: dict[str, list[tuple[int, float]]] = {unit: [] for unit in schedule.units}
    for record in status.rounds:
        for row in record.tests:
            if row["group"] in paths:
                paths[row["group"]] += _points(row, record.total_episodes)
    return paths


def _points(row: dict[str, Any], total: int) -> list[tuple[int, float]]:
    if "looks" in row:
        return [(int(episode), max(log_e, 0.0) / np.log(10.0)) for episode, log_e in row["looks"]]
    return [(total, -np.log10(max(row["adjusted_p_value"], 1e-300)) + 0.0)]


def _name_ends(axes: "Axes", paths: dict[str, list[tuple[int, float]]], top: float) -> None:
    """The names of the strongest units right of their last points, far enough apart to be read."""
    ends = sorted((points[-1][1], unit) for unit, points in paths.items() if points and points[-1][1] > 0)[-MOST_NAMES:]
    heights: list[float] = []
    for value, _ in ends:
        heights.append(max(float(np.sqrt(value / (1.05 * top))), heights[-1] + APART if heights else 0.0))
    for below in range(len(heights)):  # from the top down, so that none stands above the picture
        heights[-1 - below] = min(heights[-1 - below], 1.0 - APART * below)
    for (_, unit), height in zip(ends, heights, strict=True):
        axes.annotate(
            printable(unit), (1, height), xycoords="axes fraction", xytext=(6, 0), textcoords="offset points", va="center",
            fontsize=8, color=INK, annotation_clip=False, parse_math=False,
        )  # fmt: skip
