"""Sums over rows for the softmax policy; separation by linear programming."""

from dataclasses import dataclass

import numpy as np

from policyspace.data.rows import BLOCK, InMemoryRows, RowBlock, Rows, TopRows
from policyspace.errors import InputError
from policyspace.families.concave import CurvedRows
from policyspace.families.design import DesignMatrix, Standardisation

# -- Sums over rows for the Boltzmann likelihood: its value, gradient and Hessian at many θ in one pass.

CACHED = 2**16
"""Numbers of an array that stays near the cores while one step after the other is done to it."""

CURVED = 2048
"""Rows whose second derivatives are made at a time."""

AT_ONCE = 8
"""Odds whose logarithms are taken together, as that of their product."""

SAFE = 80.0
"""Natural parameters of which `AT_ONCE` exponentials can be multiplied without overflow."""


@dataclass(frozen=True)
class Partitions:
    """Σ w_i A(θ, s_i) [m] and Σ w_i p_i(θ) ⊗ φ_i [k, q, m] of a block at several θ, for `Rows.total`."""

    standardise: Standardisation
    columns: np.ndarray  # [k, q, m]

    def __call__(self, block: RowBlock) -> tuple[np.ndarray, np.ndarray]:
        """k products (c×q)(q×m), exp, log, and k products back, in memory that is used again and again."""
        k, q, m = self.columns.shape
        size = min(max(64, CACHED // (k * m) // AT_ONCE * AT_ONCE), max(len(block), 1))
        odds, total, product = np.empty((k, size, m)), np.empty((size, m)), np.empty((k, q, m))
        partition, mean = np.zeros(m), np.zeros((k, q, m))
        for start in range(0, len(block), size):
            x = self.standardise(block.features[start : start + size])
            weights = None if block.weights is None else block.weights[start : start + size]
            here, sums = odds[:, : len(x)], total[: len(x)]
            np.matmul(x, self.columns, out=here)
            partition += _normalise(here, sums, weights)
            mean += np.matmul((x if weights is None else x * weights[:, None]).T, here, out=product)
        return partition, mean


def _normalise(eta: np.ndarray, total: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Natural parameters [k, c, m] become probabilities in place; Σ w log-partitions [m] is returned."""
    top = np.maximum(eta.max(axis=0), 0.0) if eta.max(initial=0.0) > SAFE else None
    if top is not None:
        eta -= top
    np.exp(eta, out=eta)
    np.add(eta[0], 1.0 if top is None else np.exp(-top), out=total)
    for odds in eta[1:]:
        total += odds
    return probabilities(eta, total, top, weights)


def probabilities(
    odds: np.ndarray, total: np.ndarray, top: np.ndarray | None, weights: np.ndarray | None
) -> np.ndarray:
    """Odds [·, c, m] become probabilities in place, `total` being their sums; Σ w log-partitions [m] is returned.

    `top` is what was taken off the natural parameters, if anything was.
    """
    if weights is not None or top is not None:
        logs = np.log(total) if top is None else np.log(total) + top
        partition = logs.sum(axis=0) if weights is None else weights @ logs
    else:
        whole = len(total) // AT_ONCE * AT_ONCE
        grouped = np.multiply.reduce(total[:whole].reshape(AT_ONCE, -1, total.shape[1]), axis=0)
        partition = np.log(grouped).sum(axis=0) + np.log(total[whole:]).sum(axis=0)
    np.reciprocal(total, out=total)
    odds *= total
    return partition


@dataclass(frozen=True)
class Curvatures:
    """What `Partitions` gives and Σ w_i (diag p_i − p_i p_iᵀ) ⊗ φ_i φ_iᵀ [m, d, d] of a block, for `Rows.total`."""

    standardise: Standardisation
    columns: np.ndarray  # [k, q, m]

    def __call__(self, block: RowBlock) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One product of the rows with themselves for each two actions and each θ."""
        k, q, m = self.columns.shape
        partition, mean, curvature = np.zeros(m), np.zeros((k, q, m)), np.zeros((m, k * q, k * q))
        for start in range(0, len(block), CURVED):
            x = self.standardise(block.features[start : start + CURVED])
            weights = None if block.weights is None else block.weights[start : start + CURVED]
            p = np.matmul(x, self.columns)
            partition += _normalise(p, np.empty(p.shape[1:]), weights)
            mean += np.matmul((x if weights is None else x * weights[:, None]).T, p)
            for j in range(m):
                curvature[j] += information(x, p[:, :, j], weights)
        return partition, mean, curvature


@dataclass(frozen=True)
class Statistic:
    """Σ w_i t(s_i, a_i) [d] of a block, for `Rows.total`."""

    standardise: Standardisation
    num_actions: int

    def __call__(self, block: RowBlock) -> tuple[np.ndarray]:
        """The rows added up by action."""
        played = action_weights(block, self.num_actions)[:, :-1]
        return ((played.T @ self.standardise(block.features)).ravel(),)


def action_weights(block: RowBlock, num_actions: int) -> np.ndarray:
    """How much each action weighs in each row [c, k+1]."""
    if block.actions.ndim == 2:
        return block.actions
    played = np.eye(num_actions)[block.actions]
    return played if block.weights is None else played * block.weights[:, None]


class SoftmaxRows(CurvedRows):
    """log L(θ) = θᵀT − Σ w_i A(θ, s_i), T = Σ w_i t(s_i, a_i): the actions enter once, then only states are needed.

    Rows are standardised block by block, so that no second copy of the data is ever held.
    """

    def __init__(
        self,
        design: DesignMatrix,
        rows: Rows,
        total_weight: float,
        num_actions: int,
        statistic: np.ndarray | None = None,
    ) -> None:
        self.design, self.rows, self.total_weight, self._k = design, rows, total_weight, num_actions - 1
        if statistic is None:
            (statistic,) = rows.total(Statistic(design.standardise, num_actions))
        self.statistic: np.ndarray = statistic

    def __len__(self) -> int:
        return self.rows.num_rows

    @property
    def arrays(self) -> InMemoryRows:
        """The rows themselves, for what is no sum over them."""
        if not isinstance(self.rows, InMemoryRows):
            raise InputError(f"this needs all rows in memory, found {len(self)} that are read from files.")
        return self.rows

    @property
    def features(self) -> np.ndarray:
        """Of the rows in memory [n, q']."""
        return self.arrays.features

    @property
    def weights(self) -> np.ndarray | None:
        """Of the rows in memory [n]."""
        return self.arrays.weights

    def sample(self, size: int, seed: int) -> "SoftmaxRows":
        """A fixed random sample of the rows in memory; sums over it are for the caller to scale up."""
        chosen = np.sort(np.random.default_rng(seed).choice(len(self), size, replace=False))
        block = self.arrays.block(chosen)
        rows = InMemoryRows(block.features, block.actions, block.weights)
        total = float(size if block.weights is None else block.weights.sum())
        return SoftmaxRows(self.design, rows, total, self._k + 1)

    def standardised(self, rows: slice) -> np.ndarray:
        """Rows in memory as fits see them [c, q]."""
        return self.design.standardise(self.features[rows])

    def action_weights(self, rows: slice) -> np.ndarray:
        """How much each action weighs in rows in memory [c, k+1]."""
        return action_weights(self.arrays.block(rows), self._k + 1)

    def evaluate(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log L [m] and its gradient [m, d] at θ [m, d]."""
        return self._from_sums(
            thetas, *self.rows.total(Partitions(self.design.standardise, self._columns(thetas)), BLOCK)
        )

    def _curvatures(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        partition, mean, curvature = self.rows.total(Curvatures(self.design.standardise, self._columns(thetas)), BLOCK)
        return partition, mean, curvature

    def _columns(self, thetas: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(thetas.reshape(len(thetas), self._k, -1).transpose(1, 2, 0))

    def _from_sums(self, thetas: np.ndarray, partition: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return thetas @ self.statistic - partition, self.statistic - mean.transpose(2, 0, 1).reshape(len(thetas), -1)


def softmax(x: np.ndarray, columns: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Probabilities of the k free actions (k arrays [c, m]) and log-partitions [c, m], without overflow."""
    eta = [x @ w for w in columns]
    top: np.ndarray | None = None
    if max(float(e.max(initial=0.0)) for e in eta) > 600.0:
        top = np.maximum(np.max(eta, axis=0), 0.0)
        for e in eta:
            e -= top
    for e in eta:
        np.exp(e, out=e)
    total = np.ones_like(eta[0]) if top is None else np.exp(-top)
    for e in eta:
        total += e
    inverse = 1.0 / total
    for e in eta:
        e *= inverse
    np.log(total, out=total)
    return eta, total if top is None else total + top


def information(x: np.ndarray, p: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Σ w_i (diag p_i − p_i p_iᵀ) ⊗ φ_i φ_iᵀ [d, d] from rows [c, q] and probabilities [k, c]."""
    k, q = len(p), x.shape[1]
    blocks = np.empty((k, q, k, q))
    for a in range(k):
        for b in range(a, k):
            curvature = (p[a] * (1 - p[a])) if a == b else -p[a] * p[b]
            if weights is not None:
                curvature = curvature * weights
            product = x.T @ (x * curvature[:, None])
            blocks[a, :, b], blocks[b, :, a] = product, product.T
    return blocks.reshape(k * q, k * q)


# -- Merging equal rows: a likelihood needs each different state once, with the counts of its actions.

PROBE = 4096
"""Rows looked at before paying for a full search: if none of these repeat, few do."""


def unique_rows(
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
    # A random projection, added column by column so that equal rows get equal bits wherever they stand.
    keys = np.zeros(len(features))
    for column, weight in zip(features.T, projection, strict=True):
        keys += column * weight
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if 2 * len(first) > len(features) and len(features) > PROBE:
        return None
    representative = first[inverse]
    if np.array_equal(features[representative], features):
        return representative
    # Two different rows share a hash: compare the rows themselves.
    _, first, inverse = np.unique(features, axis=0, return_index=True, return_inverse=True)
    return first[inverse.ravel()]


# -- Separation: an agent so regular that the maximum-likelihood parameter lies at infinity.

MOST_CONSTRAINTS = 3000
"""Constraints a linear programme starts with; those that its answer violates join until none does."""

STRICT = 1e-6
"""A margin from which on a direction tells two actions apart."""

PINNED = 1e-12
"""An eigenvalue, relative to the largest, from which on rows leave a direction no freedom."""


def separating_directions(x: np.ndarray, played: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Directions [r, k+1, q] along which log L grows for ever (Albert–Anderson; linear programme of Konis).

    A direction D separates if (D_y − D_b)·φ_i ≥ 0 for every action y played in a row and every other b, with some
    strict. What one direction separates strictly is set aside, and the rest is asked again, until nothing more falls.
    A row in which two actions are played pins their difference to 0: what all such rows leave free is searched alone.
    `x` [n, q] are the standardised rows, and `played` [n, k+1] says which actions were.
    """
    k = played.shape[1] - 1
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


def moving_coordinates(design: DesignMatrix, directions: np.ndarray) -> np.ndarray:
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

    def __call__(self, block: RowBlock) -> tuple[TopRows]:
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
        return (TopRows.of(block, -worst, STRICT),)


def _moving(design: DesignMatrix, direction: np.ndarray) -> np.ndarray:
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
