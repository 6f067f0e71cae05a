"""p-values that tell whether residuals look like independent noise: against columns, between neighbours, within clusters."""

from collections.abc import Iterable

import numpy as np
from scipy.special import bdtr, fdtrc, ndtr

CHUNK = 1024
"""Rows whose products are made at a time."""

LAGS = 4
"""Distances between rows at which correlation is looked for."""

SELDOM = 0.5
"""Changes of the action, as a share of those that independent draws would have, below which it changes rarely."""


def smallest_p(targets: np.ndarray, base: np.ndarray, candidates: Iterable[np.ndarray]) -> float:
    """F tests of each candidate's columns beside `base`, for every target; the smallest p-value times their number.

    The variance is robust to a spread that depends on the state: rows of the score are squared, not their mean.
    Candidates are changed in place, one after the other: each may be as large as all the rest of a check.
    """
    p_values = []
    basis = _orthonormal(base)
    left = targets - basis @ (basis.T @ targets)
    for columns in candidates:
        columns -= basis @ (basis.T @ columns)
        square = np.einsum("ij,ij->j", columns, columns) / len(columns)
        spread = np.sqrt(np.maximum(square - columns.mean(axis=0) ** 2, 0.0))
        varies = spread > 1e-6
        own = columns if varies.all() else columns[:, varies]
        own /= spread[varies]
        if own.shape[1] == 0 or len(own) <= base.shape[1] + 2 * own.shape[1]:
            continue
        p_values += [score_p(own, column) for column in left.T]
    return min(1.0, len(p_values) * min(p_values)) if p_values else 1.0


def _orthonormal(base: np.ndarray) -> np.ndarray:
    """Orthonormal columns [n, r] that span those of a base [n, m]."""
    factor = np.linalg.qr(base, mode="r")
    _, singular, turned = np.linalg.svd(factor)
    real = singular > 1e-10 * singular[0]
    return base @ (turned[: len(singular)][real] / singular[real, None]).T


def score_p(columns: np.ndarray, residuals: np.ndarray) -> float:
    """Hotelling's test that the mean of the rows of columns [n, m] times residuals [n] is zero."""
    n, width = columns.shape
    total, gram = columns.T @ residuals, np.zeros((width, width))
    for start in range(0, n, CHUNK):
        scores = columns[start : start + CHUNK] * residuals[start : start + CHUNK, None]
        gram += scores.T @ scores
    rank = int(np.linalg.matrix_rank(gram, hermitian=True))
    if n <= rank + 1 or not rank:
        return 1.0
    share = float(np.clip(total @ np.linalg.pinv(gram, hermitian=True) @ total / n, 0.0, 1 - 1e-12))
    return float(fdtrc(rank, n - rank, share / (1 - share) * (n - rank) / rank))


def pairs(episodes: np.ndarray, lag: int) -> np.ndarray:
    """The rows that have another one of their episode `lag` rows later."""
    return np.flatnonzero(episodes[lag:] == episodes[:-lag])


def lag_correlation(values: np.ndarray, episodes: np.ndarray) -> float:
    """The correlation of neighbouring rows of an episode."""
    inside = pairs(episodes, 1)
    product = (values[inside] * values[inside + 1]).mean() if len(inside) else 0.0
    return float(product / max((values**2).mean(), np.finfo(float).tiny))


def lag_p(values: np.ndarray, episodes: np.ndarray) -> float:
    """Products of residuals at distance 1 … LAGS have mean zero where rows are independent decisions."""
    p_values = []
    for lag in range(1, LAGS + 1):
        inside = pairs(episodes, lag)
        if len(inside) >= 20:
            products = (values[inside] * values[inside + lag]).mean(axis=1)
            z = products.sum() / max(np.sqrt((products**2).sum()), np.finfo(float).tiny)
            p_values.append(2 * float(ndtr(-abs(z))))
    return min(1.0, len(p_values) * min(p_values)) if p_values else 1.0


def clustered_p(scores: np.ndarray, clusters: np.ndarray) -> float:
    """Sums over clusters vary no more than sums of independent rows: their squares against the sums of squares."""
    codes, inverse = np.unique(clusters, return_inverse=True)
    if not 4 <= len(codes) < len(scores):
        return 1.0
    order = np.argsort(inverse, kind="stable")
    first = np.searchsorted(inverse[order], np.arange(len(codes)))
    together = scores[order]
    sums, squares = np.add.reduceat(together, first), np.add.reduceat(together**2, first)
    excess = sums**2 - squares  # mean zero, row by row of clusters, where rows are independent
    z = excess.sum(axis=0) / np.maximum(np.sqrt((excess**2).sum(axis=0)), np.finfo(float).tiny)
    total = excess.sum(axis=0) / np.maximum(squares.sum(axis=0), np.finfo(float).tiny)
    return float(min(1.0, len(z) * ndtr(-z[total > 0]).min(initial=1.0)))


def stretches_told_apart(labels: np.ndarray, episodes: np.ndarray, num_columns: int) -> tuple[int, float]:
    """Stretches of equal labels within episodes, and the chance that a linear rule tells so many apart; 0 if they are short.

    N points in general position are told apart by a rule of D columns with the chance P(B < D), B being binomial of N − 1
    fair tosses (Cover 1965). An agent that stays with an action decides once a stretch, not once a row.
    """
    inside = pairs(episodes, 1)
    changes = int((labels[inside] != labels[inside + 1]).sum())
    _, counts = np.unique(labels, return_counts=True)
    usual = len(inside) * (1 - float(((counts / counts.sum()) ** 2).sum()))
    stretches = changes + len(np.unique(episodes))
    if changes > SELDOM * usual:
        return stretches, 0.0
    return stretches, float(bdtr(num_columns - 1, stretches - 1, 0.5)) if stretches > num_columns else 1.0
