"""The comparison at equal totals: its settings, its error rates and its analysis, on records with a known answer."""

import numpy as np
import pytest

from policyspace.experiments import gridworld, totals
from policyspace.experiments.equal_totals import COMPARED, error_rates
from policyspace.experiments.store import Record
from policyspace.report.evidence import save


def record(design, budget, missed, wrong, any_false=False):
    result = {"false_negative_rate": missed, "false_positive_rate": wrong, "any_false": any_false}
    return Record("gridworld", {"design": design, "budget": budget, "seed": 0}, "0", 1.0, result)


def test_every_design_is_run_on_the_same_agents_at_the_same_totals():
    cells = gridworld.cells(runs=3)
    assert len(cells) == len(gridworld.TOTALS) * len(COMPARED) * 3
    assert len({cell.key for cell in cells}) == len(cells)
    for cell in cells:
        assert cell.setting["num_attempts"] == (0 if cell.setting["design"] == "none" else 3)


def test_error_rates_are_shares_of_what_could_go_wrong():
    names = ("a", "b", "c", "d", "e")
    rates = error_rates(frozenset("ab"), {"a", "c"}, names)
    assert rates == {"false_positive_rate": pytest.approx(1 / 3), "false_negative_rate": 0.5, "any_false": True}
    assert error_rates(frozenset(), set(), names)["false_negative_rate"] is None
    assert error_rates(frozenset(names), set(names), names)["false_positive_rate"] is None


def test_a_summary_is_mean_and_interval():
    values = [0.0, 0.25, 0.5, 0.25]
    records = [record("none", 40, v, 0.0) for v in values] + [record("uniform", 40, 0.0, 0.5, True)] * 2
    none, uniform = totals.summarise(records)
    assert none.design == "none"
    assert none.false_negative_rate == 0.25
    assert none.false_negative_margin == pytest.approx(1.96 * np.std(values, ddof=1) / 2)
    assert none.share_with_false == 0
    assert (uniform.false_positive_rate, uniform.share_with_false, uniform.num_agents) == (0.5, 1.0, 2)
    assert totals.table([none])[0][:4] == ("no configuration", "40", "4", "0.250 ± 0.200")


def test_agents_without_the_unit_in_question_do_not_count():
    found = totals.summarise([record("none", 40, None, 0.0), record("none", 40, 1.0, None)])[0]
    assert found.false_negative_rate == 1.0
    assert found.false_positive_rate == 0.0


def test_the_figure_is_drawn_and_repeats_itself(tmp_path):
    records = [record(d, t, 0.1, 0.0) for d in COMPARED for t in (40, 400) for _ in range(3)]
    for name in ("a.svg", "b.svg"):
        save(totals.draw(totals.summarise(records), "Discrete grid world"), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.svg").stat().st_size > 5000
