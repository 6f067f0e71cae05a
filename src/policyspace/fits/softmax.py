"""Sums over rows for the Boltzmann likelihood: its value, gradient and Hessian at many θ in one pass."""

from dataclasses import dataclass

import numpy as np

from policyspace.data.blocks import LONGEST, ArrayRows, Block, Rows
from policyspace.errors import InputError
from policyspace.fits.design import Design, Standardisation

HESSIAN_ROWS = 2048
"""Rows whose second derivatives are made at a time."""


@dataclass(frozen=True)
class Partitions:
    """Σ w_i A(θ, s_i) [m] and Σ w_i p_i(θ) ⊗ φ_i [k, q, m] of a block at several θ, for `Rows.total`."""

    standardise: Standardisation
    columns: np.ndarray  # [k, q, m]

    def __call__(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        """k products (c×q)(q×m), exp, log, and k products back."""
        x, weights = self.standardise(block.features), block.weights
        probabilities, log_partition = softmax(x, self.columns)
        total = log_partition.sum(axis=0) if weights is None else weights @ log_partition
        right = (x if weights is None else x * weights[:, None]).T
        return total, np.stack([right @ p for p in probabilities])


@dataclass(frozen=True)
class Curvature:
    """Σ w_i (diag p_i − p_i p_iᵀ) ⊗ φ_i φ_iᵀ [d, d] of a block at one θ, for `Rows.total`."""

    standardise: Standardisation
    columns: np.ndarray  # [k, q, 1]

    def __call__(self, block: Block) -> tuple[np.ndarray]:
        """One product of the rows with themselves for each two actions."""
        x = self.standardise(block.features)
        p = np.stack([p[:, 0] for p in softmax(x, self.columns)[0]])
        return (information(x, p, block.weights),)


@dataclass(frozen=True)
class Statistic:
    """Σ w_i t(s_i, a_i) [d] of a block, for `Rows.total`."""

    standardise: Standardisation
    num_actions: int

    def __call__(self, block: Block) -> tuple[np.ndarray]:
        """The rows added up by action."""
        played = action_weights(block, self.num_actions)[:, :-1]
        return ((played.T @ self.standardise(block.features)).ravel(),)


def action_weights(block: Block, num_actions: int) -> np.ndarray:
    """How much each action weighs in each row [c, k+1]."""
    if block.actions.ndim == 2:
        return block.actions
    played = np.eye(num_actions)[block.actions]
    return played if block.weights is None else played * block.weights[:, None]


class SoftmaxRows:
    """log L(θ) = θᵀT − Σ w_i A(θ, s_i), T = Σ w_i t(s_i, a_i): the actions enter once, then only states are needed.

    Rows are standardised block by block, so that no second copy of the data is ever held.
    """

    def __init__(
        self,
        design: Design,
        rows: Rows,
        total_weight: float,
        num_actions: int,
        statistic: np.ndarray | None = None,
        known: ArrayRows | None = None,  # of rows that are not in memory, some that are
    ) -> None:
        self.design, self.rows, self.total_weight, self._k = design, rows, total_weight, num_actions - 1
        self.known = rows if isinstance(rows, ArrayRows) else known
        if statistic is None:
            (statistic,) = rows.total(Statistic(design.standardise, num_actions))
        self.statistic: np.ndarray = statistic

    def __len__(self) -> int:
        return self.rows.num_rows

    @property
    def arrays(self) -> ArrayRows:
        """The rows themselves, for what is no sum over them."""
        if not isinstance(self.rows, ArrayRows):
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
        assert self.known is not None
        num_known = self.known.num_rows
        size = min(size, num_known)
        block = self.known.block(np.sort(np.random.default_rng(seed).choice(num_known, size, replace=False)))
        total = float(size if block.weights is None else block.weights.sum())
        rows = ArrayRows(block.features, block.actions, block.weights)
        return SoftmaxRows(self.design, rows, total, self._k + 1)

    def standardised(self, rows: slice) -> np.ndarray:
        """Rows in memory as fits see them [c, q]."""
        return self.design.standardise(self.features[rows])

    def action_weights(self, rows: slice) -> np.ndarray:
        """How much each action weighs in rows in memory [c, k+1]."""
        return action_weights(self.arrays.block(rows), self._k + 1)

    def evaluate(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log L [m] and its gradient [m, d] at θ [m, d]."""
        m = len(thetas)
        columns = np.ascontiguousarray(thetas.reshape(m, self._k, -1).transpose(1, 2, 0))
        size = max(128, 2**18 // (m * self._k))  # a few arrays of 2 MB: they stay in the cache
        partition, mean = self.rows.total(Partitions(self.design.standardise, columns), min(size, LONGEST))
        return thetas @ self.statistic - partition, self.statistic - mean.transpose(2, 0, 1).reshape(m, -1)

    def at(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log L and its gradient at one θ."""
        values, gradients = self.evaluate(theta[None])
        return float(values[0]), gradients[0]

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """−∇² log L = Σ w_i (diag p_i − p_i p_iᵀ) ⊗ φ_i φ_iᵀ [d, d]."""
        return self.rows.total(Curvature(self.design.standardise, theta.reshape(self._k, -1, 1)), HESSIAN_ROWS)[0]


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
