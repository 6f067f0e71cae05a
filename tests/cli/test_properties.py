"""Any table and any options at the command line: an answer or one sentence, never a traceback, and JSON that parses."""

import contextlib
import io
import json
import os
import sys
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from policyspace.cli import main

FIELDS = {
    "format", "selected", "undecided", "supports", "groups", "test", "policy", "data", "fit", "guarantee", "assumptions",
    "clusters", "exhaustive", "warnings", "version",
}  # fmt: skip
TEST_FIELDS = {"group", "statistic", "degrees_of_freedom", "p_value", "adjusted_p_value", "rejected"}
MANY = int(os.environ.get("POLICYSPACE_EXAMPLES", "80"))
LIMITS = settings(max_examples=MANY // 2, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


def run(*arguments):
    """Exit code, stdout, stderr; a warning of any library is a failure, for the user would see it on stderr."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["policyspace", "identify", *map(str, arguments)]
    with (
        mock.patch.object(sys, "argv", argv),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
        pytest.raises(SystemExit) as stop,
    ):
        warnings.simplefilter("error", RuntimeWarning)
        main()
    return stop.value.code, out.getvalue(), err.getvalue()


def check(result):
    """What must hold whatever was asked; the answer, where there is one."""
    code, out, err = result
    assert code in (0, 2)
    assert "Traceback" not in err
    if code == 2:
        assert out == ""
        assert err.startswith("policyspace: ")
        assert err.count("\n") == 1
        return None
    assert err == ""
    found = json.loads(out, parse_constant=lambda text: pytest.fail(f"found {text} in the JSON"))
    check_answer(found)
    return found


def check_answer(found):
    assert found.keys() >= FIELDS
    assert found["supports"]
    for test in found["groups"]:
        assert test.keys() >= TEST_FIELDS
        assert test["statistic"] >= 0 or found["test"]["statistic"] == "2·log E"  # evidence against use is below zero
        assert 0 <= test["p_value"] <= test["adjusted_p_value"] * (1 + 1e-9) + 1e-300
        assert test["adjusted_p_value"] <= 1
        assert test["degrees_of_freedom"] >= 0
        assert test["rejected"] == (test["group"] in found["selected"])
    everywhere = set.intersection(*map(set, found["supports"]))
    if found["exhaustive"]:
        assert set(found["selected"]) == everywhere
        assert set(found["selected"]) | set(found["undecided"]) == set.union(*map(set, found["supports"]))


# -- tables of nonsense ------------------------------------------------------------------------------------------------

CELL = st.one_of(
    st.floats(-3, 3).map(lambda x: f"{x:.2f}"),
    st.integers(-3, 3).map(str),
    st.sampled_from(["", "nan", "inf", "-inf", "1e400", "1e-400", "1e200", "NA", "a", "b", "true", " 1 ", '"', "é", "1,2"]),
)  # fmt: skip
NAME = st.sampled_from(["x", "y", "move", "", "intercept", " z", "a,b", "x", "$m$", "[b]", "é"])


@st.composite
def nonsense(draw):
    names = draw(st.lists(NAME, min_size=1, max_size=4))
    rows = draw(st.lists(st.lists(CELL, min_size=1, max_size=5), max_size=8))
    text = "\n".join([",".join(names), *(",".join(row) for row in rows)])
    return text + draw(st.sampled_from(["", "\n", "\r\n", "\n\n"])), draw(st.sampled_from(names))


@LIMITS
@given(
    table=nonsense(), features=st.sampled_from([(), ("--features", "x"), ("--features", "x,y"), ("--features", ",")])
)
def test_nonsense(table, features, folder):
    text, action = table
    path = folder / "nonsense.csv"
    path.write_text(text, encoding="utf-8")
    check(run(path, "--actions", action, *features, "--json", "-"))


@LIMITS
@given(
    content=st.binary(max_size=80), suffix=st.sampled_from([".csv", ".tsv", ".csv.gz", ".parquet", ".feather", ".npz"])
)
def test_bytes(content, suffix, folder):
    path = folder / f"bytes{suffix}"
    path.write_bytes(content)
    assert check(run(path, "--actions", "x", "--json", "-")) is None


# -- tables that mostly make sense -------------------------------------------------------------------------------------


def column(kind, rng, n):
    """Columns that statistics find hard."""
    noise = rng.normal(size=n)
    return {
        "noise": noise,
        "constant": np.full(n, 2.5),
        "zero": np.zeros(n),
        "binary": rng.integers(0, 2, n).astype(float),
        "rare": (np.arange(n) == n // 2).astype(float),
        "large": 1e8 + noise,
        "huge": 1e50 * noise,
        "tiny": 1e-50 * noise,
        "steps": np.arange(n, dtype=float),
        "text": rng.choice(["u", "v", "w"], n),
    }[kind]


KINDS = ("noise", "constant", "zero", "binary", "rare", "large", "huge", "tiny", "steps", "text", "copy")
ACTIONS = ("labels", "codes", "regular", "amount", "exact", "whole", "extreme")
RULES = st.sampled_from(
    [
        (),
        ("--rule", "combinatorial"),
        ("--rule", "combinatorial", "--paper-rule"),
        ("--correction", "bh"),
        ("--paper-rule",),
    ]
)
MORE = st.sampled_from(
    [(), ("--no-intercept",), ("--firth",), ("--groups", "parameter"), ("--assume", "x0"), ("--covariance", "1"),
     ("--covariance", "1e-90"), ("--significance", "1e-12"), ("--significance", "0.9"), ("--weights", "w"),
     ("--policy", "gaussian"), ("--policy", "boltzmann")]
)  # fmt: skip


def log(kinds, action, n, seed):
    rng = np.random.default_rng(seed)
    columns = []
    for kind in kinds:
        columns.append(
            columns[-1] if kind == "copy" and columns else column("noise" if kind == "copy" else kind, rng, n)
        )
    first = columns[0] if columns[0].dtype.kind == "f" else rng.normal(size=n)
    scale = np.abs(first).max() or 1.0
    moves = {
        "labels": np.array(["go", "stop", "turn"])[rng.integers(0, 3, n)],
        "codes": rng.integers(0, 4, n),
        "regular": np.where(first > np.median(first), "go", "stop"),
        "amount": first / scale + rng.normal(size=n),
        "exact": 2.0 * first + 1.0,
        "whole": rng.integers(0, 5, n).astype(float),
        "extreme": 1e55 * rng.normal(size=n),
    }
    names = [f"x{j}" for j in range(len(columns))]
    rows = zip(*columns, moves[action], rng.integers(0, 3, n), strict=True)
    return "\n".join([",".join([*names, "action", "w"]), *(",".join(map(str, row)) for row in rows)]), names


@settings(LIMITS, max_examples=MANY)
@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4),
    action=st.sampled_from(ACTIONS),
    n=st.sampled_from([1, 2, 3, 5, 8, 20, 60]),
    seed=st.integers(0, 3),
    rule=RULES,
    more=MORE,
)
@example(kinds=["steps"], action="labels", n=3, seed=0, rule=(), more=("--firth",))
@example(kinds=["rare", "copy", "zero"], action="regular", n=20, seed=0, rule=("--rule", "combinatorial"), more=())
@example(kinds=["huge", "tiny"], action="extreme", n=60, seed=1, rule=(), more=("--covariance", "1e-90"))
@example(kinds=["noise"], action="labels", n=3, seed=1, rule=(), more=("--weights", "w"))
def test_hard_tables(kinds, action, n, seed, rule, more, folder):
    text, names = log(kinds, action, n, seed)
    path = folder / "hard.csv"
    path.write_text(text)
    found = check(run(path, "--actions", "action", "--features", ",".join(names), *rule, *more, "--json", "-"))
    if found is not None:
        weights = [int(row.rsplit(",", 1)[1]) for row in text.splitlines()[1:]]
        assert found["data"]["num_rows"] == (sum(weights) if "--weights" in more else n)


@settings(LIMITS, max_examples=MANY // 8)
@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=3),
    action=st.sampled_from(ACTIONS),
    seed=st.integers(0, 9),
)
def test_the_screen_takes_what_json_takes(kinds, action, seed, folder):
    """The table and the picture can be made of whatever was answered."""
    text, names = log(kinds, action, 60, seed)
    path, picture = folder / "shown.csv", Path(folder / "shown.svg")
    path.write_text(text)
    arguments = (path, "--actions", "action", "--features", ",".join(names))
    found = check(run(*arguments, "--json", "-"))
    code, out, err = run(*arguments, "--plot", picture)
    assert code == (2 if found is None else 0)
    assert err.count("\n") == (found is None)
    if found is not None:
        assert out.startswith(found["answer"])
        assert "nan" not in out.split()
