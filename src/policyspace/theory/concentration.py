"""How fast the likelihood and its maximiser settle (Section 4 and Appendix A.2).

ℓ is the mean negative log-likelihood here, as in the appendix, so that λ = 2n(ℓ̂(θ̂_I) − ℓ̂(θ̂)). The bounds hold given
the states: read ℓ and F as means over the states that were seen, and the states need be neither independent nor many.
`scale` is σ of the subgaussianity assumption (Section 4), `smallest_eigenvalue` a lower bound of λ_min(F̂(θ)) for every
θ on the way from θ* to θ̂.
"""

import numpy as np

from policyspace.errors import InputError
from policyspace.inference.corrections import check_significance
from policyspace.policies.base import ExponentialFamily
from policyspace.policies.boltzmann import BoltzmannLinear

# -- what the bounds are made of ----------------------------------------------------------------------------------


def gaussian_scale(feature_bound: float, covariance: np.ndarray) -> float:
    """σ = Φ_max / √λ_min(Σ), and no smaller σ will do (Proposition A.2)."""
    check_positive(feature_bound=feature_bound)
    smallest = float(np.linalg.eigvalsh(np.atleast_2d(covariance))[0])
    if not smallest > 0:
        raise InputError(f"the covariance must be positive definite, found the eigenvalue {smallest:.3g}.")
    return feature_bound / np.sqrt(smallest)


def boltzmann_scale(feature_bound: float, sharp: bool = False) -> float:
    """σ = 2Φ_max (Proposition A.2); `sharp`: Φ_max/√2, for αᵀt̄ has the range ‖α‖·√2·Φ_max and Hoeffding takes its half."""
    check_positive(feature_bound=feature_bound)
    return feature_bound / np.sqrt(2) if sharp else 2 * feature_bound


def subgaussian_scale(space: ExponentialFamily, feature_bound: float) -> float:
    """σ of the subgaussianity assumption for either linear policy, given Φ_max = sup ‖φ(s)‖, the constant counted."""
    covariance = space.noise_covariance()
    return boltzmann_scale(feature_bound) if covariance is None else gaussian_scale(feature_bound, covariance)


def plug_in_feature_bound(space: ExponentialFamily, features: np.ndarray) -> float:
    """max ‖φ(s_i)‖ over the states that were seen: Φ_max itself, given the states."""
    return float(np.linalg.norm(space.design(features), axis=1).max())


def empirical_fisher(space: ExponentialFamily, theta: np.ndarray, features: np.ndarray) -> np.ndarray:
    """F̂(θ) = (1/n) Σ E[t̄t̄ᵀ] over the states that were seen (Theorem 4.1) [d, d]."""
    return np.asarray(space.fisher(theta, features))


def expected_fisher(
    space: ExponentialFamily, theta: np.ndarray, features: np.ndarray, probabilities: np.ndarray
) -> np.ndarray:
    """F(θ) = E_{s∼d}[E[t̄t̄ᵀ]] over states of known probability (Lemma 4.1) [d, d]."""
    check_probabilities(probabilities, len(features))
    return np.asarray(space.fisher(theta, features, np.asarray(probabilities, dtype=np.float64)))


def largest_eigenvalue_bound(num_parameters: int, scale: float) -> float:
    """λ_max(F(θ,s)) ≤ dσ² (Lemma A.2); σ² would do, since xᵀFx is the variance of a σ-subgaussian variable."""
    check_positive(num_parameters=num_parameters, scale=scale)
    return num_parameters * scale**2


def boltzmann_eigenvalue_bound(space: BoltzmannLinear, features: np.ndarray, radius: float) -> float:
    """A lower bound of λ_min(F̂(θ)) for all ‖θ‖ ≤ R, which Theorem 4.1 needs and Θ = R^d does not have.

    xᵀ(diag p − ppᵀ)x ≥ p_{k+1}·min p_a·‖x‖², and ‖weights·φ‖ ≤ R‖φ‖: so F̂ ⪰ I ⊗ mean κ(R‖φ_i‖) φ_iφ_iᵀ, with
    κ(b) = 1/(1 + k e^b) · e^{−b}/(1 + e^{−b} + (k−1) e^b).
    """
    check_positive(radius=radius)
    phi, k = space.design(features), len(space.row_names)
    b = np.minimum(radius * np.linalg.norm(phi, axis=1), 300.0)
    kappa = np.exp(-b) / ((1 + k * np.exp(b)) * (1 + np.exp(-b) + (k - 1) * np.exp(b)))
    return max(float(np.linalg.eigvalsh((phi * kappa[:, None]).T @ phi / len(phi))[0]), 0.0)


# -- concentration ------------------------------------------------------------------------------------------------


def score_bound(num_pairs: float, num_parameters: int, scale: float, significance: float) -> float:
    """‖g(θ̂)‖ ≤ σ√((2d/n) log(2d/δ)) with probability 1 − δ (Lemma A.3); g(θ̂) is the mean score at θ*."""
    d = num_parameters
    check_positive(num_pairs=num_pairs, num_parameters=d, scale=scale)
    check_significance(significance)
    return float(scale * np.sqrt(2 * d / num_pairs * np.log(2 * d / significance)))


def parameter_bound(
    num_pairs: float, num_parameters: int, scale: float, smallest_eigenvalue: float, significance: float
) -> float:
    """‖θ̂ − θ*‖ ≤ (σ/λ̂_min) √((2d/n) log(2d/δ)) with probability 1 − δ (Theorem 4.1)."""
    check_positive(smallest_eigenvalue=smallest_eigenvalue)
    return score_bound(num_pairs, num_parameters, scale, significance) / smallest_eigenvalue


def likelihood_bound(
    num_pairs: float, num_parameters: int, scale: float, smallest_eigenvalue: float, significance: float
) -> float:
    """d²σ⁴/(λ̂²_min n) · log(2d/δ), with probability 1 − δ each above (Theorem 4.1, Corollary of Appendix A.2)

    the expected excess ℓ(θ̂) − ℓ(θ*), and the empirical one ℓ̂(θ*) − ℓ̂(θ̂); 2n times the latter is λ of all parameters.
    """
    error = parameter_bound(num_pairs, num_parameters, scale, smallest_eigenvalue, significance)
    return largest_eigenvalue_bound(num_parameters, scale) / 2 * error**2


def deviation_probability(deviation: float, num_pairs: float, scale: float, distance: float) -> float:
    """P([ℓ(θ) − ℓ̂(θ)] − [ℓ(θ') − ℓ̂(θ')] > ε) ≤ exp{−ε²n / (2‖θ − θ'‖²σ²)} (Theorem A.2)."""
    check_positive(deviation=deviation, num_pairs=num_pairs, scale=scale, distance=distance)
    return float(np.exp(-(deviation**2) * num_pairs / (2 * distance**2 * scale**2)))


def projection_probability(deviation: float, num_vectors: float, scale: float, length: float) -> float:
    """P(αᵀ mean(X_i) ≥ ε) ≤ exp{−ε²n / (2‖α‖²σ²)} for n independent σ-subgaussian X_i of mean zero (Proposition A.3).

    `length` is ‖α‖. Theorem A.2 is this with α = θ − θ', so one formula serves both.
    """
    return deviation_probability(deviation, num_vectors, scale, length)


# -- the smallest eigenvalue --------------------------------------------------------------------------------------


def information_deviation_probability(
    deviation: float, num_pairs: float, num_parameters: int, scale: float, constant: float
) -> float:
    """P(|λ_min(F̂) − λ_min(F)| > ε) ≤ 2 exp{−ε²n / (ψ d²σ⁴)} (Proposition A.4); `constant` is ψ_σ, as below."""
    check_positive(
        deviation=deviation, num_pairs=num_pairs, num_parameters=num_parameters, scale=scale, constant=constant
    )
    return float(2 * np.exp(-(deviation**2) * num_pairs / (constant * num_parameters**2 * scale**4)))


def pairs_for_information(
    num_parameters: int, scale: float, smallest_eigenvalue: float, significance: float, constant: float
) -> float:
    """n > d²σ⁴ψ log(2/δ) / λ²_min gives λ̂_min > 0 with probability 1 − δ (Proposition A.4).

    `constant` is ψ_σ, of which only the existence is known; `pairs_for_information_explicit` needs no such number.
    """
    check_positive(
        num_parameters=num_parameters, scale=scale, smallest_eigenvalue=smallest_eigenvalue, constant=constant
    )
    check_significance(significance)
    return float(num_parameters**2 * scale**4 * constant * np.log(2 / significance) / smallest_eigenvalue**2)


def pairs_for_information_explicit(
    num_parameters: int,
    scale: float,
    smallest_eigenvalue: float,
    significance: float,
    share: float = 1 / (2 * np.sqrt(2)),
) -> float:
    """n ≥ σ² log(d/δ) / (λ_min (1 − x + x log x)) gives λ̂_min ≥ x·λ_min with probability 1 − δ; x = 1/(2√2) in Theorem 4.2.

    By the matrix Chernoff inequality (Tropp 2012, Theorem 1.1), for F̂ is a mean of independent F(θ,s_i) ⪯ σ²I.
    """
    check_positive(num_parameters=num_parameters, scale=scale, smallest_eigenvalue=smallest_eigenvalue)
    check_significance(significance)
    if not 0 <= share < 1:
        raise InputError(f"the share of λ_min that is to be kept must lie between 0 and 1, found {share:g}.")
    exponent = 1 - share + (share * np.log(share) if share else 0.0)
    return float(scale**2 * np.log(num_parameters / significance) / (smallest_eigenvalue * exponent))


# -- assumptions --------------------------------------------------------------------------------------------------


def check_positive(**values: float) -> None:
    """Assumption: these numbers are positive and finite."""
    for name, value in values.items():
        if not (np.isfinite(value) and value > 0):
            words = name.replace("_", " ")
            reason = ": the policy space is not identifiable on these states" if name == "smallest_eigenvalue" else ""
            raise InputError(f"the {words} must be positive and finite for this bound, found {value:g}{reason}.")


def check_probabilities(probabilities: np.ndarray, num_states: int) -> None:
    """Assumption: one probability a state, adding up to 1."""
    total = float(np.sum(probabilities))
    if np.shape(probabilities) != (num_states,) or np.min(probabilities) < 0 or abs(total - 1) > 1e-9:
        raise InputError(
            f"there must be one probability for each of the {num_states} states, adding up to 1: "
            f"found {np.size(probabilities)} adding up to {total:g}."
        )
