"""Public functions whose arguments are of another kind: an answer, or one sentence that names the argument."""

import inspect
import random

import numpy as np
import polars
import pytest

import policyspace
from policyspace import InputError

ODD = [
    ["x"], np.array([1.0, 2.0]), np.float32(0.05), None, object(), {"a": 1}, b"x", True, 3.5, float("nan"), len, range(3),
    (), "", 10**30, polars.DataFrame({"a": [1]}), np.array("x"), -1, [[]], {1, 2},
]  # fmt: skip

RNG = np.random.default_rng(0)
STATES = RNG.normal(size=(60, 2))
DATA = {"data": STATES, "actions": STATES[:, 0] + RNG.normal(size=60)}
SAMPLE = policyspace.Sample.from_arrays(DATA["data"], DATA["actions"])
SPACE = policyspace.GaussianLinear(SAMPLE.names, SAMPLE.action_names)
FITTED = {"space": SPACE, "demonstrations": SAMPLE}

CALLS = {
    "identify": DATA,
    "identify_by": DATA | {"by": np.arange(60) // 20},
    "plan": DATA,
    "clone": DATA,
    "read": {"source": {"obs": STATES, "actions": DATA["actions"]}},
    "make_world": {"name": "gridworld"},
    "load_clone": {"path": "none.npz"},
    "fit": FITTED,
    "likelihood_of": FITTED,
    "simplified": FITTED,
    "combinatorial": FITTED,
}


def drawn(count, seed=0):
    """(function, name of its argument, odd value), the same for the same seed."""
    rng = random.Random(seed)
    for _ in range(count):
        function = rng.choice(list(CALLS))
        parameters = inspect.signature(getattr(policyspace, function)).parameters.values()
        names = [one.name for one in parameters if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
        yield function, rng.choice(names), rng.choice(ODD)


def test_odd_values_end_in_an_answer_or_a_sentence():
    wrong = []
    for function, name, value in drawn(250):
        try:
            getattr(policyspace, function)(**{**CALLS[function], name: value})
        except InputError as error:
            assert "\n" not in str(error) and str(error)[-1] in ".?"
        except Exception as error:  # whatever it is, it is wrong
            wrong.append((function, name, f"{value!r:.40}", f"{error!r:.150}"))
    assert wrong == []


def test_what_was_wrong_once():
    with pytest.raises(InputError, match=r"there is no world '\['x'\]': valid names are 'gridworld'"):
        policyspace.make_world(["x"])
    with pytest.raises(InputError, match=r"identify: 'correction' must be .*found array\(\[1., 2.\]\)"):
        policyspace.identify(STATES, DATA["actions"], correction=np.array([1.0, 2.0]))
    with pytest.raises(InputError, match="unknown rule"):
        policyspace.identify(STATES, DATA["actions"], rule=np.array([1, 2]))


def test_numbers_of_numpy_are_numbers():
    plain = policyspace.identify(STATES, DATA["actions"], significance=0.0625)
    for kind in (np.float32, np.float64, np.float16):
        assert policyspace.identify(STATES, DATA["actions"], significance=kind(0.0625)).to_dict() == plain.to_dict()


def test_columns_that_are_no_labels_or_no_use():
    table = polars.DataFrame({"x": np.arange(60) % 7.0, "a": ["u", "v", "v"] * 20})
    spans = table.with_columns(polars.duration(seconds=polars.col("x")).alias("d"))
    with pytest.raises(InputError, match="column 'd' must hold labels, found the type Duration"):
        policyspace.identify_by(spans, by="d", actions="a", features=["x"])
    single = table.head(40).with_columns(polars.Series("a", [f"l{i}" for i in range(40)]))
    with pytest.raises(InputError, match="an action must be taken more than once, found 40 labels in as many rows"):
        policyspace.identify(single, actions="a")
    beyond = {polars.UInt128: 2**120, polars.Int128: 2**100, polars.UInt64: 2**64 - 9, polars.Float64: 1e30}
    for kind, first in beyond.items():
        values = [first + (i % 3) * (first // 10 if kind == polars.Float64 else 1) for i in range(60)]
        large = table.with_columns(polars.Series("c", values, dtype=kind))
        answer = policyspace.identify(large, actions="a", features=["x", "c"], categorical=["c"])
        assert [test.group for test in answer.tests] == ["x", "c"]
        assert policyspace.identify(large, actions="a", features=["x"], episodes="c").num_pairs == 60
