"""Answers that were saved as JSON are read again, also those of format 1."""

import json
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pytest

import policyspace
from policyspace import InputError, read_answer

OLD = Path(__file__).parent / "format_1"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
NAMES = ["near", "far", "idle"]
AMOUNTS = X[:, 0] + 0.5 * RNG.normal(size=300)
EPISODES = np.arange(300) // 20


def same(one, other):
    """Equal, where NaN is NaN; what JSON cannot hold came back as NaN."""
    if isinstance(one, float):
        return one == other or not np.isfinite(one)
    if is_dataclass(one):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one) if f.compare)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    return one == other


@pytest.mark.parametrize(
    "options",
    [
        {"always": ["idle"], "episodes": EPISODES},
        {"test": "lean"},
        {"rule": "combinatorial", "test": "universal"},
        {"covariance": 0.25, "fixed": {"far": 0.5}, "intercept": False, "groups": "parameter"},
        {"test": "wilks", "lags": 1, "episodes": EPISODES},
        {"policy": "any"},
    ],
)
def test_what_was_saved_is_read(options, tmp_path):
    answer = policyspace.identify(X, AMOUNTS, features=NAMES, **options)
    path = tmp_path / "answer.json"
    path.write_text(answer.to_json())
    found = read_answer(path)
    assert same(answer, found) and type(found.guarantee) is type(answer.guarantee)
    assert str(found) == str(answer) and found.to_dict() == answer.to_dict()


@pytest.mark.parametrize("name", ["wilks", "lean", "no_promise", "separated"])
def test_an_answer_of_format_1_is_read(name, tmp_path):
    old = json.loads((OLD / f"{name}.json").read_text())
    found = read_answer(OLD / f"{name}.json")
    assert list(found.selected) == old["core"] and list(found.undecided) == old["undecided"]
    assert [list(support) for support in found.supports] == old["supports"]
    assert [one.p_value for one in found.groups] == [row["p_value"] for row in old["tests"]]
    assert [one.statistic for one in found.groups] == [row["statistic"] for row in old["tests"]]
    assert (found.data.num_rows, found.fit.num_parameters) == (old["num_rows"], old["num_parameters"])
    assert found.test.name == old["test"] and found.significance == old["settings"]["significance"]
    assert (found.guarantee is None) == (old["promise"] is None) == bool(found.no_guarantee)
    assert [one.status == "violated" for one in found.assumptions] == [a["held"] is False for a in old["assumptions"]]
    assert found.warnings == tuple(old["warnings"])
    assert found.ground_truth == (None if old["truth"] is None else tuple(old["truth"]))
    used = {row["group"] for row in old["tests"] if row["verdict"] == "controlled"}
    assert {one.group for one in found.groups if one.verdict in ("used", "controlled")} == used
    again = tmp_path / "again.json"
    again.write_text(found.to_json())
    assert str(read_answer(again)) == str(found)


def test_an_older_name_of_the_rows_is_known(tmp_path):
    old = json.loads((OLD / "wilks.json").read_text())
    old["num_pairs"] = old.pop("num_rows")
    path = tmp_path / "older.json"
    path.write_text(json.dumps(old))
    assert read_answer(path).data.num_rows == 300


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda plain: plain | {"format": 3}, "format 3"),
        (lambda plain: {name: value for name, value in plain.items() if name != "groups"}, "'groups' is missing"),
        (lambda plain: plain | {"significance": "small"}, "'small' is not what was expected"),
        (lambda plain: plain | {"groups": [{"group": "near"}]}, "'verdict' is missing"),
        (lambda plain: plain | {"selected": 3}, "3 is not what was expected"),
        (lambda plain: [plain], "no answer of policyspace identify"),
        (lambda plain: {"way": "inside"}, "'settings' is missing"),
    ],
)
def test_what_is_no_answer_is_refused_in_a_sentence(damage, said, tmp_path):
    plain = policyspace.identify(X, AMOUNTS, features=NAMES).to_dict()
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(damage(plain)))
    with pytest.raises(InputError, match=said) as caught:
        read_answer(path)
    assert str(caught.value).startswith(str(path))


def test_attributes_have_their_older_names_for_one_release():
    answer = policyspace.identify(X, AMOUNTS, features=NAMES, policy="gaussian")
    before = {
        "core": list(answer.selected), "tests": list(answer.groups), "truth": None, "dependence": "rows", "left_out": [],
        "num_pairs": 300, "num_rows": 300, "promise": answer.guarantee.text, "test_reason": answer.test.reason.text,
        "log_likelihood": answer.fit.log_likelihood,
    }  # fmt: skip
    for name, value in before.items():
        with pytest.warns(DeprecationWarning, match=rf"Identification\.{name} is now \."):
            assert getattr(answer, name) == value
    with pytest.warns(DeprecationWarning, match="is now .coefficient_norm"):
        assert answer.groups[0].effect == answer.groups[0].coefficient_norm
    with pytest.raises(AttributeError, match="no attribute 'settings'"):
        _ = answer.settings
