"""The experiments on configuring: their settings, their error rates and their analysis, on records with a known answer."""

import json

import numpy as np
import pytest
from scipy.stats import t

from policyspace.experiments import configuring_continuous_gridworld as continuous_gridworld
from policyspace.experiments import configuring_gridworld as gridworld
from policyspace.experiments.configured_run import error_rates, run
from policyspace.experiments.configuring import COMPARED
from policyspace.experiments.configuring_panels import agents, at_totals, by_episodes, panels, summaries
from policyspace.experiments.panel import Scale
from policyspace.experiments.records import Record
from policyspace.report.style import save


def record(part, design, episodes, seed, missed, wrong=0.0, any_false=False, rounds=1):
    entry = "budget" if part == "totals" else "num_episodes"
    result = {"false_negative_rate": missed, "false_positive_rate": wrong, "any_false": any_false, "num_rounds": rounds}
    return Record("gridworld", {"part": part, "design": design, entry: episodes, "seed": seed}, "0", 1.0, result)


@pytest.mark.parametrize("module", [gridworld, continuous_gridworld])
def test_the_paper_has_25_runs_of_each_and_all_ways_see_the_same_agents(module):
    cells = module.cells(Scale())
    assert len({cell.key for cell in cells}) == len(cells)
    parts = {part: [c.setting for c in cells if c.setting["part"] == part] for part in ("episodes", "totals", "story")}
    assert len(parts["episodes"]) == 25 * 2 * len(module.SETTINGS.episodes)
    assert len(parts["totals"]) == 25 * len(COMPARED) * len(module.SETTINGS.totals)
    assert len(parts["story"]) == 1
    for setting in parts["totals"] + parts["episodes"]:
        assert (setting.get("num_attempts") == 0) == (setting["design"] == "none")
        planned = setting["part"] == "totals" and setting["design"] not in ("none", "paper")
        assert ("num_attempts" not in setting) == setting.get("flat_first", False) == planned
        assert setting["significance"] == 0.01
        assert "paper_rule" not in setting


def test_as_published_are_the_papers_literal_settings():
    for cell in continuous_gridworld.cells(Scale(as_published=True)):
        assert cell.setting["paper_rule"]
        assert cell.setting["learning"] == {"num_steps": 100, "num_episodes": 100, "learning_rate": 0.1}
        if cell.setting["part"] == "episodes" and cell.setting["design"] == "paper":
            assert cell.setting["design_options"]["last_point"]
    ours, theirs = ({c.key for c in gridworld.cells(Scale(as_published=p))} for p in (False, True))
    assert not ours & theirs


def test_quick_has_every_part_in_miniature():
    cells = gridworld.cells(Scale(quick=True))
    assert {c.setting["part"] for c in cells} == {"episodes", "totals", "story"}
    assert len(cells) < len(gridworld.cells(Scale())) / 10


def test_error_rates_are_shares_of_what_could_go_wrong():
    names = ("a", "b", "c", "d", "e")
    rates = error_rates(frozenset("ab"), {"a", "c"}, names)
    assert rates == {"false_positive_rate": pytest.approx(1 / 3), "false_negative_rate": 0.5, "any_false": True}
    assert error_rates(frozenset(), set(), names)["false_negative_rate"] is None
    assert error_rates(frozenset(names), set(names), names)["false_positive_rate"] is None


def test_a_summary_is_mean_and_interval_and_leaves_out_who_has_no_such_unit():
    values = [0.0, 0.25, 0.5, 0.25]
    records = [record("totals", "none", 40, i, v) for i, v in enumerate(values)]
    records += [record("totals", "none", 40, 4, None)] + [
        record("totals", "uniform", 40, i, 0.0, 0.5, True) for i in (0, 1)
    ]
    none, uniform = summaries(agents(records, "budget"))
    assert (none["design"], none["agents"], none["agents_with_a_false_selection"]) == ("none", 5, 0)
    assert none["false_negative_rate"].value == 0.25
    assert none["false_negative_rate"].margin == pytest.approx(t.ppf(0.975, 3) * np.std(values, ddof=1) / 2)
    assert (uniform["false_positive_rate"].value, uniform["agents_with_a_false_selection"]) == (0.5, 2)
    assert at_totals("gridworld", "Grid", records).rows[0][:3] == ("no configuration", "40", "5")


@pytest.mark.parametrize(
    ("configured", "verdict"), [(0.2, "holds"), (0.8, "does not hold"), (None, "holds partly")], ids=str
)
def test_the_verdict_follows_from_the_same_agents_with_and_without(configured, verdict):
    noise = [0.0, 0.01, 0.02, -0.01]
    records = []
    for n in (10, 100, 1000):
        after = configured if configured is not None else (0.2 if n == 1000 else 0.8)
        for seed, extra in enumerate(noise):
            records.append(record("episodes", "none", n, seed, 0.7 + extra))
            records.append(record("episodes", "paper", n, seed, after - extra, any_false=n == 10, rounds=30))
    panel = by_episodes("gridworld", "Grid", records)
    assert panel.verdict == verdict
    if configured == 0.2:
        assert panel.numbers["gains"]["100"]["mean"] == pytest.approx(0.5 + 2 * np.mean(noise))
    assert "pays 30·n episodes" in panel.why
    assert "4 of 12 with configuration" in panel.why
    json.dumps(panel.numbers, allow_nan=False)


def test_the_best_design_at_the_largest_total_is_named(tmp_path):
    missed = {"none": 0.4, "uniform": 0.1, "paper": 0.5, "d-optimal": 0.05, "noncentrality": 0.2}
    records = [record("totals", d, n, s, m) for d, m in missed.items() for n in (40, 400) for s in range(3)]
    panel = at_totals("gridworld", "Grid", records)
    assert "least by D-optimal" in panel.why
    assert panel.verdict == "our own"
    assert len(panel.rows) == 10
    for name in ("a.svg", "b.svg"):
        save(at_totals("gridworld", "Grid", records).figure, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_real_story_is_run_drawn_and_judged(tmp_path):
    cell = next(c for c in gridworld.cells(Scale(quick=True)) if c.setting["part"] == "story")
    setting = cell.setting | {
        "learning": {"num_steps": 30},
        "num_episodes": 100,
        "num_attempts": 1,
        "design": "uniform",
    }
    result = json.loads(json.dumps(run(setting | {"design_options": {}}), allow_nan=False))
    (panel,) = panels("gridworld", "Grid", [Record("gridworld", setting, "0", 1.0, result)])
    wrong = set(result["selected"]) - set(result["truth"])
    assert f"{len(wrong)} others are selected" in panel.why
    assert (panel.verdict == "holds") == (set(result["selected"]) == set(result["truth"]))
    save(panel.figure, tmp_path / "story.svg")
