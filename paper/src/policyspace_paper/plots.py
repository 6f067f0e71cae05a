"""How estimates are drawn: plots of lines, bands or points with intervals, and rates beside what was promised."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from policyspace.report.figures import BLUE, DASHED, GREEN, INK, PAPER, RED, WIDTH, bare, new_figure, new_plot
from policyspace_paper.estimates import Mean, Rate

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"too often": RED, "as promised": GREEN, "less often": BLUE}

Estimates = Mapping[tuple[Any, Any], Mean | Rate]
"""By the name of a line, and the place on the horizontal axis."""
MARKS = "osD^vX"
LINE, APART, ASIDE = 1.7, 6.5, 4.8
"""In points: the width of a line, from one mark to the next at the same place, and from the first line there to the last."""
SHARES = (0.0, 1.0)
"""Where shares lie, and so do their intervals."""
ANYWHERE = (-np.inf, np.inf)
NO_LABELS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Plot:
    """One of the plots of a figure: estimates by name and place, and whatever else stands there."""

    found: Estimates
    title: str = ""
    kind: Literal["lines", "bands", "points"] = "lines"  # whiskers or bands around lines; or whiskers alone
    expected: Estimates = field(default_factory=dict)  # lines without intervals behind what was found
    more: Callable[["Axes"], object] = lambda axes: None  # draws what else belongs there


def draw(
    title: str,
    plots: Sequence[Plot],
    colours: Mapping[str, str],
    labels: Mapping[str, str] = NO_LABELS,
    *,
    height: float,
    width: float = WIDTH,
    rows: int = 1,
    shares: bool = False,
    xlabel: str = "",
    ylabel: str = "",
    apart: float = APART,
    xscale: Literal["tried", "log", "linear"] = "tried",
    finish: Callable[["Axes"], object] = lambda axes: None,
    columns: int = 5,
    **grid: Any,
) -> "Figure":
    """Plots side by side in so many rows, a name in the same colour in all of them; the legend below names each once.

    `shares` lie from 0 to 1 on one axis, which their intervals do not leave. The horizontal axes are logarithmic with
    numbers at the places that were tried, unless `xscale` says otherwise. `finish` does what is left to do with the first
    plot, whose axes others may share; `columns` are those of the legend, `grid` options of `Figure.subplots`.
    """
    figure = new_figure(height, title, width)
    axes = figure.subplots(rows, len(plots) // rows, squeeze=False, **({"sharey": True} | grid))
    limits = SHARES if shares else ANYWHERE
    if shares:
        axes[0, 0].set_ylim(-0.03, 1.03)  # a mark at zero is seen whole
    for own, plot in zip(axes.flat, plots, strict=True):
        bare(own)
        if plot.expected:
            draw_lines(own, plot.expected, colours, dense=True)
        if plot.kind == "points":
            draw_points(own, plot.found, colours, labels, apart, limits)
        elif plot.found:
            bands = plot.kind == "bands"  # of which each covers the others, wherever it is
            draw_lines(own, plot.found, colours, labels, 0.0 if bands else apart, limits, bands)
        if xscale == "tried":
            logarithmic(own, sorted({place for _, place in plot.found}))
        elif xscale == "log":
            own.set_xscale("log")
            own.minorticks_off()
        own.set_title(plot.title, loc="left", fontsize=9.5 if len(plots) > 2 else 10.5, color=INK)
        plot.more(own)
    finish(axes[0, 0])
    for own in axes[-1] if xlabel else ():
        own.set_xlabel(xlabel)
    for own in axes[:, 0] if ylabel else ():
        own.set_ylabel(ylabel)
    legend_below(figure, columns)
    return figure


def draw_lines(
    axes: "Axes",
    found: Estimates,
    colours: Mapping[str, str],
    labels: Mapping[str, str] = NO_LABELS,
    apart: float = APART,
    within: tuple[float, float] = ANYWHERE,
    dense: bool = False,
) -> None:
    """Estimates by name and place: a line for each name that has a colour, its intervals whiskers, or a band where dense.

    Lines that coincide are all seen: they are laid side by side, each a little lower than the one before and by so many
    points `apart` to its right; a little higher where they fall, for there the one to the right is above.
    """
    series = _series(found, colours)
    falling = sum(points[-1][1].value - points[0][1].value for points in series.values()) < 0
    step = min(LINE, ASIDE / max(1, len(series) - 1)) * (1 if falling and apart else -1)
    for (name, points), place in zip(series.items(), _places(series), strict=True):
        x, value, low, high = _arrays(points, within)
        label = labels.get(name) if dense else None
        line = axes.plot(x, value, color=colours[name], label=label, linewidth=LINE)
        _move(line, axes, apart * place, step * place)
        if dense:
            axes.fill_between(x, low, high, color=colours[name], alpha=0.13, linewidth=0)
    if not dense:
        draw_points(axes, found, colours, labels, apart, within)


def draw_points(
    axes: "Axes",
    found: Estimates,
    colours: Mapping[str, str],
    labels: Mapping[str, str] = NO_LABELS,
    apart: float = APART,
    within: tuple[float, float] = ANYWHERE,
) -> None:
    """Estimates by name and place as marks with whiskers, beside each other: where many are the same, all are seen."""
    series = _series(found, colours)
    for (name, points), place in zip(series.items(), _places(series), strict=True):
        x, value, low, high = _arrays(points, within)
        bars = axes.errorbar(
            x, value, np.maximum([value - low, high - value], 0), fmt=mark_of(name, colours), color=colours[name],
            label=labels.get(name), markersize=6, markeredgecolor=PAPER, markeredgewidth=0.7, elinewidth=1.5, capsize=2.5,
            zorder=3,
        )  # fmt: skip
        _move(bars.get_children(), axes, apart * place, 0.0)
    axes.margins(x=0.08)  # room for marks beside their places


def mark_of(name: str, names: Iterable[str]) -> str:
    """The same name has the same mark in all plots that know the same names."""
    return MARKS[list(names).index(name) % len(MARKS)]


def _series(found: Estimates, names: Iterable[str]) -> dict[str, list[tuple[float, Mean | Rate]]]:
    """The points of every name that has any, from left to right."""
    known = {name: [(x, e) for (other, x), e in found.items() if other == name] for name in names}
    return {name: sorted(points, key=lambda point: point[0]) for name, points in known.items() if points}


def _places(series: Collection[str]) -> np.ndarray:
    """…, −1, 0, 1, … of names side by side."""
    return np.arange(len(series)) - (len(series) - 1) / 2


def _move(artists: "Iterable[Artist]", axes: "Axes", right: float, up: float) -> None:
    """Draw data so many points beside their place, once the axes have made room for them."""
    from matplotlib.transforms import ScaledTranslation

    figure = axes.get_figure(root=True)
    assert figure is not None
    for artist in artists:
        artist.set_transform(axes.transData + ScaledTranslation(right / 72, up / 72, figure.dpi_scale_trans))


def _arrays(points: Iterable[tuple[float, Mean | Rate]], within: tuple[float, float]) -> tuple[np.ndarray, ...]:
    """Places, values and ends of the intervals [p]; an interval that is not known has no length."""
    x, value, low, high = (np.array(row) for row in zip(*((x, e.value, e.low, e.high) for x, e in points), strict=True))
    known = np.isfinite(low)
    return x, value, np.where(known, low, value).clip(*within), np.where(known, high, value).clip(*within)


def logarithmic(axes: "Axes", ticks: Sequence[int]) -> None:
    """A logarithmic horizontal axis with marks at numbers that were tried."""
    if len(ticks) == 1:  # has no range of its own
        axes.set_xlim(ticks[0] / 2, ticks[0] * 2)
    axes.set_xscale("log")
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()


def spaced_ticks(axes: "Axes", wanted: Sequence[float], least: float = 0.08) -> None:
    """Of the marks that are wanted, the first most, those of the vertical axis that its numbers leave room for."""
    low, high = axes.get_ylim()
    height = {tick: (axes.transScale + axes.transLimits).transform((1.0, tick))[1] for tick in wanted}
    chosen: list[float] = []
    for tick in wanted:
        if low <= tick <= high and all(abs(height[tick] - height[other]) >= least for other in chosen):
            chosen.append(tick)
    axes.set_yticks(chosen, [f"{tick:g}".replace("-", "−") for tick in chosen])
    axes.minorticks_off()


def legend_below(figure: "Figure", columns: int = 5) -> None:
    """The names of all lines, each once, at the foot of the figure, clear of all that is drawn in it."""
    named: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    if named:
        columns = min(columns, len(named))
        figure.legend(
            list(named.values()), list(named), loc="outside lower center", ncols=columns, frameon=False, fontsize=8.5
        )


def draw_rates(blocks: Sequence[tuple[str, Sequence[Rate]]], title: str, label: str) -> "Figure":
    """One dot and whisker a rate, in blocks with headings; the nominal level is the dashed line, colours are verdicts."""
    lines: list[Rate | str] = []
    for heading, rates in blocks:
        lines += [heading, *rates] if rates else []
    figure, axes = new_plot(1.25 + 0.25 * len(lines), title)
    for y, line in enumerate(lines):
        if not isinstance(line, str):
            colour = COLOURS[line.verdict]
            axes.plot(line.interval, [y, y], color=colour, linewidth=2, solid_capstyle="round", zorder=2)
            axes.plot([line.value], [y], "o", color=colour, markersize=6, zorder=3, clip_on=False)
    for nominal in {line.nominal for line in lines if not isinstance(line, str)}:
        axes.axvline(nominal, color=INK, linewidth=1, linestyle=DASHED, zorder=1)
    axes.set_yticks(range(len(lines)), [line if isinstance(line, str) else line.name for line in lines])
    for tick, line in zip(axes.get_yticklabels(), lines, strict=True):
        tick.set_fontweight("bold" if isinstance(line, str) else "normal")
    axes.set_ylim(len(lines) - 0.4, -0.6)
    # Rates near 5 % and rates near 1 must both be readable.
    axes.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
    ticks = [0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlim(0, 1)
    axes.set_xlabel(label)
    axes.yaxis.grid(False)
    axes.tick_params(axis="y", pad=7)
    shown = {line.verdict for line in lines if not isinstance(line, str)}
    for verdict in (verdict for verdict in COLOURS if verdict in shown):
        axes.plot([], [], "o-", color=COLOURS[verdict], linewidth=2, label=verdict)
    legend_below(figure)
    return figure
