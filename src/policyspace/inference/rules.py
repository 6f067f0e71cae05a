"""The two identification rules, on any test of supports: one test a group (Rule 2), or all supports (Rule 1)."""

from dataclasses import dataclass, replace

import numpy as np

from policyspace.fits.law import ReferenceLaw
from policyspace.inference.base import SupportTest
from policyspace.inference.corrections import CORRECTIONS, Correction
from policyspace.inference.glr import Test
from policyspace.inference.lattice import Lattice, minimal, without_sufficient_child
from policyspace.policies.groups import Support
from policyspace.progress import say_progress


@dataclass(frozen=True)
class Verdicts:
    """What a rule concludes: supports that explain the agent, and for every tested group a test and its adjusted p."""

    supports: list[Support]
    tests: dict[int, Test]
    adjusted: dict[int, float]
    exhaustive: bool
    withheld: str = ""  # why no verdict is given, where none is


def one_at_a_time(test: SupportTest, significance: float, correction: Correction = "holm") -> Verdicts:
    """Rule 2: Î = {i : H_{all∖i} is rejected}, one test a group with all others free, corrected for their number.

    E-values that hold for all supports together are not corrected.
    """
    test.prepare(())
    tests = _one_group_out(test)
    p_values = np.array([one.p_value for one in tests.values()])
    corrected = p_values if test.simultaneous else CORRECTIONS[correction](p_values)
    adjusted = dict(zip(tests, corrected.tolist(), strict=True))
    # Who uses an interaction uses what it is made of: the one hypothesis implies the other.
    adjusted = {
        g: min(p, *(adjusted[i] for i in test.space.interactions.get(g, ()) if i in adjusted), 1.0)
        for g, p in adjusted.items()
    }
    selected = frozenset(g for g in tests if adjusted[g] <= significance)
    return Verdicts([selected], tests, adjusted, True)


def all_supports(test: SupportTest, significance: float, paper_rule: bool = False) -> Verdicts:
    """Rule 1: all minimal supports I that explain the data.

    By closed testing (default): H_I is rejected when every H_J, J ⊆ I, is rejected at level δ, with no factor 2^d; what
    is reported are the minimal accepted supports. By the paper's rule: λ_I ≤ c(I) and λ_{I∖i} > c(I∖i) for all i ∈ I, c
    at δ/2^d.
    """
    test.prepare(test.space.tested)
    tests = _one_group_out(test)
    groups = list(tests)
    level, factor = (significance / 2.0 ** len(groups), 2.0 ** len(groups)) if paper_rule else (significance, 1.0)
    law = test.law if paper_rule else test.law_of_closure()
    smallest = test.degrees_of_nothing()
    below = {g: test.evidence_below(tests[g]) for g in groups}
    searched = groups
    if len(groups) > test.most_searched:
        # What fails at the critical value of the smallest support, by evidence that only grows, fails in all.
        certain = law.critical(level, smallest)
        searched = [g for g in groups if below[g] <= certain]
    adjusted = {g: min(1.0, factor * law.p_value(below[g], smallest)) for g in groups}
    if len(searched) > test.most_searched:
        support = _greedy(test, law, level, searched, tests)
        unsure = {g: max(adjusted[g], float(np.nextafter(significance, 1))) for g in searched}
        # Every sufficient support holds the others; where they are enough, no other support is minimal.
        only = not support.intersection(searched) and not paper_rule
        return Verdicts([support], tests, adjusted | unsure, only)
    lattice = Lattice.of(test, searched, [tests[g] for g in searched])
    sufficient = lattice.decide(_criticals(law, level, lattice.degrees_of_freedom), upward_closed=not paper_rule)
    masks = without_sufficient_child(sufficient) if paper_rule else minimal(sufficient)
    largest = lattice.adjusted_p_values(law, sufficient)
    adjusted |= {g: min(1.0, factor * p) for g, p in zip(searched, largest.tolist(), strict=True)}
    supports = sorted((lattice.support(int(mask)) for mask in masks), key=lambda s: (len(s), sorted(s)))
    return Verdicts(supports, tests, adjusted, True)


def _one_group_out(test: SupportTest) -> dict[int, Test]:
    """The test with one group out and all others in, for every tested group."""
    groups = test.space.tested
    say_progress("testing groups")
    return dict(zip(groups, test.test_many([test.space.without(g) for g in groups]), strict=True))


def _criticals(law: ReferenceLaw, level: float, degrees: np.ndarray) -> np.ndarray:
    """The critical value of every support [2^D]."""
    critical = np.zeros(int(degrees.max(initial=0)) + 1)
    for m in np.unique(degrees).tolist():
        critical[m] = law.critical(level, m)
    return critical[degrees]


def _greedy(test: SupportTest, law: ReferenceLaw, level: float, groups: list[int], tests: dict[int, Test]) -> Support:
    """One support from which no single group can be taken away: weakest evidence first, until none can go."""

    def sufficient(support: Support) -> bool:
        one = test.test_many([support])[0]
        return test.evidence(one) <= law.critical(level, one.degrees_of_freedom)

    support, before = test.space.everything, None
    if sufficient(support.difference(groups)):
        return support.difference(groups)
    while support != before:  # what could not go at first may go later: c grows with the degrees of freedom
        before = support
        for g in sorted(support.intersection(groups), key=lambda g: test.evidence(tests[g])):
            if sufficient(support - {g}):
                support = support - {g}
    return support


def unless_withheld(test: SupportTest, significance: float, verdicts: Verdicts) -> Verdicts:
    """Where the test itself is not to be trusted only the full support is certain to do: every group stays undecided."""
    trouble = test.withheld(verdicts.tests, significance)
    if not trouble:
        return verdicts
    everything = [frozenset(verdicts.tests)]
    undecided = dict.fromkeys(verdicts.tests, 1.0)
    return replace(verdicts, supports=everything, adjusted=undecided, exhaustive=False, withheld=trouble)
