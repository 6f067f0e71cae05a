"""How much the fitted policy's action changes when a feature is replaced by what the others predict of it."""

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.fits.base import Likelihood

SAMPLE = 4000
"""Rows on which the change is averaged."""


def behavioural_effects(likelihood: Likelihood, data: Demonstrations) -> dict[int, float]:
    """For each tested group the mean absolute change of the action, or of all probabilities together.

    Continuous actions count in their own standard deviations, the mean over components; for labels it is half the summed
    change of probabilities: the share of decisions that would change.
    """
    space, columns = likelihood.space, likelihood.space.group_columns()
    if columns is None:
        return {}
    rows = np.unique(np.linspace(0, data.num_pairs - 1, min(data.num_pairs, SAMPLE)).astype(np.intp))
    features = data.features[rows]
    expected = space.expected_action(likelihood.full.theta, features)
    if expected is None:
        return {}
    spread = 1.0 if space.discrete else np.maximum(data.actions[rows].std(axis=0), np.finfo(float).tiny)
    found, design = {}, np.hstack([np.ones((len(features), 1)), features])
    # The triangle of a QR decomposition has the least squares of all rows.
    triangle = np.asarray(np.linalg.qr(design, mode="r"))
    for group in space.tested:
        inside = list(columns[group])
        others = np.setdiff1d(np.arange(design.shape[1]), np.add(inside, 1))
        predicting = np.linalg.lstsq(triangle[:, others], triangle[:, np.add(inside, 1)], rcond=None)[0]
        replaced = features.copy()
        replaced[:, inside] = design[:, others] @ predicting
        other = space.expected_action(likelihood.full.theta, replaced)
        assert other is not None
        change = np.abs(expected - other) / spread
        if space.discrete:  # the reference's probability changes by what the others' do together
            last = np.abs((expected - other).sum(axis=1))
            found[group] = float((change.sum(axis=1) + last).mean() / 2)
        else:
            found[group] = float(change.mean())
    return found
