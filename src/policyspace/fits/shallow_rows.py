"""Sums over rows for a Gaussian network with one hidden layer, where most fits of a network spend their time."""

from functools import cached_property
from typing import final

import numpy as np

from policyspace.fits.network_rows import CHUNK, GaussianRows, Point
from policyspace.policies.network import GaussianNetwork

STEERING = 4096
"""Rows from which a step's Gauss–Newton matrix is made: it only steers, and value and gradient come from all of them."""


@final
class ShallowRows(GaussianRows):
    """One hidden layer: samples along the fast axis, one Gram matrix of [h'⊗x, h, 1] whatever the number of actions.

    A `Point` holds the values [h; 1] of the hidden layer and what the output leaves unexplained, a − W[h; 1].
    """

    def __init__(self, space: GaussianNetwork, x: np.ndarray, actions: np.ndarray, weights: np.ndarray | None) -> None:
        super().__init__(space, x, actions, weights)
        w, b = self.layers[0]
        self._inner = np.hstack([w, b[:, None]])  # [h, q+1]: where the hidden layer is in θ
        self._columns = np.vstack([x.T, np.ones(len(x))])
        self._targets = np.ascontiguousarray(actions.T)
        self._layouts: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}

    def at(self, theta: np.ndarray, free: np.ndarray, precision: np.ndarray) -> Point:
        """The output layer is at its best given the inner weights (variable projection)."""
        basis = np.empty((len(self._inner) + 1, len(self)))
        basis[-1] = 1.0
        self.space.activate(np.matmul(theta[self._inner], self._columns, out=basis[:-1]))
        weighted = basis if self.weights is None else basis * self.weights
        theta = theta.copy()
        self._solve_output(theta, free[self.last], weighted @ basis.T, weighted @ self._targets.T, precision)
        residual = self._targets - theta[self.last] @ basis
        spread = residual @ (residual if self.weights is None else residual * self.weights).T
        total = float(np.sum(self.space.precision * spread))
        penalty = 0.5 * float(precision @ theta**2)
        return Point(theta, -0.5 * (total + self._constant) - penalty, [basis, residual])

    def output_score(self, point: Point) -> np.ndarray:
        """Σ⁻¹(a − z), times the row's weight."""
        score = point.values[1].T @ self.space.precision
        return score if self.weights is None else score * self.weights[:, None]

    def system(self, point: Point, free: np.ndarray, steering: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """∇ log L and the Gauss–Newton matrix on the free coordinates; to steer by, the matrix of some rows will do."""
        used, kept = self._layout(free)
        gradient = self._gradient(point, used)
        moments = self._moments(point.values[0], used, steering)
        gram = self._gram(point.theta[self.last[:, :-1]], moments, len(used))
        return gradient[kept], gram[kept[:, None], kept]

    def _layout(self, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inputs with a free weight (the others need no columns), and where each free coordinate is among theirs."""
        name = free.tobytes()
        if name not in self._layouts:
            used = np.flatnonzero(free[self._inner].any(axis=0))
            order = np.concatenate([self._inner[:, used].ravel(), self.last.ravel()])
            place = np.full(len(free), -1)
            place[order] = np.arange(len(order))
            self._layouts[name] = used, place[free]
        return self._layouts[name]

    def _gradient(self, point: Point, used: np.ndarray) -> np.ndarray:
        """∇ log L by the weights that leave the used inputs, then by the output layer."""
        (basis, residual), output_weights = point.values, point.theta[self.last[:, :-1]]
        score = self.space.precision @ residual
        if self.weights is not None:
            score *= self.weights
        pulled = output_weights.T @ score
        pulled *= self.space.slope(basis[:-1])
        return np.concatenate([(pulled @ self._columns.T)[:, used].ravel(), (score @ basis.T).ravel()])

    @cached_property
    def _steering(self) -> tuple[int, float, np.ndarray]:
        """Every how many rows are enough to steer by, what they stand for, and their inputs."""
        stride = -(-len(self) // STEERING)
        if self.weights is None:
            return (
                stride,
                len(self) / len(range(0, len(self), stride)),
                np.ascontiguousarray(self._columns[:, ::stride]),
            )
        factor = float(self.weights.sum() / max(self.weights[::stride].sum(), np.finfo(float).tiny))
        return stride, factor, np.ascontiguousarray(self._columns[:, ::stride])

    def _moments(self, basis: np.ndarray, used: np.ndarray, steering: bool) -> np.ndarray:
        """Σ ggᵀ with g = [h'⊗x, h, 1]."""
        stride, factor, columns = self._steering if steering else (1, 1.0, self._columns)
        weights = None if self.weights is None else np.sqrt(self.weights[::stride])
        values, x = basis[:, ::stride], columns[used] if len(used) < len(columns) else columns
        size = (len(basis) - 1) * len(used)
        moments = np.zeros((size + len(basis), size + len(basis)))
        for start in range(0, x.shape[1], CHUNK):
            here, inputs = values[:, start : start + CHUNK], x[:, start : start + CHUNK]
            block = np.empty((len(moments), here.shape[1]))
            block[size:] = here
            slope = self.space.slope(block[size:-1])
            np.multiply(slope[:, None, :], inputs[None], out=block[:size].reshape(len(slope), len(used), -1))
            if weights is not None:
                block *= weights[start : start + CHUNK]
            moments += block @ block.T
        return moments * factor if factor != 1.0 else moments

    def _gram(self, output_weights: np.ndarray, moments: np.ndarray, columns: int) -> np.ndarray:
        """The blocks of Σ JᵀΣ⁻¹J from those moments: J = [W h'⊗x, I⊗[h, 1]]."""
        k, units = output_weights.shape
        size = units * columns
        pull = self.space.precision @ output_weights  # [k, units]
        coupling = output_weights.T @ pull
        gram = np.empty((size + k * (units + 1), size + k * (units + 1)))
        inner = moments[:size, :size].reshape(units, columns, units, columns) * coupling[:, None, :, None]
        gram[:size, :size] = inner.reshape(size, size)
        cross = pull.T[:, None, :, None] * moments[:size, size:].reshape(units, columns, 1, units + 1)
        gram[:size, size:] = cross.reshape(size, -1)
        gram[size:, :size] = gram[:size, size:].T
        outer = self.space.precision[:, None, :, None] * moments[None, size:, None, size:]
        gram[size:, size:] = outer.reshape(k * (units + 1), -1)
        return gram
