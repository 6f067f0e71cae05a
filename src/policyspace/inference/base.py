"""A test of H_I for every support I: the one interface that the rules and the search over supports know."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policyspace.answer import Assumption
from policyspace.fits.law import ReferenceLaw
from policyspace.inference.glr import Test
from policyspace.policies.base import PolicySpace
from policyspace.policies.groups import Support


@dataclass(frozen=True)
class EvidenceLaw:
    """Evidence on the scale −2·log p: exp(−evidence/2) is a p-value, and for e-values evidence = 2·log E."""

    name: str = "evidence"

    def p_value(self, statistic: float, degrees_of_freedom: int) -> float:
        """min(1, exp(−evidence/2)); a hypothesis that fixes nothing cannot be rejected."""
        return float(np.exp(-0.5 * max(statistic, 0.0))) if degrees_of_freedom else 1.0

    def critical(self, significance: float, degrees_of_freedom: int) -> float:
        """The largest evidence that does not reject: a p-value equal to the significance does."""
        return float(np.nextafter(-2.0 * np.log(significance), -np.inf)) if degrees_of_freedom else np.inf

    def power(self, noncentrality: float, significance: float, degrees_of_freedom: int) -> float:
        """The law of p-values under the alternative is not known here."""
        return float("nan")


class SupportTest(ABC):
    """A test of every H_I at any level: p-values of supports, and how those of several supports may be read together.

    The search over supports works on evidence: λ for Wilks' theorem, 2·log E for e-values, −2·log p for the rest; `law`
    turns it into p-values. Only `test_many` must be written for a new test.
    """

    name: str
    statistic_name: str  # what the number beside the p-value is
    space: PolicySpace
    law: ReferenceLaw = EvidenceLaw()
    assumes: tuple[str, ...] = (
        "form", "noise", "independent rows", "no feedback", "rows are their own subjects", "weights are counts",
    )  # fmt: skip
    """What its promise rests on."""
    simultaneous = False  # whether all true H_I keep the level together, so that no correction is due
    monotone = True  # whether the evidence against H_I only grows as I shrinks
    most_searched = 12  # groups whose supports are searched exhaustively
    batch = 1  # supports that are tried together on either side of the critical value
    effort = 0  # tests that may be spent on nothing but sharper adjusted p-values
    sampled = False  # whether it looks at a sample only, where a log is read in passes

    @abstractmethod
    def test_many(self, supports: Sequence[Support]) -> list[Test]:
        """The tests of several H_I."""

    def evidence(self, test: Test) -> float:
        """The evidence against H_I, on the scale of `law`."""
        return -2.0 * float(np.log(test.p_value)) if test.p_value > 0 else float("inf")

    def evidence_below(self, test: Test) -> float:
        """What the evidence against every H_J, J ⊂ I, is at least, from the test of H_I alone."""
        return self.evidence(test) if self.monotone else 0.0

    def bracket(self, supports: Sequence[Support], criticals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of the evidence, tight enough to say on which side of its critical value each lies."""
        exact = np.array([self.evidence(test) for test in self.test_many(supports)])
        return exact, exact

    def evidence_of_all(self, groups: list[int]) -> np.ndarray | None:
        """The evidence against all 2^D supports of some groups, where it comes at once."""
        return None

    def expected_evidence(self, groups: list[int], one_out: np.ndarray) -> np.ndarray:
        """A guess of the evidence of all 2^D supports, which orders the search: that of the groups left out, added up."""
        total = np.zeros(2 ** len(groups))
        for bit, evidence in enumerate(one_out):
            total.reshape(-1, 2, 1 << bit)[:, 0] += evidence
        return total

    def degrees_of_all(self, groups: list[int]) -> np.ndarray:
        """The degrees of freedom of all 2^D supports; only whether there are any matters, unless the law says otherwise."""
        degrees = np.ones(2 ** len(groups), dtype=np.int64)
        degrees[-1] = 0
        return degrees

    def degrees_of_nothing(self) -> int:
        """The degrees of freedom of the smallest support, in which no tested group is."""
        return 1

    def law_of_closure(self) -> ReferenceLaw:
        """The law that closed testing over all supports may use."""
        return self.law

    def prepare(self, groups: Sequence[int]) -> None:  # noqa: B027 (most tests have nothing to prepare)
        """Called before the supports of these groups are searched."""

    def withheld(self, tests: dict[int, Test], significance: float) -> str:
        """Why no verdict can be given, or nothing."""
        return ""

    @property
    def dependence(self) -> str:
        """What is taken as independent of each other: rows, blocks, episodes or subjects."""
        return "rows"

    def condition(self) -> str:
        """What must be true for the promise to hold, in words."""
        return (
            "the policy is one of the given space, with the noise that it says, and rows are independent decisions given "
            "their states"
        )

    def own_assumptions(self) -> list[Assumption]:
        """What this test assumes beyond the policy space, and whether the data contradict it."""
        return []

    def behavioural_effect(self, group: int) -> float | None:
        """How much the action changes when a group is replaced by what the others predict; None: ask the fitted policy."""
        return None

    def note(self) -> str:
        """What a reader must know about these p-values, if anything."""
        return ""


def e_value(log_e: float) -> float:
    """E from its logarithm, cut off where a number could not hold it."""
    return float(np.exp(min(log_e, 300.0)))
