"""Gaussian fits and λ against direct density maximisation, statsmodels' OLS, its F tests and its multivariate tests."""

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from statsmodels.multivariate.multivariate_ols import _MultivariateOLS

from policyspace import GaussianLinear, InputError, Sample, fit, likelihood_of, likelihood_ratio

FULL = np.array([[0.5, 0.2], [0.2, 0.3]])


def problem(seed, k, q, n, covariance=None, effect=0.3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, q)) @ (np.eye(q) + 0.3 * rng.normal(size=(q, q)))
    noise = rng.multivariate_normal(np.zeros(k), np.eye(k) if covariance is None else covariance, n)
    return x, x @ (effect * rng.normal(size=(q, k))) + rng.normal(size=k) + noise


def likelihood(x, y, weights=None, **space):
    data = Sample.from_arrays(x, y, discrete=False, weights=weights)
    return likelihood_of(GaussianLinear(data.names, data.action_names, **space), data)


def maximised(space, x, y, support):
    """sup log L inside Θ_I by quasi-Newton on the density itself."""
    free = space.free_mask(support)
    if not free.any():
        return space.log_prob(space.fixed, x, y).sum(), space.fixed

    def at(part):
        theta = space.fixed.copy()
        theta[free] = part
        return -space.log_prob(theta, x, y).sum(), -space.score(theta, x, y).sum(axis=0)[free]

    best = optimize.minimize(at, np.zeros(free.sum()), jac=True, method="BFGS", options={"gtol": 1e-8})
    theta = space.fixed.copy()
    theta[free] = best.x
    return -best.fun, theta


@pytest.mark.parametrize("covariance", [0.4, [0.5, 2.0], FULL], ids=["scalar", "diagonal", "full"])
@pytest.mark.parametrize("groups", ["feature", "parameter", {"pair": ["x0", "x2"], "one": ["x1[action_0]"]}])
@pytest.mark.parametrize(("intercept", "fixed"), [(True, 0.0), (False, 0.0), (True, {"x0": 0.4, "x2": -1.0})])
def test_known_covariance_agrees_with_maximising_the_density(covariance, groups, intercept, fixed):
    x, y = problem(1, 2, 3, 80)
    x += [3.0, 0.0, -1.0]
    found = likelihood(x, y, covariance=covariance, groups=groups, intercept=intercept, fixed=fixed)
    space = found.space
    full, theta = maximised(space, x, y, space.full_support)
    assert found.full.log_likelihood == pytest.approx(full, abs=1e-7)
    np.testing.assert_allclose(found.full.theta, theta, atol=1e-5)
    supports = [space.full_support - {g} for g in space.tested] + [frozenset()]
    for support in supports:
        restricted = found.fit(support)
        expected, theta = maximised(space, x, y, support)
        assert restricted.log_likelihood == pytest.approx(expected, abs=1e-7)
        np.testing.assert_allclose(restricted.theta, theta, atol=1e-5)
        fixed_ones = ~space.free_mask(support)
        np.testing.assert_array_equal(restricted.theta[fixed_ones], space.fixed[fixed_ones])
        assert found.degrees_of_freedom(support) == fixed_ones.sum()
        test = likelihood_ratio(restricted, found.full)
        assert test.p_value == pytest.approx(stats.chi2.sf(2 * (full - expected), fixed_ones.sum()), rel=1e-5)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("intercept", [True, False])
def test_one_action_with_estimated_noise_is_the_f_test_of_statsmodels(seed, intercept):
    x, y = problem(seed, 1, 4, 60)
    found = likelihood(x, y, intercept=intercept)
    phi = sm.add_constant(x) if intercept else x
    full = sm.OLS(y[:, 0], phi).fit()
    assert found.full.log_likelihood == pytest.approx(full.llf, abs=1e-9)
    np.testing.assert_allclose(found.full.theta, full.params, rtol=1e-9, atol=1e-11)
    for support in [frozenset(), frozenset(found.space.tested[:2]), found.space.full_support - {found.space.tested[1]}]:
        kept = found.space.free_mask(support)
        test = likelihood_ratio(found.fit(support), found.full)
        if not kept.any():
            f, p = full.fvalue, full.f_pvalue  # without a constant, statsmodels' F is against nothing at all
            expected = None
        else:
            small = sm.OLS(y[:, 0], phi[:, kept]).fit()
            f, p, df = full.compare_f_test(small)
            assert df == test.degrees_of_freedom
            expected = 2 * (full.llf - small.llf)
        assert test.p_value == pytest.approx(p, rel=1e-8)
        m, rest = test.degrees_of_freedom, len(y) - phi.shape[1]
        assert np.expm1(test.statistic / len(y)) * rest / m == pytest.approx(f, rel=1e-8)
        if expected is not None:
            assert test.statistic == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [2, 3])
def test_several_actions_with_estimated_noise_are_wilks_lambda_of_statsmodels(seed, k):
    q, n = 4, 50
    x, y = problem(seed, k, q, n)
    found = likelihood(x, y)
    model = _MultivariateOLS(y, sm.add_constant(x)).fit()
    for out in ([1], [2, 3], [1, 2, 4], [1, 2, 3, 4]):
        table = model.mv_test([("out", np.eye(q + 1)[out])]).results["out"]["stat"]
        test = likelihood_ratio(found.fit(found.space.full_support - set(out)), found.full)
        assert np.exp(-test.statistic / n) == pytest.approx(float(table.loc["Wilks' lambda", "Value"]), rel=1e-9)
        assert test.p_value == pytest.approx(float(table.loc["Wilks' lambda", "Pr > F"]), rel=1e-7)
        assert test.degrees_of_freedom == k * len(out)


def test_the_estimated_likelihood_is_the_density_at_the_estimate():
    x, y = problem(3, 2, 2, 70)
    found = likelihood(x, y)
    residual = y - sm.add_constant(x) @ found.space.weights(found.full.theta).T
    estimate = residual.T @ residual / len(y)
    expected = stats.multivariate_normal(np.zeros(2), estimate).logpdf(residual).sum()
    assert found.full.log_likelihood == pytest.approx(expected, rel=1e-12)
    information = np.kron(np.linalg.inv(estimate), sm.add_constant(x).T @ sm.add_constant(x) / len(y))
    np.testing.assert_allclose(found.information(), information, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("covariance", [0.7, "estimate"])
def test_weights_are_repeated_rows(covariance):
    x, y = problem(5, 2, 3, 60)
    counts = np.random.default_rng(1).integers(0, 4, 60)
    here = likelihood(x, y, counts.astype(float), covariance=covariance)
    there = likelihood(np.repeat(x, counts, axis=0), np.repeat(y, counts, axis=0), covariance=covariance)
    assert here.full.log_likelihood == pytest.approx(there.full.log_likelihood, rel=1e-11)
    np.testing.assert_allclose(here.information(), there.information(), rtol=1e-9, atol=1e-12)
    for g in here.space.tested:
        support = here.space.full_support - {g}
        a = likelihood_ratio(here.fit(support), here.full)
        b = likelihood_ratio(there.fit(support), there.full)
        assert a.statistic == pytest.approx(b.statistic, abs=1e-8)
        assert a.p_value == pytest.approx(b.p_value, rel=1e-7)


@pytest.mark.parametrize("covariance", [1.0, "estimate"])
def test_badly_scaled_and_offset_columns_change_no_lambda(covariance):
    x, y = problem(6, 1, 4, 70_000, effect=0.01)  # two chunks of rows
    here = likelihood(x, y, covariance=covariance)
    moved = x * [1e-6, 3.0, 1e5, 1.0] + [0.0, 2000.0, -1e7, 1e4]
    there = likelihood(moved, y + 1e6, covariance=covariance)
    for g in here.space.tested:
        support = here.space.full_support - {g}
        a = likelihood_ratio(here.fit(support), here.full).statistic
        assert likelihood_ratio(there.fit(support), there.full).statistic == pytest.approx(a, abs=1e-4)
    small = sm.OLS(y[:, 0], sm.add_constant(x[:, 1:])).fit()
    residuals = sm.OLS(y[:, 0], sm.add_constant(x)).fit()
    gain = (small.ssr - residuals.ssr) if covariance == 1.0 else 2 * (residuals.llf - small.llf)
    test = likelihood_ratio(here.fit(here.space.full_support - {1}), here.full)
    assert test.statistic == pytest.approx(gain, abs=1e-6)


def test_a_constant_column_is_noticed_however_many_rows_its_mean_is_rounded_over():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=400_000), np.full(400_000, 0.1)])
    found = likelihood(x, rng.normal(size=400_000), covariance=1.0)
    assert not found.identifiable
    assert found.degrees_of_freedom(found.space.full_support - {2}) == 0
    assert found.degrees_of_freedom(frozenset()) == 1


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 4), st.booleans(), st.booleans())
def test_lambda_is_never_negative_and_falls_as_supports_grow(seed, k, q, estimated, collinear):
    x, y = problem(seed, k, q, 30)
    if collinear:
        x = np.column_stack([x, x.sum(axis=1)])
    found = likelihood(x, y, covariance="estimate" if estimated else 1.0)
    groups = list(found.space.tested)
    statistics = np.array(
        [
            2
            * (
                found.full.log_likelihood
                - found.fit(frozenset(g for b, g in enumerate(groups) if m >> b & 1)).log_likelihood
            )
            for m in range(2 ** len(groups))
        ]
    )
    assert statistics.min() >= -1e-9
    for mask in range(2 ** len(groups)):
        for b in range(len(groups)):
            if not mask >> b & 1:
                assert statistics[mask] >= statistics[mask | 1 << b] - 1e-9


def test_a_noiseless_agent_has_no_covariance_to_estimate():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(200, 3))
    for y in (x @ [1.0, 2.0, 0.0] + 5, np.column_stack([rng.normal(size=200), x[:, 0]])):
        with pytest.raises(InputError, match="exact linear function of the features"):
            likelihood(x, y)
    noisy = rng.normal(size=200)
    for y in (np.column_stack([noisy, 2 * noisy + x[:, 0]]), np.column_stack([noisy, noisy, noisy])):
        with pytest.raises(InputError, match="linear functions of one another"):
            likelihood(x, y)
    with pytest.raises(InputError, match="exact linear function"):  # one of two actions never moves
        likelihood(x, np.column_stack([noisy, np.full(200, 0.3)]))
    # With a known noise level there is an answer; and a little noise is noise.
    assert likelihood(x, x[:, 0], covariance=0.1).full.converged
    assert likelihood(x, x[:, 0] + 1e-4 * noisy).full.converged


@pytest.mark.parametrize("q", [3, 4])
def test_too_few_rows_to_estimate_a_covariance(q):
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="too few"):
        likelihood(rng.normal(size=(q + 1, q)), rng.normal(size=q + 1))
    assert likelihood(rng.normal(size=(q + 2, q)), rng.normal(size=q + 2)).full.converged


def test_what_has_no_exact_test_is_refused():
    x, y = problem(0, 2, 2, 30)
    with pytest.raises(InputError, match="single parameters"):
        likelihood(x, y, groups="parameter")
    data = Sample.from_arrays(x, y)
    with pytest.raises(InputError, match="has 1 actions"):
        likelihood_of(GaussianLinear(data.names, ("only",), 1.0), data)
    with pytest.raises(InputError, match="Firth"):
        fit(GaussianLinear(data.names, data.action_names, 1.0), data, firth=True)
    labels = Sample.from_arrays(x, np.arange(30) % 2, discrete=True)
    with pytest.raises(InputError, match="Boltzmann"):
        likelihood_of(GaussianLinear(labels.names, ("a",), 1.0), labels)
