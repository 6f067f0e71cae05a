"""Each subject alone is what `identify` says of its rows, at its share of δ; together they are tested by cluster."""

import json

import numpy as np
import pytest

import policyspace
from policyspace import InputError, write
from policyspace.data import IDLE, NUM_MICE, trials
from policyspace.report import draw_subjects

SAID = {"episodes": "session", "features": ["contrast", "tone"], "lags": 1}


@pytest.fixture(scope="module")
def found():
    return policyspace.identify_by(trials(), "mouse", "choice", told=SAID)


def test_each_alone_and_all_together(found):
    assert len(found.answers) == NUM_MICE and found.groups == ["contrast", "tone", "previous action"]
    assert set(found.users("contrast")) == set(found.answers) - set(IDLE) and found.users("tone") == []
    frame = trials()
    alone = policyspace.identify(frame.filter(frame["mouse"] == "m03"), "choice", significance=0.05 / NUM_MICE, **SAID)
    assert [t.adjusted_p_value for t in found.answers["m03"].groups] == [t.adjusted_p_value for t in alone.groups]
    assert found.pooled.test.name == "mixed" and found.pooled.clusters.kind == "subjects" and found.pooled.guarantee
    assert "contrast" in found.pooled.selected and "tone" not in found.pooled.selected
    assert "0.05/12" in str(found) and json.loads(found.to_json())["pooled"]["clusters"]["kind"] == "subjects"
    assert draw_subjects(found).axes


def test_a_subject_that_never_chooses_is_named(found):
    import polars

    frame = trials()
    stuck = frame.with_columns(
        choice=polars.when(polars.col("mouse") == "m01").then(polars.lit("left")).otherwise("choice")
    )
    some = policyspace.identify_by(stuck, "mouse", "choice", told=SAID)
    assert list(some.refused) == ["m01"] and "never chooses" in some.refused["m01"]
    assert any("m01 was not tested" in note for note in some.notes())


def test_conditions_with_subjects_inside():
    found = policyspace.identify_by(trials(), "tone", "choice", subjects="mouse", told={"features": ["contrast"]})
    assert list(found.answers) and all(answer.clusters.kind == "subjects" for answer in found.answers.values())


def test_the_action_before_is_never_that_of_an_earlier_trial():
    frame = trials()
    said = {"features": ["contrast"], "episodes": "session", "lags": 1}
    with pytest.raises(InputError, match="the action before must be of the same tone"):
        policyspace.identify_by(frame, "tone", "choice", subjects="mouse", told=said)
    blocks = frame.sort("mouse", "session", "tone", maintain_order=True)
    found = policyspace.identify_by(blocks, "tone", "choice", subjects="mouse", told=said)
    assert found.groups == ["contrast", "previous action"]


def test_a_file_that_says_its_weights_is_weighted(tmp_path):
    rng = np.random.default_rng(0)
    features = np.column_stack([rng.normal(size=200), np.arange(200) % 2])
    actions = (rng.random(200) < 1 / (1 + np.exp(-features[:, 0]))).astype(int)
    data = policyspace.Sample(features, actions, ("x", "half"), weights=rng.integers(1, 4, 200) * 1.0)
    write(data, tmp_path / "weighted.npz")
    found = policyspace.identify_by(tmp_path / "weighted.npz", "half", told={"features": ["x"]})
    half = data.take(np.flatnonzero(features[:, 1] == 0))
    assert next(iter(found.answers.values())).data.num_rows == half.weights.sum()


def test_bad_input():
    for role in ("features", "weights"):
        with pytest.raises(InputError, match=f"'tone' says what is compared, found it among the {role} too"):
            policyspace.identify_by(trials(), "tone", "choice", told={role: "tone"})
    with pytest.raises(InputError, match="did you mean 'mouse'"):
        policyspace.identify_by(trials(), "tone", "choice", subjects="mous")
    with pytest.raises(InputError, match="did you mean 'mouse'"):
        policyspace.identify_by(trials(), "mous", "choice")
    with pytest.raises(InputError, match="use 'holm'"):
        policyspace.identify_by(trials(), "mouse", "choice", correction="bh")
    with pytest.raises(InputError, match="choose another column"):
        policyspace.identify_by(trials().filter(trials()["mouse"] == "m01"), "mouse", "choice")
