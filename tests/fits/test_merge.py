"""Merging equal rows changes no sum, and rows that only look equal are kept apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyspace import Sample, SoftmaxLinear, likelihood_of
from policyspace.families import softmax as boltzmann
from policyspace.families import unique_rows


def counted(features, codes, weights, num_actions):
    """The same by a dictionary."""
    table = {}
    for row, code, weight in zip(features.tolist(), codes.tolist(), weights.tolist(), strict=True):
        table.setdefault(tuple(v + 0.0 for v in row), np.zeros(num_actions))[code] += weight
    return table


@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 3), st.integers(2, 4), st.booleans())
def test_counts_are_a_dictionarys(seed, n, q, num_actions, weighted):
    rng = np.random.default_rng(seed)
    features = rng.integers(-1, 2, (n, q)) * rng.choice([1.0, 0.1, 1e9])
    codes = rng.integers(0, num_actions, n)
    weights = rng.uniform(0, 2, n) if weighted else np.ones(n)
    rows, counts = unique_rows(features, codes, weights if weighted else None, num_actions)
    expected = counted(features, codes, weights, num_actions)
    assert len(rows) == len(expected)
    for row, count in zip(rows.tolist(), counts, strict=True):
        np.testing.assert_allclose(count, expected[tuple(v + 0.0 for v in row)], rtol=1e-12)


def test_rows_that_differ_below_the_rounding_of_a_projection_stay_apart():
    features = np.column_stack([np.full(200, 1e17), np.arange(200) % 4 * 0.25])
    rows, counts = unique_rows(features, np.zeros(200, dtype=int), None, 2)
    assert sorted(rows[:, 1].tolist()) == [0.0, 0.25, 0.5, 0.75]
    assert counts.sum() == 200 and (counts[:, 0] == 50).all()


def test_zero_and_minus_zero_are_one_row():
    rows, counts = unique_rows(np.array([[0.0], [-0.0], [1.0]]), np.array([0, 1, 1]), None, 2)
    assert sorted(map(tuple, counts.tolist())) == [(0.0, 1.0), (1.0, 1.0)] and len(rows) == 2


def test_rows_without_repetition_are_left_alone():
    rng = np.random.default_rng(0)
    n = 12_000  # several times what is looked at before all rows are compared
    assert unique_rows(rng.normal(size=(n, 2)), np.zeros(n, dtype=int), None, 2) is None
    half = rng.normal(size=(n, 2))
    half[: n // 3] = 1.0
    assert unique_rows(half, np.zeros(n, dtype=int), None, 2) is None  # a third repeats: not worth it


@pytest.mark.parametrize("weighted", [False, True])
def test_merging_changes_no_fit(monkeypatch, weighted):
    rng = np.random.default_rng(2)
    x = rng.integers(0, 4, (3000, 3)).astype(float)
    y = rng.integers(0, 3, 3000)
    data = Sample.from_arrays(x, y, discrete=True, weights=rng.uniform(0, 3, 3000) if weighted else None)
    space = SoftmaxLinear(data.names, data.action_names)
    merged = likelihood_of(space, data)
    assert len(merged.rows) == 64
    monkeypatch.setattr(boltzmann, "unique_rows", lambda *_: None)
    plain = likelihood_of(space, data)
    assert len(plain.rows) == 3000
    assert merged.full.log_likelihood == pytest.approx(plain.full.log_likelihood, abs=1e-8)
    for g in space.tested:
        support = space.full_support - {g}
        assert merged.fit(support).log_likelihood == pytest.approx(plain.fit(support).log_likelihood, abs=1e-7)
