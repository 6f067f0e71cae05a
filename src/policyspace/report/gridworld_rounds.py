"""The two grid worlds as panels: where episodes start, and the features that are still open (Appendix C)."""

from typing import TYPE_CHECKING, Any

import numpy as np

from policyspace.report.configuration_words import chances
from policyspace.report.style import AGENT, FAINT, GOAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"agent": AGENT, "goal": GOAL}


def gridworld_panel(
    axes: "Axes", configuration: dict[str, Any], open_: set[str], new: set[str], asked: set[str]
) -> None:
    """Half-cells tinted by the law of starts (blue) and goals (red); a line for each row or column that is still open.

    Lines of features that are newly selected in this very round are drawn as ghosts; a feature asked for alone has a halo.
    """
    size = len(configuration["row"])
    _empty(axes)
    _half_cells(axes, chances(configuration["row"]), chances(configuration["col"]), AGENT, upper=True)
    _half_cells(axes, chances(configuration["goal_row"]), chances(configuration["goal_col"]), GOAL, upper=False)
    for line in np.arange(-0.5, size):
        axes.plot([-0.5, size - 0.5], [line, line], color=FAINT, lw=0.8, zorder=1)
        axes.plot([line, line], [-0.5, size - 0.5], color=FAINT, lw=0.8, zorder=1)
    for name in open_ | new:
        who, along, level = _line_of(name)
        shift = -0.13 if who == "agent" else 0.13
        ends = [-0.36, size - 0.64]
        x, y = (ends, [level + shift] * 2) if along == "row" else ([level + shift] * 2, ends)
        _line(axes, x, y, COLOURS[who], name in new, name in asked)
    axes.set(xlim=(-0.56, size - 0.44), ylim=(size - 0.44, -0.56))


def continuous_gridworld_panel(
    axes: "Axes", configuration: dict[str, Any], open_: set[str], new: set[str], asked: set[str]
) -> None:
    """Clouds where the agent (blue) and the goal (red) start; a ring for each radial feature that is still open."""
    from matplotlib.patches import Circle

    _empty(axes)
    h = 2.5
    line = np.linspace(-h, h, 120)
    image = np.ones((len(line), len(line), 3))
    for colour, x, y, variance in ((AGENT, "x", "y", 0.2), (GOAL, "goal_x", "goal_y", 0.4)):
        along_x, along_y = (np.exp(-((line - float(configuration[n])) ** 2) / (2 * variance)) for n in (x, y))
        image = _tinted(image, np.outer(along_y, along_x) * 0.55, colour)
    axes.imshow(image, extent=(-h, h, -h, h), origin="lower", zorder=0, interpolation="none")
    for name in open_ | new:
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


def _line_of(name: str) -> tuple[str, str, int]:
    """`goal_row_3` → ("goal", "row", 3)."""
    *who, along, level = name.split("_")
    return "goal" if who else "agent", along, int(level)


def _line(axes: "Axes", x: Any, y: Any, colour: str, ghost: bool, asked: bool) -> None:
    if asked:
        axes.plot(x, y, color=colour, lw=8, alpha=0.22, solid_capstyle="round", zorder=2)
    if ghost:
        axes.plot(x, y, color=colour, lw=1.2, alpha=0.7, ls=(0, (1, 2.4)), dash_capstyle="round", zorder=3)
    else:
        axes.plot(x, y, color=colour, lw=2.1, alpha=0.9, solid_capstyle="round", zorder=3)
