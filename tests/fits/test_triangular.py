"""Decompositions of the rows themselves, against one least-squares problem and one rank after the other."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyspace import Demonstrations, GaussianLinear, identify, likelihood_of
from policyspace.data.blocks import ArrayRows
from policyspace.data.joint_moments import BLOCK
from policyspace.fits.triangular import BREADTH, residuals_of_all, triangular_factor


def residual_of(x, y, columns):
    rest = y - x[:, columns] @ np.linalg.lstsq(x[:, columns], y, rcond=1e-9)[0] if len(columns) else y
    return rest.T @ rest


@pytest.mark.parametrize("num_rows", [2, 50, 2 * BLOCK + 5])
def test_the_factor_of_all_rows_has_their_moments(num_rows):
    rows = np.random.default_rng(num_rows).normal(size=(num_rows, 4))
    factor = triangular_factor(ArrayRows(rows, rows), lambda block: block.features)
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


def test_more_groups_than_go_breadth_first():
    rng = np.random.default_rng(1)
    size = BREADTH + 2
    x, y = rng.normal(size=(60, size)), rng.normal(size=(60, 1))
    blocks, ranks = residuals_of_all(np.hstack([x, y]), [[g] for g in range(size)], 1, 1e-9)
    for mask in [0, 1, 2**size - 1, 1 << BREADTH, 3 << BREADTH, *rng.integers(0, 2**size, 200).tolist()]:
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
    data = Demonstrations.from_arrays(x, y)
    space = GaussianLinear(data.names, data.action_names, 0.02**2)
    likelihood = likelihood_of(space, data)
    assert likelihood.identifiable
    everything = exact_squares(x, y[:, 0], list(range(6)))
    of_all = likelihood.statistics_of_all(list(space.tested))
    for column, g in enumerate(space.tested):
        support = space.everything - {g}
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
        answer = identify(Demonstrations.from_arrays(x, y), covariance=0.02**2, rule="simplified", significance=0.2)
        false += any(not owned[int(name.removeprefix("x"))] for name in answer.core)
    assert false <= 32  # binomial(100, .2) exceeds it once in a thousand
