"""Single weights of the grid world: units, truth and both procedures."""

from policyspace_paper.configuring import STATED, WEIGHTS_EPISODES, weights_space
from policyspace_paper.execution import Record, RunSize, find_experiment

EXPERIMENT = find_experiment("gridworld-weights")
cells, run = EXPERIMENT.cells, EXPERIMENT.run


def test_both_procedures_run_with_and_without_configuration():
    found = [c.setting for c in cells(RunSize())]
    ways = [(s["procedure"], s["design"]) for s in found]
    assert {w: ways.count(w) for w in set(ways)} == dict.fromkeys(
        [("literal", "none"), ("literal", "paper"), ("ours", "none"), ("ours", "d-optimal")],
        STATED.runs.value * len(WEIGHTS_EPISODES),
    )
    assert {s["num_attempts"] for s in found if s["design"] == "paper"} == {3}, "N_conf of Appendix C.1"
    assert not any(c.setting["design"] == "paper" for c in cells(RunSize(quick=True)))
    assert {c.setting["procedure"] for c in cells(RunSize(as_published=True))} == {"literal"}


def test_there_are_48_weights_and_the_constants_are_not_tested():
    space = weights_space()
    assert len(space.tested) == 48
    assert not any(space.groups[g].name.startswith("intercept") for g in space.tested)


def test_a_run_counts_shares_of_weights():
    setting = next(c.setting for c in cells(RunSize(quick=True)) if c.setting["procedure"] == "literal")
    fast = setting | {"learning": setting["learning"] | {"num_steps": 20}, "adam": setting["adam"] | {"num_steps": 50}}
    found = run(fast)
    assert found == run(fast) and found["num_rounds"] == 1
    assert 0 <= found["false_negative_rate"] <= 1 and 0 <= found["false_positive_rate"] <= 1


def test_without_configured_runs_that_part_cannot_be_told():
    result = {"false_negative_rate": 0.5, "false_positive_rate": 0.0, "any_false": False, "num_rounds": 1}
    records = [
        Record("w", {"design": "none", "num_episodes": n, "seed": s}, "0", 1.0, result)
        for n in (10, 100)
        for s in range(12)
    ]
    (panel,) = EXPERIMENT.analyse(records)
    assert "There are no configured runs." in panel.why
    assert panel.verdict == "holds partly", "α̂ is flat, and β̂ does not fall"
