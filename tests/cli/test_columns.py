"""From the columns of a file to an answer without a policy model, through the command line."""

import json
from pathlib import Path

import numpy as np
import polars
import pytest

from policyspace import identify

N = 400
RNG = np.random.default_rng(21)
X, Y = RNG.normal(size=(2, N))
FORCE = np.sin(2 * X) + 0.5 * RNG.normal(size=N)
LOG = {
    "obs_x": X,
    "obs_y": Y,
    "gear": RNG.integers(0, 3, size=N),
    "force": FORCE,
    "move": np.where(FORCE > 0, "go", "stop"),
    "reward": RNG.normal(size=N),
    "step": np.arange(N) % 20,
    "run": np.arange(N) // 20,
    "who": [f"person {i // 20}" for i in range(N)],
}
SENSORS = ("--features", "obs_*")
FORCED = ("--actions", "force", *SENSORS)


@pytest.fixture
def run(command_line, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    polars.DataFrame(LOG).write_csv("log.csv")
    return lambda *arguments, name="identify": command_line(name, *arguments)


def answer(result):
    code, out, err = result
    assert (code, err) == (0, "")
    return json.loads(out)


def refused(result, *expected):
    code, out, err = result
    assert (code, out, err.count("\n")) == (2, "", 1), err
    for part in expected:
        assert part in err


def saved(columns, name="table.csv"):
    polars.DataFrame(columns).write_csv(name)
    return name


# --- what the columns are -----------------------------------------------------------------------------------------


def test_bookkeeping_is_left_out_and_said(run):
    made = answer(run("log.csv", "--actions", "force", "--json", "-"))
    assert made["data"]["excluded_columns"] == ["reward", "step"]
    assert made["data"]["features"][:3] == ["obs_x", "obs_y", "gear"]
    assert "column 'run' looks like episodes: declare it with --episodes run." in made["warnings"]
    _, out, _ = run("log.csv", "--actions", "force")
    assert "Excluded columns: 'reward', 'step'. To include a column, name it with --features." in out
    assert "Warning: column 'run' looks like episodes" in out
    named = answer(run("log.csv", "--actions", "force", "--features", "obs_*,reward", "--json", "-"))
    assert (named["data"]["excluded_columns"], named["data"]["features"]) == ([], ["obs_x", "obs_y", "reward"])


def test_a_pattern_without_a_column_is_refused(run):
    refused(
        run("log.csv", "--actions", "force", "--features", "ops_*"), "no column matches the pattern 'ops_*'", "'obs_"
    )


def test_categories_are_one_group(run):
    made = answer(
        run("log.csv", "--actions", "force", "--features", "obs_x,gear", "--categorical", "gear", "--json", "-")
    )
    assert made["data"]["features"] == ["obs_x", "gear=0", "gear=1"]
    assert [test["group"] for test in made["groups"]] == ["obs_x", "gear"]


def test_missing_values_are_an_error_or_dropped(run):
    holed = LOG | {"gear": [("NA" if i in (2, 5) else str(g)) for i, g in enumerate(LOG["gear"])]}
    arguments = (saved(holed), "--actions", "force", "--features", "obs_x,gear")
    refused(run(*arguments), "'gear'", "2 missing values", "row 3", "--missing drop")
    made = answer(run(*arguments, "--missing", "drop", "--json", "-"))
    assert made["data"]["num_rows"] == N - 2
    assert "rows dropped for missing values: 2 of 400 ('gear' misses 2)." in made["warnings"]
    refused(run(*arguments, "--missing", "keep"), "'keep'")


@pytest.mark.parametrize("option", ["--subjects", "--subject"])
def test_subjects_are_what_the_lean_test_takes_as_independent(option, run):
    made = answer(run("log.csv", *FORCED, option, "who", "--test", "lean", "--json", "-"))
    assert made["clusters"]["kind"] == "subjects"
    direct = identify(np.column_stack([X, Y]), FORCE, test="lean", subjects=np.array(LOG["who"]))
    assert [test["p_value"] for test in made["groups"]] == [test.p_value for test in direct.groups]
    assert "obs_x" in made["selected"]


@pytest.mark.parametrize("name", ["plan", "theory"])
def test_the_other_commands_read_columns_alike(name, run):
    arguments = (
        "log.csv",
        "--actions",
        "force",
        "--features",
        "obs_*,gear",
        "--categorical",
        "gear",
        "--subjects",
        "who",
    )
    code, out, _ = run(*arguments, name=name)
    assert code == 0 and out


# --- what is independent ------------------------------------------------------------------------------------------


def test_dependence_is_passed_to_the_lean_test(run):
    words = ("--episodes", "run", "--test", "lean", "--json", "-")
    found = {kind: answer(run("log.csv", *FORCED, *words, "--clusters", kind)) for kind in ("rows", "episodes")}
    assert {kind: made["clusters"]["kind"] for kind, made in found.items()} == {"rows": "rows", "episodes": "episodes"}
    assert found["rows"]["groups"][0]["p_value"] < found["episodes"]["groups"][0]["p_value"]


def test_clusters_are_refused_where_it_means_nothing(run):
    refused(run("log.csv", *FORCED, "--test", "wilks", "--clusters", "rows"), "'lean' alone", "'wilks'")
    refused(run("log.csv", *FORCED, "--test", "lean", "--clusters", "episodes"), "--episodes", "--subjects")
    refused(run("log.csv", *FORCED, "--test", "lean", "--clusters", "weeks"), "unknown clusters 'weeks'")
    refused(run("log.csv", *FORCED, "--follow", "--clusters", "rows"), "--follow", "--clusters")


# --- no policy model ----------------------------------------------------------------------------------------------


def test_any_policy_is_tested_without_a_model(run):
    made = answer(run("log.csv", *FORCED, "--policy", "any", "--json", "-"))
    assert (made["test"]["name"], made["selected"], made["fit"]["num_parameters"]) == ("lean", ["obs_x"], 0)
    assert made["fit"]["log_likelihood"] is None
    assert made["guarantee"]
    asked = answer(run("log.csv", *FORCED, "--policy", "any", "--test", "lean", "--json", "-"))
    assert asked["groups"] == made["groups"]
    of_gaussian = answer(run("log.csv", *FORCED, "--policy", "gaussian", "--test", "lean", "--json", "-"))
    assert [t["p_value"] for t in of_gaussian["groups"]] == [
        t["p_value"] for t in made["groups"]
    ]  # no model, no difference
    assert answer(run("log.csv", *FORCED, "--policy", "any", "--rule", "combinatorial", "--json", "-"))["selected"] == [
        "obs_x"
    ]


def test_the_lean_test_refuses_values_that_it_would_not_use(run):
    Path("groups.toml").write_text("[fixed]\nobs_x = 0.1\n")
    refused(run("log.csv", *FORCED, "--groups", "groups.toml", "--test", "lean"), "fixed values other than zero")
    assert answer(run("log.csv", *FORCED, "--groups", "groups.toml", "--json", "-"))["test"]["name"] == "wilks"
    refused(run("log.csv", *FORCED, "--groups", "groups.toml", "--policy", "any"), "fixed values belong to parameters")


def test_any_policy_has_groups_blocks_and_what_is_always_used(run):
    words = ("--actions", "move", "--features", "obs_*,gear", "--categorical", "gear", "--policy", "any", "--json", "-")
    made = answer(run("log.csv", *words, "--assume", "obs_y"))
    assert [test["group"] for test in made["groups"]] == ["obs_x", "gear"]
    Path("groups.toml").write_text('[groups]\nsensors = ["obs_x", "obs_y"]\n')
    made = answer(run("log.csv", *words, "--groups", "groups.toml"))
    assert [test["group"] for test in made["groups"]] == ["sensors", "gear"]


REFUSED = {
    "wilks": (("--test", "wilks"), "'any' is tested without a model, by the test 'lean', found 'wilks'"),
    "bootstrap": (("--test", "bootstrap"), "found 'bootstrap'"),
    "firth": (("--firth",), "found 'firth'"),
    "parameters": (("--groups", "parameter"), "no parameters"),
    "hidden": (("--hidden", "8"), "belong to the policy 'network'"),
    "covariance": (("--covariance", "1"), "belongs to the Gaussian policies"),
    "intercept": (("--no-intercept",), "belongs to linear policies"),
    "follow": (("--follow", "--episodes", "run"), "'any' is no model"),
    "weights": (("--weights", "gear"), "cannot weigh"),
    "paper's rule": (("--paper-rule", "--rule", "combinatorial"), "'wilks'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_a_model_is_refused(name, run):
    arguments, sentence = REFUSED[name]
    refused(run("log.csv", *FORCED, "--policy", "any", *arguments), sentence)


@pytest.mark.parametrize("name", ["plan", "theory"])
def test_planning_needs_a_linear_policy(name, run):
    refused(run("log.csv", *FORCED, "--policy", "any", name=name), "linear policies, found ModelFree")


# --- the column of effects ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("action", "unit"), [("force", " sd"), ("move", " %")])
def test_the_table_of_the_lean_test_shows_the_change_of_behaviour(action, unit, run):
    arguments = ("log.csv", "--actions", action, *SENSORS, "--test", "lean")
    change = answer(run(*arguments, "--json", "-"))["groups"][0]["action_effect"]
    _, out, _ = run(*arguments)
    row = next(line for line in out.splitlines() if line.startswith("obs_x")).rstrip()
    assert (f" {change:.2f} sd " if unit == " sd" else f" {100 * change:.0f} % ") in row


# --- hard and bad data --------------------------------------------------------------------------------------------


def lean(file, *arguments, policy="any"):
    return (file, "--actions", "force", "--test", "lean", "--policy", policy, *arguments)


def verdicts(made):
    return {test["group"]: test["verdict"] for test in made["groups"]}


POLICIES = pytest.mark.parametrize("policy", ["any", "gaussian"])


@POLICIES
def test_one_row_an_episode(policy, run):
    file = saved({"x": X, "y": Y, "force": FORCE, "trip": [f"trip {i}" for i in range(N)]})
    made = answer(run(*lean(file, "--episodes", "trip", "--json", "-", policy=policy)))
    assert verdicts(made) == {"x": "used", "y": "no evidence"}
    assert made["data"]["num_episodes"] == N
    answer(run(*lean(file, "--episodes", "trip", "--clusters", "episodes", "--json", "-", policy=policy)))


@POLICIES
def test_one_episode(policy, run):
    file = saved({"x": X, "y": Y, "force": FORCE, "trip": np.zeros(N, dtype=int)})
    made = answer(run(*lean(file, "--episodes", "trip", "--json", "-", policy=policy)))
    assert verdicts(made) == {"x": "used", "y": "no evidence"}
    forced = answer(run(*lean(file, "--episodes", "trip", "--clusters", "episodes", "--json", "-", policy=policy)))
    assert forced["guarantee"] is None
    assert set(verdicts(forced).values()) == {"no evidence"}
    _, out, _ = run(*lean(file, "--episodes", "trip", "--clusters", "episodes", policy=policy))
    assert "No guarantee: there are fewer than" in out


REDUNDANT = {
    "constant": ({"c": np.ones(N)}, "c is constant in this data"),
    "duplicated": ({"x2": X}, "x and x2 cannot be told apart"),
    "a sum": ({"s": X + Y}, "x, y and s are linearly dependent"),
    "a curve": ({"s": X**2}, ""),
}


@pytest.mark.parametrize("name", REDUNDANT)
@POLICIES
def test_inputs_that_say_nothing_new(name, policy, run):
    columns, warning = REDUNDANT[name]
    file = saved({"x": X, "y": Y} | columns | {"force": FORCE})
    made = answer(run(*lean(file, "--json", "-", policy=policy)))
    extra = next(iter(columns))
    assert verdicts(made)[extra] == "no evidence"
    assert warning in " ".join(made["warnings"])
    for test in made["groups"]:
        assert 0 <= test["p_value"] <= 1
    if name == "constant":
        assert verdicts(made)["x"] == "used"
    if name == "duplicated":  # either does for the other
        assert verdicts(made)["x"] == "no evidence"
    together = answer(run(*lean(file, "--rule", "combinatorial", "--json", "-", policy=policy)))
    assert set(together["selected"]) <= {"x"}


def test_more_inputs_than_rows(run):
    inputs = {f"x{j}": RNG.normal(size=30) for j in range(40)}
    file = saved(inputs | {"force": FORCE[:30]})
    refused(run(*lean(file)), "found 30 rows of 40 inputs")
    refused(run(file, "--actions", "force", "--policy", "any"), "found 30 rows of 40 inputs")


def test_few_rows(run):
    refused(run(*lean(saved({"x": X[:10], "force": FORCE[:10]}))), "at least 20 rows")


@pytest.mark.parametrize("only", ["go", 1, 0.5])
def test_one_action_only(only, run):
    refused(run(*lean(saved({"x": X, "force": [only] * N}))), "never chooses")
