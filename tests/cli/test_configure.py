"""The configure command: rounds on the screen and in files, kept when it is interrupted."""

import json

import pytest
from PIL import Image
from typer.testing import CliRunner

from policyspace import InputError, make_world
from policyspace.cli import app
from policyspace.study import page as rounds_film
from policyspace.worlds import agents

SHORT = ["--learning-steps", "40", "--max-rounds", "1", "--design", "uniform"]
QUICK = [*SHORT, "--episodes", "60"]
FILES = ["rounds.gif", "rounds.json", "rounds.png", "rounds.svg"]


def run(*arguments, code=0):
    result = CliRunner().invoke(app, ["configure", *map(str, arguments)], catch_exceptions=code != 0)
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def test_rounds_are_told_written_and_drawn(tmp_path):
    out = tmp_path / "run"
    said = run("gridworld", "--controls", "goal_row_2,row_0", "--out", out, *QUICK)
    assert "that controls row_0, goal_row_2." in said and "adds up over at most 2 rounds" in said
    assert "Round 1 of at most 2: where it is" in said and "Round 2 of at most 2: configured (uniform)" in said
    assert "any row and any column" in said and "After 120 episodes" in said
    content = json.loads((out / "rounds.json").read_text())
    assert content["truth"] == ["row_0", "goal_row_2"] and content["settings"]["design"] == "uniform"
    assert sum(r["significance"] for r in content["rounds"]) == pytest.approx(0.05)
    for record in content["rounds"]:
        for name in record["fell"]:
            assert f"{name} {'✓' if name in content['truth'] else '✗'}" in said
    peaks = [max(content["rounds"][0]["configuration"][name]) for name in ("row", "col", "goal_row", "goal_col")]
    assert peaks == [5, 5, 5, 5]  # the paper's random start
    assert sorted(p.name for p in out.iterdir()) == FILES
    with Image.open(out / "rounds.gif") as film:
        assert film.n_frames == 4
    with Image.open(out / "rounds.png") as picture:
        assert picture.size[0] > picture.size[1]


def test_same_seed_same_rounds_and_another_seed_others(tmp_path):
    texts = []
    for i, seed in enumerate((3, 3, 4)):
        run("gridworld", "--seed", seed, "--out", tmp_path / str(i), *QUICK)
        texts.append((tmp_path / str(i) / "rounds.json").read_bytes())
    assert texts[0] == texts[1] != texts[2]


def test_a_budget_and_the_papers_union(tmp_path):
    said = run("gridworld", "--controls", "all", "--budget", 50, "--paper-rule", "--significance", 0.1, *SHORT)
    assert "25 episodes; 16 groups tested at δ = 0.1" in said and "no guarantee" in said and "After 50 episodes" in said


def test_an_interrupt_keeps_and_draws_what_was_finished(tmp_path, monkeypatch):
    """Ctrl-C while the agent learns in the second round."""
    learn, calls = agents.learn, []

    def interrupted(*given, **named):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return learn(*given, **named)

    monkeypatch.setattr(agents, "learn", interrupted)
    run("gridworld", "--out", tmp_path, *QUICK, code=130)
    assert sorted(p.name for p in tmp_path.iterdir()) == FILES
    assert len(json.loads((tmp_path / "rounds.json").read_text())["rounds"]) == 1
    with Image.open(tmp_path / "rounds.gif") as film:
        assert film.n_frames == 2


def test_an_interrupt_while_drawing_leaves_no_half_picture(tmp_path, monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(rounds_film, "_frame", interrupted)
    run("gridworld", "--out", tmp_path, *QUICK, code=130)
    assert sorted(p.name for p in tmp_path.iterdir()) == FILES[1:]
    assert len(json.loads((tmp_path / "rounds.json").read_text())["rounds"]) == 2


BAD = [
    (["gridwrld"], "did you mean 'gridworld'"),
    (["gridworld", "--controls", "goalcol_0"], "did you mean 'goal_col_0'"),
    (["gridworld", "--configuration", "rows=1"], "did you mean 'row'"),
    (["gridworld", "--rule", "simple"], "did you mean 'simplified'"),
    (["gridworld", "--design", "noncentral"], "did you mean 'noncentrality'"),
    (["gridworld", "--significance", "1"], "between 0 and 1"),
    (["gridworld", "--budget", "2", "--max-rounds", "3"], "too small for 4 rounds"),
    (["gridworld", "--budget", "100", "--episodes", "10"], "found 10 episodes a round too: leave one of them out"),
    (["gridworld", "--out", "file/below"], "no folder that can be made"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_sentence(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError) as caught:
        CliRunner().invoke(app, ["configure", *arguments], catch_exceptions=False)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.slow
@pytest.mark.parametrize("world", ["continuous-gridworld", "minigolf", "cartpole"])
def test_every_kind_of_world_closes_the_loop(tmp_path, world):
    arguments = ["--learning-steps", "30", "--episodes", "40", "--max-rounds", "2", "--out", tmp_path]
    run(world, "--controls", "all", *arguments)
    content = json.loads((tmp_path / "rounds.json").read_text())
    place = make_world(world)
    for record in content["rounds"]:
        place.check_configuration(record["configuration"])
    assert sorted(p.name for p in tmp_path.iterdir()) == FILES
