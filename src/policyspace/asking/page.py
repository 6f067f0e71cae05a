"""Picture and page of the answer of an agent that was asked."""

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from policyspace.asking.answer import WAYS, AskedAnswer
from policyspace.display import TextTable
from policyspace.errors import escaped, printable
from policyspace.report.figures import (
    AMBER,
    DARK_AMBER,
    GREEN,
    GREY,
    INK,
    QUIET,
    SERIES,
    bare,
    draw_effects_for_page,
    format_of,
    new_figure,
    save,
    shortened,
)
from policyspace.report.pages import (
    badge,
    banner,
    ending,
    figure_html,
    header,
    paragraph,
    section,
    settings_list,
    table,
)

if TYPE_CHECKING:
    from pathlib import Path

    import polars
    from matplotlib.axes import Axes

    from policyspace.asking.comparison import Audit

COLOURS = {"reacts": GREEN, "barely": AMBER, "never": GREY, "no evidence": GREY}
WORDS = {"reacts": GREEN, "barely": DARK_AMBER, "never": QUIET, "no evidence": QUIET}
BADGES = {
    "reacts": ("good", "✓"),
    "barely": ("fair", "◐"),
    "never": ("plain", "–"),
    "no evidence": ("plain", "?"),
}

MOST_ROWS = 60
"""Of inputs in a picture; of more, those with the largest effects."""

APART = 0.16
"""Between the two effects of an input, in rows."""


# -- The picture: both effects of every input, with their intervals.


def plot_effects(answer: AskedAnswer, path: "str | Path") -> None:
    """Save the picture; the suffix of the file names the format."""
    format_of(path)
    title = _title(answer)
    figure = new_figure(0.2 * len(title) + _height(answer), width=8.2)
    figure.suptitle("\n".join(title), x=0.012, ha="left", fontsize=11.5, color=INK, fontweight="bold", parse_math=False)
    _fill(figure.add_subplot(), answer, 36)
    save(figure, path)


def effect_axes(answer: AskedAnswer, axes: "Axes | None" = None) -> "Axes":
    """The same in given axes, or in those of a new figure of pyplot, which notebooks show."""
    if axes is None:
        from matplotlib import pyplot

        _, axes = pyplot.subplots(figsize=(8.2, 0.2 * len(_title(answer)) + _height(answer)), layout="constrained")
    _fill(axes, answer, 36)
    axes.set_title("\n".join(_title(answer)), loc="left", fontsize=11, color=INK, fontweight="bold", parse_math=False)
    return axes


def _title(answer: AskedAnswer) -> list[str]:
    return textwrap.wrap(printable(answer.sentence), 68, max_lines=4, placeholder=" …", break_on_hyphens=False)


def _height(answer: AskedAnswer) -> float:
    return 1.1 + 0.36 * min(len(answer.groups), MOST_ROWS)


def _fill(axes: "Axes", answer: AskedAnswer, width: int) -> None:
    """One row an input: a full point for any reading, an empty one for a likely reading, and their intervals."""
    sizes = [0.0 if group.effect_any is None else group.effect_any.estimate for group in answer.groups]
    largest = set(np.argsort(-np.array(sizes), kind="stable")[:MOST_ROWS].tolist())
    groups = [group for i, group in enumerate(answer.groups) if i in largest][::-1]
    both = "likely" in answer.options.redraw
    for place, group in enumerate(groups):
        effects = [(group.effect_any, APART if both else 0.0, True), (group.effect_likely, -APART, False)]
        for effect, shift, full in effects:
            if effect is None:
                continue
            colour, height = COLOURS[group.verdict], place + shift
            axes.plot([100 * effect.low, 100 * effect.high], [height, height], color=colour, linewidth=1.6, zorder=2)
            face = colour if full else "white"
            axes.plot(
                [100 * effect.estimate], [height], "o", color=colour, markerfacecolor=face, markersize=6, zorder=3,
                clip_on=False,
            )  # fmt: skip
        axes.annotate(
            group.verdict, (1, place), xycoords=("axes fraction", "data"), xytext=(8, 0), textcoords="offset points",
            va="center", fontsize=9, color=WORDS[group.verdict], annotation_clip=False,
        )  # fmt: skip
    axes.set_ylim(-0.6, len(groups) - 0.4)
    shown = [one for group in groups for one in (group.effect_any, group.effect_likely) if one is not None]
    axes.set_xlim(left=100 * min([0.0, *(one.low for one in shown)]))
    names = [shortened(printable(group.group), width) for group in groups]
    axes.set_yticks(range(len(groups)), names, fontsize=9.5, color=INK, parse_math=False)
    kinds = "full: any reading, empty: a likely reading; lines: 95 % intervals" if both else "lines: 95 % intervals"
    axes.set_xlabel(f"change of the action when the input is redrawn, %\n({kinds})", fontsize=9, color=INK)
    bare(axes, grid="x")
    axes.tick_params(axis="y", pad=7)
    if len(groups) < len(answer.groups):
        axes.set_title(f"the {len(groups)} largest of {len(answer.groups)} inputs", loc="left", fontsize=9, color=INK)


# -- The picture of a training: the effect of every input against the steps.


def training_axes(history: "polars.DataFrame", axes: "Axes | None" = None) -> "Axes":
    """One line an input in given axes, or in those of a new figure of pyplot; of many, those with the largest effects."""
    if axes is None:
        from matplotlib import pyplot

        _, axes = pyplot.subplots(figsize=(8.2, 4.2), layout="constrained")
    names = [name for name in history.columns if name != "step"]
    largest = sorted(names, key=lambda name: -max(history[name].drop_nulls().to_list() or [0.0]))[: len(SERIES)]
    for colour, name in zip(SERIES, [name for name in names if name in largest], strict=False):
        effects = [float("nan") if value is None else 100 * value for value in history[name].to_list()]
        label = printable(name)
        axes.plot(history["step"].to_list(), effects, "o-", color=colour, markersize=4, linewidth=1.6, label=label)
    axes.set(xlabel="steps of training", ylabel="change of the action when the input is redrawn, %")
    axes.set_ylim(bottom=0)
    bare(axes)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK)
    return axes


# -- The page: the sentence, the picture, the table, what is guaranteed, lags, and how to make it again.


PAIRED = {
    "any, %": "whoever sees one action, and guesses whether the input had its own reading or that of any other row, is "
    "right in (100 + this)/2 % of the cases: at most the share of choices that move; with its margin at 95 %",
    "proof": "the wealth of bets on which of two actions was given to which reading, and how many questions they took: an "
    "input that the agent does not react to hardly ever has a large one",
}
"""What columns mean where only actions come out."""

PLAYED = {
    "any, %": "the share of choices that a prediction of its actions sees moving when the input reads what it read in any "
    "other step, in the steps that it played: at most the share that does move; with its margin at 95 %",
    "likely, %": "the same with readings of steps that are near in the other inputs",
    "proof": "the wealth of bets on which reading was delivered, and how many steps they took: an input that the agent does "
    "not react to hardly ever has a large one",
}
"""What they mean where readings were drawn while it played."""


def asked_page(answer: AskedAnswer) -> Iterator[str]:
    """The parts of the page."""
    where = "" if answer.environment is None else f" in {answer.environment}"
    lead = f"{answer.agent}{where}, asked {WAYS[answer.way]} in {answer.num_states:,} states."
    yield header(answer.sentence, escaped(lead), "asked")
    yield from banner(escaped(f"Warning: {warning}") for warning in answer.warnings)
    figure = new_figure(_height(answer), width=4.8)
    _fill(figure.add_subplot(), answer, 24)
    words = "; ".join(
        f"{group.group}: {group.verdict}" + ("" if group.effect_any is None else f", {group.effect_any} %")
        for group in answer.groups[:30]
    )
    marks = {verdict: badge(*mark, verdict) for verdict, mark in BADGES.items()}
    meaning = {
        "any, %": "how far the action moves on average when the input gets the reading of any other row: the share of "
        "choices that move, or of actions without chance the share of their range; with its margin at 95 %",
        "likely, %": "the same with readings of rows that are near in the other inputs",
        "proof": "the row, its reading, the reading put in instead, and how far the action moves there; or how many "
        "questions moved nothing, and the largest share of states where one could",
    }
    meaning |= {
        "return lost": "the return that is missing when the input is redrawn in every step; with its margin at 95 %"
    }
    meaning |= {"inside": {}, "paired": PAIRED, "played": PLAYED}[answer.way]
    meaning = {name: words for name, words in meaning.items() if name in answer.table().columns}
    yield section(
        "Effect of every input",
        figure_html(figure, "effects", f"Effects with intervals. {words}."),
        table(answer.table(), "Every input, its verdict, its effects and what shows them", marks),
        f"<details><summary>What the columns mean</summary>{settings_list(meaning)}</details>",
    )
    yield section(
        "What is guaranteed", *(paragraph(note) for note in answer.notes() if not note.startswith("Warning:"))
    )
    if any(group.lags for group in answer.groups):
        columns = ("input", *(str(lag) for lag in range(answer.memory + 1)))
        rows = [(group.group, *(str(effect) for effect in group.lags)) for group in answer.groups if group.lags]
        lags = table(TextTable(columns, rows), "Effect of any reading so many steps later, %")
        yield section("How long a reading matters", lags)
    settings = {
        "way": answer.way,
        "redraw": ", ".join(answer.options.redraw),
        "significance": f"{answer.options.significance:g}",
        "questions": f"{answer.cost.questions:,}",
        "steps played": f"{answer.cost.steps:,}",
        "seed": str(answer.options.seed),
    }
    yield from ending(settings, answer.made_by, "The same agent, environment and settings give the same page.")


# -- The page of an audit: both tables and both pictures beside each other.

AGREEMENTS = {
    "found": ("good", "✓"),
    "no evidence, rightly": ("plain", "✓"),
    "missed": ("fair", "◐"),
    "false": ("bad", "✗"),
    "not shown": ("fair", "?"),
    "no evidence": ("plain", "–"),
    "not asked": ("plain", "?"),
}


def audit_page(found: "Audit") -> Iterator[str]:
    """The parts of the page."""
    lead = f"{found.asked.agent}, asked about its inputs, and watched in {found.watched.data.num_rows:,} rows."
    yield header(found.sentence, escaped(lead), "audit")
    marks = {name: badge(*mark, name) for name, mark in AGREEMENTS.items()}
    yield section("Watched and asked", table(found.table(), "Every input as asked and as watched", marks))
    figure = new_figure(_height(found.asked), width=4.8)
    _fill(figure.add_subplot(), found.asked, 24)
    words = "Effects of all inputs with intervals; the table has the numbers."
    yield section("Asked", paragraph(found.asked.sentence), figure_html(figure, "effects", words))
    drawn = figure_html(draw_effects_for_page(found.watched), "evidence", "Evidence of the log for every input.")
    yield section("Watched", paragraph(found.watched.sentence), drawn)
    yield section("What is guaranteed", *(paragraph(note) for note in found.notes()))
    settings = {"significance": f"{found.asked.options.significance:g}", "test": found.watched.test.name}
    yield from ending(settings, found.made_by, "The same agent, environment and settings give the same page.")
