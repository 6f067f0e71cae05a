"""How well each family of regressions predicts the actions of episodes that it was not fitted to."""

import numpy as np

from policyspace.inference.lean.bases import Basis, Scale
from policyspace.inference.lean.moments import Projector, moments
from policyspace.inference.lean.nuisance import families_of
from policyspace.inference.lean.rows import Rows

NUM_FOLDS = 5
MOST_ROWS = 60_000
"""Families are compared on so many rows at most."""


def held_out_errors(rows: Rows, seed: int) -> dict[str, float]:
    """Five-fold cross-validation over episodes (blocks of rows where there are few); 1 is no better than the mean."""
    families = families_of(rows, seed)
    blocks = list(dict.fromkeys(block for family in families.values() for block in family))
    basis = Basis(tuple(blocks), Scale.of(rows))
    sums = moments(basis, rows, folds(rows, seed), NUM_FOLDS)
    starts = np.cumsum([0] + [block.width for block in blocks])
    width = basis.width
    actions = np.arange(width, width + rows.actions.shape[1])
    errors: dict[str, float] = {}
    for name, family in families.items():
        mask = np.zeros(width, bool)
        for block, start in zip(blocks, starts, strict=False):
            mask[start : start + block.width] = block in family
        errors[name] = held_out_error(sums, mask, actions)
    return errors


def held_out_error(sums: np.ndarray, mask: np.ndarray, targets: np.ndarray) -> float:
    """Squared error of predicting one fold's targets from the others, as a share of their variance.

    `sums` of products a fold, `mask` [P] the columns to regress on, `targets` the positions of what is predicted.
    """
    own = np.flatnonzero(mask)
    inner, cross = sums[:, own[:, None], own], sums[:, own[:, None], targets]
    all_inner, all_cross = inner.sum(axis=0), cross.sum(axis=0)
    squares = float(sums[:, targets, targets].sum())
    error = squares
    for held, held_cross in zip(inner, cross, strict=True):
        slopes = Projector(all_inner - held, np.ones(len(own), bool)).coefficients(all_cross - held_cross)
        error += float(np.sum(slopes * (held @ slopes - 2 * held_cross)))
    return error / squares


def folds(rows: Rows, seed: int) -> np.ndarray:
    """The fold of each row; −1 for rows beyond those that are compared."""
    unit = rows.episode if rows.subject is None else rows.subject
    if unit[-1] + 1 < 2 * NUM_FOLDS:
        unit = np.arange(rows.num) // int(np.clip(rows.num // 50, 1, 200))
    num_units = int(unit[-1]) + 1
    rng = np.random.default_rng([seed, 5])
    of_unit = rng.permutation(num_units) % NUM_FOLDS
    share = MOST_ROWS / rows.num
    if share < 1:
        of_unit[rng.permutation(num_units)[max(2 * NUM_FOLDS, int(share * num_units)) :]] = -1
    return of_unit[unit]
