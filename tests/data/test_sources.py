"""Whatever is called data becomes the same demonstrations, and what is said about them is used or refused."""

import numpy as np
import polars
import pytest

import policyspace
from policyspace import InputError, Sample, identify
from policyspace.data import load_sample
from policyspace.theory import assess

pytest.importorskip("pandas")
RNG = np.random.default_rng(8)
X = RNG.normal(size=(60, 2))
FORCE = X[:, 0] + RNG.normal(size=60)
FRAME = polars.DataFrame({"speed": X[:, 0], "left": X[:, 1], "force": FORCE})
DATA = Sample.from_arrays(X, FORCE, ["speed", "left"], ["force"])


def same(one, other):
    for name in Sample.__dataclass_fields__.keys() - {"rows"}:  # which are made of the others
        np.testing.assert_equal(getattr(one, name), getattr(other, name))


def test_arrays_tables_and_files_are_the_same_demonstrations(tmp_path):
    FRAME.write_parquet(tmp_path / "log.parquet")
    for data in (FRAME, FRAME.to_pandas(), FRAME.to_arrow(), tmp_path / "log.parquet", str(tmp_path / "log.parquet")):
        same(load_sample(data, "force"), DATA)
        same(load_sample(data, ["force"], ["speed", "left"]), DATA)
    assert load_sample(DATA) is DATA


@pytest.mark.parametrize("kind", ["polars", "pandas", "arrow"])
def test_of_a_table_beside_an_array_of_actions_features_picks_columns(kind):
    table = {"polars": FRAME, "pandas": FRAME.to_pandas(), "arrow": FRAME.to_arrow()}[kind]
    picked = load_sample(table, FORCE, ["left", "speed"])
    assert picked.names == ("left", "speed")
    np.testing.assert_array_equal(picked.features, X[:, ::-1])
    with pytest.raises(InputError, match="no column 'sped': did you mean 'speed'"):
        load_sample(table, FORCE, ["sped"])


@pytest.mark.parametrize("call", [identify, policyspace.plan, assess])
@pytest.mark.parametrize("word", ["actions", "features", "episodes", "weights", "subjects"])
def test_demonstrations_that_are_ready_are_not_told_again(call, word):
    with pytest.raises(InputError, match=f"have said what their {word} are, found {word}= too: leave it out"):
        call(DATA, **{word: ["speed", "left"]})
    if word == "features":
        with pytest.raises(InputError, match="found features= too"):
            call(DATA, names=["speed", "left"])


def test_a_reference_is_taken_by_demonstrations_that_are_ready():
    choices = Sample.from_arrays(X, np.where(FORCE > 0, "go", "stop"))
    assert load_sample(choices, reference="go").action_names == ("stop", "go")
    with pytest.raises(InputError, match="only discrete actions have a reference"):
        load_sample(DATA, reference="go")


def test_actions_must_be_there():
    with pytest.raises(InputError, match="the actions are missing"):
        load_sample(X)
