"""Environments on the command line: from create to answer, in one command or round by round."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from policyspace import Study
from policyspace.cli import main

AGENT = """
import numpy as np

rng = np.random.default_rng(0)

def balance(seen):
    return int(rng.random() < 1 / (1 + np.exp(-10 * seen[2] - 2 * seen[3])))

def learn(env):
    env.reset(seed=0)
    return balance

def learn_exits(env):
    raise SystemExit(4)

class World:
    def __init__(self):
        raise SystemExit(4)

def left(seen):
    return "left"
"""
POLE = ["--env", "CartPole-v1", "--parameter", "length=0.3:1", "--parameter", "gravity=5:15:10"]
NAMES = ["--names", "position,velocity,angle,angular_velocity"]
QUICK = ["--design", "space-filling", "--max-rounds", "1", "--episodes", "12"]


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_agent.py").write_text(AGENT)
    monkeypatch.delitem(sys.modules, "my_agent", raising=False)

    def called(*arguments):
        monkeypatch.setattr(sys, "argv", ["policyspace", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capfd.readouterr()
        return stopped.value.code, " ".join((printed.out + printed.err).split())

    yield called
    sys.modules.pop("my_agent", None)


def test_a_study_of_an_environment(run):
    code, said = run("study", "create", "s.sqlite", *POLE, *NAMES, *QUICK)
    assert code == 0 and "A study of 4 groups in CartPole-v1." in said
    assert "length (0.3 to 1) reaches the environment by an attribute; polemass_length follows." in said
    assert run("study", "play", "s.sqlite", "--agent", "my_agent:balance")[0] == 0
    code, said = run("study", "ask", "s.sqlite", "--json", "asked.json")
    assert code == 0 and "no configuration has been near yet" in said
    assert run("study", "play", "s.sqlite", "--learn", "my_agent:learn")[0] == 0
    rounds = Study.open("s.sqlite").rounds()
    assert rounds[0].configuration == {"length": 0.5, "gravity": 10.0} and rounds[1].selected == (
        "angle",
        "angular_velocity",
    )
    assert rounds[1].configuration == json.loads(Path("asked.json").read_text())["configuration"]
    code, said = run("study", "play", "s.sqlite", "--agent", "my_agent:balance")
    assert code == 0 and "Nothing is left to ask" in said
    assert run("study", "status", "s.sqlite", "--plot", "rounds.png")[0] == 0


def test_the_next_command_names_what_no_file_may_import(run, tmp_path):
    (tmp_path / "my_place.py").write_text(
        "import gymnasium\n\ndef light(length=0.5):\n    env = gymnasium.make('CartPole-v1')\n"
        "    env.unwrapped.length = length\n    return env\n"
    )
    place = ["--env", "my_place:light"]
    code, said = run("study", "create", "my s.sqlite", *place, "--parameter", "length=0.3:1", "--episodes", 12)
    following = "Next: policyspace study ask 'my s.sqlite' --env my_place:light"
    assert code == 0 and said.endswith(following)
    code, said = run("study", "play", "my s.sqlite", *place, "--agent", "my_agent:balance")
    assert code == 0 and said.endswith(following)
    assert run("study", "ask", "my s.sqlite")[0] == 2
    assert run(*shlex.split(following)[2:])[0] == 0
    sys.modules.pop("my_place", None)


def test_the_plan_is_said_before_there_is_a_study(run):
    code, plan = run("study", "plan", *POLE, *NAMES, "--budget", 60)
    assert code == 0 and plan.startswith("Plan for 60 episodes: ") and "Why: " in plan
    assert not list(Path().glob("*.sqlite"))
    code, said = run("study", "create", "s.sqlite", *POLE, *NAMES, "--budget", 60)
    assert code == 0 and plan in said
    code, plan = run("study", "plan", "--world", "gridworld", "--budget", 120)
    assert code == 0 and plan.startswith("Plan for 120 episodes: 2 rounds of 60 and 60.")


def test_configure_an_environment_in_one_command(run):
    code, said = run("configure", *POLE, *NAMES, *QUICK, "--agent", "my_agent:balance", "--out", "rounds")
    assert (
        code == 0 and "An agent in CartPole-v1." in said and "Round 2 of at most 2: configured (space-filling)" in said
    )
    assert "2 features shown to be controlled, 2 undecided" in said
    content = json.loads(Path("rounds/rounds.json").read_text())
    assert content["truth"] is None and content["rounds"][-1]["selected"] == ["angle", "angular_velocity"]


def test_a_trained_model_acts(run):
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    model = stable_baselines3.PPO("MlpPolicy", "CartPole-v1", n_steps=64, seed=0, device="cpu")
    model.save("model.zip")
    code, said = run("configure", *POLE, *QUICK, "--max-rounds", "0", "--agent", "model.zip")
    assert code == 0 and "Round 1 of at most 1" in said
    code, said = run("configure", *POLE, *QUICK, "--max-rounds", "0", "--agent", "model.zip", "--algorithm", "PPO")
    assert code == 0 and "Round 1 of at most 1" in said
    assert run("study", "create", "s.sqlite", *POLE, *QUICK)[0] == 0
    code, said = run("study", "play", "s.sqlite", "--agent", "model.zip", "--algorithm", "PPPO")
    assert code == 2 and "has no algorithm 'PPPO': did you mean 'PPO'?" in said


def test_a_module_that_ends_the_program_is_an_error(run):
    Path("my_agent.py").write_text("raise SystemExit(0)")
    code, said = run("configure", *POLE, "--agent", "my_agent:balance")
    assert code == 2 and "the agent 'my_agent' cannot be imported (SystemExit: 0)" in said


def test_code_that_ends_the_program_anywhere_is_an_error(run):
    code, said = run("study", "create", "s.sqlite", "--world", "my_agent:World")
    assert code == 2 and "(SystemExit: 4)" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["study", "create", "s.sqlite"], "name it with --world, or an environment with --env"),
        (["study", "create", "s.sqlite", "--world", "gridworld", *POLE], "a study is about one world"),
        (["study", "create", "s.sqlite", "--world", "gridworld", "--parameter", "a=1:2"], "--parameter belongs to"),
        (["study", "create", "s.sqlite", "--env", "CartPole-v1"], "needs a parameter"),
        (["study", "create", "s.sqlite", "--env", "CartPole-v1", "--parameter", "gravity"], "is written NAME=…"),
        (
            ["study", "create", "s.sqlite", "--env", "CartPole-v1", "--parameter", "gravity=a:b"],
            "needs bounds LOW:HIGH",
        ),
        (["study", "create", "s.sqlite", *POLE, "--parameter", "length=1:2"], "names 'length' twice"),
        (["study", "create", "s.sqlite", *POLE, "--by", "length=options"], "'length' changes nothing"),
        (["study", "create", "s.sqlite", *POLE, "--design", "paper"], "the design 'paper' weights trajectories"),
        (["study", "plan", "--budget", "60"], "name it with --world, or an environment with --env"),
        (["study", "plan", "--world", "gridworld", *POLE, "--budget", "60"], "a study is about one world"),
        (
            ["study", "plan", "--world", "gridworld", "--names", "a", "--budget", "60"],
            "--names belongs to an environment",
        ),
        (["study", "plan", "--world", "gridwrld", "--budget", "60"], "did you mean 'gridworld'"),
        (["study", "plan", "--env", "CartPole-v1", "--budget", "60"], "needs a parameter"),
        (["study", "plan", *POLE], "found none: name it with --budget"),
        (["configure", "gridworld", *POLE, "--agent", "a:b"], "one world is configured"),
        (["configure", "gridworld", "--agent", "a:b"], "act in an environment, found a world"),
        (["configure", *POLE, "--controls", "all", "--agent", "a:b"], "are of simulated agents, found --env"),
        (["configure", *POLE], "say who acts"),
        (["configure", *POLE, "--agent", "none.zip"], "no such file"),
        (["configure", *POLE, "--agent", "my_agent:nobody"], "has no 'nobody'"),
        (
            ["configure", *POLE, "--agent", "my_agent:balance", "--algorithm", "PPO"],
            "--algorithm is of a model in a file",
        ),
        (
            ["configure", *POLE, "--learn", "my_agent:learn", "--algorithm", "PPO"],
            "--algorithm is of a model in a file",
        ),
        (["configure", "gridworld", "--algorithm", "PPO"], "act in an environment, found a world"),
        (
            ["configure", *POLE, "--agent", "my_agent:left"],
            "the agent must choose one of the actions 0 to 1, found 'left'",
        ),
        (
            ["configure", *POLE, "--learn", "my_agent:learn_exits"],
            "learn(env) failed at length=0.5, gravity=10 (SystemExit: 4)",
        ),
    ],
)
def test_what_is_wrong_is_a_sentence(run, arguments, sentence):
    code, said = run(*arguments)
    assert code == 2 and sentence in said and "Traceback" not in said
