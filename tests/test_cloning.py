"""Clones: the optimum that they are, how they act, what their files hold, and what leaving features out is worth."""

import json
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

import policyspace
from policyspace import InputError
from policyspace.cli import main
from policyspace.cloning import episode_folds, penalised
from policyspace.identified import IdentifiedSpace

NAMES = ["left", "right", "speed", "noise"]


def amounts(n=240, seed=0):
    """Two amounts from features of different sizes, of which the last two are not used."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(n, 4)) * [1, 10, 0.1, 1] + [0, 5, 3, 0]
    actions = states[:, :2] @ [[1.0, 0.5], [0.1, 0.0]] + rng.normal(size=(n, 2)) @ [[1, 0.5], [0, 1]]
    return policyspace.Sample.from_arrays(states, actions, NAMES, episodes=np.arange(n) // 12)


def labels(n=300, seed=0):
    """One of three labels by the first two features."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(n, 4))
    scores = np.column_stack([1.5 * states[:, 0], -1.2 * states[:, 1], np.zeros(n)])
    chosen = np.array(["go", "turn", "wait"])[(scores + rng.gumbel(size=(n, 3))).argmax(axis=1)]
    return policyspace.Sample.from_arrays(states, chosen, NAMES, episodes=np.arange(n) // 15)


def counts(n=300, seed=0):
    """How many, by the first feature."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(n, 4))
    return policyspace.Sample.from_arrays(states, rng.poisson(np.exp(0.5 + 0.6 * states[:, 0])), NAMES, counts=True)


def trips(n=300, seed=0):
    """Two alternatives with a cost each, and a feature of the chooser."""
    rng = np.random.default_rng(seed)
    cost, income = rng.gamma(4, 1, (n, 2)), rng.normal(size=n)
    utility = -0.8 * cost + np.column_stack([0.7 * income, np.zeros(n)]) + rng.gumbel(size=(n, 2))
    states = np.column_stack([cost, income])
    return policyspace.Sample.from_arrays(
        states, utility.argmax(axis=1), ["cost_bus", "cost_car", "income"], ["bus", "car"]
    )


CHOICE = policyspace.ChoiceLinear(attributes={"cost": "cost_*"})


def bound(sample, policy=None):
    return policyspace.PolicySpec(policy).bind(sample)


# -- The optimum.


@pytest.mark.parametrize("covariance", [None, [[1.2, 0.3], [0.3, 0.9]]])
def test_the_gaussian_clone_is_the_penalised_optimum(covariance):
    """Against a minimiser that knows nothing of moments: standardised features, weights in units of the noise."""
    sample = amounts()
    space = policyspace.GaussianLinear(sample.names, sample.action_names, covariance)
    likelihood = policyspace.likelihood_of(space, sample)
    support, penalty = frozenset({0, 1, 3}), 7.0
    found = penalised(likelihood, support, penalty)
    full = np.column_stack([np.ones(len(sample.features)), sample.features])
    left = sample.actions - full @ np.linalg.lstsq(full, sample.actions, rcond=None)[0]
    noise = left.T @ left / len(left)
    sigma, unit = (
        (noise, np.sqrt(np.diag(noise))) if covariance is None else (np.array(covariance), np.sqrt([1.2, 0.9]))
    )
    kept = [0, 1, 3]
    z = (sample.features[:, [0, 2]] - sample.features[:, [0, 2]].mean(axis=0)) / sample.features[:, [0, 2]].std(axis=0)
    design = np.column_stack([np.ones(len(z)), z])
    assert space.named(support) == ["left", "speed"] and len(kept) == 3

    def objective(flat):
        weights = flat.reshape(2, 3)
        rest = sample.actions - design @ weights.T
        return (
            0.5 * np.einsum("ia,ab,ib", rest, np.linalg.inv(sigma), rest)
            + 0.5 * penalty * ((weights[:, 1:] / unit[:, None]) ** 2).sum()
        )

    best = minimize(objective, np.zeros(6), method="BFGS", options={"gtol": 1e-7}).x.reshape(2, 3)
    raw = best[:, 1:] / sample.features[:, [0, 2]].std(axis=0)
    np.testing.assert_allclose(space.weights(found.theta)[:, [1, 3]], raw, atol=1e-5)
    assert not space.weights(found.theta)[:, [2, 4]].any()
    assert np.linalg.eigvalsh(found.space.covariance).min() > 0


@pytest.mark.parametrize(
    "sample, policy",
    [(labels(), "boltzmann"), (counts(), "poisson"), (trips(), CHOICE)],
    ids=["softmax", "poisson", "choice"],
)
def test_no_direction_improves_a_penalised_policy(sample, policy):
    """log π and its derivatives are those of the family's density, differentiated numerically."""
    space = bound(sample, policy)
    likelihood, penalty = policyspace.likelihood_of(space, sample), 3.0
    theta = penalised(likelihood, space.full_support, penalty).theta
    constant = np.abs(np.nan_to_num(space.spread(sample.features, np.ones(sample.num_rows)))) == 0

    def objective(theta):
        z = likelihood.standardised_weights(theta)
        return space.log_prob(theta, sample.features, sample.actions).sum() - 0.5 * penalty * (z[~constant] ** 2).sum()

    steps = 1e-5 * np.eye(len(theta))
    slope = [(objective(theta + step) - objective(theta - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(slope, 0.0, atol=1e-2)
    assert all(
        objective(theta) > objective(theta + 0.05 * step)
        for step in np.vstack([np.eye(len(theta)), -np.eye(len(theta))])
    )


@pytest.mark.parametrize("sample, policy", [(labels(), None), (amounts(), None)], ids=["softmax", "gaussian"])
def test_the_lasso_meets_its_optimality_conditions(sample, policy):
    """|∂log L/∂z| = penalty where a weight is not zero, and at most that where it is."""
    space = bound(sample, policy)
    likelihood, penalty = policyspace.likelihood_of(space, sample), 12.0
    found = penalised(likelihood, space.full_support, penalty, "lasso")
    acting = found.space if space.discrete else likelihood.shrunken_policy(space.full_support, 1e-9).space
    if not space.discrete:  # the noise of the full fit, without correction for degrees of freedom, is what the fit uses
        acting = policyspace.GaussianLinear(
            space.feature_names, space.action_names, np.linalg.inv(likelihood._precision())
        )
    z = likelihood.standardised_weights(found.theta)
    slope = []
    for j in range(len(z)):
        step = np.zeros(len(z))
        step[j] = 1e-5
        width = likelihood.standardised_weights(found.theta + step)[j] - z[j]
        high, low = (acting.log_prob(found.theta + s * step, sample.features, sample.actions).sum() for s in (1, -1))
        slope.append((high - low) / (2 * width))
    columns = np.arange(len(z)) % len(space.column_names)
    inner, kept = columns > 0, np.abs(z) > 0.02
    # A step in a raw weight moves the mean too, which the constant absorbs at the optimum.
    np.testing.assert_allclose(np.abs(slope)[inner & kept], penalty, rtol=0.02)
    assert (np.abs(slope)[inner] <= penalty * 1.02).all()
    assert 0 < (inner & ~kept).sum() < inner.sum()


def test_a_network_is_penalised_too():
    rng = np.random.default_rng(0)
    states = rng.normal(size=(400, 2))
    actions = np.tanh(2 * states[:, :1]) + 0.2 * rng.normal(size=(400, 1))
    made = policyspace.clone(states, actions, policy="network", hidden=(3,), answer=["x0"], penalty=0.3, compare=False)
    grid = np.column_stack([np.linspace(-2, 2, 9), np.full(9, 50.0)])
    assert np.abs(made.mean_action(grid)[:, 0] - np.tanh(2 * grid[:, 0])).max() < 0.15
    np.testing.assert_array_equal(made.mean_action(grid), made.mean_action(grid * [1, -7]))  # x1 makes no difference


def short_log(seed, n=120):
    """Of one strong feature and five weak ones, which so few rows do not show, and four that are not used."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(n, 10))
    weights = np.array([2.0, *[0.45] * 5, 0, 0, 0, 0])
    actions = (rng.random(n) < 1 / (1 + np.exp(-states @ weights))).astype(int)
    fresh = rng.normal(size=(4000, 10))
    return states, actions, fresh, 1 / (1 + np.exp(-fresh @ weights))


def test_features_without_evidence_are_kept_where_held_out_episodes_need_them():
    """Divergence from the true policy: never much worse than leaving them out, and better where much is missing."""
    losses = {"auto": [], "drop": [], "shrink": []}
    for seed in range(6):
        states, actions, fresh, truth = short_log(seed)
        for undecided, found in losses.items():
            made = policyspace.clone(states, actions, undecided=undecided, compare=False)
            q = np.clip(made.probabilities(fresh)[:, 1], 1e-12, 1 - 1e-12)
            found.append(np.mean(truth * np.log(truth / q) + (1 - truth) * np.log((1 - truth) / (1 - q))))
            assert (undecided != "drop" or not made.kept) and (undecided != "shrink" or made.kept)
            assert set(made.kept) <= set(made.support)
    assert np.mean(losses["shrink"]) < 0.9 * np.mean(losses["drop"]), losses
    assert np.mean(losses["auto"]) <= np.mean(losses["drop"]) + 1e-9, losses


def test_what_is_kept_is_said_saved_and_never_against_names(tmp_path):
    states, actions, *_ = short_log(0)
    made = policyspace.clone(states, actions, undecided="shrink")
    assert "under a larger penalty" in made.sentence and made.losses[0].name == "identified space, others shrunk"
    assert policyspace.load_clone(made.save(tmp_path / "c.npz")).kept == made.kept
    assert not policyspace.clone(states, actions, answer=["x0"], undecided="shrink", compare=False).kept
    noise = np.random.default_rng(0).normal(size=(60, 3)), np.random.default_rng(1).integers(2, size=60)
    kept = policyspace.clone(*noise, undecided="shrink", compare=False)
    assert kept.kept == kept.support == ("x0", "x1", "x2") and kept.sentence.startswith("The clone uses nothing; and")
    with pytest.raises(InputError, match="undecided must be"):
        policyspace.clone(states, actions, undecided="maybe")


# -- Acting.


def test_it_acts_as_agents_of_stable_baselines3_do():
    made = policyspace.clone(labels(), compare=False)
    action, memory = made.predict(np.array([9.0, 0, 0, 0]), deterministic=True)
    assert action == "go" and memory is None and made.support == ("left", "right")
    several, _ = made.predict(np.eye(4), state=None, episode_start=np.ones(4), deterministic=False)
    assert several.shape == (4,) and set(several) <= {"go", "turn", "wait"}
    np.testing.assert_array_equal(made.sample(np.eye(4), seed=3), made.sample(np.eye(4), seed=3))
    drawn = made.sample(np.tile([0.4, -0.3, 0, 0], (20_000, 1)), seed=0)
    shares = [(drawn == name).mean() for name in made.space.action_names]
    np.testing.assert_allclose(shares, made.probabilities([0.4, -0.3, 0, 0])[0], atol=0.02)
    np.testing.assert_allclose(
        made.log_probability([0.4, -0.3, 0, 0], "turn"), np.log(made.probabilities([0.4, -0.3, 0, 0])[0, 1])
    )


def test_its_density_is_the_normal_one():
    sample = amounts()
    made = policyspace.clone(sample, compare=False)
    mean = made.mean_action(sample.features)
    law = [multivariate_normal(m, made.space.covariance).logpdf(a) for m, a in zip(mean, sample.actions, strict=True)]
    np.testing.assert_allclose(made.log_probability(sample.features, sample.actions), law)


def test_a_clone_plays_and_is_asked(tmp_path):
    """A cart-pole driver with a copied, useless input of its own: the clone balances as long, and never reacts to it."""
    chance = np.random.default_rng(0)

    def driver(seen):
        return int(chance.random() < 1 / (1 + np.exp(-(20 * seen[2] + 6 * seen[3]))))

    names = ["position", "velocity", "angle", "angular_velocity"]
    log = policyspace.watch("CartPole-v1", driver, episodes=8, features=names)
    made = policyspace.clone(log, compare=False)
    assert made.support == ("angle", "angular_velocity")
    saved = made.save(tmp_path / "policy.npz")
    played = policyspace.watch("CartPole-v1", saved, episodes=6, seed=1)
    assert played.num_rows / 6 > 300  # a driver at random balances for 22 steps
    answer = policyspace.ask(made, "CartPole-v1", episodes=2)
    assert answer.selected == ("angle", "angular_velocity") and answer.never == ("position", "velocity")
    with pytest.raises(InputError, match="no action of Discrete"):
        policyspace.asking.as_agent(policyspace.clone(labels(), compare=False), "CartPole-v1")


def test_categories_are_seen_as_the_environment_shows_them():
    env = gymnasium.make("FrozenLake-v1")
    chance = np.random.default_rng(0)
    log = policyspace.watch(env, lambda cell: int(chance.integers(2)) + 2 * (cell in (1, 2, 3)), episodes=60)
    made = policyspace.clone(log, compare=False, answer=["observation"], penalty=0.1)
    row = log.features[np.argmax(log.features[:, log.names.index("observation=2")])]
    agent = policyspace.asking.as_agent(made, env)
    np.testing.assert_allclose(agent.law(np.array([2]))[0].probabilities[0][0], made.probabilities(row)[0])
    assert made.predict(np.int64(2), deterministic=True)[0] in (2, 3)


# -- Files.


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize(
    "sample, policy", [(labels(), None), (amounts(), None), (counts(), "poisson"), (trips(), CHOICE)],
    ids=["softmax", "gaussian", "poisson", "choice"],
)  # fmt: skip
def test_a_saved_clone_is_the_same(tmp_path, suffix, sample, policy):
    made = policyspace.clone(sample, policy=policy, answer="all", penalty=1.0, compare=False)
    read = policyspace.load_clone(made.save(tmp_path / f"policy{suffix}"))
    assert read.to_dict() == made.to_dict()
    actions = sample.action_type.decode(sample.actions)
    np.testing.assert_array_equal(
        read.log_probability(sample.features, actions), made.log_probability(sample.features, actions)
    )
    read.set_random_seed(5), made.set_random_seed(5)
    np.testing.assert_array_equal(read.predict(sample.features)[0], made.predict(sample.features)[0])


def test_files_hold_numbers_and_json_alone(tmp_path):
    made = policyspace.clone(labels(), answer="all", penalty=1.0, compare=False)
    with np.load(made.save(tmp_path / "policy.npz"), allow_pickle=False) as archive:
        assert json.loads(str(archive["header"]))["support"] == NAMES
        np.testing.assert_array_equal(archive["theta"], made.policy.theta)
    content = made.save(tmp_path / "policy.safetensors").read_bytes()
    size = int.from_bytes(content[:8], "little")
    table = json.loads(content[8 : 8 + size])
    start, stop = table["theta"]["data_offsets"]
    np.testing.assert_array_equal(np.frombuffer(content[8 + size :][start:stop], "<f8"), made.policy.theta)
    assert len(content) == 8 + size + table["fixed"]["data_offsets"][1]


def test_the_library_safetensors_reads_them(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    made = policyspace.clone(labels(), answer="all", penalty=1.0, compare=False)
    np.testing.assert_array_equal(numpy.load_file(made.save(tmp_path / "p.safetensors"))["theta"], made.policy.theta)


@pytest.mark.parametrize(
    "sample, words",
    [(labels(), {}), (amounts(), {}), (counts(), {"policy": "poisson"}), (trips(), {"policy": CHOICE}),
     (labels(), {"policy": "network", "hidden": (3,)}), (amounts(), {"policy": "network", "hidden": (3, 2)})],
    ids=["softmax", "gaussian", "poisson", "choice", "softmax-network", "gaussian-network"],
)  # fmt: skip
def test_onnx_gives_the_same_probabilities_and_means(tmp_path, sample, words):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    made = policyspace.clone(sample, **words, answer="all", penalty=1.0, compare=False)
    session = runtime.InferenceSession(str(made.to_onnx(tmp_path / "policy.onnx")))
    (found,) = session.run(None, {"observation": sample.features.astype(np.float32)})
    wanted = made.mean_action if made.space.action_type.num_labels is None else made.probabilities
    np.testing.assert_allclose(found, wanted(sample.features), rtol=2e-4, atol=2e-5)


def test_damaged_files_are_refused_in_a_sentence(tmp_path):
    made = policyspace.clone(labels(), answer="all", penalty=1.0, compare=False)
    for suffix in (".npz", ".safetensors"):
        path = made.save(tmp_path / f"policy{suffix}")
        whole = path.read_bytes()
        for cut in (3, 9, len(whole) // 2, len(whole) - 4):
            path.write_bytes(whole[:cut])
            with pytest.raises(InputError):
                policyspace.load_clone(path)
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(InputError, match="expected a clone"):
        policyspace.load_clone(tmp_path / "other.npz")
    with pytest.raises(InputError, match=r"\.npz or \.safetensors"):
        made.save(tmp_path / "policy.pkl")


# -- Held-out episodes.


def test_folds_hold_whole_episodes():
    sample = labels()
    folds = episode_folds(sample, 5, seed=0)
    assert all(len(set(folds[sample.episodes == e])) == 1 for e in range(sample.num_episodes))
    assert sorted(np.bincount(folds)) == [60] * 5


def test_the_loss_of_the_clone_is_that_of_fits_that_have_not_seen_the_fold():
    """With a penalty and a space that are given, nothing is chosen: the folds by hand."""
    sample = labels()
    made = policyspace.clone(sample, answer=["left", "right"], penalty=2.0, seed=4)
    space, folds = bound(sample), episode_folds(sample, 5, seed=4)
    total = 0.0
    for fold in range(5):
        train, test = sample.take(folds != fold), sample.take(folds == fold)
        policy = penalised(policyspace.likelihood_of(space, train), frozenset({0, 1, 2}), 2.0)
        total -= policy.log_probs(test.features, test.actions).sum()
    assert made.losses[0].loss == pytest.approx(total / sample.num_rows, rel=1e-9)
    assert made.losses[0].support == ("left", "right") and made.losses[0].more == 0.0
    null = made.losses[-1]
    assert null.name == "no features" and null.loss > made.losses[0].loss + 5 * null.error


def test_the_identified_space_and_the_ridge_come_nearer_to_the_agent():
    """Mean divergence from the true policy over fresh agents, 8 of whose 12 features are unused."""
    rng, losses = np.random.default_rng(1), {"clone": [], "all, ridge": [], "all, none": []}
    for _ in range(12):
        states = rng.normal(size=(240, 12))
        weights = np.zeros(12)
        weights[rng.choice(12, 4, replace=False)] = rng.choice([-1.2, 1.2], 4)
        p = 1 / (1 + np.exp(-states @ weights))
        actions = (rng.random(240) < p).astype(int)
        fresh = rng.normal(size=(4000, 12))
        truth = 1 / (1 + np.exp(-fresh @ weights))
        for name, words in (
            ("clone", {}),
            ("all, ridge", {"answer": "all"}),
            ("all, none", {"answer": "all", "penalty": 1e-6}),
        ):
            made = policyspace.clone(states, actions, compare=False, **words)
            q = np.clip(made.probabilities(fresh)[:, 1], 1e-12, 1 - 1e-12)
            losses[name].append(np.mean(truth * np.log(truth / q) + (1 - truth) * np.log((1 - truth) / (1 - q))))
    means = {name: np.mean(found) for name, found in losses.items()}
    assert means["clone"] < 0.75 * means["all, ridge"] < 0.9 * means["all, none"], means


# -- Sentences.


@pytest.mark.parametrize(
    "words, sentence",
    [
        ({"answer": ["lidar"]}, "the answer is about 'lidar', which is no feature"),
        ({"answer": []}, "no feature to be used, so there is nothing to clone"),
        ({"answer": 3}, "an identified space is an answer"),
        ({"penalty": 0}, "the penalty must be a number above 0"),
        ({"penalty": 10**400}, "the penalty must be a number above 0"),
        ({"penalty": True}, "the penalty must be a number above 0"),
        ({"folds": 1}, "folds must be a whole number of at least 2"),
        ({"policy": "any"}, "a clone needs a policy with weights"),
        ({"seed": -1}, "the seed must be"),
    ],
)
def test_what_cannot_be_cloned(words, sentence):
    with pytest.raises(InputError, match=sentence):
        policyspace.clone(labels(), **words)


@pytest.mark.parametrize("sample, words", [(labels(), {}), (amounts(), {}), (counts(), {"policy": "poisson"})])
def test_a_huge_penalty_leaves_the_constants_alone(sample, words):
    made = policyspace.clone(sample, answer="all", penalty=10**30, compare=False, **words)
    states = np.random.default_rng(0).normal(size=(5, len(sample.names)))
    if words or made.space.action_type.num_labels is None:
        np.testing.assert_allclose(made.mean_action(states), np.tile(sample.actions.mean(axis=0), (5, 1)), rtol=1e-6)
    else:
        shares = np.bincount(sample.actions) / sample.num_rows
        np.testing.assert_allclose(made.probabilities(states), np.tile(shares, (5, 1)), rtol=1e-5)


def test_an_agent_that_uses_nothing_is_not_cloned():
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="shows no feature to be used"):
        policyspace.clone(rng.normal(size=(200, 3)), rng.normal(size=200))
    one = policyspace.Sample.from_arrays(rng.normal(size=(50, 2)), rng.integers(2, size=50), episodes=np.zeros(50))
    with pytest.raises(InputError, match="at least two episodes"):
        policyspace.clone(one, answer=["x0"])


def test_states_and_actions_that_do_not_fit():
    made = policyspace.clone(labels(), compare=False)
    with pytest.raises(InputError, match="a state has the 4 inputs left"):
        made.predict([1.0, 2.0])
    with pytest.raises(InputError, match="the action 'jump'"):
        made.log_probability([0, 0, 0, 0], "jump")


# -- What an answer says.


def test_spaces_come_from_every_kind_of_answer(tmp_path):
    answer = policyspace.identify(labels(), rule="combinatorial")
    assert IdentifiedSpace.of(answer).union == ("left", "right")
    (tmp_path / "answer.json").write_text(answer.to_json())
    assert IdentifiedSpace.of(tmp_path / "answer.json").supports == (("left", "right"),)
    asked = policyspace.ask(lambda seen: int(seen[2] + seen[3] > 0), "CartPole-v1", episodes=2)
    assert (
        IdentifiedSpace.of(asked).union
        == IdentifiedSpace.of(json.loads(asked.to_json())).union
        == ("angle", "angular_velocity")
    )
    several = IdentifiedSpace.of({"supports": [["a", "b"], ["a", "c"]]})
    assert (several.selected, several.undecided) == (("a",), ("b", "c"))
    with pytest.raises(InputError, match="expected an answer"):
        IdentifiedSpace.of({"supports": "left"})


# -- The command.


def a_driver(monkeypatch, capsys):
    run(monkeypatch, capsys, "demo")
    Path("policyspace-demo.csv").rename("drives.csv")


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["policyspace", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    printed = capsys.readouterr()
    return stop.value.code, printed.out, printed.err


def test_the_command_clones_and_saves(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    a_driver(monkeypatch, capsys)
    saved = ["--out", "p.npz", "--report", "p.html", "--plot", "p.svg", "--json", "p.json"]
    code, out, _ = run(monkeypatch, capsys, "clone", "drives.csv", *saved)
    assert code == 0 and out.startswith("The clone uses speed, front_sensor and left_sensor")
    assert policyspace.load_clone("p.npz").to_dict() == json.loads((tmp_path / "p.json").read_text())
    assert "<svg" in (tmp_path / "p.html").read_text() and (tmp_path / "p.svg").stat().st_size > 1000
    code, out, _ = run(monkeypatch, capsys, "clone", "drives.csv", "--from", "speed", "--no-compare", "--penalty", "1")
    assert code == 0 and "not front_sensor" in out


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["--from", "radio", "--penalty", "1"], "the answer is about 'radio'"),
        (["--from", "speed", "--all-features"], "both: leave one out"),
        (["--out", "p.pkl"], "must end in one of"),
        (["--from", "missing.json"], "missing.json"),
    ],
)
def test_the_command_refuses_in_a_sentence(tmp_path, monkeypatch, capsys, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    a_driver(monkeypatch, capsys)
    code, _, err = run(monkeypatch, capsys, "clone", "drives.csv", *arguments)
    assert code == 2 and sentence in err and err.count("\n") == 1
