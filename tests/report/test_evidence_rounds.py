"""The picture of a study: a line a unit, at the heights of what its rounds keep, and a sentence where there are none."""

import numpy as np
import pytest

from policyspace import InputError
from policyspace.configuration.combined import evidence_rows
from policyspace.configuration.round import Round
from policyspace.configuration.schedule import Schedule
from policyspace.configuration.status import Status
from policyspace.report.evidence_rounds import draw_evidence_over_rounds
from policyspace.report.style import save

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
    with pytest.raises(InputError, match="tested one by one"):
        draw_evidence_over_rounds(alone)
