"""Separation: an agent so regular that the maximum-likelihood parameter lies at infinity."""

from dataclasses import dataclass

import numpy as np

from policyspace.data.blocks import Block
from policyspace.data.outstanding import Outstanding
from policyspace.fits.design import Design, Standardisation
from policyspace.fits.softmax import SoftmaxRows

MOST_CONSTRAINTS = 3000
"""Constraints a linear programme starts with; those that its answer violates join until none does."""

STRICT = 1e-6
"""A margin from which on a direction tells two actions apart."""

PINNED = 1e-12
"""An eigenvalue, relative to the largest, from which on rows leave a direction no freedom."""


def separating_directions(rows: SoftmaxRows, free: np.ndarray) -> np.ndarray:
    """Directions [r, k+1, q] along which log L grows for ever (Albert–Anderson; linear programme of Konis).

    A direction D separates if (D_y − D_b)·φ_i ≥ 0 for every action y played in a row and every other b, with some
    strict. What one direction separates strictly is set aside, and the rest is asked again, until nothing more falls.
    A row in which two actions are played pins their difference to 0: what all such rows leave free is searched alone.
    """
    x = rows.standardised(slice(None))
    k = rows.statistic.size // x.shape[1]
    played = rows.action_weights(slice(None)) > 0
    found: list[np.ndarray] = []
    basis = _not_pinned(x, played, free)
    other = played[:, :, None] & ~np.eye(k + 1, dtype=bool)
    pairs = np.argwhere(other & ~played[:, None, :])  # row, an action played in it, another that is not
    both = np.argwhere(other & played[:, None, :])
    while len(pairs) and basis.shape[1]:
        direction = _separating_direction(x, k, pairs, both, basis)
        strict = _margins(x, direction, pairs) > STRICT
        if not strict.any():
            break
        found.append(direction)
        pairs = pairs[~strict]
    return np.array(found).reshape(len(found), k + 1, x.shape[1])


def moving_coordinates(design: Design, directions: np.ndarray) -> np.ndarray:
    """The coordinates [d] that some separating directions move."""
    moving = np.zeros((design.num_rows, directions.shape[2]), dtype=bool)
    for direction in directions:
        moving |= _moving(design, direction[:-1])
    return moving.ravel()


@dataclass(frozen=True)
class ViolatingOf:
    """The rows of a block that contradict directions, for `Rows.total`; what one separates strictly, the next may not."""

    standardise: Standardisation
    directions: np.ndarray  # [r, k+1, q]

    def __call__(self, block: Block) -> tuple[Outstanding]:
        """A row contradicts by the first direction that tells its action from another."""
        x, codes = self.standardise(block.features), block.actions
        open_ = np.arange(self.directions.shape[1]) != codes[:, None]
        if block.weights is not None:
            open_ &= block.weights[:, None] > 0
        worst = np.zeros(len(x))
        for direction in self.directions:
            eta = x @ direction.T
            margins = np.take_along_axis(eta, codes[:, None], axis=1) - eta
            np.minimum(worst, np.where(open_, margins, 0.0).min(axis=1), out=worst)
            open_ &= margins <= STRICT
        return (Outstanding.of(block, -worst, STRICT),)


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


def _not_pinned(x: np.ndarray, played: np.ndarray, free: np.ndarray) -> np.ndarray:
    """A basis [d, r] of the free directions D with (D_y − D_b)·φ_i = 0 wherever y and b are both played in a row."""
    k, q = played.shape[1] - 1, x.shape[1]
    several = played.sum(axis=1) > 1
    if not several.any():
        return np.eye(k * q)[:, free]
    # Σ over the rows of ‖D_y·φ − mean‖² of the actions played is a quadratic form, which vanishes for such D alone.
    x, share = x[several], played[several] / played[several].sum(axis=1, keepdims=True)
    form = np.empty((k, q, k, q))
    for a in range(k):
        for b in range(k):
            spread = played[several, a] * ((a == b) - share[:, b])
            form[a, :, b] = x.T @ (x * spread[:, None])
    eigenvalues, vectors = np.linalg.eigh(form.reshape(k * q, k * q)[np.ix_(free, free)])
    loose = vectors[:, eigenvalues <= PINNED * eigenvalues[-1]]
    basis = np.zeros((k * q, loose.shape[1]))
    basis[free] = loose
    return basis


def _separating_direction(x: np.ndarray, k: int, pairs: np.ndarray, both: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """argmax Σ margins subject to margins ≥ 0 and |D| ≤ 1, as weights [k+1, q] whose last row is the reference's zero.

    D is sought in the span of a basis [d, r]; of the pairs of actions that are `both` played, which it leaves alone up to
    rounding, those join that an answer does not.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    q = x.shape[1]
    objective = np.zeros((k + 1, q))
    np.add.at(objective, pairs[:, 1], x[pairs[:, 0]])
    np.subtract.at(objective, pairs[:, 2], x[pairs[:, 0]])
    asked = np.concatenate([pairs, both])
    chosen = np.linspace(0, len(pairs) - 1, min(len(pairs), MOST_CONSTRAINTS)).astype(int)
    while True:
        matrix = np.zeros((len(chosen), k + 1, q))
        index, (rows, better, other) = np.arange(len(chosen)), asked[chosen].T
        matrix[index, better] += x[rows]
        matrix[index, other] -= x[rows]
        constraints = csr_array(np.vstack([-matrix[:, :k].reshape(len(chosen), -1) @ basis, basis, -basis]))
        limits = np.append(np.zeros(len(chosen)), np.ones(2 * k * q))
        answer = linprog(
            -objective[:k].ravel() @ basis, A_ub=constraints, b_ub=limits, bounds=(None, None), method="highs"
        )
        direction = np.zeros((k + 1, q))
        if answer.x is None:
            return direction
        found = basis @ answer.x
        direction[:k] = np.where(np.abs(found) > 1e-9, found, 0.0).reshape(k, q)
        margins = _margins(x, direction, asked)
        violated = np.flatnonzero(margins < -1e-7)
        fresh = np.setdiff1d(violated[np.argsort(margins[violated])][:MOST_CONSTRAINTS], chosen)
        if not len(fresh):
            return direction
        chosen = np.concatenate([chosen, fresh])


def _margins(x: np.ndarray, direction: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    eta = x @ direction.T
    return eta[pairs[:, 0], pairs[:, 1]] - eta[pairs[:, 0], pairs[:, 2]]
