"""The covariance of a linear fit that needs no independent rows: information, scores by cluster, information."""

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.fits.base import Likelihood
from policyspace.fits.fisher import as_linear_likelihood, to_raw_coordinates


def clusters_of(data: Demonstrations) -> np.ndarray:
    """The cluster of each row [n]: its subject, or the row itself."""
    return np.arange(data.num_pairs) if data.subjects is None else np.unique(data.subjects, return_inverse=True)[1]


def clustered_covariance(likelihood: Likelihood, data: Demonstrations) -> np.ndarray:
    """V = B (Σ_c g_c g_cᵀ) B · G/(G−1) of θ̂ [d, d], g_c the score of cluster c.

    B is the inverse of the information. Of a Gaussian policy it is that of least squares, times (n−1)/(n−q), as R's `vcovCL`
    has it.
    """
    linear = as_linear_likelihood(likelihood, "a covariance by cluster is")
    if not linear.identifiable:
        raise InputError(
            "a covariance by cluster needs features that are not collinear: drop a redundant one, or use the test 'lean'."
        )
    space, design = linear.space, linear.design
    theta, information = linear.sharpened()
    expected = space.expected_action(theta, data.features)
    assert expected is not None
    seen = data.actions if not space.discrete else data.actions[:, None] == np.arange(expected.shape[1])
    weights = np.ones(data.num_pairs) if data.weights is None else data.weights
    scores = design.scores(data.features, (seen - expected) * weights[:, None])
    codes = clusters_of(data)
    num_clusters = int(codes.max()) + 1
    if data.subjects is None and not data.sampling_weights and data.weights is not None:  # a count is as many clusters
        meat, num_clusters = (scores / weights[:, None]).T @ scores, int(weights.sum())
    else:
        sums = np.zeros((num_clusters, scores.shape[1]))
        np.add.at(sums, codes, scores)
        meat = sums.T @ sums
    if num_clusters < 2:
        raise InputError("a covariance by cluster needs at least two subjects, found one: leave the subjects out.")
    meat *= num_clusters / (num_clusters - 1)
    if space.discrete:
        bread = np.linalg.inv(information)
    else:
        rows = design.standardise(data.features)
        bread = np.kron(np.eye(expected.shape[1]), np.linalg.inv((rows * weights[:, None]).T @ rows))
        meat *= (likelihood.total_weight - 1) / (likelihood.total_weight - rows.shape[1])
    back = to_raw_coordinates(design, len(bread))
    return back.T @ bread @ meat @ bread @ back
