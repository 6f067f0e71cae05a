"""Choices on the command line: options that belong together, and answers in plain words."""

import json
import sys

import numpy as np
import polars
import pytest

from policyspace.cli import main


@pytest.fixture
def files(tmp_path, monkeypatch):
    """trips.csv, one row a choice, and long.csv, one row an alternative."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    cost, idle = rng.normal(size=(2, 200, 2)).round(2)
    chosen = (rng.gumbel(size=(200, 2)) - 1.5 * cost).argmax(axis=1)
    trips = {"mode": np.array(["bus", "car"])[chosen], "day": np.arange(200) // 20}
    trips |= {
        f"{name}_{mode}": x[:, j]
        for name, x in (("cost", cost), ("idle", idle))
        for j, mode in enumerate(("bus", "car"))
    }
    polars.DataFrame(trips).write_csv("trips.csv")
    rows = {
        "trip": np.repeat(np.arange(200), 2),
        "mode": np.tile(["bus", "car"], 200),
        "cost": cost.ravel(),
        "idle": idle.ravel(),
    }
    polars.DataFrame(rows | {"taken": np.eye(2, dtype=int)[chosen].ravel()}).write_csv("long.csv")


@pytest.fixture
def run(files, monkeypatch, capfd):
    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["policyspace", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code or 0, capfd.readouterr()

    return command


WIDE = ("trips.csv", "--actions", "mode", "--attributes", "cost=cost_*,idle=idle_bus|idle_car")
LONG = ("long.csv", "--choice-id", "trip", "--chosen", "taken")


@pytest.mark.parametrize("source", [WIDE, (*LONG, "--alternative", "mode"), LONG])
def test_the_answer_is_about_attributes(run, source):
    code, printed = run("identify", *source)
    assert code == 0 and printed.out.startswith("The agent uses 1 of 2: cost.")


def test_json_tells_what_was_asked(run):
    code, printed = run("identify", *WIDE, "--specific", "idle", "--json", "-", "--rule", "combinatorial")
    answer = json.loads(printed.out)
    assert code == 0 and answer["selected"] == ["cost"] and answer["policy"]["family"] == "ChoiceLinear"
    assert answer["fit"]["parameters"].keys() == {"intercept[bus]", "cost", "idle[bus]", "idle[car]"}


def test_the_file_may_be_followed(run):
    code, printed = run("identify", *WIDE, "--episodes", "day", "--follow")
    assert code == 0 and "cost controlled" in printed.out


def test_plan_and_the_refused_theory(run):
    code, printed = run("plan", *WIDE, "--plot", "power.svg")
    assert code == 0 and "cost: 200 rows are enough" in printed.out
    code, printed = run("theory", *WIDE)
    assert code == 2 and "actions have attributes" in printed.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("trips.csv", "--actions", "mode", "--available", "cost_*"),
            "--available is about alternatives with attributes",
        ),
        (("long.csv", "--chosen", "taken"), "--chosen is about alternatives"),
        (("long.csv", "--choice-id", "trip"), "--choice-id needs --chosen"),
        ((*WIDE, "--chosen", "mode"), "need --choice-id"),
        ((*WIDE, "--policy", "gaussian"), "have the policy 'choice', found --policy gaussian"),
        ((*WIDE, "--hidden", "4"), "found --hidden"),
        ((*WIDE[:3], "--attributes", "cost"), "must be such as 'cost=cost_*,time=time_*', found 'cost'"),
        ((*LONG, "--attributes", "cost=cost_*"), "attributes are columns, found 'cost=…'"),
        ((*LONG, "--actions", "mode"), "found the action column 'mode' too"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(run, arguments, sentence):
    code, printed = run("identify", *arguments)
    assert code == 2 and sentence in printed.err and printed.err.count("\n") == 1


@pytest.mark.parametrize("source", [WIDE, (*LONG, "--alternative", "mode")])
def test_an_attribute_may_be_an_offset(run, source):
    code, printed = run("identify", *source, "--offset", "idle")
    assert code == 0 and "Offset, added with weight 1 and not tested: idle." in printed.out
    assert printed.out.startswith("The agent uses cost.")


def test_an_offset_of_labels_is_a_column_or_one_for_an_action(run):
    columns = ("identify", "trips.csv", "--actions", "mode", "--features", "cost_car,cost_bus", "--json", "-")
    found = [json.loads(run(*columns, "--offset", said)[1].out) for said in ("idle_bus", "bus=idle_bus")]
    assert found[0]["groups"] == found[1]["groups"] and found[0]["policy"]["offset"] == ["idle_bus of bus"]
    code, printed = run(*columns, "--offset", "bus=idle_bus,idle_car")
    assert code == 2 and "--offset must be one column, or such as 'left=col1,right=col2'" in printed.err
    code, printed = run("identify", "trips.csv", "--actions", "mode", "--offset", "idle")
    assert code == 2 and "the offset names 'idle', which is no feature" in printed.err
