"""Likelihood-based confidence intervals: "no evidence" becomes "smaller than x"."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri, stdtrit

from policyspace.errors import InputError
from policyspace.fisher import inverse_information
from policyspace.likelihood.base import Likelihood
from policyspace.likelihood.boltzmann import BoltzmannLikelihood
from policyspace.likelihood.gaussian import GaussianLikelihood
from policyspace.likelihood.newton import maximise
from policyspace.planning.power import check_share
from policyspace.policies.base import ExponentialFamily

FARTHEST = 500.0
"""A weight of a standardised feature beyond which nothing changes any more: the interval is open there."""


@dataclass(frozen=True)
class Interval:
    """{x : λ(θ_i = x) ≤ c} of one parameter; an end is infinite where the likelihood never falls off."""

    parameter: str
    group: str
    fixed: float  # what the parameter is worth when it is not controlled
    estimate: float
    lower: float
    upper: float

    @property
    def bound(self) -> float:
        """How far, at most, the parameter is from the value of an agent that does not control it."""
        return max(abs(self.lower - self.fixed), abs(self.upper - self.fixed))


def profile_intervals(likelihood: Likelihood, significance: float = 0.05) -> list[Interval]:
    """{x : 2(min_{θ_i=x} ℓ̂ − ℓ̂(θ̂)) ≤ c}, each holding θ_i with probability 1 − `significance`, for all tested ones.

    Closed for the Gaussian policy: the normal interval, or Student's where the covariance is estimated.
    """
    check_share(significance, "the significance")
    space = likelihood.space
    if isinstance(likelihood, GaussianLikelihood):
        ends = _student_ends(likelihood, significance)
    elif isinstance(likelihood, BoltzmannLikelihood):
        ends = _profile_ends(likelihood, significance)
    else:
        raise InputError(f"profile intervals are for linear policies, found {type(space).__name__}.")
    owner = {i: space.groups[g].name for g in space.tested for i in space.groups[g].indices}
    names, theta = parameter_names(likelihood.space), likelihood.full.theta
    return [Interval(names[i], owner[i], float(space.fixed[i]), float(theta[i]), *ends(i)) for i in sorted(owner)]


def parameter_names(space: ExponentialFamily) -> list[str]:
    """θ by name: the feature, and where there are several rows of weights the action too."""
    columns, rows = space.column_names, space.row_names
    return [f"{column}[{row}]" if len(rows) > 1 else column for row in rows for column in columns]


def _student_ends(likelihood: GaussianLikelihood, significance: float) -> Callable[[int], tuple[float, float]]:
    """θ̂_i ± c·s_i, c of the normal law or of Student's: where θ_i = x fixed, λ(x) is a function of ((x − θ̂_i)/s_i)²."""
    inverse, hidden = inverse_information(likelihood.information())
    spare = likelihood.total_weight
    quantile = float(np.sqrt(chdtri(1, significance)))
    if likelihood.space.estimated:
        spare -= likelihood.num_free(likelihood.space.everything) / len(likelihood.space.row_names)
        quantile = float(stdtrit(spare, 1 - significance / 2))
    half = quantile * np.sqrt(np.diag(inverse) / spare)
    half[hidden] = np.inf
    theta = likelihood.full.theta
    return lambda i: (float(theta[i] - half[i]), float(theta[i] + half[i]))


def _profile_ends(likelihood: BoltzmannLikelihood, significance: float) -> Callable[[int], tuple[float, float]]:
    """Where √λ(x), which is nearly linear in x, reaches √c: found by fits with θ_i = x fixed, on standardised features."""
    design, space, rows = likelihood.design, likelihood.space, likelihood.rows
    best = design.to_standardised(space.weights(likelihood.full.theta)).ravel()
    inverse, hidden = inverse_information(rows.hessian(best))
    root = float(np.sqrt(likelihood.law.critical(significance, 1)))
    q, offset = len(space.column_names), int(space.intercept)
    constant = np.concatenate([np.zeros(offset, dtype=bool), design.constant])
    # Where the data are separated other weights have run off: no straight path from θ̂ is a good start.
    separated = bool(likelihood.diverging.any())

    def ends(i: int) -> tuple[float, float]:
        diverges = bool(likelihood.diverging[i])
        if (hidden[i] and not diverges) or constant[i % q]:
            return -np.inf, np.inf
        scale = float(design.scale[i % q - offset])
        path = inverse[:, i] / inverse[i, i] if inverse[i, i] > 0 else np.eye(len(best))[i]
        free = np.arange(len(best)) != i

        @cache
        def excess(distance: float) -> float:
            """√λ(x) − √c at that distance from θ̂_i."""
            if not distance:
                return -root
            start = best + distance * path if not separated else best.copy()
            start[i] = best[i] + distance
            fitted = maximise(rows.at, rows.hessian, start, free)
            return float(np.sqrt(max(2 * (likelihood.full.log_likelihood - fitted.value), 0.0))) - root

        if diverges:
            # Open on the side to which θ_i runs off, and on the other too unless zero can be excluded.
            toward = _end(excess, -best[i], farthest=abs(best[i])) if best[i] else np.inf
            lower, upper = sorted((toward, float(np.copysign(np.inf, -toward))))
        else:
            step = min(root * float(np.sqrt(inverse[i, i])), 5.0)
            lower, upper = (_end(excess, side * step, FARTHEST) for side in (-1, 1))
        return (best[i] + lower) / scale, (best[i] + upper) / scale

    return ends


def _end(excess: Callable[[float], float], step: float, farthest: float) -> float:
    """The distance at which √λ(x) = √c, doubling the step until it is passed; infinite where that does not happen."""
    inside, outside = 0.0, step
    while excess(outside) < 0:
        inside, outside = outside, 2 * outside
        if abs(outside) > farthest:
            return float(np.copysign(np.inf, step))
    return float(brentq(excess, *sorted((inside, outside)), xtol=1e-6 * abs(step)))
