"""ω over the rounds, as a curve where it is one number and as bars where it is several, above what was selected when."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from policyspace.configuration.round import Round
from policyspace.report.style import AGENT, FAINTER, GOAL, GREEN, GREY, INK, bare, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from policyspace.worlds.configuration_parameters import ConfigurationParameter

MOST_LANES = 24


def draw_omega(
    parameters: Sequence["ConfigurationParameter"],
    rounds: Sequence[Round],
    units: Sequence[str],
    truth: Sequence[str] | None,
    title: str,
) -> "Figure":
    """Above, the configuration of every round; below, a lane for each unit that ends where it was selected."""
    lanes = _most_telling(units, rounds[-1].selected)
    entries = _entries(parameters)
    top = 2.6 if len(entries) == 1 else 0.7 + 0.24 * len(entries)
    bottom = 0.8 + 0.3 * len(lanes)
    figure = new_figure(0.6 + top + bottom, title, width=max(7.2, 2.4 + 1.15 * len(rounds)))
    above, below = figure.subplots(2, 1, height_ratios=[top, bottom], sharex=True)
    if len(entries) == 1:
        _curve(above, parameters[0], rounds)
    else:
        _bars(above, entries, rounds)
    _lanes(below, lanes, rounds, truth)
    if len(lanes) < len(units):
        which = f"{len(lanes)} of {len(units)} units, those shown to be controlled before others"
        below.set_title(which, loc="left", fontsize=9, color=INK)
    return figure


def _most_telling(units: Sequence[str], selected: Sequence[str]) -> list[str]:
    """As many units as a picture can hold, those that were selected before others, in their own order."""
    chosen = sorted(units, key=lambda unit: unit not in selected)[:MOST_LANES]
    return [unit for unit in units if unit in chosen]


def _entries(parameters: Sequence["ConfigurationParameter"]) -> list[tuple[str, str, tuple[int, ...], float, float]]:
    """The numbers of ω one by one: (label, parameter, index, low, high)."""
    return [
        (p.name + "".join(f"[{i}]" for i in index), p.name, index, p.low, p.high)
        for p in parameters
        for index in np.ndindex(p.shape)
    ]


def _curve(axes: "Axes", parameter: "ConfigurationParameter", rounds: Sequence[Round]) -> None:
    """ω between its bounds, its number in bold where something was newly selected."""
    numbers = np.arange(1, len(rounds) + 1)
    values = np.array([float(np.ravel(r.configuration[parameter.name])[0]) for r in rounds])
    span = parameter.high - parameter.low
    axes.axhspan(parameter.low, parameter.high, color=FAINTER, lw=0)
    axes.plot(numbers, values, color=AGENT, lw=2.2, zorder=3)
    axes.plot(numbers, values, "o", color="white", mec=AGENT, mew=2.2, ms=9, zorder=4)
    for number, value, record in zip(numbers, values, rounds, strict=True):
        low = value < parameter.low + 0.55 * span
        axes.annotate(
            f"{value:.3g}", (number, value), xytext=(0, 11 if low else -11), textcoords="offset points", ha="center",
            va="bottom" if low else "top", fontsize=9.5, color=INK, zorder=5,
            fontweight="bold" if record.newly_selected else None,
        )  # fmt: skip
    axes.set_ylim(parameter.low - 0.04 * span, parameter.high + 0.04 * span)
    axes.set_ylabel(parameter.name.replace("_", " "), fontsize=10, color=INK)
    bare(axes, grid="y")


def _bars(axes: "Axes", entries: list[tuple[str, str, tuple[int, ...], float, float]], rounds: Any) -> None:
    """For every round a column of bars, one a number of ω, as long as the number lies above its lower bound."""
    for i, (_, name, index, low, high) in enumerate(entries):
        for number, record in enumerate(rounds, 1):
            value = float(np.asarray(record.configuration[name])[index])
            share = (value - low) / (high - low)
            axes.barh(i, 0.8, left=number - 0.4, height=0.62, color=FAINTER, zorder=1)
            axes.barh(i, 0.8 * share, left=number - 0.4, height=0.62, color=AGENT, alpha=0.85, zorder=2)
            axes.text(
                number + 0.38, i, f"{value:.3g}", fontsize=7.5, color=INK, ha="right", va="center", zorder=3,
                bbox={"facecolor": "white", "alpha": 0.65, "edgecolor": "none", "pad": 0.8},
            )  # fmt: skip
    axes.set_yticks(range(len(entries)), [label for label, *_ in entries], fontsize=8.5, color=INK)
    axes.set_ylim(len(entries) - 0.4, -0.6)
    bare(axes, grid="none")


def _lanes(axes: "Axes", units: Sequence[str], rounds: Sequence[Round], truth: Sequence[str] | None) -> None:
    """A grey line as long as a unit is open; a dot where it was selected, red if falsely."""
    for i, unit in enumerate(units):
        selected = next((r.number + 1 for r in rounds if unit in r.newly_selected), None)
        end = len(rounds) + 0.4 if selected is None else float(selected)
        axes.plot([0.6, end], [i, i], color=GREY, lw=3, solid_capstyle="round", zorder=2)
        if selected is not None:
            false = truth is not None and unit not in truth
            axes.plot(
                selected, i, "X" if false else "o", color=GOAL if false else GREEN, ms=9, mec="white", mew=1.2, zorder=3
            )
    labels = [unit if truth is None or unit not in truth else f"{unit} ✓" for unit in units]
    axes.set_yticks(range(len(units)), labels, fontsize=9, color=INK)
    axes.set_ylim(len(units) - 0.4, -0.6)
    axes.set_xlim(0.5, len(rounds) + 0.5)
    axes.set_xticks(range(1, len(rounds) + 1))
    known = "" if truth is None else "; ✓ truly controlled"
    axes.set_xlabel(f"round (a lane ends where its feature is shown to be controlled{known})", fontsize=9.5, color=INK)
    bare(axes, grid="x")
