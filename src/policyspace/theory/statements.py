"""What the theory says about one data set, in numbers and in words: bounds beside reality."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from policyspace.shown import Answer, plain_data
from policyspace.table import Table
from policyspace.theory.correctness import Setting

COLUMNS = ("quantity", "as given", "whitened", "by asymptotics")


@dataclass(frozen=True)
class Bounds:
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

    bounds: list[Bounds]
    gaps: dict[str, float]  # plug-in ℓ(θ_i*) − ℓ(θ*) of the groups that Rule 2 selects
    num_tests: int
    num_pairs: int
    num_parameters: int
    significance: float
    typical_excess: float  # χ²_{d,1−δ}/(2n), the quantile of ℓ̂(θ*) − ℓ̂(θ̂)
    typical_critical: float  # of λ at δ/tests, for the largest group
    typical_pairs: float | None  # where Rule 2 is δ-correct by the non-central χ²
    warnings: list[str]

    @property
    def setting(self) -> Setting | None:
        """What Theorem 4.2 is given, in the coordinates in which it promises most; None where it promises nothing."""
        best = max(self.bounds, key=lambda b: b.smallest_eigenvalue / b.scale**2)
        if not best.smallest_eigenvalue > 0:
            return None
        free = self.num_tests - len(self.gaps)
        return Setting(self.num_parameters, free, tuple(self.gaps.values()), best.scale, best.smallest_eigenvalue)

    @property
    def sentence(self) -> str:
        """How many pairs the theorem asks for, beside how many do."""
        if not any(b.smallest_eigenvalue > 0 for b in self.bounds):
            return "The assumptions of Theorems 4.1 and 4.2 do not hold on these states: they promise nothing at any n."
        proven = min(
            (b.pairs_for_correctness for b in self.bounds if b.pairs_for_correctness is not None), default=None
        )
        if proven is None or self.typical_pairs is None:
            return (
                "Nothing is selected, so Theorem 4.2 has no gap to work with; the bounds on θ̂ and ℓ̂ hold all the same."
            )
        return (
            f"Theorem 4.2 proves Rule 2 right with probability {1 - self.significance:g} from {_number(proven)} pairs on; "
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
            ("pairs until ‖θ̂ − θ*‖ is below ‖θ̂‖", "pairs_for_parameters", ""),
            (f"pairs until Rule 2 is right ({confidence})", "pairs_for_correctness", _number(self.typical_pairs)),
        ]
        return [
            (title, *(_number(getattr(b, field)) for b in self.bounds), *[""] * (2 - len(self.bounds)), typical)
            for title, field, typical in lines
        ]

    def table(self) -> Table:
        """The rows under their columns."""
        return Table(COLUMNS, self.rows())

    def notes(self) -> list[str]:
        """What must be read with the table."""
        gaps = ", ".join(f"{name} {gap:.3g}" for name, gap in self.gaps.items()) or "none"
        return [
            f"{self.num_pairs} pairs, {self.num_parameters} parameters, {self.num_tests} tests; δ = {self.significance:g}. "
            "ℓ is the mean negative log-likelihood; a probability above 1 says nothing.",
            f"In the place of what nobody knows stand estimates: the controlled groups and their gaps λ_i/(2n) ({gaps}), "
            "and λ_min at θ̂.",
            "Whitened: features made uncorrelated, of mean square 1. No test notices the difference, the bounds do.",
            *(f"Warning: {warning}" for warning in self.warnings),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data; what is infinite becomes null."""
        plain: dict[str, Any] = plain_data(asdict(self))
        return plain


def _number(value: float | None) -> str:
    if value is None:
        return "—"
    if value == math.inf:
        return "∞"
    return f"{value:,.0f}".replace(",", " ") if 1000 <= value < 1e6 else f"{value:.3g}"
