"""The style of figures; figures of answers and plans."""

import re
import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from policyspace.answer import GroupResult, Identification, SubjectEffects
from policyspace.errors import InputError, nearest, printable
from policyspace.identification import BySubject
from policyspace.inference.coefficients import CoefficientTable
from policyspace.planning import GroupPlan, SampleSizePlan
from policyspace.safe_io import replacing
from policyspace.theory import Setting, power_bound

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from policyspace.inference.effects import EffectCurve


# -- The one style of all pictures: colours, letters, bare axes, and files that are the same bytes every time.

INK, QUIET = "#1f2933", "#52606d"
"""Of words, and of those that are said in passing."""
GREY, FAINT, FAINTER = "#9aa5b1", "#e4e7eb", "#f1f4f6"
"""Of what is open or not decided, of lines behind the data, of areas behind them."""
GREEN, BLUE, RED, AMBER, PURPLE = "#0b6e4f", "#2f80c2", "#c0392b", "#d98e04", "#8e5ea2"
DARK_AMBER = "#8f5d00"
"""Amber that can be read as a word on white."""
SERIES = (GREEN, "#1d4e89", AMBER, "#b23a48", "#6b4e9b", "#3a8fb7", "#7a6c5d", "#4f772d")
"""For as many lines as one plot can show."""
AGENT, GOAL = "#1f5fa8", "#c8322b"
"""Of the agent and of its goal in pictures of a world."""

PAPER = "#ffffff"
DARK = {
    PAPER: "#1a2129", INK: "#e6eaef", QUIET: "#aab5c0", GREY: "#77838f", FAINT: "#313b46", FAINTER: "#262f38",
    GREEN: "#4cc393", BLUE: "#6cb0ea", RED: "#f0817a", AMBER: "#e0a82e", PURPLE: "#c39bdb", DARK_AMBER: "#e8b64f",
    "#1d4e89": "#7fb0ea", "#b23a48": "#f08a94", "#6b4e9b": "#b79ae6", "#3a8fb7": "#62b8e0", "#7a6c5d": "#b9a994",
    "#4f772d": "#93c46a", AGENT: "#6aa5ec", GOAL: "#f07e76",
}  # fmt: skip
"""What every colour is on a page that is read in the dark."""

DASHED = (0, (4, 3))
WIDTH = 7.2
"""Of a figure on a page, in inches."""
FORMATS = ("png", "svg", "pdf")
_POWER = r"[-−]?(?:[\d.]+\\times)?\d+\^\{[-−]?\d+\}"
FORMULA = re.compile(rf"\$(?:{_POWER}|\\mathdefault\{{{_POWER}\}})\$")
"""The only ones in our pictures, beside those of WRITTEN; any other dollar is a part of a name."""
WRITTEN = {"ℓ̂(θ*) − ℓ̂(θ̂)": r"$\mathdefault{\hat{ℓ}(θ\!*\!) − \hat{ℓ}(\hat{θ})}$"}
"""Words of ours as formulas, where the hat of a letter would be drawn into it."""


def new_figure(height: float, title: str = "", width: float = WIDTH) -> "Figure":
    """An empty figure, its title on the left."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor=PAPER, layout="constrained")
    if title:
        figure.suptitle(title, x=0.012, ha="left", fontweight="bold", fontsize=11, color=INK)
    return figure


def new_plot(height: float, title: str, width: float = WIDTH) -> "tuple[Figure, Axes]":
    """A figure of one plot with its title on the left."""
    figure = new_figure(height, title, width)
    axes = figure.add_subplot()
    bare(axes)
    return figure, axes


def bare(axes: "Axes", grid: str = "both") -> None:
    """No frame, no marks; behind the data a light grid along "x", "y", "both" axes, or "none"."""
    if grid != "none":
        axes.grid(axis=grid, color=FAINT)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=0, colors=INK, labelsize=9)
    axes.xaxis.label.set(fontsize=9, color=INK)
    axes.yaxis.label.set(fontsize=9, color=INK)
    axes.spines[:].set_visible(False)


def format_of(path: str | Path) -> str:
    """The format that the suffix of a file stands for."""
    suffix = Path(path).suffix.lower()
    if suffix.lstrip(".") not in FORMATS:
        found = f"'{suffix}'" if suffix else "no suffix"
        raise InputError(f"{path}: a picture is saved as .png, .svg or .pdf, found {found}: rename it.")
    return suffix.lstrip(".")


def shortened(name: str, width: int) -> str:
    """A long name keeps both its ends, for either may be what tells it from others."""
    return name if len(name) <= width else f"{name[: width // 2]}…{name[-(width // 2 - 1) :]}"


def with_names_as_names(figure: "Figure") -> "Figure":
    """The figure with its words as they may be shown; only powers of ten and a few words of ours are formulas."""
    from matplotlib.text import Text
    from matplotlib.ticker import FixedFormatter

    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            formatter = axis.get_major_formatter()
            if isinstance(formatter, FixedFormatter):
                formatter.seq = [_drawn(words) for words in formatter.seq]
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        if words := text.get_text():  # the numbers of an axis have none before they are drawn
            formula = FORMULA.fullmatch(words) is not None or words in WRITTEN.values()
            text.set(text=_drawn(words), parse_math=formula)
    return figure


def _drawn(words: str) -> str:
    """Lines as they are, other controls written out."""
    return "\n".join(map(printable, words.split("\n")))


def save(figure: "Figure", path: str | Path) -> None:
    """Save a picture; the suffix of the file names the format."""
    suffix = format_of(path)
    with replacing(path) as out:
        drawn(figure, out, suffix)


def drawn(figure: "Figure", out: IO[bytes], suffix: str) -> None:
    """Write a picture: the same figure gives the same bytes, without dates or random identifiers."""
    import matplotlib

    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix, {})
    with warnings.catch_warnings(), matplotlib.rc_context({"svg.hashsalt": "policyspace"}):
        warnings.filterwarnings("ignore", message="Glyph")  # a script that the font lacks is drawn as boxes
        with_names_as_names(figure).savefig(out, format=suffix, dpi=160, metadata=dates)


# -- Names beside points: far enough apart to be read, joined to their points by thin lines, shared by points that are one.

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


def spread_labels(heights: Sequence[float], apart: float = APART) -> np.ndarray:
    """Heights in increasing order, moved as little as it takes to be `apart` from each other and inside the picture."""
    steps = apart * np.arange(len(heights))
    moved = isotonic_regression(np.asarray(heights) - steps).x
    return np.asarray(np.clip(moved, 0.0, max(0.0, 1.0 - apart * (len(heights) - 1))) + steps)


def name_points(axes: "Axes", named: Sequence[tuple[str, Sequence[Spot]]], right: float) -> None:
    """Write names, from below, to the right of their points, which thin lines lead to; `right` is where, in data."""
    heights = spread_labels([(spots[0].height + spots[-1].height) / 2 for _, spots in named])
    for (words, spots), height in zip(named, heights, strict=True):
        for i, place in enumerate(dict.fromkeys(spot.place for spot in spots)):
            axes.annotate(
                "" if i else printable(words), place, xytext=(right, height), annotation_clip=False, parse_math=False,
                textcoords=axes.get_xaxis_transform(), va="center", fontsize=8, color=INK, zorder=4,
                bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.8}, arrowprops=LEADER,
            )  # fmt: skip


# -- The picture of an answer: the effect of each group on the action, with its interval.

COLOURS = {"used": GREEN, "controlled": GREEN, "undecided": AMBER, "no evidence": GREY}
TEXT = {"used": GREEN, "controlled": GREEN, "undecided": DARK_AMBER, "no evidence": QUIET}

MOST_SHOWN, MOST_WITHOUT = 60, 12
"""Groups that a picture shows, and those of them without evidence."""


def plot_effects(answer: Identification, path: str | Path) -> None:
    """Save the picture; the suffix of the file names the format."""
    format_of(path)
    save(draw_effects(answer), path)


def draw_effects(answer: Identification) -> "Figure":
    """A forest plot: for each group its effect on the actions and the 95 % interval; what is used is filled."""
    title = _wrapped(answer)
    figure = new_figure(0.2 * len(title) + _height(answer), width=8.2)
    figure.suptitle("\n".join(title), x=0.012, ha="left", fontsize=11.5, color=INK, fontweight="bold", parse_math=False)
    _fill(figure.add_subplot(), answer)
    return figure


def draw_effects_for_page(answer: Identification) -> "Figure":
    """The same, narrow enough for a phone, and without what the page says beside it."""
    figure = new_figure(_height(answer), width=4.8)
    _fill(figure.add_subplot(), answer, narrow=True)
    return figure


def effect_axes(answer: Identification, axes: "Axes | None" = None) -> "Axes":
    """The same in given axes, or in those of a new figure of pyplot, which notebooks show."""
    if axes is None:
        from matplotlib import pyplot

        height = 0.2 * len(_wrapped(answer)) + _height(answer)
        _, axes = pyplot.subplots(figsize=(8.2, height), layout="constrained")
    _fill(axes, answer)
    words = "\n".join([*_wrapped(answer), axes.get_title(loc="left")]).strip()
    axes.set_title(words, loc="left", fontsize=11, color=INK, fontweight="bold", parse_math=False)
    return axes


def _fill(axes: "Axes", answer: Identification, narrow: bool = False) -> None:
    """Points, intervals, names, verdicts and the scale; where it is narrow, shorter names."""
    shown = _shown_groups(answer)[::-1]
    share = answer.data.action_type == "discrete"
    unit = 100.0 if share else 1.0
    ends = [0.0]
    for place, one in enumerate(shown):
        colour, used = COLOURS[one.verdict], one.verdict != "no evidence"
        if np.isnan(one.action_effect):
            continue
        if not np.isnan(one.effect_low):
            axes.plot(
                [unit * one.effect_low, unit * one.effect_high], [place, place], color=colour, linewidth=2, zorder=2
            )
            ends.append(unit * one.effect_high)
        face = colour if used else PAPER
        axes.plot(
            [unit * one.action_effect], [place], "o", markersize=7, color=colour, markerfacecolor=face, zorder=3,
            markeredgewidth=1.5, clip_on=False,
        )  # fmt: skip
        ends.append(unit * one.action_effect)
    axes.set_ylim(-0.65, len(shown) - 0.35)
    names = [shortened(printable(one.group), 20 if narrow else 36) for one in shown]
    if len(set(names)) < len(names):  # then their place in the table tells them apart
        names = [f"{len(names) - i}. {name}" for i, name in enumerate(names)]
    axes.set_yticks(range(len(shown)), names, fontsize=9.5, color=INK, parse_math=False)
    for place, one in enumerate(shown):
        words = answer.effect_in_words(one)
        label = one.verdict if narrow else f"{words if words != 'unknown' else 'effect unknown'}, {one.verdict}"
        axes.annotate(
            label, (1, place), xycoords=("axes fraction", "data"), xytext=(8, 0), textcoords="offset points",
            va="center", fontsize=9, color=TEXT[one.verdict], annotation_clip=False,
        )  # fmt: skip
    axes.set_xlim(0, max(*ends, 0.02 * unit) * 1.05)
    scale = "share of decisions that change, %" if share else "change of the action, standard deviations"
    axes.set_xlabel(f"{scale} (95 % interval)" if narrow else f"effect: {scale} (lines: 95 % intervals)")
    bare(axes, grid="x")
    axes.tick_params(axis="y", pad=7)
    if len(shown) < len(answer.groups):
        rest = len(answer.groups) - len(shown)
        axes.set_title(f"and {rest} others without a larger effect", loc="left", fontsize=9, color=QUIET)


def _wrapped(answer: Identification) -> list[str]:
    return textwrap.wrap(printable(answer.sentence), 68, max_lines=4, placeholder=" …", break_on_hyphens=False)


def _height(answer: Identification) -> float:
    return 0.95 + 0.32 * len(_shown_groups(answer))


def _shown_groups(answer: Identification) -> Sequence[GroupResult]:
    """As many as a picture can hold, by verdict and effect."""
    without = sum(one.verdict == "no evidence" for one in answer.groups)
    return answer.by_effect[: min(MOST_SHOWN, len(answer.groups) - max(without - MOST_WITHOUT, 0))]


# -- What the agent does while one feature changes: curves with bands, a rug of what was logged.

MOST_CURVES = 6


def plot_curves(answer: Identification, path: str | Path) -> None:
    """Save the picture; the suffix of the file names the format."""
    format_of(path)
    save(draw_curves(answer), path)


def draw_curves(
    answer: Identification, features: Sequence[str] | None = None, columns: int = 3, figure: "Figure | None" = None
) -> "Figure":
    """One panel for each feature: probabilities of actions or means, 95 % bands, and marks where the logged values are."""
    shown = _chosen_curves(answer, features)
    columns = min(columns, len(shown))
    lines = -(-len(shown) // columns)
    width = {1: 4.4, 2: 4.8}.get(columns, 8.2)
    if figure is None:
        figure = new_figure(0.75 + 2.15 * lines, width=width)
    panels = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
    discrete = answer.data.action_type == "discrete"
    actions = shown[0].actions[:1] if discrete and len(shown[0].actions) == 2 else shown[0].actions[: len(SERIES)]
    for axes, one in zip(panels, shown, strict=False):
        values, marks = np.array(one.values), one.levels or len(one.values) <= 12
        for number, action in enumerate(actions):
            colour, mean = SERIES[number], np.array(one.mean[number])
            low, high = np.array(one.low[number]), np.array(one.high[number])
            if marks:
                axes.vlines(values, low, high, color=colour, linewidth=2, alpha=0.5)
                axes.plot(values, mean, "o-", color=colour, linewidth=0.8, markersize=4.5, label=printable(action))
            else:
                axes.fill_between(values, low, high, color=colour, alpha=0.18, linewidth=0)
                axes.plot(values, mean, color=colour, linewidth=1.8, label=printable(action))
        if one.observed and not marks:
            inside = [v for v in one.observed if values[0] <= v <= values[-1]]
            axes.plot(
                inside, np.zeros(len(inside)), "|", color=GREY, markersize=6, alpha=0.5, clip_on=False,
                transform=axes.get_xaxis_transform(),
            )  # fmt: skip
        if one.levels:
            axes.set_xticks(values, [shortened(printable(name), 10) for name in one.levels], parse_math=False)
        axes.set_title(shortened(printable(one.feature), 24), loc="left", fontsize=9.5, color=INK, parse_math=False)
        bare(axes, grid="y")
        axes.tick_params(labelsize=8)
        axes.locator_params(axis="x", nbins=4) if not one.levels else None
    for axes in panels[len(shown) :]:
        axes.set_visible(False)
    what = f"probability of {printable(actions[0])}" if len(actions) == 1 else "probability"
    words = what if discrete else "mean action" if len(actions) > 1 else f"mean of {printable(actions[0])}"
    figure.supylabel(shortened(words, 40), fontsize=9, color=INK, parse_math=False)
    if len(actions) > 1:
        figure.legend(
            *panels[0].get_legend_handles_labels(), loc="outside lower left", ncols=4, frameon=False, fontsize=8.5,
            labelcolor=INK,
        )  # fmt: skip
    return figure


def curve_figure(answer: Identification, features: Sequence[str] | None = None) -> "Figure":
    """The same in a new figure of pyplot, which notebooks show."""
    from matplotlib import pyplot

    rows = -(-len(_chosen_curves(answer, features)) // 3)
    figure = pyplot.figure(figsize=(8.2, 0.75 + 2.15 * rows), layout="constrained", facecolor=PAPER)
    return draw_curves(answer, features, figure=figure)


def _chosen_curves(answer: Identification, features: Sequence[str] | None) -> "list[EffectCurve]":
    """Those that were named, or those of the groups with the largest effects."""
    known = answer.curves()
    if features is None:
        order = [one.group for one in answer.by_effect]
        return sorted(known, key=lambda one: order.index(one.group))[:MOST_CURVES]
    by_name = {one.feature: one for one in known}
    for name in features:
        if name not in by_name:
            raise InputError(f"there is no curve of '{name}': {nearest(name, by_name)}")
    if not features:
        raise InputError(
            "features must name at least one feature, found none: leave them out to have the largest effects."
        )
    return [by_name[name] for name in features]


# -- The picture of the weights of a linear policy: estimates and intervals.


def coefficient_axes(found: CoefficientTable, axes: "Axes | None" = None) -> "Axes":
    """A forest plot in given axes, or in those of a new figure of pyplot; what cannot be told from 0 is grey and empty."""
    rows = found.rows[:MOST_SHOWN][::-1]
    if axes is None:
        from matplotlib import pyplot

        _, axes = pyplot.subplots(figsize=(8.2, 0.95 + 0.32 * len(rows)), layout="constrained")
    for place, row in enumerate(rows):
        if not np.isfinite([row.estimate, row.lower, row.upper]).all():
            continue
        colour = GREY if row.lower <= 0 <= row.upper else GREEN
        face = PAPER if colour == GREY else colour
        axes.plot([row.lower, row.upper], [place, place], color=colour, linewidth=2, zorder=2)
        axes.plot([row.estimate], [place], "o", color=colour, markerfacecolor=face, markeredgewidth=1.5, zorder=3)
    axes.axvline(0, color=INK, linewidth=1, zorder=1)
    names = [shortened(printable(row.parameter), 36) for row in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=9.5, color=INK, parse_math=False)
    axes.set_ylim(-0.65, len(rows) - 0.35)
    axes.set_xlabel(f"weight (lines: {found.interval})", parse_math=False)
    bare(axes, grid="x")
    return axes


# -- The picture of a policy's calibration: how often labels were chosen, against how often they were expected.


def draw_calibration(found: CoefficientTable) -> "Figure":
    """One point a bin of about equal size, with the range that chance alone gives in 95 of 100 bins."""
    if not found.calibration:
        raise InputError("calibration is about discrete actions, found continuous ones: leave --calibration out.")
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


# -- The picture of a plan: power against the number of rows, as practice has it and as theory proves it.

MOST_BANDS = 3
"""More bands than this hide one another: then a bar at the wanted power shows the range of the pairs."""


def draw_power(plan: SampleSizePlan, setting: Setting | None) -> "Figure":
    """Left: the power of each test, with what the pilot leaves open. Right: the same beside what Theorem 4.2 proves."""
    shown, left, right = _range(plan)
    figure = new_figure(4.4, width=9.6)
    near, far = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    _draw_practice(near, plan)
    end = _proven_end(plan, setting, shown)
    _curves(far, plan, shown, np.geomspace(left, max(end, right), 240), bands=False)
    if setting is not None and shown:
        pairs = np.geomspace(left, max(end, right), 240)
        for colour, group in zip(SERIES, shown, strict=False):
            proven = [power_bound(plan.significance, n, group.rate.value / 2, setting, len(plan.groups)) for n in pairs]
            far.plot(pairs, proven, color=colour, linewidth=1.4, linestyle=(0, (4, 2)))
    far.set_title("solid: practice, dashed: proven", loc="left", fontsize=10.5, color=INK, fontweight="bold", pad=10)
    _finish(far, plan.power)
    return figure


def draw_power_for_page(plan: SampleSizePlan) -> "Figure":
    """The power of each test alone, narrow enough for a phone."""
    figure = new_figure(3.6, width=4.8)
    _draw_practice(figure.add_subplot(), plan)
    return figure


def _shown(plan: SampleSizePlan) -> tuple[list[GroupPlan], list[GroupPlan]]:
    """The groups that show an effect, and those of them that there are colours for: the weakest."""
    seen = sorted((g for g in plan.groups if 0 < g.rate.value < np.inf), key=lambda g: g.rows.value)
    return seen, seen[-len(SERIES) :]


def _range(plan: SampleSizePlan) -> tuple[list[GroupPlan], float, float]:
    """The groups to draw, and the fewest and most pairs of the axis."""
    _, shown = _shown(plan)
    left = max(plan.procedure.fewest, plan.num_rows / 20, 2.0)
    right = max([3 * plan.num_rows, *(2 * g.rows.value for g in shown if g.rows.value < np.inf)])
    return shown, left, right


def _draw_practice(axes: "Axes", plan: SampleSizePlan) -> None:
    """The curves with what the pilot leaves open, and where the pilot is now."""
    shown, left, right = _range(plan)
    _curves(axes, plan, shown, np.geomspace(left, right, 120), bands=True)
    axes.axvline(plan.num_rows, color=INK, linewidth=1, linestyle=(0, (1, 2)))
    axes.annotate(
        "now", (plan.num_rows, 0.0), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=8.5, color=INK,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
    )  # fmt: skip
    axes.set_ylabel("power: the chance that the test finds the group", fontsize=9, color=INK)
    seen = _shown(plan)[0]
    rest = f" (the {len(shown)} weakest of {len(seen)} groups)" if len(shown) < len(seen) else ""
    title = f"Power against the number of rows{rest}" if seen else "The pilot shows no effect to plan for"
    axes.set_title(title, loc="left", fontsize=10.5, color=INK, fontweight="bold", pad=10)
    if shown:
        axes.legend(fontsize=8.5, loc="best", labelcolor=INK, framealpha=0.9, edgecolor="none")
    _finish(axes, plan.power)


def _curves(axes: "Axes", plan: SampleSizePlan, groups: list[GroupPlan], pairs: np.ndarray, bands: bool) -> None:
    for colour, group in zip(SERIES, groups, strict=False):
        # matplotlib leaves a name out of its legend if it begins with an underscore
        name = f" {group.group}" if group.group.startswith("_") else group.group
        axes.plot(pairs, _powers(plan, pairs, group.rate.value, group), color=colour, linewidth=1.8, label=name)
        if not bands or group.rate.low == group.rate.high:
            continue
        if len(groups) > MOST_BANDS:
            row = plan.power - 0.014 * (1 + len(axes.lines) // 2)
            ends = [min(n, float(pairs[-1])) for n in (group.rows.low, group.rows.high)]
            axes.plot(ends, [row, row], color=colour, linewidth=1.2, alpha=0.7)
        else:
            low, high = (_powers(plan, pairs, rate, group) for rate in (group.rate.low, group.rate.high))
            axes.fill_between(pairs, low, high, color=colour, alpha=0.1, linewidth=0)


def _powers(plan: SampleSizePlan, pairs: np.ndarray, rate: float, group: GroupPlan) -> list[float]:
    return [plan.procedure.power(n, rate, group.degrees_of_freedom) for n in pairs.tolist()]


def _proven_end(plan: SampleSizePlan, setting: Setting | None, groups: list[GroupPlan]) -> float:
    """The number of pairs by which all the proven curves have risen."""
    end = float(plan.num_rows)
    for group in groups if setting is not None else []:
        while (
            setting is not None
            and end < 1e40
            and power_bound(plan.significance, end, group.rate.value / 2, setting, len(plan.groups)) < 0.99
        ):
            end *= 2
    return end


def _finish(axes: "Axes", wanted: float) -> None:
    axes.set_xscale("log")
    axes.set_ylim(-0.02, 1.02)
    axes.axhline(wanted, color=INK, linewidth=0.8, linestyle=DASHED)
    axes.set_xlabel("rows")
    bare(axes)


# -- The picture of many subjects: features × subjects, darker where there is more evidence, marked where used.

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
    evidence = np.full((len(groups), len(columns)), np.nan)
    for x, (_, answer) in enumerate(columns):
        for test in answer.groups if answer is not None else ():
            evidence[groups.index(test.group), x] = -np.log10(max(test.adjusted_p_value, 1e-300))
    figure = new_figure(1.5 + 0.34 * len(groups), width=float(np.clip(2.6 + 0.34 * len(columns), 6.4, 16.0)))
    axes = figure.add_subplot()
    colours = LinearSegmentedColormap.from_list("evidence", [FAINTER, GREEN]).with_extremes(bad="white")
    image = axes.imshow(np.ma.masked_invalid(evidence), cmap=colours, vmin=0, vmax=MOST_EVIDENCE, aspect="auto")
    for x, (_, answer) in enumerate(columns):
        for y, group in enumerate(groups):
            if answer is not None and group in answer.selected:
                dark = evidence[y, x] > MOST_EVIDENCE / 2
                axes.text(x, y, "●", ha="center", va="center", fontsize=8, color="white" if dark else INK)
    axes.set_yticks(range(len(groups)), groups, parse_math=False)
    names = [f"{name}" + ("" if answer is None or answer.guarantee else "*") for name, answer in columns]
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
    star = "; *: no guarantee" if any(answer is not None and not answer.guarantee for _, answer in columns) else ""
    again = ", and again for the last column" if found.pooled is not None else ""
    many = f"δ = {found.significance:g} for all of them together{again}{star}"
    axes.set_xlabel(many, fontsize=9, color=QUIET)
    return figure


MOST_PANELS = 8
"""Weights that one picture of subjects can show: the first."""


def draw_subject_effects(found: SubjectEffects) -> "Figure":
    """One panel a weight: each subject with 1.96 standard errors, and the average of subjects like these as a band."""
    panels = len(found.parameters[:MOST_PANELS])
    order = np.arange(len(found.names))[:MOST_COLUMNS][::-1]
    figure = new_figure(1.3 + 0.2 * len(order), width=float(np.clip(1.6 + 2.0 * panels, 4.0, 14.0)))
    weights, margins = (1.0 * np.array(values)[order] for values in (found.weights, found.margins))
    drawn_axes = np.atleast_1d(figure.subplots(1, panels, sharey=True))
    for i, axes in enumerate(drawn_axes):
        low, high = (found.average[i] + sign * 1.96 * found.standard_error[i] for sign in (-1, 1))
        axes.axvspan(low, high, color=FAINT, zorder=0)
        axes.axvline(0, color=INK, linewidth=1, linestyle=DASHED, zorder=1)
        clear = np.abs(weights[:, i]) > 1.96 * margins[:, i]
        for own, colour in ((clear, GREEN), (~clear, GREY)):
            rows = np.flatnonzero(own)
            axes.hlines(
                rows, weights[own, i] - 1.96 * margins[own, i], weights[own, i] + 1.96 * margins[own, i], color=colour
            )
            axes.plot(weights[own, i], rows, "o", color=colour, markersize=4)
        count = found.at_least.get(found.groups[i])
        below = "" if count is None else f"at least {count} of {len(found.names)}"
        axes.set_title(shortened(printable(found.parameters[i]), 24), loc="left", fontsize=9.5, parse_math=False)
        axes.set_xlabel(below, fontsize=9, color=QUIET)
        bare(axes, grid="x")
    drawn_axes[0].set_yticks(range(len(order)), [found.names[j] for j in order], parse_math=False)
    return figure
