"""The mixture e-value against numerical integration, sign flips against full enumeration."""

from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from policyspace.inference.lean import GaussianMixtureEValue, log_evidence, sign_flip_p_value
from policyspace.inference.lean.lean_test import SPREADS


def test_one_entry_is_the_likelihood_ratio_averaged_over_a_normal_prior():
    variance, score = 80.0, 19.0
    by_hand = [
        quad(lambda t, d=d: norm.pdf(t, 0, d) * norm.pdf(score, variance * t, np.sqrt(variance)), -9 * d, 9 * d)[0]
        / norm.pdf(score, 0, np.sqrt(variance))
        for d in SPREADS
    ]
    found = GaussianMixtureEValue(np.array([[variance]]), np.array([True])).log(np.array([[score]]))[0]
    assert found == pytest.approx(np.log(np.mean(by_hand)), rel=1e-7)


def test_two_entries_with_the_minor_one_left_out_or_at_half_size():
    variance = np.array([[60.0, 20.0], [20.0, 50.0]])
    score = np.array([15.0, -9.0])
    null = multivariate_normal([0, 0], variance)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    values = []
    for spread in SPREADS:
        for minor in (0.0, 0.5):
            shifts = np.array([[spread * t, minor * spread * u] for t in nodes for u in nodes]) @ variance
            ratio = null.pdf(score - shifts) / null.pdf(score)
            values.append(np.outer(weights, weights).ravel() @ ratio)
    found = GaussianMixtureEValue(variance, np.array([True, False])).log(score[None])[0]
    assert found == pytest.approx(np.log(np.mean(values)), abs=1e-6)


def test_the_e_value_has_mean_one_under_the_null():
    rng = np.random.default_rng(4)
    root = rng.standard_normal((3, 3))
    variance = 5 * root @ root.T
    draws = rng.multivariate_normal(np.zeros(3), variance, 400_000)
    values = np.exp(GaussianMixtureEValue(variance, np.array([True, True, False])).log(draws))
    assert values.mean() == pytest.approx(1, abs=0.05)


def test_flips_of_few_clusters_are_all_enumerated():
    rng = np.random.default_rng(2)
    clusters = rng.standard_normal((9, 2)) * [1, 3] + [0.6, 0]
    major = np.array([True, False])
    mixture = GaussianMixtureEValue(clusters.T @ clusters, major)
    observed = mixture.log(clusters.sum(axis=0)[None])[0]
    everything = mixture.log(np.array(list(product([-1.0, 1.0], repeat=9))) @ clusters)
    p_value, statistic = sign_flip_p_value(clusters, major, 1.0, 999, 0)
    assert statistic == pytest.approx(observed)
    assert p_value == pytest.approx(np.mean(everything >= observed - 1e-9))


def test_random_flips_come_close_to_enumeration_and_never_reach_zero():
    rng = np.random.default_rng(5)
    clusters = rng.standard_normal((15, 1)) + 0.3
    signs = np.array(list(product([-1.0, 1.0], repeat=15)))
    exact = np.mean(np.abs(signs @ clusters) >= abs(clusters.sum()) - 1e-9)
    p_value, _ = sign_flip_p_value(clusters, np.array([True]), 1.0, 20_000, 0)
    assert p_value == pytest.approx(exact, abs=4 * np.sqrt(exact / 500))
    certain, _ = sign_flip_p_value(np.ones((15, 1)), np.array([True]), 1.0, 999, 0)
    assert certain >= 1 / 1000


def test_shrinking_the_observed_sum_can_only_raise_p():
    rng = np.random.default_rng(6)
    clusters = rng.standard_normal((10, 2)) + 0.5
    major = np.array([True, True])
    raised = [sign_flip_p_value(clusters, major, shrink, 999, 0)[0] for shrink in (1.0, 0.8, 0.5)]
    assert raised == sorted(raised)


def test_a_larger_variance_lowers_the_evidence_of_a_large_sum():
    clusters = np.random.default_rng(7).standard_normal((200, 1)) + 0.4
    assert log_evidence(clusters, np.array([True]), 1.5) < log_evidence(clusters, np.array([True]))
