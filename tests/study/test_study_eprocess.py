"""Studies by the e-process: evidence that adds up over batches, and errs as rarely as promised however one looks."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

from policyspace import InputError, Sample, Study, likelihood_of, make_world, write
from policyspace.cli import app
from policyspace.inference import EProcess
from tests.some_episodes import some_episodes

GOLF = make_world("minigolf")
GOLF_SPACE = GOLF.policy_space()


def golf(seed, count=40, slope=0.02):
    """A golfer that owns the distance alone."""
    theta = np.array([0.3, slope, 0.0, 0.0, 0.0, 0.0])
    seen = some_episodes(GOLF, GOLF_SPACE, theta, GOLF.default_configuration(), jax.random.key(seed), count)
    return seen.pairs(GOLF.feature_names, GOLF.action_names, {"truth": ["x"]})


@pytest.fixture
def study(tmp_path):
    return Study.create(tmp_path / "a.sqlite", "minigolf", design="none", max_rounds=1, test="eprocess")


def test_what_one_batch_cannot_show_several_can(study):
    """Evidence adds up; what is decided stays decided; δ is never shared out, so there is always another round."""
    highest, number = 0.0, 0
    while "x" not in study.status().selected:
        record = study.tell(golf(number, 10, slope=0.004))
        row = next(row for row in record.tests if row["group"] == "x")
        assert record.significance == 0.05 and row["highest"] >= highest
        highest, number = row["highest"], number + 1
        assert number < 12
    assert number >= 2 and record.newly_selected == ("x",) and 10 * (number - 1) < row["decided_at"] <= 10 * number
    assert study.status().truth == ["x"] and study.status().evidence["x"] >= 1.0
    after = study.tell(golf(99, 25)).tests
    assert next(r for r in after if r["group"] == "x") == row | {"looks": []}
    assert study.ask() is None and study.status().finished == "all 2 rounds have been reported"


def test_all_decided_ends_the_study_and_the_budget_does(tmp_path):
    study = Study.create(tmp_path / "f.sqlite", "minigolf", features=["x"], design="none", test="eprocess")
    assert study.ask().significance == 0.05
    study.tell(golf(0, 80))
    assert study.ask() is None and study.status().finished == "every group is shown to be controlled"
    study = Study.create(tmp_path / "b.sqlite", "minigolf", design="none", budget=60, max_rounds=1, test="eprocess")
    study.tell(golf(1, 60, slope=0.0))
    assert study.ask() is None and "budget of 60" in study.status().finished


def test_networks_are_followed_by_default_and_linear_policies_tested_by_batch(tmp_path):
    car = Study.create(tmp_path / "car.sqlite", "car", design="none")
    assert car.settings["test"] == "eprocess" and car.status().schedule.level_of(0) == 0.05
    linear = Study.create(tmp_path / "golf.sqlite", "minigolf", design="none")
    assert linear.settings["test"] == "combined" and linear.status().schedule.level_of(3) == 0.05 / 2
    for wrong, message in (
        ({"test": "eproces"}, "did you mean 'eprocess'"),
        ({"test": "eprocess", "rule": "combinatorial"}, "one group at a time"),
        ({"test": "eprocess", "paper_rule": True}, "one group at a time"),
    ):
        with pytest.raises(InputError, match=message):
            Study.create(tmp_path / "w.sqlite", "minigolf", **wrong)
    assert not (tmp_path / "w.sqlite").exists()


def test_batches_under_one_configuration_are_one_stretch(tmp_path):
    """Told in three batches or in one, the evidence of the same episodes is the same; elsewhere it multiplies."""
    data = golf(3, 30, slope=0.006)
    whole = Study.create(tmp_path / "w.sqlite", "minigolf", design="none", significance=1e-30, test="eprocess")
    parts = Study.create(tmp_path / "p.sqlite", "minigolf", design="none", significance=1e-30, test="eprocess")
    expected = whole.tell(data)
    for first in (0, 10, 20):
        record = parts.tell(data.take(np.flatnonzero((data.episodes >= first) & (data.episodes < first + 10))))
    for one, other in zip(expected.tests, record.tests, strict=True):
        assert other["log_e"] == pytest.approx(one["log_e"], abs=1e-6)
        assert other["highest"] == pytest.approx(one["highest"], abs=1e-6)
        assert [look for look, _ in other["looks"]] == list(range(21, 31))
    more = golf(4, 30, slope=0.006)
    alone = EProcess(likelihood_of(GOLF_SPACE, more), more)
    after = whole.tell(more, {"putter_length": 7.5})
    for g, before, row in zip(GOLF_SPACE.tested, expected.tests, after.tests, strict=True):
        won = alone.test_many([GOLF_SPACE.full_support - {g}])[0].statistic / 2
        assert row["log_e"] == pytest.approx(before["log_e"] + np.log(0.5 + 0.5 * np.exp(won)), abs=1e-6)


def test_a_network_is_found_over_two_batches(tmp_path):
    """A driver that steers by one sensor, two in question; the first batch decides nothing alone."""
    world = make_world("car")
    space, theta = world.policy_space(), np.zeros(world.policy_space().num_parameters)
    (inner, _), (outer, _) = space.layer_indices
    theta[inner[0, 1]], theta[outer[1, 0]] = 3.0, 0.6
    study = Study.create(tmp_path / "n.sqlite", "car", features=["sensor_+45", "sensor_-30"], design="none")
    for number, expected in enumerate(((), ("sensor_+45",))):
        rng = np.random.default_rng(number)
        features = rng.random((400, 5))
        actions = np.asarray(space.sample(rng, theta, features))
        episodes = np.arange(400) // np.array([20, 200])[number]
        record = study.tell(Sample(features, actions, world.feature_names, world.action_names, episodes))
        assert record.selected == expected
    looks = [{row["group"]: row["looks"] for row in r.tests}["sensor_-30"] for r in study.rounds()]
    assert (
        len(looks[0]) < 20 and looks[0][-1][0] == 20 and looks[1][-1][0] == 22
    )  # seldom within a batch, always at its end
    assert study.status().evidence["sensor_-30"] < 1


def test_the_command_says_after_which_episode(tmp_path):
    def run(*arguments):
        result = CliRunner().invoke(app, ["study", *map(str, arguments)], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return " ".join(result.output.split())

    path, file = tmp_path / "s.sqlite", tmp_path / "d.parquet"
    said = run("create", path, "--world", "minigolf", "--design", "none", "--max-rounds", 1, "--test", "eprocess")
    assert "δ is not split over rounds: chance of any false 'controlled' ever ≤ 0.05" in said
    assert "followed after every episode until E ≥ 20" in run("ask", path)
    write(golf(0), file)
    said = run("tell", path, file)
    decided = Study.open(path).rounds()[0].tests[0]["decided_at"]
    assert f"newly selected: x ✓ after episode {decided}" in said and "open: " in said and "E = " in said
    assert said.split("Round 1")[1].split("Next")[0].strip() in run("status", path)
    status = json.loads(CliRunner().invoke(app, ["study", "status", str(path), "--json", "-"]).output)
    assert status["selected"] == ["x"] and status["evidence"]["x"] >= 20 and status["settings"]["test"] == "eprocess"
    assert len(status["rounds"][0]["tests"][1]["looks"]) == 40
    assert "nothing can be forecast" in run("ask", path)


@pytest.mark.slow
def test_killed_at_random_moments_it_goes_on_from_the_evidence_that_was_kept(tmp_path):
    """The process is killed while it tells; what is in the file is what an uninterrupted study has."""
    path, chance = tmp_path / "k.sqlite", random.Random(0)
    Study.create(path, "minigolf", design="none", max_rounds=400, test="eprocess")
    batches = [golf(100 + number, 6, slope=0.004) for number in range(40)]
    np.savez(
        tmp_path / "d.npz",
        **{
            f"{name}{i}": getattr(b, name)
            for i, b in enumerate(batches)
            for name in ("features", "actions", "episodes")
        },
    )
    code = (
        "import sys, numpy as np\n"
        "from policyspace import Demonstrations, Study\n"
        "d = np.load(sys.argv[2]); study = Study.open(sys.argv[1]); w = study.world\n"
        "print('ready', flush=True)\n"
        "for i in range(len(study.rounds()), 40):\n"
        "    data = [d[f'{name}{i}'] for name in ('features', 'actions', 'episodes')]\n"
        "    study.tell(Demonstrations(data[0], data[1], w.feature_names, w.action_names, data[2]))\n"
    )
    for _ in range(3):
        arguments = [sys.executable, "-c", code, str(path), str(tmp_path / "d.npz")]
        child = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0.05, 0.5))
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    killed = Study.open(path).rounds()
    whole = Study.create(tmp_path / "w.sqlite", "minigolf", design="none", max_rounds=400, test="eprocess")
    for batch in batches[: len(killed)]:
        whole.tell(batch)
    assert [r.to_dict() for r in whole.rounds()] == [r.to_dict() for r in killed]
