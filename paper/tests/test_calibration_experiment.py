"""Error rates: their intervals, what a batch counts, and the panels on records with a known answer."""

import numpy as np
import pytest
from policyspace_paper import calibration
from policyspace_paper.execution import Record, RunSize
from scipy.stats import chi2

from policyspace.report import save

CELLS = calibration.EXPERIMENT.cells

# -- cells and batches --------------------------------------------------------------------------------------------


def test_batches_have_seeds_of_their_own():
    cells = CELLS(RunSize())
    assert len({cell.key for cell in cells}) == len(cells)
    wilks = [c.setting for c in cells if c.setting.get("test") == "wilks" and c.setting["scenario"] == "linear"]
    assert sum(s["num_runs"] for s in wilks) == 1000 and sorted(s["seed"] for s in wilks) == list(range(10))
    assert len(CELLS(RunSize(runs=2))) == 2 * len(cells)
    assert {c.setting["kind"] for c in CELLS(RunSize(quick=True))} == {
        "test",
        "degrees",
        "rule",
    }
    assert set(calibration.TESTS) == set(calibration.SCENARIOS)


def test_degrees_of_freedom_have_the_error_that_chi_square_says():
    """λ_I of a Gaussian policy is χ²_{d−|I|} exactly, so the error of any wrong critical value is known in closed form."""
    setting = {"kind": "degrees", "policy": "gaussian", "num_runs": 400, "significance": 0.05, "seed": 0}
    rejections = calibration.run(setting)["rejections"]
    for size in calibration.SIZES:
        for words, degrees in (("d − |I|", 8 - size), ("|I|", size)):
            expected = chi2.sf(chi2.isf(0.05, degrees), 8 - size)
            slack = 4 * np.sqrt(expected * (1 - expected) / 400) + 0.005
            assert abs(rejections[f"{size}, {words}"] / 400 - expected) < slack


def test_four_rows_are_too_cautious():
    """χ²_4 in the place of χ²_3 errs in 2.4 % of data sets instead of 5 %, and rejects only what χ²_3 rejects too."""
    setting = {"kind": "degrees", "policy": "boltzmann", "num_runs": 100, "significance": 0.05, "seed": 0}
    counts = calibration.run(setting)["rejections"]
    assert counts["feature, 4"] <= counts["feature, 3"] <= 14
    assert counts["weight, 1"] <= 14


def test_splitting_the_level_finds_less_than_the_paper_s_union():
    found = {}
    for name in ("simplified, united", "simplified, united, paper"):
        setting = next(cell.setting for cell in CELLS(RunSize()) if cell.setting.get("name") == name)
        found[name] = calibration.run(setting | {"num_runs": 8})
    ours, paper = found.values()
    assert ours["errors"] <= paper["errors"]  # the same data at a tenth of the level
    assert ours["power"] <= paper["power"] <= 1
    assert ours["exact"] + ours["errors"] <= 8


# -- analysis -----------------------------------------------------------------------------------------------------


def record(kind, num_runs, seed, result, **setting):
    whole = {"kind": kind, "num_runs": num_runs, "significance": 0.05, "seed": seed, **setting}
    return Record("calibration", whole, "0", 2.0 * num_runs, result)


def some_records():
    return [
        record("test", 100, 0, {"errors": 4, "power": 0.9}, scenario="linear", test="wilks"),
        record("test", 300, 1, {"errors": 14, "power": 0.8}, scenario="linear", test="wilks"),
        record("test", 20, 0, {"errors": 18, "power": 1.0}, scenario="network", test="wilks"),
    ]


def test_batches_are_added_up():
    found = calibration.measured_tests(some_records())
    wilks = found["linear", "wilks"]
    assert (wilks.rate.count, wilks.rate.num_runs) == (18, 400)
    assert wilks.power == pytest.approx(0.825)
    assert wilks.seconds == pytest.approx(2.0)


def test_the_panel_of_tests_names_what_errs_too_often():
    panel = calibration.tests_panel(some_records())
    assert panel.rows[0][:4] == ("linear policy, 300 pairs", "Wilks' χ²", "400", "0.045 (0.027–0.070)")
    assert "network of 8 units, 500 pairs: 0.90" in panel.why and "the other 1 keep" in panel.why


def test_the_panel_of_degrees_puts_right_before_wrong():
    result = {"rejections": {"1, d − |I|": 5, "1, |I|": 80, "2, |I|": 40, "2, d − |I|": 6}}
    panel = calibration.degrees_panel([record("degrees", 100, 0, result, policy="gaussian")])
    assert [row[0] for row in panel.rows] == [
        f"|I| = {size}, {degrees} degrees of freedom" for size in (1, 2) for degrees in ("d − |I|", "|I|")
    ]
    assert [row[-1] for row in panel.rows] == ["as promised", "too often"] * 2


def test_the_panel_of_rules_says_which_union_errs():
    found = [
        record("rule", 50, 0, {"errors": errors, "power": 1.0, "exact": 50 - errors}, name=name)
        for name, errors in (("simplified, united", 1), ("simplified, united, paper", 20))
    ]
    panel = calibration.rules_panel(found)
    assert panel.why.startswith("Rule 2, the paper's union errs in 40% of runs;")
    assert panel.rows[1][4] == "0.60"


def test_panels_are_drawn_and_repeat_themselves(tmp_path):
    for name in ("a.svg", "b.svg"):
        (panel,) = calibration.analyse(some_records())
        save(panel.figure, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
