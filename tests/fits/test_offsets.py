"""A known part of the policy: the numbers of R with an `offset`, which data/golden/make_offsets.R makes."""

import json
from pathlib import Path

import numpy as np
import polars
import pytest

from policyspace import ChoiceLinear, InputError, LongFormat, SoftmaxLinear, identify, identify_by, plan

FOLDER = Path(__file__).parents[1] / "data" / "golden"
NUMBERS = json.loads((FOLDER / "offsets.json").read_text(encoding="utf-8"))
COLUMN = polars.col

KNOWN = {
    "birthwt": 2 - COLUMN("lwt") / 60,
    "infert": 0.8 * COLUMN("spontaneous"),
    "mtcars": 1 - COLUMN("hp") / 100,
    "attitude": 0.3 * COLUMN("advance"),
    "chick_weight": 8.0 * COLUMN("Time"),
}
LABELS = {
    "birthwt": ("low", ["age", "smoke", "ht", "ui"]),
    "infert": ("case", ["age", "parity", "induced"]),
    "mtcars": ("am", ["drat"]),
}
AMOUNTS = {"attitude": ("rating", ["complaints", "learning"]), "chick_weight": ("weight", ["Time", "Diet"])}
SUBJECTS = {"infert": "stratum", "chick_weight": "Chick"}


def conclude(name, **more):
    action, features = (LABELS | AMOUNTS)[name]
    kind = str if name in LABELS else float
    frame = polars.read_csv(FOLDER / f"{name}.csv").with_columns(COLUMN(action).cast(kind), known=KNOWN[name])
    if name in LABELS:
        more["reference"] = "0"
    if "Diet" in features:
        more["categorical"] = ["Diet"]
    return identify(frame, action, features=features, offset="known", **({"test": "wilks"} | more))


def plain(numbers):
    return {("intercept" if name == "(Intercept)" else name): value for name, value in numbers.items()}


def by_parameter(rows, number):
    return {row.parameter.removesuffix("[1]"): getattr(row, number) for row in rows}


@pytest.mark.parametrize("name", LABELS | AMOUNTS)
def test_ratios_and_likelihoods_are_those_of_glm_and_lm(name):
    entry, answer = NUMBERS[name], conclude(name)
    assert {test.group: test.statistic for test in answer.groups} == pytest.approx(entry["statistics"], abs=1e-7)
    fit = answer.coefficients().fit
    assert fit.log_likelihood == pytest.approx(entry["log_likelihood"], abs=1e-7)
    assert fit.null_log_likelihood == pytest.approx(entry["null"], abs=1e-7)
    if "p_values" in entry:
        assert {test.group: test.p_value for test in answer.groups} == pytest.approx(entry["p_values"], rel=1e-7)


@pytest.mark.parametrize("name", ["birthwt", "infert", "mtcars", "attitude"])
def test_coefficients_are_those_of_glm_and_lm(name):
    entry, rows = NUMBERS[name], conclude(name).coefficients().rows
    assert by_parameter(rows, "estimate") == pytest.approx(plain(entry["coefficients"]), rel=1e-7)
    assert by_parameter(rows, "standard_error") == pytest.approx(plain(entry["errors"]), rel=1e-6)


@pytest.mark.parametrize("name", SUBJECTS)
def test_errors_by_cluster_are_those_of_sandwich(name):
    rows = conclude(name, subjects=SUBJECTS[name]).coefficients().rows
    own, numbers = by_parameter(rows, "standard_error"), plain(NUMBERS[name]["clustered"])
    shared = own.keys() & numbers.keys() - ({"intercept"} if "Diet2" in numbers else set())
    assert shared
    assert {key: own[key] for key in shared} == pytest.approx({key: numbers[key] for key in shared}, rel=1e-6)


def test_firths_coefficients_are_those_of_brglm2():
    rows = conclude("mtcars", test="firth").coefficients().rows
    assert by_parameter(rows, "estimate") == pytest.approx(plain(NUMBERS["mtcars"]["firth"]), rel=1e-8)


def test_offsets_of_several_labels_are_those_of_multinom():
    size = COLUMN("Size")
    frame = polars.read_csv(FOLDER / "iris.csv").with_columns(one=size / 2, two=size.sqrt())
    known = {"versicolor": "one", "virginica": "two"}
    answer = identify(frame, "Species", features=["Size"], offset=known, reference="setosa", test="wilks")
    entry = NUMBERS["iris"]
    assert answer.groups[0].statistic == pytest.approx(entry["statistics"]["Size"], abs=1e-6)
    fit = answer.coefficients().fit
    assert (fit.log_likelihood, fit.null_log_likelihood) == pytest.approx(
        (entry["log_likelihood"], entry["null"]), abs=1e-6
    )


def travel():
    frame = polars.read_csv(FOLDER.parent / "choice" / "travel_mode.csv").with_columns(known=-COLUMN("vcost") / 50)
    attributes = ["wait", "travel", "gcost", "known"]
    space = ChoiceLinear(attributes=attributes, offset=["known"], long=LongFormat("individual", "choice", "mode"))
    return identify(frame, policy=space, test="wilks")


def metro():
    modes = ("car", "metro", "train")
    frame = polars.read_csv(FOLDER.parent / "choice" / "swissmetro.csv.gz")
    frame = frame.with_columns(**{f"known_{mode}": -COLUMN(f"minutes_{mode}") / 100 for mode in modes})
    attributes = {"francs": "francs_*", "known": "known_*"}
    return identify(
        frame,
        "choice",
        policy=ChoiceLinear(attributes=attributes, available="available_*", offset=["known"]),
        test="wilks",
    )


@pytest.mark.parametrize(("name", "asked"), [("travel", travel), ("swissmetro", metro)])
def test_offsets_of_alternatives_are_those_of_clogit(name, asked):
    entry, answer = NUMBERS[name], asked()
    assert {test.group: test.statistic for test in answer.groups} == pytest.approx(entry["statistics"], abs=1e-6)
    assert answer.fit.log_likelihood == pytest.approx(entry["log_likelihood"], abs=1e-6)
    found = {row.parameter: row for row in answer.coefficients().rows}
    shared = found.keys() & entry["coefficients"].keys()
    assert shared == entry["statistics"].keys()
    for parameter in shared:
        assert found[parameter].estimate == pytest.approx(entry["coefficients"][parameter], rel=1e-6)
        assert found[parameter].standard_error == pytest.approx(entry["errors"][parameter], rel=1e-6)


def three_labels(seed=0, num_rows=300):
    rng = np.random.default_rng(seed)
    x, known = rng.normal(size=(num_rows, 2)), rng.normal(size=(num_rows, 2))
    eta = np.column_stack([x[:, 0] + known[:, 0], known[:, 1] - x[:, 0], np.zeros(num_rows)])
    return x, known, (eta + rng.gumbel(size=eta.shape)).argmax(axis=1)


def test_an_offset_along_a_feature_only_moves_its_weight():
    x, _, actions = three_labels()
    without = identify(x, actions, test="wilks")
    moved = identify(x, actions, offset=np.column_stack([x[:, 0], -2 * x[:, 0]]), test="wilks")
    assert moved.fit.log_likelihood == pytest.approx(without.fit.log_likelihood, abs=1e-8)
    weight = {row.parameter: row.estimate for row in moved.coefficients().rows}
    plain_weight = {row.parameter: row.estimate for row in without.coefficients().rows}
    assert weight["x0[0]"] == pytest.approx(plain_weight["x0[0]"] - 1, abs=1e-8)
    assert weight["x0[1]"] == pytest.approx(plain_weight["x0[1]"] + 2, abs=1e-8)


@pytest.mark.parametrize("test", ["wilks", "firth", "robust", "lean", "bootstrap", "universal", "eprocess", "mixture"])
def test_an_offset_of_zeros_changes_no_test(test):
    x, known, actions = three_labels(1, 200)
    given = identify(x, actions, offset=0 * known, test=test)
    same = identify(x, actions, test=test)
    for one, other in zip(given.groups, same.groups, strict=True):
        # The same maxima and the same priors; what regressions learn from further columns is only nearly the same.
        exact = test != "lean"
        assert one.statistic == pytest.approx(other.statistic, abs=1e-5 if exact else 1.0)


def test_all_searches_take_offsets():
    x, known, actions = three_labels(2)
    one = identify(x, actions, offset=known, rule="combinatorial", test="wilks")
    assert one.selected == ("x0",)
    assert "Offset, added with weight 1 and not tested: offset[0] of 0, offset[1] of 1." in one.notes()
    assert plan(x, actions, offset=known).groups[0].power_now.value > 0.9
    profile = identify(x, actions, offset=known, test="wilks").coefficients("profile").rows
    assert all(row.lower < row.estimate < row.upper for row in profile)


def test_subjects_alone_and_lags_take_offsets():
    rng = np.random.default_rng(3)
    frame = polars.DataFrame(
        {"who": np.repeat(["a", "b"], 150), "x": rng.normal(size=300), "o": 3 * rng.normal(size=300)}
    )
    frame = frame.with_columns(y=COLUMN("x") + COLUMN("o") + rng.normal(size=300))
    by = identify_by(frame, "who", "y", told={"features": ["x"], "offset": "o", "test": "wilks"})
    alone = identify(frame.head(150), "y", features=["x"], offset="o", test="wilks")
    assert by.answers["a"].groups[0].statistic == pytest.approx(alone.groups[0].statistic)
    # The last action is the one that was seen, not what the offset leaves of it.
    past = frame.with_columns(past=COLUMN("y").shift(1), z=COLUMN("y") - COLUMN("o")).drop_nulls()
    with_lags = identify(frame, "y", features=["x"], offset="o", lags=1, test="wilks")
    by_hand = identify(past, "z", features=["x", "past"], test="wilks")
    assert [t.statistic for t in with_lags.groups] == pytest.approx([t.statistic for t in by_hand.groups])


def test_formulas_name_the_column_and_the_offset_takes_it():
    pytest.importorskip("formulaic")
    frame = polars.read_csv(FOLDER / "attitude.csv").with_columns(COLUMN("rating").cast(float), known=KNOWN["attitude"])
    answer = identify(frame, formula="rating ~ complaints + learning + known", offset="known", test="wilks")
    found = {test.group: test.statistic for test in answer.groups}
    assert found == pytest.approx(NUMBERS["attitude"]["statistics"], abs=1e-7)


X, KNOWN_TWO, ACTIONS = three_labels(4, 60)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"offset": KNOWN_TWO[:, 0]}, "60 rows and 2 columns"),
        ({"offset": "x1"}, "one column can be the offset of one action or of two discrete actions"),
        ({"offset": {"0": "x7"}}, "which is no feature"),
        ({"offset": {"7": "x1"}}, "which is no action"),
        ({"offset": KNOWN_TWO, "policy": SoftmaxLinear()}, "belongs to linear policies"),
        ({"offset": KNOWN_TWO, "policy": "network"}, "belongs to linear policies"),
        ({"offset": KNOWN_TWO, "policy": "any"}, "belongs to linear policies"),
        ({"offset": KNOWN_TWO * np.nan}, "finite"),
        ({"offset": KNOWN_TWO, "policy": ChoiceLinear(attributes={"cost": "c_*"})}, "one of their attributes"),
    ],
)  # fmt: skip
def test_what_cannot_be_an_offset_is_refused_with_a_sentence(said, words):
    with pytest.raises(InputError, match=words):
        identify(X, ACTIONS, **said)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"offset": ["price"]}, "only an attribute can be an offset"),
        ({"offset": ["cost"], "specific": ["cost"]}, "an offset has no coefficients"),
    ],
)  # fmt: skip
def test_an_offset_of_alternatives_is_one_of_their_attributes(said, words):
    with pytest.raises(InputError, match=words):
        ChoiceLinear(("c_a", "c_b", "d_a", "d_b"), ("a", "b"), {"cost": "c_*", "days": "d_*"}, **said)
