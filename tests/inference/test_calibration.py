"""Errors as often as promised, power as often as planned: simulated agents, fixed seeds, binomial bounds.

`make test` runs a short version; `make calibrate` the long one.
"""

import numpy as np
import pytest
from scipy import stats

from policyspace import GaussianLinear, Sample, SoftmaxLinear, likelihood_of
from policyspace.inference import WilksTest, each_group_alone, search_supports

DELTA = 0.1
TRUE = frozenset({0, 1, 2})  # the intercept and two of five features
WEIGHTS = np.array([0.3, 0.9, -0.8, 0.0, 0.0, 0.0])
NAMES = tuple(f"x{j}" for j in range(5))

lengths = pytest.mark.parametrize("length", ["short", pytest.param("long", marks=pytest.mark.slow)])


def states(rng, n):
    """Correlated features, as trajectories have."""
    x = rng.normal(size=(n, 5))
    x[:, 3] += 0.7 * x[:, 0]
    return x


def known(rng, n=60):
    x = states(rng, n)
    y = WEIGHTS[0] + x @ WEIGHTS[1:] + rng.normal(size=n)
    return GaussianLinear(NAMES, covariance=1.0), Sample.from_arrays(x, y, names=NAMES)


def estimated(rng, n=25):
    # Few rows on purpose: χ² would be far too liberal, F is exact.
    x = states(rng, n)
    y = WEIGHTS[0] + x @ (3 * WEIGHTS[1:]) + rng.normal(size=n)
    return GaussianLinear(NAMES), Sample.from_arrays(x, y, names=NAMES)


def two_estimated(rng, n=30):
    x = states(rng, n)
    noise = rng.multivariate_normal([0, 0], [[1.0, 0.7], [0.7, 2.0]], n)
    y = np.column_stack([x @ (3 * WEIGHTS[1:]), x[:, 0] - x[:, 1]]) + noise
    return GaussianLinear(NAMES, ("u", "v")), Sample.from_arrays(x, y, names=NAMES, action_names=("u", "v"))


def choosing(rng, n=500):
    x = states(rng, n)
    space = SoftmaxLinear(NAMES, ("a", "b", "c"))
    theta = np.concatenate([WEIGHTS, -0.8 * WEIGHTS])
    data = Sample.from_arrays(x, space.sample(rng, theta, x), names=NAMES, action_names=("a", "b", "c"), discrete=True)
    return space, data


FAMILIES = {known: (250, 6000), estimated: (250, 6000), two_estimated: (120, 3000), choosing: (80, 3000)}


def likelihoods(family, length, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(FAMILIES[family][length == "long"]):
        yield likelihood_of(*family(rng))


def at_most(count, runs, level):
    """Not more often than a binomial of that level ever does: 1 in 10 000."""
    return count <= stats.binom.isf(1e-4, runs, level)


def about(count, runs, level, slack=0.0):
    low, high = max(level - slack, 0.0), min(level + slack, 1.0)
    return stats.binom.isf(1 - 1e-4, runs, low) <= count <= stats.binom.isf(1e-4, runs, high)


# Wilks' theorem is asymptotic for choices, and Rao's F is exact for up to two actions.
SLACK = {known: 0.0, estimated: 0.0, two_estimated: 0.0, choosing: 0.015}


@lengths
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_false_controls_are_as_rare_as_promised(family, length):
    runs, single = 0, 0
    false = {"holm": 0, "bonferroni": 0, "closed": 0, "paper": 0}
    for likelihood in likelihoods(family, length):
        runs += 1
        for correction in ("holm", "bonferroni"):
            verdicts = each_group_alone(WilksTest(likelihood), DELTA, correction)
            false[correction] += not verdicts.supports[0] <= TRUE
        single += verdicts.tests[3].p_value < DELTA  # one true hypothesis, uncorrected
        for name in ("closed", "paper"):
            supports = search_supports(WilksTest(likelihood), DELTA, paper_rule=name == "paper").supports
            false[name] += not any(support <= TRUE for support in supports)  # H_{I*} itself is rejected
    slack = SLACK[family]
    assert about(single, runs, DELTA, slack)
    # The true effects are strong, so closed testing errs exactly when λ_{I*} does: no less than δ either.
    assert about(false["closed"], runs, DELTA, slack)
    assert at_most(false["holm"], runs, DELTA + slack)
    assert at_most(false["bonferroni"], runs, DELTA + slack)
    assert at_most(false["paper"], runs, DELTA / 2**5 + slack)
    assert false["bonferroni"] <= false["holm"]


@lengths
def test_closed_testing_keeps_its_promise_among_collinear_features(length):
    # x2 = x0 + x1 and the agent uses x0: {0}, but also {1, 2}, is a true support, and both must survive together.
    rng, runs, false = np.random.default_rng(3), {"short": 250, "long": 6000}[length], 0
    for _ in range(runs):
        x = rng.normal(size=(60, 2))
        x = np.column_stack([x, x.sum(axis=1), rng.normal(size=60)])
        data = Sample.from_arrays(x, x[:, 0] + rng.normal(size=60))
        likelihood = likelihood_of(GaussianLinear(data.names, data.action_names, 1.0), data)
        supports = search_supports(WilksTest(likelihood), DELTA).supports
        true = [frozenset({0, 1}), frozenset({0, 2, 3})]
        false += not all(any(support <= one for support in supports) for one in true)
    assert at_most(false, runs, DELTA)


@lengths
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_p_values_of_true_hypotheses_are_uniform(family, length):
    p_values = []
    for likelihood in likelihoods(family, length, seed=1):
        restricted, law = likelihood.fit(TRUE), likelihood.law
        statistic = 2 * (likelihood.full.log_likelihood - restricted.log_likelihood)
        p_values.append(law.p_value(statistic, likelihood.degrees_of_freedom(TRUE)))
    distance = stats.kstest(p_values, "uniform")
    assert distance.statistic < 1.95 / np.sqrt(len(p_values)) + SLACK[family]  # 1.95/√n: 1 in 1000


@lengths
def test_gaussian_power_is_the_non_central_chi_square(length):
    rng, runs = np.random.default_rng(5), {"short": 700, "long": 20_000}[length]
    x = states(rng, 60)
    space = GaussianLinear(NAMES, covariance=1.0)
    theta = np.array([0.0, 0.0, 0.3, 0.0, 0.25, 0.0])
    inverse = np.linalg.inv(space.fisher(theta, x))
    for out in ([2], [2, 4]):
        noncentrality = 60 * theta[out] @ np.linalg.solve(inverse[np.ix_(out, out)], theta[out])
        statistics = []
        for _ in range(runs // 2):
            y = space.sample(rng, theta, x)
            likelihood = likelihood_of(space, Sample.from_arrays(x, y, names=NAMES))
            restricted = likelihood.fit(space.full_support - set(out))
            statistics.append(2 * (likelihood.full.log_likelihood - restricted.log_likelihood))
        assert stats.kstest(statistics, stats.ncx2(len(out), noncentrality).cdf).pvalue > 1e-3
        predicted = likelihood.law.power(noncentrality, 0.05, len(out))
        hits = int(np.sum(np.array(statistics) > stats.chi2.isf(0.05, len(out))))
        assert about(hits, len(statistics), predicted)


@lengths
def test_boltzmann_power_is_near_the_non_central_chi_square(length):
    rng, runs = np.random.default_rng(6), {"short": 150, "long": 4000}[length]
    x = states(rng, 600)
    space = SoftmaxLinear(NAMES, ("a", "b", "c"))
    theta = np.zeros(12)
    theta[[1, 2, 3, 8, 9]] = 0.5, 0.16, 0.16, -0.12, 0.2
    inverse = np.linalg.inv(space.fisher(theta, x))
    hits = np.zeros(2, int)
    cases = [(2, [2, 8]), (3, [3, 9])]
    for _ in range(runs):
        data = Sample.from_arrays(
            x, space.sample(rng, theta, x), names=NAMES, action_names=("a", "b", "c"), discrete=True
        )
        likelihood = likelihood_of(space, data)
        fits = likelihood.fit_many([space.full_support - {g} for g, _ in cases])
        hits += [2 * (likelihood.full.log_likelihood - one.log_likelihood) > stats.chi2.isf(0.05, 2) for one in fits]
    for (_, out), seen in zip(cases, hits.tolist(), strict=True):
        noncentrality = 600 * theta[out] @ np.linalg.solve(inverse[np.ix_(out, out)], theta[out])
        predicted = likelihood.law.power(noncentrality, 0.05, 2)
        assert 0.2 < predicted < 0.9
        assert about(seen, runs, predicted, slack=0.03)


@lengths
def test_firth_and_plain_tests_err_alike_and_firth_survives_separation(length):
    rng, runs, false = np.random.default_rng(7), {"short": 40, "long": 800}[length], 0
    space = SoftmaxLinear(("x", "y"), ("a", "b"))
    for _ in range(runs):
        x = rng.normal(size=(60, 2))
        actions = space.sample(rng, np.array([0.0, 2.5, 0.0]), x)
        data = Sample.from_arrays(x, actions, names=("x", "y"), action_names=("a", "b"), discrete=True)
        likelihood = likelihood_of(space, data, firth=True)
        assert np.isfinite(likelihood.full.theta).all()
        false += each_group_alone(WilksTest(likelihood), DELTA).tests[2].p_value < DELTA
    assert about(false, runs, DELTA, slack=0.03)
