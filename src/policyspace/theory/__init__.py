"""The paper's theory as functions: each one formula, with its place in the paper and its assumptions as arguments."""

from policyspace.fits.fisher import smallest_eigenvalue
from policyspace.theory.assessment import assess, assess_likelihood, plug_in_gaps
from policyspace.theory.concentration import (
    boltzmann_eigenvalue_bound,
    boltzmann_scale,
    deviation_probability,
    empirical_fisher,
    expected_fisher,
    gaussian_scale,
    information_deviation_probability,
    largest_eigenvalue_bound,
    likelihood_bound,
    pairs_for_information,
    pairs_for_information_explicit,
    parameter_bound,
    plug_in_feature_bound,
    projection_probability,
    score_bound,
    subgaussian_scale,
)
from policyspace.theory.configured import gradient_step_gap_bound, population_gap
from policyspace.theory.correctness import (
    Setting,
    best_critical_value,
    correctness_bound,
    critical_value,
    false_negative_bound,
    false_positive_bound,
    pairs_for_correctness,
    power_bound,
)
from policyspace.theory.statements import Assessment, Bounds

__all__ = [
    "Assessment",
    "Bounds",
    "Setting",
    "assess",
    "assess_likelihood",
    "best_critical_value",
    "boltzmann_eigenvalue_bound",
    "boltzmann_scale",
    "correctness_bound",
    "critical_value",
    "deviation_probability",
    "empirical_fisher",
    "expected_fisher",
    "false_negative_bound",
    "false_positive_bound",
    "gaussian_scale",
    "gradient_step_gap_bound",
    "information_deviation_probability",
    "largest_eigenvalue_bound",
    "likelihood_bound",
    "pairs_for_correctness",
    "pairs_for_information",
    "pairs_for_information_explicit",
    "parameter_bound",
    "plug_in_feature_bound",
    "plug_in_gaps",
    "population_gap",
    "power_bound",
    "projection_probability",
    "score_bound",
    "smallest_eigenvalue",
    "subgaussian_scale",
]
