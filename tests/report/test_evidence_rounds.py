"""The picture of a study: a line a unit, at the heights of what its rounds keep, or points of rounds that count alone."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Text

from policyspace import InputError, Study
from policyspace.report import AMBER, GREEN, GREY, RED, save, spread_labels
from policyspace.report.figures import APART, MOST_NAMES, Spot, shared
from policyspace.study import Round, Schedule, Status, draw_evidence_over_rounds, evidence_of_rounds, evidence_rows
from policyspace.study.figures import WIDEST

SCHEDULE = Schedule(("near", "far"), True, significance=0.05, test="combined")


def told(*p_values):
    rounds = []
    for number, p in enumerate(p_values):
        tests = [{"group": "near", "p_value": p}]
        rows = evidence_rows(tests, SCHEDULE.units, rounds, SCHEDULE.shares, 0.05)
        selected = tuple(row["group"] for row in rows if row["rejected"])
        rounds.append(Round(number, {}, None, (), {}, 10, 10 * (number + 1), 0.0, rows, (), selected, (), []))
    return Status(SCHEDULE, rounds)


def test_lines_are_the_evidence_after_every_round():
    status = told(0.02, 0.001, 0.0001)
    (axes,) = draw_evidence_over_rounds(status).axes
    dashed, near, far = axes.lines
    assert dashed.get_ydata()[0] == pytest.approx(-np.log10(0.05))
    assert list(near.get_xdata()) == list(far.get_xdata()) == [0, 10, 20, 30]
    expected = [-np.log10(r.tests[0]["adjusted_p_value"]) for r in status.rounds]
    np.testing.assert_allclose(near.get_ydata()[1:], expected)
    assert (np.asarray(far.get_ydata()) == 0).all() and near.get_color() != far.get_color()


def test_e_values_are_drawn_after_every_look():
    row = {"group": "near", "looks": [(1, 0.5), (2, 2.0)], "e_value": np.exp(2.0)}
    schedule = Schedule(("near",), True, test="eprocess")
    (axes,) = draw_evidence_over_rounds(
        Status(schedule, [Round(0, {}, None, (), {}, 2, 2, 0.05, [row], (), (), ("near",), [])])
    ).axes
    np.testing.assert_allclose(axes.lines[1].get_ydata()[1:], np.array([0.5, 2.0]) / np.log(10))


def test_it_is_saved_as_the_same_bytes_and_refused_with_a_sentence(tmp_path):
    for name in ("a.svg", "b.svg"):
        save(draw_evidence_over_rounds(told(0.02, 0.3)), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    with pytest.raises(InputError, match="nothing to draw yet"):
        draw_evidence_over_rounds(Status(SCHEDULE))
    alone = Status(Schedule(("near",), True), [Round(0, {}, None, (), {}, 2, 2, 0.05, [], (), (), ("near",), [])])
    with pytest.raises(InputError, match="no round that could be tested by itself"):
        draw_evidence_over_rounds(alone)


def by_batches(*rounds, truth=None, **options):
    """A study of rounds that count by themselves: for each, the adjusted p-values of the units that it tested."""
    schedule = Schedule(("near", "far"), True, significance=0.06, max_rounds=2, **options)
    records, selected = [], ()
    for number, adjusted in enumerate(rounds):
        level = schedule.level_of(number)
        rows = [{"group": unit, "adjusted_p_value": p, "rejected": p <= level} for unit, p in adjusted.items()]
        newly = tuple(unit for unit, p in adjusted.items() if p <= level and unit not in selected)
        selected = (*selected, *newly)
        records.append(Round(number, {}, None, (), {}, 10, 10 * number + 10, level, rows, newly, selected, (), []))
    return Status(schedule, records, truth=truth)


def points_of(axes):
    return [line for line in axes.lines if line.get_marker() == "o"]


def test_rounds_that_count_by_themselves_are_points_beside_the_line_of_their_round():
    status = by_batches({"near": 0.03, "far": 1.0}, {"near": 0.001, "far": 0.5}, {"far": 0.2})
    figure = draw_evidence_over_rounds(status)
    (axes,) = figure.axes
    dots = points_of(axes)
    assert all(len(dot.get_xdata()) == 1 for dot in dots)  # nothing joins them
    assert [dot.get_xdata()[0] for dot in dots] == [1, 1, 2, 2, 3]
    np.testing.assert_allclose([dot.get_ydata()[0] for dot in dots], -np.log10([0.03, 1.0, 0.001, 0.5, 0.2]))
    lines = [line for line in axes.lines if line.get_marker() != "o"]
    np.testing.assert_allclose([line.get_ydata() for line in lines], np.full((3, 2), -np.log10(0.02)))
    filled = [dot.get_markerfacecolor() == dot.get_color() for dot in dots]
    assert filled == [False, False, True, False, False]  # 0.03 would be enough of δ, and is not of a third of it
    assert "every round counts by itself" in figure.get_suptitle()
    (legend,) = figure.legends
    assert legend.get_texts()[0].get_text() == "to be crossed by one round alone (its δ = 0.02)"
    assert [text.get_text() for text in axes.texts] == ["near", "far"]


def test_the_papers_rule_has_all_of_delta_in_every_round_and_names_what_crosses_again():
    status = by_batches({"near": 0.03, "far": 1.0}, {"near": 0.01, "far": 1.0}, paper_rule=True, truth=["far"])
    (axes,) = draw_evidence_over_rounds(status).axes
    lines = [line for line in axes.lines if line.get_marker() != "o"]
    np.testing.assert_allclose([line.get_ydata()[0] for line in lines], -np.log10(0.06))
    assert [text.get_text() for text in axes.texts] == ["near", "near"]
    near, far = points_of(axes)[:2]
    assert near.get_color() == RED and far.get_color() == AMBER  # wrongly selected, and missed


def test_a_round_that_could_not_be_tested_says_so():
    (axes,) = draw_evidence_over_rounds(by_batches({}, {"near": 0.5, "far": 1.0})).axes
    assert [(text.get_text(), text.get_position()[0]) for text in axes.texts if text.get_rotation()] == [
        ("not tested", 1)
    ]


def test_an_older_study_by_batches_has_a_picture(tmp_path):
    file = tmp_path / "old.sqlite"
    file.write_bytes((Path(__file__).parents[1] / "study/older_files/study-batches.sqlite").read_bytes())
    status = Study.open(file).status()
    points = evidence_of_rounds(status)
    assert [(point.unit, point.number) for point in points if point.crossed] == [("x", 1)]
    assert len(points) == 5 + 4 + 4  # what is selected is not tested again
    for name in ("a.svg", "b.svg"):
        save(draw_evidence_over_rounds(status), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_many_rounds_and_units_are_drawn_too(tmp_path):
    units = tuple(f"unit_{i}" for i in range(30))
    schedule = Schedule(units, False, max_rounds=3, paper_rule=True)
    rows = [{"group": unit, "adjusted_p_value": 1e-4 * (i + 1)} for i, unit in enumerate(units)]
    rounds = [Round(n, {}, None, (), {}, 5, 5 * n + 5, 0.05, rows, (), units, (), []) for n in range(60)]
    figure = draw_evidence_over_rounds(Status(schedule, rounds))
    assert figure.get_figwidth() == WIDEST and len(figure.axes[0].get_xticks()) == 30
    save(figure, tmp_path / "many.png")
    assert not figure.axes[0].texts and "too many for names" in figure.axes[0].get_xlabel()


def with_ends(values, test, truth=None):
    """A study of one round after which units have so much evidence, −log₁₀ p or log₁₀ E."""
    units = tuple(f"unit_{i}" for i in range(len(values)))
    rows = {
        "combined": lambda value: {"adjusted_p_value": 10.0**-value},
        "eprocess": lambda value: {"looks": [(1, 0.0), (7, value * np.log(10))]},
        "batches": lambda value: {"adjusted_p_value": 10.0**-value},
    }[test]
    tests = [{"group": unit} | rows(value) for unit, value in zip(units, values, strict=True)]
    selected = tuple(unit for unit, value in zip(units, values, strict=True) if value > 1.31)
    undecided = tuple(unit for unit in units if unit not in selected)
    schedule = Schedule(units, True, max_rounds=0, test=test)
    record = Round(0, {}, None, (), {}, 9, 9, 0.05, tests, selected, selected, undecided, [])
    return Status(schedule, [record], truth=truth)


@pytest.mark.parametrize("test", ["combined", "eprocess", "batches"])
@pytest.mark.parametrize("count", [1, 5, 16, 50])
def test_names_stand_apart_inside_the_picture_and_lead_to_their_points(test, count):
    rng = np.random.default_rng(count)
    values = np.round(rng.choice([0.2, 1.2, 1.4, 27.0], count) * rng.choice([1.0, 1.0, 1.01, 1.5], count), 3)
    figure = draw_evidence_over_rounds(with_ends(values, test))
    figure.draw_without_rendering()
    (axes,) = figure.axes
    named = [text for text in axes.texts if text.get_text()]
    boxes = [Text.get_window_extent(text) for text in named]  # without what leads to their points
    assert 1 <= len(named) <= MOST_NAMES
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    inside = figure.bbox
    assert all(b.x0 >= 0 and b.y0 >= 0 and b.x1 <= inside.x1 + 1 and b.y1 <= inside.y1 + 1 for b in boxes)
    for text in named:
        if text.get_text().startswith("unit_") and "," not in text.get_text():
            assert text.xy[1] == pytest.approx(values[int(text.get_text()[5:])])


def test_equal_ends_share_a_name_and_what_is_near_the_line_has_its_own():
    ends = [27.0] * 13 + [1.2, 1.5] + [0.0] * 5
    (axes,) = draw_evidence_over_rounds(with_ends(ends, "combined")).axes
    assert [text.get_text() for text in axes.texts if text.get_text()] == [
        "5 units, p = 1", "unit_13", "unit_14", "13 units, p = 1e-27",
    ]  # fmt: skip
    spots = [Spot(i / 40, f"u{i}", (1, i)) for i in range(40)]
    found = shared(spots, 0.5)
    assert len(found) == MOST_NAMES and [len(some) for some in found[1:-1]] == [1] * 14
    assert sum(len(some) for some in found) == 40 and all(0.3 < some[0].height < 0.7 for some in found[1:-1])
    heights = spread_labels([0.0, 0.5, 0.5, 0.5, 1.0])
    np.testing.assert_allclose(heights, [0.0, 0.5 - APART, 0.5, 0.5 + APART, 1.0])


def test_evidence_against_is_below_zero_and_decided_units_lead_to_their_names():
    status = with_ends([-0.6, 7.0], "eprocess")
    (axes,) = draw_evidence_over_rounds(status).axes
    assert axes.lines[1].get_ydata()[-1] == pytest.approx(-0.6) and axes.get_ylim()[0] < -0.6
    assert list(axes.lines[-2].get_xdata()) == [7, 9] and axes.get_ylabel() == "log₁₀ E"


@pytest.mark.parametrize("test", ["combined", "batches"])
def test_colours_are_explained(test):
    def said(truth):
        (legend,) = draw_evidence_over_rounds(with_ends([2.0, 3.0, 0.5, 0.0], test, truth)).legends
        return {
            text.get_text(): line.get_color() for text, line in zip(legend.get_texts(), legend.get_lines(), strict=True)
        }

    known = said(["unit_0", "unit_2"])
    assert known["shown, and truly controlled"] == GREEN and known["shown, but not controlled"] == RED
    assert known["controlled, but not shown"] == AMBER and known["not controlled, and not shown"] == GREY
    unknown = said(None)
    assert unknown["shown to be controlled"] == GREEN and unknown["not shown to be controlled"] == GREY
    assert not {RED, AMBER} & set(unknown.values()) and any(words.startswith("to be crossed") for words in unknown)
