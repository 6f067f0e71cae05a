"""The picture of an answer: the evidence for each group, beside the line that it must cross."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from policyspace.answer import Identification
from policyspace.errors import InputError
from policyspace.whole_file import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
COLOURS = {"controlled": "#0b6e4f", "undecided": "#d98e04", "no evidence": "#9aa5b1"}
INK, FAINT = "#1f2933", "#e4e7eb"


def plot_evidence(answer: Identification, path: str | Path) -> None:
    """Save the picture; the suffix of the file names the format."""
    suffix = Path(path).suffix.lower().lstrip(".")
    if suffix not in FORMATS:
        raise InputError(f"{path}: a picture is saved as .png, .svg or .pdf, found '.{suffix}'.")
    save(draw_evidence(answer), path)


def save(figure: "Figure", path: str | Path) -> None:
    """The same figure gives the same bytes: no dates, no random identifiers."""
    import matplotlib

    suffix = Path(path).suffix.lower().lstrip(".")
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix, {})
    with matplotlib.rc_context({"svg.hashsalt": "policyspace"}), replacing(path) as out:
        figure.savefig(out, format=suffix, dpi=160, metadata=dates)


def draw_evidence(answer: Identification) -> "Figure":
    """One bar a group, as long as −log₁₀ of its adjusted p-value; what passes the line is controlled."""
    from matplotlib.figure import Figure

    tests = answer.tests[::-1]
    significance = float(answer.settings["significance"])
    evidence = np.array([min(-np.log10(max(test.adjusted_p_value, 1e-300)), 300.0) for test in tests])
    figure = Figure(figsize=(8.2, 1.75 + 0.36 * len(tests)), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    positions = np.arange(len(tests))
    colours = [COLOURS[test.verdict] for test in tests]
    axes.barh(positions, evidence, height=0.62, color=colours, zorder=2)
    threshold = -np.log10(significance)
    axes.axvline(threshold, color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=3)
    # Short bars and long ones must both be readable: the root of the evidence is proportional to the effect.
    axes.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
    right = max(float(evidence.max(initial=0.0)) * 1.6, threshold * 3)
    axes.set_xlim(0, right)
    for position, test, length in zip(positions, tests, evidence, strict=True):
        axes.annotate(
            _label(test.adjusted_p_value, test.verdict), (length, position), xytext=(7, 0), textcoords="offset points",
            va="center", fontsize=9, color=INK, zorder=4, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
        )  # fmt: skip
    axes.scatter(evidence, positions, s=26, color=colours, zorder=3, clip_on=False)
    axes.set_yticks(positions, [test.group for test in tests], fontsize=10, color=INK)
    ticks = [t for t in (0, 0.3, 1.3, 3, 10, 30, 100, 300) if t < right]
    axes.set_xticks(ticks, [_tick(t) for t in ticks], fontsize=8.5)
    axes.set_xlabel(
        f"adjusted p-value (evidence grows to the right; dashed: δ = {significance:g})", fontsize=9, color=INK
    )
    axes.xaxis.grid(color=FAINT, zorder=0)
    axes.tick_params(length=0, colors=INK)
    for side in ("top", "right", "bottom", "left"):
        axes.spines[side].set_visible(False)
    axes.set_title(_wrapped(answer.sentence), loc="left", fontsize=11.5, color=INK, pad=12, fontweight="bold")
    return figure


def _label(p: float, verdict: str) -> str:
    value = f"p = {p:.2g}" if p > 1e-300 else "p < 1e-300"
    return f"{verdict}, {value}"


def _tick(evidence: float) -> str:
    p = 10.0**-evidence
    return f"{p:.2g}" if p > 1e-3 else f"$10^{{-{evidence:g}}}$"


def _wrapped(text: str, width: int = 84) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, width))
