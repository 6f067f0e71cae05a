"""The likelihood of the conditional logit policy, and its sums over rows."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from policyspace.data.rows import BLOCK, RowBlock
from policyspace.families.base import INTERCEPT
from policyspace.families.choice import ChoiceLinear
from policyspace.families.concave import CurvedRows
from policyspace.families.design import DesignMatrix
from policyspace.families.likelihood import ChiSquare
from policyspace.families.softmax import FirthLikelihood, SoftmaxLikelihood
from policyspace.families.softmax_sums import (
    AT_ONCE,
    CURVED,
    MOST_CONSTRAINTS,
    SAFE,
    action_weights,
    information,
    probabilities,
    unique_rows,
)
from policyspace.runtime import sum_over_chunks

# -- What is seen of each action in some rows: columns of the chooser and of the action, and whether it can be chosen.


class Gathered:
    """Some columns of the features, shifted, the constant in front: a view where nothing has to be done to them."""

    def __init__(self, columns: np.ndarray, shift: np.ndarray, constant: bool = False) -> None:
        self.constant, self.width = constant, len(columns) + constant
        self._runs, self._shift = _runs(columns.tolist()), shift
        beside = len(self._runs) == 1 and self._runs[0].step == 1
        self._plain = beside and not constant and not shift[columns].any()

    def __call__(self, block: np.ndarray) -> np.ndarray:
        """Features [c, q] → columns [c, ·]."""
        if self._plain:
            return block[:, self._runs[0]]
        made = np.empty((len(block), self.width))
        made[:, : self.constant] = 1.0
        end = int(self.constant)
        for run in self._runs:
            start, end = end, end + len(self._shift[run])
            np.subtract(block[:, run], self._shift[run], out=made[:, start:end])
        return made


def _runs(columns: list[int]) -> list[slice]:
    """Columns as evenly spaced runs, as few as possible."""
    runs = []
    while columns:
        step = columns[1] - columns[0] if len(columns) > 1 else 1
        size = next((i for i in range(1, len(columns)) if columns[i] - columns[i - 1] != step), len(columns))
        runs.append(slice(columns[0], columns[size - 1] + 1, step))
        columns = columns[size:]
    return runs


@dataclass(frozen=True)
class Seen:
    """Some rows: columns of the chooser, of every action, who is missing where, and what is known of whom."""

    own: np.ndarray  # [c, q]
    attributes: list[np.ndarray]  # [c, ·] of each action
    missing: dict[int, np.ndarray]  # [c] by action
    known: dict[int, np.ndarray]  # [c] by action
    weights: np.ndarray | None  # [c]

    def __len__(self) -> int:
        return len(self.own)


@dataclass(frozen=True)
class ColumnCoefficients:
    """θ at several points as the columns are multiplied by it."""

    own: np.ndarray  # [k, q, m]
    attributes: list[np.ndarray]  # [·, m] of each action


class ChoiceColumns:
    """Where everything about the actions stands in a block of features, and its coefficients in θ.

    θ begins with the weights [k, q] of the constant and the features of the chooser, as in a Boltzmann policy; those of
    attributes follow.
    """

    def __init__(self, space: ChoiceLinear, shift: np.ndarray, offset: bool) -> None:
        self.num_actions = len(space.terms)
        own = [j for j, name in enumerate(space.feature_names) if name in space.own_features]
        self.own = Gathered(np.array(own, dtype=np.intp), shift, space.constants)
        self.num_own = (self.num_actions - 1) * self.own.width
        self.num_attributes = space.num_parameters - self.num_own
        inside = [terms.parameters >= self.num_own for terms in space.terms]
        both = list(zip(space.terms, inside, strict=True))
        self.attributes = [Gathered(terms.columns[some] - 1, shift) for terms, some in both]
        self.places = [terms.parameters[some] - self.num_own for terms, some in both]
        place = {name: j for j, name in enumerate(space.feature_names)}
        names = enumerate(space.action_names)
        self.available = {a: place[space.available[name]] for a, name in names if name in space.available}
        known = enumerate(space.offset_columns) if offset else ()
        self.offset = {a: list(columns) for a, columns in known if columns}
        last = self.num_actions - 1
        # An action that is always there, and of which nothing is seen, has the natural parameter 0.
        self.zero = not (len(self.places[last]) or last in self.available or last in self.offset)
        self.num_natural = self.num_actions - self.zero

    @property
    def width(self) -> int:
        """Numbers that are seen in a row."""
        return self.own.width + sum(gathered.width for gathered in self.attributes)

    def seen(self, block: np.ndarray, weights: np.ndarray | None = None) -> Seen:
        """Everything in some rows of the features [c, q]."""
        if self.num_attributes:
            block = block.copy()  # memory is read faster in one go than action by action
        missing = {a: block[:, j] <= 0 for a, j in self.available.items()}
        known = {a: block[:, columns].sum(axis=1) for a, columns in self.offset.items()}
        return Seen(self.own(block), [gathered(block) for gathered in self.attributes], missing, known, weights)

    def coefficients(self, thetas: np.ndarray) -> ColumnCoefficients:
        """Of θ [m, d]."""
        columns = np.ascontiguousarray(thetas.T)
        own, attributes = columns[: self.num_own], columns[self.num_own :]
        return ColumnCoefficients(
            own.reshape(self.num_actions - 1, self.own.width, len(thetas)), [attributes[j] for j in self.places]
        )

    def probabilities(self, seen: Seen, theta: ColumnCoefficients, out: np.ndarray) -> np.ndarray:
        """Of all actions but one whose natural parameter is 0, written to `out` [·, c, m]; Σ w log-partitions [m]."""
        k, q, _ = theta.own.shape
        of_each = zip(seen.attributes, theta.attributes, out, strict=False)
        if q > 1:
            np.matmul(seen.own, theta.own, out=out[:k])
            out[k:] = 0.0
            for z, columns, eta in of_each:
                if len(columns):
                    eta += z @ columns
        else:
            for z, columns, eta in of_each:
                np.matmul(z, columns, out=eta)
            if q:
                out[:k] += theta.own if self.own.constant else seen.own * theta.own
        for a, known in seen.known.items():
            out[a] += known[:, None]
        return normalise(out, seen.missing, seen.weights, self.zero)


def normalise(eta: np.ndarray, missing: dict[int, np.ndarray], weights: np.ndarray | None, zero: bool) -> np.ndarray:
    """Natural parameters [·, c, m] become probabilities in place; Σ w log-partitions [m] is returned.

    An action that is missing in a row has probability 0 there; `zero` says that there is one more, whose parameter is 0.
    """
    top: np.ndarray | None = None
    if eta.max() > SAFE or (not zero and eta.min() < -SAFE):
        for a, gone in missing.items():
            eta[a][gone] = -np.inf
        top = np.maximum(eta.max(axis=0), 0.0) if zero else eta.max(axis=0)
        eta -= top
    np.exp(eta, out=eta)
    for a, gone in missing.items():
        eta[a][gone] = 0.0
    total = eta[0] + (np.exp(-top) if top is not None else 1.0) if zero else eta[0].copy()
    for odds in eta[1:]:
        total += odds
    return probabilities(eta, total, top, weights)


# -- The covariance of the statistics t(s, ·) of choices, added up over rows.


class Covariance:
    """Σ w_i E[t] [d] and Σ w_i Cov[t(s_i, ·)] [d, d], block of rows by block of rows.

    Attributes: Σ_b p_b z_b z_bᵀ − z̄ z̄ᵀ. The chooser's columns x have the Boltzmann policy's (diag p − p pᵀ) ⊗ x xᵀ, and
    with attributes x ⊗ p_a (z_a − z̄).
    """

    def __init__(self, columns: ChoiceColumns) -> None:
        self._columns, k, q, d = columns, columns.num_actions - 1, columns.own.width, columns.num_attributes
        self._own, self._own_mean = np.zeros((k * q, k * q)), np.zeros((k, q))
        self._mean, self._of_means, self._with_mean = np.zeros(d), np.zeros((d, d)), np.zeros((k, q, d))
        widths = [gathered.width for gathered in columns.attributes]
        self._squares = [np.zeros((width, width)) for width in widths]
        self._crossed = [np.zeros((q, width)) for width in widths[:-1]]
        self._pieces = [_pieces(places) for places in columns.places]

    def add(self, seen: Seen, p: np.ndarray) -> None:
        """Some rows, with the probabilities [·, c] of the actions in them."""
        k, x = len(self._own_mean), seen.own
        heavy = x if seen.weights is None else x * seen.weights[:, None]
        if x.shape[1]:
            self._own += information(x, p[:k], seen.weights)
            self._own_mean += p[:k] @ heavy
        if len(self._mean):
            mean = np.zeros((len(seen), len(self._mean)))
            for a, (z, shares) in enumerate(zip(seen.attributes, p, strict=False)):
                self._add_action(a, z, z * shares[:, None], mean, heavy, seen.weights)
            self._with_mean += np.matmul(heavy.T * p[:k, None, :], mean)
            whole = mean if seen.weights is None else mean * seen.weights[:, None]
            self._of_means += mean.T @ whole
            self._mean += np.ones(len(whole)) @ whole

    def _add_action(
        self, a: int, z: np.ndarray, share: np.ndarray, mean: np.ndarray, heavy: np.ndarray, weights: np.ndarray | None
    ) -> None:
        """What one action adds to z̄ [c, d] and to the sums, its share being p_a z_a [c, ·]."""
        for there, here in self._pieces[a]:
            mean[:, there] += share[:, here]
        if a < len(self._crossed):
            self._crossed[a] += heavy.T @ share
        self._squares[a] += z.T @ (share if weights is None else share * weights[:, None])

    def mean(self) -> np.ndarray:
        """Σ w E[t] [d]."""
        return np.concatenate([self._own_mean.ravel(), self._mean])

    def matrix(self) -> np.ndarray:
        """Σ w Cov[t] [d, d]."""
        places = self._columns.places
        attributes, cross = -self._of_means, -self._with_mean
        for own, square in zip(places, self._squares, strict=True):
            attributes[np.ix_(own, own)] += square
        for a, crossed in enumerate(self._crossed):
            cross[a][:, places[a]] += crossed
        both = cross.reshape(len(self._own), len(self._mean))
        return np.block([[self._own, both], [both.T, attributes]])


def _pieces(places: np.ndarray) -> list[tuple[slice, slice]]:
    """Neighbouring places as slices, each with where they come from: views are faster than lists of places."""
    cuts = [0, *(np.flatnonzero(np.diff(places) != 1) + 1).tolist(), len(places)]
    return [(slice(int(places[i]), int(places[j - 1]) + 1), slice(i, j)) for i, j in itertools.pairwise(cuts) if j > i]


# -- Sums over rows for policies of general statistics t(s, a): value, gradient and Hessian at many θ in one pass.

SAME = 1e-7
"""A spread within choices, relative to the size of the values, that is rounding."""

NEAR = 2**17
"""Numbers that stay near the cores while one step after the other is done to them."""

FAR = 10.0
"""A mean, in standard deviations, so far from zero that sums of squares would lose digits to it."""

SOME = 4096
"""Rows that tell how far apart values are."""


class ChoiceDesign(DesignMatrix):
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
        return action_weights(RowBlock(self.features[rows], self.actions[rows], weights), self.columns.num_actions)

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

    def _partitions(self, rows: slice, theta: ColumnCoefficients) -> tuple[np.ndarray, np.ndarray]:
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


# -- The likelihood of policies of general statistics t(s, a): the fits of the Boltzmann policy on rows of its own.


class FirthChoiceLikelihood(FirthLikelihood):
    """log L + ½ log det F of a policy of general statistics."""

    space: ChoiceLinear  # type: ignore[assignment]
    _plain: "ChoiceLikelihood"

    def _reach(self, step: np.ndarray) -> float:
        """The largest change of a difference of natural parameters in any row."""
        eta, there = self._statistics @ step, self._available
        return float((np.where(there, eta, -np.inf).max(axis=1) - np.where(there, eta, np.inf).min(axis=1)).max())

    def _evaluate(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log L + ½ log det F and its gradient, by the third cumulant of the statistics.

        ½ tr(F⁻¹ ∂F/∂θ) = ½ Σ_i w_i Σ_b p_b (d_bᵀF⁻¹d_b) d_b with d_b = t_b − t̄.
        """
        rows, t = self._plain.rows, self._statistics
        eta = np.where(self._available, t @ theta + self._offsets, -np.inf)
        top = eta.max(axis=1)
        odds = np.exp(eta - top[:, None])
        total = odds.sum(axis=1)
        p = odds / total[:, None]
        weights = np.ones(len(t)) if rows.weights is None else rows.weights
        mean = (p[:, None, :] @ t)[:, 0]
        centred = t - mean[:, None]
        shares = (p * weights[:, None])[:, :, None] * centred
        flat = shares.reshape(-1, len(theta))
        hessian = centred.reshape(-1, len(theta)).T @ flat
        self._last = theta.copy(), hessian
        value, gradient = (
            float(theta @ rows.statistic + rows.known - weights @ (np.log(total) + top)),
            rows.statistic - weights @ mean,
        )
        sign, log_det = np.linalg.slogdet(hessian)
        if sign <= 0:
            return -np.inf, gradient
        leverage = np.einsum("nad,nad->na", centred @ np.linalg.inv(hessian), centred)
        return value + 0.5 * float(log_det) + self._log_scale, gradient + 0.5 * (leverage.ravel() @ flat)

    @cached_property
    def _statistics(self) -> np.ndarray:
        return self._plain.rows.statistics(slice(None))

    @cached_property
    def _available(self) -> np.ndarray:
        return self._plain.rows.available(slice(None))

    @cached_property
    def _offsets(self) -> np.ndarray:
        return self._plain.rows.offsets(slice(None))


class ChoiceLikelihood(SoftmaxLikelihood):
    """Newton on a concave likelihood: shared coefficients, and actions that are not always available."""

    space: ChoiceLinear  # type: ignore[assignment]
    design: ChoiceDesign
    rows: ChoiceRows  # type: ignore[assignment]
    penalty = FirthChoiceLikelihood

    def __init__(
        self, space: ChoiceLinear, features: np.ndarray, actions: np.ndarray, weights: np.ndarray | None
    ) -> None:
        self.space, self.num_rows, self.law = space, len(features), ChiSquare()
        if merged := unique_rows(features, actions, weights, len(space.action_names)):
            features, actions = merged
            weights = actions.sum(axis=1)
        self.design = ChoiceDesign(space, features, weights)
        self.total_weight = self.design.total_weight
        self.rows = ChoiceRows(self.design, features, actions, weights)
        self._fixed = self._checked_fixed()

    @cached_property
    def prior_precision(self) -> np.ndarray:
        """As of the softmax policy for weights that each label but the reference has; 1 for shared coefficients [d, d]."""
        precision, num = np.eye(self.space.num_parameters), len(self.space.action_names)
        # Columns of one label are scaled by how they differ between labels: by a factor of √(K − 1)/K.
        labels = self.label_precision() * num**2 / (num - 1)
        of_column: dict[str, list[int]] = {}
        for i, name in enumerate(self.space.parameter_names):
            if name.endswith("]") and not self._is_constant[i]:
                of_column.setdefault(name.rpartition("[")[0], []).append(i)
        for inside in of_column.values():
            if len(inside) == len(labels):
                precision[np.ix_(inside, inside)] = labels
        return precision

    def _separated(self) -> np.ndarray:
        """The coordinates [d] along which log L grows for ever: directions D with D·(t_y − t_b) ≥ 0 for every action y
        that is played in a row and every other b that is available there, with some strict.
        """
        rows = self.rows
        played, there = rows.action_weights(slice(None)) > 0, rows.available(slice(None))
        better = played[:, :, None] & there[:, None, :] & ~np.eye(played.shape[1], dtype=bool)
        pairs = np.argwhere(better)
        # Where both actions of a pair are played, each pair stands beside its reverse: their difference is pinned to 0.
        diverging = np.zeros(self.space.num_parameters, dtype=bool)
        null = self.design.null_space()
        open_ = np.ones(len(pairs), dtype=bool)
        while open_.any():
            direction = self._direction(pairs, open_)
            margins = self._margins(pairs, direction)
            strict = open_ & (margins > 1e-6)
            if not strict.any():
                break
            seen = direction - null @ (null.T @ direction)
            raw = self.design.to_raw(seen[None])[0] * self.design.scale
            diverging |= np.abs(raw) > 1e-6 * (1 + np.abs(raw).max() * self._is_constant)
            open_ &= ~strict
        return diverging

    @cached_property
    def _is_constant(self) -> np.ndarray:
        return np.array([name.startswith(f"{INTERCEPT}[") for name in self.space.parameter_names])

    def _differences(self, pairs: np.ndarray) -> np.ndarray:
        """t(s, y) − t(s, b) of pairs (row, y, b) [·, d]."""
        t = self.rows.statistics(pairs[:, 0])
        index = np.arange(len(pairs))
        return t[index, pairs[:, 1]] - t[index, pairs[:, 2]]

    def _margins(self, pairs: np.ndarray, direction: np.ndarray) -> np.ndarray:
        chunks = np.array_split(pairs, max(1, len(pairs) // 20_000))
        return np.concatenate([self._differences(chunk) @ direction for chunk in chunks])

    def _direction(self, pairs: np.ndarray, open_: np.ndarray) -> np.ndarray:
        """argmax Σ margins of the open pairs subject to margins ≥ 0 of all pairs and |D| ≤ 1."""
        from scipy.optimize import linprog

        chunks = np.array_split(pairs[open_], max(1, open_.sum() // 20_000))
        objective = np.sum([self._differences(chunk).sum(axis=0) for chunk in chunks], axis=0)
        chosen = np.linspace(0, len(pairs) - 1, min(len(pairs), MOST_CONSTRAINTS)).astype(int)
        while True:
            constraints = -self._differences(pairs[chosen])
            answer = linprog(-objective, A_ub=constraints, b_ub=np.zeros(len(chosen)), bounds=(-1, 1), method="highs")
            if answer.x is None:
                return np.zeros_like(objective)
            direction = np.where(np.abs(answer.x) > 1e-9, answer.x, 0.0)
            margins = self._margins(pairs, direction)
            violated = np.flatnonzero(margins < -1e-7)
            fresh = np.setdiff1d(violated[np.argsort(margins[violated])][:MOST_CONSTRAINTS], chosen)
            if not len(fresh):
                return direction
            chosen = np.concatenate([chosen, fresh])
