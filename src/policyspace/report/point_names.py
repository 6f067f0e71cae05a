"""Names beside points: far enough apart to be read, joined to their points by thin lines, shared by points that are one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from policyspace.printable import printable
from policyspace.report.style import GREY, INK, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NAMES = 16
"""More names beside a picture could not be read."""
APART = 0.055
"""Of the height of the picture: two names nearer than this would touch."""
ONE, FEW = 0.012, 3
"""Of the height of the picture: points nearer than this look like one; so many of them still have their own names."""

LEADER = {"arrowstyle": "-", "color": GREY, "linewidth": 0.7, "shrinkA": 3, "shrinkB": 3, "relpos": (0, 0.5)}
"""The thin line from a name to its point."""


class Spot(NamedTuple):
    """A point that is to have a name."""

    height: float  # as a share of the picture's
    unit: str
    place: tuple[float, float]  # where it is drawn


def shared(spots: Sequence[Spot], line: float) -> list[list[Spot]]:
    """The points that share a name, from below: those that look like one, unless they are few and there is room; and, if
    names are still too many, those farthest from the line that must be crossed.
    """
    found: list[list[Spot]] = []
    for spot in sorted(spots):
        if found and spot.height - found[-1][0].height < ONE:
            found[-1].append(spot)
        else:
            found.append([spot])
    alone = [part for some in found for part in ([[one] for one in some] if len(some) <= FEW else [some])]
    if len(alone) <= MOST_NAMES:
        return alone
    while len(found) > MOST_NAMES:
        outer = 0 if line - found[0][-1].height > found[-1][0].height - line else len(found) - 2
        found[outer : outer + 2] = [found[outer] + found[outer + 1]]
    return found


def spread(heights: Sequence[float], apart: float = APART) -> np.ndarray:
    """Heights in increasing order, moved as little as it takes to be `apart` from each other and inside the picture."""
    steps = apart * np.arange(len(heights))
    moved = isotonic_regression(np.asarray(heights) - steps).x
    return np.asarray(np.clip(moved, 0.0, max(0.0, 1.0 - apart * (len(heights) - 1))) + steps)


def name_points(axes: "Axes", named: Sequence[tuple[str, Sequence[Spot]]], right: float) -> None:
    """Write names, from below, to the right of their points, which thin lines lead to; `right` is where, in data."""
    heights = spread([(spots[0].height + spots[-1].height) / 2 for _, spots in named])
    for (words, spots), height in zip(named, heights, strict=True):
        for i, place in enumerate(dict.fromkeys(spot.place for spot in spots)):
            axes.annotate(
                "" if i else printable(words), place, xytext=(right, height), annotation_clip=False, parse_math=False,
                textcoords=axes.get_xaxis_transform(), va="center", fontsize=8, color=INK, zorder=4,
                bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.8}, arrowprops=LEADER,
            )  # fmt: skip
