"""Runs of the table of errors: counted rightly, kept, gone on with, and the same in any number of processes."""

import numpy as np
import pytest
from statsmodels.api import OLS, Logit, add_constant
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from benchmarks.honesty import SCENARIOS
from benchmarks.honesty.__main__ import main
from benchmarks.honesty.page import page
from benchmarks.honesty.peer import NoAnswer, found_by_statsmodels
from benchmarks.honesty.runs import PEER, Records, Run, Task, run
from benchmarks.honesty.scenario import Scenario
from policyspace.data.large.backends import code_version


def made_up(seed, found, promised=True):
    return Run("linear-gaussian", "wilks", seed, found, ["x1", "x2", "x3"], promised, 0.5)


def test_the_page_counts_what_the_runs_say():
    """Of 40 logs 14 say something false; 20 have a guarantee, 10 of them falsely."""
    runs = [made_up(seed, ["x1", "x5"] if seed < 14 else ["x1", "x2"], seed % 20 < 10) for seed in range(40)]
    low, high = proportion_confint(10, 20, method="beta")
    text = page(runs, "the command")
    assert "Counted by earlier code, whose version was not kept." in text
    row = text.splitlines()[-1]
    assert f"| linear-gaussian | wilks | 40 | **0.500 ({low:.3f}–{high:.3f})** | 0.350 |" in row
    assert "| x1 1.00, x2 0.65, x3 0.00 | 0.50 | 0.00 | 0.500 |" in row


def test_a_run_compares_with_the_truth():
    wilks = run(Task("squared-proxy", "wilks", 0))
    assert wilks.any_false and set(wilks.found) >= {"x1", "z"}  # z is a proxy of the curvature: 100 of 100 logs
    refused = run(Task("greedy-linear", PEER, 0))  # separated, so that no standard error is finite
    assert refused.refused and not refused.promised and not refused.found and not refused.any_false


@pytest.mark.slow
def test_the_peer_is_least_squares_with_clustered_errors():
    """Against a Wald test written with statsmodels' own classes, and for two actions against Logit."""
    for name in ("own-intercepts", "held-actions"):
        scenario = SCENARIOS[name](3)
        fit = OLS(scenario.actions, add_constant(scenario.features)).fit()
        fit = fit.get_robustcov_results("cluster", groups=scenario.episodes, use_t=True)
        rejected = multipletests(fit.pvalues[1:], 0.05, method="holm")[0]
        assert found_by_statsmodels(scenario, 0.05) == [n for n, r in zip(scenario.names, rejected, strict=True) if r]
    rng = np.random.default_rng(0)
    features, uniform = rng.normal(size=(400, 3)), rng.uniform(size=400)
    choice = Scenario(
        features, ("x", "y", "z"), lambda f: (f[:, 0] + np.log(uniform / (1 - uniform)) > 0) * 1, frozenset("x"), ""
    )
    logit = Logit(choice.actions, add_constant(features)).fit(disp=0, cov_type="HC1")
    rejected = multipletests(logit.pvalues[1:], 0.05, method="holm")[0]
    assert found_by_statsmodels(choice, 0.05) == [n for n, r in zip(choice.names, rejected, strict=True) if r] == ["x"]


def test_the_peer_says_when_it_has_no_answer():
    with pytest.raises(NoAnswer):
        found_by_statsmodels(SCENARIOS["separated"](0), 0.05)


def test_runs_are_kept_and_not_run_again(tmp_path, capsys):
    records, table = tmp_path / "runs.jsonl", tmp_path / "table.md"
    words = ["--cells", "small-gaussian", "--columns", "wilks", PEER, "--records", str(records), "--table", str(table)]
    assert main([*words, "--runs", "2", "--jobs", "1"]) == 0
    kept = records.read_text()
    records.write_text(kept + '{"cell": "small-gau')  # as if the power had gone while writing
    assert main([*words, "--runs", "3", "--jobs", "2"]) == 0
    assert "6 runs, 2 of them to do" in capsys.readouterr().out
    assert records.read_text().startswith(kept) and len(Records(records).runs) == 6
    alone = run(Task("small-gaussian", "wilks", 10_002))
    assert Records(records).runs[alone.task].found == alone.found
    assert f"Counted by the code {code_version()}. Remade by" in table.read_text(), "of all processes"
    assert "| small-gaussian | wilks | 3 |" in table.read_text() and "Seeds 10000 to 10002" in table.read_text()


def test_ctrl_c_keeps_what_has_finished(tmp_path, capsys, monkeypatch):
    def interrupted(tasks, jobs):
        yield run(tasks[0])
        raise KeyboardInterrupt

    monkeypatch.setattr("benchmarks.honesty.__main__.outcomes", interrupted)
    records, table = tmp_path / "runs.jsonl", tmp_path / "table.md"
    words = ["--cells", "small-gaussian", "--columns", "wilks", "--records", str(records), "--table", str(table)]
    assert main(words) == 130
    assert "goes on from there" in capsys.readouterr().out
    assert len(Records(records).runs) == 1 and not table.exists()
