"""Design matrices: rank, QR, and elimination for all subsets of columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from policyspace.data.rows import BLOCK, Moments, RowBlock, Rows
from policyspace.families.base import ExponentialFamily
from policyspace.runtime import single_threaded_blas

# -- The triangular factor R of a design, RᵀR = XᵀX: what is nearly collinear stays visible, which XᵀX itself loses.

QR_BREADTH = 12
"""Groups handled breadth first; the ones before them go depth first, which bounds the memory."""


@dataclass(frozen=True)
class Triangle:
    """R of some rows; the sum of two is the R of both together."""

    factor: np.ndarray  # [c, c]

    def __add__(self, other: "Triangle") -> "Triangle":
        return Triangle(triangular(np.vstack([self.factor, other.factor])))


@dataclass(frozen=True)
class TriangleOf:
    """The R of some table of a block, for `Rows.total`."""

    table: Callable[[RowBlock], np.ndarray]  # [·, c]

    def __call__(self, block: RowBlock) -> tuple[Triangle]:
        """Of one block."""
        return (Triangle(triangular(self.table(block))),)


def triangular_factor(rows: Rows, table: Callable[[RowBlock], np.ndarray]) -> np.ndarray:
    """R [c, c] of the QR decomposition of a table of all rows, which are read once, a block at a time."""
    with single_threaded_blas():
        return rows.total(TriangleOf(table), BLOCK)[0].factor


def triangular(matrix: np.ndarray) -> np.ndarray:
    """R [c, c] with RᵀR = MᵀM; rows of zeros where M has fewer rows than columns."""
    factor = np.linalg.qr(matrix, mode="r")
    return np.vstack([factor, np.zeros((matrix.shape[1] - len(factor), matrix.shape[1]))])


def residuals_of_all(
    factor: np.ndarray, groups: Sequence[Sequence[int]], num_responses: int, resolution: float
) -> tuple[np.ndarray, np.ndarray]:
    """The residual moments of the responses (last columns) and the rank of the columns, for every support of D groups.

    Columns in no group are always in. Returns the upper triangles [r(r+1)/2, 2^D] and ranks [2^D]; bit g of the index
    says whether group g is in. With a column in front, R without its first row and column is what the column leaves
    unexplained; R without the column alone, made triangular again by rotations, is the design without it. Columns (of
    unit length) of which less than `resolution` is left are combinations of those before.
    """
    num_columns = factor.shape[1] - num_responses
    grouped = {i for group in groups for i in group}
    always = [i for i in range(num_columns) if i not in grouped]
    last_first = [i for group in reversed(groups) for i in group]
    ordered = factor[:, [*always, *last_first, *range(num_columns, factor.shape[1])]]
    state = triangular(ordered)[:, :, None], np.zeros(1, dtype=np.int32)
    for _ in always:
        state = _with_first(*state, resolution)
    blocks = np.empty((num_responses * (num_responses + 1) // 2, 2 ** len(groups)))
    ranks = np.empty(2 ** len(groups), dtype=np.int32)
    _walk(*state, [len(group) for group in groups], resolution, blocks, ranks)
    return blocks, ranks


def _walk(
    factors: np.ndarray, found: np.ndarray, sizes: list[int], resolution: float, blocks: np.ndarray, ranks: np.ndarray
) -> None:
    """Decide the groups from the last, whose columns come first, to the first; the results fill two halves each."""
    if not sizes:
        row, column = np.triu_indices(len(factors))
        for place, (i, j) in enumerate(zip(row, column, strict=True)):
            blocks[place] = (factors[:, i] * factors[:, j]).sum(axis=0)
        ranks[:] = found
        return
    if len(sizes) > QR_BREADTH:
        half = len(ranks) // 2
        _walk(*_out(factors, found, sizes[-1]), sizes[:-1], resolution, blocks[:, :half], ranks[:half])
        _walk(*_in(factors, found, sizes[-1], resolution), sizes[:-1], resolution, blocks[:, half:], ranks[half:])
        return
    without, within = _out(factors, found, sizes[-1]), _in(factors, found, sizes[-1], resolution)
    count = len(found)
    # The bits decided so far are the high ones: an earlier decision changes slower than this one.
    both = np.stack([without[0], within[0]], axis=-1).reshape(*without[0].shape[:2], 2 * count)
    both_ranks = np.stack([without[1], within[1]], axis=-1).reshape(2 * count)
    _walk(both, both_ranks, sizes[:-1], resolution, blocks, ranks)


def _out(factors: np.ndarray, ranks: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    for _ in range(size):
        factors = _without_first(factors)
    return factors, ranks


def _in(factors: np.ndarray, ranks: np.ndarray, size: int, resolution: float) -> tuple[np.ndarray, np.ndarray]:
    for _ in range(size):
        factors, ranks = _with_first(factors, ranks, resolution)
    return factors, ranks


def _with_first(factors: np.ndarray, ranks: np.ndarray, resolution: float) -> tuple[np.ndarray, np.ndarray]:
    """What the first column leaves unexplained of the others; a collinear one changes nothing."""
    real = np.abs(factors[0, 0]) > resolution
    rest = factors[1:, 1:]
    if not real.all():
        rest = np.where(real, rest, _without_first(factors))
    return rest, ranks + real


def _without_first(factors: np.ndarray) -> np.ndarray:
    """R without its first column, made triangular again by a rotation of each two neighbouring rows."""
    turned = factors[:, 1:].copy()
    for i in range(len(turned) - 1):
        above, below = turned[i, i:].copy(), turned[i + 1, i:]
        length = np.hypot(above[0], below[0])
        real = length > 0
        safe = np.where(real, length, 1.0)
        cosine, sine = np.where(real, above[0] / safe, 1.0), below[0] / safe
        turned[i, i:] = cosine * above + sine * below
        turned[i + 1, i:] = cosine * below - sine * above
        turned[i + 1, i] = 0.0
    return turned[:-1]


# -- All 2^D supports of a quadratic likelihood at once, by eliminating one group at a time from all of them.

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


# -- The design matrix Φ behind a fit: standardised columns, their correlations and their rank.


@dataclass(frozen=True)
class Standardisation:
    """How features become rows of Φ as the fits see them: shifted, scaled, the constant in front."""

    mean: np.ndarray  # [q']
    inverse_scale: np.ndarray  # [q']
    intercept: bool

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Raw features [c, q'] → rows of Φ [c, q], column by column in memory."""
        block = np.empty((features.shape[1] + self.intercept, len(features)))
        if self.intercept:
            block[0] = 1.0
        own = block[self.intercept :]
        np.subtract(features.T, self.mean[:, None], out=own)
        own *= self.inverse_scale[:, None]
        return block.T


class DesignMatrix:
    """Columns of φ(s) centred (where an intercept can absorb it) and scaled, which no likelihood ratio notices."""

    def __init__(self, space: ExponentialFamily, moments: Moments) -> None:
        num_columns = len(space.feature_names)
        self.intercept = space.intercept
        self.num_rows = len(space.row_names)
        self.total_weight = moments.total_weight
        origin = moments.mean if self.intercept else np.zeros_like(moments.shift)
        self.mean = origin[:num_columns] + 0.0
        about = moments.scatter if self.intercept else moments.about(origin)
        self.second_moment = about[:num_columns, :num_columns]
        spread = np.sqrt(np.maximum(np.diag(self.second_moment), 0.0) / self.total_weight)
        # Rounding of a large mean must not pass for variance.
        real = spread > 1e-12 * np.maximum(np.abs(self.mean), np.finfo(float).tiny)
        self.constant = ~real
        self.scale = np.where(real, spread, 1.0)
        self.standardise = Standardisation(self.mean, np.where(real, 1.0 / self.scale, 0.0), self.intercept)
        self.resolve_moments()

    def resolve_moments(self) -> None:
        """Judge ranks by the second moments of the scaled columns."""
        self.correlation = self.second_moment / self.total_weight / np.outer(self.scale, self.scale)
        self.correlation[self.constant] = self.correlation[:, self.constant] = 0.0
        eigenvalues, vectors = np.linalg.eigh(self.correlation)
        self.resolve(np.sqrt(np.maximum(eigenvalues, 0.0))[:, None] * vectors.T, COLLINEAR**0.5)

    def resolve(self, factor: np.ndarray, resolution: float) -> None:
        """Judge ranks by a factor [·, q'] of the correlations and the smallest singular value that counts in it."""
        self.factor, self.resolution = factor, resolution
        self.rank = lru_cache(maxsize=None)(self._rank)

    def scores(self, features: np.ndarray, left: np.ndarray) -> np.ndarray:
        """The score of each row [c, d] in standardised coordinates, from what is left of its actions [c, k]."""
        return (left[:, :, None] * self.standardise(features)[:, None, :]).reshape(len(features), -1)

    def to_standardised(self, weights: np.ndarray) -> np.ndarray:
        """Weights [..., k, q] of the raw columns → of the standardised ones."""
        moved = weights.copy()
        if self.intercept:
            moved[..., 0] += weights[..., 1:] @ self.mean
        moved[..., self.intercept :] *= self.scale
        return moved

    def to_raw(self, weights: np.ndarray) -> np.ndarray:
        """Weights [..., k, q] of the standardised columns → of the raw ones."""
        moved = weights.copy()
        moved[..., self.intercept :] /= self.scale
        if self.intercept:
            moved[..., 0] -= moved[..., 1:] @ self.mean
        return moved

    def _rank(self, columns: frozenset[int]) -> int:
        """The rank of a set of feature columns, beside the intercept."""
        if not columns:
            return 0
        return int((np.linalg.svd(self.factor[:, sorted(columns)], compute_uv=False) > self.resolution).sum())

    @property
    def full_rank(self) -> bool:
        """Whether no column is a combination of others."""
        return self.rank(frozenset(range(len(self.mean)))) == len(self.mean)

    def num_free(self, free: np.ndarray) -> int:
        """The rank of the Fisher information on the free coordinates [d]: Σ over rows of the rank of their columns."""
        mask = free.reshape(self.num_rows, -1)
        if self.full_rank:
            return int(mask.sum())
        own = mask[:, self.intercept :]
        return int(self.intercept) * self.num_rows + sum(self.rank(frozenset(np.flatnonzero(row))) for row in own)

    def num_free_of_all(self, groups: Sequence[Sequence[int]]) -> np.ndarray:
        """`num_free` of every support [2^D] of some groups of coordinates, all other coordinates being free."""
        q = len(self.mean) + self.intercept
        if self.full_rank:
            sizes = [len(group) for group in groups]
            return q * self.num_rows - sum(sizes) + popcounts(sizes)
        p = len(self.mean)
        moved = [[i // q * p + i % q - self.intercept for i in group] for group in groups]
        rows = np.kron(np.eye(self.num_rows), self.factor)
        return self.intercept * self.num_rows + residuals_of_all(rows, moved, 0, self.resolution)[1]

    def null_space(self) -> np.ndarray:
        """The combinations [q', r] of standardised feature columns that vanish on these states."""
        _, singular, vectors = np.linalg.svd(self.factor)
        return vectors[np.append(singular, np.zeros(len(vectors) - len(singular))) <= self.resolution].T
