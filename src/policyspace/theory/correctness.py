"""When Rule 2 is right: the bounds on α and β, δ-correctness, and c(1) solved from them (Theorem 4.2).

ℓ is the mean, as in the appendix: c(1) is measured on the scale of 2(ℓ̂(θ̂_i) − ℓ̂(θ̂)), and λ is compared with n·c(1).
`gaps` are ℓ(θ_i*) − ℓ(θ*) of the controlled i ∈ I*, positive and known to nobody but a simulator; a group of several
parameters may take the place of one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from policyspace.errors import InputError
from policyspace.inference.corrections import check_significance
from policyspace.theory.concentration import check_positive


@dataclass(frozen=True)
class Setting:
    """What Theorem 4.2 assumes about the space and the agent; λ̂_min ≥ λ_min/(2√2) is assumed besides."""

    num_parameters: int  # d, those always controlled included
    num_uncontrolled: int  # d − d*, of the tested
    gaps: tuple[float, ...]  # ℓ(θ_i*) − ℓ(θ*), one for each of the d* controlled
    scale: float
    smallest_eigenvalue: float

    def __post_init__(self) -> None:
        check_positive(
            num_parameters=self.num_parameters, scale=self.scale, smallest_eigenvalue=self.smallest_eigenvalue
        )
        if self.num_uncontrolled < 0 or self.num_uncontrolled + len(self.gaps) > self.num_parameters:
            raise InputError(
                f"{self.num_uncontrolled} uncontrolled and {len(self.gaps)} controlled do not fit into "
                f"{self.num_parameters} parameters."
            )
        for gap in self.gaps:
            check_positive(gap=gap)


def false_positive_bound(
    critical: float, num_pairs: float, num_parameters: int, scale: float, smallest_eigenvalue: float
) -> float:
    """α ≤ 2d exp{−c(1) λ²_min n / (16 d²σ⁴)} (Theorem 4.2); above 1 it says nothing."""
    d = num_parameters
    check_positive(num_pairs=num_pairs, num_parameters=d, scale=scale, smallest_eigenvalue=smallest_eigenvalue)
    return float(2 * d * np.exp(-critical * smallest_eigenvalue**2 * num_pairs / (16 * d**2 * scale**4)))


def false_negative_bound(
    critical: float,
    num_pairs: float,
    num_parameters: int,
    scale: float,
    smallest_eigenvalue: float,
    gaps: Sequence[float],
) -> float:
    """β ≤ (2d−1)/d* · Σ_{i∈I*} exp{−(ℓ(θ_i*) − ℓ(θ*) − c(1)) λ_min ν n / (16 (d−1)²σ²)}, ν = min{1, λ_min/σ²}.

    (Theorem 4.2.) It needs every gap ≥ c(1). For d = 1 the paper divides by zero; its proof then leaves (d−1)² → 1.
    """
    d = num_parameters
    check_positive(num_pairs=num_pairs, num_parameters=d, scale=scale, smallest_eigenvalue=smallest_eigenvalue)
    beyond = np.asarray(gaps, dtype=np.float64) - critical
    if not beyond.size:
        return 0.0
    if beyond.min() < 0:
        raise InputError(
            f"every gap must reach the critical value {critical:.3g} for this bound, found {min(gaps):.3g}: lower c(1)."
        )
    nu = min(1.0, smallest_eigenvalue / scale**2)
    exponents = beyond * smallest_eigenvalue * nu * num_pairs / (16 * max(d - 1, 1) ** 2 * scale**2)
    return float((2 * d - 1) * np.exp(-exponents).mean())


def correctness_bound(critical: float, num_pairs: float, setting: Setting) -> float:
    """P(Î ≠ I*) ≤ (d − d*)α + d*β (Theorem 4.2): Rule 2 is δ-correct (Definition 4.2) for any δ above it."""
    s = setting
    alpha = false_positive_bound(critical, num_pairs, s.num_parameters, s.scale, s.smallest_eigenvalue)
    beta = false_negative_bound(critical, num_pairs, s.num_parameters, s.scale, s.smallest_eigenvalue, s.gaps)
    return s.num_uncontrolled * alpha + len(s.gaps) * beta


def critical_value(
    significance: float,
    num_pairs: float,
    num_parameters: int,
    scale: float,
    smallest_eigenvalue: float,
    num_tests: int = 1,
) -> float:
    """c(1) = 16 d²σ⁴/(λ²_min n) · log(2d·tests/δ): the smallest with which the bound on tests·α is δ (Theorem 4.2)."""
    d = num_parameters
    check_positive(
        num_pairs=num_pairs, num_parameters=d, scale=scale, smallest_eigenvalue=smallest_eigenvalue, tests=num_tests
    )
    check_significance(significance)
    return float(16 * d**2 * scale**4 * np.log(2 * d * num_tests / significance) / (smallest_eigenvalue**2 * num_pairs))


def power_bound(significance: float, num_pairs: float, gap: float, setting: Setting, num_tests: int) -> float:
    """1 − (2d−1) exp{…}: the power that Theorem 4.2 proves for one parameter, c(1) chosen for α; zero where it is void."""
    s = setting
    critical = critical_value(significance, num_pairs, s.num_parameters, s.scale, s.smallest_eigenvalue, num_tests)
    if gap < critical:
        return 0.0
    missed = false_negative_bound(critical, num_pairs, s.num_parameters, s.scale, s.smallest_eigenvalue, [gap])
    return max(0.0, 1.0 - missed)


def best_critical_value(num_pairs: float, setting: Setting) -> tuple[float, float]:
    """The c(1) in [0, min gap] with the smallest bound on P(Î ≠ I*), and that bound: both errors weighed (Theorem 4.2).

    The bound is a sum of exponentials in c, hence convex: its minimum is unique.
    """
    most = min(setting.gaps, default=np.inf)
    if not np.isfinite(most):
        return np.inf, 0.0  # nothing is controlled: never select
    if not setting.num_uncontrolled:
        return 0.0, correctness_bound(0.0, num_pairs, setting)
    found = minimize_scalar(
        lambda c: correctness_bound(c, num_pairs, setting), bounds=(0, most), method="bounded",
        options={"xatol": 1e-12 * most},
    )  # fmt: skip
    return float(found.x), float(found.fun)


def pairs_for_correctness(significance: float, setting: Setting) -> float:
    """The n from which Theorem 4.2 proves Rule 2 δ-correct, with the best c(1)."""
    check_significance(significance)
    if not setting.gaps:
        return 1.0
    low, high = 0.0, 1.0
    while best_critical_value(high, setting)[1] > significance:
        low, high = high, 2 * high
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if best_critical_value(middle, setting)[1] > significance else (low, middle)
    return high
