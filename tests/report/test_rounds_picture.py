"""Pictures of rounds: every open feature is drawn, every closed one is not, and words say what the numbers say."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Circle
from PIL import Image

from policyspace import InputError, make_world
from policyspace.report import AGENT, GOAL, save
from policyspace.study import ExampleRun, Round, draw_rounds, film_rounds, same_configuration
from policyspace.study.figures import chances, configuration_in_words
from policyspace.study.page import MOST_ROUNDS_SHOWN as MOST_ROUNDS
from policyspace.study.page import most_telling


def records(world, units, falling, vary=0.0):
    """Rounds in which the given units fall one batch after the other."""
    rounds, selected = [], ()
    for number, fell in enumerate(falling):
        selected = tuple(u for u in units if u in (*selected, *fell))
        omega = {p.name: np.clip(p.default_array() + vary * number, p.low, p.high).tolist() for p in world.parameters}
        rounds.append(
            Round(
                number, omega, "d-optimal" if number else None, (), {}, 100, 100 * (number + 1), 0.01, [], tuple(fell),
                selected, tuple(u for u in units if u not in selected), [list(selected)], [],
            )
        )  # fmt: skip
    return rounds


def story(name, falling, truth=None, vary=0.3):
    world = make_world(name)
    units = tuple(world.feature_names)
    return ExampleRun(world.name, tuple(world.parameters), records(world, units, falling, vary), units, truth)


FALLING = [["row_0", "col_1"], [], ["goal_row_2"]]


def lines_of(axes, colour, dashed):
    return [
        line
        for line in axes.get_lines()
        if to_hex(line.get_color()) == colour and line.is_dashed() == dashed and line.get_linewidth() < 4
    ]


def test_gridworld_panels_show_open_features_and_ghosts():
    figure = draw_rounds(story("gridworld", FALLING))
    assert len(figure.axes) == 6
    open_blue = [len(lines_of(axes, AGENT, False)) for axes in figure.axes]
    open_red = [len(lines_of(axes, GOAL, False)) for axes in figure.axes]
    ghosts = [len(lines_of(axes, AGENT, True)) + len(lines_of(axes, GOAL, True)) for axes in figure.axes]
    assert open_blue == [8, 6, 6, 6, 6, 6]
    assert open_red == [8, 8, 8, 8, 8, 7]
    assert ghosts == [0, 2, 0, 0, 0, 1]
    fallen = sorted(tuple(line.get_xydata().mean(axis=0).round(2)) for line in lines_of(figure.axes[1], AGENT, True))
    assert fallen == [(0.87, 2.0), (2.0, -0.13)]  # down column 1 and along row 0, left and above of their middles


def test_gridworld_tints_are_the_law_of_starts():
    """Opacity is proportional to the root of the probability of a start there."""
    told = story("gridworld", FALLING)
    logits = [0.0, 1.0, 2.0, 0.5, -1.0]
    told.rounds[0].configuration["row"] = logits
    blue = draw_rounds(told).axes[0].collections[0]
    opacity = blue.get_facecolors()[:, 3].reshape(5, 5)
    wanted = np.outer(chances(logits), np.full(5, 0.2))
    np.testing.assert_allclose(opacity / opacity.sum(), np.sqrt(wanted) / np.sqrt(wanted).sum(), rtol=1e-12)


def test_continuous_gridworld_rings_stand_at_the_centres():
    falling = [["agent_rbf_0_3"], ["goal_rbf_4_4", "goal_rbf_0_0"]]
    figure = draw_rounds(story("continuous-gridworld", falling))
    rings = [[p for p in axes.patches if isinstance(p, Circle)] for axes in figure.axes]
    solid = [sum(p.get_linestyle() in ("-", "solid") for p in panel) for panel in rings]
    assert solid == [50, 49, 49, 47]
    ghost = next(p for p in rings[1] if p.get_linestyle() not in ("-", "solid"))
    assert ghost.center == (-2.0, 1.0) and to_hex(ghost.get_edgecolor()[:3]) == AGENT


def test_minigolf_is_a_curve_above_lanes():
    told = story("minigolf", [["x"], [], ["f"]], truth=("x", "f"), vary=1.5)
    above, below = draw_rounds(told).axes
    np.testing.assert_allclose(above.get_lines()[0].get_ydata(), [5.0, 6.5, 8.0])
    ends = [line.get_xdata()[-1] for line in below.get_lines() if len(line.get_xdata()) == 2]
    assert ends == [1.0, 3.0, 3.4, 3.4, 3.4]
    assert [t.get_text() for t in below.get_yticklabels()] == ["x ✓", "f ✓", "sqrt_x", "sqrt_f", "sqrt_xf"]


def test_any_world_has_bars_of_its_configuration():
    above, below = draw_rounds(story("cartpole", [["angle"], []])).axes
    assert [t.get_text() for t in above.get_yticklabels()] == [
        "gravity", "cart_mass", "pole_mass", "pole_half_length", "force",
    ]  # fmt: skip
    gravity = [bar for bar in above.patches if bar.get_y() < 0 and bar.get_width() < 0.79]
    low, high = make_world("cartpole").parameters[0].low, make_world("cartpole").parameters[0].high
    assert gravity[0].get_width() == pytest.approx(0.8 * (9.8 - low) / (high - low))
    assert len(below.get_yticklabels()) == 4


def test_units_that_are_no_features_fall_back_to_bars():
    world = make_world("gridworld")
    units = ("position", "goal_row_0")
    told = ExampleRun("gridworld", tuple(world.parameters), records(world, units, [["position"]]), units)
    assert len(draw_rounds(told).axes) == 2


def test_of_many_units_those_that_were_selected_have_lanes():
    world = make_world("gridworld")
    units = tuple(f"row_{i}[up]" for i in range(48))
    told = ExampleRun("gridworld", tuple(world.parameters), records(world, units, [["row_40[up]", "row_3[up]"]]), units)
    lanes = draw_rounds(told).axes[1]
    shown = [label.get_text() for label in lanes.get_yticklabels()]
    assert shown == [f"row_{i}[up]" for i in [*range(23), 40]]
    assert lanes.get_title(loc="left") == "24 of 48 groups, those shown to be controlled before others"


def test_a_long_story_keeps_its_first_its_last_and_what_fell():
    falling = [[] for _ in range(30)]
    falling[11], falling[20] = ["row_1"], ["row_2", "row_3"]
    told = story("gridworld", falling, vary=0.0)
    shown = [r.number for r in most_telling(told.rounds)]
    assert len(shown) == MOST_ROUNDS and {0, 11, 20, 29} <= set(shown) and shown == sorted(shown)
    assert len(draw_rounds(told).axes) == 2 * MOST_ROUNDS
    assert [r.number for r in most_telling(told.rounds, 4)] == [0, 11, 20, 29] and len(
        most_telling(told.rounds, 24)
    ) == 24


def test_the_verdict_counts_against_the_truth():
    assert story("gridworld", FALLING, truth=("row_0", "row_3")).verdict == (
        "1 of 2 controlled features found, 2 falsely"
    )
    assert story("gridworld", FALLING).verdict == "3 features shown to be controlled, 13 undecided"


@pytest.mark.parametrize(("name", "falling"), [("gridworld", FALLING), ("minigolf", [["x"], ["f"]])])
def test_the_same_story_gives_the_same_bytes(tmp_path, name, falling):
    for suffix in ("png", "svg", "gif"):
        paths = [tmp_path / f"{i}.{suffix}" for i in range(2)]
        for path in paths:
            told = story(name, falling, truth=())
            film_rounds(told, path) if suffix == "gif" else save(draw_rounds(told), path)
        assert paths[0].read_bytes() == paths[1].read_bytes()
    with Image.open(tmp_path / "0.gif") as film:
        assert film.n_frames == (2 * len(falling) if name == "gridworld" else len(falling))
        sizes = set()
        for frame in range(film.n_frames):
            film.seek(frame)
            sizes.add(film.size)
            pixels = np.asarray(film.convert("RGB"), dtype=int)
            assert (pixels[..., 2] - pixels[..., 0] > 60).any()  # the agent's blue has survived the palette
        assert len(sizes) == 1


def test_bad_targets_and_empty_stories_are_one_sentence(tmp_path):
    told = story("gridworld", FALLING)
    with pytest.raises(InputError, match=r"saved as \.gif"):
        film_rounds(told, tmp_path / "film.mp4")
    with pytest.raises(InputError, match=r"\.png, \.svg or \.pdf"):
        save(draw_rounds(told), tmp_path / "picture.bmp")
    with pytest.raises(InputError, match="nothing to draw yet"):
        ExampleRun("gridworld", (), [], ())


def test_words_say_what_the_numbers_say():
    omega = {"row": [1, 1, 5, 1, 1], "col": [1] * 5, "goal_row": [3, 1, 1, 3, 1], "goal_col": [1, 1.1, 1, 1, 0.9]}
    assert configuration_in_words("gridworld", omega) == (
        "the agent starts in row 2 (93%) and any column; the goal lies in row 0 or 3 (83%) and any column"
    )
    where = {"x": -1.234, "y": 0.5, "goal_x": 2, "goal_y": 0}
    assert configuration_in_words("continuous-gridworld", where) == (
        "the agent starts around (−1.23, 0.50); the goal lies around (2.00, 0.00)"
    )
    assert configuration_in_words("minigolf", {"putter_length": 5.12345}) == "putter_length 5.123"
    assert configuration_in_words("mine", {"a": [1.0, 2.5], "b": 3}) == "a [1, 2.5], b 3"


def test_records_come_back_from_their_dictionaries():
    record = records(make_world("minigolf"), ("x", "f"), [["x"]])[0]
    assert Round.from_dict(record.to_dict()) == record
    broken = record.to_dict()
    del broken["fell"]
    with pytest.raises(InputError, match="'fell'"):
        Round.from_dict(broken)
    assert same_configuration({"a": [1.0, 2.0]}, {"a": np.array([1.0, 2.0 + 1e-13])})
    assert not same_configuration({"a": 1.0}, {"a": 1.1}) and not same_configuration({"a": 1.0}, {"b": 1.0})
