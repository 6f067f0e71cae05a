"""The picture of an answer: right marks, any number of groups, any names, and the same bytes every time."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from policyspace import InputError, identify
from policyspace.report import COLOURS, draw_evidence, plot_evidence
from policyspace.report.figures import MOST_BARS

RNG = np.random.default_rng(4)
MAGIC = {"png": b"\x89PNG\r\n", "svg": b"<?xml", "pdf": b"%PDF-"}


def answer(names, n=300):
    x = RNG.normal(size=(n, len(names)))
    return identify(x, x[:, 0] + RNG.normal(size=n), features=names)


SMALL = answer(["speed", "left", "right"])


@pytest.mark.parametrize("suffix", MAGIC)
def test_the_same_answer_gives_the_same_bytes(suffix, tmp_path):
    first, second = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix.upper()}"
    plot_evidence(SMALL, first)
    plot_evidence(SMALL, second)
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes().startswith(MAGIC[suffix])


def test_bars_are_the_evidence():
    figure = draw_evidence(SMALL)
    (axes,) = figure.axes
    bars = axes.patches
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert shown == ["right", "left", "speed"]  # from the bottom up
    for bar, test in zip(bars, SMALL.groups[::-1], strict=True):
        assert bar.get_width() == pytest.approx(-np.log10(test.adjusted_p_value), abs=1e-12)
        assert bar.get_facecolor() == pytest.approx(_colour(COLOURS[test.verdict]))
    (line,) = axes.lines
    assert line.get_xdata()[0] == pytest.approx(-np.log10(0.05))


def _colour(text):
    return (*(int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)), 1.0)


def inside(figure):
    """Is every text inside the picture?"""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    edge = figure.bbox
    for text in figure.findobj(Text):
        box = text.get_window_extent(canvas.get_renderer())
        if text.get_text().strip() and text.get_visible() and box.width:
            assert edge.x0 - 1 <= box.x0, text
            assert box.x1 <= edge.x1 + 1, text
            assert edge.y0 - 1 <= box.y0, text
            assert box.y1 <= edge.y1 + 1, text


LONG = "the distance to the nearest car in front of me measured by the lidar of the left headlight "


@pytest.mark.parametrize(
    "names",
    [
        ["speed"],
        [f"sensor_{i}" for i in range(6)],
        [f"a_rather_long_sensor_name_{i}" for i in range(30)],
        [LONG * (i + 1) for i in range(5)],
        [f"WHEEL_SPEED_OF_MOTOR_{i}" for i in range(8)],
    ],
    ids=["one", "six", "thirty", "long", "capitals"],
)
def test_every_text_is_inside_the_picture(names):
    inside(draw_evidence(answer(names)))


def test_names_that_look_alike_when_shortened_are_numbered():
    labels = [t.get_text() for t in draw_evidence(answer([LONG * (i + 1) for i in range(3)])).axes[0].get_yticklabels()]
    assert [label[:3] for label in labels] == ["3. ", "2. ", "1. "]


def test_any_name_can_be_drawn(tmp_path):
    """Mathematics, line breaks, scripts that the font lacks: no error and no warning."""
    odd = answer(["$x$ and \\frac", "a_b^c $", "line\nbreak", "速度", "\x1b[31m", ""])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for suffix in MAGIC:
            plot_evidence(odd, tmp_path / f"odd.{suffix}")


def many(number):
    test = SMALL.groups[1]
    return replace(
        SMALL, groups=tuple(replace(test, group=f"g{i}", adjusted_p_value=1 / (1 + i % 997)) for i in range(number))
    )


def test_more_groups_than_a_picture_can_hold(tmp_path):
    figure = draw_evidence(many(5000))
    assert len(figure.axes[0].patches) == MOST_BARS
    assert f"{MOST_BARS} strongest of 5000" in figure.axes[0].get_title(loc="left")
    weakest = min(bar.get_width() for bar in figure.axes[0].patches)
    better = sum(test.adjusted_p_value < 10**-weakest * (1 - 1e-9) for test in many(5000).groups)
    assert better < MOST_BARS
    assert len(draw_evidence(many(120)).axes[0].patches) == 120


@pytest.mark.parametrize("p_value", [0.0, 1e-320, 1e-300, 1.0])
def test_any_p_value_can_be_drawn(p_value):
    tests = [replace(SMALL.groups[0], adjusted_p_value=p_value)]
    figure = draw_evidence(replace(SMALL, groups=tuple(tests)))
    assert figure.axes[0].patches[0].get_width() == pytest.approx(min(-np.log10(max(p_value, 1e-300)), 300))
    inside(figure)


@pytest.mark.parametrize(("name", "found"), [("a.gif", "'.gif'"), ("a", "no suffix"), ("folder.png", "folder")])
def test_pictures_that_cannot_be_saved(name, found, tmp_path):
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(InputError, match=found):
        plot_evidence(SMALL, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]
