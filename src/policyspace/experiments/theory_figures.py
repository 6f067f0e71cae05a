"""The figures of `theory`: looseness, errors against pairs, power foretold against power seen."""

from typing import TYPE_CHECKING

import numpy as np

from policyspace.experiments.rates import FAINT, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from policyspace.experiments.theory_panels import Looseness, Size

COLOURS = {"gaussian": "#0b6e4f", "boltzmann": "#d98e04"}


def draw_looseness(found: "list[Looseness]", quantities: dict[str, str], families: dict[str, str]) -> "Figure":
    """How many times above the quantile each bound lies, on a logarithmic axis; 1 is a bound that is just right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.4), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    for family, title in families.items():
        for n, marker in zip(sorted({f.num_pairs for f in found}), ("o", "D", "s", "^"), strict=False):
            own = [f for f in found if f.family == family and f.num_pairs == n]
            places = [list(quantities).index(f.quantity) for f in own]
            label = f"{title}, {n} pairs"
            axes.plot([f.factor for f in own], places, marker, color=COLOURS[family], label=label, alpha=0.85)
    axes.axvline(1, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_xscale("log")
    axes.set_yticks(range(len(quantities)), list(quantities.values()))
    axes.set_ylim(len(quantities) - 0.5, -0.5)
    _finish(axes, "Bounds of Theorem 4.1 against simulation", "bound divided by the quantile that it bounds", "")
    axes.legend(frameon=False, fontsize=8.5)
    return figure


def draw_sizes(sizes: "list[Size]", families: dict[str, str]) -> "Figure":
    """P(Î ≠ I*) against the number of pairs: simulated, foretold, and where Theorem 4.2 begins to prove it small."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    across = axes.get_xaxis_transform()
    for family, title in families.items():
        own, colour = [s for s in sizes if s.family == family], COLOURS[family]
        if not own:
            continue
        n, seen = np.array([s.num_pairs for s in own]), np.array([s.wrong.value for s in own])
        low, high = np.array([s.wrong.interval for s in own]).T
        axes.errorbar(n, seen, [seen - low, high - seen], fmt="o", color=colour, label=f"{title} (line: foretold)")
        axes.plot(n, [s.foretold for s in own], color=colour, linewidth=1.5)
        proven = own[0].proven_pairs
        axes.axvline(proven, color=colour, linewidth=2, linestyle=":")
        axes.text(proven / 1.5, 0.5, f"{title}: proven from here on", color=colour, rotation=90, va="center", ha="right",
                  fontsize=9, transform=across)  # fmt: skip
    axes.axhline(sizes[0].wrong.nominal, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    _finish(axes, "When Rule 2 finds exactly what is controlled", "pairs (dashed: δ)", "P(Î ≠ I*)")
    axes.legend(frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(0.18, 1))
    return figure


def draw_powers(sizes: "list[Size]", families: dict[str, str]) -> "Figure":
    """How often each feature was found against how often it was foretold to be; on the line planning is exact."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 4.6), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    for family, title in families.items():
        rows = [(rate, p) for s in sizes if s.family == family for rate, p in s.found.values()]
        if not rows:
            continue
        seen, foretold = np.array([rate.value for rate, _ in rows]), np.array([p for _, p in rows])
        low, high = np.array([rate.interval for rate, _ in rows]).T
        whiskers = [np.maximum(seen - low, 0), np.maximum(high - seen, 0)]
        axes.errorbar(foretold, seen, whiskers, fmt="o", markersize=5, color=COLOURS[family], label=title, alpha=0.8)
    _finish(axes, "Power, planned and seen", "foretold share", "share of data sets in which it was found")
    axes.legend(frameon=False, fontsize=8.5)
    return figure


def _finish(axes: "Axes", title: str, across: str, up: str) -> None:
    axes.set_title(title, loc="left", fontweight="bold", fontsize=11)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(color=FAINT)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
