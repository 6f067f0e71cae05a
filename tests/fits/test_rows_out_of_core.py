"""Rows that are never all in memory: the same likelihood as that of arrays, in few passes."""

import itertools
import pickle

import numpy as np
import pytest

from policyspace import ChoiceLinear, GaussianLinear, InputError, Sample, SoftmaxLinear, likelihood_of
from policyspace.data import BLOCK, ComputeMoments, RowBlock, Rows
from policyspace.families import likelihood_of_rows
from policyspace.runtime import single_threaded_blas


class PartedRows(Rows):
    """Rows in parts of different sizes, each column by itself in memory, as files hold them; counts its passes."""

    def __init__(self, data, num_parts=7, seed=0):
        rng = np.random.default_rng(seed)
        inner = np.sort(rng.choice(np.arange(1, data.num_rows), num_parts - 1, replace=False))
        cuts = [0, *inner.tolist(), data.num_rows]
        self._parts = [
            RowBlock(
                np.asfortranarray(data.features[a:b]),
                data.actions[a:b].copy(),
                None if data.weights is None else data.weights[a:b],
            )
            for a, b in itertools.pairwise(cuts)
        ]
        self.num_rows, self.weighted, self.passes = data.num_rows, data.weights is not None, 0

    def total(self, function, size=65536):
        self.passes += 1
        function, found = pickle.loads(pickle.dumps(function)), None
        with single_threaded_blas():
            for part in self._parts:
                for start in range(0, len(part), size):
                    cut = slice(start, start + size)
                    weights = None if part.weights is None else part.weights[cut]
                    here = function(RowBlock(part.features[cut], part.actions[cut], weights))
                    found = here if found is None else tuple(a + b for a, b in zip(found, here, strict=True))
        return found


def stratified(data, most=2000, seed=0):
    """Up to `most` rows of each label, with weights that make up for the others."""
    rng = np.random.default_rng(seed)
    rows, weights = [], []
    for code in range(len(data.action_names)) if data.discrete else [None]:
        own = np.flatnonzero(data.actions == code) if data.discrete else np.arange(data.num_rows)
        kept = np.sort(rng.choice(own, min(most, len(own)), replace=False))
        mass = np.ones(data.num_rows) if data.weights is None else data.weights
        rows.append(kept)
        weights.append(mass[kept] * mass[own].sum() / max(mass[kept].sum(), 1e-300))
    rows, weights = np.concatenate(rows), np.concatenate(weights)
    order = np.argsort(rows)
    part = data.take(rows[order])
    return Sample(part.features, part.actions, part.names, part.action_names, weights=weights[order])


def statistics(likelihood, groups=None):
    supports = [likelihood.space.full_support - {g} for g in groups or likelihood.space.tested]
    fits = likelihood.fit_many(supports)
    assert all(fit.converged for fit in fits)
    return np.array([2 * (likelihood.full.log_likelihood - fit.log_likelihood) for fit in fits])


def gaussian_log(n, mean=0.0, spread=1.0, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 5)) @ rng.normal(size=(5, 5)) * spread
    a = x[:, :2] @ [[0.02 / spread, 0.0], [0.0, 0.01 / spread]] + rng.normal(size=(n, 2)) @ [[1.0, 0.3], [0.0, 1.0]]
    weights = rng.integers(0, 4, n).astype(float) if weighted else None
    return Sample(x + mean, a + mean, weights=weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", [0.0, 1e6])
@pytest.mark.parametrize("covariance", [None, [[1.09, 0.3], [0.3, 1.0]]])
def test_gaussian_rows_need_one_pass(weighted, mean, covariance):
    data = gaussian_log(100_000, mean, weighted=weighted)
    space = GaussianLinear(data.names, data.action_names, covariance)
    rows = PartedRows(data)
    streamed, arrays = likelihood_of_rows(space, rows, stratified(data)), likelihood_of(space, data)
    assert rows.passes == 1
    np.testing.assert_allclose(statistics(streamed), statistics(arrays), rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(streamed.full.theta[1:6], arrays.full.theta[1:6], rtol=1e-8, atol=1e-9)


def test_a_large_mean_costs_no_digits():
    """λ does not change when whole numbers, which floats hold exactly, are shifted by a million."""
    rng = np.random.default_rng(1)
    x = rng.integers(-8, 9, (200_000, 4)) / 4.0
    a = np.round((x @ [[0.01], [0.02], [0.0], [0.0]] + rng.normal(size=(200_000, 1))) * 64) / 64
    here, there = (Sample(x + mean, a + mean) for mean in (0.0, 1e6))
    found = [
        statistics(likelihood_of_rows(GaussianLinear(d.names, d.action_names), PartedRows(d), stratified(d)))
        for d in (here, there)
    ]
    np.testing.assert_allclose(*found, atol=1e-7, rtol=0)


def test_nearly_collinear_rows_are_decomposed_in_one_more_pass():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(50_000, 3))
    x[:, 2] = x[:, 0] + 1e-5 * rng.normal(size=50_000)
    data = Sample(x, x[:, :1] * 0.1 + rng.normal(size=(50_000, 1)))
    space, rows = GaussianLinear(data.names, data.action_names), PartedRows(data)
    streamed = likelihood_of_rows(space, rows, stratified(data))
    assert rows.passes == 2
    np.testing.assert_allclose(statistics(streamed), statistics(likelihood_of(space, data)), rtol=1e-7, atol=1e-7)


def test_moments_that_are_known_are_not_made_again():
    data = gaussian_log(20_000)
    rows = PartedRows(data)
    moments = rows.total(ComputeMoments(np.zeros(7)), BLOCK)[0]
    joint = np.hstack([data.features, data.actions])
    np.testing.assert_allclose(moments.mean, joint.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(moments.scatter / 20_000, np.cov(joint.T, bias=True), atol=1e-11)
    likelihood_of_rows(GaussianLinear(data.names, data.action_names), rows, stratified(data), moments)
    assert rows.passes == 1


def label_log(n, seed=0, weighted=False, rare=False):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)) * [1.0, 50.0, 0.01, 1.0] + [0.0, 1000.0, 0.0, 0.0]
    z = (x - [0.0, 1000.0, 0.0, 0.0]) / [1.0, 50.0, 0.01, 1.0]
    eta = np.column_stack([0.4 * z[:, 0] - 8.0 * rare, 0.05 * z[:, 1] - 0.3 * z[:, 0], np.zeros(n)])
    actions = (eta + rng.gumbel(size=eta.shape)).argmax(axis=1)
    weights = rng.uniform(0, 2, n) if weighted else None
    return Sample(x, actions, action_names=("a", "b", "c"), weights=weights)


@pytest.mark.parametrize("weighted", [False, True])
def test_boltzmann_rows_have_the_likelihood_of_arrays(weighted):
    data = label_log(60_000, weighted=weighted)
    space, rows = SoftmaxLinear(data.names, data.action_names), PartedRows(data)
    streamed, arrays = likelihood_of_rows(space, rows, stratified(data)), likelihood_of(space, data)
    np.testing.assert_allclose(statistics(streamed), statistics(arrays), rtol=1e-6, atol=1e-5)
    errors = np.sqrt(np.diag(np.linalg.inv(arrays.information() * arrays.total_weight)))
    assert np.abs(streamed.full.theta - arrays.full.theta).max() < 1e-3 * errors.max()


def test_what_is_no_sum_over_rows_is_refused():
    data = label_log(1000)
    space = ChoiceLinear(data.names, data.action_names)
    with pytest.raises(InputError, match="needs all rows in memory, found 1000"):
        likelihood_of_rows(space, PartedRows(data), stratified(data))
    with pytest.raises(InputError, match="same, in the same order"):
        likelihood_of_rows(SoftmaxLinear(("other",), data.action_names), PartedRows(data), stratified(data))


def hard_log(kind, n=120_000, seed=3):
    """Logs whose rare or extreme rows a sample does not hold."""
    rng = np.random.default_rng(seed)
    x = rng.standard_t(2, size=(n, 5)) if kind == "heavy tails" else rng.normal(size=(n, 5))
    weights = np.zeros((6, 3))
    weights[1:4, :2] = rng.normal(size=(3, 2)) * (1.5 if kind == "strong effects" else 0.3)
    if kind == "rare level":
        x[:, 0] = rng.random(n) < 5e-4
        weights[1] = [2.0, -1.0, 0.0]
    weights[0, 0] = -8.2 if kind == "rare action" else 0.0
    eta = weights[0] + x @ weights[1:]
    actions = (eta + rng.gumbel(size=eta.shape)).argmax(axis=1)
    if kind in ("separation", "separation of a few rows"):
        x[:, 0] = rng.random(n) < (0.01 if kind == "separation" else 4e-5)
        actions[x[:, 0] > 0] = 0
    if kind == "separation of the sample alone":
        x[:, 0] = rng.random(n) < 0.02
        actions[x[:, 0] > 0] = np.where(
            np.arange((x[:, 0] > 0).sum()) % 400 == 7, np.arange((x[:, 0] > 0).sum()) % 3, 0
        )
    return Sample(x, actions, action_names=("a", "b", "c"))


@pytest.mark.parametrize(
    ("kind", "most_passes", "separated"),
    [
        ("plain", 4, False),
        ("strong effects", 6, False),
        ("heavy tails", 9, False),
        ("rare action", 6, False),
        ("rare level", 5, False),
        ("separation", 12, True),
        ("separation of a few rows", 12, True),
        ("separation of the sample alone", 12, False),
    ],
)
def test_hard_logs_have_the_likelihood_of_arrays(kind, most_passes, separated):
    data = hard_log(kind)
    if kind == "rare action":
        assert 1e-4 < (data.actions == 0).mean() < 5e-4
    space, rows = SoftmaxLinear(data.names, data.action_names), PartedRows(data)
    streamed, arrays = likelihood_of_rows(space, rows, stratified(data, 3000)), likelihood_of(space, data)
    found, passes = statistics(streamed), rows.passes
    np.testing.assert_allclose(found, statistics(arrays), rtol=1e-6, atol=1e-6)
    assert streamed.full.separated == arrays.full.separated == separated
    assert streamed.diverging.tolist() == arrays.diverging.tolist()
    assert passes <= most_passes


@pytest.mark.parametrize("distance", [1e-5, -1e-5, 0.5])
def test_sides_of_critical_values_are_those_of_arrays(distance):
    data = label_log(60_000)
    space, rows = SoftmaxLinear(data.names, data.action_names), PartedRows(data)
    supports = [space.full_support - set(out) for out in itertools.combinations(space.tested, 2)]
    arrays = likelihood_of(space, data)
    exact = np.array([2 * (arrays.full.log_likelihood - fit.log_likelihood) for fit in arrays.fit_many(supports)])
    lower, upper = likelihood_of_rows(space, rows, stratified(data)).bound_statistics(supports, exact + distance)
    assert ((lower <= exact + 1e-6) & (exact - 1e-6 <= upper)).all()
    assert ((lower > exact + distance) | (upper <= exact + distance)).all()


def test_rows_far_out_are_found_where_moments_are_known():
    data = hard_log("separation of a few rows")
    space, rows = SoftmaxLinear(data.names, data.action_names), PartedRows(data)
    moments = rows.total(ComputeMoments(np.zeros(7), 3), BLOCK)[0]
    streamed = likelihood_of_rows(space, rows, stratified(data, 3000), moments)
    assert streamed.full.separated
