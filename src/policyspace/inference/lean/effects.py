"""How much the agent's behaviour hangs on an input: what changes when the other inputs' guess of it takes its place."""

import numpy as np

from policyspace.inference.lean.bases import Waves
from policyspace.inference.lean.moments import Projector
from policyspace.inference.lean.scores import Scorer

SAMPLE = 4000
"""Rows on which the change is averaged."""


def effect_of(scorer: Scorer, kept: list[int], tested: list[int]) -> float:
    """The mean absolute change of the fitted action: of probabilities for labels, in standard deviations otherwise.

    For labels it is half the summed change of all probabilities (the share of decisions that changes). Random waves are
    left out of the fit: a guess lies between values that were seen, where waves may be anything.
    """
    rows, basis = scorer.rows, scorer.basis
    smooth = np.concatenate([np.full(block.width, not isinstance(block, Waves)) for block in basis.blocks])
    used = np.unique(np.linspace(0, rows.num - 1, min(rows.num, SAMPLE)).astype(np.intp))
    everything = Projector(scorer.gram, smooth).coefficients(scorer.cross)
    guess = Projector(scorer.gram, basis.within(kept) & smooth).coefficients(scorer.gram[:, 1 + np.array(tested)])
    table = basis.columns(rows.inputs[used])
    replaced = rows.inputs[used].copy()
    replaced[:, tested] = table @ guess
    # A guess may lie where no state ever was: no action beyond those that were seen is expected there.
    least, most = rows.actions.min(axis=0), rows.actions.max(axis=0)
    change = np.clip(table @ everything, least, most) - np.clip(basis.columns(replaced) @ everything, least, most)
    if not rows.discrete:
        return float(np.abs(change).mean())
    change = change * rows.label_spread
    return float((np.abs(change).sum(axis=1) + np.abs(change.sum(axis=1))).mean() / 2)
