"""All 2^D supports at once against one least-squares problem after the other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyspace import Demonstrations, GaussianLinear, likelihood_of
from policyspace.fits.subsets import BREADTH, popcounts, residual_blocks


def residual_of(x, y, columns):
    if not len(columns):
        return y.T @ y
    rest = y - x[:, columns] @ np.linalg.lstsq(x[:, columns], y, rcond=1e-9)[0]
    return rest.T @ rest


def moments(x, y):
    x = x / np.where(x.any(axis=0), np.sqrt((x**2).sum(axis=0)), 1.0)
    joint = np.hstack([x, y])
    return x, joint.T @ joint


def members(groups, always, mask):
    return sorted([*always, *(i for g, group in enumerate(groups) if mask >> g & 1 for i in group)])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 3), min_size=0, max_size=5), st.integers(0, 2), st.integers(1, 3))
def test_residuals_of_all_supports_are_least_squares(seed, sizes, num_always, responses):
    rng = np.random.default_rng(seed)
    p = sum(sizes) + num_always
    x, y = rng.normal(size=(40, p)), rng.normal(size=(40, responses))
    if p > 2 and seed % 2:
        x[:, rng.integers(p)] = x[:, rng.integers(p)] + 2 * x[:, rng.integers(p)]  # collinear
    if p > 1 and seed % 3 == 0:
        x[:, rng.integers(p)] = 0.0
    order = rng.permutation(p).tolist()
    groups, start = [], num_always
    for size in sizes:
        groups.append(order[start : start + size])
        start += size
    x, matrix = moments(x, y)
    found = residual_blocks(matrix, groups, responses)
    upper = np.triu_indices(responses)
    assert found.shape == (len(upper[0]), 2 ** len(sizes))
    for mask in range(2 ** len(sizes)):
        expected = residual_of(x, y, members(groups, order[:num_always], mask))
        np.testing.assert_allclose(found[:, mask], expected[upper], rtol=1e-8, atol=1e-9)


def test_more_groups_than_go_breadth_first():
    rng = np.random.default_rng(1)
    size = BREADTH + 2
    x, y = rng.normal(size=(60, size)), rng.normal(size=(60, 1))
    x, matrix = moments(x, y)
    found = residual_blocks(matrix, [[g] for g in range(size)], 1)[0]
    for mask in [0, 1, 2**size - 1, 1 << BREADTH, 3 << BREADTH, *rng.integers(0, 2**size, 200).tolist()]:
        chosen = [g for g in range(size) if mask >> g & 1]
        assert found[mask] == pytest.approx(residual_of(x, y, chosen)[0, 0], rel=1e-10)


def test_popcounts():
    assert popcounts([2, 1, 5]).tolist() == [0, 2, 1, 3, 5, 7, 6, 8]
    assert popcounts([]).tolist() == [0]


@pytest.mark.parametrize("covariance", ["estimate", 0.8, "full"])
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("collinear", [False, True])
def test_every_gaussian_support_is_its_own_fit(covariance, k, collinear):
    rng = np.random.default_rng(k)
    x = rng.normal(size=(50, 5)) + 3
    if collinear:
        x = np.column_stack([x, x[:, 0], x[:, 1] + x[:, 2], np.full(50, 2.0)])
    y = rng.normal(size=(50, k)) + 0.2 * x[:, :1]
    if covariance == "full":
        root = rng.normal(size=(k, k)) + 2 * np.eye(k)
        covariance = root @ root.T
    data = Demonstrations.from_arrays(x, y)
    groups = {"ab": ["x0", "x1"]}
    space = GaussianLinear(data.names, data.action_names, covariance, groups, always=("x4",))
    likelihood = likelihood_of(space, data)
    tested = list(space.tested)
    found = likelihood.statistics_of_all(tested)
    degrees = likelihood.num_free(space.everything) - likelihood.num_free_of_all(tested)
    for mask in range(2 ** len(tested)):
        support = frozenset(g for b, g in enumerate(tested) if mask >> b & 1)
        expected = 2 * (likelihood.full.log_likelihood - likelihood.fit(support).log_likelihood)
        assert found[mask] == pytest.approx(expected, abs=1e-8)
        assert degrees[mask] == likelihood.degrees_of_freedom(support)


def test_single_parameters_of_several_actions_too():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(60, 3)), rng.normal(size=(60, 2))
    data = Demonstrations.from_arrays(x, y)
    space = GaussianLinear(data.names, data.action_names, [[1.0, 0.6], [0.6, 2.0]], "parameter")
    likelihood = likelihood_of(space, data)
    tested = list(space.tested)
    found = likelihood.statistics_of_all(tested)
    for mask in range(64):
        support = frozenset(g for b, g in enumerate(tested) if mask >> b & 1)
        expected = 2 * (likelihood.full.log_likelihood - likelihood.fit(support).log_likelihood)
        assert found[mask] == pytest.approx(expected, abs=1e-9)
