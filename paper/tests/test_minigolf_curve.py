"""The curve over putters: its analysis on curves whose best putter is known."""

import numpy as np
import polars as pl
import pytest
from policyspace_paper import minigolf as minigolf_curve
from policyspace_paper.execution import Record, RunSize
from policyspace_paper.minigolf import (
    AGENTS,
    LENGTHS,
    OURS,
    PAPER,
    PUBLISHED,
    THOROUGH,
    analyse,
    curves,
    judge,
    shortfall,
)
from scipy.stats import t

from policyspace.report import save


def records(best, curvature=0.05, noise=0.01, runs=12, deviation=OURS):
    """Parabolas around the best putter of each agent, with noise of their own."""
    rng = np.random.default_rng(7)
    found = []
    for agent, peak in best.items():
        for seed in range(runs):
            returns = -curvature * (np.array(LENGTHS) - peak) ** 2 + noise * rng.standard_normal(len(LENGTHS))
            setting = {"agent": agent, "learning": THOROUGH[deviation], "putter_lengths": LENGTHS, "seed": seed}
            found.append(Record("minigolf-curve", setting, "0", 1.0, {"returns": returns.tolist()}))
    return found


@pytest.mark.parametrize(
    ("best", "verdict"),
    [
        ({"A1": 5.0, "A2": 11.5}, "holds"),
        ({"A1": 5.0, "A2": 3.0}, "holds partly"),
        ({"A1": 3.0, "A2": 3.0}, "does not hold"),
    ],
)
def test_the_verdict_says_whose_optimum_holds(best, verdict):
    found = records(best)
    parts = judge(curves(found))
    assert analyse(found)[0].verdict == verdict
    assert analyse(records(best, runs=9))[0].verdict == "too few runs to say"
    for part, (agent, said) in zip(parts, (("A₁", "A1"), ("A₂", "A2")), strict=False):
        assert part.holds == (best[said] == PAPER[said])
        assert part.words.startswith(f"{agent}, whose optimum is said to be {PAPER[said]:g}, is best at")
    assert parts[2].holds == (best["A1"] != best["A2"])


def test_the_dependence_is_judged_by_what_a2_loses_with_a1s_putter():
    """A₁ loses much with A₂'s putter; A₂ hardly with A₁'s, for whom the putter is to be chosen."""
    found = [
        Record(one.experiment, one.setting, "0", 1.0, {"returns": [0.001 * x for x in one.result["returns"]]})
        if one.setting["agent"] == "A2" else one
        for one in records({"A1": 5.0, "A2": 3.0}, noise=0.0)
    ]  # fmt: skip
    part = judge(curves(found))[2]
    assert part.words.startswith("With A₁'s best putter A₂ loses 0.00 ± 0.00 (A₁ with A₂'s 0.20")
    assert part.holds is True  # surely more than nothing, without noise
    rng = np.random.default_rng(1)
    for one in found:
        if one.setting["agent"] == "A2":
            one.result["returns"] = [x + 0.01 * rng.standard_normal() for x in one.result["returns"]]
    assert judge(curves(found))[2].holds is False


def test_a_flat_curve_shows_no_dependence_and_a_noisy_one_says_nothing():
    flat = judge(curves(records({"A1": 5.0, "A2": 3.0}, curvature=0.0, noise=0.01)))
    assert [part.holds for part in flat] == [True, True, False]
    noisy = records({"A1": 5.0, "A2": 3.0}, curvature=0.0, noise=1.0)
    assert [part.holds for part in judge(curves(noisy))] == [None, None, None]
    assert analyse(noisy)[0].verdict == "too few runs to say"


def test_the_shortfall_is_a_paired_mean_with_students_interval_for_all_putters():
    returns = np.array([[0.0, -1.0, -9.0], [0.0, -2.0, -9.0], [0.5, -1.0, -9.0]])
    runs = [{"seed": i, "length": j + 1.0, "return": returns[i, j]} for i in range(3) for j in range(3)]
    found = shortfall(pl.DataFrame(runs), 2.0)
    differences = [1.0, 2.0, 1.5]
    assert found.value == pytest.approx(1.5)
    assert found.margin == pytest.approx(t.ppf(1 - 0.05 / 2 / 2, 2) * np.std(differences, ddof=1) / np.sqrt(3))


def test_each_deviation_has_its_panel_with_a_row_for_every_putter(tmp_path):
    both = records({"A1": 5.0, "A2": 3.0}) + records({"A1": 3.0, "A2": 2.0}, deviation=PUBLISHED)
    ours, wide = analyse(both)
    assert [p.name for p in (ours, wide)] == ["minigolf-curve-0.01", "minigolf-curve-0.1"]
    assert (ours.numbers["best"], wide.numbers["best"]) == ({"A1": 5.0, "A2": 3.0}, {"A1": 3.0, "A2": 2.0})
    assert len(ours.rows) == len(LENGTHS)
    row = dict(zip(ours.columns, ours.rows[LENGTHS.index(5.0)], strict=True))
    assert (row["reference A₁"], row["reference A₂"]) == ("−0.06", "−3.92")
    assert not any(wide.rows[0][3:])
    for name in ("a.svg", "b.svg"):
        save(analyse(both)[0].figure, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_one_agent_alone_makes_no_panel_yet():
    assert analyse(records({"A1": 5.0})) == []


def test_cells_are_whole_curves_of_both_agents():
    cells = minigolf_curve.CURVE.cells(RunSize())
    assert len({cell.key for cell in cells}) == len(cells) == len(AGENTS) * (2 * 100 + 2 * 10)
    assert len(minigolf_curve.CURVE.cells(RunSize(quick=True))) == 8
    published = {str(c.setting["learning"]["stages"]) for c in minigolf_curve.CURVE.cells(RunSize(as_published=True))}
    assert published == {"[[0.1, 100, 100, 0.01, 1.0]]", "[[0.01, 100, 100, 0.003, 1.0]]"}


def test_a_run_is_a_function_of_its_setting():
    setting = {
        "agent": "A2",
        "learning": {"start": "safe", "stages": [[0.01, 10, 50, 0.002]], "warm": [0.01, 5, 50, 0.002]},
        "putter_lengths": [2.0, 4.0],
        "num_episodes": 500,
        "seed": 3,
    }
    one = minigolf_curve.run(setting)
    assert one == minigolf_curve.run(setting) != minigolf_curve.run(setting | {"seed": 4})
    assert len(one["returns"]) == 2
