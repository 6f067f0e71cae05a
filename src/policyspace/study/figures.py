"""Figures of a study."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from policyspace.errors import InputError, number_of
from policyspace.report.figures import (
    AGENT,
    AMBER,
    DASHED,
    FAINT,
    FAINTER,
    GOAL,
    GREEN,
    GREY,
    INK,
    MOST_NAMES,
    PAPER,
    QUIET,
    RED,
    Spot,
    bare,
    name_points,
    new_figure,
    shared,
    shortened,
)
from policyspace.study.records import Round, Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from policyspace.worlds.base import ConfigurationParameter


# -- The picture of a study: the evidence of each unit over the rounds, and the line that it must cross.

WIDEST, MARGINS, GAP, LETTER = 16.0, 1.2, 0.45, 0.068
"""Inches: of a picture of many rounds, beside its rounds, between the names of two rounds, and of a letter of a name."""
LONGEST, SHORTEST = 28, 6
"""Letters of a name; where rounds stand too close for the shortest, there are none."""

ON_TOP = (RED, GREEN, AMBER, GREY)
"""Where lines of several colours are one, the first of these is seen."""


class EvidencePoint(NamedTuple):
    """What one round alone says of a unit."""

    unit: str
    number: int  # of the round, from 1
    value: float  # −log₁₀ of its adjusted p-value
    crossed: bool


class AxisScale(NamedTuple):
    """From the least evidence to the most, by its root, so that weak and strong evidence can both be read."""

    low: float
    high: float

    @classmethod
    def of(cls, axes: "Axes", values: Sequence[float], needed: float) -> "AxisScale":
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
    scale = AxisScale.of(axes, [value for points in paths.values() for _, value in points], needed)
    for unit, points in paths.items():
        if points[-1][0] < end:  # decided before the end, and not followed any more
            axes.plot([points[-1][0], end], [points[-1][1]] * 2, color=_colour(status, unit), linewidth=0.7)
            axes.plot(*points[-1], "o", color=_colour(status, unit), markersize=4.5)
    axes.set_xlim(0, end)
    ends = {unit: points[-1][1] for unit, points in paths.items()}
    spots = [Spot(scale.height(value), unit, (end, value)) for unit, value in ends.items()]
    named = [(_words(some, LONGEST, schedule.sequential, needed), some) for some in shared(spots, scale.height(needed))]
    name_points(axes, named, 1.045 * end)
    ticks = [end]
    for tick in (*(r.total_episodes for r in rounds[-2::-1]), 0):
        if ticks[-1] - tick >= 0.06 * end:
            ticks.append(tick)
    axes.set_xticks(ticks[::-1])
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
                if "looks" in row:
                    looks = [(int(episode), float(log_e / np.log(10.0))) for episode, log_e in row["looks"]]
                else:
                    looks = [(record.total_episodes, _evidence(row["adjusted_p_value"]))]
                paths[row["group"]] += looks
    return paths


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
    scale = AxisScale.of(axes, [point.value for point in points], needed)
    axes.set_xlim(0.5, len(rounds) + 0.5)
    column = (width - MARGINS) / len(rounds)
    letters = min(int((column - GAP) / LETTER), LONGEST)
    for record in rounds if letters >= SHORTEST else ():
        line, number = float(-np.log10(record.significance)), record.number + 1
        spots = [Spot(scale.height(p.value), p.unit, (number, p.value)) for p in named if p.number == number]
        some = []
        for one in shared(spots, scale.height(line)):
            names = ", ".join(spot.unit for spot in one)
            readable = len(one) == 1 or len(names) <= letters
            some.append((shortened(names, letters) if readable else f"{len(one)} units", one))
        name_points(axes, some, number + 0.2 / column)
    step = 1 + len(rounds) // 40
    shown = rounds[::step]
    axes.set_xticks([r.number + 1 for r in shown], [f"{r.number + 1}\n{r.num_episodes}" for r in shown])
    axes.set_ylabel("−log₁₀ of the adjusted p-value of that round alone")
    left_out = "" if letters >= SHORTEST else " (too many for names: `policyspace study status` says them)"
    axes.set_xlabel(f"round, and its episodes{left_out}")
    _explain(figure, [*_marks(rounds), *_colours(status, linestyle="", marker="s", markersize=6)])
    return figure


def evidence_of_rounds(status: Status) -> list[EvidencePoint]:
    """What each round by itself says of the units that it tested: those selected before need not be among them."""
    return [
        EvidencePoint(row["group"], record.number + 1, _evidence(p), p <= record.significance)
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


def _named(points: list[EvidencePoint]) -> list[EvidencePoint]:
    """The points with a name beside them: all that crossed, and the highest of each unit that never did, weakest first."""
    crossed = [point for point in points if point.crossed]
    highest: dict[str, EvidencePoint] = {}
    for point in points:
        highest[point.unit] = max(highest.get(point.unit, point), point, key=lambda one: one.value)
    never = highest.keys() - {point.unit for point in crossed}
    found = [*crossed, *(point for unit, point in highest.items() if unit in never and point.value > 0)]
    return sorted(found, key=lambda point: (point.value, point.unit))


def _marks(rounds: list[Round]) -> list[Any]:
    """What the line and the points mean."""
    from matplotlib.lines import Line2D

    levels = sorted({r.significance for r in rounds})
    level = " to ".join(f"{one:.3g}" for one in dict.fromkeys((levels[0], levels[-1])))
    words = f"to be crossed by one round alone (its δ = {level})"
    dot = partial(Line2D, [], [], linestyle="", marker="o", color=INK, markersize=5)
    return [
        Line2D([], [], color=INK, linewidth=1, linestyle=DASHED, label=words),
        dot(label="crossed in that round"),
        dot(markerfacecolor=PAPER, label="not crossed in it"),
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


# -- ω over the rounds, as a curve where it is one number and as bars where it is several, above what was selected when.

MOST_LANES = 24


def draw_omega(
    parameters: Sequence["ConfigurationParameter"],
    rounds: Sequence[Round],
    units: Sequence[str],
    truth: Sequence[str] | None,
    title: str,
) -> "Figure":
    """Above, the configuration of every round; below, a lane for each unit that ends where it was selected."""
    chosen = sorted(units, key=lambda unit: unit not in rounds[-1].selected)[:MOST_LANES]
    lanes = [unit for unit in units if unit in chosen]
    entries = [
        (p.name + "".join(f"[{i}]" for i in index), p.name, index, p.low, p.high)
        for p in parameters
        for index in np.ndindex(p.shape)
    ]
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
        which = f"{len(lanes)} of {len(units)} groups, those shown to be controlled before others"
        below.set_title(which, loc="left", fontsize=9, color=INK)
    return figure


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


# -- A configuration in words, for the person who sets up the world.


def configuration_in_words(world: str, configuration: Mapping[str, Any]) -> str:
    """One line: what the configuration of a world, given by its name, makes likely, or its numbers."""
    describe = {"gridworld": _gridworld, "continuous-gridworld": _continuous_gridworld}.get(world, _numbers)
    return describe(configuration)


def is_flat(world: str, configuration: Mapping[str, Any]) -> bool:
    """Whether this is the configuration that plays no favourites, in a world that has such a one."""
    return world == "gridworld" and all(np.ptp(logits) == 0 for logits in configuration.values())


def chances(logits: Any) -> np.ndarray:
    """The softmax of logits."""
    odds = np.exp(np.asarray(logits) - np.max(logits))
    return odds / odds.sum()


def _gridworld(configuration: Mapping[str, Any]) -> str:
    row, col, goal_row, goal_col = (chances(configuration[n]) for n in ("row", "col", "goal_row", "goal_col"))
    return (
        f"the agent starts in {_levels('row', row)} and {_levels('column', col)}; "
        f"the goal lies in {_levels('row', goal_row)} and {_levels('column', goal_col)}"
    )


def _levels(what: str, chance: np.ndarray) -> str:
    """The levels that are likelier than chance, likeliest first."""
    if np.ptp(chance) < 0.5 / len(chance):
        return f"any {what}"
    likely = [int(level) for level in np.argsort(-chance, kind="stable") if chance[level] > 1 / len(chance)]
    if len(likely) == 1:
        return f"{what} {likely[0]} ({chance[likely[0]]:.0%})"
    names = ", ".join(str(level) for level in likely[:-1]) + f" or {likely[-1]}"
    return f"{what} {names} ({chance[likely].sum():.0%})"


def _continuous_gridworld(configuration: Mapping[str, Any]) -> str:
    x, y, goal_x, goal_y = (f"{float(configuration[n]):.2f}".replace("-", "−") for n in ("x", "y", "goal_x", "goal_y"))
    return f"the agent starts around ({x}, {y}); the goal lies around ({goal_x}, {goal_y})"


def _numbers(configuration: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_number(value)}" for name, value in configuration.items())


def _number(value: Any) -> str:
    array = np.asarray(value)
    return f"{float(array):.4g}" if array.ndim == 0 else "[" + ", ".join(_number(part) for part in array) + "]"


# -- The two grid worlds as panels: where episodes start, and the features that are still open (Appendix C).

COLOURS = {"agent": AGENT, "goal": GOAL}


def gridworld_panel(
    axes: "Axes", configuration: Mapping[str, ArrayLike], open_: set[str], new: set[str], asked: set[str]
) -> None:
    """Half-cells tinted by the law of starts (blue) and goals (red); a line for each row or column that is still open.

    Lines of features that are newly selected in this very round are drawn as ghosts; a feature asked for alone has a halo.
    """
    size = np.size(configuration["row"])
    _empty(axes)
    _half_cells(axes, chances(configuration["row"]), chances(configuration["col"]), AGENT, upper=True)
    _half_cells(axes, chances(configuration["goal_row"]), chances(configuration["goal_col"]), GOAL, upper=False)
    for line in np.arange(-0.5, size):
        axes.plot([-0.5, size - 0.5], [line, line], color=FAINT, lw=0.8, zorder=1)
        axes.plot([line, line], [-0.5, size - 0.5], color=FAINT, lw=0.8, zorder=1)
    for name in sorted(open_ | new):
        *of_goal, along, number = name.split("_")  # row_3, or goal_row_3
        level, shift = int(number), 0.13 if of_goal else -0.13
        ends = [-0.36, size - 0.64]
        x, y = (ends, [level + shift] * 2) if along == "row" else ([level + shift] * 2, ends)
        colour = GOAL if of_goal else AGENT
        if name in asked:
            axes.plot(x, y, color=colour, lw=8, alpha=0.22, solid_capstyle="round", zorder=2)
        if name in new:
            axes.plot(x, y, color=colour, lw=1.2, alpha=0.7, ls=(0, (1, 2.4)), dash_capstyle="round", zorder=3)
        else:
            axes.plot(x, y, color=colour, lw=2.1, alpha=0.9, solid_capstyle="round", zorder=3)
    axes.set(xlim=(-0.56, size - 0.44), ylim=(size - 0.44, -0.56))


def continuous_gridworld_panel(
    axes: "Axes", configuration: Mapping[str, ArrayLike], open_: set[str], new: set[str], asked: set[str]
) -> None:
    """Clouds where the agent (blue) and the goal (red) start; a ring for each radial feature that is still open."""
    from matplotlib.patches import Circle

    _empty(axes)
    h = 2.5
    line = np.linspace(-h, h, 120)
    image = np.ones((len(line), len(line), 3))
    for colour, x, y, variance in ((AGENT, "x", "y", 0.2), (GOAL, "goal_x", "goal_y", 0.4)):
        along_x, along_y = (np.exp(-((line - np.asarray(configuration[n])) ** 2) / (2 * variance)) for n in (x, y))
        image = _tinted(image, np.outer(along_y, along_x) * 0.55, colour)
    axes.imshow(image, extent=(-h, h, -h, h), origin="lower", zorder=0, interpolation="none")
    for name in sorted(open_ | new):
        who, _, i, j = name.split("_")
        ghost = name in new
        style = {"lw": 1.0, "ls": (0, (1.2, 2)), "alpha": 0.75} if ghost else {"lw": 1.9}
        radius, centre = (0.36 if who == "agent" else 0.21), (int(i) - 2.0, int(j) - 2.0)
        if name in asked:
            axes.add_patch(Circle(centre, radius + 0.08, fc="none", ec=COLOURS[who], lw=4, alpha=0.25, zorder=2))
        axes.add_patch(Circle(centre, radius, fc="none", ec=COLOURS[who], zorder=3, **style))
    axes.set(xlim=(-h, h), ylim=(-h, h))
    for side in axes.spines.values():
        side.set(visible=True, color=FAINT, linewidth=1)


def _empty(axes: "Axes") -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.set_aspect("equal")


def _half_cells(axes: "Axes", rows: np.ndarray, cols: np.ndarray, colour: str, upper: bool) -> None:
    """The upper left or the lower right of every cell, the darker the likelier; the root keeps small chances visible."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgba

    third = (-0.5, -0.5) if upper else (0.5, 0.5)
    corners = np.array([(-0.5, 0.5), (0.5, -0.5), third])
    cells = [(j, i) for i in range(len(rows)) for j in range(len(cols))]
    tints = [to_rgba(colour, 0.85 * float(np.sqrt(rows[i] * cols[j]))) for j, i in cells]
    axes.add_collection(PolyCollection([corners + cell for cell in cells], facecolors=tints, linewidths=0, zorder=0))


def _tinted(image: np.ndarray, chance: np.ndarray, colour: str) -> np.ndarray:
    """Colour laid over a picture like ink: the square root keeps small chances visible."""
    ink = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    mixed: np.ndarray = image * (1 - 0.8 * np.sqrt(chance)[..., None] * (1 - ink))
    return mixed
