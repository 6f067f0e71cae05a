"""The paper's theory on one data set, with estimates in the place of what nobody knows, and how loose it is."""

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from scipy.special import chdtri

from policyspace.data.demonstrations import Demonstrations
from policyspace.data.vocabulary import one_vocabulary
from policyspace.errors import InputError
from policyspace.fits import Likelihood
from policyspace.fits.fisher import smallest_eigenvalue
from policyspace.identification import Source
from policyspace.inference.corrections import check_significance
from policyspace.inference.rules import one_at_a_time
from policyspace.inference.wilks import WilksTest
from policyspace.planning import Wilks, pairs_for_power, pilot
from policyspace.policies import ExponentialFamily
from policyspace.theory.concentration import (
    boltzmann_scale,
    gaussian_scale,
    likelihood_bound,
    parameter_bound,
    plug_in_feature_bound,
)
from policyspace.theory.correctness import Setting, best_critical_value, critical_value, pairs_for_correctness
from policyspace.theory.statements import Assessment, Bounds


def plug_in_gaps(likelihood: Likelihood, significance: float = 0.05) -> dict[str, float]:
    """ℓ̂(θ̂_i) − ℓ̂(θ̂) = λ_i/(2n) of the groups that Rule 2 selects, in the place of ℓ(θ_i*) − ℓ(θ*), i ∈ I*."""
    verdicts, groups = one_at_a_time(WilksTest(likelihood), significance), likelihood.space.groups
    chosen = sorted(verdicts.supports[0])
    return {groups[g].name: verdicts.tests[g].statistic / 2 / likelihood.total_weight for g in chosen}


@one_vocabulary
def assess(data: Any, actions: Any = None, *, significance: float = 0.05, **source: Unpack[Source]) -> Assessment:
    """The theory of Section 4 on a data set; what data are, is said as to `identify`."""
    return assess_likelihood(*pilot(data, actions, **source), significance)


def assess_likelihood(likelihood: Likelihood, data: Demonstrations, significance: float = 0.05) -> Assessment:
    """The theory on a likelihood that is already made."""
    if data.whole is not None:
        raise InputError(
            f"the paper's bounds need all rows in memory, found {data.num_logged} that are read in passes: take fewer rows."
        )
    check_significance(significance)
    space = likelihood.space.as_linear("theory and planning")
    gaps, d, n = plug_in_gaps(likelihood, significance), space.num_parameters, likelihood.total_weight
    tests = len(space.tested)
    information = likelihood.information()
    sizes = {space.groups[g].name: len(space.groups[g].indices) for g in space.tested}
    # The same promise by the non-central χ²: half of δ for each kind of error.
    strict = Wilks(likelihood.law, significance / 2 / max(tests - len(gaps), 1))
    typical = [pairs_for_power(strict, 2 * gap, sizes[g], 1 - significance / 2 / len(gaps)) for g, gap in gaps.items()]
    return Assessment(
        [
            _bounds(name, likelihood, coordinates, gaps, significance)
            for name, coordinates in _coordinates(space, likelihood, data, information).items()
        ],
        gaps, tests, data.num_pairs, d, significance, float(chdtri(d, significance)) / 2 / n,
        likelihood.law.critical(significance / tests, max(sizes.values())), max(typical, default=None),
        _warnings(likelihood, space, gaps),
    )  # fmt: skip


@dataclass(frozen=True)
class _Coordinates:
    feature_bound: float
    scale: float
    smallest_eigenvalue: float
    typical_error: float  # times √n
    parameter_size: float


def _coordinates(
    space: ExponentialFamily, likelihood: Likelihood, data: Demonstrations, information: np.ndarray
) -> dict[str, _Coordinates]:
    """σ, λ̂_min and ‖θ̂‖ as given, and where it can be done with features (and actions) made uncorrelated first."""
    weights = space.weights(likelihood.full.theta - space.fixed)
    longest = plug_in_feature_bound(space, data.features)
    covariance = space.noise_covariance(likelihood.full.theta, data)
    scale = boltzmann_scale(longest) if covariance is None else gaussian_scale(longest, covariance)
    # At infinity, where a separated θ̂ lies, the information is zero.
    regular = likelihood.identifiable and not likelihood.full.separated
    smallest = smallest_eigenvalue(information) if regular else 0.0
    error = float(np.sqrt(np.trace(np.linalg.inv(information)))) if regular else np.inf
    found = {"as given": _Coordinates(longest, scale, smallest, error, float(np.linalg.norm(weights)))}
    if regular:
        phi = space.design(data.features)
        share = np.full(len(phi), 1 / len(phi)) if data.weights is None else data.weights / data.weights.sum()
        values, vectors = np.linalg.eigh((phi * share[:, None]).T @ phi)
        whiten, colour = (vectors * values**-0.5) @ vectors.T, (vectors * values**0.5) @ vectors.T
        longest = float(np.linalg.norm(phi @ whiten, axis=1).max())
        if covariance is not None:
            weights = np.linalg.solve(np.linalg.cholesky(covariance), weights)
            scale, smallest, error = longest, 1.0, float(np.sqrt(space.num_parameters))
        else:
            both = np.kron(np.eye(len(weights)), whiten)
            information = both @ information @ both
            scale, smallest = boltzmann_scale(longest), smallest_eigenvalue(information)
            error = float(np.sqrt(np.trace(np.linalg.inv(information))))
        found["whitened"] = _Coordinates(longest, scale, smallest, error, float(np.linalg.norm(weights @ colour)))
    return found


def _bounds(name: str, likelihood: Likelihood, at: _Coordinates, gaps: dict[str, float], significance: float) -> Bounds:
    n, d, tests = likelihood.total_weight, likelihood.space.num_parameters, len(likelihood.space.tested)
    if not at.smallest_eigenvalue > 0:
        never = np.inf if gaps else None
        return Bounds(
            name,
            at.feature_bound,
            at.scale,
            0.0,
            np.inf,
            np.inf,
            at.parameter_size,
            np.inf,
            np.inf,
            None,
            np.inf,
            never,
        )
    arguments = (n, d, at.scale, at.smallest_eigenvalue, significance)
    error = parameter_bound(*arguments)
    setting = Setting(d, tests - len(gaps), tuple(gaps.values()), at.scale, at.smallest_eigenvalue)
    return Bounds(
        name, at.feature_bound, at.scale, at.smallest_eigenvalue, error,
        at.typical_error / np.sqrt(n), at.parameter_size, likelihood_bound(*arguments),
        n * critical_value(significance, n, d, at.scale, at.smallest_eigenvalue, tests),
        best_critical_value(n, setting)[1] if gaps else None,
        n * (error / at.parameter_size) ** 2,  # the bound falls as 1/√n
        pairs_for_correctness(significance, setting) if gaps else None,
    )  # fmt: skip


def _warnings(likelihood: Likelihood, space: ExponentialFamily, gaps: dict[str, float]) -> list[str]:
    found = []
    if not likelihood.identifiable:
        found.append(
            "λ̂_min = 0: on these states different parameters are the same policy, and the theory promises nothing at any n; "
            "drop redundant features (policyspace identify names them)."
        )
    if not space.quadratic:
        found.append(
            "Theorem 4.1 asks for λ̂_min > 0 over all of Θ, and for a Boltzmann policy the infimum over Θ = R^d is 0: shown "
            "is λ̂_min at θ̂. Within a ball around it the smallest is smaller, and bounds that hold are larger still."
        )
    if likelihood.full.separated:
        found.append("the data are separated: θ̂ is at infinity, where the information is zero, and no bound holds.")
    if not gaps:
        found.append("Rule 2 selects nothing here, so that there is no gap to put into the bound on β.")
    return found
