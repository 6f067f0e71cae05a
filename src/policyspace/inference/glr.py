"""The generalised likelihood ratio test of one hypothesis H_I: π* ∈ Π_{Θ_I} (Section 3)."""

from dataclasses import dataclass

from policyspace.errors import InputError
from policyspace.fits.base import Fit
from policyspace.policies.groups import Support

ACCURACY = 1e-6
"""What λ is worth: fits agree with each other to half of this."""


@dataclass(frozen=True)
class Test:
    """λ_I with its degrees of freedom, the number of scalars that Θ_I fixes, and its p-value."""

    __test__ = False  # not a test of this project, whatever pytest thinks of the name

    support: Support
    statistic: float
    degrees_of_freedom: int
    p_value: float
    evidence: float = float("nan")  # E, where the test is an e-value: its mean is at most 1 under the hypothesis


def likelihood_ratio(restricted: Fit, full: Fit) -> Test:
    """λ_I = 2(ℓ̂(θ̂_I) − ℓ̂(θ̂)), measured against Wilks' χ², or against F if the covariance is estimated.

    F is exact for one action on states that were fixed; on trajectories it holds as the number of episodes grows.
    """
    statistic = 2.0 * (full.log_likelihood - restricted.log_likelihood)
    if statistic < -ACCURACY * max(1.0, 1e-9 * abs(full.log_likelihood)):
        raise InputError(
            f"the restricted fit is more likely than the full one (λ = {statistic:.3g}): the full fit has not converged; "
            "fit it again, starting from the restricted one."
        )
    if statistic != statistic:
        raise InputError("λ is not a number, for a likelihood overflowed: measure the features in other units.")
    statistic = max(statistic, 0.0)  # two separate fits of the same maximum differ by their rounding
    degrees_of_freedom = full.num_free - restricted.num_free
    p_value = restricted.law.p_value(statistic, degrees_of_freedom)
    return Test(restricted.support, statistic, degrees_of_freedom, p_value)
