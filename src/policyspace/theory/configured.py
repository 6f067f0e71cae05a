"""What a configuration is worth to the test of some parameters, in the population (Section 5).

A test of the parameters I has more power the more likelihood the agent's policy loses without them. `population_gap` is
that loss, the ideal objective of Section 5; `gradient_step_gap_bound` is the lower bound that C_I estimates.
"""

import numpy as np

from policyspace.errors import InputError
from policyspace.policies.base import ExponentialFamily
from policyspace.theory.concentration import check_positive, check_probabilities


def population_gap(
    space: ExponentialFamily,
    theta: np.ndarray,
    restricted: np.ndarray,
    features: np.ndarray,
    probabilities: np.ndarray,
) -> float:
    """ℓ(θ_I*) − ℓ(θ*) = E_{s∼d}[KL(π_θ*(·|s) ‖ π_θ_I*(·|s))], the ideal objective of Section 5 in one environment.

    `theta` is the agent's policy θ*(ω), `restricted` the best one without the tested parameters, θ_I*(ω); `features` [n, q]
    are the states and `probabilities` [n] how often θ*(ω) visits them in ω. One pair is worth twice this in λ.
    """
    check_probabilities(probabilities, len(features))
    mine, other = space.natural(np.asarray(theta), features), space.natural(np.asarray(restricted), features)
    divergence = space.cumulant(other) - space.cumulant(mine)
    divergence -= np.sum(space.cumulant_gradient(mine) * (other - mine), axis=-1)
    return float(np.asarray(probabilities) @ divergence)


def gradient_step_gap_bound(gradient: np.ndarray, tested: np.ndarray, step: float, smallest_eigenvalue: float) -> float:
    """ℓ(θ_I*(ω)) − ℓ(θ*(ω)) ≥ (λ_min α²/2) ‖∇J_ω(θ*(ω₀)) restricted to the tested parameters‖² (Theorem 5.1).

    Both policies are one gradient step of size α = `step` away from θ*(ω₀), the restricted one without moving the
    `tested` parameters [d] (a mask). λ_min bounds the eigenvalues of F(θ) from below for every θ between the two.
    """
    mask = np.asarray(tested)
    if mask.dtype != bool or mask.shape != np.shape(gradient):
        raise InputError(
            f"'tested' must say True or False for each of the {np.size(gradient)} components of the gradient, "
            f"found {mask.dtype} of shape {mask.shape}."
        )
    check_positive(step=step, smallest_eigenvalue=smallest_eigenvalue)
    return float(smallest_eigenvalue * step**2 / 2 * np.sum(np.asarray(gradient)[mask] ** 2))
