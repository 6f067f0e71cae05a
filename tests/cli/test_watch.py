"""`policyspace watch`: from a saved agent to a file that `identify` reads without options."""

import json
import sys

import pytest
from stable_baselines3 import PPO

from policyspace import read
from policyspace.cli import main


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("agents") / "model.zip"
    PPO("MlpPolicy", "CartPole-v1", n_steps=64, seed=2, device="cpu").save(path)
    return path


@pytest.fixture
def run(monkeypatch, capfd, tmp_path):
    monkeypatch.chdir(tmp_path)

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["policyspace", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code, *capfd.readouterr()

    return command


def test_the_file_is_read_back_in_one_command(run, model):
    names = "position,velocity,angle,turning"
    code, out, err = run("watch", "CartPole-v1", "--agent", model, "--episodes", 12, "--features", names, "--seed", 3)
    assert (code, err) == (0, "")
    assert "PPO played 12 episodes of CartPole-v1" in out
    assert "Next: policyspace identify log.parquet" in out
    assert {"terminated", "truncated", "reward", "log_probability"} == set(read("log.parquet").recorded)
    code, out, _ = run("identify", "log.parquet", "--json", "-")
    answer = json.loads(out)
    assert (code, answer["data"]["num_episodes"], answer["data"]["features"]) == (0, 12, names.split(","))


def test_same_seed_same_file(run, model, tmp_path):
    made = []
    for name, seed in (("a.csv", 3), ("b.csv", 3), ("c.csv", 4)):
        assert run("watch", "CartPole-v1", "--agent", model, "--episodes", 4, "--seed", seed, "--out", name)[0] == 0
        made.append((tmp_path / name).read_bytes())
    assert made[0] == made[1] != made[2]


def test_greedy_playing_is_pointed_out_now_and_with_the_answer(run, model):
    _, out, _ = run("watch", "CartPole-v1", "--agent", model, "--algorithm", "PPO", "--episodes", 30, "--greedy")
    assert "Warning: the agent played greedily" in out
    assert "the agent played greedily" in run("identify", "log.parquet")[1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("CartPol-v1",), "Gymnasium knows no environment 'CartPol-v1': did you mean 'CartPole-v1'?"),
        (("nothing:Here-v0",), "Gymnasium knows no environment 'nothing:Here-v0'"),
        (("Pendulum-v1",), "the agent PPO could not take its first step in this environment"),
        (("CartPole-v1", "--agent", "none.zip"), "none.zip: there is no such file"),
        (("CartPole-v1", "--algorithm", "PPPO"), "has no algorithm 'PPPO': did you mean 'PPO'?"),
        (("CartPole-v1", "--out", "log.txt"), "the name must end in one of"),
        (("CartPole-v1", "--features", "x"), "there must be one name for each of observation[0], observation[1]"),
        (("CartPole-v1", "--features", ","), "--features must name the observations"),
    ],
)
def test_what_is_wrong_is_one_sentence(run, model, arguments, sentence):
    agent = () if "--agent" in arguments else ("--agent", model)
    code, out, err = run("watch", *arguments, *agent, "--episodes", 1)
    assert (code, out) == (2, "")
    assert err.startswith("policyspace: ")
    assert sentence in err
    assert err.count("\n") == 1


def test_without_stable_baselines_the_extra_is_named(run, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    code, _, err = run("watch", "CartPole-v1", "--agent", model)
    assert code == 2
    assert "needs the extra [agents]: pip install 'policyspace[agents]'" in err
