"""The words for what the theory says: a sentence and a table, bound beside reality."""

import math
from typing import TYPE_CHECKING

from policyspace.table import Table, page_of_text

if TYPE_CHECKING:
    from policyspace.theory.assessment import Assessment

COLUMNS = ("quantity", "as given", "whitened", "by asymptotics")


def assessment_sentence(found: "Assessment") -> str:
    """How many pairs the theorem asks for, beside how many do."""
    if not any(b.smallest_eigenvalue > 0 for b in found.bounds):
        return "The assumptions of Theorems 4.1 and 4.2 do not hold on these states: they promise nothing at any n."
    proven = min((b.pairs_for_correctness for b in found.bounds if b.pairs_for_correctness is not None), default=None)
    if proven is None or found.typical_pairs is None:
        return "Nothing is selected, so Theorem 4.2 has no gap to work with; the bounds on θ̂ and ℓ̂ hold all the same."
    return (
        f"Theorem 4.2 proves Rule 2 right with probability {1 - found.significance:g} from {_number(proven)} pairs on; by "
        f"the non-central χ² {_number(found.typical_pairs)} do: the theory is loose by a factor of "
        f"{_number(proven / found.typical_pairs)}."
    )


def assessment_rows(found: "Assessment") -> list[tuple[str, ...]]:
    """One tuple a quantity: in both coordinates, and what the same thing is worth asymptotically."""
    confidence = f"{1 - found.significance:g}"
    lines: list[tuple[str, str, str]] = [
        ("Φ_max, longest features seen", "feature_bound", ""),
        ("σ, subgaussian scale", "scale", ""),
        ("λ̂_min, smallest eigenvalue of F̂", "smallest_eigenvalue", ""),
        ("‖θ̂ − θ*‖ at most", "parameter_bound", ""),
        ("‖θ̂ − θ*‖ typically", "typical_error", ""),
        (f"ℓ̂(θ*) − ℓ̂(θ̂) at most ({confidence})", "likelihood_bound", _number(found.typical_excess)),
        ("critical value of λ", "critical_value", _number(found.typical_critical)),
        ("P(Î ≠ I*) at most, with the best c(1)", "correctness_bound", ""),
        ("pairs until ‖θ̂ − θ*‖ is below ‖θ̂‖", "pairs_for_parameters", ""),
        (f"pairs until Rule 2 is right ({confidence})", "pairs_for_correctness", _number(found.typical_pairs)),
    ]
    return [
        (title, *(_number(getattr(b, field)) for b in found.bounds), *[""] * (2 - len(found.bounds)), typical)
        for title, field, typical in lines
    ]


def assessment_notes(found: "Assessment") -> list[str]:
    """What must be read with the table."""
    gaps = ", ".join(f"{name} {gap:.3g}" for name, gap in found.gaps.items()) or "none"
    return [
        f"{found.num_pairs} pairs, {found.num_parameters} parameters, {found.num_tests} tests; δ = {found.significance:g}. "
        "ℓ is the mean negative log-likelihood; a probability above 1 says nothing.",
        f"In the place of what nobody knows stand estimates: the controlled groups and their gaps λ_i/(2n) ({gaps}), and "
        "λ_min at θ̂.",
        "Whitened: features made uncorrelated, of mean square 1. No test notices the difference, the bounds do.",
        *(f"Warning: {warning}" for warning in found.warnings),
    ]


def assessment_text(found: "Assessment") -> str:
    """Sentence, table and notes."""
    table = Table(COLUMNS, assessment_rows(found)).text()
    return page_of_text(assessment_sentence(found), table, assessment_notes(found))


def _number(value: float | None) -> str:
    if value is None:
        return "—"
    if value == math.inf:
        return "∞"
    return f"{value:,.0f}".replace(",", " ") if 1000 <= value < 1e6 else f"{value:.3g}"
