"""The options for people and animals, on simulated mice."""

import json

import pytest
from typer.testing import CliRunner

from policyspace.cli import app
from policyspace.data import trials

MICE = ["--actions", "choice", "--features", "contrast,tone", "--episodes", "session"]


@pytest.fixture
def mice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trials().write_csv("mice.csv")
    return tmp_path


def run(*arguments):
    done = CliRunner().invoke(app, ["identify", "mice.csv", *arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def test_by_mouse_with_a_picture_and_json(mice):
    run(*MICE, "--by", "mouse", "--lags", "1", "--plot", "mice.svg", "--json", "mice.json")
    found = json.loads((mice / "mice.json").read_text())
    assert len(found["answers"]) == 12 and found["pooled"]["data"]["lagged_actions"] == ["previous action"]
    assert (mice / "mice.svg").read_text().count("<svg") == 1
    first = (mice / "mice.svg").read_bytes()
    run(*MICE, "--by", "mouse", "--lags", "1", "--plot", "mice.svg")
    assert (mice / "mice.svg").read_bytes() == first


@pytest.mark.parametrize("interval", ["wald", "profile"])
def test_coefficients_and_calibration(mice, interval):
    shown = run(*MICE, "--coefficients", interval, "--calibration", "fit.png", "--json", "answer.json")
    assert "odds ratio" in shown and "McFadden's ρ²" in shown and (mice / "fit.png").stat().st_size > 1000
    weights = json.loads((mice / "answer.json").read_text())["weights"]
    contrast = next(row for row in weights["coefficients"] if row["parameter"] == "contrast")
    assert contrast["lower"] < contrast["estimate"] < contrast["upper"]
    assert sum(one["weight"] for one in weights["calibration"]) == weights["fit"]["num_rows"]


def test_what_does_not_go_together(mice):
    from policyspace import InputError

    for options, words in [
        (["--by", "mouse", "--coefficients", "wald"], "found --by too"),
        (["--by", "mouse", "--follow"], "found --by too"),
        (["--coefficients", "best"], "'wald' or 'profile'"),
        (["--subjects", "mouse", "--coefficients", "profile"], "plain likelihood"),
        (["--weight-type", "sampling"], "found no weights"),
        (["--formula", "choice ~ contrast"], "beside it"),
    ]:
        with pytest.raises(InputError, match=words):
            run(*MICE, *options)
