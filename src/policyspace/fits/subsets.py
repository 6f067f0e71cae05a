"""All 2^D supports of a quadratic likelihood at once, by eliminating one group at a time from all of them."""

from collections.abc import Sequence

import numpy as np

COLLINEAR = 1e-11
"""A column is a combination of others when they leave less than this share of its variance unexplained."""

BREADTH = 16
"""Groups handled breadth first; the ones before them go depth first, which bounds the memory."""


def residual_blocks(matrix: np.ndarray, groups: Sequence[Sequence[int]], num_responses: int) -> np.ndarray:
    """min over θ ∈ Θ_I of the residual moments of the responses, for every support I of the D groups.

    `matrix` is the moment matrix [[XᵀX, XᵀY], [YᵀX, YᵀY]] with a diagonal of ones (or zeros) in X. Coordinates in no
    group are always free. Returns Σ_r of the diagonal, or for several responses the upper triangle, as [r(r+1)/2, 2^D];
    bit g of the index says whether group g is in. A group "out" drops its rows; "in" takes its Schur complement.
    """
    p = len(matrix) - num_responses
    grouped = [i for group in groups for i in group]
    always = [i for i in range(p) if i not in set(grouped)]
    # First the always free, then the depth-first groups (high bits), then the breadth-first ones, then the responses.
    deep = list(range(BREADTH, len(groups)))[::-1]
    order = [
        *always,
        *(i for g in deep for i in groups[g]),
        *(i for g in groups[:BREADTH] for i in g),
        *range(p, len(matrix)),
    ]
    moments = matrix[np.ix_(order, order)][:, :, None]
    for _ in always:
        moments = _eliminate(moments)
    out = np.empty((num_responses * (num_responses + 1) // 2, 2 ** len(groups)))
    sizes = [len(groups[g]) for g in deep]
    _depth_first(moments, sizes, [len(g) for g in groups[:BREADTH]], out, 0)
    return out


def _depth_first(moments: np.ndarray, deep: list[int], broad: list[int], out: np.ndarray, offset: int) -> None:
    if deep:
        half = 2 ** (len(deep) - 1 + len(broad))
        _depth_first(moments[deep[0] :, deep[0] :], deep[1:], broad, out, offset)
        _depth_first(_eliminate_group(moments, deep[0]), deep[1:], broad, out, offset + half)
        return
    for size in broad:
        count = moments.shape[2]
        rest = len(moments) - size
        both = np.empty((rest, rest, 2 * count))
        both[:, :, :count] = moments[size:, size:]
        if size > 1:
            both[:, :, count:] = _eliminate_group(moments, size)
        else:
            _eliminate(moments, both[:, :, count:])
        moments = both
    upper = np.triu_indices(len(moments))
    out[:, offset : offset + moments.shape[2]] = moments[upper]


def _eliminate_group(moments: np.ndarray, size: int) -> np.ndarray:
    for _ in range(size):
        moments = _eliminate(moments)
    return moments


def _eliminate(moments: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """The Schur complement of the first coordinate, upper triangle only; a collinear one changes nothing."""
    rest = len(moments) - 1
    if out is None:
        out = np.empty((rest, rest, moments.shape[2]))
    pivot = moments[0, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.where(pivot > COLLINEAR, 1.0 / pivot, 0.0)
    for i in range(rest):
        np.multiply(moments[0, i + 1] * inverse, moments[0, i + 1 :], out=out[i, i:])
        np.subtract(moments[i + 1, i + 1 :], out[i, i:], out=out[i, i:])
    return out


def popcounts(sizes: Sequence[int]) -> np.ndarray:
    """Σ of the sizes of the groups that are in, for every support [2^D]."""
    total = np.zeros(1, dtype=np.int32)
    for size in sizes:
        total = np.concatenate([total, total + np.int32(size)])
    return total
