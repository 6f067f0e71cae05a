"""How well agents have learned: what counts as reached and as failed, and one agent that cannot be bettered."""

from types import SimpleNamespace

import numpy as np
import pytest
from policyspace_paper.execution import Record, RunSize, find_experiment
from policyspace_paper.surrogate import WORLDS, measured, reached
from policyspace_paper.surrogate import analyse_learned as analyse
from policyspace_paper.surrogate import run_learned as run

from policyspace.report import save


def record(world, seed, agent, best, share):
    result = {"agent": agent, "best_known": best, "distance": best - agent, "reached": share}
    return Record("agents", {"world": world, "procedure": "ours", "seed": seed}, "0", 1.0, result)


RECORDS = [record("car", s, 60.0 + s, 62.0 + s, 0.89 if s == 0 else 0.95) for s in range(4)] + [
    record("gridworld", s, -3.0, -3.0, 1.0) for s in range(4)
]


def test_an_episode_reaches_its_end_by_the_one_step_that_costs_nothing():
    rewards = np.array([[-1.0, -1.0, 0.0], [-1.0, -1.0, -1.0], [-1.0, -100.0, 0.0]])
    mask = np.array([[True, True, True], [True, True, True], [True, True, False]])
    episodes = SimpleNamespace(rewards=rewards, mask=mask)
    assert reached("minigolf", episodes).tolist() == [True, False, False]


def test_an_agent_failed_if_too_few_episodes_reach_their_end(tmp_path):
    assert measured(RECORDS)["failed"].to_list() == [False] * 4 + [True] + [False] * 3
    (panel,) = analyse(RECORDS)
    assert [row[0] for row in panel.rows] == ["discrete grid world", "car"]
    assert panel.rows[1][4].startswith("2.00") and panel.rows[1][6].startswith("0.250")
    assert "most failed in: car, 1" in panel.why
    save(panel.figure, tmp_path / "a.svg")


def test_cells_are_agents_of_every_world_by_both_procedures():
    settings = [c.setting for c in find_experiment("agents").cells(RunSize(runs=1))]
    assert {(s["world"], s["procedure"]) for s in settings} == {(w, p) for w in WORLDS for p in ("literal", "ours")}


def test_the_literal_rate_is_looked_for_among_those_whose_agents_are_best():
    returns = {0.001: -9.0, 0.01: -3.0, 0.1: -3.1, 0.3: -20.0}
    records = [
        Record("agents", {"procedure": "literal", "world": "gridworld", "reading": "discrete grid world", "seed": s,
                          "learning_rate": rate}, "0", 1.0, {"agent": value + 0.1 * s, "reached": 0.9})
        for rate, value in returns.items() for s in range(4)
    ]  # fmt: skip
    (panel,) = analyse(records)
    assert panel.name == "agents-rates" and len(panel.rows) == 4
    assert [row[1] for row in panel.rows if row[-1] == "literal"] == ["0.1"]
    assert "discrete grid world 0.1 (best 0.01, by 0.10 ± 0.00)" in panel.why
    settings = [c.setting for c in find_experiment("agents").cells(RunSize(as_published=True))]
    assert sum("learning_rate" in s for s in settings) == 25 * 6 * 5


def test_no_agent_is_better_than_the_best_known():
    found = run({"procedure": "literal", "world": "gridworld", "num_episodes": 200, "seed": 1})
    assert found["distance"] == pytest.approx(found["best_known"] - found["agent"]) and found["distance"] >= 0
    assert 0 <= found["reached"] <= 1
