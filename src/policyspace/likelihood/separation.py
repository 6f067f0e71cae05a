"""Separation: an agent so regular that the maximum-likelihood parameter lies at infinity."""

import numpy as np

from policyspace.likelihood.design import Design
from policyspace.likelihood.softmax import SoftmaxRows

MOST_CONSTRAINTS = 3000
"""Constraints a linear programme starts with; those that its answer violates join until none does."""


def diverging_coordinates(rows: SoftmaxRows, free: np.ndarray) -> np.ndarray:
    """The coordinates [d] along which log L grows for ever (Albert–Anderson; linear programme of Konis).

    A direction D separates if (D_y − D_b)·φ_i ≥ 0 for every action y played in a row and every other b, with some
    strict. What one direction separates strictly is set aside, and the rest is asked again, until nothing more falls.
    """
    x = rows.standardised(slice(None))
    k = rows.statistic.size // x.shape[1]
    played = rows.action_weights(slice(None)) > 0
    pairs = np.argwhere(played[:, :, None] & ~np.eye(k + 1, dtype=bool))  # row, an action played in it, another
    diverging = np.zeros((k, x.shape[1]), dtype=bool)
    while len(pairs):
        direction = _separating_direction(x, k, pairs, free)
        margins = _margins(x, direction, pairs)
        strict = margins > 1e-6
        if not strict.any():
            break
        diverging |= _moving(rows.design, direction[:k])
        pairs = pairs[~strict]
    return diverging.ravel() & free


def _moving(design: Design, direction: np.ndarray) -> np.ndarray:
    """The raw coordinates [k, q] that a direction in standardised ones moves, without what no row can see of it."""
    own = direction[:, design.intercept :]
    null = design.null_space()
    seen = np.hstack([direction[:, : design.intercept], own - (own @ null) @ null.T])
    moving = np.abs(seen) > 1e-6
    if design.intercept:
        # The raw intercept takes back what centring moved into the standardised one.
        shifts = seen[:, 1:] * design.mean / design.scale
        moving[:, 0] = np.abs(seen[:, 0] - shifts.sum(axis=1)) > 1e-6 * (1 + np.abs(shifts).sum(axis=1))
    return moving


def _separating_direction(x: np.ndarray, k: int, pairs: np.ndarray, free: np.ndarray) -> np.ndarray:
    """argmax Σ margins subject to margins ≥ 0 and |D| ≤ 1, as weights [k+1, q] whose last row is the reference's zero."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    q = x.shape[1]
    objective = np.zeros((k + 1, q))
    np.add.at(objective, pairs[:, 1], x[pairs[:, 0]])
    np.subtract.at(objective, pairs[:, 2], x[pairs[:, 0]])
    bounds = np.where(free[:, None], [-1.0, 1.0], 0.0)
    chosen = np.linspace(0, len(pairs) - 1, min(len(pairs), MOST_CONSTRAINTS)).astype(int)
    while True:
        matrix = np.zeros((len(chosen), k + 1, q))
        index, (rows, better, other) = np.arange(len(chosen)), pairs[chosen].T
        matrix[index, better] += x[rows]
        matrix[index, other] -= x[rows]
        constraints = csr_array(-matrix[:, :k].reshape(len(chosen), -1))
        answer = linprog(
            -objective[:k].ravel(), A_ub=constraints, b_ub=np.zeros(len(chosen)), bounds=bounds, method="highs"
        )
        direction = np.zeros((k + 1, q))
        if answer.x is None:
            return direction
        direction[:k] = np.where(np.abs(answer.x) > 1e-9, answer.x, 0.0).reshape(k, q)
        margins = _margins(x, direction, pairs)
        violated = np.flatnonzero(margins < -1e-7)
        fresh = np.setdiff1d(violated[np.argsort(margins[violated])][:MOST_CONSTRAINTS], chosen)
        if not len(fresh):
            return direction
        chosen = np.concatenate([chosen, fresh])


def _margins(x: np.ndarray, direction: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    eta = x @ direction.T
    return eta[pairs[:, 0], pairs[:, 1]] - eta[pairs[:, 0], pairs[:, 2]]
