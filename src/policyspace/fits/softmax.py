"""Sums over rows for the Boltzmann likelihood: its value, gradient and Hessian at many θ in one pass."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from policyspace.data.blocks import ArrayRows, Block, Rows
from policyspace.data.joint_moments import BLOCK
from policyspace.errors import InputError
from policyspace.fits.design import Design, Standardisation

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

    def __call__(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
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

    def __call__(self, block: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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


class CurvedRows(ABC):
    """Rows whose sums at θ give log L, its gradient and its Hessian in one pass."""

    _last: tuple[np.ndarray, np.ndarray] | None = None

    @abstractmethod
    def _curvatures(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Σ w A [m], Σ w E[t] and −∇² log L [m, d, d] at θ [m, d]."""

    @abstractmethod
    def _from_sums(self, thetas: np.ndarray, partition: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log L [m] and its gradient [m, d] from those sums."""

    def expand(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """log L [m], its gradient [m, d] and −∇² log L [m, d, d] at θ [m, d], in one pass."""
        partition, mean, curvature = self._curvatures(thetas)
        return *self._from_sums(thetas, partition, mean), curvature

    def at(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log L and its gradient at one θ; the Hessian, which is asked for next, comes from the same pass."""
        values, gradients, curvature = self.expand(theta[None])
        self._last = theta.copy(), curvature[0]
        return float(values[0]), gradients[0]

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """−∇² log L = Σ w_i Cov[t(s_i, ·)] [d, d]."""
        last = self._last
        if last is None or not np.array_equal(last[0], theta):
            self._last = last = theta.copy(), self.hessians(theta[None])[0]
        return last[1]

    def hessians(self, thetas: np.ndarray) -> np.ndarray:
        """The same at several θ [m, d, d], in one pass."""
        return self._curvatures(thetas)[2]


class SoftmaxRows(CurvedRows):
    """log L(θ) = θᵀT − Σ w_i A(θ, s_i), T = Σ w_i t(s_i, a_i): the actions enter once, then only states are needed.

    Rows are standardised block by block, so that no second copy of the data is ever held.
    """

    def __init__(
        self, design: Design, rows: Rows, total_weight: float, num_actions: int, statistic: np.ndarray | None = None
    ) -> None:
        self.design, self.rows, self.total_weight, self._k = design, rows, total_weight, num_actions - 1
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
        chosen = np.sort(np.random.default_rng(seed).choice(len(self), size, replace=False))
        block = self.arrays.block(chosen)
        rows = ArrayRows(block.features, block.actions, block.weights)
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
