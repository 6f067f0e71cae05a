"""`policyspace demo`: the shipped log is the one its seed makes, and the commands it shows work."""

import json
import shlex
import sys

import numpy as np
import pytest

from policyspace import read
from policyspace.cli import main
from policyspace.data.examples import TRUTH, load_demo, make


@pytest.fixture
def run(monkeypatch, capfd, tmp_path):
    monkeypatch.chdir(tmp_path)

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["policyspace", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code, *capfd.readouterr()

    return command


def equal(one, other):
    for name in ("features", "actions", "episodes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("names", "action_names", "blocks", "origin"):
        assert getattr(one, name) == getattr(other, name)


def test_the_shipped_log_is_the_one_its_seed_makes():
    equal(load_demo(), make())


def test_demo(run, tmp_path):
    code, out, err = run("demo", "--out", "here")
    assert (code, err) == (0, "")
    sentence = "The agent uses 3 of 6: speed, front_sensor and left_sensor."
    assert out.count(sentence) == 2  # both rules
    assert TRUTH == ("speed", "front_sensor", "left_sensor")
    assert "6 of 6 verdicts are right" in out
    assert (tmp_path / "here/policyspace-demo.png").read_bytes().startswith(b"\x89PNG")
    equal(read(tmp_path / "here/policyspace-demo.csv"), make())


def test_the_next_commands_work(run):
    out = run("demo", "--out", "here")[1]
    commands = [shlex.split(line) for line in out.splitlines() if line.startswith("  policyspace identify here/")]
    assert len(commands) == 4
    for command in commands:
        code, out, err = run(*command[1:])
        assert (code, err) == (0, "")
    assert "contrast by 10" in out


def test_the_truth_is_not_held_against_other_groups(run):
    run("demo")
    code, out, _ = run("identify", "policyspace-demo.csv", "--groups", "parameter", "--json", "-")
    assert code == 0
    assert json.loads(out)["ground_truth"] is None


def test_a_folder_that_cannot_be_made(run, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = run("demo", "--out", "file/inside")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--out" in err
