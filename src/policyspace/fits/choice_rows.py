"""Sums over rows for policies of general statistics t(s, a): value, gradient and Hessian at many θ in one pass."""

import itertools
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from policyspace.data.chunks import sum_over_chunks
from policyspace.fits.design import Design
from policyspace.policies.choice_linear import ChoiceLinear
from policyspace.policies.groups import INTERCEPT

SAFE = 300.0
"""Natural parameters whose exponentials neither overflow nor vanish."""

CONSTANT = range(-1, 0)
"""The place of the constant, in front of the features."""

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
        plain = ChoiceRows(self, features, np.zeros(len(features), dtype=np.intp), weights, offset=False)
        # With all available actions equally likely, the information is the second moment within choices.
        self.second_moment = plain.hessian(np.zeros(size))
        reach = np.append(1.0, np.maximum(features.max(axis=0) - self.shift, self.shift - features.min(axis=0)))
        largest = np.zeros(size)
        for terms in space.terms:
            np.maximum.at(largest, terms.parameters, reach[terms.columns])
        spread = np.sqrt(np.maximum(np.diag(self.second_moment), 0.0) / self.total_weight)
        real = spread > SAME * np.maximum(largest, np.finfo(float).tiny)
        self.constant = ~real
        self.scale = np.where(real, spread, 1.0)
        self.inverse_scale = np.where(real, 1.0 / self.scale, 0.0)
        self.resolve_moments()

    def _shift(self, features: np.ndarray) -> np.ndarray:
        """What is subtracted from each feature [q]: its mean, and for a shared attribute that of all actions together."""
        space, shift, mean = self.space, np.zeros(features.shape[1]), features.mean(axis=0)
        place = {name: j for j, name in enumerate(space.feature_names)}
        if space.constants:
            for name in space.own_features:
                shift[place[name]] = mean[place[name]]
        for columns in space.attributes.values():
            inside = [place[column] for column in columns.values()]
            if space.constants or len(inside) == len(space.action_names):
                shift[inside] = mean[inside].mean()
        for name in space.specific if not space.constants else ():
            shift[[place[column] for column in space.attributes[name].values()]] = 0.0
        return shift

    def _absorbed(self) -> np.ndarray:
        """The matrix [d, d] from weights of the features as they are to weights of the shifted ones, before scaling."""
        space, matrix, amount = self.space, np.eye(len(self.mean)), np.append(0.0, self.shift)
        if not space.constants:
            return matrix
        constants = [i for i, name in enumerate(space.parameter_names) if name.startswith(f"{INTERCEPT}[")]
        owners = np.bincount(np.concatenate([terms.parameters for terms in space.terms]), minlength=len(matrix))
        for a, terms in enumerate(space.terms):
            # What moves the last action, which has no constant, moves all others the other way.
            own, sign = (constants, -1.0) if a == len(constants) else (constants[a], 1.0)
            for column, parameter in zip(terms.columns, terms.parameters, strict=True):
                if owners[parameter] <= len(constants):  # what all actions share needs no constant
                    matrix[own, parameter] += sign * amount[column]
        return matrix

    def scores(self, features: np.ndarray, left: np.ndarray) -> np.ndarray:
        """Σ_a (what is left of action a)·t(s, a) [c, d]; what is left of all actions together is nothing."""
        rows = ChoiceRows(self, features, np.zeros(len(features), dtype=np.intp), None)
        every = np.hstack([left, -left.sum(axis=1, keepdims=True)])
        return np.einsum("na,nad->nd", every, rows.statistics(slice(None)))

    def to_standardised(self, weights: np.ndarray) -> np.ndarray:
        """θ [..., 1, d] → of shifted and scaled columns."""
        return (weights @ self._move.T) * self.scale

    def to_raw(self, weights: np.ndarray) -> np.ndarray:
        """The way back."""
        return (weights / self.scale) @ np.linalg.inv(self._move).T


class ChoiceRows:
    """log L(θ) = θᵀT − Σ w_i log Σ_b exp θᵀt(s_i, b), T = Σ w_i t(s_i, a_i), b over the actions available in row i.

    An offset o(s, a) is added to every θᵀt(s, a).
    """

    def __init__(
        self,
        design: ChoiceDesign,
        features: np.ndarray,
        actions: np.ndarray,
        weights: np.ndarray | None,
        offset: bool = True,
    ) -> None:
        self.design, self.features, self.actions, self.weights = design, features, actions, weights
        self.space = space = design.space
        self._runs = [_runs(terms.columns) for terms in space.terms]
        place = {name: j for j, name in enumerate(space.feature_names)}
        self._available = [place[space.available[a]] if a in space.available else None for a in space.action_names]
        self._offset = [list(columns) if offset else [] for columns in space.offset_columns]
        self.total_weight = float(len(features) if weights is None else weights.sum())

    @cached_property
    def statistic(self) -> np.ndarray:
        """T [d]."""
        return sum_over_chunks(self._statistic, len(self), 65536)[0]

    @cached_property
    def known(self) -> float:
        """What the offsets of the actions that were taken add to log L."""
        if not any(self._offset):
            return 0.0
        return float((self.action_weights(slice(None)) * self.offsets(slice(None))).sum())

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
        played = np.eye(len(self._runs))[self.actions[rows]]
        return played if self.weights is None else played * self.weights[rows, None]

    def statistics(self, rows: slice | np.ndarray) -> np.ndarray:
        """t(s, a) of every action in the coordinates of the fits [c, k+1, d]."""
        parts = self._columns(self.features[rows])
        found = np.zeros((len(parts[0]), len(parts), self.space.num_parameters))
        for a, (x, terms) in enumerate(zip(parts, self.space.terms, strict=True)):
            found[:, a, terms.parameters] = x * self.design.inverse_scale[terms.parameters]
        return found

    def available(self, rows: slice | np.ndarray) -> np.ndarray:
        """Which actions can be chosen [c, k+1]."""
        block = self.features[rows]
        return np.stack([np.ones(len(block), bool) if j is None else block[:, j] > 0 for j in self._available], axis=1)

    def offsets(self, rows: slice) -> np.ndarray:
        """What is added to the natural parameter of every action [c, k+1]."""
        return np.stack([self.features[rows][:, columns].sum(axis=1) for columns in self._offset], axis=1)

    def _statistic(self, rows: slice) -> tuple[np.ndarray]:
        played, total = self.action_weights(rows), np.zeros(self.space.num_parameters)
        for x, weights, terms in zip(self._columns(self.features[rows]), played.T, self.space.terms, strict=True):
            total[terms.parameters] += x.T @ weights
        return (total * self.design.inverse_scale,)

    def _columns(self, block: np.ndarray) -> list[np.ndarray]:
        """The columns of each action [c, ·], shifted; actions with the same ones share them."""
        made: dict[tuple[range, ...], np.ndarray] = {}
        for runs in self._runs:
            if runs not in made:
                made[runs] = out = np.empty((len(block), sum(map(len, runs))))
                for run, end in zip(runs, itertools.accumulate(map(len, runs)), strict=True):
                    own = out[:, end - len(run) : end]
                    if run == CONSTANT:
                        own[:] = 1.0
                    else:
                        inside = slice(run.start, run.stop, run.step)
                        np.subtract(block[:, inside], self.design.shift[inside], out=own)
        return [made[runs] for runs in self._runs]

    def _parts(self, rows: slice) -> tuple[list[np.ndarray], list[np.ndarray | None], list[np.ndarray | None]]:
        """What is seen of each action: its columns [c, ·], where it is missing [c], and its offset [c, 1]."""
        block = self.features[rows]
        missing = [None if j is None else block[:, j] <= 0 for j in self._available]
        return self._columns(block), missing, [block[:, j].sum(axis=1)[:, None] if j else None for j in self._offset]

    def evaluate(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log L [m] and its gradient [m, d] at θ [m, d]: for each action a product, exp, log, and a product back."""
        m, terms = len(thetas), self.space.terms
        columns = [np.ascontiguousarray((thetas * self.design.inverse_scale).T[t.parameters]) for t in terms]

        def of_chunk(rows: slice) -> tuple[np.ndarray, np.ndarray]:
            parts, *kinds = self._parts(rows)
            weights = None if self.weights is None else self.weights[rows]
            probabilities, log_partition = softmax(parts, columns, *kinds)
            mean = np.zeros((self.space.num_parameters, m))
            for x, p, t in zip(parts, probabilities, terms, strict=True):
                if p is not None:
                    mean[t.parameters] += x.T @ (p if weights is None else p * weights[:, None])
            return log_partition.sum(axis=0) if weights is None else weights @ log_partition, mean

        size = max(128, 2**18 // (m * max(len(terms) - 1, 1)))  # a few arrays of 2 MB: they stay in the cache
        partition, mean = sum_over_chunks(of_chunk, len(self), min(size, 65536))
        return thetas @ self.statistic + self.known - partition, self.statistic - mean.T * self.design.inverse_scale

    def at(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log L and its gradient at one θ."""
        values, gradients = self.evaluate(theta[None])
        return float(values[0]), gradients[0]

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """−∇² log L = Σ w_i Cov[t(s_i, ·)] = Σ w_i (Σ_b p_b t_b t_bᵀ − t̄ t̄ᵀ) [d, d]."""
        size, terms = len(theta), self.space.terms
        pieces = [_pieces(t.parameters) for t in terms]
        columns = [(theta * self.design.inverse_scale)[t.parameters][:, None] for t in terms]

        def of_chunk(rows: slice) -> tuple[np.ndarray]:
            parts, *kinds = self._parts(rows)
            weights = None if self.weights is None else self.weights[rows, None]
            total, mean = np.zeros((size, size)), np.zeros((len(parts[0]), size))
            for x, p, t, own in zip(parts, softmax(parts, columns, *kinds)[0], terms, pieces, strict=True):
                if p is not None:
                    weighted = x * p
                    for there, here in own:
                        mean[:, there] += weighted[:, here]
                    if weights is not None:
                        weighted *= weights
                    total[np.ix_(t.parameters, t.parameters)] += x.T @ weighted
            if weights is not None:
                mean *= np.sqrt(weights)
            return (total - mean.T @ mean,)

        inner = sum_over_chunks(of_chunk, len(self), max(512, 2**17 // size))[0]
        return inner * np.outer(self.design.inverse_scale, self.design.inverse_scale)

    def hessians(self, thetas: np.ndarray) -> np.ndarray:
        """The same at several θ [m, d, d]."""
        return np.stack([self.hessian(theta) for theta in thetas])


def softmax(
    parts: Sequence[np.ndarray],
    columns: Sequence[np.ndarray],
    missing: Sequence[np.ndarray | None],
    offsets: Sequence[np.ndarray | None],
) -> tuple[list[np.ndarray | None], np.ndarray]:
    """Probabilities of the actions (k+1 arrays [c, m]) and log-partitions [c, m]; an action that is missing has none.

    None stands for an action that is always there and has no columns: its natural parameter is 0, and nobody asks for it.
    """
    every = list(zip(parts, columns, missing, offsets, strict=True))
    plain = [not x.shape[1] and gone is None and known is None for x, _, gone, known in every]
    eta = [None if zero else x @ w for zero, (x, w, _, _) in zip(plain, every, strict=True)]
    for e, known in zip(eta, offsets, strict=True):
        if e is not None and known is not None:
            e += known
    real = [(e, gone) for e, gone in zip(eta, missing, strict=True) if e is not None]
    top: np.ndarray | None = None
    if max(max(float(e.max()), -float(e.min())) for e, _ in real) > SAFE:
        for e, gone in real:
            if gone is not None:
                e[gone] = -np.inf
        top = np.max([e for e, _ in real] + [np.zeros_like(real[0][0])] * any(plain), axis=0)
        for e, _ in real:
            e -= top
    total = np.full_like(real[0][0], float(sum(plain))) if top is None else sum(plain) * np.exp(-top)
    for e, gone in real:
        np.exp(e, out=e)
        if gone is not None:
            e[gone] = 0.0
        total += e
    inverse = 1.0 / total
    for e, _ in real:
        e *= inverse
    np.log(total, out=total)
    return eta, total if top is None else total + top


def _pieces(places: np.ndarray) -> list[tuple[slice, slice]]:
    """Neighbouring places as slices, each with where they come from: views are faster than lists of places."""
    cuts = [0, *(np.flatnonzero(np.diff(places) != 1) + 1).tolist(), len(places)]
    return [(slice(int(places[i]), int(places[j - 1]) + 1), slice(i, j)) for i, j in itertools.pairwise(cuts) if j > i]


def _runs(columns: np.ndarray) -> tuple[range, ...]:
    """Columns of (1, features) as evenly spaced runs of features, as few as possible, and the constant."""
    runs, left = list[range](), [int(column) - 1 for column in columns]
    if left[:1] == [-1]:
        runs, left = [CONSTANT], left[1:]
    while left:
        step = left[1] - left[0] if len(left) > 1 else 1
        size = next((i for i in range(1, len(left)) if left[i] - left[i - 1] != step), len(left))
        runs.append(range(left[0], left[size - 1] + 1, step))
        left = left[size:]
    return tuple(runs)
