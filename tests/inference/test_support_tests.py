"""Tests that hold where Wilks fails: each against its definition by hand, and all of them on data with a known answer."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from policyspace import (
    GaussianLinear,
    GaussianNetwork,
    InputError,
    Sample,
    SoftmaxLinear,
    TestResult,
    identify,
    likelihood_of,
)
from policyspace.answer import Note, Reason
from policyspace.inference import (
    Bootstrap,
    MixtureTest,
    SupportTest,
    TestChoice,
    TestOptions,
    UniversalTest,
    choose,
    each_group_alone,
    search_supports,
)
from policyspace.inference.e_values import halves, log_mixture
from policyspace.inference.lean.rows import fewest_rows
from policyspace.inference.parametric import FEW, gamma_tail

NAMES = ("near", "far", "idle")
ALL_TESTS = ("wilks", "bootstrap", "universal", "eprocess", "mixture")


def choices(n=800, seed=0, weights=(1.5, -1.2, 0.0), episode=20):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 3))
    actions = (rng.random(n) < 1 / (1 + np.exp(-features @ np.array(weights)))).astype(int)
    return Sample(features, actions, NAMES, ("no", "yes"), np.arange(n) // episode)


def amounts(n=400, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 3))
    actions = np.tanh(features[:, :2] @ [[1.0, 0.5], [0.3, -1.0]]) + 0.3 * rng.normal(size=(n, 2))
    return Sample(features, actions, NAMES, ("gas", "wheel"), np.arange(n) // 20)


def linear(data):
    return SoftmaxLinear(data.names, data.action_names)


# -- what bets and simulations start from --------------------------------------------------------------------------


def test_the_ridge_fit_is_the_penalised_optimum():
    data = choices(200)
    likelihood = likelihood_of(linear(data), data)
    policy = likelihood.penalised_policy()
    scale, mean = data.features.std(axis=0), data.features.mean(axis=0)
    weights = policy.space.weights(policy.theta)[0]
    inner = weights[1:] * scale
    p = 1 / (1 + np.exp(-(weights[0] + data.features @ weights[1:])))
    played = data.actions == 0  # the last action is the reference
    slope = ((played - p) @ ((data.features - mean) / scale)) - inner / 2.5**2  # the prior's
    np.testing.assert_allclose(slope, 0.0, atol=1e-4)


def test_the_ridge_fit_is_finite_under_separation():
    features = np.linspace(-1, 1, 40)[:, None]
    data = Sample(features, (features[:, 0] > 0).astype(int), ("x",), ("no", "yes"))
    likelihood = likelihood_of(linear(data), data)
    assert likelihood.full.separated
    assert np.abs(likelihood.penalised_policy().theta).max() < 50


def test_an_estimated_covariance_becomes_part_of_the_policy():
    data = amounts()
    likelihood = likelihood_of(GaussianLinear(data.names, data.action_names), data)
    policy = likelihood.penalised_policy()
    design = np.column_stack([np.ones(data.num_rows), data.features])
    beta, *_ = np.linalg.lstsq(design, data.actions, rcond=None)
    residual = data.actions - design @ beta
    expected = stats.multivariate_normal(cov=residual.T @ residual / (data.num_rows - 4)).logpdf(residual)
    np.testing.assert_allclose(policy.log_probs(data.features, data.actions), expected, rtol=1e-8)


# -- universal inference -------------------------------------------------------------------------------------------


def test_halves_are_whole_episodes():
    data = choices(630)
    first, second = halves(data, seed=3)
    assert sorted([*first, *second]) == list(range(630))
    assert not set(data.episodes[first]) & set(data.episodes[second])
    assert abs(len(first) - len(second)) <= 40


def test_the_e_value_is_its_definition():
    data = choices(200)
    space = linear(data)
    local = UniversalTest(likelihood_of(space, data), data)
    support = space.full_support - {3}
    total = 0.0
    for here, there in itertools.permutations(local.halves):
        bettors = likelihood_of(space, _some(data, there)).prior_predictive_policies()
        best = likelihood_of(space, _some(data, here)).fit(support).log_likelihood
        each = [p.log_probs(data.features[here], data.actions[here]).sum() for p in bettors]
        total += np.mean([math.exp(bet - best) for bet in each]) / 2
    test = local.test_many([support])[0]
    assert test.statistic == pytest.approx(2 * math.log(total), abs=1e-6)
    assert test.p_value == pytest.approx(min(1.0, 1 / total), rel=1e-6)


def test_smaller_supports_have_larger_e_values():
    data = choices(300)
    space = linear(data)
    local = UniversalTest(likelihood_of(space, data), data)
    supports = [frozenset({0, *c}) for r in range(4) for c in itertools.combinations((1, 2, 3), r)]
    values = dict(zip(supports, local.log_e(supports), strict=True))
    assert all(values[a] >= values[b] - 1e-9 for a in supports for b in supports if a <= b)


def test_halves_too_small_to_fit_are_said_so():
    data = choices(7, episode=1)
    space = linear(data)
    with pytest.raises(InputError, match="two halves that can both be fitted"):
        UniversalTest(likelihood_of(space, data), data).test_many([space.full_support - {1}])[0]


def gaussian_agent(seed, size, weights=(0.5, 0.3, 0.0, 0.15)):
    """A linear Gaussian agent, whose likelihood has one peak: brute force is exact."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(size, 4))
    actions = (features @ np.array(weights))[:, None] + rng.normal(size=(size, 1))
    data = Sample(features, actions, tuple("abcd"), ("push",), np.arange(size) // 5)
    return likelihood_of(GaussianLinear(tuple("abcd"), ("push",), 1.0), data), data


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [40, 150, 600])
def test_as_few_searches_decide_the_same_as_all(seed, size):
    likelihood, data = gaussian_agent(seed, size)
    space, exact = likelihood.space, UniversalTest(likelihood, data, 0.1, seed)
    rest = space.full_support - set(space.tested)
    everything = [frozenset(s) | rest for r in range(5) for s in itertools.combinations(space.tested, r)]
    accepted = [s for s in everything if exact.log_e([s])[0] < np.log(10.0)]
    brute = {s for s in accepted if not any(t < s for t in accepted)}
    assert set(search_supports(UniversalTest(likelihood, data, 0.1, seed), 0.1).supports) == brute
    alone = {g for g in space.tested if exact.log_e([space.full_support - {g}])[0] >= np.log(10.0)}
    assert each_group_alone(UniversalTest(likelihood, data, 0.1, seed), 0.1).supports == [alone]


@pytest.mark.parametrize("seed", range(4))
def test_the_evidence_is_bounded_on_the_side_of_its_verdict(seed):
    """One half may be enough to reject: what is then said of E is no more than E, and no less than the threshold."""
    likelihood, data = gaussian_agent(seed, 150)
    space = likelihood.space
    local, exact = (UniversalTest(likelihood, data, 0.1, seed) for _ in range(2))
    critical = local.law.critical(0.1, 1)
    supports = [space.full_support - {g} for g in space.tested]
    lower, upper = local.bound_statistics(supports, np.full(4, critical))
    truth = 2 * exact.log_e(supports)
    assert truth[0] > critical
    for low, high, value in zip(lower, upper, truth, strict=True):
        assert (low > critical) == (value > critical) and low <= value + 1e-9 and value <= high + 1e-9
        if value > critical:
            assert value - low <= 2 * np.log(2.0) + 1e-9


# -- bootstrap -----------------------------------------------------------------------------------------------------


def test_the_bootstrap_p_value_agrees_with_the_exact_law():
    """A Gaussian policy of known covariance has λ ~ χ² exactly: p within six standard errors of it."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(60, 3))
    actions = features[:, :1] + rng.normal(size=(60, 1))
    data = Sample(features, actions, NAMES, ("gas",))
    space = GaussianLinear(NAMES, ("gas",), covariance=1.0)
    likelihood = likelihood_of(space, data)
    local = Bootstrap(likelihood, data, level=0.9, num_simulations=999)
    support = space.full_support - {2}
    exact = stats.chi2.sf(2 * (likelihood.full.log_likelihood - likelihood.fit(support).log_likelihood), 1)
    error = math.sqrt(exact * (1 - exact) / 999)
    assert abs(local.test_many([support])[0].p_value - exact) < 6 * error
    assert local.simulated[support].mean() == pytest.approx(1.0, abs=6 * math.sqrt(2 / 999))


def test_the_bootstrap_stops_early_when_the_verdict_is_clear():
    data = choices()
    space = linear(data)
    local = Bootstrap(likelihood_of(space, data), data)
    found, idle = local.test_many([space.full_support - {1}, space.full_support - {3}])
    assert found.p_value < 1e-4 and idle.p_value > 0.05
    assert max(map(len, local.simulated.values())) < 99


def test_the_gamma_tail_is_scipys():
    simulated = np.random.default_rng(0).gamma(2.0, 3.0, 500)
    mean, variance = simulated.mean(), simulated.var(ddof=1)
    law = stats.gamma(mean**2 / variance, scale=variance / mean)
    assert gamma_tail(60.0, simulated) == pytest.approx(law.sf(60.0), rel=1e-10)
    assert gamma_tail(simulated.max(), simulated) == 1.0


def test_a_networks_statistic_follows_the_same_steps_on_observed_and_simulated_actions():
    data = amounts()
    space = GaussianNetwork(NAMES, data.action_names, (3,), 0.09)
    likelihood = likelihood_of(space, data)
    support = space.full_support - {2}
    theta = likelihood.ridge(support, 0.5)
    values = [likelihood.nested_statistic(data.actions, theta, support, 0.5) for _ in range(2)]
    assert values[0] == values[1] >= 0
    rng = np.random.default_rng(0)
    null = [
        likelihood.nested_statistic(space.sample(rng, theta, data.features), theta, support, 0.5) for _ in range(10)
    ]
    assert min(null) >= 0 and np.median(null) < 30
    assert likelihood.nested_statistic(data.actions, theta, space.full_support - {0}, 0.5) > 10 * max(null)


# -- mixture -------------------------------------------------------------------------------------------------------


def test_the_mixture_of_one_parameter_is_the_integral():
    """E = ∫ exp{log-likelihood ratio at θ against 0} N(θ; 0, τ²) dθ for a quadratic log-likelihood."""
    estimate, variance, spread = 0.4, 0.02, 1.3

    def ratio(theta):
        quadratic = estimate**2 / (2 * variance) - (estimate - theta) ** 2 / (2 * variance)
        return math.exp(quadratic) * stats.norm.pdf(theta, scale=spread)

    expected = quad(ratio, -3, 3, points=[estimate])[0]
    ours = log_mixture(estimate**2 / variance, np.array([[variance]]), np.array([[spread**2]]))
    assert ours == pytest.approx(math.log(expected), abs=1e-8)


def test_the_mixture_of_several_is_below_the_exact_average():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    variance, estimate = 0.05 * root @ root.T, rng.normal(size=3)
    prior = np.cov(rng.normal(size=(3, 9)))
    statistic = estimate @ np.linalg.solve(variance, estimate)
    null, mixed = (stats.multivariate_normal(cov=c) for c in (variance, variance + prior))
    exact = mixed.logpdf(estimate) - null.logpdf(estimate)
    assert log_mixture(statistic, variance, prior) <= exact + 1e-9


def test_the_mixture_is_for_identifiable_linear_policies():
    data = amounts()
    with pytest.raises(InputError, match="linear policies"):
        MixtureTest(likelihood_of(GaussianNetwork(NAMES, data.action_names, (2,), 0.09), data))
    twice = Sample(np.column_stack([data.features[:, :2], data.features[:, 0]]), data.actions, NAMES)
    with pytest.raises(InputError, match="collinear"):
        MixtureTest(likelihood_of(GaussianLinear(NAMES, twice.action_names), twice))


# -- rules on any test ---------------------------------------------------------------------------------------------


class Table(SupportTest):
    """A test whose p-values are given."""

    name = statistic_name = "table"

    def __init__(self, space, p_values, monotone):
        self.space, self._p, self.monotone = space, p_values, monotone

    def test_many(self, supports):
        return [TestResult(support, 0.0, 1, self._p[support]) for support in supports]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("monotone", [False, True])
def test_closed_testing_finds_what_brute_force_finds(seed, monotone):
    rng = np.random.default_rng(seed)
    data = amounts()
    space = GaussianNetwork(NAMES, data.action_names, (2,), 0.09)
    rest = {i for i, g in enumerate(space.groups) if g.assumed}
    supports = [frozenset(c) | rest for r in range(4) for c in itertools.combinations(space.tested, r)]
    p = {s: float(rng.choice([0.01, 0.5])) for s in supports}
    if monotone:
        p = {s: max(p[t] for t in supports if t <= s) for s in supports}
    p[space.full_support] = 1.0
    accepted = [s for s in supports if any(p[t] > 0.05 for t in supports if t <= s)]
    minimal = {s for s in accepted if not any(t < s for t in accepted)}
    verdicts = search_supports(Table(space, p, monotone), 0.05)
    assert set(verdicts.supports) == minimal
    core = frozenset.intersection(*minimal)
    for g in space.tested:
        assert (verdicts.adjusted[g] <= 0.05) == (g in core)


# -- one argument for all ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["simplified", "combinatorial"])
@pytest.mark.parametrize("test", ALL_TESTS)
def test_every_test_finds_a_strong_agent(rule, test):
    answer = identify(choices(), rule=rule, test=test)
    assert answer.support == ("near", "far")
    assert answer.test.name == test
    # The smallest effect that would have shown is known for λ alone.
    shows = answer.groups[2].minimum_detectable_effect
    assert np.isfinite(shows) if test in ("wilks", "bootstrap") else np.isnan(shows)


@pytest.mark.parametrize("test", ["bootstrap", "universal", "eprocess"])
def test_every_test_works_with_an_estimated_covariance(test):
    assert identify(amounts(), test=test).support == ("near", "far")


@pytest.mark.parametrize("rule", ["simplified", "combinatorial"])
def test_a_stated_network_is_tested_by_universal_inference_unless_asked(rule):
    answer = identify(amounts(), policy="network", hidden=(3,), covariance=0.09, rule=rule)
    assert answer.support == ("near", "far")
    assert answer.test.name == "universal" and "no χ² distribution" in answer.test.reason.text
    free = identify(amounts(), policy="network", hidden=(3,), covariance=0.09, rule=rule, test="lean")
    assert free.support == ("near", "far") and free.test.name == "lean"
    units = identify(amounts(), policy="network", hidden=(2,), covariance=0.09, rule=rule, groups="hidden")
    assert units.test.name == "universal" and "not identifiable" in units.test.reason.text


def test_no_chi_square_verdict_where_restarts_disagree():
    answer = identify(amounts(), policy="network", hidden=(4,), covariance=0.09, test="wilks", rule="combinatorial")
    assert answer.sentence.startswith("No verdict")
    assert answer.selected == () and answer.undecided == tuple(NAMES)
    assert any("λ moves by up to" in warning for warning in answer.warnings)


def test_hidden_units_and_outputs_are_units_too():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 3))
    actions = np.column_stack([np.tanh(features @ [1.0, -1.0, 0.5]), np.zeros(400)]) + 0.3 * rng.normal(size=(400, 2))
    data = Sample(features, actions, NAMES, ("gas", "wheel"), np.arange(400) // 20)
    answer = identify(data, policy="network", hidden=(2,), covariance=0.09, groups="output", rule="combinatorial")
    assert answer.support == ("gas",)
    answer = identify(data, policy="network", hidden=(2,), covariance=0.09, groups="hidden", rule="combinatorial")
    assert sorted(answer.supports) == [("unit_0",), ("unit_1",)]  # either will do: they can trade places
    assert answer.undecided == ("unit_0", "unit_1")


def test_a_networks_unknown_noise_is_estimated():
    data = amounts(1000)
    answer = identify(data, policy="network", hidden=(3,))
    np.testing.assert_allclose(answer.policy.covariance, 0.09 * np.eye(2), atol=0.012)
    assert answer.support == ("near", "far")


def test_a_discrete_network_is_identified():
    rng = np.random.default_rng(2)
    features = rng.normal(size=(900, 3))
    drive = 3 * np.tanh(features[:, 0] * 2) * np.sign(features[:, 1])  # no linear policy sees this
    actions = (rng.random(900) < 1 / (1 + np.exp(-drive))).astype(int)
    answer = identify(features, actions, names=NAMES, policy="network", hidden=(4,))
    assert answer.support == ("near", "far")


def test_the_default_is_that_of_a_stated_space_or_needs_none():
    data, auto = choices(200), TestOptions()
    guess = linear(data).as_guess()

    def chosen_for(space, rows):
        return choose(auto, likelihood_of(space, rows), rows)

    assert chosen_for(linear(data), data) == TestChoice("wilks", Note(Reason.SPACE_STATED))
    assert chosen_for(guess, data) == TestChoice("lean", Note(Reason.NO_SPACE_STATED))
    few = data.take(np.arange(fewest_rows(3)))  # too few for regressions with products: the model's answer
    assert chosen_for(guess, few).name == "firth"
    some = data.take(np.arange(FEW * likelihood_of(guess, data).space.num_parameters))
    assert chosen_for(guess, some).reason.reason is Reason.TOO_FEW_ROWS
    likelihood = likelihood_of(linear(data), data)
    least = FEW * likelihood.space.num_parameters
    for n, chosen in ((12, "firth"), (least - 1, "firth"), (least, "wilks")):
        part = data.take(np.arange(n))
        found = likelihood_of(linear(part), part)
        assert not found.full.separated and choose(auto, found, part).name == chosen
    weighted = replace(data, weights=np.full(200, 0.5))
    assert choose(auto, likelihood_of(guess, weighted), weighted).reason.reason is Reason.ABOUT_GROUPS
    with pytest.raises(InputError, match="did you mean 'bootstrap'"):
        TestOptions(test="bootstrp")


def test_what_belongs_to_wilks_is_refused_elsewhere():
    with pytest.raises(InputError, match="paper's rule belongs to the test 'wilks'"):
        identify(choices(200), rule="combinatorial", paper_rule=True, test="universal")
    with pytest.raises(InputError, match="Firth's penalty belongs"):
        identify(choices(200), firth=True, test="bootstrap")


def test_whole_number_weights_are_counts():
    data = choices(100)
    counts = np.random.default_rng(0).integers(0, 3, 100)
    weighted = Sample(data.features, data.actions, NAMES, data.action_names, data.episodes, counts)
    rows = np.repeat(np.arange(100), counts)
    np.testing.assert_array_equal(weighted.expand_weights("it").features, data.features[rows])
    half = Sample(data.features, data.actions, NAMES, data.action_names, weights=np.full(100, 0.5))
    with pytest.raises(InputError, match="whole-number weights"):
        half.expand_weights("the bootstrap")


def test_the_same_seed_gives_the_same_answer():
    first, second = (identify(choices(300), test="bootstrap", seed=4).to_json() for _ in range(2))
    assert first == second


def _some(data, rows):
    return Sample(data.features[rows], data.actions[rows], data.names, data.action_names)


def test_few_choices_have_no_promise_by_the_law_that_is_too_liberal_for_them():
    data = choices(FEW * 4)
    answers = {n: identify(data.take(np.arange(n)), test="wilks") for n in (FEW * 4 - 1, FEW * 4)}
    few, enough = answers.values()
    assert few.guarantee is None and "39 rows are few for 4 parameters" in str(few) and enough.guarantee
    counted = replace(data.take(np.arange(FEW * 4 - 1)), weights=np.full(FEW * 4 - 1, 2.0))
    counts = identify(counted, test="wilks")
    assert "few for" not in str(counts)  # frequency weights count rows
    assert counts.guarantee is None and "decisions in one state spread" in str(counts)  # each state twice the same
    penalised = identify(data.take(np.arange(FEW * 4 - 1)), test="auto")
    assert penalised.test.name == "firth" and penalised.guarantee and penalised.warnings == ()


@pytest.mark.slow
def test_on_few_choices_the_penalised_ratio_keeps_the_level_and_the_plain_one_does_not():
    wrong = dict.fromkeys(("wilks", "firth"), 0)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        told = {"names": list("abcd"), "policy": "boltzmann"}
        features, actions = rng.normal(size=(18, 4)), (rng.random(18) < 0.5).astype(int)
        for test in wrong:
            wrong[test] += bool(identify(features, actions, test=test, **told).selected)
    assert stats.binom.sf(wrong["firth"] - 1, 200, 0.05) > 1e-3 > stats.binom.sf(wrong["wilks"] - 1, 200, 0.05)
