"""Is what a policy expects as often as it says what happens? Probabilities in bins, beside how often labels were chosen."""

from dataclasses import dataclass

import numpy as np

from policyspace.data.demonstrations import Demonstrations

MOST_BINS = 10


@dataclass(frozen=True)
class CalibrationBin:
    """One label in rows where it was about equally probable."""

    label: str
    expected: float
    chosen: float
    weight: float  # pairs in the bin


def calibration_bins(expected: np.ndarray, data: Demonstrations) -> list[CalibrationBin]:
    """For every label but, of two, the reference: bins of about equal weight by its probability [n, k]."""
    weights = np.ones(data.num_pairs) if data.weights is None else data.weights
    probabilities = np.column_stack([expected, 1 - expected.sum(axis=1)])
    found = []
    for a, label in enumerate(data.action_names[: 1 if len(data.action_names) == 2 else None]):
        values, order = np.unique(probabilities[:, a].round(12), return_inverse=True)
        below = np.cumsum(np.bincount(order, weights)) - np.bincount(order, weights) / 2
        bins = np.minimum((below / weights.sum() * MOST_BINS).astype(np.intp), MOST_BINS - 1)[order]
        for one in np.unique(bins).tolist():
            inside = bins == one
            size = weights[inside].sum()
            if size > 0:
                share = weights[inside] @ (data.actions[inside] == a) / size
                mean = weights[inside] @ values[order[inside]] / size
                found.append(CalibrationBin(label, float(mean), float(share), float(size)))
    return found
