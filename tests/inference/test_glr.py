"""One test of one hypothesis: λ, its degrees of freedom and its p-value."""

import numpy as np
import pytest
from scipy import stats

from policyspace import GaussianLinear, InputError, Sample, SoftmaxLinear, fit, likelihood_ratio


def demonstrations(n=200):
    rng = np.random.default_rng(0)
    return Sample.from_arrays(rng.normal(size=(n, 3)), rng.integers(0, 3, n), discrete=True)


def test_lambda_degrees_of_freedom_and_p_value():
    data = demonstrations()
    space = SoftmaxLinear(data.names, data.action_names)
    full, restricted = fit(space, data), fit(space, data, frozenset({2}))
    test = likelihood_ratio(restricted, full)
    assert test.support == {2}
    assert test.statistic == 2 * (full.log_likelihood - restricted.log_likelihood)
    by_density = [space.log_prob(f.theta, data.features, data.actions).sum() for f in (full, restricted)]
    assert test.statistic == pytest.approx(2 * (by_density[0] - by_density[1]), abs=1e-8)
    assert test.degrees_of_freedom == 4
    assert test.p_value == pytest.approx(stats.chi2.sf(test.statistic, 4), rel=1e-10)


def test_the_full_support_is_never_rejected():
    data = demonstrations()
    full = fit(SoftmaxLinear(data.names, data.action_names), data)
    test = likelihood_ratio(full, full)
    assert (test.statistic, test.degrees_of_freedom, test.p_value) == (0.0, 0, 1.0)


def test_a_restricted_fit_may_stand_in_for_the_full_one():
    # Nested hypotheses: λ of a support inside a larger one, with its own degrees of freedom.
    rng = np.random.default_rng(1)
    data = Sample.from_arrays(rng.normal(size=(100, 3)), rng.normal(size=100))
    space = GaussianLinear(data.names, data.action_names, 1.0)
    inner, outer = fit(space, data, frozenset({1})), fit(space, data, frozenset({1, 2}))
    test = likelihood_ratio(inner, outer)
    assert test.degrees_of_freedom == 1 and test.p_value == pytest.approx(stats.chi2.sf(test.statistic, 1))


def test_a_negative_lambda_is_an_error_not_a_zero():
    data = demonstrations()
    space = SoftmaxLinear(data.names, data.action_names)
    with pytest.raises(InputError, match="more likely than the full one"):
        likelihood_ratio(fit(space, data), fit(space, data, frozenset()))


def test_two_fits_of_the_same_maximum_are_no_error():
    # A copy of a feature is no restriction: λ is zero, whichever of the two fits rounding favours.
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(60, 2))
        data = Sample.from_arrays(np.column_stack([x, x[:, 0]]), rng.integers(0, 3, 60), discrete=True)
        space = SoftmaxLinear(data.names, data.action_names)
        test = likelihood_ratio(fit(space, data, space.full_support - {1}), fit(space, data))
        assert 0.0 <= test.statistic < 1e-6 and (test.degrees_of_freedom, test.p_value) == (0, 1.0)
