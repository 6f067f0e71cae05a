"""Four ways of choosing a putter: the analysis on returns with a known answer, and one run in miniature."""

import json

import numpy as np
import pytest
from policyspace_paper import minigolf_designs as minigolf_strategies
from policyspace_paper.execution import Record, RunSize
from policyspace_paper.minigolf import CURVE, OURS, PUBLISHED, THOROUGH
from policyspace_paper.minigolf import LENGTHS as CURVE_LENGTHS
from policyspace_paper.minigolf_designs import STRATEGIES, STRATEGIES_EXPERIMENT, outcomes
from policyspace_paper.minigolf_designs import STRATEGIES_RUNS as RUNS
from policyspace_paper.minigolf_designs import analyse_strategies as analyse
from policyspace_paper.minigolf_designs import judge_strategies as judge
from policyspace_paper.minigolf_designs import run_strategies as run

from policyspace.report import save
from policyspace.worlds import AGENT_A2

cells = STRATEGIES_EXPERIMENT.cells
LENGTHS = {"uniform": 8.0, "full": 5.0, "identified": 2.0, "oracle": 2.0}


def records(means, noise=0.2, runs=30, deviation=OURS, selected=AGENT_A2):
    rng = np.random.default_rng(1)
    return [
        Record(
            "minigolf-strategies",
            {"learning": THOROUGH[deviation], "num_observed": 100, "seed": seed},
            "0",
            1.0,
            {
                "selected": sorted(selected),
                "putter_lengths": LENGTHS,
                "returns": {name: mean + noise * rng.standard_normal() for name, mean in means.items()},
            },
        )
        for seed in range(runs)
    ]


@pytest.mark.parametrize(
    ("identified", "full", "parts", "verdict"),
    [
        (-4.0, -6.0, [True, True], "holds"),  # as good as the oracle, much better than the wrong space
        (-4.0, -4.8, [True, True], "holds"),  # what is at stake is small, and all of it is gained
        (-3.0, -6.0, [True, True], "holds"),  # better than the oracle, whose optimum is an estimate
        (-4.8, -6.0, [False, True], "holds partly"),  # most of what is at stake is gained, and much of it lost
        (-6.0, -6.0, [False, False], "does not hold"),
        (-5.5, -6.0, [False, False], "does not hold"),  # a gain, of a quarter of what is at stake
        (-5.0, -6.0, [False, None], "does not hold"),  # just a half
    ],
)
def test_both_halves_of_the_claim_count(identified, full, parts, verdict):
    means = {"uniform": -9.0, "full": full, "identified": identified, "oracle": -4.0}
    found = records(means)
    assert [part.holds for part in judge(outcomes(found))] == parts
    assert analyse(found)[0].verdict == verdict
    assert analyse(found[:9])[0].verdict == "too few runs to say"


def test_a_gain_of_less_than_a_tenth_of_a_stroke_is_not_notable():
    means = {"uniform": -9.0, "full": -4.05, "identified": -4.0, "oracle": -4.0}
    first, second = judge(outcomes(records(means, noise=0.001)))
    assert (first.holds, second.holds) == (True, False)
    assert first.words.startswith("At stake are 0.05 ± 0.00 strokes")


def test_a_difference_that_is_significant_but_small_is_comparable():
    means = {"uniform": -9.0, "full": -6.0, "identified": -4.1, "oracle": -4.0}
    assert [part.holds for part in judge(outcomes(records(means, noise=0.01)))] == [True, True]


@pytest.mark.parametrize("full", [-4.0, -3.5])
def test_where_the_wrong_space_is_as_good_as_the_oracle_nothing_can_be_told(full):
    means = {"uniform": -9.0, "full": full, "identified": -4.0, "oracle": -4.0}
    assert [part.holds for part in judge(outcomes(records(means)))] == [None, None]


def test_a_panel_for_each_deviation_with_means_and_putters(tmp_path):
    means = {"uniform": -9.0, "full": -6.0, "identified": -4.0, "oracle": -4.0}
    exact, none = records(means), records(means, deviation=PUBLISHED, selected=())
    ours, wide = analyse(exact + none)
    assert [p.name for p in (ours, wide)] == ["minigolf-strategies-0.01", "minigolf-strategies-0.1"]
    assert (ours.numbers["identified_exactly"], wide.numbers["identified_exactly"]) == (30, 0)
    values = [r.result["returns"]["full"] for r in exact]
    assert ours.numbers["full"]["mean"] == pytest.approx(np.mean(values))
    assert [row[3] for row in ours.rows] == ["8", "5", "2", "2"]
    for name in ("a.svg", "b.svg"):
        save(analyse(exact)[0].figure, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_the_paper_has_100_runs_and_both_deviations_are_shown():
    found = cells(RunSize())
    assert len({cell.key for cell in found}) == len(found) == 4 * RUNS
    published = cells(RunSize(as_published=True))
    assert len(published) == 2 * RUNS and {c.setting["procedure"] for c in published} == {"literal"}
    by_the_curve = {(json.dumps(c.setting["learning"]), c.setting["seed"]) for c in CURVE.cells(RunSize())}
    for c in found:  # every putter is chosen by learnings of `minigolf-curve`; literally by all of them
        assert {(json.dumps(c.setting["learning"]), seed) for seed in c.setting["curve_seeds"]} <= by_the_curve
    assert {len(c.setting["curve_seeds"]) for c in published} == {RUNS}
    assert {tuple(c.setting["putter_lengths"]) for c in found} == {tuple(CURVE_LENGTHS)}
    assert {c.setting["learning"]["stages"][-1][0] for c in published} == {0.01, 0.1}


def test_a_run_chooses_a_putter_by_each_strategy():
    tiny = {"start": "safe", "stages": [[0.01, 10, 50, 0.002]]}
    setting = {
        **cells(RunSize(quick=True, runs=1))[0].setting,
        "observed_learning": tiny,
        "learning": tiny,
        "putter_lengths": [2.0, 5.0],
        "num_episodes": 500,
        "curve_episodes": 500,
    }
    one = run(setting)
    minigolf_strategies._best_of.cache_clear()
    assert one == run(setting)
    assert set(one["returns"]) == set(STRATEGIES)
    assert 1 <= one["putter_lengths"]["uniform"] <= 15
    assert set(one["putter_lengths"].values()) <= {2.0, 5.0, one["putter_lengths"]["uniform"]}
    # The same putter is the same learning.
    if one["putter_lengths"]["identified"] == one["putter_lengths"]["oracle"]:
        assert one["returns"]["identified"] == one["returns"]["oracle"]
