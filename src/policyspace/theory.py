"""The paper's bounds (Sections 4 and 5), alone and for one data set."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Unpack

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import chdtri

from policyspace.data.sample import Sample
from policyspace.data.validation import translate_keywords
from policyspace.display import Answer, TextTable, plain_data
from policyspace.errors import InputError
from policyspace.families.base import ExponentialFamily
from policyspace.families.covariance import smallest_eigenvalue
from policyspace.families.likelihood import Likelihood
from policyspace.families.softmax import SoftmaxLinear
from policyspace.identification import SourceOptions, request_of
from policyspace.inference.base import check_significance
from policyspace.inference.parametric import WilksTest
from policyspace.inference.selection import each_group_alone
from policyspace.planning import Wilks, pairs_for_power, pilot
from policyspace.safe_io import JSON

# -- How fast the likelihood and its maximiser settle (Section 4 and Appendix A.2).

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


def boltzmann_eigenvalue_bound(space: SoftmaxLinear, features: np.ndarray, radius: float) -> float:
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


def score_bound(num_rows: float, num_parameters: int, scale: float, significance: float) -> float:
    """‖g(θ̂)‖ ≤ σ√((2d/n) log(2d/δ)) with probability 1 − δ (Lemma A.3); g(θ̂) is the mean score at θ*."""
    d = num_parameters
    check_positive(num_rows=num_rows, num_parameters=d, scale=scale)
    check_significance(significance)
    return float(scale * np.sqrt(2 * d / num_rows * np.log(2 * d / significance)))


def parameter_bound(
    num_rows: float, num_parameters: int, scale: float, smallest_eigenvalue: float, significance: float
) -> float:
    """‖θ̂ − θ*‖ ≤ (σ/λ̂_min) √((2d/n) log(2d/δ)) with probability 1 − δ (Theorem 4.1)."""
    check_positive(smallest_eigenvalue=smallest_eigenvalue)
    return score_bound(num_rows, num_parameters, scale, significance) / smallest_eigenvalue


def likelihood_bound(
    num_rows: float, num_parameters: int, scale: float, smallest_eigenvalue: float, significance: float
) -> float:
    """d²σ⁴/(λ̂²_min n) · log(2d/δ), with probability 1 − δ each above (Theorem 4.1, Corollary of Appendix A.2)

    the expected excess ℓ(θ̂) − ℓ(θ*), and the empirical one ℓ̂(θ*) − ℓ̂(θ̂); 2n times the latter is λ of all parameters.
    """
    error = parameter_bound(num_rows, num_parameters, scale, smallest_eigenvalue, significance)
    return largest_eigenvalue_bound(num_parameters, scale) / 2 * error**2


def deviation_probability(deviation: float, num_rows: float, scale: float, distance: float) -> float:
    """P([ℓ(θ) − ℓ̂(θ)] − [ℓ(θ') − ℓ̂(θ')] > ε) ≤ exp{−ε²n / (2‖θ − θ'‖²σ²)} (Theorem A.2)."""
    check_positive(deviation=deviation, num_rows=num_rows, scale=scale, distance=distance)
    return float(np.exp(-(deviation**2) * num_rows / (2 * distance**2 * scale**2)))


def projection_probability(deviation: float, num_vectors: float, scale: float, length: float) -> float:
    """P(αᵀ mean(X_i) ≥ ε) ≤ exp{−ε²n / (2‖α‖²σ²)} for n independent σ-subgaussian X_i of mean zero (Proposition A.3).

    `length` is ‖α‖. Theorem A.2 is this with α = θ − θ', so one formula serves both.
    """
    return deviation_probability(deviation, num_vectors, scale, length)


# -- the smallest eigenvalue --------------------------------------------------------------------------------------


def information_deviation_probability(
    deviation: float, num_rows: float, num_parameters: int, scale: float, constant: float
) -> float:
    """P(|λ_min(F̂) − λ_min(F)| > ε) ≤ 2 exp{−ε²n / (ψ d²σ⁴)} (Proposition A.4); `constant` is ψ_σ, as below."""
    check_positive(
        deviation=deviation, num_rows=num_rows, num_parameters=num_parameters, scale=scale, constant=constant
    )
    return float(2 * np.exp(-(deviation**2) * num_rows / (constant * num_parameters**2 * scale**4)))


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


# -- When Rule 2 is right: the bounds on α and β, δ-correctness, and c(1) solved from them (Theorem 4.2).


@dataclass(frozen=True)
class Setting:
    """What Theorem 4.2 assumes about the space and the agent; λ̂_min ≥ λ_min/(2√2) is assumed besides."""

    num_parameters: int  # d, those assumed included
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
    critical: float, num_rows: float, num_parameters: int, scale: float, smallest_eigenvalue: float
) -> float:
    """α ≤ 2d exp{−c(1) λ²_min n / (16 d²σ⁴)} (Theorem 4.2); above 1 it says nothing."""
    d = num_parameters
    check_positive(num_rows=num_rows, num_parameters=d, scale=scale, smallest_eigenvalue=smallest_eigenvalue)
    return float(2 * d * np.exp(-critical * smallest_eigenvalue**2 * num_rows / (16 * d**2 * scale**4)))


def false_negative_bound(
    critical: float,
    num_rows: float,
    num_parameters: int,
    scale: float,
    smallest_eigenvalue: float,
    gaps: Sequence[float],
) -> float:
    """β ≤ (2d−1)/d* · Σ_{i∈I*} exp{−(ℓ(θ_i*) − ℓ(θ*) − c(1)) λ_min ν n / (16 (d−1)²σ²)}, ν = min{1, λ_min/σ²}.

    (Theorem 4.2.) It needs every gap ≥ c(1). For d = 1 the paper divides by zero; its proof then leaves (d−1)² → 1.
    """
    d = num_parameters
    check_positive(num_rows=num_rows, num_parameters=d, scale=scale, smallest_eigenvalue=smallest_eigenvalue)
    beyond = np.asarray(gaps, dtype=np.float64) - critical
    if not beyond.size:
        return 0.0
    if beyond.min() < 0:
        raise InputError(
            f"every gap must reach the critical value {critical:.3g} for this bound, found {min(gaps):.3g}: lower c(1)."
        )
    nu = min(1.0, smallest_eigenvalue / scale**2)
    exponents = beyond * smallest_eigenvalue * nu * num_rows / (16 * max(d - 1, 1) ** 2 * scale**2)
    return float((2 * d - 1) * np.exp(-exponents).mean())


def correctness_bound(critical: float, num_rows: float, setting: Setting) -> float:
    """P(Î ≠ I*) ≤ (d − d*)α + d*β (Theorem 4.2): Rule 2 is δ-correct (Definition 4.2) for any δ above it."""
    s = setting
    alpha = false_positive_bound(critical, num_rows, s.num_parameters, s.scale, s.smallest_eigenvalue)
    beta = false_negative_bound(critical, num_rows, s.num_parameters, s.scale, s.smallest_eigenvalue, s.gaps)
    return s.num_uncontrolled * alpha + len(s.gaps) * beta


def critical_value(
    significance: float,
    num_rows: float,
    num_parameters: int,
    scale: float,
    smallest_eigenvalue: float,
    num_tests: int = 1,
) -> float:
    """c(1) = 16 d²σ⁴/(λ²_min n) · log(2d·tests/δ): the smallest with which the bound on tests·α is δ (Theorem 4.2)."""
    d = num_parameters
    check_positive(
        num_rows=num_rows, num_parameters=d, scale=scale, smallest_eigenvalue=smallest_eigenvalue, tests=num_tests
    )
    check_significance(significance)
    return float(16 * d**2 * scale**4 * np.log(2 * d * num_tests / significance) / (smallest_eigenvalue**2 * num_rows))


def power_bound(significance: float, num_rows: float, gap: float, setting: Setting, num_tests: int) -> float:
    """1 − (2d−1) exp{…}: the power that Theorem 4.2 proves for one parameter, c(1) chosen for α; zero where it is void."""
    s = setting
    critical = critical_value(significance, num_rows, s.num_parameters, s.scale, s.smallest_eigenvalue, num_tests)
    if gap < critical:
        return 0.0
    missed = false_negative_bound(critical, num_rows, s.num_parameters, s.scale, s.smallest_eigenvalue, [gap])
    return max(0.0, 1.0 - missed)


def best_critical_value(num_rows: float, setting: Setting) -> tuple[float, float]:
    """The c(1) in [0, min gap] with the smallest bound on P(Î ≠ I*), and that bound: both errors weighed (Theorem 4.2).

    The bound is a sum of exponentials in c, hence convex: its minimum is unique.
    """
    most = min(setting.gaps, default=np.inf)
    if not np.isfinite(most):
        return np.inf, 0.0  # nothing is controlled: never select
    if not setting.num_uncontrolled:
        return 0.0, correctness_bound(0.0, num_rows, setting)
    found = minimize_scalar(
        lambda c: correctness_bound(c, num_rows, setting), bounds=(0, most), method="bounded",
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


# -- What a configuration is worth to the test of some parameters, in the population (Section 5).


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


# -- What the theory says about one data set, in numbers and in words: bounds beside reality.

COLUMNS = ("quantity", "as given", "whitened", "by asymptotics")


@dataclass(frozen=True)
class TheoryBounds:
    """The paper's quantities in one choice of coordinates; likelihoods are means, critical values are of λ."""

    coordinates: str  # "as given", or "whitened": tests do not change with the units of the features, bounds do
    feature_bound: float  # Φ_max over the states seen
    scale: float  # σ
    smallest_eigenvalue: float  # λ̂_min at θ̂
    parameter_bound: float  # of ‖θ̂ − θ*‖
    typical_error: float  # √(tr F̂⁻¹/n), the root mean square of ‖θ̂ − θ*‖
    parameter_size: float  # ‖θ̂‖
    likelihood_bound: float  # of ℓ̂(θ*) − ℓ̂(θ̂)
    critical_value: float  # n·c(1), what Theorem 4.2 compares λ with
    correctness_bound: float | None  # of P(Î ≠ I*) with the best c(1), where something is controlled
    pairs_for_parameters: float  # from here on the bound on ‖θ̂ − θ*‖ is below ‖θ̂‖
    pairs_for_correctness: float | None  # from here on Rule 2 is proven δ-correct


@dataclass(frozen=True)
class Assessment(Answer):
    """What the theory says about these pairs, beside what asymptotics say of the same things."""

    bounds: list[TheoryBounds]
    gaps: dict[str, float]  # plug-in ℓ(θ_i*) − ℓ(θ*) of the groups that Rule 2 selects
    num_tests: int
    num_rows: int
    num_parameters: int
    significance: float
    typical_excess: float  # χ²_{d,1−δ}/(2n), the quantile of ℓ̂(θ*) − ℓ̂(θ̂)
    typical_critical: float  # of λ at δ/tests, for the largest group
    typical_pairs: float | None  # where Rule 2 is δ-correct by the non-central χ²
    warnings: list[str]

    @property
    def setting(self) -> Setting | None:
        """What Theorem 4.2 is given, in the coordinates in which its bound is smallest; None where it has none."""
        best = max(self.bounds, key=lambda b: b.smallest_eigenvalue / b.scale**2)
        if not best.smallest_eigenvalue > 0:
            return None
        free = self.num_tests - len(self.gaps)
        return Setting(self.num_parameters, free, tuple(self.gaps.values()), best.scale, best.smallest_eigenvalue)

    @property
    def sentence(self) -> str:
        """How many rows the theorem asks for, beside how many do."""
        if not any(b.smallest_eigenvalue > 0 for b in self.bounds):
            return "The assumptions of Theorems 4.1 and 4.2 do not hold on these states: there is no bound at any n."
        proven = min(
            (b.pairs_for_correctness for b in self.bounds if b.pairs_for_correctness is not None), default=None
        )
        if proven is None or self.typical_pairs is None:
            return (
                "Nothing is selected, so Theorem 4.2 has no gap to work with; the bounds on θ̂ and ℓ̂ hold all the same."
            )
        return (
            f"Theorem 4.2 proves Rule 2 right with probability {1 - self.significance:g} from {_number(proven)} rows on; "
            f"by the non-central χ² {_number(self.typical_pairs)} do: the theory is loose by a factor of "
            f"{_number(proven / self.typical_pairs)}."
        )

    def rows(self) -> list[tuple[str, ...]]:
        """One tuple a quantity: in both coordinates, and what the same thing is worth asymptotically."""
        confidence = f"{1 - self.significance:g}"
        lines: list[tuple[str, str, str]] = [
            ("Φ_max, longest features seen", "feature_bound", ""),
            ("σ, subgaussian scale", "scale", ""),
            ("λ̂_min, smallest eigenvalue of F̂", "smallest_eigenvalue", ""),
            ("‖θ̂ − θ*‖ at most", "parameter_bound", ""),
            ("‖θ̂ − θ*‖ typically", "typical_error", ""),
            (f"ℓ̂(θ*) − ℓ̂(θ̂) at most ({confidence})", "likelihood_bound", _number(self.typical_excess)),
            ("critical value of λ", "critical_value", _number(self.typical_critical)),
            ("P(Î ≠ I*) at most, with the best c(1)", "correctness_bound", ""),
            ("rows until ‖θ̂ − θ*‖ is below ‖θ̂‖", "pairs_for_parameters", ""),
            (f"rows until Rule 2 is right ({confidence})", "pairs_for_correctness", _number(self.typical_pairs)),
        ]
        return [
            (title, *(_number(getattr(b, field)) for b in self.bounds), *[""] * (2 - len(self.bounds)), typical)
            for title, field, typical in lines
        ]

    def table(self) -> TextTable:
        """The rows under their columns."""
        return TextTable(COLUMNS, self.rows())

    def notes(self) -> list[str]:
        """What must be read with the table."""
        gaps = ", ".join(f"{name} {gap:.3g}" for name, gap in self.gaps.items()) or "none"
        return [
            f"{self.num_rows} rows, {self.num_parameters} parameters, {self.num_tests} tests; δ = {self.significance:g}. "
            "ℓ is the mean negative log-likelihood; a probability above 1 says nothing.",
            f"In the place of what nobody knows stand estimates: the controlled groups and their gaps λ_i/(2n) ({gaps}), "
            "and λ_min at θ̂.",
            "Whitened: features made uncorrelated, of mean square 1. No test notices the difference, the bounds do.",
            *(f"Warning: {warning}" for warning in self.warnings),
        ]

    def to_dict(self) -> dict[str, JSON]:
        """Everything as plain data; what is infinite becomes null."""
        return {name: plain_data(value) for name, value in asdict(self).items()}


def _number(value: float | None) -> str:
    if value is None:
        return "—"
    if value == math.inf:
        return "∞"
    return f"{value:,.0f}".replace(",", " ") if 1000 <= value < 1e6 else f"{value:.3g}"


# -- The paper's theory on one data set, with estimates in the place of what nobody knows, and how loose it is.


def plug_in_gaps(likelihood: Likelihood, significance: float = 0.05) -> dict[str, float]:
    """ℓ̂(θ̂_i) − ℓ̂(θ̂) = λ_i/(2n) of the groups that Rule 2 selects, in the place of ℓ(θ_i*) − ℓ(θ*), i ∈ I*."""
    verdicts, groups = each_group_alone(WilksTest(likelihood), significance), likelihood.space.groups
    chosen = sorted(verdicts.supports[0])
    return {groups[g].name: verdicts.tests[g].statistic / 2 / likelihood.total_weight for g in chosen}


@translate_keywords
def assess(
    data: Any, actions: Any = None, *, significance: float = 0.05, **source: Unpack[SourceOptions]
) -> Assessment:
    """The theory of Section 4 on a data set; what data are, is said as to `identify`."""
    return assess_likelihood(*pilot(request_of(data, actions, **source)), significance)


def assess_likelihood(likelihood: Likelihood, data: Sample, significance: float = 0.05) -> Assessment:
    """The theory on a likelihood that is already made."""
    if not data.in_memory:
        raise InputError(
            f"the paper's bounds need all rows in memory, found {data.num_rows_total} that are read in passes: "
            "take fewer rows."
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
        gaps, tests, data.num_rows, d, significance, float(chdtri(d, significance)) / 2 / n,
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
    space: ExponentialFamily, likelihood: Likelihood, data: Sample, information: np.ndarray
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


def _bounds(
    name: str, likelihood: Likelihood, at: _Coordinates, gaps: dict[str, float], significance: float
) -> TheoryBounds:
    n, d, tests = likelihood.total_weight, likelihood.space.num_parameters, len(likelihood.space.tested)
    if not at.smallest_eigenvalue > 0:
        never = np.inf if gaps else None
        return TheoryBounds(
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
    return TheoryBounds(
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
            "λ̂_min = 0: on these states different parameters are the same policy, and the theory has no bound at any n; "
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
