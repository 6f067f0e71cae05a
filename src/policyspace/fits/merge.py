"""Merging equal rows: a likelihood needs each different state once, with the counts of its actions."""

import numpy as np

PROBE = 4096
"""Rows looked at before paying for a full search: if none of these repeat, few do."""


def merge_rows(
    features: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, num_actions: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Distinct rows [u, q] and the weight of each action in them [u, k+1]; None where merging would not pay."""
    representative = _representatives(features)
    if representative is None:
        return None
    distinct, index = np.unique(representative, return_inverse=True)
    counts = np.bincount(index * num_actions + codes, weights=weights, minlength=len(distinct) * num_actions)
    return features[distinct], counts.reshape(len(distinct), num_actions).astype(np.float64)


def _representatives(features: np.ndarray) -> np.ndarray | None:
    """For each row the first row that is equal to it; None where fewer than half of the rows repeat."""
    projection = np.random.default_rng(0).standard_normal((features.shape[1],))
    stride = max(1, len(features) // PROBE)
    probe = features[::stride] @ projection
    if len(features) > 2 * PROBE and len(np.unique(probe)) == len(probe):
        return None
    keys = _hash(features, projection)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if 2 * len(first) > len(features) and len(features) > PROBE:
        return None
    representative = first[inverse]
    if np.array_equal(features[representative], features):
        return representative
    # Two different rows share a hash: compare the rows themselves.
    _, first, inverse = np.unique(features, axis=0, return_index=True, return_inverse=True)
    return first[inverse.ravel()]


def _hash(features: np.ndarray, projection: np.ndarray) -> np.ndarray:
    """A random projection, added column by column so that equal rows get equal bits wherever they stand."""
    keys = np.zeros(len(features))
    for column, weight in zip(features.T, projection, strict=True):
        keys += column * weight
    return keys
