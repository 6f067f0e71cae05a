"""The picture of many subjects: features × subjects, darker where there is more evidence, marked where used."""

from typing import TYPE_CHECKING

import numpy as np

from policyspace.answer import Identification
from policyspace.by_subject import BySubject
from policyspace.report.style import FAINTER, GREEN, INK, QUIET, bare, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_EVIDENCE = 10.0
"""−log₁₀ p from which a cell is darkest."""

MOST_COLUMNS = 120
"""Subjects that a picture can show; of more, the first."""


def draw_subjects(found: BySubject) -> "Figure":
    """One row a group, one column a subject, and apart from them all together."""
    from matplotlib.colors import LinearSegmentedColormap

    shown = list(found.answers.items())[:MOST_COLUMNS]
    columns: list[tuple[str, Identification | None]] = list(shown)
    if found.pooled is not None:
        columns += [("", None), ("all together", found.pooled)]
    groups = found.groups
    evidence = np.array([[_evidence(answer, group) for _, answer in columns] for group in groups])
    figure = new_figure(1.5 + 0.34 * len(groups), width=float(np.clip(2.6 + 0.34 * len(columns), 6.4, 16.0)))
    axes = figure.add_subplot()
    colours = LinearSegmentedColormap.from_list("evidence", [FAINTER, GREEN]).with_extremes(bad="white")
    image = axes.imshow(np.ma.masked_invalid(evidence), cmap=colours, vmin=0, vmax=MOST_EVIDENCE, aspect="auto")
    for x, (_, answer) in enumerate(columns):
        for y, group in enumerate(groups):
            if answer is not None and group in answer.core:
                dark = evidence[y, x] > MOST_EVIDENCE / 2
                axes.text(x, y, "●", ha="center", va="center", fontsize=8, color="white" if dark else INK)
    axes.set_yticks(range(len(groups)), groups, parse_math=False)
    names = [f"{name}" + ("" if answer is None or answer.promise else "*") for name, answer in columns]
    long = max(len(name) for name in names) > 3
    axes.set_xticks(
        range(len(columns)), names, rotation=45 if long else 0, ha="right" if long else "center", parse_math=False
    )
    bare(axes, grid="none")
    bar = figure.colorbar(image, ax=axes, shrink=0.9, pad=0.01)
    bar.set_ticks([0, 5, 10], labels=["1", "10⁻⁵", "≤ 10⁻¹⁰"])
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=8, colors=QUIET)
    bar.set_label("adjusted p-value", fontsize=8.5, color=QUIET)
    title = f"Which features each {found.by} uses (●)"
    axes.set_title(title, loc="left", fontsize=11.5, color=INK, fontweight="bold", parse_math=False)
    star = "; *: no promise" if any(answer is not None and not answer.promise for _, answer in columns) else ""
    again = ", and again for the last column" if found.pooled is not None else ""
    many = f"δ = {found.significance:g} for all of them together{again}{star}"
    axes.set_xlabel(many, fontsize=9, color=QUIET)
    return figure


def _evidence(answer: Identification | None, group: str) -> float:
    found = {test.group: test.adjusted_p_value for test in answer.tests} if answer is not None else {}
    return float(-np.log10(max(found[group], 1e-300))) if group in found else np.nan
