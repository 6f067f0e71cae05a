"""Fits that are finite and reproducible in every space: what e-values bet with, and what the bootstrap simulates from."""

from dataclasses import dataclass
from typing import final

import numpy as np

from policyspace.likelihood.base import Likelihood
from policyspace.likelihood.boltzmann import BoltzmannLikelihood
from policyspace.likelihood.gaussian import GaussianLikelihood
from policyspace.likelihood.network import NetworkLikelihood
from policyspace.likelihood.newton import maximise
from policyspace.policies.base import PolicySpace
from policyspace.policies.gaussian import GaussianLinear
from policyspace.policies.groups import Support

LINEAR_SPREAD = 2.5
"""The prior's standard deviation for Boltzmann weights of standardised features: weak, yet finite under separation."""

NETWORK_SPREAD = 0.25
"""The same for the weights of a network, whose maximum-likelihood fit is not reproducible."""


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
        return Policy(space, _ridge(likelihood, support))
    fit = likelihood.full if support == space.everything else likelihood.fit(support)
    if isinstance(likelihood, GaussianLikelihood) and likelihood.space.estimated:
        return _with_covariance(likelihood, support, fit.theta)
    return Policy(space, fit.theta)


def _ridge(likelihood: BoltzmannLikelihood, support: Support) -> np.ndarray:
    rows, space, fixed = likelihood.rows, likelihood.space, likelihood._fixed
    precision = np.full((len(space.row_names), len(space.column_names)), LINEAR_SPREAD**-2)
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
