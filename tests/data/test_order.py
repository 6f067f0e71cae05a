"""Sort keys of tables: found where rows are in random order otherwise, never in logs whose rows depend on each other."""

import numpy as np
import polars
import pytest
from scipy.stats import binom

import policyspace
from policyspace import InputError, Sample
from policyspace.data import order_p, sort_keys, without_order


def table(seed, rows=300):
    """People in no order: a score, a group, and a choice that depends on the score."""
    rng = np.random.default_rng(seed)
    score, group = rng.normal(size=rows), rng.choice(["a", "b", "c"], rows)
    choice = np.where(score + rng.logistic(size=rows) > 0, "yes", "no")
    return polars.DataFrame({"score": score, "group": group, "choice": choice})


def sample_of(frame):
    return Sample.from_frame(frame, "choice")


def test_what_a_table_was_sorted_by():
    frame = table(0)
    assert sort_keys(sample_of(frame)) == ()
    assert sort_keys(sample_of(frame.sort("choice", maintain_order=True))) == ("the action",)
    assert sort_keys(sample_of(frame.sort("group", maintain_order=True))) == ("group",)
    both = frame.sort("choice", "group", maintain_order=True)
    assert set(sort_keys(sample_of(both))) == {"the action", "group"}
    # A further column that is sorted inside the blocks is no label, and nothing is known.
    assert sort_keys(sample_of(frame.sort("choice", "score"))) == ()


def test_a_log_whose_rows_depend_on_each_other_is_not_taken_as_a_sorted_table():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        drift = np.cumsum(rng.normal(size=300)) / 10
        stops = np.where(np.arange(300) < 60 + 10 * seed, "go", "stop")  # one change, as after an alarm
        log = polars.DataFrame({"drift": drift, "noise": rng.normal(size=300), "choice": stops})
        assert sort_keys(sample_of(log)) == ()
        sessions = log.with_columns(choice=polars.Series(np.repeat(["a", "b", "c"], 100)))
        assert sort_keys(sample_of(sessions)) == ()


def test_random_order_looks_random_at_its_level():
    wrong = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        wrong += order_p([rng.normal(size=120), rng.integers(0, 3, 120).astype(float)], np.repeat([0, 1], 60)) <= 0.05
    assert binom.sf(wrong - 1, 60, 0.05) > 1e-3


@pytest.mark.parametrize("seed", range(2))
def test_the_answer_does_not_depend_on_the_order_of_rows_without_order(seed):
    frame = table(seed)
    mixed = frame.sample(fraction=1.0, shuffle=True, seed=seed)
    found = [policyspace.identify(one, "choice", exchangeable=True) for one in (frame, mixed)]
    assert [one.test.name for one in found] == ["wilks", "wilks"]
    p_values = [[group.p_value for group in one.groups] for one in found]
    assert p_values[0] == pytest.approx(p_values[1], rel=1e-6)


def test_a_sorted_table_has_the_answer_of_regression():
    frame = table(4)
    statsmodels = pytest.importorskip("statsmodels.api")
    design = statsmodels.add_constant(np.column_stack([frame["score"], frame["group"] == "a", frame["group"] == "b"]))
    yes = (frame["choice"] == "yes").to_numpy().astype(float)
    full = statsmodels.Logit(yes, design).fit(disp=0).llf
    without = statsmodels.Logit(yes, design[:, [0, 2, 3]]).fit(disp=0).llf
    answer = policyspace.identify(frame.sort("choice", maintain_order=True), "choice")
    assert answer.guarantee is not None and answer.test.name == "wilks"
    assert answer.group("score").statistic == pytest.approx(2 * (full - without), rel=1e-6)
    assert any("sorted by the action" in words for words in answer.warnings)
    ordered = policyspace.identify(frame.sort("choice", maintain_order=True), "choice", exchangeable=False)
    assert ordered.guarantee is None or ordered.selected == ()
    assert any(
        "exchangeable=True" in words and "then the agent uses 1 of 2: score" in words for words in ordered.warnings
    )


def test_what_has_an_order_is_not_exchangeable():
    frame = table(5).with_columns(episode=np.repeat(np.arange(30), 10))
    with pytest.raises(InputError, match="have no episodes"):
        policyspace.identify(frame, "choice", features=["score"], episodes="episode", exchangeable=True)
    with pytest.raises(InputError, match="have no lags"):
        policyspace.identify(frame, "choice", features=["score"], lags=1, exchangeable=True)
    with pytest.raises(InputError, match="True or False"):
        policyspace.identify(frame, "choice", features=["score"], exchangeable="yes")
    assert without_order(sample_of(table(6))).origin.exchangeable
