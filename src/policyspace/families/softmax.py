"""Multinomial logit (softmax, Boltzmann) policy, its likelihood, and Firth's penalised one."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import final

import numpy as np

from policyspace.data.rows import (
    BLOCK,
    ComputeMoments,
    ComputeMomentsAndExtremes,
    ExtremeRows,
    FindExtremeRows,
    InMemoryRows,
    Moments,
    Rows,
    merge_top_rows,
    moments_of,
    shift_near,
)
from policyspace.data.sample import Sample
from policyspace.data.validation import translate_constructor
from policyspace.errors import InputError
from policyspace.families.base import Array, ExponentialFamily, FitMeasures, Key, PolicySpace, Support
from policyspace.families.concave import ConcaveLikelihood
from policyspace.families.design import DesignMatrix
from policyspace.families.likelihood import ChiSquare, Fit, Likelihood, LinearLikelihood
from policyspace.families.newton import (
    TOLERANCE,
    TRUSTED,
    Maximum,
    QuadraticModel,
    RestrictedBatch,
    maximise,
    newton_step,
)
from policyspace.families.softmax_sums import (
    SoftmaxRows,
    ViolatingOf,
    information,
    moving_coordinates,
    separating_directions,
    softmax,
    unique_rows,
)
from policyspace.safe_io import JSON

# -- What policies over discrete actions share.


class ChoicePolicy(PolicySpace):
    """A policy over discrete actions: its mean is the probabilities of all actions but the last."""

    discrete = True
    asymptotic = True
    link = "logit"
    variance_of_mean = True

    @abstractmethod
    def mean(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray:
        """The probabilities of all actions but the last [n, k]."""

    def variance(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray:
        """p(1 − p)."""
        p = self.mean(theta, features)
        return p * (1 - p)

    def score_roots(
        self, theta: np.ndarray, features: np.ndarray, covariance: np.ndarray | None
    ) -> Iterable[np.ndarray]:
        """Of each action, the score [n, k] if it were chosen, times the root of its probability."""
        p = self.mean(theta, features)
        for a in range(p.shape[1] + 1):
            share = p[:, a] if a < p.shape[1] else 1 - p.sum(axis=1)
            yield ((np.arange(p.shape[1]) == a) - p) * np.sqrt(np.maximum(share, 0.0))[:, None]

    def fit_measures(self, likelihood: Likelihood, theta: np.ndarray, data: Sample) -> FitMeasures:
        """How often the most probable action was chosen, in the sample of a log read in passes, and McFadden's ρ²."""
        p = self.mean(theta, data.features)
        weights = np.ones(data.num_rows) if data.weights is None else data.weights
        total, best = likelihood.total_weight, likelihood.full.log_likelihood
        counts = np.bincount(data.actions, weights, len(data.action_names))
        if data.rows.label_weights is None:
            best = float(
                weights @ np.asarray(self.log_prob(theta, data.features, data.actions))
            )  # without Firth's penalty
        else:
            counts = data.rows.label_weights
        null = float(counts[counts > 0] @ np.log(counts[counts > 0] / total))
        zero, rows = np.zeros(self.num_parameters), np.zeros(data.num_rows, dtype=np.intp)
        there = np.isfinite([self.log_prob(zero, data.features, rows + a) for a in range(len(counts))]).sum(axis=0)
        equal = -total * float(np.log(len(counts)))
        if (there < len(counts)).any():
            equal = -float(weights @ np.log(there))
        if self.offset or not getattr(self, "constants", True) or (there < len(counts)).any():
            alone = likelihood.fit(frozenset()).theta
            null = float(weights @ np.asarray(self.log_prob(alone, data.features, data.actions)))
        every = np.column_stack([p, 1 - p.sum(axis=1)])
        hits = float(weights @ (every.argmax(axis=1) == data.actions) / weights.sum())
        return FitMeasures(best, null, equal, 1 - best / null, hits)


# -- The Boltzmann linear policy: k rows of weights for k+1 actions (Table 1, second row).


@final
@translate_constructor
class SoftmaxLinear(ChoicePolicy, ExponentialFamily):
    """Discrete actions, π(a_i|s) ∝ exp(weights_i·φ(s)); the last action is the reference, whose weights are zero.

    With k rows for k+1 actions the space is identifiable. The second case of Table 1 is i = k+1.

    Parameters
    ----------
    features, groups, assume, fixed, intercept, blocks
        As in `GaussianLinear`.
    actions : sequence of str, optional
        Names of the actions, in the order of their codes 0…k; the last one is the reference.

    Examples
    --------
    >>> import numpy as np
    >>> import policyspace
    >>> rng = np.random.default_rng(0)
    >>> states = rng.normal(size=(300, 2))
    >>> pressed = rng.random(300) < 1 / (1 + np.exp(-2 * states[:, 0]))
    >>> policyspace.identify(states, pressed, features=["light", "noise"], policy="boltzmann").selected
    ('light',)
    """

    in_words = "softmax-linear"

    def _name_actions(self, actions: Sequence[str] | None) -> None:
        """Take the names of the actions, of which all but the last have a row of weights."""
        self.action_names = choices(actions)
        self.row_names = self.action_names[:-1]

    def mean(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray:
        """The probabilities of the first k actions."""
        return np.asarray(self.cumulant_gradient(self.natural(theta, features)))

    def cautions(self, data: Sample) -> list[str]:
        """Many whole numbers that are read as labels."""
        names = self.action_names
        if len(names) < MANY_NUMBERS or not all(name.removeprefix("-").isdecimal() for name in names):
            return []
        return [
            f"actions are {len(names)} different whole numbers and are read as discrete actions: if they are counts use "
            "--policy poisson, if continuous --policy gaussian."
        ]

    def describe(self) -> dict[str, JSON]:
        """Whether it has an intercept."""
        return {"family": "boltzmann", "intercept": self.intercept}

    def smaller(self, features: Sequence[str], actions: Sequence[str], assume: Sequence[str]) -> "SoftmaxLinear":
        """The linear Boltzmann policy of fewer features and actions."""
        return SoftmaxLinear(features, actions, "feature", assume, 0.0, self.intercept)

    def action_statistic(self, actions: Array) -> Array:
        """u(a_i) = e_i, and zero for the reference."""
        xp = actions.__array_namespace__()
        return xp.where(actions[..., None] == xp.arange(len(self.row_names)), 1.0, 0.0)

    def log_base(self, actions: Array) -> Array:
        """log h = 0."""
        xp = actions.__array_namespace__()
        return xp.zeros(actions.shape)

    def cumulant(self, eta: Array) -> Array:
        """A(η) = log(1 + Σ exp η_i), without overflow."""
        xp = eta.__array_namespace__()
        top = xp.maximum(xp.max(eta, axis=-1), 0.0)
        return top + xp.log(xp.exp(-top) + xp.sum(xp.exp(eta - top[..., None]), axis=-1))

    def cumulant_gradient(self, eta: Array) -> Array:
        """E[u] = the probabilities of the first k actions."""
        xp = eta.__array_namespace__()
        return xp.exp(eta - self.cumulant(eta)[..., None])

    def cumulant_hessian(self, eta: Array) -> Array:
        """Cov[u] = diag(p) − ppᵀ."""
        xp = eta.__array_namespace__()
        p = self.cumulant_gradient(eta)
        return p[..., :, None] * (xp.eye(len(self.row_names)) - p[..., None, :])

    def noise_covariance(self, theta: Array | None = None, data: Sample | None = None) -> None:
        """There is none: actions are choices."""

    def sample(self, key: Key, theta: Array, features: Array) -> Array:
        """Action codes: with NumPy the largest of η + Gumbel noise, with JAX by inversion, one uniform number each."""
        eta = self.natural(theta, features)
        if isinstance(key, np.random.Generator):
            logits = np.concatenate([eta, np.zeros_like(eta[..., :1])], axis=-1)
            return np.argmax(logits + key.gumbel(size=logits.shape), axis=-1)
        return choose(key, eta.T).T


MANY_NUMBERS = 10
"""Different whole numbers from which on labels may well be counts or amounts."""


def choices(actions: Sequence[str] | None) -> tuple[str, ...]:
    """The actions of a Boltzmann policy, of which there must be two."""
    if actions is None or len(actions) < 2:
        raise InputError(f"a Boltzmann policy chooses among at least two actions, found {len(actions or ())}.")
    return tuple(actions)


def choose(key: Key, eta: Array) -> Array:
    """Action codes […] for a JAX key from logits [k, …], the last action's being 0: how many thresholds u has passed.

    With odds o_i = exp(η_i − top), action i is chosen where Σ_{j<i} o_j ≤ u Σ_j o_j < Σ_{j≤i} o_j.
    """
    from policyspace.families.jax_backend import jax, jnp

    top = jnp.maximum(jnp.max(eta, axis=0), 0.0)
    odds = [jnp.exp(row - top) for row in eta]
    below = list(accumulate(odds))
    level = jax.random.uniform(key, top.shape, jnp.float64) * (below[-1] + jnp.exp(-top))
    return sum((level >= threshold).astype(jnp.int32) for threshold in below)


# -- The likelihood of the Boltzmann linear policy: batched passes over the rows serve all supports at once.


class SoftmaxLikelihood(ConcaveLikelihood):
    """Rows that are equal are merged; of the actions only the sums of their features are kept."""

    space: SoftmaxLinear
    rows: SoftmaxRows

    def __init__(self, space: SoftmaxLinear, rows: Rows, moments: Moments | None = None) -> None:
        self.space, self.num_rows, self.law = space, rows.num_rows, ChiSquare()
        num_actions = len(space.action_names)
        if isinstance(rows, InMemoryRows) and (
            merged := unique_rows(rows.features, rows.actions, rows.weights, num_actions)
        ):
            rows = InMemoryRows(*merged, merged[1].sum(axis=1))
        moments = moments_of(rows, num_actions) if moments is None else moments
        self.design = DesignMatrix(space, moments)
        self.total_weight = self.design.total_weight
        self.rows = SoftmaxRows(self.design, rows, self.total_weight, num_actions, self._statistic(moments))
        self._fixed = self._checked_fixed()

    def label_precision(self) -> np.ndarray:
        """2(1 − 1/K) for K labels, −2/K between them: that of K independent weights, as far as differences show them."""
        num = len(self.space.action_names)
        return np.asarray(2 * (np.eye(num - 1) - 1 / num))

    def _statistic(self, moments: Moments) -> np.ndarray:
        """T = Σ w_i t(s_i, a_i) of standardised features [d]: products of features and labels."""
        p, design = len(self.design.mean), self.design
        origin = np.append(design.mean, np.zeros(len(moments.shift) - p))
        products = moments.about(origin)[p:, :p] * design.standardise.inverse_scale
        if not self.space.intercept:
            return products.ravel()
        return np.column_stack([self.total_weight * moments.mean[p:], products]).ravel()

    def _separated(self) -> np.ndarray:
        """The coordinates [d] along which log L grows for ever."""
        return moving_coordinates(self.design, self.separating_directions)

    @cached_property
    def separating_directions(self) -> np.ndarray:
        """The directions [r, k+1, q] along which it does, in standardised coordinates."""
        x, played = self.rows.standardised(slice(None)), self.rows.action_weights(slice(None)) > 0
        return separating_directions(x, played, np.ones(self.space.num_parameters, dtype=bool))


# -- The Boltzmann likelihood of rows that are not in memory: fits on some rows first, then few passes over all of them.

STEERING = 65_536
"""Known rows that tell how the Hessian changes between two points."""

UNDONE = 1e-12
"""What a fit may leave undone, in log-likelihood a row."""

LIMIT = 1e-6
"""A gain below which fits of separated data are at their limit, as far as λ is read."""

MOST_PASSES = 40


class StreamedSoftmax(SoftmaxLikelihood):
    """The first pass tells gradient and Hessian of all rows at the fit of the known ones; then the full fit and those
    without one group each climb together.
    """

    def __init__(
        self,
        space: SoftmaxLinear,
        rows: Rows,
        moments: Moments | None,
        known: InMemoryRows,
        far: ExtremeRows | None = None,
    ) -> None:
        moments, known = _first_pass(rows, moments, far, known, len(space.action_names))
        super().__init__(space, rows, moments)
        self._known, self._made = known, dict[Support, Fit]()

    @cached_property
    def _of_known(self) -> SoftmaxLikelihood:
        """The likelihood of the known rows; where they are separated and others are not, those become known, too."""
        known = self._known
        while True:
            likelihood = SoftmaxLikelihood(self.space, known)
            if not likelihood.diverging.any():
                return likelihood
            directions = likelihood.separating_directions
            (missed,) = self.rows.rows.total(ViolatingOf(likelihood.design.standardise, directions))
            if not len(missed.measure):
                return likelihood
            known = merge_top_rows(known, missed.block)

    @cached_property
    def diverging(self) -> np.ndarray:  # type: ignore[override]
        """The coordinates [d] whose maximum-likelihood value is infinite: of all rows if of the known ones."""
        return self._of_known.diverging

    @cached_property
    def sample(self) -> SoftmaxRows:
        """Known rows that tell how the Hessian changes between two points."""
        known = self._known
        total = float(known.num_rows if known.weights is None else known.weights.sum())
        rows = SoftmaxRows(self.design, known, total, len(self.space.action_names))
        return rows.sample(STEERING, seed=0) if len(rows) > STEERING else rows

    @cached_property
    def _maximum(self) -> Maximum:
        everything, space = np.ones(self.space.num_parameters, dtype=bool), self.space
        start = self._standardised(self._of_known.full)
        if self.diverging.any():
            return maximise(self.rows.at, self.rows.hessian, start, everything, tolerance=LIMIT)
        supports = [space.full_support, *(space.full_support - {g} for g in space.tested)]
        gradient, curvature = self.rows.at(start)[1], self.rows.hessian(start)
        anchor = QuadraticModel(self.rows, self.sample, start, gradient, curvature)
        batch = self._climb(anchor, supports)
        self._made = {
            support: self._as_fit(batch.thetas[i], batch.values[i], batch.gradients[i], True, support)
            for i, support in enumerate(supports)
            if i and batch.converged[i]
        }
        if not batch.converged[0]:
            return maximise(self.rows.at, self.rows.hessian, batch.thetas[0], everything)
        theta = batch.thetas[0]
        return Maximum(theta, float(batch.values[0]), batch.gradients[0], anchor.curvature_at(theta), True, False)

    def _climb(
        self, anchor: QuadraticModel, supports: Sequence[Support], thresholds: np.ndarray | None = None
    ) -> RestrictedBatch:
        free = [self.space.free_mask(support) for support in supports]
        return RestrictedBatch(anchor, self._fixed, free, thresholds, max(TRUSTED, UNDONE * self.total_weight))

    def _batch(self, supports: Sequence[Support], thresholds: np.ndarray | None = None) -> RestrictedBatch:
        return self._climb(self._anchor, supports, thresholds)

    def _standardised(self, fit: Fit) -> np.ndarray:
        """θ̂ of known rows in the coordinates of all [d]."""
        theta = self.design.to_standardised(self.space.weights(fit.theta)).ravel()
        return np.where(self.space.free_mask(fit.support), theta, self._fixed)

    def fit_many(self, supports: Sequence[Support]) -> list[Fit]:
        """The fits inside several Θ_I, each made once."""
        self._maximum  # noqa: B018 (which makes some of them)
        new = [support for support in supports if support not in self._made]
        if new:
            made = self._limits(new) if self.diverging.any() else super().fit_many(new)
            self._made |= dict(zip(new, made, strict=True))
        return [self._made[support] for support in supports]

    def _limits(self, supports: Sequence[Support]) -> list[Fit]:
        """Fits of separated data, from those of the known rows: Newton with Hessians of all rows, side by side."""
        proposals = np.array([self._standardised(fit) for fit in self._of_known.fit_many(supports)])
        free = [self.space.free_mask(support) for support in supports]
        thetas, steps, values = proposals.copy(), np.zeros_like(proposals), np.full(len(supports), -np.inf)
        gradients, found = np.zeros_like(proposals), dict[int, Maximum]()
        open_ = np.arange(len(supports))
        for _ in range(MOST_PASSES):
            now, slopes, hessians = self.rows.expand(proposals[open_])
            for i, value, gradient, hessian in zip(open_.tolist(), now, slopes, hessians, strict=True):
                if value < values[i] - 1e-12 * abs(value):
                    steps[i] /= 4
                    continue
                thetas[i], values[i], gradients[i] = proposals[i], value, np.where(free[i], gradient, 0.0)
                inside = free[i]
                steps[i] = 0.0
                steps[i, inside], gain = newton_step(hessian[np.ix_(inside, inside)], gradient[inside])
                if gain < max(TOLERANCE, LIMIT):
                    found[i] = Maximum(thetas[i], float(value), gradients[i], hessian, True, gain > TOLERANCE)
            open_ = np.array([i for i in open_.tolist() if i not in found], dtype=int)
            if not len(open_):
                break
            proposals = thetas + steps
        return [
            self._limit(found[i], support) if i in found else self._fit_alone(support, thetas[i])
            for i, support in enumerate(supports)
        ]

    def _limit(self, best: Maximum, support: Support) -> Fit:
        separated = bool(self.diverging[self.space.free_mask(support)].any()) and self._may_diverge(best, support)
        return self._as_fit(best.theta, best.value, best.gradient, True, support, separated)


def _first_pass(
    rows: Rows, moments: Moments | None, far: ExtremeRows | None, known: InMemoryRows, num_actions: int
) -> tuple[Moments, InMemoryRows]:
    """The moments of all rows, and the known rows with all that are far out among them; no pass where both are there."""
    shift = shift_near(known.features, known.actions, num_actions)
    by = FindExtremeRows.of(known, shift[: known.features.shape[1]])
    found = None if far is None else far.again(by)
    if moments is None:
        moments, found = rows.total(ComputeMomentsAndExtremes(ComputeMoments(shift, num_actions), by), BLOCK)
    elif found is None:
        (found,) = rows.total(by, BLOCK)
    return moments, by.completed(known, found)


# -- Firth's penalised likelihood: log L + ½ log det F, finite even where the data are separated.

DIFFERENCE = 1e-5
"""How far weights of standardised features are moved to see how the penalised score changes."""

POLISHING_STEPS = 4


class FirthLikelihood(LinearLikelihood):
    """The Jeffreys prior on the Boltzmann policy; the penalty is the full space's in restricted fits too, so they nest."""

    space: SoftmaxLinear
    penalised = True

    def __init__(self, plain: SoftmaxLikelihood) -> None:
        if not plain.identifiable:
            raise InputError(
                "Firth's penalty needs features that are not collinear, for it takes the determinant of their Fisher "
                "information: drop a redundant feature first."
            )
        self.space, self.num_rows, self.law, self._plain = plain.space, plain.num_rows, plain.law, plain
        self.total_weight, self.diverging, self.design = plain.total_weight, plain.diverging, plain.design
        self._k = len(self.space.row_names)
        self._last: tuple[np.ndarray, np.ndarray] | None = None
        # log det F of raw coordinates, from that of standardised ones.
        self._log_scale = self._k * float(np.log(plain.design.scale).sum())
        self.full = self.fit(self.space.full_support)

    def fit(self, support: Support, start: np.ndarray | None = None) -> Fit:
        """Fisher scoring on the penalised likelihood, whose modified score is Firth's."""
        plain, free = self._plain, self.space.free_mask(support)
        begin = plain._fixed
        if start is not None:
            begin = np.where(free, plain.design.to_standardised(self.space.weights(start)).ravel(), plain._fixed)
        best = maximise(self._evaluate, self._hessian, begin, free, max_steps=500, reach=self._reach, secant=True)
        theta, value, gradient = best.theta, best.value, best.gradient
        if free.all() and best.converged:  # its weights are reported, of restricted fits only the likelihood
            theta, value, gradient = self._polished(theta, value, gradient)
        separated = bool(plain.diverging[free].any())
        return plain._as_fit(theta, value, gradient, best.converged, support, separated)

    def _polished(self, theta: np.ndarray, value: float, gradient: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """Newton steps on the penalised score itself, its derivative by differences: weights to all digits."""
        moves = DIFFERENCE * np.eye(len(theta))
        slopes = [(self._evaluate(theta - m)[1] - self._evaluate(theta + m)[1]) / (2 * DIFFERENCE) for m in moves]
        curvature = (np.array(slopes) + np.array(slopes).T) / 2
        if np.linalg.eigvalsh(curvature)[0] <= 0:
            return theta, value, gradient
        for _ in range(POLISHING_STEPS):
            moved = theta + np.linalg.solve(curvature, gradient)
            new_value, new_gradient = self._evaluate(moved)
            if not np.abs(new_gradient).max() < np.abs(gradient).max():
                break
            theta, value, gradient = moved, max(new_value, value), new_gradient
        return theta, value, gradient

    def fit_many(self, supports: Sequence[Support]) -> list[Fit]:
        """Each fit begins at the full one, which most restrictions hardly move."""
        return [self.fit(support, self.full.theta) for support in supports]

    def _reach(self, step: np.ndarray) -> float:
        """The largest change of a natural parameter in any row."""
        return float(np.abs(self._rows @ step.reshape(self._k, -1).T).max())

    def _evaluate(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log L + ½ log det F and its gradient, from one pass over the rows."""
        rows, x = self._plain.rows, self._rows
        probabilities, log_partition = softmax(x, theta.reshape(self._k, -1, 1))
        p = np.hstack(probabilities)
        hessian = information(x, p.T, rows.weights)
        self._last = theta.copy(), hessian
        weights = np.ones(len(x)) if rows.weights is None else rows.weights
        value = float(theta @ rows.statistic - weights @ log_partition[:, 0])
        sign, log_det = np.linalg.slogdet(hessian)
        if sign <= 0:
            return -np.inf, rows.statistic - ((p * weights[:, None]).T @ x).ravel()
        pull = (self._modification(p, hessian) - p) * weights[:, None]
        gradient = rows.statistic + (pull.T @ x).ravel()
        return value + 0.5 * float(log_det) + self._log_scale, gradient

    def _hessian(self, theta: np.ndarray) -> np.ndarray:
        """That of −log L; a step asks for it where the objective was last evaluated."""
        if self._last is None or not np.array_equal(self._last[0], theta):
            self._last = theta.copy(), self._plain.rows.hessian(theta)
        return self._last[1]

    def _modification(self, p: np.ndarray, hessian: np.ndarray) -> np.ndarray:
        """What the penalty adds to each action of each row [n, k]: ½ tr(F⁻¹ ∂F/∂θ) = Σ_i w_i (what it adds) ⊗ φ_i.

        It is ½ Σ_ab (φᵀF⁻¹_ab φ) κ_abc with κ_abc = δ_ab W_ac − W_ac p_b − p_a W_bc, the third cumulant of the actions,
        where W = diag p − ppᵀ: ½ p_c (h_c − pᵀh) with h_a = φᵀF⁻¹_aa φ − 2 Σ_b φᵀF⁻¹_ab φ p_b.
        """
        x, k = self._rows, self._k
        q = x.shape[1]
        inverse = np.linalg.inv(hessian).reshape(k, q, k, q).transpose(1, 0, 2, 3).reshape(q, k * k * q)
        # φᵀF⁻¹_ab φ: one product of matrices, then a sum over the features of each row.
        leverage = ((x @ inverse).reshape(-1, k * k, q) @ x[:, :, None]).reshape(-1, k, k)
        h = np.einsum("naa->na", leverage) - 2 * (leverage @ p[:, :, None])[:, :, 0]
        return 0.5 * p * (h - np.sum(p * h, axis=1, keepdims=True))

    @cached_property
    def _rows(self) -> np.ndarray:
        return self._plain.rows.standardised(slice(None))

    def information(self) -> np.ndarray:
        """F̂ at the penalised fit."""
        features, weights = self._plain.rows.features, self._plain.rows.weights
        return self.space.fisher(self.full.theta, features, weights)

    def standardised_information(self) -> np.ndarray:
        """The same in the coordinates of the standardised design."""
        theta = self._plain.design.to_standardised(self.space.weights(self.full.theta)).ravel()
        return self._plain.rows.hessian(theta) / self.total_weight


SoftmaxLikelihood.penalty = FirthLikelihood
