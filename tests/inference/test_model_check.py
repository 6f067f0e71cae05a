"""What the check sees, what it lets pass, and what an answer may promise after it."""

import numpy as np
import pytest
from scipy import optimize, stats

import policyspace
from policyspace import GaussianLinear, Sample, SoftmaxLinear, likelihood_of
from policyspace.answer import Grade, Reason
from policyspace.inference import check_model
from policyspace.inference.diagnostics import count_label_runs
from policyspace.inference.lean.scores import score_p

NAMES = ("near", "far", "idle")


def drawn(seed, n=600, episode=20):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(n, 3)), np.arange(n) // episode


def checked(features, actions, episodes=None, space=None, subjects=None):
    data = Sample.from_arrays(features, actions, NAMES, episodes=episodes)
    data = Sample(data.features, data.actions, NAMES, data.action_names, data.episodes, subjects=subjects)
    space = space or (SoftmaxLinear if data.discrete else GaussianLinear)(NAMES, data.action_names)
    return check_model(likelihood_of(space, data), data)


def held(check):
    return {a.name: {"held": True, "violated": False, "unchecked": None}[a.status] for a in check.assumptions}


def autoregressive(rng, n, share=0.9):
    noise = rng.normal(size=n)
    for t in range(1, n):
        noise[t] += share * noise[t - 1]
    return noise


def test_the_score_test_is_hotellings():
    scores = np.random.default_rng(0).normal(0.05, 1.0, (200, 3))
    mean, n, m = scores.mean(axis=0), 200, 3
    t2 = n * mean @ np.linalg.solve(np.cov(scores, rowvar=False), mean)
    assert score_p(scores, np.ones(200)) == pytest.approx(stats.f.sf(t2 * (n - m) / (m * (n - 1)), m, n - m), rel=1e-9)


@pytest.mark.parametrize("family", ["gaussian", "boltzmann"])
def test_a_right_space_passes_as_often_as_its_levels_say(family):
    """Three assumptions at .05, .02 and .02: of 60 right spaces no more are doubted than chance allows (1 in 1000)."""
    doubted = 0
    for seed in range(60):
        rng, x, episodes = drawn(seed, 400)
        eta = x @ [0.8, -0.5, 0.0]
        a = (
            eta + rng.normal(size=400)
            if family == "gaussian"
            else np.where(rng.random(400) < 1 / (1 + np.exp(-eta)), "go", "no")
        )
        doubted += any(value is False for value in held(checked(x, a, episodes)).values())
    assert doubted <= stats.binom.isf(0.001, 60, 0.09)


def test_curvature_is_seen_in_numbers_and_labels():
    rng, x, episodes = drawn(1)
    eta = x[:, 0] + 0.7 * x[:, 0] ** 2
    assert held(checked(x, eta + rng.normal(size=600), episodes))["form"] is False
    labels = (rng.random(600) < 1 / (1 + np.exp(-1.5 * (eta - 0.7)))).astype(int)
    assert held(checked(x, labels, episodes))["form"] is False


def test_a_product_of_inputs_is_seen():
    rng, x, episodes = drawn(2, 1500)
    assert held(checked(x, x[:, 0] * x[:, 1] + rng.normal(size=1500), episodes))["form"] is False


def test_noise_that_depends_on_the_state_or_is_not_as_given_is_seen():
    rng, x, episodes = drawn(3)
    found = held(checked(x, x[:, 0] + (0.3 + x[:, 1] ** 2) * rng.normal(size=600), episodes))
    assert found["noise"] is False
    wrong = GaussianLinear(NAMES, ("action_0",), 0.5)
    data = Sample(x, x[:, :1] + rng.normal(size=(600, 1)), NAMES, ("action_0",))
    assert held(check_model(likelihood_of(wrong, data), data))["noise"] is False
    right = GaussianLinear(NAMES, ("action_0",), 1.0)
    assert held(check_model(likelihood_of(right, data), data))["noise"] is True


@pytest.mark.parametrize("episodes", [True, False])
def test_rows_that_depend_on_each_other_are_seen(episodes):
    rng, x, labels = drawn(4)
    habit = x[:, 0] + autoregressive(rng, 600, 0.6)
    assert held(checked(x, habit, labels if episodes else None))["independent rows"] is False
    own_level = x[:, 0] + rng.normal(size=30)[labels] + rng.normal(size=600)
    assert held(checked(x, own_level, labels))["independent rows"] is False


def test_subjects_with_slopes_of_their_own_are_seen():
    rng, x, episodes = drawn(5)
    subjects = np.arange(600) // 20
    slopes = 0.5 + rng.normal(size=30)[subjects]
    actions = x[:, 0] * slopes + rng.normal(size=600)
    assert held(checked(x, actions, episodes, subjects=subjects))["independent rows"] is False


def footsteps(seed, episodes=10, length=50):
    """An input that is the sum of the agent's own actions, and is not used."""
    rng = np.random.default_rng(seed)
    n = episodes * length
    x, label = rng.normal(size=(n, 3)), np.repeat(np.arange(episodes), length)
    actions = 0.3 * x[:, 0] + rng.normal(size=n)
    for e in range(episodes):
        mine = label == e
        x[mine, 2] = np.concatenate([[0.0], np.cumsum(actions[mine])[:-1]])
    return x, actions, label


def test_an_input_made_of_the_agents_own_noise_is_seen_and_nothing_else():
    x, actions, episodes = footsteps(0)
    assert checked(x, actions, episodes).fed_back == {2}
    x[:, 2] = autoregressive(np.random.default_rng(0), len(x))
    assert checked(x, actions, episodes).fed_back == frozenset()


def test_nothing_is_promised_of_a_doubtful_selection_of_such_an_input():
    false, unpromised = 0, 0
    for seed in range(100):
        x, actions, episodes = footsteps(seed)
        answer = policyspace.identify(x, actions, features=NAMES, episodes=episodes, test="wilks")
        if {"far", "idle"} & set(answer.selected):
            false += 1
            unpromised += answer.guarantee is None
    assert false >= 5 and false - unpromised <= 5  # what is wrong by more than chance comes without a promise


def test_what_was_asked_for_is_obeyed_without_a_promise():
    rng, x, episodes = drawn(6)
    bent = x[:, 0] + x[:, 0] ** 2 + rng.normal(size=600)
    asked = policyspace.identify(x, bent, features=NAMES, episodes=episodes, test="wilks")
    assert asked.test.name == "wilks" and asked.guarantee is None and "use the test 'lean'" in str(asked)
    assert asked.sentence.startswith("The log suggests that the agent uses 1 of 3: near") and "MDE" not in str(asked)
    chosen = policyspace.identify(x, bent, features=NAMES, episodes=episodes)
    assert chosen.test.name == "lean" and chosen.test.reason.reason is Reason.NO_SPACE_STATED
    assert chosen.sentence.startswith("The agent uses 1 of 3: near")
    assert chosen.selected == ("near",) and chosen.grade is Grade.MODEL_FREE and asked.grade is Grade.SUGGESTED


def test_a_stated_space_keeps_its_test_and_the_answer_says_what_the_data_contradict():
    rng, x, episodes = drawn(6)
    bent = x[:, 0] + x[:, 0] ** 2 + rng.normal(size=600)
    for said in ({"policy": "gaussian"}, {"covariance": 1.0}, {"policy": GaussianLinear()}):
        answer = policyspace.identify(x, bent, features=NAMES, episodes=episodes, **said)
        assert answer.test.name == "wilks" and answer.test.reason.reason is Reason.SPACE_STATED
        assert answer.grade is Grade.MODEL_BASED and answer.guarantee.violated[0] == "form"
        assert "Model checks: the data contradict form" in answer.guarantee.text
        assert any("contradict the stated policy space" in warning for warning in answer.warnings)


def test_the_promise_names_its_test_and_its_assumptions():
    rng, x, episodes = drawn(7)
    actions = x[:, 0] + rng.normal(size=600)
    free = policyspace.identify(x, actions, features=NAMES, episodes=episodes)
    assert free.guarantee.text == (
        "P(any false 'used') ≤ 5 % (lean test, Holm), assuming independent score contributions of the rows, sufficiently "
        "flexible regressions, a large sample and that every cause of the action that is related to these inputs is logged."
    )
    answer = policyspace.identify(x, actions, features=NAMES, episodes=episodes, policy="gaussian")
    assert answer.test.name == "wilks"
    assert answer.guarantee.text == (
        "P(any false 'used') ≤ 5 % (likelihood-ratio test, Holm), assuming a linear Gaussian policy and conditionally "
        "independent rows. Model checks: passed."
    )
    found = answer.to_dict()
    assert found["guarantee"]["text"] == answer.guarantee.text and found["guarantee"]["grade"] == "model-based"
    assert found["clusters"] == {"kind": "rows", "count": 600, "block_length": None}
    assert found["data"]["excluded_columns"] == [] and found["test"]["reason"]["reason"] == "space_stated"
    assert {a["name"] for a in found["assumptions"]} >= {"form", "noise", "independent rows", "no feedback"}


def test_separated_data_are_decided_by_firth_and_said_to_be_unchecked():
    _, x, _ = drawn(8, 80)
    answer = policyspace.identify(x, np.where(x[:, 0] > 0, "go", "no"), features=NAMES, policy="boltzmann")
    assert answer.test.name == "firth" and answer.selected == ("near",) and answer.guarantee.checked is False


def alarmed(seed, kind):
    """An alarm makes the agent stop always, which separates one label; else it goes left or right, by `kind`."""
    rng, x, episodes = drawn(seed)
    x[:, 1] = rng.random(600) < 0.15
    if kind == "curved":
        x[:, 2] = x[:, 0] ** 2 + 0.5 * rng.normal(size=600)
    chance = 1 / (1 + np.exp(-(3 * (x[:, 0] ** 2 - 1) if kind == "curved" else x[:, 0])))
    right = rng.random(600) < chance
    if kind == "held":
        right = right[np.arange(600) // 5 * 5]
    return x, np.where(x[:, 1] > 0, "stop", np.where(right, "right", "left")), episodes


@pytest.mark.parametrize(("kind", "broken"), [("curved", "form"), ("held", "independent rows")])
def test_labels_that_are_separated_in_part_are_checked_in_the_rows_that_are_not(kind, broken):
    for seed in range(5):
        x, actions, episodes = alarmed(seed, kind)
        assert held(checked(x, actions, episodes))[broken] is False
        answer = policyspace.identify(x, actions, features=NAMES, episodes=episodes)
        assert answer.fit.separated and answer.test.name == "lean" and "idle" not in answer.selected


def test_a_right_space_whose_labels_are_separated_in_part_passes():
    passed = [not checked(*alarmed(seed, "linear")).broken(("form", "independent rows")) for seed in range(60)]
    assert sum(passed) >= stats.binom.ppf(0.001, 60, 0.93)  # levels of .05 and .02
    x, actions, episodes = alarmed(3, "linear")
    answer = policyspace.identify(x, actions, features=NAMES, episodes=episodes, policy="boltzmann")
    assert answer.test.name == "firth" and answer.guarantee.checked


def test_a_greedy_agent_of_no_stated_space_is_only_suggested():
    """The lean test tells misfit from chance by nothing: the model's answer is shown, without a guarantee."""
    rng = np.random.default_rng(0)
    x, episodes = np.stack([autoregressive(rng, 1000, 0.97) for _ in range(3)], axis=1), np.arange(1000) // 50
    greedy = np.where(x[:, 0] - 0.5 * x[:, 1] > 0, "go", "no")
    answer = policyspace.identify(x, greedy, features=NAMES, episodes=episodes)
    assert answer.test.name == "firth" and answer.grade is Grade.SUGGESTED and answer.guarantee is None
    assert answer.no_guarantee[0].reason is Reason.NO_CHANCE and answer.sentence.startswith("The log suggests")
    stated = policyspace.identify(x, greedy, features=NAMES, episodes=episodes, policy="boltzmann")
    assert stated.test.name == "firth" and stated.grade is Grade.MODEL_BASED


def test_actions_that_hardly_change_may_be_told_apart_by_chance():
    """One action an episode, by a coin, and inputs that stay the same in it: 8 points, and 4 columns with the constant."""
    rng = np.random.default_rng(0)
    checks = []
    for _ in range(40):
        x, coin = np.repeat(rng.normal(size=(8, 3)), 25, axis=0), np.repeat([0, 1, *rng.integers(2, size=6)], 25)
        data = Sample.from_arrays(x, coin, NAMES, episodes=np.arange(200) // 25)
        likelihood = likelihood_of(SoftmaxLinear(NAMES, data.action_names), data)
        if likelihood.full.separated:
            checks.append(held(check_model(likelihood, data))["independent rows"])
    assert len(checks) > 10 and not any(found is not False for found in checks)


def test_the_chance_of_telling_stretches_apart_is_covers():
    """Shares of random dichotomies of N points in general position that a linear rule makes, by linear programmes."""
    rng = np.random.default_rng(1)
    num, columns, hits = 8, 4, 0
    for _ in range(300):
        x = np.column_stack([np.ones(num), rng.normal(size=(num, columns - 1))])
        signs = rng.choice([-1.0, 1.0], size=num)
        found = optimize.linprog(np.zeros(columns), A_ub=-signs[:, None] * x, b_ub=-np.ones(num), bounds=(None, None))
        hits += found.status == 0
    stretches, p = count_label_runs(np.repeat([0, 1] * 4, 10), np.repeat(np.arange(8), 10), columns)
    assert stretches == 8 and p == pytest.approx(0.5)
    assert abs(hits / 300 - p) < 3.3 * np.sqrt(p * (1 - p) / 300)
    assert count_label_runs(np.arange(80) % 2, np.zeros(80, int), columns)[1] == 0.0  # it changes all the time


def test_the_behavioural_effect_of_a_linear_agent_is_its_closed_form():
    """a = βx + noise with independent normal inputs: E|βx|/sd(a) = β√(2/π)/√(β² + σ²)."""
    rng = np.random.default_rng(9)
    x = rng.normal(size=(40_000, 2))
    answer = policyspace.identify(x, 0.6 * x[:, 0] + 0.8 * rng.normal(size=40_000), features=("a", "b"), test="wilks")
    assert answer.groups[0].action_effect == pytest.approx(0.6 * np.sqrt(2 / np.pi), abs=0.02)
    assert answer.groups[1].action_effect < 0.02


def test_the_behavioural_effect_of_labels_is_the_share_of_decisions_that_change():
    rng = np.random.default_rng(10)
    x = rng.normal(size=(20_000, 2))
    p = 1 / (1 + np.exp(-2.0 * x[:, 0]))
    answer = policyspace.identify(x, (rng.random(20_000) < p).astype(int), features=("a", "b"), test="wilks")
    assert answer.groups[0].action_effect == pytest.approx(np.abs(p - 0.5).mean(), abs=0.02)


def test_rows_that_are_sorted_are_told_apart_from_habit():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((400, 3))
    played = features[:, 0] + rng.logistic(size=400) > 0
    order = np.argsort(played, kind="stable")
    actions = np.where(played, "left", "right")
    answer = policyspace.identify(features[order], actions[order], exchangeable=False)
    assert "sorted by action: if their order means nothing, say so" in str(answer)
    assert "--lags" not in str(answer)
    shuffled = rng.permutation(400)
    assert "order means nothing" not in str(policyspace.identify(features[shuffled], actions[shuffled]))


def test_counts_are_checked_as_repeated_rows_and_ones_are_no_weights():
    """A table of a curved agent in twelve states: its counts show the curve as the rows themselves do."""
    rng = np.random.default_rng(3)
    x = np.repeat(np.linspace(-2, 2, 12), 50)[:, None]
    curved = (rng.random(600) < 1 / (1 + np.exp(-2 * (x[:, 0] ** 2 - 1)))).astype(int)
    cells, counts = np.unique(np.column_stack([x, curved]), axis=0, return_counts=True)
    answer = policyspace.identify(cells[:, :1], cells[:, 1].astype(int), features=["x"], weights=counts)
    found = {one.name: one.status for one in answer.assumptions}
    assert (found["form"], found["independent rows"]) == ("violated", "unchecked") and answer.guarantee is None
    rng, x, episodes = drawn(7)
    actions = x[:, 0] + rng.normal(size=600)
    ones = policyspace.identify(x, actions, features=NAMES, episodes=episodes, weights=np.ones(600))
    plain = policyspace.identify(x, actions, features=NAMES, episodes=episodes)
    assert ones.groups == plain.groups and ones.guarantee == plain.guarantee
