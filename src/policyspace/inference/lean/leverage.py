"""Regressions pull residuals towards zero, most in clusters far from the others: by how much scores are too alike."""

import numpy as np

from policyspace.data.blocks import Block
from policyspace.inference.lean.scores import Plan, Scorer

MOST_CLUSTERS = 40
MOST_ROWS = 400
"""Clusters are looked at in a sample, and of a long one only so many rows."""

NEGLIGIBLE = 0.02


def shrink_factor(scorer: Scorer, plan: Plan, codes: np.ndarray, num_summed: int) -> float:
    """√(Σ‖g‖²/Σ‖g̃‖²) ≤ 1 over clusters, g̃ from residuals divided by the root of 1 − leverage (Bell and McCaffrey's CR2).

    `codes` of the clusters of the rows at hand, `num_summed` the number of clusters of all rows.
    """
    columns, look = int(plan.mask.sum()), plan.look
    if columns / num_summed < NEGLIGIBLE:
        return float(np.sqrt(1 - columns / num_summed / 2))
    num = int(codes[-1]) + 1
    starts = np.searchsorted(codes, np.arange(num + 1))
    raw = corrected = 0.0
    num_actions = scorer.cross.shape[1]
    for cluster in np.unique(np.linspace(0, num - 1, min(num, MOST_CLUSTERS)).astype(np.intp)):
        part = slice(int(starts[cluster]), int(min(starts[cluster + 1], starts[cluster] + MOST_ROWS)))
        table = scorer.basis.columns(scorer.rows.inputs[part])
        left = look.left(Block(scorer.rows.inputs[part], scorer.rows.actions[part]), table @ look.slopes)
        hat = table @ plan.projector.coefficients(table.T)
        values, vectors = np.linalg.eigh((hat + hat.T) / 2)
        root = 1 / np.sqrt(np.maximum(1 - values, 1e-2))
        actions = vectors @ (root[:, None] * (vectors.T @ left[:, :num_actions]))
        tested = left[:, num_actions:]
        raw += float(np.sum((tested.T @ left[:, :num_actions]) ** 2))
        corrected += float(np.sum((tested.T @ actions) ** 2))
    return float(np.sqrt(min(1.0, raw / corrected))) if corrected > 0 else 1.0
