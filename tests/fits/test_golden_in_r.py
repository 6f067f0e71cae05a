"""Numbers of R on small public data sets: data/golden/make.R made them, and says where each data set comes from."""

import json
from pathlib import Path

import numpy as np
import polars
import pytest

import policyspace

FOLDER = Path(__file__).parents[1] / "data" / "golden"
NUMBERS = json.loads((FOLDER / "numbers.json").read_text(encoding="utf-8"))
BINARY = [name for name, entry in NUMBERS.items() if entry["kind"] == "logit"]
LINEAR = [name for name, entry in NUMBERS.items() if entry["kind"] == "linear"]
SEVERAL = [name for name, entry in NUMBERS.items() if entry["kind"] == "multinomial"]


def frame_of(name):
    entry = NUMBERS[name]
    frame = polars.read_csv(FOLDER / f"{name}.csv")
    if entry["kind"] == "linear":
        return frame.with_columns(polars.col(entry["action"]).cast(float))
    return frame.with_columns(polars.col(entry["action"]).cast(str))


def conclude(name, **more):
    entry = NUMBERS[name]
    features = entry["features"] if isinstance(entry["features"], list) else [entry["features"]]
    if "Diet" in features:
        more["categorical"] = ["Diet"]
    labels = {} if entry["kind"] == "linear" else {"reference": entry["reference"], "weights": entry["weights"]}
    return policyspace.identify(frame_of(name), entry["action"], features=features, **labels, **more)


def theirs(numbers):
    """The numbers of features that are no factor, by name; R shows those of a factor by level."""
    return {("intercept" if name == "(Intercept)" else name): value for name, value in numbers.items()}


def plain(name):
    """Whether no feature is a factor, whose levels R compares with the first and we with the last."""
    return set(theirs(NUMBERS[name]["coefficients"])) - {"intercept"} == set(np.atleast_1d(NUMBERS[name]["features"]))


def test_at_least_twelve_data_sets():
    assert len(NUMBERS) >= 12 and len([name for name in BINARY if plain(name)]) >= 4


@pytest.mark.parametrize("name", NUMBERS)
def test_ratios_likelihoods_and_criteria(name):
    entry, answer = NUMBERS[name], conclude(name, test="wilks")
    found = {test.group: test.statistic for test in answer.groups}
    # nnet's optimiser stops where its likelihood is right to some digits fewer than a Newton step's.
    digits = 1e-6 if entry["kind"] == "multinomial" else 1e-7
    assert found == pytest.approx(entry["statistics"], abs=digits, rel=1e-9)
    assert answer.num_rows == entry["pairs"]
    fit = answer.coefficients().fit
    assert fit.log_likelihood == pytest.approx(entry["log_likelihood"], abs=digits)
    assert fit.null_log_likelihood == pytest.approx(entry["null"], abs=digits)
    assert fit.aic == pytest.approx(entry["aic"], abs=2 * digits)
    if "bic" in entry:
        assert fit.bic == pytest.approx(entry["bic"], abs=2 * digits)
    if "p_values" in entry:
        assert {t.group: t.p_value for t in answer.groups} == pytest.approx(entry["p_values"], rel=1e-7)


@pytest.mark.parametrize("name", [name for name in BINARY + LINEAR if plain(name)])
def test_coefficients_and_standard_errors(name):
    entry, rows = NUMBERS[name], conclude(name, test="wilks").coefficients().rows
    assert {row.parameter: row.estimate for row in rows} == pytest.approx(theirs(entry["coefficients"]), rel=1e-7)
    assert {row.parameter: row.standard_error for row in rows} == pytest.approx(theirs(entry["errors"]), rel=1e-6)


@pytest.mark.parametrize("name", [name for name in BINARY + LINEAR if "clustered" in NUMBERS[name]])
def test_standard_errors_by_cluster(name):
    entry = NUMBERS[name]
    rows = conclude(name, test="wilks", subjects=entry["cluster"]).coefficients().rows
    numbers = theirs(entry["clustered"])
    own = {row.parameter: row.standard_error for row in rows}
    shared = [feature for feature in own if feature in numbers and (plain(name) or feature != "intercept")]
    assert shared
    assert [own[f] for f in shared] == pytest.approx([numbers[f] for f in shared], rel=1e-6)


@pytest.mark.parametrize("name", [name for name in BINARY if "firth" in NUMBERS[name]])
def test_firths_coefficients(name):
    entry, rows = NUMBERS[name], conclude(name, firth=True).coefficients().rows
    own = {row.parameter: row.estimate for row in rows}
    shared = [feature for feature in own if feature in entry["firth"]]
    assert len(shared) >= 2
    assert [own[f] for f in shared] == pytest.approx([entry["firth"][f] for f in shared], rel=1e-8)
    if name == "murder_rates":
        assert own["noncauc"] == pytest.approx(35.62809, abs=5e-6)


@pytest.mark.parametrize("name", [name for name in SEVERAL if name == "iris"])
def test_coefficients_of_several_labels(name):
    rows = conclude(name, test="wilks").coefficients().rows
    own = {row.parameter: row.estimate for row in rows}
    for label, weights in NUMBERS[name]["coefficients"].items():
        for feature, value in theirs(weights).items():
            assert own[f"{feature}[{label}]"] == pytest.approx(value, abs=2e-4)


def test_the_housing_counts_are_1681_pairs():
    assert conclude("housing", test="wilks").num_rows == 1681 and len(frame_of("housing")) == 72
