"""`policyspace plan` and `policyspace theory` through the real entry point."""

import json
import subprocess
import sys

import numpy as np
import pytest

from policyspace import plan
from policyspace.cli import main
from policyspace.theory import assess


@pytest.fixture
def run(monkeypatch, capsys):
    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["policyspace", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        return code, *capsys.readouterr()

    return command


def table(actions=None, n=200):
    rng = np.random.default_rng(4)
    states = rng.normal(size=(n, 3))
    noisy = states @ [0.5, 0.1, 0.0] + rng.normal(size=n)
    return states, noisy if actions is None else actions(states, noisy)


def write(path, states, actions):
    import polars as pl

    columns = {name: states[:, i] for i, name in enumerate(["speed", "left", "right"][: states.shape[1]])}
    episodes = np.repeat(np.arange(len(states) // 10), 10)
    pl.DataFrame({**columns, "force": actions, "run": episodes}).write_csv(path)
    return path


@pytest.fixture
def log(tmp_path):
    return write(tmp_path / "log.csv", *table())


def test_plan_says_what_python_says(run, log):
    code, out, err = run("plan", log, "--actions", "force", "--episodes", "run", "--json", "-")
    assert (code, err) == (0, "")
    found = json.loads(out)
    states, actions = table()
    expected = plan(
        states, actions, features=["speed", "left", "right"], episodes=np.repeat(np.arange(20), 10), power=0.9
    ).to_dict()
    assert found["answer"] == expected["answer"]
    for one, other in zip(found["groups"], expected["groups"], strict=True):
        assert one["rows"] == other["rows"] and one["episodes"] == other["episodes"]
        assert one["minimum_detectable_effect"] == pytest.approx(other["minimum_detectable_effect"])
    assert {"group", "rate", "power_now", "rows", "episodes", "effect_bound"} <= set(found["groups"][0])
    assert found["intervals"][0]["parameter"] == "speed"
    assert found["num_episodes"] == 20 and found["power"] == 0.9


def test_plan_prints_a_sentence_a_table_and_notes(run, log):
    code, out, _ = run("plan", log, "--actions", "force", "--episodes", "run", "--power", "0.8")
    assert code == 0
    assert "rows" in out.splitlines()[0]
    for word in ("speed", "left", "right", "power now", "MDE", "Holm", "20 episodes"):
        assert word in out
    code, out, _ = run(
        "plan", log, "--actions", "force", "--features", "speed,left", "--effect", "0.2", "--test", "universal"
    )
    assert code == 0 and "‖θ‖ = 0.2" in out and "universal inference" in out


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_picture_is_the_same_bytes_twice(run, log, tmp_path, suffix):
    first, second = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    for path in (first, second):
        code, out, _ = run("plan", log, "--actions", "force", "--episodes", "run", "--plot", path)
        assert code == 0 and f"Saved {path}" in out.replace("\n", "")
    assert first.read_bytes() == second.read_bytes()
    assert len(first.read_bytes()) > 5000
    if suffix == "svg":
        assert "speed" in first.read_text() or "<path" in first.read_text()


def test_a_picture_of_nothing_to_plan_for(run, tmp_path):
    states, _ = table()
    noise = np.random.default_rng(8).normal(size=200)
    noise -= states @ np.linalg.lstsq(states, noise, rcond=None)[0]  # not even a chance resemblance
    flat = write(tmp_path / "flat.csv", states, noise)
    code, out, _ = run("plan", flat, "--actions", "force", "--features", "right", "--plot", tmp_path / "flat.svg")
    assert code == 0 and (tmp_path / "flat.svg").exists()
    assert "no effect" in out


def test_theory_prints_the_papers_quantities(run, log, tmp_path):
    code, out, err = run("theory", log, "--actions", "force", "--features", "speed,left,right", "--covariance", "1")
    assert (code, err) == (0, "")
    for word in ("Theorem 4.2", "σ, subgaussian scale", "λ̂_min", "whitened", "loose by a factor", "rows until"):
        assert word in out
    target = tmp_path / "theory.json"
    arguments = ("theory", log, "--actions", "force", "--episodes", "run", "--covariance", "1", "--json", target)
    assert run(*arguments)[0] == 0
    found = json.loads(target.read_text())
    states, actions = table()
    expected = assess(states, actions, features=["speed", "left", "right"], covariance=1.0)
    assert found["bounds"][0]["scale"] == pytest.approx(expected.bounds[0].scale)
    assert found["bounds"][1]["pairs_for_correctness"] == pytest.approx(expected.bounds[1].pairs_for_correctness)
    assert found["gaps"] == pytest.approx(expected.gaps)


@pytest.mark.parametrize("command", ["plan", "theory"])
@pytest.mark.parametrize(
    "arguments,sentence",
    [
        (["--actions", "forc"], "force"),
        (["--actions", "force", "--significance", "2"], "significance"),
        (["--actions", "force", "--covariance", "-1"], "positive definite"),
        (["--actions", "force", "--assume", "speed,left,right,run"], "every group is assumed"),
        (["--actions", "force", "--json", "no/such/folder.json"], "folder"),
        (["--actions", "force", "--policy", "network"], "theory and planning are for linear policies"),
    ],
)
def test_bad_input_is_one_sentence(run, log, command, arguments, sentence):
    code, out, err = run(command, log, *arguments)
    assert code == 2 and out == ""
    assert sentence in err and "Traceback" not in err and len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "arguments,sentence",
    [
        (["--power", "1"], "the power must lie between 0 and 1"),
        (["--power", "0.01"], "must exceed the significance"),
        (["--confidence", "0"], "the confidence must lie between 0 and 1"),
        (["--effect", "-2"], "the effect must be a positive number"),
        (["--test", "walks"], "wilks"),
        (["--plot", "picture.gif"], ".png, .svg or .pdf"),
    ],
)
def test_bad_plans_are_one_sentence(run, log, arguments, sentence):
    code, out, err = run("plan", log, "--actions", "force", *arguments)
    assert code == 2 and out == "" and sentence in err and len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("command", ["plan", "theory"])
def test_a_pilot_with_fewer_rows_than_parameters(run, tmp_path, command):
    tiny = tmp_path / "tiny.csv"
    tiny.write_text("a,b,c,force\n1,2,3,0.5\n2,1,5,0.7\n")
    code, out, err = run(command, tiny, "--actions", "force", "--covariance", "1")
    assert code == 2 and out == "" and "2 rows are fewer than the 4 parameters" in err


@pytest.mark.parametrize("command", ["plan", "theory"])
def test_a_separated_pilot_says_what_can_still_be_said(run, tmp_path, command):
    states, actions = table(lambda s, _: np.where(s[:, 0] > 0, "go", "stay"))
    path = write(tmp_path / "greedy.csv", states, actions)
    code, out, err = run(command, path, "--actions", "force", "--features", "speed,left,right")
    assert (code, err) == (0, "") and "separated" in out


@pytest.mark.parametrize("command", ["plan", "theory"])
def test_a_pilot_that_is_not_identifiable(run, tmp_path, command):
    states, actions = table()
    states[:, 2] = 2 * states[:, 0]
    path = write(tmp_path / "twice.csv", states, actions)
    code, out, err = run(command, path, "--actions", "force", "--features", "speed,left,right")
    assert (code, err) == (0, "")
    assert ("cannot be told apart" if command == "plan" else "no bound at any n") in out


def test_planning_imports_no_simulator(log):
    code = (
        "import sys; sys.argv = ['policyspace', 'plan', sys.argv[1], '--action', 'force', '--json', '-']\n"
        "from policyspace.cli import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "assert 'jax' not in sys.modules and 'matplotlib' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code, str(log)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["groups"]
