"""Moments of blocks against sums in longer numbers, wherever the columns lie."""

import numpy as np
import pytest

from policyspace.data import ComputeMoments, RowBlock
from policyspace.data.large.layout import ColumnarBlock


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("away", [0.0, 0.9, 1e6])
@pytest.mark.parametrize("num_labels", [None, 1, 3])
def test_scatter_and_mean_are_exact_to_rounding(num_labels, away, weighted):
    rng = np.random.default_rng(0)
    columns = [away + rng.normal(size=5000), rng.integers(0, 9, 5000), np.full(5000, away), rng.random(5000) < 0.3]
    x = np.column_stack(columns).astype(float)
    actions = rng.normal(size=(5000, 2)) + away if num_labels is None else rng.integers(0, num_labels, 5000)
    weights = rng.integers(0, 4, 5000).astype(float) if weighted else None
    responses = actions if num_labels is None else actions[:, None] == np.arange(num_labels - 1)
    z = np.hstack([x, responses]).astype(np.longdouble)
    w = np.ones(5000) if weights is None else weights
    mean = (w[:, None] * z).sum(axis=0) / w.sum()
    scatter = (w[:, None] * (z - mean)).T @ (z - mean)
    scale = np.sqrt(np.diag(scatter)) + 1e-300
    of = ComputeMoments(np.zeros(z.shape[1]), num_labels)
    blocks = RowBlock(x, actions, weights), RowBlock(np.asfortranarray(x), actions, weights)
    for block in (*blocks, ColumnarBlock(columns, actions, weights)):
        (found,) = of(block)
        assert found.total_weight == w.sum()
        assert np.abs(found.mean - mean).max() <= 1e-15 * max(1, away)
        wrong = np.abs(found.scatter - scatter)
        assert (wrong[:, scale > 1] / np.outer(scale, scale)[:, scale > 1])[scale > 1].max() < 1e-13
        assert wrong[2].max() < 1e-8
        assert found.within(2e9) and not found.within(0.99 * np.abs(x).max())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200, -1e70])
@pytest.mark.parametrize("everywhere", [False, True])
def test_no_number_beyond_a_bound_stays_hidden(bad, everywhere):
    x = np.random.default_rng(0).normal(size=(300, 3))
    x[slice(None) if everywhere else 7, 1] = bad
    with np.errstate(all="ignore"):
        (here,) = ComputeMoments(np.zeros(4))(RowBlock(x, x[:, :1]))
        (other,) = ComputeMoments(np.zeros(4))(RowBlock(x[:, ::2].repeat(2, axis=1)[:, :3], x[:, :1]))
        assert other.within(1e60)
        assert not any(sums.within(1e60) for sums in (here, here + other, other + here))
