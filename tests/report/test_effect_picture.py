"""The picture of an answer: right marks, any number of groups, any names, and the same bytes every time."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from policyspace import InputError, identify
from policyspace.report import COLOURS, draw_curves, draw_effects, plot_effects
from policyspace.report.figures import MOST_SHOWN, MOST_WITHOUT

RNG = np.random.default_rng(4)
MAGIC = {"png": b"\x89PNG\r\n", "svg": b"<?xml", "pdf": b"%PDF-"}


def answer(names, n=300):
    x = RNG.normal(size=(n, len(names)))
    return identify(x, x[:, 0] + RNG.normal(size=n), features=names)


SMALL = answer(["speed", "left", "right"])


@pytest.mark.parametrize("suffix", MAGIC)
def test_the_same_answer_gives_the_same_bytes(suffix, tmp_path):
    first, second = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix.upper()}"
    plot_effects(SMALL, first)
    plot_effects(SMALL, second)
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes().startswith(MAGIC[suffix])


def test_points_are_the_effects_and_lines_their_intervals():
    (axes,) = draw_effects(SMALL).axes
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert shown == [one.group for one in SMALL.by_effect[::-1]]  # from the bottom up
    assert shown[-1] == "speed"
    intervals, points = axes.lines[0::2], axes.lines[1::2]
    for line, point, test in zip(intervals, points, SMALL.by_effect[::-1], strict=True):
        assert list(line.get_xdata()) == [test.effect_low, test.effect_high]
        assert point.get_xdata()[0] == test.action_effect
        assert point.get_color() == COLOURS[test.verdict]
    right = [text.get_text() for text in axes.texts]
    assert right == [f"{SMALL.effect_in_words(test)}, {test.verdict}" for test in SMALL.by_effect[::-1]]


def inside(figure):
    """Is every text inside the picture?"""
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
    inside(draw_effects(answer(names)))


def test_names_that_look_alike_when_shortened_are_numbered():
    labels = [t.get_text() for t in draw_effects(answer([LONG * (i + 1) for i in range(3)])).axes[0].get_yticklabels()]
    assert [label[:3] for label in labels] == ["3. ", "2. ", "1. "]


def test_any_name_can_be_drawn(tmp_path):
    """Mathematics, line breaks, scripts that the font lacks: no error and no warning."""
    odd = answer(["$x$ and \\frac", "a_b^c $", "line\nbreak", "速度", "\x1b[31m", ""])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for suffix in MAGIC:
            plot_effects(odd, tmp_path / f"odd.{suffix}")


def many(number):
    test = SMALL.group("left")
    groups = [replace(test, group=f"g{i}", action_effect=1 / (1 + i % 997)) for i in range(number)]
    return replace(SMALL, groups=(SMALL.group("speed"), *groups))


def test_more_groups_than_a_picture_can_hold():
    (axes,) = draw_effects(many(5000)).axes
    assert len(axes.get_yticklabels()) == 1 + MOST_WITHOUT
    assert "and 4988 others" in axes.get_title(loc="left")
    used = replace(many(100), groups=(SMALL.group("speed"),) * 100)
    assert len(draw_effects(used).axes[0].get_yticklabels()) == MOST_SHOWN


@pytest.mark.parametrize("effect", [0.0, 1e-12, 3.0, float("nan")])
def test_any_effect_can_be_drawn(effect):
    test = replace(SMALL.groups[0], action_effect=effect, effect_low=effect / 2, effect_high=2 * effect)
    figure = draw_effects(replace(SMALL, groups=(test,)))
    inside(figure)
    assert ("effect unknown" in figure.axes[0].texts[0].get_text()) == (effect != effect)


def test_curves_follow_the_policy():
    """Of a linear policy the fitted curve is a line with the fitted slope, and its band is narrowest in the middle."""
    x = RNG.normal(size=(400, 2))
    found = identify(x, 2 * x[:, 0] + RNG.normal(size=400), features=["speed", "left"], policy="gaussian")
    speed, left = found.curves()
    slope = found.fit.parameters["action"][1]
    assert np.polyfit(speed.values, speed.mean[0], 1)[0] == pytest.approx(slope)
    assert np.polyfit(left.values, left.mean[0], 1)[0] == pytest.approx(found.fit.parameters["action"][2])
    width = np.subtract(speed.high, speed.low)[0]
    assert width.min() == width[10:15].min() < width[0]
    figure = draw_curves(found)
    FigureCanvasAgg(figure).draw()
    box = figure.get_tightbbox().padded(-0.01)
    assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.get_figwidth() and box.y1 <= figure.get_figheight()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["speed", "left"]
    with pytest.raises(InputError, match="no curve of 'sped'"):
        found.plot_curves(["sped"])


@pytest.mark.parametrize(("name", "found"), [("a.gif", "'.gif'"), ("a", "no suffix"), ("folder.png", "folder")])
def test_pictures_that_cannot_be_saved(name, found, tmp_path):
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(InputError, match=found):
        plot_effects(SMALL, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]
