"""Multinomial logit (Boltzmann) policy and its likelihood."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, final

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
from policyspace.families.base import Array, ExponentialFamily, FitMeasures, Groups, Key, Support
from policyspace.families.concave import ConcaveLikelihood
from policyspace.families.design import DesignMatrix
from policyspace.families.likelihood import ChiSquare, Fit, Likelihood
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
    moving_coordinates,
    separating_directions,
    unique_rows,
)
from policyspace.safe_io import JSON

# -- The Boltzmann linear policy: k rows of weights for k+1 actions (Table 1, second row).


@final
@translate_constructor
class SoftmaxLinear(ExponentialFamily):
    """Discrete actions, π(a_i|s) ∝ exp(weights_i·φ(s)); the last action is the reference, whose weights are zero.

    With k rows for k+1 actions the space is identifiable. The second case of Table 1 is i = k+1.

    Parameters
    ----------
    features : sequence of str, optional
        Names of the features; without them the space takes all names from the data that it is bound to.
    actions : sequence of str, optional
        Names of the actions, in the order of their codes 0…k; the last one is the reference.
    groups : {"feature", "parameter"} or mapping of names to features, default "feature"
        What is tested together.
    assume : sequence of str
        Groups that are taken to be used, and not tested.
    fixed : float or mapping of names to floats, default 0
        What a weight is worth that the agent does not use.
    intercept : bool, default True
        Whether there is a constant.
    blocks : mapping of names to features, optional
        The one-hot features of each category.

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
    discrete = True
    asymptotic = True
    link = "logit"
    variance_of_mean = True

    def __init__(
        self,
        features: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        groups: Groups | None = None,
        assume: Sequence[str] = (),
        fixed: Any = 0.0,
        intercept: bool | None = None,
        blocks: dict[str, tuple[str, ...]] | None = None,
    ) -> None:
        if features is None:
            self.defer(actions, blocks, groups=groups, assume=assume, fixed=fixed, intercept=intercept)
            return
        self.action_names = choices(actions)
        super().__init__(tuple(features), self.action_names[:-1], groups, tuple(assume), fixed, intercept, blocks)

    def mean(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray:
        """The probabilities of the first k actions."""
        return np.asarray(self.cumulant_gradient(self.natural(theta, features)))

    def variance(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray:
        """p(1 − p)."""
        p = self.mean(theta, features)
        return p * (1 - p)

    def score_roots(
        self, theta: np.ndarray, features: np.ndarray, covariance: np.ndarray | None
    ) -> Iterator[np.ndarray]:
        """Of each action, the score if it were chosen."""
        return roots_of_choices(self.mean(theta, features))

    def fit_measures(self, likelihood: Likelihood, theta: np.ndarray, data: Sample) -> FitMeasures:
        """How often the most probable action was chosen, and McFadden's ρ²."""
        return measures_of_choices(self, likelihood, theta, data)

    def cautions(self, data: Sample) -> list[str]:
        """Many whole numbers that are read as labels."""
        names = self.action_names
        if len(names) < MANY_NUMBERS or not all(name.removeprefix("-").isdecimal() for name in names):
            return []
        return [
            f"actions are {len(names)} different whole numbers and are read as labels: if they are counts use --policy "
            "poisson, if amounts --policy gaussian."
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


def roots_of_choices(p: np.ndarray) -> Iterator[np.ndarray]:
    """The score [n, k] if an action were chosen, times the root of its probability; `p` [n, k] of all but the last."""
    for a in range(p.shape[1] + 1):
        share = p[:, a] if a < p.shape[1] else 1 - p.sum(axis=1)
        yield ((np.arange(p.shape[1]) == a) - p) * np.sqrt(np.maximum(share, 0.0))[:, None]


def measures_of_choices(space: Any, likelihood: Likelihood, theta: np.ndarray, data: Sample) -> FitMeasures:
    """How well the probabilities of actions predict the choices; where a log is read in passes, hits are of the sample."""
    p = space.mean(theta, data.features)
    weights = np.ones(data.num_rows) if data.weights is None else data.weights
    total, best = likelihood.total_weight, likelihood.full.log_likelihood
    counts = np.bincount(data.actions, weights, len(data.action_names))
    if data.rows.label_weights is None:
        best = float(
            weights @ np.asarray(space.log_prob(theta, data.features, data.actions))
        )  # without Firth's penalty
    else:
        counts = data.rows.label_weights
    null = float(counts[counts > 0] @ np.log(counts[counts > 0] / total))
    zero, rows = np.zeros(space.num_parameters), np.zeros(data.num_rows, dtype=np.intp)
    there = np.isfinite([space.log_prob(zero, data.features, rows + a) for a in range(len(counts))]).sum(axis=0)
    equal = -total * float(np.log(len(counts)))
    if (there < len(counts)).any():
        equal = -float(weights @ np.log(there))
    if space.offset or not getattr(space, "constants", True) or (there < len(counts)).any():
        alone = likelihood.fit(frozenset()).theta
        null = float(weights @ np.asarray(space.log_prob(alone, data.features, data.actions)))
    every = np.column_stack([p, 1 - p.sum(axis=1)])
    hits = float(weights @ (every.argmax(axis=1) == data.actions) / weights.sum())
    return FitMeasures(best, null, equal, 1 - best / null, hits)


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
