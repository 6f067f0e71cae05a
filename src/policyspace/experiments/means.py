"""The mean of independent runs, its interval, and axes on which such means look alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import t

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT = "#1f2933", "#e4e7eb"


@dataclass(frozen=True)
class Mean:
    """A mean with the half-width of its interval, usually of 95 %, by Student's law; none from a single run."""

    value: float
    margin: float | None
    num_runs: int

    @property
    def low(self) -> float:
        """The lower end; −∞ where one run says nothing about the spread."""
        return self.value - self.margin if self.margin is not None else -np.inf

    @property
    def high(self) -> float:
        """The upper end."""
        return self.value + self.margin if self.margin is not None else np.inf

    @property
    def words(self) -> str:
        """The mean ± its margin."""
        margin = "" if self.margin is None else f" ± {self.margin:.2f}"
        return f"{self.value:.2f}{margin}".replace("-", "−")

    @property
    def numbers(self) -> dict[str, float | int | None]:
        """As plain data."""
        return {"mean": self.value, "margin": self.margin, "runs": self.num_runs}


def mean_of(values: Sequence[float], confidence: float = 0.95) -> Mean:
    """x̄ ± t·s/√m with Student's t of m − 1 degrees of freedom."""
    m = len(values)
    margin = float(t.ppf(0.5 + confidence / 2, m - 1) * np.std(values, ddof=1) / np.sqrt(m)) if m > 1 else None
    return Mean(float(np.mean(values)), margin, m)


def one_axes(title: str, size: tuple[float, float] = (7.2, 4.2)) -> "tuple[Figure, Axes]":
    """A figure of one plot with its title on the left."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontweight="bold", fontsize=11)
    plain(axes)
    return figure, axes


def plain(axes: "Axes") -> None:
    """A light grid and no frame."""
    axes.grid(color=FAINT)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=INK, labelsize=9)
    axes.spines[:].set_visible(False)
