"""Sums of products of all columns, from which every regression of the test is solved without reading the rows again."""

from collections.abc import Iterator

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from policyspace.inference.lean.bases import Basis
from policyspace.inference.lean.rows import Rows

CHUNK = 4096
"""Rows that are expanded into columns at a time."""

JITTER = 1e-12
"""Added to the diagonal of the scaled moments, so that columns that repeat each other do no harm."""


def chunks(num_rows: int) -> Iterator[slice]:
    """Slices that cover all rows."""
    for start in range(0, num_rows, CHUNK):
        yield slice(start, min(start + CHUNK, num_rows))


class Projector:
    """Least squares on some columns of a table whose moments are known."""

    def __init__(self, gram: np.ndarray, mask: np.ndarray) -> None:
        """`gram` [P, P] of all columns, `mask` [P] those to regress on."""
        self._mask = mask
        inner = gram[np.ix_(mask, mask)]
        scale = np.sqrt(np.maximum(np.diag(inner), 0.0))
        self._scale = np.where(scale > 1e-9 * np.sqrt(max(gram[0, 0], 1.0)), scale, np.inf)
        scaled = inner / np.outer(self._scale, self._scale)
        np.fill_diagonal(scaled, 1.0 + JITTER * mask.sum())
        self._factor = cho_factor(scaled, lower=True, check_finite=False, overwrite_a=True)

    def coefficients(self, cross: np.ndarray) -> np.ndarray:
        """From the moments [P, t] of all columns with t targets, their coefficients [P, t], zero outside the mask."""
        inner = cross[self._mask] / self._scale[:, None]
        out = np.zeros_like(cross)
        out[self._mask] = cho_solve(self._factor, inner, check_finite=False) / self._scale[:, None]
        return out


def moments(basis: Basis, rows: Rows, fold: np.ndarray | None = None, num_folds: int = 1) -> np.ndarray:
    """Products of the columns and the actions, [Φ, Y]ᵀ[Φ, Y], one matrix a fold [folds, P+k, P+k]; fold −1 is left out."""
    total = basis.width + rows.actions.shape[1]
    sums = np.zeros((num_folds, total, total))
    for number in range(num_folds):
        inside = np.arange(rows.num) if fold is None else np.flatnonzero(fold == number)
        for part in chunks(len(inside)):
            own = inside[part]
            table = np.hstack([basis.columns(rows.inputs[own]), rows.actions[own]])
            sums[number] += table.T @ table
    return sums
