"""The design matrix: standardised columns, ranks that rounding does not fool, and all supports at once.

Compared with one least-squares problem and one rank after the other.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyspace import GaussianLinear, Sample, SoftmaxLinear, identify, likelihood_of
from policyspace.data import BLOCK, InMemoryRows, moments_of
from policyspace.families import DesignMatrix
from policyspace.families.design import (
    BREADTH,
    QR_BREADTH,
    popcounts,
    residual_blocks,
    residuals_of_all,
    triangular_factor,
)

# -- standardised columns and their ranks


def design_of(policy, x, weights=None):
    return DesignMatrix(policy, moments_of(InMemoryRows(x, np.empty((len(x), 0)), weights)))


def space(q, intercept=True, groups="feature"):
    return SoftmaxLinear([f"x{j}" for j in range(q)], ("a", "b", "c"), groups, intercept=intercept)


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
        free = policy.free_mask(frozenset(g for bit, g in enumerate(tested) if mask >> bit & 1))
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


# -- all supports from sums of products


def residual_of(x, y, columns):
    rest = y - x[:, columns] @ np.linalg.lstsq(x[:, columns], y, rcond=1e-9)[0] if len(columns) else y
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


def test_more_groups_than_moments_take_breadth_first():
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
    data = Sample.from_arrays(x, y)
    groups = {"ab": ["x0", "x1"]}
    space = GaussianLinear(data.names, data.action_names, covariance, groups, assume=("x4",))
    likelihood = likelihood_of(space, data)
    tested = list(space.tested)
    found = likelihood.statistics_of_all(tested)
    degrees = likelihood.num_free(space.full_support) - likelihood.num_free_of_all(tested)
    for mask in range(2 ** len(tested)):
        support = frozenset(g for b, g in enumerate(tested) if mask >> b & 1)
        expected = 2 * (likelihood.full.log_likelihood - likelihood.fit(support).log_likelihood)
        assert found[mask] == pytest.approx(expected, abs=1e-8)
        assert degrees[mask] == likelihood.degrees_of_freedom(support)


def test_single_parameters_of_several_actions_too():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(60, 3)), rng.normal(size=(60, 2))
    data = Sample.from_arrays(x, y)
    space = GaussianLinear(data.names, data.action_names, [[1.0, 0.6], [0.6, 2.0]], "parameter")
    likelihood = likelihood_of(space, data)
    tested = list(space.tested)
    found = likelihood.statistics_of_all(tested)
    for mask in range(64):
        support = frozenset(g for b, g in enumerate(tested) if mask >> b & 1)
        expected = 2 * (likelihood.full.log_likelihood - likelihood.fit(support).log_likelihood)
        assert found[mask] == pytest.approx(expected, abs=1e-9)


# -- all supports from decompositions of the rows themselves


@pytest.mark.parametrize("num_rows", [2, 50, 2 * BLOCK + 5])
def test_the_factor_of_all_rows_has_their_moments(num_rows):
    rows = np.random.default_rng(num_rows).normal(size=(num_rows, 4))
    factor = triangular_factor(InMemoryRows(rows, rows), lambda block: block.features)
    assert factor.shape == (4, 4) and not np.tril(factor, -1).any()
    np.testing.assert_allclose(factor.T @ factor, rows.T @ rows, rtol=1e-10, atol=1e-10 * num_rows)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 3), min_size=1, max_size=5), st.integers(0, 2), st.integers(0, 3))
def test_residuals_and_ranks_of_all_supports(seed, sizes, num_always, responses):
    rng = np.random.default_rng(seed)
    p = sum(sizes) + num_always
    x, y = rng.normal(size=(30, max(1, p - seed % 3))), rng.normal(size=(30, responses))
    x = x @ rng.integers(-2, 3, (x.shape[1], p))  # of lower rank, if seed % 3
    x /= np.where(x.any(axis=0), np.sqrt((x**2).sum(axis=0)), 1.0)
    order = rng.permutation(p).tolist()
    starts = np.cumsum([num_always, *sizes])
    groups = [order[start : start + size] for start, size in zip(starts[:-1], sizes, strict=True)]
    blocks, ranks = residuals_of_all(np.hstack([x, y]), groups, responses, 1e-9)
    upper = np.triu_indices(responses)
    for mask in range(2 ** len(sizes)):
        columns = [*order[:num_always], *(i for g, group in enumerate(groups) if mask >> g & 1 for i in group)]
        assert ranks[mask] == (np.linalg.matrix_rank(x[:, columns], tol=1e-8) if columns else 0)
        np.testing.assert_allclose(blocks[:, mask], residual_of(x, y, columns)[upper], rtol=1e-8, atol=1e-9)


def test_more_groups_than_rows_take_breadth_first():
    rng = np.random.default_rng(1)
    size = QR_BREADTH + 2
    x, y = rng.normal(size=(60, size)), rng.normal(size=(60, 1))
    blocks, ranks = residuals_of_all(np.hstack([x, y]), [[g] for g in range(size)], 1, 1e-9)
    for mask in [0, 1, 2**size - 1, 1 << QR_BREADTH, 3 << QR_BREADTH, *rng.integers(0, 2**size, 200).tolist()]:
        chosen = [g for g in range(size) if mask >> g & 1]
        assert blocks[0, mask] == pytest.approx(residual_of(x, y, chosen)[0, 0], rel=1e-10)
        assert ranks[mask] == len(chosen)


def nearly_collinear(seed, num_rows=400, noise=0.02):
    """Wide bumps seen in a narrow corridor: singular values fall to 1e-7, and the agent steers by the difference."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(0.0, 1.2, (num_rows, 1))
    x = np.exp(-0.5 * ((place - np.linspace(0.0, 2.0, 6)) / 1.0) ** 2)
    owned = np.array([3e4, -8e4, 0.0, 7e4, 0.0, -3e4])
    y = (x @ owned)[:, None] + noise * rng.normal(size=(num_rows, 1))
    return x, y, owned != 0


def exact_squares(x, y, columns):
    """The least sum of squares with an intercept and some columns, in rational numbers: no rounding at all."""
    rows = [[Fraction(1), *map(Fraction, row), Fraction(a)] for row, a in zip(x[:, columns].tolist(), y, strict=True)]
    size = len(rows[0])
    moments = [[sum(row[i] * row[j] for row in rows) for j in range(size)] for i in range(size)]
    for pivot in range(size - 1):
        for i in range(pivot + 1, size):
            share = moments[i][pivot] / moments[pivot][pivot]
            moments[i] = [a - share * b for a, b in zip(moments[i], moments[pivot], strict=True)]
    return moments[-1][-1]


def test_what_an_agent_does_along_nearly_collinear_features_is_not_lost():
    x, y, _ = nearly_collinear(0, num_rows=120)
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    singular = np.linalg.svd(scaled, compute_uv=False) / np.sqrt(len(x))
    assert 1e-9 < singular[-1] < 3e-6  # beyond what the moment matrix could tell
    data = Sample.from_arrays(x, y)
    space = GaussianLinear(data.names, data.action_names, 0.02**2)
    likelihood = likelihood_of(space, data)
    assert likelihood.identifiable
    everything = exact_squares(x, y[:, 0], list(range(6)))
    of_all = likelihood.statistics_of_all(list(space.tested))
    for column, g in enumerate(space.tested):
        support = space.full_support - {g}
        without = exact_squares(x, y[:, 0], [j for j in range(6) if j != column])
        expected = float(without - everything) / 0.02**2
        found = 2 * (likelihood.full.log_likelihood - likelihood.fit(support).log_likelihood)
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)
        assert of_all[63 ^ 1 << column] == pytest.approx(expected, rel=1e-4, abs=1e-4)
        assert likelihood.degrees_of_freedom(support) == 1


def test_nearly_collinear_features_are_selected_falsely_no_more_often_than_allowed():
    false = 0
    for seed in range(100):
        x, y, owned = nearly_collinear(seed, num_rows=100)
        answer = identify(Sample.from_arrays(x, y), covariance=0.02**2, rule="simplified", significance=0.2)
        false += any(not owned[int(name.removeprefix("x"))] for name in answer.selected)
    assert false <= 32  # binomial(100, .2) exceeds it once in a thousand
