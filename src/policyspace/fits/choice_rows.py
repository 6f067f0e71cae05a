"""Sums over rows for policies of general statistics t(s, a): value, gradient and Hessian at many θ in one pass."""

from collections.abc import Sequence

import numpy as np

from policyspace.fits.chunks import sum_over_chunks
from policyspace.fits.design import Design
from policyspace.policies.choice_linear import ChoiceLinear

SAFE = 300.0
"""Natural parameters whose exponentials neither overflow nor vanish."""

SAME = 1e-7
"""A spread within choices, relative to the size of the values, that is rounding."""


class ChoiceDesign(Design):
    """Columns of t(s, a), one a parameter: features are shifted where constants (or all actions alike) absorb it, then
    parameters are scaled by how much their column differs between the actions of a row, which no likelihood ratio notices.
    """

    def __init__(self, space: ChoiceLinear, features: np.ndarray, weights: np.ndarray | None) -> None:
        size = space.num_parameters
        self.space, self.intercept, self.num_rows, self.mean = space, False, 1, np.zeros(size)
        self.total_weight = float(len(features) if weights is None else weights.sum())
        self.scale, self.inverse_scale = np.ones(size), np.ones(size)
        self.shift = self._shift(features)
        self._move = self._absorbed()
        plain = ChoiceRows(self, features, np.zeros(len(features), dtype=np.intp), weights)
        # With all available actions equally likely, the information is the second moment within choices.
        self.second_moment = plain.hessian(np.zeros(size))
        largest = np.zeros(size)
        for terms in space.terms:
            block = np.abs(features - self.shift).max(axis=0)
            np.maximum.at(largest, terms.parameters, np.append(1.0, block)[terms.columns])
        spread = np.sqrt(np.maximum(np.diag(self.second_moment), 0.0) / self.total_weight)
        real = spread > SAME * np.maximum(largest, np.finfo(float).tiny)
        self.constant = ~real
        self.scale = np.where(real, spread, 1.0)
        self.inverse_scale = np.where(real, 1.0 / self.scale, 0.0)
        self.resolve_moments()

    def _shift(self, features: np.ndarray) -> np.ndarray:
        """What is subtracted from each feature [q]: its mean, and for a shared attribute that of all actions together."""
        space, shift = self.space, np.zeros(features.shape[1])
        place = {name: j for j, name in enumerate(space.feature_names)}
        if space.constants:
            for name in space.own_features:
                shift[place[name]] = features[:, place[name]].mean()
        for columns in space.attributes.values():
            inside = [place[column] for column in columns.values()]
            if space.constants or len(inside) == len(space.action_names):
                shift[inside] = features[:, inside].mean()
        for name in space.specific if not space.constants else ():
            shift[[place[column] for column in space.attributes[name].values()]] = 0.0
        return shift

    def _absorbed(self) -> np.ndarray:
        """The matrix [d, d] from weights of the features as they are to weights of the shifted ones, before scaling."""
        space, matrix, amount = self.space, np.eye(len(self.mean)), np.append(0.0, self.shift)
        if not space.constants:
            return matrix
        last, owners = len(space.action_names) - 1, np.zeros(len(self.mean), dtype=int)
        for terms in space.terms:
            owners[terms.parameters] += 1
        for a, terms in enumerate(space.terms):
            for column, parameter in zip(terms.columns, terms.parameters, strict=True):
                if owners[parameter] <= last and amount[column]:  # what all actions share needs no constant
                    matrix[slice(0, last) if a == last else a, parameter] += (
                        -amount[column] if a == last else amount[column]
                    )
        return matrix

    def standardise(self, features: np.ndarray) -> np.ndarray:
        """Raw features [c, q] → (1, shifted features) [c, 1+q], of which `terms` take their columns."""
        block = np.empty((len(features), features.shape[1] + 1))
        block[:, 0] = 1.0
        np.subtract(features, self.shift, out=block[:, 1:])
        return block

    def to_standardised(self, weights: np.ndarray) -> np.ndarray:
        """θ [..., 1, d] → of shifted and scaled columns."""
        return (weights @ self._move.T) * self.scale

    def to_raw(self, weights: np.ndarray) -> np.ndarray:
        """The way back."""
        return (weights / self.scale) @ np.linalg.inv(self._move).T


class ChoiceRows:
    """log L(θ) = θᵀT − Σ w_i log Σ_b exp θᵀt(s_i, b), T = Σ w_i t(s_i, a_i), b over the actions available in row i."""

    def __init__(
        self, design: ChoiceDesign, features: np.ndarray, actions: np.ndarray, weights: np.ndarray | None
    ) -> None:
        self.design, self.features, self.actions, self.weights = design, features, actions, weights
        self.space = space = design.space
        self.columns = [_as_slice(terms.columns) for terms in space.terms]
        place = {name: j for j, name in enumerate(space.feature_names)}
        self._available = [place[space.available[a]] if a in space.available else None for a in space.action_names]
        self.total_weight = float(len(features) if weights is None else weights.sum())
        (self.statistic,) = sum_over_chunks(self._statistic, len(features), 65536)

    def __len__(self) -> int:
        return len(self.features)

    def sample(self, size: int, seed: int) -> "ChoiceRows":
        """A fixed random sample of the rows; sums over it are for the caller to scale up."""
        rows = np.sort(np.random.default_rng(seed).choice(len(self), size, replace=False))
        weights = None if self.weights is None else self.weights[rows]
        return ChoiceRows(self.design, self.features[rows], self.actions[rows], weights)

    def action_weights(self, rows: slice) -> np.ndarray:
        """How much each action weighs in each row [c, k+1]."""
        if self.actions.ndim == 2:
            return self.actions[rows]
        played = np.eye(len(self.columns))[self.actions[rows]]
        return played if self.weights is None else played * self.weights[rows, None]

    def statistics(self, rows: slice | np.ndarray) -> np.ndarray:
        """t(s, a) of every action in the coordinates of the fits [c, k+1, d]."""
        x = self.design.standardise(self.features[rows])
        found = np.zeros((len(x), len(self.columns), len(self.statistic)))
        for a, (columns, terms) in enumerate(zip(self.columns, self.space.terms, strict=True)):
            found[:, a, terms.parameters] = x[:, columns] * self.design.inverse_scale[terms.parameters]
        return found

    def available(self, rows: slice | np.ndarray) -> np.ndarray:
        """Which actions can be chosen [c, k+1]."""
        block = self.features[rows]
        return np.stack([np.ones(len(block), bool) if j is None else block[:, j] > 0 for j in self._available], axis=1)

    def _statistic(self, rows: slice) -> tuple[np.ndarray]:
        x, played = self.design.standardise(self.features[rows]), self.action_weights(rows)
        total = np.zeros(self.space.num_parameters)
        for a, (columns, terms) in enumerate(zip(self.columns, self.space.terms, strict=True)):
            total[terms.parameters] += x[:, columns].T @ played[:, a]
        return (total * self.design.inverse_scale,)

    def _parts(self, rows: slice) -> tuple[list[np.ndarray], list[np.ndarray | None]]:
        """What is seen of each action: its columns [c, ·], and where it is missing [c]."""
        block = self.features[rows]
        x = self.design.standardise(block)
        missing = [None if j is None else block[:, j] <= 0 for j in self._available]
        return [x[:, columns] for columns in self.columns], missing

    def evaluate(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log L [m] and its gradient [m, d] at θ [m, d]: for each action a product, exp, log, and a product back."""
        m, terms = len(thetas), self.space.terms
        columns = [np.ascontiguousarray((thetas * self.design.inverse_scale).T[t.parameters]) for t in terms]

        def of_chunk(rows: slice) -> tuple[np.ndarray, np.ndarray]:
            parts, missing = self._parts(rows)
            weights = None if self.weights is None else self.weights[rows]
            probabilities, log_partition = softmax(parts, columns, missing)
            mean = np.zeros((self.space.num_parameters, m))
            for x, p, t in zip(parts, probabilities, terms, strict=True):
                if len(t.parameters):
                    mean[t.parameters] += x.T @ (p if weights is None else p * weights[:, None])
            return log_partition.sum(axis=0) if weights is None else weights @ log_partition, mean

        size = max(128, 2**18 // (m * max(len(terms) - 1, 1)))  # a few arrays of 2 MB: they stay in the cache
        partition, mean = sum_over_chunks(of_chunk, len(self), min(size, 65536))
        return thetas @ self.statistic - partition, self.statistic - mean.T * self.design.inverse_scale

    def at(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log L and its gradient at one θ."""
        values, gradients = self.evaluate(theta[None])
        return float(values[0]), gradients[0]

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """−∇² log L = Σ w_i Cov[t(s_i, ·)] = Σ w_i (Σ_b p_b t_b t_bᵀ − t̄ t̄ᵀ) [d, d]."""
        size, terms = len(theta), self.space.terms
        columns = [(theta * self.design.inverse_scale)[t.parameters][:, None] for t in terms]

        def of_chunk(rows: slice) -> tuple[np.ndarray]:
            parts, missing = self._parts(rows)
            weights = np.ones(len(parts[0])) if self.weights is None else self.weights[rows]
            total, mean = np.zeros((size, size)), np.zeros((len(weights), size))
            for x, p, t in zip(parts, softmax(parts, columns, missing)[0], terms, strict=True):
                weighted = x * p
                mean[:, t.parameters] += weighted
                total[np.ix_(t.parameters, t.parameters)] += x.T @ (weighted * weights[:, None])
            mean *= np.sqrt(weights)[:, None]
            return (total - mean.T @ mean,)

        inner = sum_over_chunks(of_chunk, len(self), 8192)[0]
        return inner * np.outer(self.design.inverse_scale, self.design.inverse_scale)


def softmax(
    parts: Sequence[np.ndarray], columns: Sequence[np.ndarray], missing: Sequence[np.ndarray | None]
) -> tuple[list[np.ndarray], np.ndarray]:
    """Probabilities of all actions (k+1 arrays [c, m]) and log-partitions [c, m]; an action that is missing has none."""
    eta = [x @ w for x, w in zip(parts, columns, strict=True)]
    top: np.ndarray | None = None
    if max(max(float(e.max(initial=0.0)), -float(e.min(initial=0.0))) for e in eta) > SAFE:
        for e, gone in zip(eta, missing, strict=True):
            if gone is not None:
                e[gone] = -np.inf
        top = np.max(eta, axis=0)
        for e in eta:
            e -= top
    for e, gone in zip(eta, missing, strict=True):
        np.exp(e, out=e)
        if gone is not None:
            e[gone] = 0.0
    total = eta[0].copy()
    for e in eta[1:]:
        total += e
    inverse = 1.0 / total
    for e in eta:
        e *= inverse
    np.log(total, out=total)
    return eta, total if top is None else total + top


def _as_slice(columns: np.ndarray) -> slice | np.ndarray:
    """Neighbouring columns are looked at in place, others are copied out."""
    if len(columns) and np.array_equal(columns, np.arange(columns[0], columns[-1] + 1)):
        return slice(int(columns[0]), int(columns[-1]) + 1)
    return columns
