"""What stands for the gap: ranks on invented records, and the terms of one real agent."""

import numpy as np
import pytest
from policyspace_paper import surrogate
from policyspace_paper.estimates import means
from policyspace_paper.execution import Record, RunSize
from scipy.stats import spearmanr

from policyspace.report import save


def records(agents=12, count=8):
    """The paper's objective ranks as the gap does, D-optimality in reverse, the bound at random."""
    rng = np.random.default_rng(5)
    found = []
    for seed in range(agents):
        gap = rng.exponential(size=count)
        result = {"gap": gap, "again": gap**2, "paper": np.log(gap), "d-optimal": -gap, "bound": rng.random(count)}
        result["gradient"] = result["bound"]
        setting = {"num_configurations": count, "seed": seed}
        plain = {name: list(values) for name, values in result.items()}
        found.append(Record("surrogate", setting, "0", 1.0, plain))
    return found


def test_spearmans_rho_of_each_agent_then_the_mean():
    made = records()
    rho = means(surrogate.correlations(surrogate.ranks(made)), "rho", "surrogate")
    assert rho["paper"].value == pytest.approx(1) and rho["d-optimal"].value == pytest.approx(-1)
    each = [spearmanr(r.result["bound"], r.result["gap"]).statistic for r in made]
    assert rho["bound"].value == pytest.approx(np.mean(each)) and rho["bound"].num_runs == 12


def test_an_objective_that_is_the_same_everywhere_ranks_nothing():
    made = records(agents=2)
    for record in made:
        record.result["paper"] = [1.0] * 8
    rho = means(surrogate.correlations(surrogate.ranks(made)), "rho", "surrogate")
    assert "paper" not in rho and "bound" in rho
    assert "nan" not in surrogate.analyse(made)[0].why


def test_the_panel_says_rho_and_repeats_itself(tmp_path):
    (panel,) = surrogate.analyse(records())
    assert panel.verdict == "our own" and "the paper's objective 1.00" in panel.why
    for name in ("a.svg", "b.svg"):
        save(surrogate.analyse(records())[0].figure, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_cells_are_agents():
    assert len(surrogate.EXPERIMENT.cells(RunSize())) == surrogate.RUNS
    assert {c.setting["num_configurations"] for c in surrogate.EXPERIMENT.cells(RunSize(quick=True))} == {3}


def test_one_agent_has_a_gap_and_a_bound_that_are_positive():
    found = surrogate.run({"num_configurations": 2, "num_episodes": 30, "seed": 1})
    assert all(len(found[name]) == 2 for name in ("gap", *surrogate.SURROGATES))
    assert min(found["gap"]) > 0 and min(found["bound"]) >= 0 and min(found["d-optimal"]) >= 0
