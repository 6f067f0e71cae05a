"""Fits that are finite and reproducible in every space: what e-values bet with, and what the bootstrap simulates from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from policyspace.fits.base import Likelihood
from policyspace.fits.boltzmann_fits import BoltzmannLikelihood
from policyspace.fits.gaussian_fits import GaussianLikelihood
from policyspace.fits.network_fits import NetworkLikelihood
from policyspace.fits.newton import maximise
from policyspace.policies.base import PolicySpace
from policyspace.policies.gaussian import GaussianLinear
from policyspace.policies.groups import Support

LINEAR_SPREAD = 2.5
"""The prior's standard deviation for Boltzmann weights of standardised features: weak, yet finite under separation."""

NETWORK_SPREAD = 0.25
"""The prior's standard deviation for the weights of a network, whose maximum-likelihood fit is not reproducible."""

LINEAR_BETS = (0.3, 1.0, 3.0)
"""The spreads over which a bettor on a Boltzmann agent divides its wealth: it loses log 3, and needs to know nothing."""

NETWORK_BETS = (NETWORK_SPREAD, 1.0)
"""The same for a network: smooth agents are best learned under the first, sharp ones under the second."""


@final
@dataclass(frozen=True)
class Policy:
    """One policy of a space: its density and its actions."""

    space: PolicySpace
    theta: np.ndarray

    def log_probs(self, features: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """log π_θ(a_i|s_i) [n]."""
        return np.asarray(self.space.log_prob(self.theta, features, actions))

    def sample(self, rng: np.random.Generator, features: np.ndarray) -> np.ndarray:
        """a_i ~ π_θ(·|s_i)."""
        return np.asarray(self.space.sample(rng, self.theta, features))


def regularised(likelihood: Likelihood, support: Support | None = None, start: np.ndarray | None = None) -> Policy:
    """argmax log L(θ) − ½ Σ (θ_j/spread)² over Θ_I, biases free of the penalty; Gaussian linear policies need none."""
    space = likelihood.space
    support = space.everything if support is None else support
    if isinstance(likelihood, NetworkLikelihood):
        return Policy(space, likelihood.regularised(support, NETWORK_SPREAD, start))
    if isinstance(likelihood, BoltzmannLikelihood):
        return Policy(space, _ridge(likelihood, support, LINEAR_SPREAD))
    fit = likelihood.full if support == space.everything else likelihood.fit(support)
    if isinstance(likelihood, GaussianLikelihood) and likelihood.space.estimated:
        return _with_covariance(likelihood, support, fit.theta)
    return Policy(space, fit.theta)


def bets(likelihood: Likelihood, before: Sequence[Policy] = ()) -> list[Policy]:
    """Policies for a bettor to divide its wealth over, learned from this likelihood's data in the whole space.

    Any number of them is valid: the mean of e-values is an e-value. `before` are those of a smaller data set.
    """
    if isinstance(likelihood, BoltzmannLikelihood):
        space = likelihood.space
        return [Policy(space, _ridge(likelihood, space.everything, spread)) for spread in LINEAR_BETS]
    if isinstance(likelihood, NetworkLikelihood):
        everything = likelihood.space.everything
        starts: list[np.ndarray | None] = [policy.theta for policy in before] or [None for _ in NETWORK_BETS]
        found = [likelihood.regularised(everything, *pair) for pair in zip(NETWORK_BETS, starts, strict=True)]
        return [Policy(likelihood.space, theta) for theta in found]
    return [regularised(likelihood)]


def _ridge(likelihood: BoltzmannLikelihood, support: Support, spread: float) -> np.ndarray:
    rows, space, fixed = likelihood.rows, likelihood.space, likelihood._fixed
    precision = np.full((len(space.row_names), len(space.column_names)), spread**-2)
    precision[:, : int(space.intercept)] = 1e-6  # finite even for an action that is hardly ever played
    prior = precision.ravel()

    def evaluate(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = rows.at(theta)
        return value - 0.5 * float(prior @ (theta - fixed) ** 2), gradient - prior * (theta - fixed)

    free = space.free(support)
    best = maximise(evaluate, lambda theta: rows.hessian(theta) + np.diag(prior), fixed, free, tolerance=1e-8)
    raw = likelihood.design.to_raw(space.weights(best.theta)).ravel()
    return np.where(free, raw, space.fixed)


def _with_covariance(likelihood: GaussianLikelihood, support: Support, theta: np.ndarray) -> Policy:
    """The estimated Σ̂ becomes part of the policy, its degrees of freedom counted."""
    space = likelihood.space
    spare = likelihood.total_weight - likelihood.num_free(support) / len(space.row_names)
    covariance = likelihood.residual_moments(support) / spare
    known = GaussianLinear(
        space.feature_names, space.row_names, (covariance + covariance.T) / 2, intercept=space.intercept
    )
    return Policy(known, theta)
