"""Poisson policy: actions that are counts, with the mean exp(θᵀφ(s))."""

from functools import cached_property
from typing import Any, final

import numpy as np
from scipy.special import gammaln, xlogy

from policyspace.data.sample import ActionType, Count, Sample, check_counts
from policyspace.data.validation import translate_constructor
from policyspace.errors import InputError
from policyspace.families.base import Array, ExponentialFamily, FitMeasures, Key, PolicySpace
from policyspace.families.concave import ConcaveLikelihood
from policyspace.families.design import DesignMatrix
from policyspace.families.likelihood import Likelihood
from policyspace.families.softmax_sums import moving_coordinates, separating_directions
from policyspace.safe_io import JSON

LARGEST = 300.0
"""A natural parameter beyond which means are no longer told apart: their squares would overflow."""

MOST_DRAWN = 1e15
"""The largest mean that counts are drawn with."""


@final
@translate_constructor
class PoissonLinear(ExponentialFamily):
    """Counts a ~ Poisson(exp(weights·φ(s))), independent of each other given the state where there are several.

    An exponential family with u(a) = a, h(a) = 1/a! and A(η) = Σ exp η.

    Parameters
    ----------
    features, groups, assume, fixed, intercept, blocks
        As in `GaussianLinear`.
    actions : sequence of str, optional
        Names of the counts; by default one, named "action".

    Examples
    --------
    >>> import numpy as np
    >>> import policyspace
    >>> rng = np.random.default_rng(0)
    >>> states = rng.normal(size=(300, 2))
    >>> presses = rng.poisson(np.exp(0.5 + 0.8 * states[:, 0]))
    >>> policyspace.identify(states, presses, features=["food", "noise"], policy="poisson").selected
    ('food',)
    """

    in_words = "Poisson"
    discrete = False
    asymptotic = True
    link = "log"
    variance_of_mean = True
    counts_events = True
    noise_source = "a Poisson distribution"
    if_wider = "--policy negative-binomial estimates that spread"

    @property
    def action_type(self) -> ActionType:
        """Counts."""
        return Count(self.action_names)

    def bind(self, data: Sample) -> PolicySpace:
        """The same space over the features and actions of the data, which must be counts."""
        space = super().bind(data)
        if data.origin.offset:
            raise InputError("an offset is not known to the Poisson policy: leave it out, or make it a feature.")
        check_counts(data.actions, data.action_names)
        return space

    def mean(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray:
        """exp(weights·φ(s))."""
        return np.asarray(self.cumulant_gradient(self.natural(theta, features)))

    def variance(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray:
        """That of a Poisson distribution is its mean."""
        return self.mean(theta, features)

    def dispersion_error(self, variance: np.ndarray) -> float:
        """A squared residual of mean 1 has the variance 2 + 1/μ."""
        return float(np.sqrt((2 + 1 / np.maximum(variance, 1e-4)).mean() / variance.size))

    def score_roots(self, theta: np.ndarray, features: np.ndarray, covariance: np.ndarray | None) -> list[np.ndarray]:
        """The root of each count's mean, on its own row of weights."""
        root = np.sqrt(self.mean(theta, features))
        return [np.where(np.arange(root.shape[1]) == a, root, 0.0) for a in range(root.shape[1])]

    def noise_covariance(self, theta: Array | None = None, data: Sample | None = None) -> None:
        """There is none: the spread of counts depends on the state."""

    def fit_measures(self, likelihood: Likelihood, theta: np.ndarray, data: Sample) -> FitMeasures:
        """The share of the deviance that the features explain."""
        weights = np.ones(data.num_rows) if data.weights is None else data.weights
        a, best = data.actions, likelihood.full.log_likelihood
        null = likelihood.fit(frozenset()).log_likelihood
        perfect = float(weights @ (xlogy(a, a) - a - gammaln(a + 1)).sum(axis=1))
        explained = 1 - (perfect - best) / (perfect - null) if perfect > null else np.nan
        return FitMeasures(best, null, mcfadden=1 - best / null, explained=explained)

    def describe(self) -> dict[str, JSON]:
        """Whether it has an intercept."""
        return {"family": "poisson", "intercept": self.intercept}

    def action_statistic(self, actions: Array) -> Array:
        """u(a) = a."""
        return actions

    def log_base(self, actions: Array) -> Array:
        """log h(a) = −Σ log a!."""
        if isinstance(actions, np.ndarray):
            return -gammaln(actions + 1.0).sum(axis=-1)
        from jax.scipy import special

        return -special.gammaln(actions + 1.0).sum(axis=-1)

    def cumulant(self, eta: Array) -> Array:
        """A(η) = Σ exp η."""
        return self.cumulant_gradient(eta).sum(axis=-1)

    def cumulant_gradient(self, eta: Array) -> Array:
        """E[a] = exp η."""
        xp = eta.__array_namespace__()
        return xp.exp(xp.minimum(eta, LARGEST))

    def cumulant_hessian(self, eta: Array) -> Array:
        """Cov[a] = diag(exp η)."""
        xp = eta.__array_namespace__()
        return self.cumulant_gradient(eta)[..., None] * xp.eye(eta.shape[-1])

    def sample(self, key: Key, theta: Array, features: Array) -> Array:
        """Counts of each component."""
        mean = self.cumulant_gradient(self.natural(theta, features)).clip(0.0, MOST_DRAWN)
        if isinstance(key, np.random.Generator):
            return key.poisson(mean).astype(np.float64)
        from policyspace.families.jax_backend import jax, jnp

        return jax.random.poisson(key, mean).astype(jnp.float64)


class PoissonLikelihood(ConcaveLikelihood):
    """Newton from the mean count; a weight is infinite where some states only ever have the count 0."""

    space: PoissonLinear

    @cached_property
    def _origin(self) -> np.ndarray:
        """The agent that always has the mean count."""
        weights = np.zeros((len(self.space.row_names), len(self.space.column_names)))
        if self.space.intercept:
            mean = self.rows.statistic.reshape(weights.shape)[:, 0] / self.total_weight
            weights[:, 0] = np.log(np.maximum(mean, np.finfo(float).tiny))
        return weights.ravel()

    def _separated(self) -> np.ndarray:
        """Of each count on its own."""
        counts = self.rows.arrays.actions.T
        return np.concatenate([never_counted(self.rows, self.design, own) for own in counts])


def never_counted(rows: Any, design: DesignMatrix, counts: np.ndarray) -> np.ndarray:
    """The weights [q] of a count along which log L grows for ever: by D with D·φ = 0 where something was counted, and
    D·φ ≤ 0 elsewhere, with some strict.

    So do the log-odds of two labels, of which rows with a count above 0 show both, the others the second.
    """
    x = rows.standardised(slice(None))
    open_ = np.ones(len(x), dtype=bool) if rows.arrays.weights is None else rows.arrays.weights > 0
    played = np.column_stack([counts[open_] > 0, np.ones(int(open_.sum()), dtype=bool)])
    directions = separating_directions(x[open_], played, np.ones(x.shape[1], dtype=bool))
    if directions.shape[2] < len(design.mean) + design.intercept:  # nuisance parameters do not move
        beside = len(design.mean) + design.intercept - directions.shape[2]
        directions = np.concatenate([directions, np.zeros((*directions.shape[:2], beside))], axis=2)
    return moving_coordinates(design, directions)[: x.shape[1]]
