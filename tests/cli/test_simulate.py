"""The simulate command: files that know their truth, the same for the same seed, and sentences for bad input."""

import json
from io import StringIO

import numpy as np
import pytest
import typer
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

from policyspace import InputError, identify, make_world, read
from policyspace.cli.worlds import BARS, _show_learning, owned_in_words, simulate, sparkline

APP = typer.Typer(pretty_exceptions_enable=False)
APP.command()(simulate)
QUICK = ["--learning-steps", "20", "--episodes", "30"]
ALONE = "--no-compare"  # two agents less that learn, and whose programs are compiled


def run(*arguments):
    result = CliRunner().invoke(APP, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_file_knows_its_truth_its_configuration_and_its_policy(tmp_path):
    path = tmp_path / "data.parquet"
    said = run("gridworld", "--controls", "col_0,row_1", "--configuration", "row[2]=5", "--out", path, *QUICK)
    data = read(path)
    assert data.origin.world == "gridworld" and data.origin.ground_truth == ("row_1", "col_0")
    assert data.origin.configuration["row"] == [1, 1, 5, 1, 1]
    assert data.origin.policy == {"family": "boltzmann", "intercept": True}
    assert data.origin.other["seed"] == 0 and data.num_episodes == 30
    assert data.action_names == ("up", "down", "left", "right")
    assert "Learned in 20 steps" in said and "row_1, col_0" in said and str(path) in said
    assert "best known for what it controls" in said and data.origin.other["returns"]["distance"] > 0


def test_same_seed_same_bytes_and_another_seed_other_ones(tmp_path):
    paths = [tmp_path / f"{i}.parquet" for i in range(3)]
    for path, seed in zip(paths, (3, 3, 4), strict=True):
        run("gridworld", "--controls", "random", "--configuration", "random", "--seed", seed, "--out", path, *QUICK)
    assert paths[0].read_bytes() == paths[1].read_bytes() != paths[2].read_bytes()


def test_identify_needs_no_options_and_finds_the_truth(tmp_path):
    """A well-trained agent, 1000 episodes, at a significance that leaves chance one false verdict in a thousand."""
    path = tmp_path / "grid.parquet"
    owned = ["row_0", "col_0", "goal_row_0", "goal_col_0"]
    run("gridworld", "--controls", ",".join(owned), "--episodes", "1000", "--seed", "5", "--out", path, ALONE)
    answer = identify(read(path), significance=0.001)
    assert sorted(answer.ground_truth) == sorted(owned) == sorted(answer.selected)


def test_the_continuous_agent_passes_on_its_covariance(tmp_path):
    path = tmp_path / "golf.csv"
    run("minigolf", "--controls", "x,sqrt_x", "--learning-steps", "10", "--episodes", "50", "--out", path, ALONE)
    data = read(path)
    assert data.origin.policy == {"family": "gaussian", "intercept": True, "covariance": [[pytest.approx(1e-4)]]}
    answer = identify(data)
    assert sorted(answer.ground_truth) == ["sqrt_x", "x"] and set(answer.selected) == {"x", "sqrt_x"}


def test_an_agent_is_saved_loaded_and_taught_further(tmp_path):
    agent, more, out = tmp_path / "agent.json", tmp_path / "more.json", tmp_path / "data.npz"
    run("gridworld", "--controls", "all", "--save-agent", agent, "--out", out, *QUICK)
    first = read(out)
    said = run("gridworld", "--agent", agent, "--episodes", "30", "--out", out)
    assert "Learned" not in said
    again = read(out)
    np.testing.assert_array_equal(first.actions, again.actions)
    assert first.origin == again.origin
    further = ["--learning-steps", "10", "--save-agent", more]
    run("gridworld", "--agent", agent, *further, "--out", out, "--episodes", "30", ALONE)
    before, after = json.loads(agent.read_text()), json.loads(more.read_text())
    assert before["theta"] != after["theta"] and len(after["learning_curve"]) == 10


@pytest.mark.parametrize("suffix", ["gif", "png"])
def test_an_episode_is_drawn(tmp_path, suffix):
    picture = tmp_path / f"episode.{suffix}"
    quick = ["--episodes", "5", "--learning-steps", "5", ALONE]
    run("gridworld", "--out", tmp_path / "d.csv", "--render", picture, *quick)
    with Image.open(picture) as image:
        length = int(np.sum(read(tmp_path / "d.csv").episodes == 0))
        width, height = image.size
        assert image.format == suffix.upper()
        if suffix == "gif":
            assert image.n_frames == min(length + 1, 60)
        else:
            assert width > 3 * height
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.csv", picture.name]


def test_the_default_file_is_named_after_the_world(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("cartpole", "--learning-steps", "0", "--episodes", "3", ALONE)
    assert read("cartpole.parquet").origin.world == "cartpole"


def test_actions_that_are_never_chosen_are_left_out_and_named(tmp_path):
    """An agent that always goes up or down, by its weights, never goes left or right."""
    agent, out = tmp_path / "agent.json", tmp_path / "data.csv"
    run("gridworld", "--learning-steps", "0", "--save-agent", agent, "--out", out, "--controls", "all", ALONE)
    content = json.loads(agent.read_text())
    content["theta"] = [60.0] + [0.0] * 16 + [60.0] + [0.0] * 16 + [-60.0] + [0.0] * 16
    agent.write_text(json.dumps(content))
    said = run("gridworld", "--agent", agent, "--out", out, ALONE)
    assert read(out).action_names == ("up", "down")
    assert "not in the file: left, right" in said


def test_an_agent_that_does_not_learn_is_said_not_to(tmp_path):
    said = run("gridworld", "--controls", "none", "--learning-steps", "1", "--out", tmp_path / "d.csv", ALONE)
    assert "did not learn" in said and "nothing but the constant" in said


BAD = [
    (["gridwrld"], "did you mean 'gridworld'"),
    (["gridworld", "--controls", "goalcol_0"], "did you mean 'goal_col_0'"),
    (["gridworld", "--configuration", "rows=1"], "did you mean 'row'"),
    (["car", "--configuration", "bend=1e6"], "between -200 and 200"),
    (["car", "--configuration", "bend=NaN"], "finite"),
    (["car", "--configuration", "nowhere.toml"], "nowhere.toml"),
    (["gridworld", "--out", "data.txt"], "must end in one of"),
    (["gridworld", "--out", "no/folder.csv"], "there is no folder"),
    (["gridworld", "--render", "film.mp4"], ".gif, .png"),
    (["gridworld", "--agent", "nowhere.json"], "nowhere.json"),
    (["gridworld", "--agent", "golfer.json"], "learned in the world 'minigolf', not in 'gridworld'"),
    (["minigolf", "--agent", "golfer.json", "--controls", "all"], "exclude each other"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_sentence_and_leaves_nothing(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    if "golfer.json" in arguments:
        quick = ["--learning-steps", "0", "--episodes", "2", ALONE]
        run("minigolf", *quick, "--save-agent", "golfer.json", "--out", "d.csv")
    before = sorted(p.name for p in tmp_path.iterdir())
    with pytest.raises(InputError, match=message) as caught:
        CliRunner().invoke(APP, arguments, catch_exceptions=False)
    assert "\n" not in str(caught.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_an_interrupt_leaves_no_file(tmp_path, monkeypatch):
    """Ctrl-C in the middle of learning: it passes through, and nothing is half-written."""
    from policyspace.worlds import agents

    def interrupted(*state):
        raise KeyboardInterrupt

    monkeypatch.setattr(agents, "_advance", interrupted)
    result = CliRunner().invoke(APP, ["gridworld", "--out", str(tmp_path / "d.csv"), *QUICK])
    assert result.exit_code == 130
    assert list(tmp_path.iterdir()) == []


def test_sparkline_rises_with_its_curve():
    assert sparkline(np.linspace(-20, -3, 200)) == "".join(sorted(sparkline(np.linspace(-20, -3, 200)), key=BARS.index))
    assert sparkline(np.zeros(7)) == BARS[0] * 7
    assert len(sparkline(np.arange(100.0))) == 40 and sparkline(np.array([3.0, 1.0, 2.0])) == "█▁▅"


def test_an_agent_far_from_the_best_known_policy_is_said_to_be(tmp_path):
    said = run("gridworld", "--learning-steps", "0", "--episodes", "5", "--out", tmp_path / "d.csv")
    assert "Mean discounted return of 4000 episodes" in said and "(standard error " in said
    assert "has learned 0% of what can be learned here" in " ".join(said.split())


def test_phases_are_not_called_steps_and_what_is_compared_is_not_judged_by_its_curve():
    def shown(curve, by_phases, compared):
        console = Console(file=StringIO())
        _show_learning(console, np.array(curve), by_phases, compared)
        return console.file.getvalue()

    assert shown([-31.0, -0.6, -0.5], True, True).startswith("Learned in 2 phases: mean discounted return -31 → -0.5")
    assert shown([-31.0, -0.6], True, True).startswith("Learned in 1 phase:")
    flat = [-5.0, -5.1]
    assert "Learned in 2 steps" in shown(flat, False, True) and "did not learn" not in shown(flat, False, True)
    assert "did not learn" in shown(flat, False, False)


def test_only_where_there_is_a_constant_is_it_said_to_be_controlled():
    said = {name: owned_in_words(make_world(name).policy_space(), ()) for name in ("gridworld", "continuous-gridworld")}
    assert said == {"gridworld": "nothing but the constant", "continuous-gridworld": "nothing"}
