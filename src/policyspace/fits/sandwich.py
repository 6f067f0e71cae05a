"""The covariance of a linear fit that needs no independent rows: information, scores by cluster, information."""

from collections.abc import Iterator

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.fits.base import Likelihood, LinearLikelihood
from policyspace.fits.few_clusters import FewClusters
from policyspace.fits.fisher import as_linear_likelihood, to_raw_coordinates

MOST = 1000
"""Clusters up to which the covariance and its degrees of freedom are those of few clusters."""


def clusters_of(data: Demonstrations) -> np.ndarray:
    """The cluster of each row [n]: its subject, or the row itself."""
    return np.arange(data.num_pairs) if data.subjects is None else np.unique(data.subjects, return_inverse=True)[1]


def num_clusters(data: Demonstrations) -> int:
    """How many clusters there are; each of the pairs that a row counts is one, where there are no subjects."""
    return int(data.total_weight) if _counts_are_clusters(data) else int(clusters_of(data).max()) + 1


def clustered_covariance(likelihood: Likelihood, data: Demonstrations) -> np.ndarray:
    """V = B (Σ_c g_c g_cᵀ) B · G/(G−1) of θ̂ [d, d], g_c the score of cluster c.

    B is the inverse of the information. Of a Gaussian policy it is that of least squares, times (n−1)/(n−q), as R's `vcovCL`
    has it.
    """
    linear = _identifiable(likelihood)
    space, design = linear.space, linear.design
    theta, information = linear.sharpened()
    scores, expected = _scores(linear, data, theta)
    weights = _weights(data)
    size = num_clusters(data)
    if size < 2:
        raise InputError("a covariance by cluster needs at least two subjects, found one: leave the subjects out.")
    if _counts_are_clusters(data):
        meat = (scores / np.maximum(weights, np.finfo(float).tiny)[:, None]).T @ scores
    else:
        sums = np.zeros((size, scores.shape[1]))
        np.add.at(sums, clusters_of(data), scores)
        meat = sums.T @ sums
    meat *= size / (size - 1)
    if space.discrete:
        bread = np.linalg.inv(information)
    else:
        rows = design.standardise(data.features)
        bread = np.kron(np.eye(expected.shape[1]), np.linalg.inv((rows * weights[:, None]).T @ rows))
        meat *= (likelihood.total_weight - 1) / (likelihood.total_weight - rows.shape[1])
    back = to_raw_coordinates(design, len(bread))
    return back.T @ bread @ meat @ bread @ back


def few_clusters(likelihood: Likelihood, data: Demonstrations) -> FewClusters | None:
    """Tests that are right with few clusters, too; None where there are many."""
    linear, size = _identifiable(likelihood), num_clusters(data)
    if size < 2:
        raise InputError("a covariance by cluster needs at least two subjects, found one: leave the subjects out.")
    if size > MOST:
        return None
    data = data.without_weights("a covariance by few clusters") if _counts_are_clusters(data) else data
    codes = clusters_of(data)
    space, design, theta = linear.space, linear.design, linear.sharpened()[0]
    order = np.argsort(codes, kind="stable")
    data, codes = data.rows(order), codes[order]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    covariance = space.noise_covariance(theta, data)
    metric = None if covariance is None else np.linalg.cholesky(np.linalg.inv(covariance))
    scores, expected = _scores(linear, data, theta, metric)
    information = np.zeros((size, scores.shape[1], scores.shape[1]))
    for root in _roots(expected, metric):
        rows = design.scores(data.features, root * np.sqrt(_weights(data))[:, None])
        for own, part in zip(information, np.split(rows, starts[1:]), strict=True):
            own += part.T @ part
    sums = np.add.reduceat(scores, starts)
    return FewClusters(sums, information, to_raw_coordinates(design, scores.shape[1]))


def _identifiable(likelihood: Likelihood) -> LinearLikelihood:
    linear = as_linear_likelihood(likelihood, "a covariance by cluster is")
    if not linear.identifiable:
        raise InputError(
            "a covariance by cluster needs features that are not collinear: drop a redundant one, or use the test 'lean'."
        )
    return linear


def _scores(
    linear: LinearLikelihood, data: Demonstrations, theta: np.ndarray, metric: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The weighted scores of all rows [n, d], and what is expected of their actions [n, k].

    Amounts count in their own units, or with a `metric` LLᵀ = Σ⁻¹ as the likelihood has it.
    """
    expected = linear.space.expected_action(theta, data.features)
    assert expected is not None
    seen = data.actions if not linear.space.discrete else data.actions[:, None] == np.arange(expected.shape[1])
    left = (seen - expected) * _weights(data)[:, None]
    return linear.design.scores(data.features, left if metric is None else left @ metric @ metric.T), expected


def _roots(expected: np.ndarray, metric: np.ndarray | None) -> Iterator[np.ndarray]:
    """Arrays [n, k] whose scores have outer products that add up to the information of each row."""
    if metric is not None:
        yield from (np.broadcast_to(column, expected.shape) for column in metric.T)
        return
    for a in range(expected.shape[1] + 1):  # the score if this label were chosen, times the root of its probability
        chosen = np.arange(expected.shape[1]) == a
        share = expected[:, a] if a < expected.shape[1] else 1 - expected.sum(axis=1)
        yield (chosen - expected) * np.sqrt(np.maximum(share, 0.0))[:, None]


def _weights(data: Demonstrations) -> np.ndarray:
    return np.ones(data.num_pairs) if data.weights is None else data.weights


def _counts_are_clusters(data: Demonstrations) -> bool:
    """Whether each of the pairs that a row counts is a cluster."""
    return data.subjects is None and not data.sampling_weights and data.weights is not None
