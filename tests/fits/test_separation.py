"""Separation: known cases of the linear programme, λ as its limit, and flags that are neither missed nor made up."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import logsumexp

from policyspace import Sample, SoftmaxLinear, identify, likelihood_of, likelihood_ratio


def likelihood(x, y, weights=None, **space):
    names = [str(a) for a in range(int(np.max(y)) + 1)]
    data = Sample.from_arrays(x, y, discrete=True, action_names=names, weights=weights)
    return likelihood_of(SoftmaxLinear(data.names, data.action_names, **space), data)


def named(found):
    return {g.name for g in found.space.groups if found.diverging[list(g.indices)].any()}


def binomial_entropy(*counts):
    """sup log L of one saturated cell."""
    n = sum(counts)
    return sum(c * np.log(c / n) for c in counts if c)


def test_complete_separation_has_log_likelihood_zero():
    x = np.linspace(-2, 2, 40)[:, None]
    found = likelihood(x, (x[:, 0] > 0).astype(int))
    assert found.full.separated and found.full.converged
    assert found.full.log_likelihood == pytest.approx(0.0, abs=1e-7)
    assert "x0" in named(found)
    test = likelihood_ratio(found.fit(frozenset()), found.full)
    assert test.statistic == pytest.approx(-2 * binomial_entropy(20, 20), abs=1e-6)


def test_quasi_separation_by_a_level_leaves_the_rest_finite():
    # One level always plays 1, the other both: the limit is that of the cells.
    level = np.repeat([0, 1], [60, 40])
    y = np.concatenate([np.arange(60) % 3 == 0, np.ones(40)]).astype(int)
    noise = np.random.default_rng(0).normal(size=100)
    found = likelihood(level[:, None], y)
    assert found.full.separated and named(found) == {"x0"}  # the intercept, that of level 0, is finite
    assert found.full.log_likelihood == pytest.approx(binomial_entropy(20, 40), abs=1e-7)
    assert found.full.theta[0] == pytest.approx(np.log(40 / 20), abs=1e-6)
    both = likelihood(np.column_stack([level, noise, np.full(100, 3.0), noise]), y)
    assert named(both) == {"x0"}  # not the constant, nor the copies, along which nothing is seen to move
    assert not both.fit(both.space.full_support - {1}).separated
    assert both.fit(both.space.full_support - {2}).separated


def test_one_action_of_three_can_diverge_alone():
    rng = np.random.default_rng(1)
    level, y = rng.integers(0, 2, 300), rng.integers(0, 3, 300)
    y[(level == 1) & (y == 0)] = 1  # action 0 is never played at level 1; 1 and 2 are
    found = likelihood(level[:, None], y)
    assert found.diverging.tolist() == [False, True, False, False]
    counts = [[np.sum((level == v) & (y == a)) for a in range(3)] for v in (0, 1)]
    assert found.full.log_likelihood == pytest.approx(sum(binomial_entropy(*c) for c in counts), abs=1e-7)


def test_an_overlap_of_one_row_is_no_separation():
    x = np.linspace(-2, 2, 41)[:, None]
    y = (x[:, 0] > 0).astype(int)
    y[2] = 1
    found = likelihood(x, y)
    assert not found.full.separated and not found.diverging.any()
    assert np.isfinite(found.full.theta).all() and found.full.gradient_norm < 1e-4


@pytest.mark.parametrize("weight", [1.0, 1e3, 1e5])
def test_separation_by_a_combination_is_seen_however_much_the_rows_weigh(weight):
    # The flat direction is a combination of columns whose own curvature stays.
    rng = np.random.default_rng(0)
    a, y = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
    inside = a[:, 0] + a[:, 1] > 0.5
    y[inside] = 1
    x = np.column_stack([a[:, 0] * inside, a[:, 1] * inside, inside, a[:, 2]])
    found = likelihood(x, y, np.full(400, weight))
    assert found.full.separated and {"x2"} <= named(found) <= {"x0", "x1", "x2"}
    outside = likelihood(a[~inside][:, 2:], y[~inside], np.full((~inside).sum(), weight))
    assert found.full.log_likelihood == pytest.approx(outside.full.log_likelihood, rel=1e-9)


def ridge_limit(phi, y, k, free):
    """sup log L as the ridge vanishes: an oracle that never sees infinity, with its own Newton."""
    theta = np.zeros(free.sum())
    for strength in 10.0 ** -np.arange(2.0, 13.0):
        for _ in range(60):
            full = np.zeros(free.size)
            full[free] = theta
            eta = np.column_stack([phi @ full.reshape(k, -1).T, np.zeros(len(y))])
            p = np.exp(eta - logsumexp(eta, axis=1, keepdims=True))[:, :k]
            gradient = ((np.eye(k + 1)[y][:, :k] - p).T @ phi).ravel()[free] - strength * theta
            weights = np.einsum("na,ab->nab", p, np.eye(k)) - p[:, :, None] * p[:, None, :]
            hessian = np.einsum("nab,ni,nj->aibj", weights, phi, phi).reshape(free.size, -1)[np.ix_(free, free)]
            step = np.linalg.solve(hessian + strength * np.eye(free.sum()), gradient)
            theta = theta + step * min(1.0, 3.0 / np.abs(step).max())
    full[free] = theta
    eta = np.column_stack([phi @ full.reshape(k, -1).T, np.zeros(len(y))])
    return (eta[np.arange(len(y)), y] - logsumexp(eta, axis=1)).sum()


@pytest.mark.parametrize("seed", range(3))
def test_lambda_under_separation_is_the_limit_of_vanishing_ridges(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(80, 3))
    logits = np.column_stack([4 * x[:, 0], 4 * x[:, 1], np.zeros(80)])
    y = np.argmax(logits, axis=1)  # greedy: completely separated
    y[:4] = [0, 1, 2, 0]
    level = (rng.random(80) < 0.3).astype(float)
    y[level == 1] = 2  # and a level that only ever plays 2: quasi-separated whatever the rest does
    x = np.column_stack([x, level])
    found = likelihood(x, y)
    assert found.full.separated
    phi = np.column_stack([np.ones(80), x])
    for support in (
        found.space.full_support,
        found.space.full_support - {1},
        found.space.full_support - {3},
        frozenset({2}),
    ):
        expected = ridge_limit(phi, y, 2, found.space.free_mask(support))
        assert found.fit(support).log_likelihood == pytest.approx(expected, abs=1e-6)


def test_more_constraints_than_the_programme_starts_with():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(5000, 2))
    y = (x[:, 0] + x[:, 1] > 0).astype(int)
    assert likelihood(x, y).full.separated
    wrong = np.argmax(np.abs(x[:, 0] + x[:, 1]))
    y[wrong] = 1 - y[wrong]  # among 5000 rows one overlaps
    assert not likelihood(x, y).full.separated


def test_identify_names_what_diverges_and_says_what_to_do():
    level = np.repeat([0.0, 1.0], [60, 40])
    y = np.concatenate([np.arange(60) % 3 == 0, np.ones(40)]).astype(int)
    noise = np.random.default_rng(0).normal(size=100)
    answer = identify(np.column_stack([level, noise]), y, names=("door", "noise"), test="wilks")
    (warning,) = (w for w in answer.warnings if "separation" in w)
    assert "diverging: door;" in warning and "'firth'" in warning
    assert (
        answer.fit.separated
        and answer.groups[0].coefficient_norm == np.inf
        and np.isfinite(answer.groups[1].coefficient_norm)
    )
    penalised = identify(np.column_stack([level, noise]), y, names=("door", "noise"), firth=True)
    assert np.isfinite(penalised.groups[0].coefficient_norm) and penalised.groups[0].rejected


@pytest.mark.parametrize("seed", range(12))
def test_rows_with_several_actions_narrow_the_search_but_not_what_is_found(seed):
    """Against one programme over all constraints: the data are separated where the margins can add up to more than 0."""
    rng = np.random.default_rng(seed)
    levels = np.stack([rng.integers(0, 3, 60), rng.integers(0, 3, 60)], axis=1)
    x = np.column_stack([levels == level for level in (0, 1)]).astype(float)
    y = rng.integers(0, 3, 60)
    y = np.where((levels[:, 0] == 1) & (rng.random(60) < [0.5, 0.9, 1.0][seed % 3]), 2, y)
    found = likelihood(x, y)
    design = np.column_stack([np.ones(60), x])
    margins = []
    for row, played in zip(design, y, strict=True):
        for other in {0, 1, 2} - {int(played)}:
            weights = np.zeros((3, 5))
            weights[played], weights[other] = row, -row
            margins.append(weights[:2].ravel())
    matrix = np.array(margins)
    answer = linprog(-matrix.sum(axis=0), A_ub=-matrix, b_ub=np.zeros(len(matrix)), bounds=(-1, 1))
    assert found.full.separated == (answer.fun < -1e-6)
    if found.full.separated:  # what diverges is no more than what some separating direction moves
        for i in np.flatnonzero(found.diverging):
            reach = [
                linprog(sign * np.eye(10)[i], A_ub=-matrix, b_ub=np.zeros(len(matrix)), bounds=(-1, 1)).fun
                for sign in (-1, 1)
            ]
            assert min(reach) < -1e-6
