"""Random features of golfers: rates and gains on records with a known answer, and one run in miniature."""

import pytest
from policyspace_paper.execution import Record, RunSize
from policyspace_paper.minigolf import golf
from policyspace_paper.minigolf_designs import (
    EPISODES,
    FEATURES_EXPERIMENT,
    STATED,
    TOTALS,
    TOTALS_RUNS,
    analyse,
    counts,
    gains,
    judge,
    room,
    run,
)
from scipy.stats import binom

from policyspace.report import save

cells, RUNS = FEATURES_EXPERIMENT.cells, STATED.runs.value


def record(design, seed, truth, selected, n=10):
    setting = {"part": "features", "design": design, "num_episodes": n, "seed": seed}
    setting |= {"significance": 0.01, "procedure": "ours"}
    return Record("minigolf-features", setting, "0", 1.0, {"truth": list(truth), "selected": list(selected)})


def helped(*names, agents=20):
    """Agents that own everything but f: without configuration only x is found, with it the named features, too."""
    owned = ("x", "sqrt_x", "sqrt_f", "sqrt_xf")
    still = [record("none", seed, owned, ["x"]) for seed in range(agents)]
    return still + [record("paper", seed, owned, ["x", *names]) for seed in range(agents)]


def test_rates_are_counted_among_owners_and_among_the_others():
    found = [record("none", 0, ["x"], ["x", "f"]), record("none", 1, ["x"], []), record("none", 2, ["f"], ["f"])]
    power, false = counts(found, owned=True), counts(found, owned=False)
    assert {key[2]: (r.count, r.num_runs) for key, r in power.items()} == {"x": (1, 2), "f": (1, 1)}
    assert {key[2]: (r.count, r.num_runs) for key, r in false.items()} == {
        "x": (0, 1), "f": (1, 2), "sqrt_x": (0, 3), "sqrt_f": (0, 3), "sqrt_xf": (0, 3),
    }  # fmt: skip


def test_gains_are_the_sign_test_on_the_same_agents():
    found = [*helped("sqrt_x", agents=8), record("none", 99, ["x"], ["x"])]  # seen in one way only: does not count
    tests = gains(found, "paper")
    assert tests[10, "sqrt_x"] == (8, 0, 8, pytest.approx(0.5**8))
    assert tests[10, "x"][:2] == (0, 0) and tests[10, "x"][-1] == 1.0
    mixed = helped("sqrt_x", agents=5) + [
        r for s in (50, 51) for r in (record("none", s, ["sqrt_x"], ["sqrt_x"]), record("paper", s, ["sqrt_x"], []))
    ]
    assert gains(mixed, "paper")[10, "sqrt_x"] == (5, 2, 7, pytest.approx(binom.sf(4, 7, 0.5)))


def test_agents_that_own_nothing_show_nothing():
    found = [record(design, seed, [], []) for design in ("none", "paper") for seed in range(3)]
    assert gains(found, "paper") == {} and counts(found, owned=True) == {}
    (panel,) = analyse(found)
    assert panel.verdict == "too few runs to say" and {row[3] for row in panel.rows} == {""}


@pytest.mark.parametrize(
    ("found", "parts", "verdict"),
    [
        (helped("sqrt_x", "sqrt_xf"), [True, True, True], "holds"),
        (helped("sqrt_f", agents=60), [False, False, True], "holds partly"),
        (helped(agents=60), [False, False, False], "does not hold"),
        (helped("sqrt_f"), [None, None, True], "holds partly"),  # none of twenty may be one of ten
        (helped(), [None, None, None], "too few runs to say"),
        (helped("sqrt_x", "sqrt_xf", agents=3), [None, None, None], "too few runs to say"),
    ],
)
def test_the_claim_holds_if_the_named_features_gain(found, parts, verdict):
    assert [part.holds for part in judge(found)] == parts
    assert analyse(found)[0].verdict == verdict


def test_nothing_is_judged_where_all_owners_are_found_already():
    everyone = [record(way, seed, ["x"], ["x"]) for way in ("none", "paper") for seed in range(20)]
    assert room(everyone) == set() and {part.holds for part in judge(everyone)} == {None}
    assert room(helped()) == {(10, name) for name in ("sqrt_x", "sqrt_f", "sqrt_xf")}


def test_both_parts_have_a_panel_and_the_figure_repeats_itself(tmp_path):
    rates = {"false_negative_rate": 0.5, "false_positive_rate": 0.0, "any_false": False}
    totals = [
        Record("minigolf-features", {"part": "totals", "design": d, "budget": b, "seed": s}, "0", 1.0, rates)
        for d in ("none", "uniform", "paper", "d-optimal")
        for b in TOTALS
        for s in range(3)
    ]
    features, equal = analyse(helped("sqrt_x") + totals)
    assert (features.name, equal.name) == ("minigolf-features", "minigolf-features-totals")
    row = next(row for row in features.rows if row[:3] == ("the paper's objective", "10", "√x"))
    assert row[3].startswith("1.000")
    assert "√x" in features.why
    for name in ("a.svg", "b.svg"):
        save(analyse(helped("sqrt_x"))[0].figure, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_cells_are_the_papers_settings():
    found = [c.setting for c in cells(RunSize())]
    features = [s for s in found if s["part"] == "features"]
    literal, ours = ([s for s in features if s["procedure"] == one] for one in ("literal", "ours"))
    assert (len(literal), len(ours)) == (2 * len(EPISODES) * RUNS,) * 2
    assert len(found) - len(features) == 4 * len(TOTALS) * TOTALS_RUNS
    paper = next(s for s in literal if s["design"] == "paper")
    assert (paper["num_attempts"], paper["significance"]) == (10, 0.01)
    assert (paper["design_options"]["penalty"], paper["design_options"]["num_updates"]) == (0.25, 100)
    assert {(s["design"], s["num_attempts"]) for s in ours} == {("none", 0), ("d-optimal", 3)}
    assert {s["design_options"].get("last_point") for s in literal if s["design"] == "paper"} == {True}
    assert [c.setting for c in cells(RunSize(as_published=True))] == literal


@pytest.mark.parametrize(("part", "procedure"), [("features", "literal"), ("features", "ours"), ("totals", "ours")])
def test_a_run_sees_as_many_episodes_as_it_says(part, procedure):
    setting = next(
        c.setting
        for c in cells(RunSize(quick=True))
        if (c.setting["part"], c.setting["procedure"]) == (part, procedure) and c.setting["design"] != "none"
    ) | {"learning": {"start": "safe", "stages": [[0.01, 10, 50, 0.002]]}}  # fmt: skip
    found = run(setting)
    assert found == run(setting)
    assert set(found["selected"]) <= set(golf(0.01)[0].feature_names)
    expected = setting["budget"] if part == "totals" else setting["num_episodes"] * found["num_rounds"]
    assert found["total_episodes"] == expected
