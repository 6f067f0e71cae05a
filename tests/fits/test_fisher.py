"""What the states can tell: eigenvalues, dependences in words, and effects that would have shown."""

import numpy as np
import pytest
from scipy import stats

from policyspace import GaussianLinear, Sample, SoftmaxLinear, identify, likelihood_of
from policyspace.families import (
    ChiSquare,
    WilksLambda,
    dependences,
    detectable_effect,
    inverse_information,
    inverse_of,
    noncentrality_for_power,
    smallest_eigenvalue,
)


def found_in(x, names=None, **space):
    rng = np.random.default_rng(9)
    data = Sample.from_arrays(x, rng.normal(size=(len(x), 2)), names=names)
    likelihood = likelihood_of(GaussianLinear(data.names, data.action_names, 1.0, **space), data)
    return dependences(likelihood.space, likelihood.design)


def base(n=100, q=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, q)) + 2


def test_independent_features_depend_on_nothing():
    assert found_in(base()) == []


def test_copies_are_exchangeable():
    x = base()
    (one,) = found_in(np.column_stack([x, 3 * x[:, 1] + 1]), ("a", "b", "c", "d"))
    assert (one.groups, one.exchangeable) == (("b", "d"), True)
    assert str(one).startswith("b and d cannot be told apart in this data: Rule 2 will select neither, use Rule 1")


def test_a_sum_is_a_dependence_of_three_that_are_no_substitutes():
    x = base()
    (one,) = found_in(np.column_stack([x, x[:, 0] + x[:, 2]]), ("a", "b", "c", "d"))
    assert (one.groups, one.exchangeable) == (("a", "c", "d"), False)
    assert "a, c and d are linearly dependent" in str(one)


@pytest.mark.parametrize("seed", range(6))
def test_constants_and_copies_are_not_mixed_up(seed):
    rng = np.random.default_rng(seed)
    x = base(seed=seed)
    wide = np.column_stack([x, x[:, 0], np.full(100, 2.0), np.full(100, 7.0)])
    order = rng.permutation(6)
    names = np.array(["a", "b", "c", "copy", "two", "seven"])[order]
    found = {frozenset(one.groups): one for one in found_in(wide[:, order], tuple(names.tolist()))}
    assert set(found) == {frozenset({"intercept", "two"}), frozenset({"intercept", "seven"}), frozenset({"a", "copy"})}
    assert all(one.exchangeable for one in found.values())
    assert "seven is constant in this data" in str(found[frozenset({"intercept", "seven"})])


def test_single_parameters_are_named_by_their_feature():
    x = base(q=2)
    (one,) = found_in(np.column_stack([x, x[:, 0]]), ("a", "b", "c"), groups="parameter")
    assert (one.groups, one.exchangeable) == (("a", "c"), True)
    (constant,) = found_in(np.column_stack([x, np.ones(100)]), ("a", "b", "c"), groups="parameter")
    assert str(constant).startswith("c is constant")


def test_a_redundant_column_inside_one_group_is_said_quietly():
    level = np.arange(90) % 3
    x = np.column_stack([base(90, 1), np.eye(3)[level]])
    names = ("a", "l=0", "l=1", "l=2")
    (one,) = found_in(x, names, blocks={"l": names[1:]})
    assert (one.groups, one.exchangeable) == (("l",), True) and "not counted" in str(one)
    (apart,) = found_in(x, names)
    assert (apart.groups, apart.exchangeable) == (names[1:], False)


def test_a_group_that_reaches_further_is_no_substitute():
    x = base()
    wide, names = np.column_stack([x, x[:, 0]]), ("a", "b", "c", "d")
    (one,) = found_in(wide, names, groups={"ab": ["a", "b"]})
    assert (set(one.groups), one.exchangeable) == ({"ab", "d"}, False)
    (rows,) = found_in(wide, names, groups={"g": ["a[action_0]"], "h": ["d"]})
    assert not rows.exchangeable


def test_a_column_of_zeros_without_an_intercept():
    x = np.column_stack([base(q=2), np.zeros(100)])
    (one,) = found_in(x, ("a", "b", "c"), intercept=False)
    assert one.groups == ("c",) and "intercept" not in str(one)


def test_smallest_eigenvalue_is_numpys_and_never_negative():
    matrix = np.cov(np.random.default_rng(0).normal(size=(4, 50)))
    assert smallest_eigenvalue(matrix) == pytest.approx(np.linalg.eigvalsh(matrix).min(), rel=1e-12)
    assert smallest_eigenvalue(np.array([[1.0, 1.0], [1.0, 1.0 - 1e-16]])) == 0.0


@pytest.mark.parametrize(("m", "level", "power"), [(1, 0.05, 0.8), (3, 0.05 / 8, 0.8), (6, 0.01, 0.95)])
def test_noncentrality_reaches_the_power(m, level, power):
    ncp = noncentrality_for_power(ChiSquare(), level, m, power)
    assert stats.ncx2.sf(stats.chi2.isf(level, m), m, ncp) == pytest.approx(power, abs=1e-7)
    exact = noncentrality_for_power(WilksLambda(30, 5, 1), level, m, power)
    assert stats.ncf.sf(stats.f.isf(level, m, 25), m, 25, exact) == pytest.approx(power, abs=1e-6)
    assert exact > ncp


def test_the_detectable_effect_of_an_orthogonal_gaussian_design_is_in_closed_form():
    n = 64
    x = np.array([[(i >> b & 1) * 2.0 - 1 for b in range(3)] for i in range(n)])
    data = Sample.from_arrays(x, np.random.default_rng(0).normal(size=n))
    likelihood = likelihood_of(GaussianLinear(data.names, data.action_names, 4.0), data)
    found = detectable_effect(likelihood, inverse_of(likelihood), likelihood.space.groups[1], 0.05)
    # ncp = n θ²/σ² must be (z_{.975} + z_{.8})², up to the other tail.
    assert found == pytest.approx(np.sqrt(4.0 / n) * (stats.norm.isf(0.025) + stats.norm.isf(0.2)), rel=1e-4)


def test_the_detectable_effect_is_found_as_often_as_it_says():
    rng = np.random.default_rng(1)
    n, runs = 400, 250
    x = rng.normal(size=(n, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    pilot = Sample.from_arrays(x, np.arange(n) % 2, discrete=True)
    space = SoftmaxLinear(pilot.names, pilot.action_names)
    inverse = inverse_information(space.fisher(np.zeros(3), x))
    effect = detectable_effect(likelihood_of(space, pilot), inverse, space.groups[1], 0.05, power=0.8)
    theta, hits = np.array([0.0, effect, 0.0]), 0
    for _ in range(runs):
        data = Sample.from_arrays(x, space.sample(rng, theta, x), discrete=True, action_names=("0", "1"))
        likelihood = likelihood_of(space, data)
        statistic = 2 * (likelihood.full.log_likelihood - likelihood.fit(frozenset({2})).log_likelihood)
        hits += statistic > stats.chi2.isf(0.05, 1)
    assert abs(hits / runs - 0.8) < 3.5 * np.sqrt(0.16 / runs) + 0.02


def test_what_cannot_show_at_all_needs_an_infinite_effect():
    x = base(200, 2)
    wide = np.column_stack([x, x[:, 0], np.full(200, 3.0)])
    answer = identify(
        wide, np.random.default_rng(0).normal(size=200), names=("a", "b", "copy", "three"), covariance=1.0
    )
    effects = {test.group: test.minimum_detectable_effect for test in answer.groups}
    assert effects["a"] == effects["copy"] == effects["three"] == np.inf
    assert np.isfinite(effects["b"])


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["known", "estimated", "boltzmann", "firth"])
def test_the_inverse_by_standardised_features_is_the_inverse(intercept, kind):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 3)) * [1.0, 5.0, 0.2] + [1.0, -2.0, 0.5]
    y = rng.integers(0, 3, 150) if kind in ("boltzmann", "firth") else rng.normal(size=(150, 2))
    data = Sample.from_arrays(x, y)
    if data.discrete:
        space = SoftmaxLinear(data.names, data.action_names, intercept=intercept)
    else:
        covariance = "estimate" if kind == "estimated" else [[1.0, 0.4], [0.4, 0.5]]
        space = GaussianLinear(data.names, data.action_names, covariance, intercept=intercept)
    likelihood = likelihood_of(space, data, firth=kind == "firth")
    inverse, hidden = inverse_of(likelihood)
    np.testing.assert_allclose(inverse, np.linalg.inv(likelihood.information()), rtol=1e-6, atol=1e-9)
    assert not hidden.any()


@pytest.mark.parametrize("labels", [False, True])
def test_a_time_stamp_has_a_detectable_effect(labels):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 2))
    y = rng.integers(0, 2, 300) if labels else rng.normal(size=300)
    names = ("clock", "b")
    policy = "boltzmann" if labels else "gaussian"
    plain = identify(x, y, names=names, policy=policy)
    stamped = identify(x * [1000.0, 1.0] + [1.7e9, 0.0], y, names=names, policy=policy)
    for a, b, unit in zip(plain.groups, stamped.groups, (1000.0, 1.0), strict=True):
        assert np.isfinite(a.minimum_detectable_effect)
        assert b.minimum_detectable_effect * unit == pytest.approx(a.minimum_detectable_effect, rel=1e-4)
        assert b.statistic == pytest.approx(a.statistic, abs=1e-5)
