"""Standardised columns: an exact change of coordinates, and ranks that rounding does not fool."""

import numpy as np
import pytest

from policyspace.data.blocks import ArrayRows
from policyspace.data.joint_moments import moments_of
from policyspace.fits.design import Design
from policyspace.policies import BoltzmannLinear


def design_of(policy, x, weights=None):
    return Design(policy, moments_of(ArrayRows(x, np.empty((len(x), 0)), weights)))


def space(q, intercept=True, groups="feature"):
    return BoltzmannLinear([f"x{j}" for j in range(q)], ("a", "b", "c"), groups, intercept=intercept)


@pytest.mark.parametrize("intercept", [True, False])
def test_there_and_back(intercept):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 3)) * [1.0, 1e4, 1e-5] + [0.0, 2000.0, 1.0]
    design = design_of(space(3, intercept), x)
    weights = rng.normal(size=(5, 2, 3 + intercept))
    np.testing.assert_allclose(design.to_raw(design.to_standardised(weights)), weights, rtol=1e-9, atol=1e-9)
    phi = np.column_stack([np.ones(50), x]) if intercept else x
    eta = design.standardise(x) @ design.to_standardised(weights[0]).T
    np.testing.assert_allclose(eta, phi @ weights[0].T, rtol=1e-9, atol=1e-9)
    columns = design.standardise(x)[:, intercept:]
    np.testing.assert_allclose((columns**2).mean(axis=0), 1.0, rtol=1e-9)
    if intercept:
        np.testing.assert_allclose(columns.mean(axis=0), 0.0, atol=1e-9)


def test_weights_are_repeated_rows():
    rng = np.random.default_rng(1)
    x, counts = rng.normal(size=(40, 3)) + 5, rng.integers(0, 4, 40)
    here, there = design_of(space(3), x, counts.astype(float)), design_of(space(3), np.repeat(x, counts, axis=0))
    np.testing.assert_allclose(here.mean, there.mean, rtol=1e-12)
    np.testing.assert_allclose(here.second_moment, there.second_moment, rtol=1e-10)
    np.testing.assert_allclose(here.correlation, there.correlation, rtol=1e-10, atol=1e-12)
    assert here.total_weight == there.total_weight == counts.sum()


@pytest.mark.parametrize("value", [0.1, 1e8 + 0.3, -1 / 3, 0.0])
def test_a_constant_column_is_constant_over_many_rows(value):
    x = np.column_stack([np.random.default_rng(0).normal(size=300_000), np.full(300_000, value)])
    for weights in (None, np.random.default_rng(1).uniform(0, 2, 300_000)):
        design = design_of(space(2), x, weights)
        assert design.constant.tolist() == [False, True]
        assert design.num_free(np.ones(6, bool)) == 4


def test_a_column_that_only_moves_where_nothing_weighs_is_constant():
    x = np.column_stack([np.arange(10.0), np.r_[np.zeros(8), 1.0, 2.0]])
    assert design_of(space(2), x, np.r_[np.ones(8), 0.0, 0.0]).constant.tolist() == [False, True]


def test_a_small_spread_around_a_large_mean_is_a_feature():
    rng = np.random.default_rng(2)
    x = np.column_stack([1.7e9 + rng.normal(size=500), rng.normal(size=500)])
    design = design_of(space(2), x)
    assert design.full_rank and not design.constant.any()


def matrix_rank_free(x, free, intercept):
    phi = np.column_stack([np.ones(len(x)), x]) if intercept else x
    return sum(np.linalg.matrix_rank(phi[:, row], tol=1e-8 * len(x)) for row in free.reshape(2, -1))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("groups", ["feature", "parameter"])
def test_ranks_of_collinear_columns(intercept, groups):
    rng = np.random.default_rng(3)
    base = rng.normal(size=(60, 2)) + 1
    x = np.column_stack([base, base[:, 0], base[:, 0] + base[:, 1], np.full(60, 2.0)])
    if groups == "parameter":
        x = x[:, [0, 2, 4]]
    policy = space(x.shape[1], intercept, groups)
    design = design_of(policy, x)
    assert not design.full_rank
    tested = list(policy.tested)
    found = design.num_free_of_all([policy.groups[g].indices for g in tested])
    for mask in range(2 ** len(tested)):
        free = policy.free(frozenset(g for bit, g in enumerate(tested) if mask >> bit & 1))
        expected = matrix_rank_free(x, free, intercept)
        assert design.num_free(free) == found[mask] == expected


def test_the_null_space_is_what_vanishes():
    rng = np.random.default_rng(4)
    base = rng.normal(size=(80, 3))
    x = np.column_stack([base, base @ [1.0, -2.0, 0.0]]) * [1.0, 100.0, 0.01, 5.0]
    design = design_of(space(4), x)
    null = design.null_space()
    assert null.shape == (4, 1) and abs(null[2, 0]) < 1e-8
    np.testing.assert_allclose(design.standardise(x)[:, 1:] @ null, 0.0, atol=1e-8)
