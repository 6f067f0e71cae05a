"""Recovered rewards: gradients against a simulator's, weights against closed forms, and what a log cannot tell."""

import json
import sys

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2

import policyspace
from policyspace.cli import main
from policyspace.errors import InputError
from policyspace.rewards import (
    EpisodeLog,
    FittedEpisodes,
    critical_values,
    penalised,
    return_gradients,
    signed_weights,
    simplex_weights,
)


def tracking(n=3000, target=0.6, seed=0, unused=1):
    """Episodes of one step: a = target·x is best for target·(near) + (1 − target)·(small)."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(n, 1 + unused))
    actions = target * states[:, 0] + 0.5 * rng.normal(size=n)
    parts = {"near": -((actions - states[:, 0]) ** 2), "small": -(actions**2)}
    return states, actions, parts


def recovered(states, actions, parts, **words):
    said = {"reward_features": parts, "episodes": np.arange(len(states)), "bootstrap": 60} | words
    return policyspace.reward(states, actions, **said)


# -- Gradients.


def test_gradients_are_those_of_the_formula():
    """G(PO)MDP step by step: cumulative scores that stay after an episode's end, a baseline for each step and coordinate."""
    jax = pytest.importorskip("jax")
    world = policyspace.make_world("gridworld")
    space, rng = world.policy_space(), np.random.default_rng(0)
    theta = 0.3 * rng.normal(size=space.num_parameters)
    seen = policyspace.rollout(world, space, theta, world.default_configuration(), jax.random.key(1), 40)
    features, actions, rewards, mask = map(np.asarray, (seen.features, seen.actions, seen.rewards, seen.mask))
    scores = np.asarray(space.score(theta, features, actions))
    total, wanted = np.zeros((40, space.num_parameters)), np.zeros(space.num_parameters)
    for t in range(world.horizon):
        total += scores[:, t] * mask[:, t, None]
        earned = world.discount**t * rewards[:, t, None] * mask[:, t, None]
        power = (total**2).sum(axis=0)
        baseline = (total**2 * earned).sum(axis=0) / np.where(power > 0, power, 1)
        wanted += (total * (earned - baseline)).mean(axis=0)
    starts = np.concatenate([[0], np.cumsum(mask.sum(axis=1))[:-1]])
    found = return_gradients(scores[mask], rewards[mask][:, None], starts, world.discount)
    np.testing.assert_allclose(found.jacobian[:, 0], wanted, atol=1e-9)


def test_the_influence_of_an_episode_is_what_happens_if_it_is_seen_once_more():
    """Its gradient, and through the policy that is fitted with it; by refits with a copy of the episode."""
    rng = np.random.default_rng(0)
    states = rng.normal(size=(1200, 2))
    actions = (rng.random(1200) < 1 / (1 + np.exp(-states[:, 0]))).astype(int)
    episodes, rewards = np.arange(1200) // 3, np.column_stack([states[:, 0] * actions, -1.0 * actions])
    sample = policyspace.Sample.from_arrays(states, actions, episodes=episodes)
    space = policyspace.identification.bind(policyspace.identification.request_of(sample))[0]

    def fitted(rows):
        one = policyspace.Sample.from_arrays(
            states[rows], actions[rows], episodes=np.repeat(np.arange(len(rows) // 3), 3)
        )
        log = EpisodeLog.of(one, rewards[rows])
        every = np.ones(space.num_parameters, dtype=bool)
        policy = penalised(policyspace.likelihood_of(space, one), space.full_support, 1e-6)
        return FittedEpisodes(log, policy, every, every, 0.9)

    whole = fitted(np.arange(1200))
    found = whole.gradients()
    influence = whole.influence(found)
    changed = []
    for number in range(40):
        again = fitted(np.concatenate([np.arange(1200), 3 * number + np.arange(3)]))
        again.__dict__["directions"] = whole.directions
        changed.append(401 * (again.gradients().jacobian - found.jacobian))
    assert np.corrcoef(np.ravel(changed), influence[:40].ravel())[0, 1] > 0.995
    np.testing.assert_allclose(np.std(changed), influence[:40].std(), rtol=0.03)


def test_critical_values_go_from_all_moments_to_the_weights_alone():
    told, allowed = critical_values(12, 1)
    np.testing.assert_allclose(allowed[[0, -1]], chi2.ppf(0.95, [12, 1]), rtol=0.03)
    assert (np.diff(allowed) < 1e-9).all() and told[0] == 0


# -- Weights.


@pytest.mark.parametrize("seed", range(5))
def test_weights_on_the_simplex_are_the_smallest(seed):
    rng = np.random.default_rng(seed)
    jacobian = rng.normal(size=(6, 4)) + rng.normal(size=(6, 1))
    best = minimize(
        lambda w: ((jacobian @ w) ** 2).sum(), np.full(4, 0.25), bounds=[(0, 1)] * 4, method="SLSQP",
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1}, options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    np.testing.assert_allclose(simplex_weights(jacobian), best.x, atol=1e-5)


def test_signed_weights_take_the_null_vector_and_the_side_of_the_maximum():
    jacobian = np.array([[1.0, 2.0], [2.0, 4.0]])
    np.testing.assert_allclose(signed_weights(jacobian, np.array([-1.0, 0.0])), [2 / 3, -1 / 3])
    np.testing.assert_allclose(signed_weights(jacobian, np.array([1.0, 0.0])), [-2 / 3, 1 / 3])


def test_weights_of_a_closed_form_are_recovered_and_covered():
    """The optimum is target·x for the weights (target, 1 − target); intervals hold it at about their level."""
    inside, errors = 0, []
    for seed in range(40):
        target = 0.2 + 0.6 * seed / 39
        states, actions, parts = tracking(600, target, seed)
        found = recovered(states, actions, parts, answer=["x0"], seed=seed).weights["near"]
        inside += found.low <= target <= found.high
        errors.append(found.weight - target)
    assert inside >= 33  # of 40 at 95 %: fewer by chance in 1 of 700
    assert np.sqrt(np.mean(np.square(errors))) < 0.05


def test_a_cost_has_a_negative_weight():
    states, actions, parts = tracking()
    signed = recovered(states, actions, {"near": parts["near"], "effort": -parts["small"]}, signed=True)
    assert signed.weights["near"].weight == pytest.approx(0.6, abs=0.06)
    assert signed.weights["effort"].weight == pytest.approx(-0.4, abs=0.06)


def test_coordinates_that_the_agent_does_not_control_have_a_gradient_and_bias_the_weights():
    """A target that hangs on x1 too, which the agent cannot see: its optimum given x0 alone is that of the closed form."""
    rng, n = np.random.default_rng(0), 6000
    states = rng.normal(size=(n, 2))
    actions = 0.6 * states[:, 0] + 0.5 * rng.normal(size=n)
    parts = {"near": -((actions - states[:, 0] - 2 * states[:, 1]) ** 2), "small": -(actions**2)}
    identified, every = (recovered(states, actions, parts, coordinates=c) for c in ("identified", "all"))
    assert identified.support == ("x0",) and identified.explained
    near = identified.weights["near"]
    assert near.low < 0.6 < near.high and near.weight == pytest.approx(0.6, abs=0.1)  # x1 makes it a noisy log
    assert not every.explained and abs(every.weights["near"].weight - 0.6) > 0.2
    assert "not at an optimum" in every.sentence


def test_what_the_agent_cannot_change_is_not_told():
    states, actions, parts = tracking()
    found = recovered(states, actions, parts | {"luck": np.random.default_rng(1).normal(size=len(states))})
    assert [max(one, key=lambda name: abs(one[name])) for one in found.unresolved] == ["luck"]
    assert "does not tell the weight of luck" in found.sentence
    near, small = found.weights["near"].weight, found.weights["small"].weight
    assert near / (near + small) == pytest.approx(0.6, abs=0.06)


def test_two_names_of_one_reward_are_not_told_apart():
    states, actions, parts = tracking()
    found = recovered(states, actions, parts | {"near too": 2 * parts["near"] + 5})
    (one,) = found.unresolved
    assert one["near"] / one["near too"] == pytest.approx(-2, rel=0.05)  # near − ½·(near too) changes nothing


def test_several_configurations_tell_what_one_does_not():
    """In the first the agent cannot be nearer by going further; in the second it can."""
    rng, n = np.random.default_rng(0), 3000
    logs, parts = [], {"near": [], "small": [], "warm": []}
    for slope in (0.0, 1.0):
        states = rng.normal(size=(n, 2)) + 1
        best = (0.5 * states[:, 0] + 0.2 * slope * states[:, 0]) / 1.0  # w = (.5, .3, .2): ½x + .2·slope·x
        actions = best + 0.5 * rng.normal(size=n)
        logs.append((states, actions, np.full(n, slope)))
        parts["near"].append(-((actions - states[:, 0]) ** 2))
        parts["small"].append(-(actions**2))
        parts["warm"].append(-((actions - slope * states[:, 0]) ** 2))
    states, actions, slope = (np.concatenate(columns) for columns in zip(*logs, strict=True))
    joined = {name: np.concatenate(values) for name, values in parts.items()}
    first = recovered(states[:n], actions[:n], {name: v[:n] for name, v in joined.items()}, answer=["x0"])
    sample = policyspace.Sample.from_arrays(states, actions, episodes=np.arange(2 * n), recorded={"slope": slope})
    both = policyspace.reward(sample, reward_features=joined, by="slope", answer=["x0"], bootstrap=60)
    assert first.unresolved  # near and warm, or small and warm: one equation for three weights
    assert both.num_configurations == 2 and not both.unresolved
    found = [both.weights[name].weight for name in joined]
    np.testing.assert_allclose(found, [0.5, 0.3, 0.2], atol=0.06)


def test_one_configuration_is_not_several():
    states, actions, parts = tracking(300)
    recorded = {"slope": np.ones(300)}
    sample = policyspace.Sample.from_arrays(states, actions, episodes=np.arange(300), recorded=recorded)
    with pytest.raises(InputError, match="'slope' has one value, so that all episodes are of one configuration"):
        policyspace.reward(sample, reward_features=parts, by="slope", answer=["x0"])


# -- Data.


def test_rewards_are_read_from_columns_and_are_no_features(tmp_path):
    polars = pytest.importorskip("polars")
    states, actions, parts = tracking(800)
    table = {"x": states[:, 0], "y": states[:, 1], "push": actions, "trip": np.arange(800), **parts}
    polars.DataFrame(table).write_csv(tmp_path / "log.csv")
    words = {"reward_features": ["near", "small"], "episodes": "trip", "bootstrap": 40}
    from_file = policyspace.reward(tmp_path / "log.csv", "push", **words)
    from_table = policyspace.reward(polars.DataFrame(table), "push", **words)
    assert from_file.support == from_table.support == ("x",)
    assert from_file.features == from_table.features
    sample = policyspace.Sample.from_arrays(states, actions, ["x", "y"], episodes=np.arange(800), recorded=parts)
    beside = policyspace.reward(sample, reward_features=["near", "small"], bootstrap=40)
    assert [round(one.weight, 9) for one in beside.features] == [round(one.weight, 9) for one in from_file.features]


@pytest.mark.parametrize(
    "words, sentence",
    [
        ({"reward_features": {"near": np.zeros(300)}}, "has the weight 1, whatever the agent does"),
        ({"reward_features": {"near": np.ones(300), "time": np.ones(300)}}, "adds up to the same in every episode"),
        ({"reward_features": {"a": np.arange(300), "b": np.arange(299)}}, "one finite number for each of 300 rows"),
        ({"episodes": None}, "name the column of episodes"),
        ({"episodes": np.arange(300) // 60}, "at least 10 episodes a configuration, found 5"),
        ({"answer": ["z"]}, "the answer is about 'z'"),
        ({"answer": []}, "nothing to recover a reward from"),
        ({"discount": 0.0}, "the discount must be above 0"),
        ({"bootstrap": 3}, "at least 20 draws"),
        ({"by": "wind"}, "no column 'wind'"),
        ({"coordinates": "some"}, "'identified' or 'all'"),
    ],
)
def test_what_cannot_be_recovered(words, sentence):
    states, actions, parts = tracking(300)
    with pytest.raises(InputError, match=sentence):
        recovered(states, actions, **{"parts": parts, "reward_features": parts, "answer": ["x0"]} | words)


def test_the_command_recovers_and_saves(tmp_path, monkeypatch, capsys):
    polars = pytest.importorskip("polars")
    monkeypatch.chdir(tmp_path)
    states, actions, parts = tracking(800)
    table = {"x": states[:, 0], "y": states[:, 1], "push": actions, "trip": np.arange(800), **parts}
    polars.DataFrame(table).write_csv("log.csv")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["policyspace", "reward", "log.csv", "--actions", "push", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        printed = capsys.readouterr()
        return stop.value.code, printed.out, printed.err

    said = ["--episodes", "trip", "--reward-features", "near,small", "--bootstrap", "40"]
    code, out, _ = run(*said, "--json", "r.json", "--plot", "r.svg", "--report", "r.html")
    assert code == 0 and out.startswith("The reward weighs near 0.")
    assert json.loads((tmp_path / "r.json").read_text())["support"] == ["x"]
    assert "<svg" in (tmp_path / "r.html").read_text() and (tmp_path / "r.svg").stat().st_size > 1000
    code, _, err = run("--episodes", "trip", "--reward-features", "near,smal")
    assert code == 2 and "there is no reward feature 'smal': did you mean 'small'?" in err
    code, _, err = run("--reward-features", "near,small")
    assert code == 2 and "--episodes" in err


@pytest.mark.slow
def test_in_the_grid_world_all_coordinates_bias_the_weights_and_cost_return():
    """Agents that learned exactly: the error of the weights, and what an agent loses that learns by them."""
    from benchmarks.rewards import run

    results = [run(seed, 1000) for seed in range(10)]
    error = {way: np.sqrt(np.mean([one[way].error ** 2 for one in results])) for way in ("identified", "true", "all")}
    lost = {way: np.mean([one[way].regret for one in results]) for way in ("identified", "all")}
    assert error["identified"] < 0.75 * error["all"] and abs(error["identified"] - error["true"]) < 0.05, error
    assert lost["identified"] < 0.5 * lost["all"], lost
