"""Plots of estimates: what coincides is still seen, intervals stay where shares lie, and numbers of an axis do not touch."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from policyspace_paper.estimates import Mean, Rate
from policyspace_paper.plots import SHARES, draw_lines, draw_rates, legend_below, logarithmic, spaced_ticks

from policyspace.report import BLUE, GREEN, RED, new_figure, new_plot
from policyspace.report.figures import WRITTEN, with_names_as_names

COLOURS = {"a": BLUE, "b": GREEN, "c": RED}
SAME = {(name, n): Rate(0, 20) for name in COLOURS for n in (10, 100)}


def drawn(found, **options):
    figure, axes = new_plot(3.0, "Plot")
    draw_lines(axes, found, COLOURS, {name: name for name in COLOURS}, **options)
    logarithmic(axes, sorted({n for _, n in found}))
    figure.draw_without_rendering()
    return axes


def places(axes):
    """Where lines and marks are drawn, in points; a line has no mark."""
    scale = 72 / axes.figure.dpi
    lines = [line for line in axes.get_lines() if len(line.get_xdata())]
    joined = [line for line in lines if line.get_linestyle() != "None"]
    marks = [line for line in lines if line.get_marker() in "osD"]
    return [
        np.array([line.get_transform().transform(line.get_xydata()) * scale for line in own]) for own in (joined, marks)
    ]


@pytest.mark.parametrize("dense", [False, True])
def test_lines_that_coincide_lie_side_by_side(dense):
    lines, marks = places(drawn(SAME, dense=dense))
    assert len(lines) == 3 and np.diff(lines[..., 1], axis=0) == pytest.approx(-1.7)  # as wide as a line
    assert len(marks) == (0 if dense else 3)
    if not dense:
        assert np.diff(marks[..., 0], axis=0) == pytest.approx(6.5)
        assert np.ptp(marks[..., 1]) == pytest.approx(0)  # marks stand at their height


@pytest.mark.parametrize("slope", [-1, 1])
def test_what_is_moved_to_the_right_is_not_moved_back_onto_its_neighbour(slope):
    """A line that falls is above itself when it is moved to the right: so it goes up, and down where it rises."""
    found = {(name, n): Mean(slope * np.log10(n), 0.1, 9) for name in COLOURS for n in (10, 100)}
    lines, _ = places(drawn(found))
    heights = [np.interp(lines[0, 1, 0], *line.T) for line in lines]
    assert all(-slope * step > 1.7 for step in np.diff(heights))


def test_whiskers_of_shares_end_at_zero_and_one():
    found = {("a", 10): Mean(0.02, 0.1, 9), ("a", 100): Mean(0.98, 0.1, 9), ("a", 1000): Mean(0.5, None, 1)}
    (bars,) = drawn(found, within=SHARES).containers
    ends = [segment[:, 1] for segment in bars.lines[2][0].get_segments()]
    assert np.array(ends) == pytest.approx(np.array([[0, 0.12], [0.88, 1], [0.5, 0.5]]))


def test_the_legend_names_every_line_once_and_stands_below():
    axes = drawn(SAME)
    legend_below(axes.figure)
    (legend,) = axes.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "c"]
    axes.figure.draw_without_rendering()
    assert legend.get_window_extent().y1 <= axes.get_tightbbox().y0


def test_rates_have_a_key_to_the_colours_that_are_seen():
    figure = draw_rates([("block", [Rate(0, 200, "x", 0.05), Rate(30, 40, "y", 0.05)])], "Rates", "share")
    (legend,) = figure.legends
    shown = [
        (text.get_text(), to_hex(handle.get_color()))
        for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True)
    ]
    assert shown == [("too often", RED), ("less often", BLUE)]


def test_numbers_of_an_axis_that_would_touch_are_left_out():
    axes = new_figure(3.0).add_subplot()
    axes.set_ylim(-5, 100)
    spaced_ticks(axes, (0, 50, 100, 51, 1000, 20))
    assert sorted(axes.get_yticks()) == [0, 20, 50, 100]


def test_words_of_ours_are_formulas_and_names_are_not():
    figure, axes = new_plot(3.0, "Cost in $, and in $")
    formula = WRITTEN["ℓ̂(θ*) − ℓ̂(θ̂)"]
    axes.set_yticks([0, 1], [formula, "$x$"])
    with_names_as_names(figure)
    assert [tick.get_parse_math() for tick in axes.get_yticklabels()] == [True, False]
