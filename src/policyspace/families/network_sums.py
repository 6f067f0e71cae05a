"""Sums over rows for network policies: values, gradients and curvature."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, final

import numpy as np
from scipy.linalg.lapack import dposv

from policyspace.families.network import GaussianNetwork, Network, SoftmaxNetwork

# -- Sums over rows for a network's likelihood: its value, its gradient and its Gauss–Newton matrix.

CHUNK = 1024
"""Rows whose Jacobian is held at once: it stays in the cache."""

TINY = float(np.finfo(float).tiny)


@final
@dataclass(frozen=True)
class NetworkInputs:
    """Features centred and scaled, which the first layer can undo: no likelihood ratio notices."""

    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, features: np.ndarray, weights: np.ndarray | None) -> "NetworkInputs":
        """From the rows' own mean and spread; a constant input keeps the scale 1."""
        mean = np.average(features, axis=0, weights=weights)
        spread = np.sqrt(np.average((features - mean) ** 2, axis=0, weights=weights))
        return cls(mean, np.where(spread > 1e-12 * np.maximum(np.abs(mean), 1e-300), spread, 1.0))

    def standardise(self, features: np.ndarray) -> np.ndarray:
        """The rows as fits see them [n, q]."""
        return (features - self.mean) / self.scale

    def to_standardised(self, space: Network, theta: np.ndarray) -> np.ndarray:
        """θ of the raw inputs → of the standardised ones."""
        moved, (where, bias) = theta.copy(), space.layer_indices[0]
        moved[bias] += theta[where] @ self.mean
        moved[where] *= self.scale
        return moved

    def to_raw(self, space: Network, theta: np.ndarray) -> np.ndarray:
        """θ of the standardised inputs → of the raw ones."""
        moved, (where, bias) = theta.copy(), space.layer_indices[0]
        moved[where] /= self.scale
        moved[bias] -= moved[where] @ self.mean
        return moved


@final
@dataclass(frozen=True)
class Evaluation:
    """A θ with the value of log L there and the network's inner values, which the next step needs again."""

    theta: np.ndarray
    value: float
    values: list[np.ndarray]  # of every layer, from the inputs to the output, or what stands for them


def solve_scaled(matrix: np.ndarray, right: np.ndarray, ridge: float) -> np.ndarray:
    """matrix⁻¹ right [f] or [f, k] for a positive semi-definite matrix, its diagonal first scaled to one.

    Units that are dead or alike leave it singular: a rounding-sized ridge picks one of the solutions.
    """
    scale = np.sqrt(np.maximum(matrix.diagonal(), TINY))
    unit = matrix / scale / scale[:, None]
    unit.flat[:: len(unit) + 1] += ridge
    scaled = (right.T / scale).T
    _, found, failed = dposv(unit, scaled)
    if failed:
        found = np.linalg.solve(unit, scaled)
    return np.asarray((found.T / scale).T)


class NetworkRows(ABC):
    """Standardised rows of one data set, seen through a network."""

    solves_output: ClassVar[bool] = False  # are free output weights at their best, wherever the others are?

    def __init__(self, space: Network, x: np.ndarray, actions: np.ndarray, weights: np.ndarray | None) -> None:
        self.space, self.x, self.actions, self.weights = space, x, actions, weights
        self.layers = space.layer_indices
        w, b = self.layers[-1]
        self.last = np.hstack([w, b[:, None]])  # [k, h+1]: where the linear output layer is in θ

    def __len__(self) -> int:
        return len(self.x)

    def sample(self, rows: np.ndarray) -> "NetworkRows":
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return type(self)(self.space, self.x[rows], self.actions[rows], weights)

    @abstractmethod
    def at(self, theta: np.ndarray, free: np.ndarray, precision: np.ndarray) -> Evaluation:
        """log L at θ; the family may first move the free output weights to their best values.

        `precision` [d] is that of a Gaussian prior around zero, which then counts as well.
        """

    @abstractmethod
    def output_score(self, point: Evaluation) -> np.ndarray:
        """Σ_i w_i-weighted ∂log π/∂z [n, k]."""

    @abstractmethod
    def metric(self, output: np.ndarray) -> np.ndarray:
        """−E ∂²log π/∂z² [k, k], or one a row [n, k, k]."""

    def system(self, point: Evaluation, free: np.ndarray, steering: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """∇ log L [f] and the Gauss–Newton matrix Σ JᵀCJ [f, f] on the free coordinates, J = ∂z/∂θ.

        Where the matrix is only to steer a step by, `steering`, a family may estimate it.
        """
        where = np.flatnonzero(free)
        gram = np.zeros((len(where), len(where)))
        for start in range(0, len(self), CHUNK):
            rows = slice(start, start + CHUNK)
            jacobian = self._jacobian(point, rows)[:, :, where]
            metric = self.metric(point.values[-1][rows])
            curved = metric @ jacobian
            if self.weights is not None:
                curved *= self.weights[rows, None, None]
            gram += jacobian.reshape(-1, len(where)).T @ curved.reshape(-1, len(where))
        return self.gradient(point, free), gram

    def gradient(self, point: Evaluation, free: np.ndarray) -> np.ndarray:
        """∇ log L [f] on the free coordinates, by back-propagation of the output's score."""
        delta, parts = self.output_score(point), []
        for depth in range(len(self.layers) - 1, -1, -1):
            value = point.values[depth]
            parts += [delta.sum(axis=0), (delta.T @ value).ravel()]
            if depth:
                delta = (delta @ point.theta[self.layers[depth][0]]) * self.space.slope(value)
        return np.concatenate(parts[::-1])[free]

    def _jacobian(self, point: Evaluation, rows: slice) -> np.ndarray:
        """∂z/∂θ [c, k, d] by back-propagation of every output."""
        values, k = [value[rows] for value in point.values[:-1]], len(self.space.row_names)
        delta = np.broadcast_to(np.eye(k), (len(values[0]), k, k))
        parts: list[np.ndarray] = []
        for depth in range(len(values) - 1, -1, -1):
            outer = delta[..., :, None] * values[depth][:, None, None, :]
            parts += [delta, outer.reshape(*outer.shape[:-2], -1)]
            if depth:
                slope = self.space.slope(values[depth])
                delta = (delta @ point.theta[self.layers[depth][0]]) * slope[:, None, :]
        return np.concatenate(parts[::-1], axis=-1)


class GaussianRows(NetworkRows):
    """Least squares in the metric Σ⁻¹: the linear output layer is solved exactly wherever the inner weights go."""

    solves_output = True
    space: GaussianNetwork

    def at(self, theta: np.ndarray, free: np.ndarray, precision: np.ndarray) -> Evaluation:
        """The output layer is at its best given the inner weights (variable projection)."""
        *values, _ = self.space.forward(theta, self.x)
        basis = np.hstack([values[-1], np.ones((len(self), 1))])
        weighted = basis if self.weights is None else basis * self.weights[:, None]
        theta = theta.copy()
        moments, cross = weighted.T @ basis, weighted.T @ self.actions
        self._solve_output(theta, free[self.last], moments, cross, precision)
        output = basis @ theta[self.last].T
        residual = self.actions - output
        square = np.sum((residual @ self.space.precision) * residual, axis=1)
        total = square.sum() if self.weights is None else self.weights @ square
        penalty = 0.5 * float(precision @ theta**2)
        return Evaluation(theta, -0.5 * (float(total) + self._constant) - penalty, [*values, output])

    def _solve_output(
        self, theta: np.ndarray, free: np.ndarray, moments: np.ndarray, cross: np.ndarray, precision: np.ndarray
    ) -> None:
        """argmin Σ (a − Wv)ᵀΣ⁻¹(a − Wv) over the free entries of W [k, h+1], the others staying as they are."""
        if not free.any():
            return
        ridge = precision[self.last]
        if free.all() and not ridge.any():  # then every action is a regression of its own, whatever Σ
            theta[self.last] = solve_scaled(moments, cross, 1e-13).T
            return
        flat = free.ravel()
        fixed = np.where(free, 0.0, theta[self.last])
        right = (self.space.precision @ (cross.T - fixed @ moments)).ravel()[flat]
        quadratic = np.kron(self.space.precision, moments)[np.ix_(flat, flat)] + np.diag(ridge.ravel()[flat])
        theta[self.last[free]] = solve_scaled(quadratic, right, 1e-13)

    @cached_property
    def _constant(self) -> float:
        """What no θ can change: n·log det 2πΣ."""
        count = len(self) if self.weights is None else float(self.weights.sum())
        return count * float(np.linalg.slogdet(2 * np.pi * self.space.covariance)[1])

    def output_score(self, point: Evaluation) -> np.ndarray:
        """Σ⁻¹(a − z), times the row's weight."""
        score = (self.actions - point.values[-1]) @ self.space.precision
        return score if self.weights is None else score * self.weights[:, None]

    def metric(self, output: np.ndarray) -> np.ndarray:
        """Σ⁻¹, whatever the state."""
        return self.space.precision


@final
class BoltzmannRows(NetworkRows):
    """The choice among actions; all weights move together, by Fisher scoring."""

    space: SoftmaxNetwork

    def at(self, theta: np.ndarray, free: np.ndarray, precision: np.ndarray) -> Evaluation:
        """log L where θ is."""
        values = self.space.forward(theta, self.x)
        logits = np.hstack([values[-1], np.zeros((len(self), 1))])
        logits -= logits.max(axis=1, keepdims=True)
        chosen = logits[np.arange(len(self)), self.actions] - np.log(np.exp(logits).sum(axis=1))
        total = chosen.sum() if self.weights is None else self.weights @ chosen
        return Evaluation(theta, float(total) - 0.5 * float(precision @ theta**2), values)

    def output_score(self, point: Evaluation) -> np.ndarray:
        """e_a − p, times the row's weight."""
        score = self.space.output_score(point.values[-1], self.actions)
        return score if self.weights is None else score * self.weights[:, None]

    def metric(self, output: np.ndarray) -> np.ndarray:
        """diag(p) − ppᵀ, row by row."""
        logits = np.hstack([output, np.zeros((len(output), 1))])
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        p = (odds / odds.sum(axis=1, keepdims=True))[:, :-1]
        return p[:, :, None] * (np.eye(p.shape[1]) - p[:, None, :])


# -- Sums over rows for a Gaussian network with one hidden layer, where most fits of a network spend their time.

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

    def at(self, theta: np.ndarray, free: np.ndarray, precision: np.ndarray) -> Evaluation:
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
        return Evaluation(theta, -0.5 * (total + self._constant) - penalty, [basis, residual])

    def output_score(self, point: Evaluation) -> np.ndarray:
        """Σ⁻¹(a − z), times the row's weight."""
        score = point.values[1].T @ self.space.precision
        return score if self.weights is None else score * self.weights[:, None]

    def system(self, point: Evaluation, free: np.ndarray, steering: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """∇ log L and the Gauss–Newton matrix on the free coordinates; to steer by, the matrix of some rows will do."""
        used, kept = self._layout(free)
        moments = self._moments(point.values[0], used, steering)
        gram = self._gram(point.theta[self.last[:, :-1]], moments, len(used))
        return self.gradient(point, free), gram[kept[:, None], kept]

    def gradient(self, point: Evaluation, free: np.ndarray) -> np.ndarray:
        """∇ log L [f], by the weights that leave the used inputs, then by the output layer."""
        used, kept = self._layout(free)
        (basis, residual), output_weights = point.values, point.theta[self.last[:, :-1]]
        score = self.space.precision @ residual
        if self.weights is not None:
            score *= self.weights
        pulled = output_weights.T @ score
        pulled *= self.space.slope(basis[:-1])
        return np.concatenate([(pulled @ self._columns.T)[:, used].ravel(), (score @ basis.T).ravel()])[kept]

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
