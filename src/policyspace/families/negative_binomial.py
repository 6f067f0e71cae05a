"""Negative binomial policy: overdispersed counts, with an estimated dispersion."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import final

import numpy as np
from scipy.special import betainc, digamma, gammaln, polygamma

from policyspace.data.sample import ActionType, Count, Sample, check_counts
from policyspace.data.validation import translate_constructor
from policyspace.errors import InputError
from policyspace.families.base import Array, FitMeasures, Key, PolicySpace, Residuals
from policyspace.families.likelihood import Likelihood
from policyspace.families.nuisance import NuisanceLikelihood, NuisanceLinear
from policyspace.families.poisson import LARGEST, MOST_DRAWN, never_counted
from policyspace.safe_io import JSON

LOG_DISPERSION = "log dispersion"
"""The name of the nuisance parameter τ = log α."""

EXTREME = 30.0
"""The size of a log dispersion beyond which nothing changes: the counts are Poisson's, or all but always 0."""

SINGLE, WIDER = 256, 0.01
"""Counts up to which sums over them are made one by one, and by which share runs of them grow beyond."""

ROWS = 1000
"""Rows whose sums are made together."""

LARGE = 1000.0
"""A size r from which on differences of log Γ and its derivatives are taken from their series."""


@final
@translate_constructor
class NegativeBinomialLinear(NuisanceLinear):
    """Counts of mean μ = exp(weights·φ(s)) and variance μ + α μ²; the dispersion α is estimated beside the weights.

    The law of R's `glm.nb`, whose theta is 1/α. α → 0 is the Poisson policy.

    Parameters
    ----------
    features, groups, assume, fixed, intercept, blocks
        As in `GaussianLinear`.
    actions : sequence of str, optional
        The name of the count; by default "action".

    Examples
    --------
    >>> import numpy as np
    >>> import policyspace
    >>> rng = np.random.default_rng(0)
    >>> states = rng.normal(size=(300, 2))
    >>> presses = rng.poisson(np.exp(0.5 + 0.8 * states[:, 0]) * rng.gamma(2.0, 0.5, size=300))
    >>> names = ["food", "noise"]
    >>> policyspace.identify(states, presses, features=names, policy="negative-binomial").selected
    ('food',)
    """

    discrete = False
    link = "log"
    in_words = "negative-binomial"
    noise_source = "a negative binomial distribution"

    nuisance_names = (LOG_DISPERSION,)

    def _name_actions(self, actions: Sequence[str] | None) -> None:
        """Take the name of the one count."""
        super()._name_actions(actions)
        if len(self.action_names) != 1:
            raise InputError(
                f"a negative binomial policy is of one count, found {len(self.action_names)}: identify with one after the "
                "other, or take the policy 'poisson'."
            )

    @property
    def action_type(self) -> ActionType:
        """Counts."""
        return Count(self.action_names)

    def bind(self, data: Sample) -> PolicySpace:
        """The same space over the features and the action of the data, which must be counts."""
        space = super().bind(data)
        if data.origin.offset:
            raise InputError(
                "an offset is not known to the negative binomial policy: leave it out, or make it a feature."
            )
        check_counts(data.actions, data.action_names)
        return space

    def describe(self) -> dict[str, JSON]:
        """Whether it has an intercept."""
        return {"family": "negative-binomial", "intercept": self.intercept}

    def mean(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray:
        """μ = exp(weights·φ(s))."""
        return np.exp(np.minimum(self.natural(theta, features), LARGEST))

    def variance(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray:
        """μ + α μ²."""
        mean = self.mean(theta, features)
        return np.asarray(mean + mean**2 / _size(self.nuisance(theta)))

    def residuals(
        self, theta: np.ndarray, features: np.ndarray, action_type: ActionType, actions: np.ndarray
    ) -> Residuals | None:
        """What θ leaves of the counts; its spread is estimated, so that it cannot contradict the policy."""
        found = super().residuals(theta, features, action_type, actions)
        return None if found is None else replace(found, dispersion_error=None)

    def fit_measures(self, likelihood: Likelihood, theta: np.ndarray, data: Sample) -> FitMeasures:
        """log L of the fit and of one that ignores all features."""
        best, null = likelihood.full.log_likelihood, likelihood.fit(frozenset()).log_likelihood
        return FitMeasures(best, null, mcfadden=1 - best / null)

    # -- formulas --------------------------------------------------------------------------------------------------

    def log_density(self, eta: Array, nuisance: Array, actions: Array) -> Array:
        """log Γ(y + r)/Γ(r) − log y! − r log(1 + μ/r) + y (η − log(r + μ)), with r = 1/α."""
        xp, log_gamma = np, gammaln
        if not isinstance(eta, np.ndarray | np.floating):
            from jax.scipy import special

            xp, log_gamma = eta.__array_namespace__(), special.gammaln
        y, eta = actions[..., 0], xp.minimum(eta, LARGEST)
        r, mean = _size(nuisance)[0], xp.exp(eta)
        near = xp.minimum(r, LARGE)  # the branch that is not taken must stay finite
        direct = log_gamma(y + near) - log_gamma(near)
        far = xp.maximum(r, LARGE)
        series = (far - 0.5) * xp.log1p(y / far) + y * xp.log(y + far) - y + (1 / (y + far) - 1 / far) / 12
        rising = xp.where(r < LARGE, direct, series)
        return rising - log_gamma(y + 1.0) - r * xp.log1p(mean / r) + y * (eta - xp.log(r + mean))

    def derivatives(
        self, eta: np.ndarray, nuisance: np.ndarray, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """In η and τ = log α: ℓ_η = (y − μ)/(1 + αμ); ℓ_τ = −r ℓ_r."""
        y, r, mean = actions[..., 0], float(_size(nuisance)[0]), np.exp(np.minimum(eta, LARGEST))
        # ψ(y + r) − ψ(r) and ψ′(r) − ψ′(y + r), to all digits for large r too.
        if r < LARGE:
            first, second = digamma(y + r) - digamma(r), polygamma(1, r) - polygamma(1, y + r)
        else:
            end, away = r + y, y / (r * (r + y))
            first = np.log1p(y / r) + away / 2 + (1 / r**2 - 1 / end**2) / 12
            second = away + away * (1 / r + 1 / end) / 2 + (1 / r**3 - 1 / end**3) / 6
        by_size = first - np.log1p(mean / r) + (mean - y) / (r + mean)
        bent_by_size = second - mean / (r * (r + mean)) - (y - mean) / (r + mean) ** 2
        moves = float(abs(nuisance[0]) < EXTREME)
        slopes = np.stack([(y - mean) * r / (r + mean), -moves * r * by_size], axis=-1)
        bent = np.empty((*slopes.shape, 2))
        bent[..., 0, 0] = mean * r * (r + y) / (r + mean) ** 2
        bent[..., 0, 1] = bent[..., 1, 0] = moves * r * mean * (y - mean) / (r + mean) ** 2
        bent[..., 1, 1] = moves * (slopes[..., 1] + r**2 * bent_by_size)
        return self.log_density(eta, nuisance, actions), slopes, bent

    def information_roots(self, eta: np.ndarray, nuisance: np.ndarray) -> list[np.ndarray]:
        """η and τ are orthogonal: E[−ℓ_ηη] = μ/(1 + αμ), and E[−ℓ_ττ] = r² (Σ_j P(y > j)/(r + j)² − μ/(r(r + μ)))."""
        r, mean = float(_size(nuisance)[0]), np.exp(np.minimum(eta, LARGEST))
        share, total = mean / (r + mean), np.zeros_like(mean)
        top = float(mean.max() + 12 * np.sqrt(mean.max() + mean.max() ** 2 / r) + 25 * (1 + mean.max() / r))
        single = np.arange(min(int(top) + 1, SINGLE))
        odds = np.append(0.0, np.cumsum(np.log((r + single[:-1]) / (single[:-1] + 1))))
        for i in range(0, len(mean), ROWS):  # P(y = j) of single counts, then ever wider runs of counts
            part = slice(i, i + ROWS)
            log_share = np.minimum(eta[part], LARGEST) - np.log(r + mean[part])
            chance = np.exp(odds[:, None] + single[:, None] * log_share - r * np.log1p(mean[part] / r))
            total[part] = ((1 - np.cumsum(chance, axis=0)) / (r + single[:, None]) ** 2).sum(axis=0)
        runs = np.geomspace(SINGLE, top, 1 + int(np.log(top / SINGLE) / WIDER) + 1) if top > SINGLE else np.zeros(0)
        for start, end in itertools.pairwise(np.unique(np.floor(runs)).tolist()):
            middle = (start + end - 1) / 2
            total += (end - start) * betainc(middle + 1, r, share) / (r + middle) ** 2
        own = np.maximum(r**2 * (total - mean / (r * (r + mean))), 0.0)
        zero = np.zeros_like(mean)
        return [np.stack([np.sqrt(mean * r / (r + mean)), zero], axis=-1), np.stack([zero, np.sqrt(own)], axis=-1)]

    def sample(self, key: Key, theta: Array, features: Array) -> Array:
        """Poisson counts whose means vary by a gamma law."""
        r = _size(self.nuisance(theta))
        if isinstance(key, np.random.Generator):
            mean = self.mean(theta, features)
            return key.poisson(np.minimum(key.gamma(r, mean / r), MOST_DRAWN)).astype(np.float64)
        from policyspace.families.jax_backend import jax, jnp

        own, other = jax.random.split(key)
        mean = jnp.exp(jnp.minimum(self.natural(theta, features), LARGEST))
        drawn = jax.random.gamma(own, r, mean.shape) * mean / r
        return jax.random.poisson(other, drawn.clip(0.0, MOST_DRAWN)).astype(jnp.float64)


def _size(nuisance: Array) -> Array:
    """r = 1/α [1]."""
    xp = nuisance.__array_namespace__()
    return xp.exp(-xp.clip(nuisance, -EXTREME, EXTREME))


class NegativeBinomialLikelihood(NuisanceLikelihood):
    """Newton from the mean count; weights may be infinite as those of a Poisson policy are."""

    space: NegativeBinomialLinear

    @cached_property
    def _origin(self) -> np.ndarray:
        """The agent that always has the mean count, and the dispersion that the variance of all counts has."""
        theta, counts = np.zeros(self.space.num_parameters), self.rows.arrays.actions[:, 0]
        weights = self.rows.arrays.weights
        mean = float(np.average(counts, weights=weights))
        if self.space.intercept:
            theta[0] = np.log(max(mean, np.finfo(float).tiny))
        excess = float(np.average((counts - mean) ** 2, weights=weights)) - mean
        theta[-1] = np.log(np.clip(excess / max(mean**2, np.finfo(float).tiny), 0.01, 100.0))
        return theta

    def _separated(self) -> np.ndarray:
        """As of Poisson counts; the dispersion has limits, at which it stays."""
        return np.append(never_counted(self.rows, self.design, self.rows.arrays.actions[:, 0]), False)
