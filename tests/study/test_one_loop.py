"""A study in a file and `configure` in memory are one loop: the same data give the same rounds, budgets and levels."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

from policyspace import Study, configure, likelihood_of, make_world, rollout
from policyspace.inference import EProcess
from policyspace.study import DESIGNS
from tests.some_episodes import some_episodes

KEY = jax.random.key(11)
TESTED = {"gridworld": ("row_0", "row_1", "col_1", "goal_col_0"), "car": ("sensor_+45", "sensor_-30")}
ELSEWHERE = {"gridworld": {"row": [1.0, 3.0, 1.0, 1.0, 1.0]}, "car": {"bend": 20.0}}


def agent_of(world, tested):
    """θ of an agent that uses the first of the tested features and those that are known."""
    space = world.policy_space()
    theta = np.asarray(jax.random.normal(KEY, (space.num_parameters,)))
    return np.where(
        space.free_mask(space.full_support - {i for i in space.tested if space.groups[i].name in tested[1:]}), theta, 0
    )


def driven(tmp_path, name, observe, **options):
    """(rounds of `configure`, rounds of a study that is told the same, what the study asked for)."""
    world = make_world(name)
    always = [feature for feature in world.feature_names if feature not in TESTED[name]]
    space, design = world.policy_space().with_assumed(always), options.pop("design", "none")
    seen = []

    def seen_there(key, omega, count):
        seen.append(observe(world, key, omega, count))
        return seen[-1]

    rounds = list(
        configure(
            world, seen_there, KEY, space, design=DESIGNS[design](), initial=world.check_configuration(ELSEWHERE[name]),
            **options,
        )
    )  # fmt: skip
    study = Study.create(tmp_path / "s.sqlite", name, assume=always, design=design, initial=ELSEWHERE[name], **options)
    requests = []
    for batch in seen:
        requests.append(study.ask())
        study.tell(replace(batch, configuration=world.check_configuration(requests[-1].configuration)))
    return rounds, study, requests


def in_json(rounds):
    return json.loads(json.dumps([r.to_dict() for r in rounds]))


@pytest.mark.parametrize("design", ["none", "uniform"])
@pytest.mark.parametrize(
    "options",
    [
        {"num_episodes": 30, "max_rounds": 2},
        {"budget": 103},
        {"budget": 10},
        {"num_episodes": 25, "max_rounds": 1, "paper_rule": True},
        {"rule": "combinatorial", "budget": 90, "max_rounds": 1},
    ],
)
def test_a_linear_policy_has_the_same_rounds_in_both(tmp_path, design, options):
    world = make_world("gridworld")
    space, theta = world.policy_space(), agent_of(world, TESTED["gridworld"])

    def observe(world, key, omega, count):
        return some_episodes(world, space, theta, omega, key, count)

    rounds, study, requests = driven(tmp_path, "gridworld", observe, design=design, **options)
    assert in_json(rounds) == in_json(study.rounds())
    assert [r.num_episodes for r in rounds] == [asked.num_episodes for asked in requests]
    assert [r.significance for r in rounds] == [asked.significance for asked in requests]
    assert study.ask() is None


def test_a_network_has_the_same_rounds_in_both(tmp_path, monkeypatch):
    """ω₀ first, then another configuration: a new agent in each, so that both follow the same evidence."""
    world = make_world("car")
    monkeypatch.setattr(type(world), "uniform_configuration", lambda car, key: car.check_configuration({"bend": -40.0}))
    space = world.policy_space()
    theta = np.zeros(space.num_parameters)
    (inner, _), (outer, _) = space.layer_indices
    theta[inner[0, 1]], theta[outer[1, 0]] = 3.0, 0.6

    def observe(world, key, omega, count):
        seen = rollout(world, space, theta, omega, key, count)
        return replace(seen, **{name: getattr(seen, name)[:, :40] for name in ("features", "actions", "rewards", "mask")},
                       states=jax.tree.map(lambda leaf: leaf[:, :41], seen.states))  # fmt: skip

    options = {"budget": 13, "max_rounds": 1, "design": "uniform"}
    rounds, study, requests = driven(tmp_path, "car", observe, **options)
    assert study.settings["test"] == "eprocess" and len(rounds) == 2
    assert [r.num_episodes for r in rounds] == [asked.num_episodes for asked in requests] == [7, 6]
    assert [r.significance for r in rounds] == [0.05, 0.05]
    assert in_json(rounds) == in_json(study.rounds())
    assert all(row["e_value"] >= 0 and row["looks"] for row in rounds[-1].tests if row["state"] == "open")


def test_an_agent_that_learns_anew_in_every_round_is_another_one(tmp_path):
    """In memory the evidence of rounds multiplies though ω stays; in a study the agent is taken to stay as it is."""
    world = make_world("minigolf")
    space, seen = world.policy_space(), []
    space.multimodal = True  # follow the evidence of this quick policy as if it were a network's

    def observe(key, omega, count):
        slope = 0.004 * len(seen)  # the agent is another one in every round
        seen.append(rollout(world, space, np.array([0.3, slope, 0.0, 0.0, 0.0, 0.0]), omega, key, count))
        return seen[-1]

    options = {"significance": 1e-30, "num_episodes": 12, "max_rounds": 2}
    *_, last = configure(world, observe, KEY, space, design=DESIGNS["none"](), **options)
    expected = dict.fromkeys(last.undecided, 0.0)
    for batch in seen:
        data = batch.pairs(world.feature_names, world.action_names)
        alone = EProcess(likelihood_of(space, data), data)
        for g in space.tested:
            won = alone.test_many([space.full_support - {g}])[0].statistic / 2
            expected[space.groups[g].name] += np.log(0.5 + 0.5 * np.exp(won))
    assert {row["group"]: row["log_e"] for row in last.tests} == pytest.approx(expected, abs=1e-6)
