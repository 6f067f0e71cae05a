"""The triangular factor R of a design, RᵀR = XᵀX: what is nearly collinear stays visible, which XᵀX itself loses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from policyspace.data.blocks import Block, Rows
from policyspace.data.chunks import single_threaded_blas
from policyspace.data.joint_moments import BLOCK

BREADTH = 12
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

    table: Callable[[Block], np.ndarray]  # [·, c]

    def __call__(self, block: Block) -> tuple[Triangle]:
        """Of one block."""
        return (Triangle(triangular(self.table(block))),)


def triangular_factor(rows: Rows, table: Callable[[Block], np.ndarray]) -> np.ndarray:
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
    if len(sizes) > BREADTH:
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
