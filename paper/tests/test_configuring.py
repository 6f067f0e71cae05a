"""The experiments on configuring: their settings, their error rates and their analysis, on records with a known answer."""

import json

import numpy as np
import pytest
from policyspace_paper.configuring import COMPARED, CONTINUOUS, GRIDWORLD, OTHER_STARTS, error_rates, run
from policyspace_paper.configuring_results import (
    agents,
    always,
    at_totals,
    by_episodes,
    cells_in_use,
    distance,
    guesses_panels,
    judge,
    judge_stories,
    starts,
    summaries,
    tracked,
)
from policyspace_paper.execution import Record, RunSize, find_experiment
from scipy.stats import t

from policyspace.report import save
from policyspace.study import Round
from policyspace.worlds import make_world


def record(part, design, episodes, seed, missed, wrong=0.0, any_false=False, rounds=1):
    entry = "budget" if part == "totals" else "num_episodes"
    result = {"false_negative_rate": missed, "false_positive_rate": wrong, "any_false": any_false, "num_rounds": rounds}
    return Record("gridworld", {"part": part, "design": design, entry: episodes, "seed": seed}, "0", 1.0, result)


PARTS = ("episodes", "totals", "story", "guesses")


@pytest.mark.parametrize("world", [GRIDWORLD, CONTINUOUS])
def test_the_paper_has_25_runs_of_each_and_all_ways_see_the_same_agents(world):
    cells = find_experiment(world.experiment).cells(RunSize())
    assert len({cell.key for cell in cells}) == len(cells)
    parts = {part: [c.setting for c in cells if c.setting["part"] == part] for part in PARTS}
    assert len(parts["episodes"]) == 2 * 25 * 2 * len(world.stated.num_episodes.value)
    ways = len(COMPARED) + (len(OTHER_STARTS) if world.has_flat_start else 0)
    assert len(parts["totals"]) == 25 * ways * len(world.totals)
    assert world.has_flat_start == (make_world(world.experiment).flat_configuration() is not None)
    assert [(s["procedure"], s["seed"]) for s in parts["story"]] == [
        (p, i) for p in ("literal", "ours") for i in range(10)
    ]
    assert {s["design"] for s in parts["story"] if s["procedure"] == "ours"} == {"d-optimal"}
    assert len(parts["guesses"]) == 10 * 2 * len(world.guesses)
    assert {s["procedure"] for s in parts["guesses"]} == {"literal"}
    for setting in parts["totals"] + parts["episodes"]:
        assert (setting.get("num_attempts") == 0) == (setting["design"] == "none")
        planned = setting["part"] == "totals" and setting["design"] not in ("none", "paper")
        assert ("num_attempts" not in setting) == planned
    begun = {(s["design"], s.get("flat_first", False)) for s in parts["totals"]}
    default = {(design, design not in ("none", "paper")) for design in COMPARED}
    assert begun == default | (set(OTHER_STARTS.items()) if world.has_flat_start else set())
    assert {s.get("flat_first") for s in parts["episodes"]} == {None}
    for setting in parts["totals"] + parts["episodes"]:
        assert setting["significance"] == 0.01


def assert_one_guess_is_changed(settings, world):
    """A cell of another guess is a cell of the paper's figure but for the options that are guessed, where it has them."""
    as_guessed = {(s["design"], s["seed"]): s for s in settings if s["part"] == "episodes" and s["num_episodes"] == 100}
    told = {s["seed"]: s for s in settings if s["part"] == "story"}
    for setting in (s for s in settings if "guess" in s):
        story = setting["part"] == "story-guesses"
        same = told[setting["seed"]] if story else as_guessed[setting["design"], setting["seed"]]
        other = world.guesses[setting["guess"]]
        for name in same.keys() - {"part"}:
            changed = other.get(name, {}) if same[name] else {}
            assert setting[name] == (same[name] | changed if changed else same[name])


def test_the_literal_cells_are_the_papers_settings_and_as_published_selects_them():
    grid, continuous = (
        [c.setting for c in find_experiment(m.experiment).cells(RunSize(as_published=True))]
        for m in (GRIDWORLD, CONTINUOUS)
    )
    learning = {"num_steps": 100, "num_episodes": 100, "learning_rate": 0.01, "decay": 1.0}
    stated = [[s for s in settings if "guess" not in s] for settings in (grid, continuous)]
    for settings, world in ((grid, GRIDWORLD), (continuous, CONTINUOUS)):
        assert sum(s["part"] == "story-guesses" for s in settings) == 10 * len(world.guesses)
    assert all(s["learning"] == learning and s["adam"] is None for s in stated[1])
    assert all(s["adam"] == {"rate": 0.03, "num_steps": 1000, "spreads": (0.0,)} for s in stated[0])
    assert_one_guess_is_changed(grid, GRIDWORLD)
    assert_one_guess_is_changed(continuous, CONTINUOUS)
    for setting in grid + continuous:
        assert setting["procedure"] == "literal"
        if setting["design"] == "paper":
            assert setting["num_attempts"] == 3 and setting["design_options"]["last_point"]
    whole = [c.setting for c in find_experiment("gridworld").cells(RunSize())]
    assert [s for s in whole if s["procedure"] == "literal"] == grid
    assert all("learning" not in s for s in whole if s["procedure"] == "ours")


def test_quick_has_every_part_in_miniature():
    cells = find_experiment("gridworld").cells(RunSize(quick=True))
    assert {c.setting["part"] for c in cells} == set(PARTS) - {"guesses"}
    assert len(cells) < len(find_experiment("gridworld").cells(RunSize())) / 10


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
    assert (none.design, none.agents, none.agents_with_a_false_selection) == ("none", 5, 0)
    assert none.false_negative_rate.value == 0.25
    assert none.false_negative_rate.margin == pytest.approx(t.ppf(0.975, 3) * np.std(values, ddof=1) / 2)
    assert (uniform.false_positive_rate.value, uniform.agents_with_a_false_selection) == (0.5, 2)
    assert at_totals("gridworld", "Grid", records).rows[0][:3] == ("no configuration", "40", "5")


SIZES = (10, 100, 1000)


def curves(still=(0.9, 0.7, 0.5), configured=(0.6, 0.3, 0.1), wrong=(0.0, 0.0, 0.0), agents=12, noise=0.01):
    """β̂ of agents at three n, with and without configuration, and α̂ with it; each agent a little different."""
    rng = np.random.default_rng(3)
    return [
        record("episodes", design, n, seed, rates[i] + noise * rng.standard_normal(), wrong[i] * (design == "paper"),
               any_false=n == 10 and design == "paper", rounds=30 if design == "paper" else 1)
        for design, rates in (("none", still), ("paper", configured))
        for i, n in enumerate(SIZES)
        for seed in range(agents)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("records", "parts", "verdict"),
    [
        (curves(), (True, True, True), "holds"),
        (curves(wrong=(0.0, 0.1, 0.3)), (False, True, True), "holds partly"),  # α̂ grows with n
        (
            curves(still=(0.5, 0.6, 0.7)),
            (True, False, None),
            "holds partly",
        ),  # β̂ grows, and configured is no better at first
        (curves(configured=(0.95, 0.75, 0.55)), (True, True, False), "holds partly"),  # worse with configuration
        (curves(configured=(0.9, 0.7, 0.5)), (True, True, False), "holds partly"),  # no gain at all
        (curves((0.5, 0.6, 0.7), (0.6, 0.7, 0.8), (0.0, 0.1, 0.3)), (False, False, False), "does not hold"),
        (curves(noise=2.0), (True, None, None), "holds partly"),  # nothing can be seen but α̂
        (curves(agents=9), (True, True, True), "too few runs to say"),
    ],
)
def test_each_part_of_the_claim_is_judged_on_the_same_agents(records, parts, verdict):
    assert tuple(part.holds for part in judge(agents(records, "num_episodes"))) == parts
    panel = by_episodes("gridworld", "Grid", records)
    assert panel.verdict == verdict
    assert "pays 30·n episodes" in panel.why and "configured." in panel.why
    assert "surely" in panel.claim.criteria
    json.dumps(panel.numbers, allow_nan=False)


def test_one_number_of_episodes_shows_no_change():
    records = [r for r in curves() if r.setting["num_episodes"] == 100]
    assert tuple(part.holds for part in judge(agents(records, "num_episodes"))) == (None, None, True)


def told(*configurations, truth=("row_0", "col_0"), selected=(("row_0",), ("row_0", "col_0")), asked=()):
    """Rounds in which so much was selected."""
    blank = {"design": None, "reasons": {}, "num_episodes": 10, "significance": 0.01, "tests": [], "supports": []}
    return [
        Round(number=i, configuration=omega, asked_for=asked if i else (), total_episodes=10 * (i + 1),
              newly_selected=(), selected=selected[min(i, len(selected) - 1)], undecided=(), **blank)
        for i, omega in enumerate(configurations)
    ]  # fmt: skip


PEAK, EVEN = ({name: [peak, 1.0] for name in ("row", "col")} for peak in (5.0, 1.0))


def test_starts_spread_if_more_cells_are_in_use():
    assert cells_in_use(EVEN) == pytest.approx(4.0)
    assert cells_in_use({"row": [50.0, 0.0]}) == pytest.approx(1.0)
    assert starts("gridworld", told(PEAK, EVEN)).holds is True
    assert starts("gridworld", told(EVEN, PEAK, PEAK)).holds is False
    assert starts("gridworld", told(PEAK)).holds is None


def test_starts_track_the_feature_that_is_asked_for():
    first, near, far = ({"x": x, "y": 0.0, "goal_x": 0.0, "goal_y": 0.0} for x in (0.0, 1.5, -1.0))
    assert distance(near, "agent_rbf_4_2") == pytest.approx(0.5)
    assert distance(near, "goal_rbf_4_2") == pytest.approx(2.0)
    asked = ("agent_rbf_4_2",)
    assert starts("continuous-gridworld", told(first, near, near, asked=asked)).holds is True
    assert starts("continuous-gridworld", told(first, near, near, far, asked=asked)).holds is False, "not always"
    assert tracked(told(first, near, near, far, asked=asked)) == [True, True, False]
    assert starts("continuous-gridworld", told(first, near)).holds is None


@pytest.mark.parametrize(
    ("first", "selected", "num_agents", "parts"),
    [
        (("a",), ("a", "b"), 10, [True, True, True]),
        (("a", "b"), ("a", "b"), 10, [True, True, False]),  # configuring was not needed
        (("a",), ("a", "b", "c"), 10, [True, False, True]),
        (("a",), ("a",), 10, [True, False, True]),
        (("a",), ("a", "b"), 2, [None, None, None]),  # two of two may be chance
    ],
)
def test_stories_are_judged_by_most_agents(first, selected, num_agents, parts):
    rounds = [one.to_dict() for one in told(PEAK, EVEN, selected=(first, selected))]
    result = {"truth": ["a", "b"], "selected": list(selected), "rounds": rounds}
    records = [Record("gridworld", {"seed": seed}, "0", 1.0, result) for seed in range(num_agents)]
    assert [part.holds for part in judge_stories("gridworld", records)] == parts


@pytest.mark.parametrize(
    ("shares", "holds"), [((19, 20), True), ((18, 20), None), ((10, 20), False)], ids=["nearly all", "about", "half"]
)
def test_always_is_a_share_of_the_rounds_that_ask_for_one_feature(shares, holds):
    near, rounds = shares
    spread = [(near + (i % 3 - 1) * (near < rounds - 1), rounds) for i in range(12)]
    part = always([[True] * n + [False] * (m - n) for n, m in spread])
    assert part.holds is holds
    assert part.words.startswith(f"In {sum(n for n, _ in spread)} of {12 * rounds} rounds of 12 agents")
    assert always([[], []]).holds is None


def test_the_story_by_other_guesses_stands_beside_it():
    rounds = [one.to_dict() for one in told(PEAK, EVEN, selected=((), ("a",)))]
    back = [one.to_dict() for one in told(EVEN, PEAK, selected=((), ("a",)))]

    def seen(part, seed, rounds, **more):
        setting = {"part": part, "seed": seed, "design": "paper", "num_episodes": 100, "procedure": "literal", **more}
        result = {"truth": ["a"], "selected": ["a"], "rounds": rounds, "false_negative_rate": 0.0,
                  "false_positive_rate": 0.0}  # fmt: skip
        return Record("gridworld", setting, "0", 1.0, result)

    records = [seen("story", i, back) for i in range(10)]
    records += [seen("story-guesses", i, rounds, guess="rate 7") for i in range(10)]
    records += [seen("guesses", i, rounds, guess="rate 7") for i in range(10)]
    _, panel = guesses_panels("gridworld", "Grid", records)
    assert [row[0] for row in panel.rows] == ["as everywhere else", "rate 7"]
    assert panel.rows[0][2].startswith("For 0 of 10") and panel.rows[1][2].startswith("For 10 of 10")


def test_the_gain_at_equal_totals_is_split_into_start_and_design():
    missed = {("none", None): 0.8, ("none", True): 0.3, ("paper", None): 0.9, ("paper", True): 0.25,
              ("d-optimal", True): 0.1, ("d-optimal", False): 0.6}  # fmt: skip
    records = [record("totals", design, 400, seed, share) for (design, _), share in missed.items() for seed in range(3)]
    for one, flat in zip(records, [flat for _, flat in missed for _ in range(3)], strict=True):
        if flat is not None:
            one.setting["flat_first"] = flat
    panel = at_totals("gridworld", "Grid", records)
    assert (
        "at 400 episodes 0.700 ± 0.000, of which 0.500 ± 0.000 is the flat start, 0.200 ± 0.000 the design" in panel.why
    )
    assert [row[0] for row in panel.rows] == [
        "no configuration", "flat start alone", "the paper's objective", "flat start, then the paper's objective",
        "D-optimal", "D-optimal from where the agent is",
    ]  # fmt: skip
    without = [one for one in records if one.setting.get("flat_first") is None]
    assert "flat" not in at_totals("gridworld", "Grid", without).why


def test_half_of_the_agents_are_not_most():
    stories = [
        Record("gridworld", {"seed": seed}, "0", 1.0, {
            "truth": ["a"], "selected": ["a"] if seed % 2 else [],
            "rounds": [one.to_dict() for one in told(PEAK, EVEN, selected=((), ()))],
        })
        for seed in range(20)
    ]  # fmt: skip
    assert [part.holds for part in judge_stories("gridworld", stories)] == [True, None, True]


def test_what_hangs_on_a_guess_is_compared_on_the_same_agents():
    def seen(part, design, seed, missed, **more):
        setting = {"part": part, "procedure": "literal", "design": design, "seed": seed, "num_episodes": 100, **more}
        return Record("gridworld", setting, "0", 1.0, {"false_negative_rate": missed, "false_positive_rate": 0.0})

    records = [seen("episodes", d, s, m) for d, m in (("none", 0.8), ("paper", 0.3)) for s in range(25)]
    records += [
        seen("guesses", d, s, 0.8 if d == "none" else 0.7 + s / 100, guess="rate 7")
        for d in ("none", "paper")
        for s in range(3)
    ]
    (panel,) = guesses_panels("gridworld", "Grid", records)
    assert [row[:2] for row in panel.rows] == [("as everywhere else", "3"), ("rate 7", "3")]
    assert panel.numbers["as everywhere else"]["mean"] == pytest.approx(0.5)
    assert panel.numbers["rate 7"]["mean"] == pytest.approx(0.09)
    assert guesses_panels("gridworld", "Grid", records[:50]) == []


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
    cell = next(c for c in find_experiment("gridworld").cells(RunSize(quick=True)) if c.setting["part"] == "story")
    setting = cell.setting | {
        "learning": {"num_steps": 30},
        "num_episodes": 100,
        "num_attempts": 1,
        "design": "uniform",
    }
    result = json.loads(json.dumps(run(setting | {"design_options": {}}), allow_nan=False))
    panel, _ = find_experiment("gridworld").analyse([Record("gridworld", setting, "0", 1.0, result)])
    wrong = set(result["selected"]) - set(result["truth"])
    assert f"{len(wrong)} other" in panel.why and "cells of 625 at first" in panel.why
    assert panel.verdict == "too few runs to say", "one agent"
    save(panel.figure, tmp_path / "story.svg")
