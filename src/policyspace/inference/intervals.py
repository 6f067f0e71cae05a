"""Likelihood-based confidence intervals: "no evidence" becomes "smaller than x"."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from scipy.special import chdtri, stdtrit

from policyspace.errors import InputError
from policyspace.fits.base import Likelihood
from policyspace.fits.boltzmann_fits import BoltzmannLikelihood
from policyspace.fits.fisher import inverse_of
from policyspace.fits.gaussian_fits import GaussianLikelihood
from policyspace.inference.corrections import check_share
from policyspace.inference.profile import boltzmann_ends
from policyspace.policies.base import ExponentialFamily
from policyspace.progress import counted


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
    space = likelihood.space.as_linear("profile intervals")
    ends = ends_of(likelihood, significance)
    owner = {i: space.groups[g].name for g in space.tested for i in space.groups[g].indices}
    names, theta = parameter_names(space), likelihood.full.theta
    return [
        Interval(names[i], owner[i], float(space.fixed[i]), float(theta[i]), *ends(i))
        for i in counted(sorted(owner), "profiling parameters")
    ]


def parameter_names(space: ExponentialFamily) -> list[str]:
    """θ by name: the feature, and where there are several rows of weights the action too."""
    columns, rows = space.column_names, space.row_names
    return [f"{column}[{row}]" if len(rows) > 1 else column for row in rows for column in columns]


@singledispatch
def ends_of(likelihood: Likelihood, significance: float) -> Callable[[int], tuple[float, float]]:
    """θ_i ↦ both ends of its interval, by the kind of the likelihood."""
    raise InputError(
        f"profile intervals are for plain Gaussian and Boltzmann likelihoods, found {type(likelihood).__name__}."
    )


ends_of.register(BoltzmannLikelihood)(boltzmann_ends)


@ends_of.register
def student_ends(likelihood: GaussianLikelihood, significance: float) -> Callable[[int], tuple[float, float]]:
    """θ̂_i ± c·s_i, c of the normal law or of Student's: where θ_i = x fixed, λ(x) is a function of ((x − θ̂_i)/s_i)²."""
    inverse, hidden = inverse_of(likelihood)
    spare = likelihood.total_weight
    quantile = float(np.sqrt(chdtri(1, significance)))
    if likelihood.space.estimated:
        spare -= likelihood.num_free(likelihood.space.everything) / len(likelihood.space.row_names)
        quantile = float(stdtrit(spare, 1 - significance / 2))
    half = quantile * np.sqrt(np.diag(inverse) / spare)
    half[hidden] = np.inf
    theta = likelihood.full.theta
    return lambda i: (float(theta[i] - half[i]), float(theta[i] + half[i]))
