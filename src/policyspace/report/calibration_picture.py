"""The picture of a policy's calibration: how often labels were chosen, against how often they were expected."""

from typing import TYPE_CHECKING

import numpy as np

from policyspace.errors import InputError
from policyspace.inference.coefficients import Coefficients
from policyspace.report.style import DASHED, GREY, INK, SERIES, new_plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_calibration(found: Coefficients) -> "Figure":
    """One point a bin of about equal size, with the range that chance alone gives in 95 of 100 bins."""
    if not found.calibration:
        raise InputError("calibration is about choices among labels, found amounts: leave --calibration out.")
    figure, axes = new_plot(4.6, "Are choices as frequent as the fitted policy says?", width=5.2)
    axes.plot([0, 1], [0, 1], color=GREY, linestyle=DASHED, linewidth=1, zorder=1)
    labels = list(dict.fromkeys(one.label for one in found.calibration))
    for number, label in enumerate(labels[: len(SERIES)]):
        bins = [one for one in found.calibration if one.label == label]
        x, y = np.array([one.expected for one in bins]), np.array([one.chosen for one in bins])
        half = 1.96 * np.sqrt(x * (1 - x) / np.array([one.weight for one in bins]))
        colour = SERIES[number]
        axes.vlines(
            x, np.maximum(x - half, 0), np.minimum(x + half, 1), color=colour, alpha=0.25, linewidth=5, zorder=2
        )
        axes.plot(x, y, "o", color=colour, markersize=5, label=label, zorder=3)
    axes.set(
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        xlabel="expected probability",
        ylabel="share of rows where it was chosen",
    )
    axes.set_aspect("equal")
    axes.legend(frameon=False, fontsize=9, labelcolor=INK, loc="upper left")
    return figure
