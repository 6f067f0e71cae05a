"""Sums over rows for the Boltzmann likelihood: its value, gradient and Hessian at many θ in one pass."""

import numpy as np

from policyspace.data.chunks import sum_over_chunks
from policyspace.fits.design import Design


class SoftmaxRows:
    """log L(θ) = θᵀT − Σ w_i A(θ, s_i), T = Σ w_i t(s_i, a_i): the actions enter once, then only states are needed.

    Rows are standardised chunk by chunk, so that no second copy of the data is ever held.
    """

    def __init__(
        self,
        design: Design,
        features: np.ndarray,
        actions: np.ndarray,  # codes [n], or where rows are merged the weight of each action [u, k+1]
        weights: np.ndarray | None,
        num_free_actions: int,
    ) -> None:
        self.design, self.features, self.actions, self.weights = design, features, actions, weights
        self._k = num_free_actions
        self.total_weight = float(len(features) if weights is None else weights.sum())
        (self.statistic,) = sum_over_chunks(self._statistic, len(features), 65536)

    def __len__(self) -> int:
        return len(self.features)

    def sample(self, size: int, seed: int) -> "SoftmaxRows":
        """A fixed random sample of the rows; sums over it are for the caller to scale up."""
        rows = np.sort(np.random.default_rng(seed).choice(len(self), size, replace=False))
        weights = None if self.weights is None else self.weights[rows]
        return SoftmaxRows(self.design, self.features[rows], self.actions[rows], weights, self._k)

    def standardised(self, rows: slice) -> np.ndarray:
        """The rows as fits see them [c, q]."""
        return self.design.standardise(self.features[rows])

    def action_weights(self, rows: slice) -> np.ndarray:
        """How much each action weighs in each row [c, k+1]."""
        if self.actions.ndim == 2:
            return self.actions[rows]
        played = np.eye(self._k + 1)[self.actions[rows]]
        return played if self.weights is None else played * self.weights[rows, None]

    def _statistic(self, rows: slice) -> tuple[np.ndarray]:
        return ((self.action_weights(rows)[:, : self._k].T @ self.standardised(rows)).ravel(),)

    def evaluate(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log L [m] and its gradient [m, d] at θ [m, d]: k products (c×q)(q×m), exp, log, and k products back."""
        m = len(thetas)
        columns = np.ascontiguousarray(thetas.reshape(m, self._k, -1).transpose(1, 2, 0))

        def of_chunk(rows: slice) -> tuple[np.ndarray, np.ndarray]:
            x = self.standardised(rows)
            weights = None if self.weights is None else self.weights[rows]
            probabilities, log_partition = softmax(x, columns)
            total = log_partition.sum(axis=0) if weights is None else weights @ log_partition
            right = (x if weights is None else x * weights[:, None]).T
            return total, np.stack([right @ p for p in probabilities])

        size = max(128, 2**18 // (m * self._k))  # a few arrays of 2 MB: they stay in the cache
        partition, mean = sum_over_chunks(of_chunk, len(self), min(size, 65536))
        return thetas @ self.statistic - partition, self.statistic - mean.transpose(2, 0, 1).reshape(m, -1)

    def at(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log L and its gradient at one θ."""
        values, gradients = self.evaluate(theta[None])
        return float(values[0]), gradients[0]

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """−∇² log L = Σ w_i (diag p_i − p_i p_iᵀ) ⊗ φ_i φ_iᵀ [d, d]."""
        columns = theta.reshape(self._k, -1, 1)

        def of_chunk(rows: slice) -> tuple[np.ndarray]:
            x = self.standardised(rows)
            p = np.stack([p[:, 0] for p in softmax(x, columns)[0]])
            return (information(x, p, None if self.weights is None else self.weights[rows]),)

        return sum_over_chunks(of_chunk, len(self), 8192)[0]


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
