"""Wilks' theorem: λ_I against its law (χ², F or Wilks' Λ), by plain or by Firth's penalised likelihood."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import final

import numpy as np

from policyspace.answer import Assumption
from policyspace.fits.base import Likelihood
from policyspace.fits.fisher import Dependence, dependent_groups
from policyspace.fits.law import ConstantThreshold, ReferenceLaw
from policyspace.inference.base import SupportTest
from policyspace.inference.glr import Test, likelihood_ratio
from policyspace.policies.groups import Support

QUIET = 0.1
"""Restart noise must stay below this share of the critical value for a χ² verdict to mean anything."""

FEW = 10
"""Pairs a parameter below which the χ² law is too liberal for discrete actions; Firth's penalty makes up for it."""


@final
class WilksTest(SupportTest):
    """λ_I falls as supports grow, and its law under H_I is that of the likelihood (Theorem 2.1)."""

    statistic_name = "λ"
    assumes = (*SupportTest.assumes, "finite fit", "enough pairs")
    batch = 64
    effort = 128

    def __init__(self, likelihood: Likelihood) -> None:
        self.likelihood, self.space, self.law = likelihood, likelihood.space, likelihood.law
        self.name = "firth" if likelihood.penalised else "wilks"
        self.most_searched = 24 if likelihood.enumerates else 16

    def test_many(self, supports: Sequence[Support]) -> list[Test]:
        """All fits in one pass, where the likelihood can; a restricted fit that stopped short is no evidence."""
        likelihood = self.likelihood
        fits = likelihood.fit_many(supports)
        for fit in fits:
            likelihood.adopt(fit)
        tests = [likelihood_ratio(fit, likelihood.full) for fit in fits]
        if likelihood.design is None:
            return tests  # what restarts leave open is judged by their noise
        return [t if fit.converged else replace(t, p_value=1.0) for t, fit in zip(tests, fits, strict=True)]

    def evidence(self, test: Test) -> float:
        """λ_I."""
        return test.statistic

    def bracket(self, supports: Sequence[Support], criticals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of λ_I from fits that go on only until their side of the critical value is certain."""
        return self.likelihood.bracket(supports, criticals)

    def evidence_of_all(self, groups: list[int]) -> np.ndarray | None:
        """λ of all supports, where one recursion gives them."""
        return self.likelihood.statistics_of_all(groups) if self.likelihood.enumerates else None

    def expected_evidence(self, groups: list[int], one_out: np.ndarray) -> np.ndarray:
        """The quadratic approximation of λ."""
        screened = self.likelihood.screen(groups)
        return self.degrees_of_all(groups) * 1.0 if screened is None else screened

    def degrees_of_all(self, groups: list[int]) -> np.ndarray:
        """Differences of ranks."""
        return self.likelihood.num_free(self.space.everything) - self.likelihood.num_free_of_all(groups)

    def degrees_of_nothing(self) -> int:
        """All tested scalars, collinear ones aside."""
        return self.likelihood.degrees_of_freedom(frozenset())

    @cached_property
    def dependences(self) -> list[Dependence]:
        """Features that cannot be told apart."""
        return dependent_groups(self.likelihood)

    def law_of_closure(self) -> ReferenceLaw:
        """Where features are collinear without being exchangeable, one threshold for all supports."""
        if self.likelihood.identifiable or all(related.exchangeable for related in self.dependences):
            return self.law
        return ConstantThreshold(self.law, self.likelihood.degrees_of_freedom(frozenset()))

    def prepare(self, groups: Sequence[int]) -> None:
        """Fits that help each other are made together."""
        self.likelihood.prepare(groups)

    def withheld(self, tests: dict[int, Test], significance: float) -> str:
        """Fits of a network that other random starts would change by as much as decides."""
        degrees = min((test.degrees_of_freedom for test in tests.values()), default=0)
        critical = self.law.critical(significance / max(len(tests), 1), degrees)
        noise = self.likelihood.restart_noise
        if not degrees or noise <= QUIET * critical:
            return ""
        return (
            f"with other random starts λ moves by up to {noise:.1f}, which is not far below its critical "
            f"value of {critical:.1f}: use --test universal or --test bootstrap"
        )

    def own_assumptions(self) -> list[Assumption]:
        """Firth's penalty makes every fit finite, and its λ has the χ² law on few pairs too."""
        separated = self.likelihood.full.separated and not self.likelihood.penalised
        words = "the most likely parameters are finite"
        if separated:
            words = "the data are separated, where λ has no χ² law: --test firth keeps its level"
        found = [Assumption("finite fit", not separated, None, words)]
        if few_pairs(self.likelihood) and not self.likelihood.penalised:
            pairs = f"{self.likelihood.total_weight:g} pairs are few for {self.space.num_parameters} parameters"
            words = f"{pairs}, where the χ² law of λ is too liberal: --test firth keeps its level"
            found.append(Assumption("enough pairs", False, None, words))
        return found

    def note(self) -> str:
        """Which ratio, which law."""
        law = {"chi2": "χ²", "F": "the F distribution"}.get(self.law.name, self.law.name)
        if self.likelihood.penalised:
            return f"likelihood ratio with Firth's penalty against {law}"
        return f"likelihood ratio against {law}"


def few_pairs(likelihood: Likelihood) -> bool:
    """Whether these are too few choices for the χ² law of λ."""
    return bool(likelihood.space.discrete) and likelihood.total_weight < FEW * likelihood.space.num_parameters
