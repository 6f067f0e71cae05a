"""Sums of products of all columns, from which every regression of the test is solved without reading the rows again."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from policyspace.data.blocks import Block
from policyspace.inference.lean.bases import Basis
from policyspace.inference.lean.rows import Rows
from policyspace.inference.lean.sums import BasisMoments

JITTER = 1e-12
"""Added to the diagonal of the scaled moments, so that columns that repeat each other do no harm."""


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


def moments(basis: Basis, rows: Rows, fold: np.ndarray, num_folds: int) -> np.ndarray:
    """Products of the columns and the actions, [Φ, Y]ᵀ[Φ, Y], one matrix a fold [folds, P+k, P+k]; fold −1 is left out."""
    inside = [fold == number for number in range(num_folds)]
    return np.stack([BasisMoments(basis)(Block(rows.inputs[own], rows.actions[own]))[0] for own in inside])
