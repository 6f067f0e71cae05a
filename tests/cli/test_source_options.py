"""The options that identify, plan and theory share: older names work, and what is given is used or refused."""

import json

import numpy as np
import pytest

import policyspace
from policyspace.cli.options import SampleOptions

RNG = np.random.default_rng(4)
X = RNG.normal(size=(100, 2))
FORCE = X[:, 0] + RNG.normal(size=100)
COMMANDS = ("identify", "plan", "theory")
ROLES = ("--actions", "force", "--features", "x,y")


@pytest.fixture
def run(command_line, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{a},{b},{c},{i // 10},{1 + i % 2},{'go' if c > 0 else 'stop'}"
        for i, ((a, b), c) in enumerate(zip(X, FORCE, strict=True))
    ]
    (tmp_path / "log.csv").write_text("\n".join(["x,y,force,trip,count,move", *rows]) + "\n")
    recorded = {"family": "gaussian-network", "hidden": [3], "activation": "tanh", "covariance": [[1.0]]}
    data = policyspace.Sample.from_arrays(X, FORCE, ["x", "y"], ["force"], origin={"policy": recorded})
    policyspace.write(data, "network.csv")
    return command_line


def answer(result):
    code, out, err = result
    assert (code, err) == (0, "")
    return json.loads(out)


@pytest.mark.parametrize("command", COMMANDS)
def test_older_names_of_the_options_give_the_same_answer(command, run):
    new = ("--actions", "force", "--features", "x,y", "--episodes", "trip", "--weights", "count")
    old = ("--action", "force", "--features", "x,y", "--episode", "trip", "--weight", "count")
    wanted = answer(run(command, "log.csv", *new, "--json", "-"))
    assert answer(run(command, "log.csv", *old, "--json", "-")) == wanted
    if command == "identify":
        assert (wanted["data"]["num_episodes"], wanted["data"]["features"]) == (10, ["x", "y"])


def test_hidden_layers_that_are_given_come_before_those_in_the_file(run):
    as_recorded = answer(run("identify", "network.csv", "--test", "wilks", "--json", "-"))
    given = answer(run("identify", "network.csv", "--hidden", "2", "--test", "wilks", "--json", "-"))
    assert (as_recorded["policy"]["hidden"], given["policy"]["hidden"]) == ([3], [2])
    named = answer(run("identify", "network.csv", "--policy", "network", "--test", "wilks", "--json", "-"))
    assert named == as_recorded
    deep = answer(
        run("identify", "log.csv", *ROLES, "--policy", "network", "--hidden", "2,2", "--test", "wilks", "--json", "-")
    )
    assert deep["policy"]["hidden"] == [2, 2]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((*ROLES, "--hidden", "8"), "hidden layers belong to the policy 'network', found the policy 'gaussian'"),
        ((*ROLES, "--policy", "network", "--no-intercept"), "an intercept belongs to linear policies"),
        (("--actions", "move", "--features", "x,y", "--covariance", "1"), "a covariance belongs to the Gaussian"),
        ((*ROLES, "--groups", "hidden"), "the groups 'hidden' belong to the policy 'network'"),
        (
            (*ROLES, "--policy", "networks"),
            "--policy must be one of gaussian, boltzmann, poisson, negative-binomial, ordered, network",
        ),
        ((*ROLES, "--reference", "go"), "only discrete actions have a reference"),
    ],
)
def test_what_does_not_fit_is_refused(command, arguments, sentence, run):
    code, out, err = run(command, "log.csv", *arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_following_refuses_the_same(run):
    code, _, err = run("identify", "log.csv", *ROLES, "--episodes", "trip", "--follow", "--hidden", "4")
    assert code == 2
    assert "hidden layers belong to the policy 'network'" in err


def test_the_commands_share_one_list_of_options():
    import typer

    from policyspace.cli import app

    shared = set(SampleOptions.__dataclass_fields__)
    commands = typer.main.get_command(app).commands
    for name in COMMANDS:
        assert shared <= {parameter.name for parameter in commands[name].params}
