"""What a source says beside its rows: files of every version, and words of every version."""

from pathlib import Path

import polars
import pytest

from policyspace import InputError, Sample, identify, read, write
from policyspace.data import FormulaRecord, Origin

OLDER = Path(__file__).parent / "older"
"""Files of version 1, written by the code of that version."""


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_a_file_of_version_1_says_what_it_said(suffix, tmp_path):
    data = read(OLDER / f"discrete.{suffix}")
    assert data.origin == Origin(
        policy={"family": "boltzmann", "intercept": False},
        ground_truth=("speed",),
        world="gridworld",
        configuration={"row": [1, 2.5]},
        environment="Maze-v0",
        agent="PPO",
        memory=True,
        weight_type="frequency",
        cautions=("take care.",),
        other={"seed": 3, "returns": {"best": 1.5}},
    )
    assert data.action_names == ("left", "right", "stay") and data.action_type.kind == "discrete"
    assert data.num_episodes == 4 and data.subjects.tolist() == [0] * 12 + [1] * 12
    assert data.recorded["reward"].tolist() == [i / 2 for i in range(24)]
    assert data.num_observed == data.weights.sum() > 24 and not data.sampling_weights
    write(data, tmp_path / f"again.{suffix}")
    again = read(tmp_path / f"again.{suffix}")
    assert again.origin == data.origin and (again.features == data.features).all()
    assert (again.actions == data.actions).all() and (again.weights == data.weights).all()


def test_files_of_version_1_keep_what_was_made_of_their_columns():
    lags = read(OLDER / "lags.csv").origin
    assert lags == Origin(lagged_actions=("previous action",), offset={"force": "known"})
    formula = read(OLDER / "formula.csv")
    inside = {"x": ("x:y", "x**2"), "y": ("x:y",)}
    assert formula.origin.formula == FormulaRecord("force ~ x*y + I(x**2)", inside, shares_columns=True)
    assert formula.sampling_weights and formula.num_observed == 24
    assert identify(formula).test.name == "robust"  # what sampling weights ask for
    choices = read(OLDER / "choices.csv")
    assert choices.origin.policy["attributes"] == {"cost": {"bus": "cost_bus", "car": "cost_car"}}
    assert [test.group for test in identify(choices).groups] == ["cost"]


def test_what_an_older_file_says_in_no_known_way_is_passed_on_unread(tmp_path):
    data = read(OLDER / "counts.csv")
    assert data.action_type.kind == "count" and data.origin.ground_truth is None
    assert data.origin.configuration == [1, 2]
    assert data.origin.other == {"ground_truth": 5, "lagged_actions": "walks"}
    write(data, tmp_path / "again.npz")
    assert read(tmp_path / "again.npz").origin == data.origin


def test_words_of_earlier_versions_are_understood():
    known = {"truth": ["x0"], "weights_are": "counts", "left_out": ["t"], "warnings": ["careful."], "mine": [1]}
    origin = Origin.of(known)
    assert origin == Origin(
        ground_truth=("x0",), weight_type="frequency", excluded_columns=("t",), notes=("careful.",), other={"mine": [1]}
    )
    assert Origin.of(origin.to_dict()) == Origin(ground_truth=("x0",), weight_type="frequency", other={"mine": [1]})
    made = Sample.from_arrays([1.0, 2.0, 4.0], ["a", "b", "a"], metadata=known)
    assert made.origin == origin
    frame = polars.DataFrame({"x": [1.0, 2.0, 4.0], "a": ["u", "v", "u"]})
    assert Sample.from_frame(frame, "a", metadata=known).origin.ground_truth == ("x0",)
    with pytest.raises(InputError, match="must be a table"):
        Origin.of(["truth"])


def test_an_origin_shows_what_is_known_alone():
    assert repr(Origin()) == "Origin()"
    assert repr(Origin(world="car", memory=True)) == "Origin(world='car', memory=True)"
