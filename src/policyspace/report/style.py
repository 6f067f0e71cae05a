"""The one style of all pictures: colours, letters, bare axes, and files that are the same bytes every time."""

import re
import warnings
from pathlib import Path
from typing import IO, TYPE_CHECKING

from policyspace.data.whole_file import replacing
from policyspace.errors import InputError
from policyspace.printable import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
