"""`policyspace ask`: from a saved agent to the inputs that it reacts to, which are known by its weights."""

import json
import sys

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize

from policyspace.cli import main


def blind(model, *inputs):
    """A model whose policy does not see some of its inputs; others move it."""
    with torch.no_grad():
        model.policy.mlp_extractor.policy_net[0].weight[:, list(inputs)] = 0
        model.policy.action_net.weight *= 2000
    return model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("agents") / "model.zip"
    blind(PPO("MlpPolicy", "CartPole-v1", n_steps=64, seed=2, device="cpu"), 1, 3).save(path)
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


def test_the_answer_its_files_and_the_log(run, model, tmp_path):
    code, out, err = run(
        "ask", "CartPole-v1", "--agent", model, "--episodes", 12, "--seed", 3, "--json", "answer.json",
        "--plot", "answer.svg", "--report", "answer.html", "--out", "log.parquet",
    )  # fmt: skip
    assert (code, err) == (0, "")
    sentence, table = out.splitlines()[0], out.splitlines()[1:6]
    assert sentence.startswith("Reacts to position and angle; never to velocity and angular_velocity in ")
    assert max(map(len, table)) <= 80
    answer = json.loads((tmp_path / "answer.json").read_text())
    assert answer["selected"] == ["position", "angle"] and answer["guarantee"]["grade"] == "shown"
    assert answer["environment"] == "CartPole-v1" and answer["cost"]["steps"] == answer["num_states"]
    page = (tmp_path / "answer.html").read_text()
    assert "policyspace ask CartPole-v1 --agent" in page and (tmp_path / "answer.svg").stat().st_size > 1000
    code, out, err = run("identify", "log.parquet", "--json", "-")
    watched = json.loads(out)
    assert (code, watched["data"]["num_episodes"], watched["data"]["features"][1]) == (0, 12, "velocity")
    code, out, _ = run("ask", "CartPole-v1", "--agent", model, "--log", "log.parquet", "--no-likely", "--json", "-")
    again = json.loads(out)
    assert again["never"] == answer["never"] and again["cost"]["steps"] == 0
    assert all(group["effect_likely"] is None for group in again["groups"])


def test_what_it_will_cost_is_said_before_and_is_true(run, model):
    words = ("ask", "CartPole-v1", "--agent", model, "--episodes", 40, "--budget", 400)
    code, out, _ = run(*words, "--forecast")
    assert code == 0 and out.startswith("Asking about 4 inputs takes 3 300 questions inside.")
    assert "if it moves the action in 3 % of the states" in " ".join(out.split())  # 1 − .05^(1/100)
    before, after = (json.loads(run(*words, *more, "--json", "-")[1]) for more in (["--forecast"], []))
    assert before["questions"] == after["cost"]["questions"] == 3300
    assert before["bound"] == after["groups"][1]["never_bound"] and after["groups"][1]["verdict"] == "never"
    code, _, err = run(*words, "--forecast", "--plot", "a.svg")
    assert code == 2 and "--forecast asks nothing, found --plot" in err


def test_an_agent_that_only_acts_is_asked_by_pairs(run, tmp_path):
    (tmp_path / "shaky.py").write_text(
        "import numpy as np\n\nrng = np.random.default_rng(0)\n\n\ndef act(seen):\n"
        "    return int(rng.random() < 1 / (1 + np.exp(-50 * seen[2])))\n"
    )
    words = ("ask", "CartPole-v1", "--agent", "shaky:act", "--episodes", 5, "--no-likely", "--budget", 200)
    code, out, err = run(*words)
    assert (code, err) == (0, "") and out.startswith("Reacts to angle; no evidence for position, velocity and")
    assert "Asked by pairs: it answers otherwise" in out and "leaves no trace" in " ".join(out.split())
    code, out, _ = run(*words, "--way", "paired", "--forecast")
    assert code == 0 and out.startswith("Asking about 4 inputs takes at most 2 ")
    code, _, err = run(*words, "--way", "inside")
    assert code == 2 and "way='paired'" in err
    code, _, err = run(*words[:-1], 5)
    assert code == 2 and "find nothing in 5 questions" in err


def test_what_each_input_is_worth(run, model):
    code, out, _ = run("ask", "CartPole-v1", "--agent", model, "--episodes", 5, "--returns", 5, "--json", "-")
    worth = {group["group"]: group["returned"]["loss"] for group in json.loads(out)["groups"]}
    assert code == 0 and worth["velocity"] == {"estimate": 0, "low": 0, "high": 0}
    assert worth["position"] != worth["velocity"]


def test_watched_and_asked_side_by_side(run, model, tmp_path):
    code, out, _ = run("ask", "CartPole-v1", "--agent", model, "--episodes", 10, "--audit", "--report", "a.html")
    assert code == 0 and out.startswith("Watching ") and "adjusted p" in out
    assert "policyspace ask CartPole-v1" in (tmp_path / "a.html").read_text()


def test_same_seed_same_answer(run, model):
    words = ("ask", "CartPole-v1", "--agent", model, "--episodes", 4, "--json", "-")
    first, again, other = (run(*words, "--seed", seed)[1] for seed in (3, 3, 4))
    assert first == again != other


def test_greedy_agents_groups_and_names(run, model):
    _, out, _ = run(
        "ask", "CartPole-v1", "--agent", model, "--episodes", 5, "--greedy", "--features", "x,v,a,w", "--groups",
        "speeds=v|w", "--json", "-",
    )  # fmt: skip
    answer = json.loads(out)
    assert [group["group"] for group in answer["groups"]] == ["x", "speeds", "a"]
    assert answer["never"] == ["speeds"] and "does the same" in answer["way_reason"]


def test_a_function_of_ones_own(run, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "import gymnasium\n\ndef act(seen):\n    return int(seen[2] > 0)\n\n"
        "def make():\n    return gymnasium.make('CartPole-v1')\n"
    )
    code, out, _ = run("ask", "mine:make", "--agent", "mine:act", "--episodes", 4)
    assert code == 0 and out.startswith("Reacts to angle; never to position, velocity and angular_velocity in ")
    sys.modules.pop("mine")


def test_normalised_and_stacked_as_in_training(run, tmp_path):
    """Normalised first, stacked afterwards; the policy sees the angles of the oldest and of the newest frame."""
    env = VecFrameStack(VecNormalize(DummyVecEnv([lambda: gymnasium.make("CartPole-v1")])), 3)
    model = PPO("MlpPolicy", env, n_steps=64, batch_size=64, seed=0, device="cpu")
    model.learn(64)
    blind(model, *(i for i in range(12) if i not in (2, 10))).save(tmp_path / "m.zip")
    env.venv.save(str(tmp_path / "statistics.pkl"))
    code, out, err = run(
        "ask", "CartPole-v1", "--agent", "m.zip", "--vecnormalize", "statistics.pkl", "--frame-stack", 3,
        "--episodes", 8, "--json", "-",
    )  # fmt: skip
    answer = json.loads(out)
    assert (code, err) == (0, "")
    assert answer["selected"] == ["angle"] and len(answer["never"]) == 3
    witness = next(group["witness"] for group in answer["groups"] if group["group"] == "angle")
    assert len(witness["reading"].split(",")) == 3  # one a frame
    assert np.abs([float(part) for part in witness["reading"].split(",")]).max() > 0.05  # in standard deviations
    assert answer["warnings"] == []
    _, out, _ = run("ask", "CartPole-v1", "--agent", "m.zip", "--frame-stack", 3, "--episodes", 3)
    assert "Warning: PPO was trained with VecNormalize, found an environment without it" in out
    code, _, err = run("ask", "CartPole-v1", "--agent", "m.zip")
    assert code == 2 and "made for Box" in err and "same wrappers" in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["NoSuch-v9"], "NoSuch"),
        (["CartPole-v1", "--groups", "frame"], "--groups must be such as"),
        (["CartPole-v1", "--groups", "pose=x|y"], "has no input 'x'"),
        (["CartPole-v1", "--way", "outside"], "no way 'outside'"),
        (["CartPole-v1", "--plot", "answer.doc"], "saved as .png"),
        (["CartPole-v1", "--out", "log.txt"], "must end in one of"),
        (["MountainCar-v0"], "was made for Box"),
        (["CartPole-v1", "--vecnormalize", "none.pkl"], "there is no such file"),
        (["CartPole-v1", "--features", "a,b"], "4 numbers, found 2 names"),
        (["CartPole-v1", "--log", "none.parquet"], "none.parquet"),
        (["CartPole-v1", "--returns", "1"], "at least 2 pairs"),
    ],
)
def test_bad_input_is_one_sentence(run, model, arguments, sentence):
    code, out, err = run("ask", *arguments, "--agent", model)
    assert code == 2 and out == "" and sentence in err and err.count("\n") == 1, err
