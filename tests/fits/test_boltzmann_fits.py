"""Boltzmann fits and λ against statsmodels' refits, and what must hold for every data set."""

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from policyspace import InputError, Sample, SoftmaxLinear, fit, likelihood_of, likelihood_ratio


def softmax_sample(rng, x, weights, intercept=True):
    phi = np.column_stack([np.ones(len(x)), x]) if intercept else x
    logits = np.column_stack([phi @ weights.T, np.zeros(len(x))])
    return np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)


def problem(seed, k, q, n, scale=0.7, intercept=True):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, q)) @ (np.eye(q) + 0.3 * rng.normal(size=(q, q)))
    y = softmax_sample(rng, x, scale * rng.normal(size=(k, q + intercept)), intercept)
    return x, y


def data_of(x, y, k, **more):
    return Sample.from_arrays(x, y, discrete=True, action_names=[str(a) for a in range(k + 1)], **more)


def space_of(data, **more):
    return SoftmaxLinear(data.names, data.action_names, **more)


def statsmodels_log_likelihood(phi, y, k):
    """MNLogit takes the smallest label as the reference, which changes the parameters, not the likelihood."""
    if not phi.shape[1]:
        return -len(y) * np.log(k + 1)
    return sm.MNLogit((k - y) % (k + 1), phi).fit(method="newton", maxiter=200, tol=1e-13, disp=0).llf


def minimised(x, y, k, offset, phi):
    """−log L by quasi-Newton, written down again: the oracle where statsmodels has no offsets."""

    def at(flat):
        logits = np.column_stack([offset + phi @ flat.reshape(k, -1).T, np.zeros(len(y))])
        logs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        residual = np.exp(logs[:, :k]) - np.eye(k + 1)[y][:, :k]
        return -logs[np.arange(len(y)), y].sum(), (residual.T @ phi).ravel()

    best = optimize.minimize(at, np.zeros(k * phi.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-7})
    return -best.fun


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_every_lambda_is_that_of_statsmodels_refits(seed, k, intercept):
    x, y = problem(seed, k, 4, 400, intercept=intercept)
    data = data_of(x, y, k)
    space = space_of(data, intercept=intercept)
    likelihood = likelihood_of(space, data)
    phi = np.column_stack([np.ones(len(x)), x]) if intercept else x
    full = statsmodels_log_likelihood(phi, y, k)
    assert likelihood.full.log_likelihood == pytest.approx(full, abs=1e-7)
    assert likelihood.full.converged and not likelihood.full.separated
    supports = [space.full_support - {g} for g in space.tested] + [frozenset(), frozenset(space.tested[1:3])]
    for support, found in zip(supports, likelihood.fit_many(supports), strict=True):
        kept = space.free_mask(support).reshape(k, -1)[0]
        expected = 2 * (full - statsmodels_log_likelihood(phi[:, kept], y, k))
        test = likelihood_ratio(found, likelihood.full)
        assert test.statistic == pytest.approx(expected, abs=1e-6)
        assert test.degrees_of_freedom == k * (~kept).sum()
        assert test.p_value == pytest.approx(stats.chi2.sf(expected, k * (~kept).sum()), rel=1e-5)
        np.testing.assert_array_equal(found.theta[~space.free_mask(support)], 0.0)


def test_parameters_are_statsmodels_logits_for_two_actions():
    x, y = problem(3, 1, 3, 500)
    data = data_of(x, 1 - y, 1)  # code 0 is the modelled action here, 1 the reference
    expected = sm.Logit(y, sm.add_constant(x)).fit(disp=0, tol=1e-12)
    found = fit(space_of(data), data)
    np.testing.assert_allclose(found.theta, expected.params, rtol=1e-7)
    assert found.log_likelihood == pytest.approx(expected.llf, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_badly_scaled_and_offset_features_change_no_lambda(seed):
    x, y = problem(seed, 2, 4, 500)
    data = data_of(x, y, 2)
    reference = likelihood_of(space_of(data), data)
    moved = x * [1e-6, 3.0, 1e5, 1.0] + [0.0, 2000.0, -1e7, 1e6]
    other = data_of(moved, y, 2)
    likelihood = likelihood_of(space_of(other), other)
    space = likelihood.space
    for g in space.tested:
        support = space.full_support - {g}
        here, there = likelihood.fit(support), reference.fit(support)
        assert here.log_likelihood == pytest.approx(there.log_likelihood, abs=1e-6)
    slopes = space.weights(likelihood.full.theta)[:, 1:] * [1e-6, 3.0, 1e5, 1.0]
    np.testing.assert_allclose(slopes, space.weights(reference.full.theta)[:, 1:], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("groups", ["feature", "parameter", {"pair": ["x0", "x2"], "one": ["x1[0]"]}])
def test_groups_and_fixed_values_agree_with_offsets_in_a_direct_maximisation(groups):
    k, q = 2, 3
    x, y = problem(11, k, q, 300)
    data = data_of(x, y, k)
    fixed = {"x0": 0.4, "x1[0]": -0.3, "x2[1]": 0.8}
    space = space_of(data, groups=groups, fixed=fixed)
    likelihood = likelihood_of(space, data)
    phi = np.column_stack([np.ones(len(x)), x])
    everything = minimised(x, y, k, 0.0, phi)
    assert likelihood.full.log_likelihood == pytest.approx(everything, abs=1e-7)
    for g in space.tested:
        free = space.free_mask(space.full_support - {g})
        found = likelihood.fit(space.full_support - {g})
        np.testing.assert_array_equal(found.theta[~free], space.fixed[~free])

        def at(part, free=free):
            theta = space.fixed.copy()
            theta[free] = part
            return -space.log_prob(theta, x, y).sum(), -space.score(theta, x, y).sum(axis=0)[free]

        best = optimize.minimize(at, np.zeros(free.sum()), jac=True, method="BFGS", options={"gtol": 1e-7})
        assert found.log_likelihood == pytest.approx(-best.fun, abs=1e-6)
        np.testing.assert_allclose(found.theta[free], best.x, atol=2e-4)


def test_weights_are_repeated_rows():
    x, y = problem(5, 2, 3, 200)
    counts = np.random.default_rng(1).integers(0, 5, len(y))
    weighted = data_of(x, y, 2, weights=counts.astype(float))
    repeated = data_of(np.repeat(x, counts, axis=0), np.repeat(y, counts), 2)
    here, there = (likelihood_of(space_of(d), d) for d in (weighted, repeated))
    assert here.full.log_likelihood == pytest.approx(there.full.log_likelihood, abs=1e-8)
    np.testing.assert_allclose(here.information(), there.information(), rtol=1e-7, atol=1e-12)
    for g in here.space.tested:
        support = here.space.full_support - {g}
        assert here.fit(support).log_likelihood == pytest.approx(there.fit(support).log_likelihood, abs=1e-7)


def test_fractional_weights_weigh_the_log_likelihood():
    x, y = problem(6, 1, 2, 150)
    w = np.random.default_rng(2).uniform(0.1, 3, len(y))
    data = data_of(x, y, 1, weights=w)
    found = fit(space_of(data), data)
    expected = sm.GLM(1 - y, sm.add_constant(x), sm.families.Binomial(), freq_weights=w).fit(tol=1e-14, maxiter=100)
    np.testing.assert_allclose(found.theta, expected.params, rtol=1e-7)
    assert found.log_likelihood == pytest.approx(expected.llf, abs=1e-8)


def test_a_categorical_block_is_one_test():
    rng = np.random.default_rng(8)
    level, x = rng.integers(0, 4, 600), rng.normal(size=600)
    onehot = np.eye(4)[level][:, :3]
    y = softmax_sample(
        rng, np.column_stack([x, onehot]), np.array([[0.1, 0.5, 0.3, 0.0, -0.4], [0.0, 0.2, 0.0, 0.3, 0.1]])
    )
    data = data_of(
        np.column_stack([x, onehot]), y, 2, names=("x", "c=0", "c=1", "c=2"), blocks={"c": ("c=0", "c=1", "c=2")}
    )
    space = space_of(data, blocks=dict(data.blocks))
    likelihood = likelihood_of(space, data)
    test = likelihood_ratio(likelihood.fit(space.full_support - {2}), likelihood.full)
    phi = np.column_stack([np.ones(600), x, onehot])
    expected = 2 * (statsmodels_log_likelihood(phi, y, 2) - statsmodels_log_likelihood(phi[:, :2], y, 2))
    assert space.groups[2].name == "c" and test.degrees_of_freedom == 6
    assert test.statistic == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("seed", "scale", "rare"), [(0, 0.7, False), (1, 2.5, False), (2, 1.0, True)])
def test_lambda_is_statsmodels_with_many_rows_too(seed, scale, rare):
    # More than 50 000 rows, none equal: the full fit starts on a sample, Hessians of restricted fits are sampled.
    k = 2
    x, y = problem(seed, k, 4, 51_000, scale)
    if rare:  # features that the samples of rows hardly ever see
        rng = np.random.default_rng(9)
        x[:, 3] = np.where(rng.random(len(x)) < 2e-3, 1.0 + x[:, 3], 0.0)
        y = softmax_sample(rng, x, np.array([[0.2, 1.0, -1.0, 0.4, 0.9], [0.0, -0.5, 0.8, 0.1, -0.5]]))
    data = data_of(x, y, k)
    likelihood = likelihood_of(space_of(data), data)
    assert likelihood.sample is not None and not likelihood.full.separated and len(likelihood.rows) > 50_000
    space, phi = likelihood.space, np.column_stack([np.ones(len(x)), x])
    full = statsmodels_log_likelihood(phi, y, k)
    assert likelihood.full.log_likelihood == pytest.approx(full, abs=1e-6)
    supports = [space.full_support - {1}, space.full_support - {4}, frozenset({4})]
    for support, found in zip(supports, likelihood.fit_many(supports), strict=True):
        kept = space.free_mask(support).reshape(k, -1)[0]
        expected = 2 * (full - statsmodels_log_likelihood(phi[:, kept], y, k))
        assert likelihood_ratio(found, likelihood.full).statistic == pytest.approx(
            expected, abs=1e-6 + 1e-10 * expected
        )


def test_bracket_says_on_which_side_of_the_critical_value_every_lambda_lies():
    for seed in range(4):
        x, y = problem(seed, 2, 5, 3000, scale=0.1)
        data = data_of(x, y, 2)
        likelihood = likelihood_of(space_of(data), data)
        space = likelihood.space
        supports = [frozenset(g for b, g in enumerate(space.tested) if mask >> b & 1) for mask in range(32)]
        exact = np.array(
            [2 * (likelihood.full.log_likelihood - f.log_likelihood) for f in likelihood.fit_many(supports)]
        )
        for factor in (0.9, 0.999, 1.001, 1.1):
            lower, upper = likelihood.bound_statistics(supports, factor * exact)
            assert (lower <= exact + 1e-6).all() and (upper >= exact - 1e-6).all()
            decided = exact > 1e-3
            assert ((upper <= factor * exact) == (factor > 1))[decided].all()
            assert ((lower > factor * exact) == (factor < 1))[decided].all()


def test_the_saturated_one_hot_lambda_is_the_g_statistic():
    rng = np.random.default_rng(4)
    level, y = rng.integers(0, 5, 700), rng.integers(0, 4, 700)
    onehot = np.eye(5)[level][:, :4]
    data = data_of(onehot, y, 3)
    space = space_of(data, groups={"level": list(data.names)})
    likelihood = likelihood_of(space, data)
    test = likelihood_ratio(likelihood.fit(frozenset()), likelihood.full)
    counts = np.zeros((5, 4))
    np.add.at(counts, (level, y), 1)
    expected = stats.chi2_contingency(counts, correction=False, lambda_="log-likelihood")
    assert test.statistic == pytest.approx(expected.statistic, abs=1e-8)
    assert (test.degrees_of_freedom, test.p_value) == (expected.dof, pytest.approx(expected.pvalue, rel=1e-8))


def test_a_start_changes_nothing_but_the_way():
    x, y = problem(2, 2, 3, 300)
    data = data_of(x, y, 2)
    space = space_of(data)
    for support in (space.full_support, frozenset({2})):
        here = fit(space, data, support)
        there = fit(space, data, support, start=np.random.default_rng(0).normal(size=space.num_parameters))
        assert here.log_likelihood == pytest.approx(there.log_likelihood, abs=1e-8)
        np.testing.assert_allclose(here.theta, there.theta, atol=1e-4)


def test_information_is_the_spaces_at_the_fit():
    x, y = problem(7, 2, 3, 400)
    data = data_of(x * [1.0, 10.0, 0.1] + [5.0, 0.0, 1.0], y, 2)
    for intercept in (True, False):
        likelihood = likelihood_of(space_of(data, intercept=intercept), data)
        expected = likelihood.space.fisher(likelihood.full.theta, data.features)
        np.testing.assert_allclose(likelihood.information(), expected, rtol=1e-6, atol=1e-9)


def test_collinear_features_lose_their_degrees_of_freedom_and_no_likelihood():
    x, y = problem(1, 2, 3, 400)
    wide = np.column_stack([x, x[:, 0], x[:, 0] + x[:, 1], np.full(400, 0.1)])
    narrow, data = data_of(x, y, 2), data_of(wide, y, 2)
    likelihood, plain = likelihood_of(space_of(data), data), likelihood_of(space_of(narrow), narrow)
    assert not likelihood.identifiable
    assert likelihood.full.log_likelihood == pytest.approx(plain.full.log_likelihood, abs=1e-8)
    degrees = [likelihood.degrees_of_freedom(likelihood.space.full_support - {g}) for g in likelihood.space.tested]
    assert degrees == [0, 0, 2, 0, 0, 0]
    test = likelihood_ratio(likelihood.fit(likelihood.space.full_support - {3}), likelihood.full)
    expected = likelihood_ratio(plain.fit(plain.space.full_support - {3}), plain.full)
    assert test.statistic == pytest.approx(expected.statistic, abs=1e-6)
    assert test.degrees_of_freedom == expected.degrees_of_freedom == 2


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 4), st.integers(12, 60), st.floats(0.0, 6.0))
def test_lambda_is_never_negative_and_falls_as_supports_grow(seed, k, q, n, scale):
    # Small and sharp problems on purpose: many of them are separated.
    x, y = problem(seed, k, q, n, scale)
    if len(np.unique(y)) <= k:
        return
    data = data_of(np.round(x, 1), y, k)
    likelihood = likelihood_of(space_of(data), data)
    groups = likelihood.space.tested
    supports = [frozenset(g for b, g in enumerate(groups) if mask >> b & 1) for mask in range(2**q)]
    found = np.array([f.log_likelihood for f in likelihood.fit_many(supports)])
    statistics = 2 * (likelihood.full.log_likelihood - found)
    assert statistics.min() >= -1e-7
    for mask in range(2**q):
        for b in range(q):
            if not mask >> b & 1:
                assert statistics[mask] >= statistics[mask | 1 << b] - 2e-7


def test_a_better_restricted_fit_is_adopted():
    x, y = problem(1, 1, 2, 100)
    data = data_of(x, y, 1)
    likelihood = likelihood_of(space_of(data), data)
    restricted = likelihood.fit(frozenset({1}))
    better = replace(restricted, log_likelihood=likelihood.full.log_likelihood + 1e-9)
    likelihood.replace_full_fit_if_better(better)
    assert likelihood.full.log_likelihood == better.log_likelihood
    np.testing.assert_array_equal(likelihood.full.theta, better.theta)
    assert likelihood_ratio(better, likelihood.full).statistic == 0.0


def test_spaces_and_data_that_do_not_fit_are_said_in_words():
    x, y = problem(0, 2, 2, 50)
    data = data_of(x, y, 2)
    with pytest.raises(InputError, match="same, in the same order"):
        likelihood_of(SoftmaxLinear(("x1", "x0"), data.action_names), data)
    with pytest.raises(InputError, match="actions"):
        likelihood_of(SoftmaxLinear(data.names, ("a", "b", "c")), data)
    with pytest.raises(InputError, match="use the Gaussian"):
        likelihood_of(space_of(data), Sample.from_arrays(x, x[:, 0]))
    with pytest.raises(InputError, match="fewer than"):
        few = data_of(np.eye(3)[:, [0, 1, 2, 0]], np.array([0, 1, 1]), 1)
        likelihood_of(space_of(few), few)


@pytest.mark.parametrize(("seed", "n"), [(81, 40), (158, 40), (73, 6000), (9, 6000)])
def test_sharp_agents_of_heavy_tailed_features_too(seed, n):
    # Hessians far from the full fit's: restricted fits must notice, and not stop where a first guess of the gain is small.
    rng = np.random.default_rng(seed)
    k, q = 2, 3
    x = np.exp(2 * rng.normal(size=(n, q)))
    y = softmax_sample(rng, np.minimum(x, 20), rng.normal(size=(k, q)), intercept=False)
    data = data_of(x, y, k)
    likelihood = likelihood_of(space_of(data), data)
    space = likelihood.space
    supports = [frozenset(g for b, g in enumerate(space.tested) if mask >> b & 1) for mask in range(8)]
    for support, found in zip(supports, likelihood.fit_many(supports), strict=True):
        exact = likelihood.fit(support, start=np.zeros(space.num_parameters))  # Newton with its own Hessians
        assert found.log_likelihood == pytest.approx(exact.log_likelihood, abs=5e-7)
