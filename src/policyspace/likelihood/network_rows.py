"""Sums over rows for a network's likelihood: its value, its gradient and its Gauss–Newton matrix."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from policyspace.policies.neural import BoltzmannNetwork, GaussianNetwork, Network

CHUNK = 1024
"""Rows whose Jacobian is held at once: it stays in the cache."""


@final
@dataclass(frozen=True)
class Inputs:
    """Features centred and scaled, which the first layer can undo: no likelihood ratio notices."""

    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, features: np.ndarray, weights: np.ndarray | None) -> "Inputs":
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
class Point:
    """A θ with the value of log L there and the network's inner values, which the next step needs again."""

    theta: np.ndarray
    value: float
    values: list[np.ndarray]  # of every layer, from the inputs to the output


class NetworkRows(ABC):
    """Standardised rows of one data set, seen through a network."""

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
    def at(self, theta: np.ndarray, free: np.ndarray, precision: np.ndarray) -> Point:
        """log L at θ; the family may first move the free output weights to their best values.

        `precision` [d] is that of a Gaussian prior around zero, which then counts as well.
        """

    @abstractmethod
    def output_score(self, point: Point) -> np.ndarray:
        """Σ_i w_i-weighted ∂log π/∂z [n, k]."""

    @abstractmethod
    def metric(self, output: np.ndarray) -> np.ndarray:
        """−E ∂²log π/∂z² [k, k], or one a row [n, k, k]."""

    def system(self, point: Point, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∇ log L [f] and the Gauss–Newton matrix Σ JᵀCJ [f, f] on the free coordinates, J = ∂z/∂θ."""
        where = np.flatnonzero(free)
        gradient, gram = np.zeros(len(where)), np.zeros((len(where), len(where)))
        score = self.output_score(point)
        for start in range(0, len(self), CHUNK):
            rows = slice(start, start + CHUNK)
            jacobian = self._jacobian(point, rows)[:, :, where]
            metric = self.metric(point.values[-1][rows])
            curved = metric @ jacobian
            if self.weights is not None:
                curved *= self.weights[rows, None, None]
            flat = jacobian.reshape(-1, len(where))
            gram += flat.T @ curved.reshape(-1, len(where))
            gradient += score[rows].ravel() @ flat
        return gradient, gram

    def _jacobian(self, point: Point, rows: slice) -> np.ndarray:
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


@final
class GaussianRows(NetworkRows):
    """Least squares in the metric Σ⁻¹: the linear output layer is solved exactly wherever the inner weights go."""

    space: GaussianNetwork

    def at(self, theta: np.ndarray, free: np.ndarray, precision: np.ndarray) -> Point:
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
        count = len(self) if self.weights is None else self.weights.sum()
        constant = count * np.linalg.slogdet(2 * np.pi * self.space.covariance)[1]
        penalty = 0.5 * float(precision @ theta**2)
        return Point(theta, -0.5 * float(total + constant) - penalty, [*values, output])

    def _solve_output(
        self, theta: np.ndarray, free: np.ndarray, moments: np.ndarray, cross: np.ndarray, precision: np.ndarray
    ) -> None:
        """argmin Σ (a − Wv)ᵀΣ⁻¹(a − Wv) over the free entries of W [k, h+1], the others staying as they are."""
        if not free.any():
            return
        ridge = precision[self.last]
        flat = free.ravel()
        fixed = np.where(free, 0.0, theta[self.last])
        right = (self.space.precision @ (cross.T - fixed @ moments)).ravel()[flat]
        quadratic = np.kron(self.space.precision, moments)[np.ix_(flat, flat)] + np.diag(ridge.ravel()[flat])
        # Units that are dead or alike leave the matrix singular: a rounding-sized ridge picks one of the solutions.
        scale = np.sqrt(np.maximum(np.diag(quadratic), np.finfo(float).tiny))
        unit = quadratic / np.outer(scale, scale) + 1e-13 * np.eye(len(scale))
        theta[self.last[free]] = np.linalg.solve(unit, right / scale) / scale

    @cached_property
    def _columns(self) -> np.ndarray:
        """The inputs and the constant, transposed [q+1, n]."""
        return np.vstack([self.x.T, np.ones(len(self))])

    def output_score(self, point: Point) -> np.ndarray:
        """Σ⁻¹(a − z), times the row's weight."""
        score = (self.actions - point.values[-1]) @ self.space.precision
        return score if self.weights is None else score * self.weights[:, None]

    def metric(self, output: np.ndarray) -> np.ndarray:
        """Σ⁻¹, whatever the state."""
        return self.space.precision

    def system(self, point: Point, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One hidden layer needs one Gram matrix of [h'⊗x, h, 1], whatever the number of actions."""
        if len(self.layers) != 2:
            return super().system(point, free)
        w, b = self.layers[0]
        inner, output_weights = np.hstack([w, b[:, None]]), point.theta[self.layers[1][0]]
        used = np.flatnonzero(free[inner].any(axis=0))  # inputs that are not controlled need no columns
        units, columns, k = len(b), len(used), len(self.space.row_names)
        score = self.output_score(point)
        size = units * columns
        moments, gradient = np.zeros((size + units + 1, size + units + 1)), np.zeros((units, columns))
        for start in range(0, len(self), CHUNK):
            rows = slice(start, start + CHUNK)
            x, h = self._columns[used, rows], np.ascontiguousarray(point.values[1][rows].T)
            slope = self.space.slope(h)
            block = np.empty((size + units + 1, h.shape[1]))  # rows along the fast axis: long loops
            np.multiply(slope[:, None, :], x[None], out=block[:size].reshape(units, columns, -1))
            block[size:-1], block[-1] = h, 1.0
            gradient += ((output_weights.T @ score[rows].T) * slope) @ x.T
            if self.weights is not None:
                block *= np.sqrt(self.weights[rows])
            moments += block @ block.T
        pull = self.space.precision @ output_weights  # [k, units]
        coupling = output_weights.T @ pull
        gram = np.empty((size + k * (units + 1), size + k * (units + 1)))
        gram[:size, :size] = moments[:size, :size] * np.kron(coupling, np.ones((columns, columns)))
        cross = pull.T[:, None, :, None] * moments[:size, size:].reshape(units, columns, 1, units + 1)
        gram[:size, size:] = cross.reshape(size, -1)
        gram[size:, :size] = gram[:size, size:].T
        gram[size:, size:] = np.kron(self.space.precision, moments[size:, size:])
        order = np.concatenate([inner[:, used].ravel(), self.last.ravel()])
        basis = np.hstack([point.values[1], np.ones((len(self), 1))])
        slopes = np.concatenate([gradient.ravel(), (score.T @ basis).ravel()])
        place = np.full(len(point.theta), -1)
        place[order] = np.arange(len(order))
        kept = place[np.flatnonzero(free)]
        return slopes[kept], gram[np.ix_(kept, kept)]


@final
class BoltzmannRows(NetworkRows):
    """The choice among actions; all weights move together, by Fisher scoring."""

    space: BoltzmannNetwork

    def at(self, theta: np.ndarray, free: np.ndarray, precision: np.ndarray) -> Point:
        """log L where θ is."""
        values = self.space.forward(theta, self.x)
        logits = np.hstack([values[-1], np.zeros((len(self), 1))])
        logits -= logits.max(axis=1, keepdims=True)
        chosen = logits[np.arange(len(self)), self.actions] - np.log(np.exp(logits).sum(axis=1))
        total = chosen.sum() if self.weights is None else self.weights @ chosen
        return Point(theta, float(total) - 0.5 * float(precision @ theta**2), values)

    def output_score(self, point: Point) -> np.ndarray:
        """e_a − p, times the row's weight."""
        score = self.space.output_score(point.values[-1], self.actions)
        return score if self.weights is None else score * self.weights[:, None]

    def metric(self, output: np.ndarray) -> np.ndarray:
        """diag(p) − ppᵀ, row by row."""
        logits = np.hstack([output, np.zeros((len(output), 1))])
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        p = (odds / odds.sum(axis=1, keepdims=True))[:, :-1]
        return p[:, :, None] * (np.eye(p.shape[1]) - p[:, None, :])
