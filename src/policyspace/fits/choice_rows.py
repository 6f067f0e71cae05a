"""Sums over rows for policies of general statistics t(s, a): value, gradient and Hessian at many θ in one pass."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from policyspace.data.blocks import Block
from policyspace.data.chunks import sum_over_chunks
from policyspace.data.joint_moments import BLOCK
from policyspace.fits.choice_columns import ChoiceColumns, Coefficients, Seen
from policyspace.fits.choice_covariance import Covariance
from policyspace.fits.design import Design
from policyspace.fits.softmax import AT_ONCE, CURVED, CurvedRows, action_weights
from policyspace.policies.choice_linear import ChoiceLinear
from policyspace.policies.groups import INTERCEPT

SAME = 1e-7
"""A spread within choices, relative to the size of the values, that is rounding."""

NEAR = 2**17
"""Numbers that stay near the cores while one step after the other is done to them."""

FAR = 10.0
"""A mean, in standard deviations, so far from zero that sums of squares would lose digits to it."""

SOME = 4096
"""Rows that tell how far apart values are."""


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
        for name, columns in space.attributes.items():
            inside = [place[column] for column in columns.values()]
            centre, whole = mean[inside].mean(), len(inside) == len(space.action_names) and name not in space.specific
            if whole:  # all actions alike absorb it, and only digits are gained, where values are far from zero
                some = features[:: max(1, len(features) // SOME), inside]
                shift[inside] = centre if abs(centre) > FAR * some.std() else 0.0
            elif space.constants:
                shift[inside] = centre
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


class ChoiceRows(CurvedRows):
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
        self.columns = ChoiceColumns(design.space, design.shift, offset)
        self.total_weight = float(len(features) if weights is None else weights.sum())

    def __len__(self) -> int:
        return len(self.features)

    @cached_property
    def statistic(self) -> np.ndarray:
        """T [d]."""
        return sum_over_chunks(self._statistic, len(self), BLOCK)[0] * self.design.inverse_scale

    @cached_property
    def known(self) -> float:
        """What the offsets of the actions that were taken add to log L."""
        if not self.columns.offset:
            return 0.0
        return float((self.action_weights(slice(None)) * self.offsets(slice(None))).sum())

    def sample(self, size: int, seed: int) -> "ChoiceRows":
        """A fixed random sample of the rows; sums over it are for the caller to scale up."""
        rows = np.sort(np.random.default_rng(seed).choice(len(self), size, replace=False))
        weights = None if self.weights is None else self.weights[rows]
        return ChoiceRows(self.design, self.features[rows], self.actions[rows], weights)

    def action_weights(self, rows: slice) -> np.ndarray:
        """How much each action weighs in each row [c, k+1]."""
        weights = None if self.weights is None else self.weights[rows]
        return action_weights(Block(self.features[rows], self.actions[rows], weights), self.columns.num_actions)

    def statistics(self, rows: slice | np.ndarray) -> np.ndarray:
        """t(s, a) of every action in the coordinates of the fits [c, k+1, d]."""
        columns, seen = self.columns, self.columns.seen(self.features[rows])
        q, first = columns.own.width, columns.num_own
        found = np.zeros((len(seen), columns.num_actions, len(self.design.scale)))
        for a in range(columns.num_actions - 1):
            found[:, a, a * q : (a + 1) * q] = seen.own
        for a, (z, places) in enumerate(zip(seen.attributes, columns.places, strict=True)):
            found[:, a, first + places] = z
        return found * self.design.inverse_scale

    def available(self, rows: slice | np.ndarray) -> np.ndarray:
        """Which actions can be chosen [c, k+1]."""
        block = self.features[rows]
        there = np.ones((len(block), self.columns.num_actions), dtype=bool)
        for a, j in self.columns.available.items():
            there[:, a] = block[:, j] > 0
        return there

    def offsets(self, rows: slice) -> np.ndarray:
        """What is added to the natural parameter of every action [c, k+1]."""
        block = self.features[rows]
        found = np.zeros((len(block), self.columns.num_actions))
        for a, columns in self.columns.offset.items():
            found[:, a] = block[:, columns].sum(axis=1)
        return found

    def _statistic(self, rows: slice) -> tuple[np.ndarray]:
        played, seen = self.action_weights(rows), self.columns.seen(self.features[rows])
        attributes = np.zeros(self.columns.num_attributes)
        for z, weights, places in zip(seen.attributes, played.T, self.columns.places, strict=True):
            attributes[places] += weights @ z
        return (np.concatenate([(played[:, :-1].T @ seen.own).ravel(), attributes]),)

    def _at_once(self, num_points: int) -> int:
        """Rows that are looked at together: so few that what is made of them at some θ stays near the cores."""
        width = self.columns.width + self.columns.num_natural * num_points
        return min(CURVED, max(AT_ONCE, NEAR // width), max(len(self), 1))

    def _blocks(self, rows: slice, num_points: int) -> Iterator[Seen]:
        """The rows of a chunk, in parts."""
        size = self._at_once(num_points)
        for start in range(rows.start, rows.stop, size):
            here = slice(start, min(start + size, rows.stop))
            yield self.columns.seen(self.features[here], None if self.weights is None else self.weights[here])

    def evaluate(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log L [m] and its gradient [m, d] at θ [m, d]: for each action a product, exp, log, and a product back."""
        theta = self.columns.coefficients(thetas * self.design.inverse_scale)
        partition, mean = sum_over_chunks(lambda rows: self._partitions(rows, theta), len(self), BLOCK)
        return self._from_sums(thetas, partition, mean)

    def _partitions(self, rows: slice, theta: Coefficients) -> tuple[np.ndarray, np.ndarray]:
        """Σ w A [m] and Σ w E[t] [m, d] of a chunk."""
        columns, (k, q, m) = self.columns, theta.own.shape
        odds = np.empty((columns.num_natural, self._at_once(m), m))
        partition, own, sums = np.zeros(m), np.zeros((k, q, m)), [np.zeros_like(one) for one in theta.attributes]
        for seen in self._blocks(rows, m):
            p = odds[:, : len(seen)]
            partition += columns.probabilities(seen, theta, p)
            if seen.weights is not None:
                p *= seen.weights[:, None]
            own += np.matmul(seen.own.T, p[:k])
            for z, shares, total in zip(seen.attributes, p, sums, strict=False):
                total += z.T @ shares
        mean = np.zeros((columns.num_own + columns.num_attributes, m))
        mean[: columns.num_own] = own.reshape(-1, m)
        for total, places in zip(sums, columns.places, strict=True):
            mean[columns.num_own + places] += total
        return partition, mean.T

    def _from_sums(self, thetas: np.ndarray, partition: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return thetas @ self.statistic + self.known - partition, self.statistic - mean * self.design.inverse_scale

    def _curvatures(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Σ w A [m], Σ w E[t] [m, d] and −∇² log L [m, d, d] at θ [m, d]."""
        theta = self.columns.coefficients(thetas * self.design.inverse_scale)

        def of_chunk(rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            partition, sums = np.zeros(len(thetas)), [Covariance(self.columns) for _ in thetas]
            for seen in self._blocks(rows, len(thetas)):
                p = np.empty((self.columns.num_natural, len(seen), len(thetas)))
                partition += self.columns.probabilities(seen, theta, p)
                for j, total in enumerate(sums):
                    total.add(seen, p[:, :, j])
            return partition, np.stack([total.mean() for total in sums]), np.stack([total.matrix() for total in sums])

        partition, mean, inner = sum_over_chunks(of_chunk, len(self), BLOCK)
        return partition, mean, inner * np.outer(self.design.inverse_scale, self.design.inverse_scale)
