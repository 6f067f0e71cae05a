"""The study command: a study from its creation to its end, and sentences for whatever is wrong."""

import json
import subprocess
import sys

import jax
import numpy as np
import polars
import pytest
from PIL import Image
from typer.testing import CliRunner

from policyspace import InputError, Sample, Study, make_world, rollout, write
from policyspace.cli import app
from policyspace.worlds import parse_configuration

WORLD = make_world("gridworld")
SPACE = WORLD.policy_space()
OWNED = ("row_0", "goal_row_2")


def run(*arguments):
    result = CliRunner().invoke(app, ["study", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def agent(configuration, seed=0, count=60, **origin):
    theta = np.zeros((3, 17))
    theta[0, 1 + WORLD.feature_names.index("row_0")] = theta[1, 1 + WORLD.feature_names.index("goal_row_2")] = 2.5
    seen = rollout(WORLD, SPACE, theta.ravel(), WORLD.check_configuration(configuration), jax.random.key(seed), count)
    return seen.pairs(WORLD.feature_names, WORLD.action_names, origin)


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "s.sqlite"
    said = run("create", made, "--world", "gridworld", "--design", "uniform", "--max-rounds", 1, "--episodes", 60,
               "--configuration", "row=[1,1,1,5,1]", "--significance", 0.02)  # fmt: skip
    assert "A study of 16 groups in gridworld." in said and "≤ 0.02" in said and str(made) in said
    return made


def test_a_study_from_the_first_question_to_the_last(tmp_path, path):
    toml, told = tmp_path / "w.toml", tmp_path / "d.parquet"
    said = run("ask", path, "--out", toml)
    assert "Round 1 of at most 2: 60 episodes (tested at δ = 0.01)" in said
    assert "the agent starts in row 3 (93%) and any column" in said and "has not been seen yet" in said
    asked = WORLD.check_configuration(parse_configuration(toml))  # what simulate --configuration does with the file
    assert np.asarray(asked["row"]).tolist() == [1, 1, 1, 5, 1]

    write(agent(asked, truth=list(OWNED)), told)
    said = run("tell", path, told)
    found = Study.open(path).rounds()[0].newly_selected
    assert found and set(found) <= set(OWNED)
    assert f"newly selected: {', '.join(f'{name} ✓' for name in found)}" in said
    said = run("ask", path)
    assert "plays no favourites" in said and "any row and any column" in said and "What it would settle" in said
    again = json.loads(CliRunner().invoke(app, ["study", "ask", str(path), "--json", "-"]).output)
    assert again["number"] == 1 and again["num_episodes"] == 60 and again["design"] == "uniform"
    assert "Asked and not yet reported: round 2" in run("status", path)

    write(agent(again["configuration"], seed=1, truth=list(OWNED)), told)
    said = run("tell", path, told)
    assert "Nothing is left to ask: all 2 rounds have been reported" in said
    assert "Nothing is left to ask" in run("ask", path) and run("ask", path, "--json", "-") == "null"
    status = json.loads(CliRunner().invoke(app, ["study", "status", str(path), "--json", "-"]).output)
    assert status["selected"] == sorted(OWNED, key=WORLD.feature_names.index) and status["total_episodes"] == 120
    assert sum(r["significance"] for r in status["rounds"]) == pytest.approx(0.02)
    assert status["truth"] == sorted(OWNED) and "The agent controls row_0, goal_row_2" in run("status", path)


def test_a_log_without_roles_needs_its_columns_named(tmp_path, path):
    data = agent({"row": [1, 1, 1, 5, 1]})
    frame = polars.DataFrame(dict(zip(data.names, data.features.T, strict=True))).with_columns(
        move=polars.Series([data.action_names[a] for a in data.actions]),
        run=polars.Series(data.episodes),
        weather=polars.Series(np.arange(data.num_rows) % 3),
    )
    frame.write_csv(tmp_path / "log.csv")
    with pytest.raises(InputError, match="episode"):
        run("tell", path, tmp_path / "log.csv", "--action", "move")
    run("tell", path, tmp_path / "log.csv", "--action", "move", "--episode", "run", "--configuration", "row[4]=3")
    study = Study.open(path)
    assert study.rounds()[0].configuration["row"] == [1, 1, 1, 1, 3]
    np.testing.assert_array_equal(study.demonstrations(0).actions, data.actions)


@pytest.mark.parametrize("suffix", ["png", "svg", "gif"])
def test_the_rounds_are_drawn(tmp_path, path, suffix):
    write(agent({}), tmp_path / "d.npz")
    run("tell", path, tmp_path / "d.npz")
    picture = tmp_path / f"rounds.{suffix}"
    assert str(picture) in run("status", path, "--rounds", picture)
    if suffix == "svg":
        assert "</svg>" in picture.read_text()
        assert str(tmp_path / "evidence.svg") in run("status", path, "--plot", tmp_path / "evidence.svg")
        assert "</svg>" in (tmp_path / "evidence.svg").read_text()
    else:
        with Image.open(picture) as image:
            assert image.format == suffix.upper() and min(image.size) > 200


BAD = [
    (["create", "s2.sqlite", "--world", "gridwrld"], "did you mean 'gridworld'"),
    (["create", "s2.sqlite", "--world", "no_module:World"], "cannot be imported"),
    (["create", "s2.sqlite", "--world", "gridworld", "--features", "row_9"], "no feature 'row_9'"),
    (["create", "s2.sqlite", "--world", "gridworld", "--significance", "2"], "between 0 and 1"),
    (["create", "s2.sqlite", "--world", "gridworld", "--design", "best"], "no design 'best'"),
    (["create", "s2.sqlite", "--world", "gridworld", "--budget", "100", "--episodes", "10"], "leave one of them out"),
    (["create", "s2.sqlite", "--world", "gridworld", "--groups", "g.toml"], "tests weights against zero"),
    (["create", "s.sqlite", "--world", "gridworld"], "there is a file already"),
    (["create", "no/s.sqlite", "--world", "gridworld"], "there is no folder"),
    (["ask", "nowhere.sqlite"], "found no file"),
    (["ask", "bad.csv"], "cannot be used as a study"),
    (["ask", "s.sqlite", "--out", "w.json"], "saved as .toml"),
    (["ask", "s.sqlite", "--out", "no/w.toml"], "there is no folder"),
    (["tell", "s.sqlite", "nowhere.csv"], "no such file"),
    (["tell", "s.sqlite", "golf.csv"], "from the world 'minigolf'"),
    (["tell", "s.sqlite", "other.npz"], "lack the feature"),
    (["status", "s.sqlite", "--plot", "r.txt"], ".png, .svg or .pdf"),
    (["status", "s.sqlite", "--plot", "r.png"], "nothing to draw yet"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_sentence_and_leaves_nothing(tmp_path, path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n" * 200)
    (tmp_path / "g.toml").write_text("[fixed]\nrow_0 = 1.0\n")
    write(agent({}, count=3, world="minigolf"), tmp_path / "golf.csv")
    data = agent({}, count=3)
    write(Sample(data.features[:, :2], data.actions, ("a", "b"), data.action_names, data.episodes), "other.npz")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    with pytest.raises(InputError) as caught:
        CliRunner().invoke(app, ["study", *arguments], catch_exceptions=False)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_the_program_exits_with_2(tmp_path):
    arguments = [sys.executable, "-m", "policyspace", "study", "ask", "nowhere.sqlite"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert "expected a study, found no file" in done.stderr


def told_by(study, folder, configuration, seed=0):
    write(agent(configuration, seed), folder / "told.parquet")
    (folder / "told.toml").write_text("\n".join(f"{name} = {value}" for name, value in configuration.items()))
    return run("tell", study, folder / "told.parquet", "--configuration", folder / "told.toml")


FEW = ["--world", "gridworld", "--features", "row_0,row_1,goal_row_2", "--max-rounds", 1, "--design", "none"]


@pytest.mark.parametrize("rule", [["--rule", "combinatorial"], ["--paper-rule"]])
def test_rules_that_test_all_units_in_every_round_say_so(tmp_path, rule):
    study = tmp_path / "all.sqlite"
    run("create", study, *FEW, *rule)
    assert "Round 1 of at most 2: at the flat configuration" in told_by(study, tmp_path, {})
    run("ask", study)
    said = told_by(study, tmp_path, {}, 1)
    assert "Round 2 of at most 2: left as it was" in said and len(Study.open(study).rounds()[0].selected) == 2
    assert "60 episodes; 3 groups tested" in said and "open: row_1" in said
    explained = "supports that explain all rounds so far: row_0, goal_row_2 "
    assert (explained in said) == (explained in run("status", study)) == (rule[0] == "--rule")


def test_a_round_is_where_the_data_were_collected(tmp_path):
    study, elsewhere = tmp_path / "s.sqlite", {"row": [1, 1, 1, 5, 1]}
    run("create", study, *FEW)
    assert "Round 1 of at most 2: where the data were collected" in told_by(study, tmp_path, elsewhere)
    other = tmp_path / "o.sqlite"
    run("create", other, *FEW, "--configuration", "row=[1,1,1,5,1]")
    assert "Round 1 of at most 2: where it is" in told_by(other, tmp_path, elsewhere)


def test_the_plan_is_what_create_would_do(tmp_path):
    for options in (["--test", "eprocess", "--budget", 3], ["--features", "row_0", "--budget", 50]):
        plan = run("plan", "--world", "gridworld", *options)
        assert plan in run("create", tmp_path / f"{len(options)}{options[-1]}.sqlite", "--world", "gridworld", *options)
    plan = run("plan", "--world", "gridworld", "--design", "paper", "--budget", 120)
    assert (
        plan.startswith("Plan for at most 120 episodes: at most 2 rounds of 100 and 20.")
        and "at most 2 rounds:" in plan
    )
    assert run("plan", "--world", "minigolf", "--budget", 10, "--max-rounds", 3).startswith(
        "Plan for 10 episodes: 4 rounds of 3"
    )


def test_one_is_said_in_the_singular(tmp_path):
    study = tmp_path / "one.sqlite"
    said = run("create", study, "--world", "minigolf", "--features", "x", "--budget", 1)
    assert (
        "A study of 1 group in" in said and "at most 1 round:" in said and "Plan for 1 episode: one round of 1." in said
    )
    said = run("ask", study)
    assert "Round 1 of at most 1: 1 episode (" in said and "1 group is tested" in said
