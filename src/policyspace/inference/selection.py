"""The simplified and the combinatorial rule, and the search over supports."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from policyspace.answer import Note
from policyspace.families.base import Support
from policyspace.families.likelihood import NullDistribution
from policyspace.inference.base import CORRECTIONS, Correction, SupportTest, TestResult
from policyspace.runtime import say_progress

# -- Rule 1's search: which of the 2^D supports are sufficient, and which of those are minimal — exactly.


@dataclass
class Lattice:
    """Bounds on the evidence against the 2^D supports of some groups (bit g ⇔ groups[g] is in), all others being in.

    Where the evidence of a test only grows as supports shrink (λ, e-values), what is known of one support bounds all its
    subsets from below and all its supersets from above; elsewhere only what the test itself says of subsets is used.
    """

    test: SupportTest
    groups: list[int]
    degrees_of_freedom: np.ndarray  # [2^D]
    lower: np.ndarray
    upper: np.ndarray
    one_out: np.ndarray = field(default_factory=lambda: np.zeros(0))  # the evidence with one group out
    num_tests: int = 0

    @classmethod
    def of(cls, test: SupportTest, groups: list[int], one_out: Sequence[TestResult] = ()) -> "Lattice":
        """Exact where all evidence comes at once, otherwise knowing the supports with one group out, if they were tested."""
        degrees = test.degrees_of_all(groups)
        exact = test.evidence_of_all(groups)
        if exact is not None:
            return cls(test, groups, degrees, exact, exact)
        lower, upper = np.zeros(2 ** len(groups)), np.full(2 ** len(groups), np.inf)
        upper[-1] = 0.0
        lattice = cls(test, groups, degrees, lower, upper)
        if one_out:
            masks = 2 ** len(groups) - 1 - 2 ** np.arange(len(groups))
            lattice.one_out = np.array([test.evidence(t) for t in one_out])
            lattice.learn(
                masks, lattice.one_out, lattice.one_out, np.array([test.evidence_lower_bound(t) for t in one_out])
            )
        return lattice

    @property
    def exact(self) -> bool:
        """Whether all evidence is known."""
        return self.lower is self.upper

    def support(self, mask: int) -> Support:
        """The support that a bit mask stands for."""
        absent = {g for bit, g in enumerate(self.groups) if not mask >> bit & 1}
        return self.test.space.full_support - absent

    def learn(self, masks: np.ndarray, lower: np.ndarray, upper: np.ndarray, below: np.ndarray) -> None:
        """Take in bounds on some supports and, from `below`, on all that are smaller."""
        self.num_tests += len(masks)
        self.lower[masks] = np.maximum(self.lower[masks], lower)
        self.upper[masks] = np.minimum(self.upper[masks], upper)
        floor = np.zeros_like(self.lower)
        floor[masks] = below
        for bit in range(len(self.groups)):
            low = _halves(floor, bit)
            np.maximum(low[:, 0], low[:, 1], out=low[:, 0])
            if self.test.monotone:
                up = _halves(self.upper, bit)
                np.minimum(up[:, 1], up[:, 0], out=up[:, 1])
        np.maximum(self.lower, floor, out=self.lower)

    def measure(self, masks: np.ndarray) -> None:
        """Test some supports to the end."""
        tests = self.test.test_many([self.support(int(mask)) for mask in masks])
        evidence = np.array([self.test.evidence(test) for test in tests])
        self.learn(masks, evidence, evidence, np.array([self.test.evidence_lower_bound(test) for test in tests]))

    def decide(self, critical: np.ndarray, upward_closed: bool) -> np.ndarray:
        """Which supports are sufficient, evidence ≤ c_I [2^D], as far as the minimal ones depend on it.

        Only supports that the bounds leave open are tested: first large ones that are expected to fail (they settle
        their subsets) and small ones that are expected to hold (nothing above them matters any more).
        """
        if self.exact:
            return self.upper <= critical
        size = np.bitwise_count(np.arange(2 ** len(self.groups)))
        holds = self.test.expected_evidence(self.groups, self.one_out) <= critical
        while True:
            accepted = self.upper <= critical
            unknown = ~accepted & ~(self.lower > critical)
            if upward_closed:
                wanted = ~_any_child(_any_subset(accepted))
            else:  # candidates, and what could still disqualify one
                barren = ~_any_child(accepted)
                wanted = barren | _any_neighbour(accepted & barren, 0, 1)
            todo = np.flatnonzero(unknown & wanted)
            if not len(todo):
                return accepted
            say_progress("searching supports", len(unknown) - int(unknown.sum()), len(unknown))
            order = np.lexsort((todo, np.where(holds[todo], size[todo], -size[todo])))
            rejects = [m for m in todo[order] if not holds[m]][: self.test.batch]
            accepts = [m for m in todo[order] if holds[m]][: self.test.batch]
            self._settle(np.array(rejects + accepts), critical)

    def _settle(self, masks: np.ndarray, critical: np.ndarray) -> None:
        """Find out on which side of its critical value each support lies."""
        if not self.test.monotone:
            self.measure(masks)
            return
        lower, upper = self.test.bound_statistics([self.support(int(m)) for m in masks], critical[masks])
        self.learn(masks, lower, upper, lower)

    def adjusted_p_values(self, law: NullDistribution, accepted: np.ndarray) -> np.ndarray:
        """For each group max p_I over the supports without it [D]: the p-value of closed testing.

        Where not all evidence is known, at most `effort` more tests close the gap; what stays open is bounded from above.
        A test without effort looks only at supports that have no accepted subset, and at those that are accepted.
        """
        effort = self.test.effort if len(self.groups) > 6 else 2 ** len(self.groups) * bool(self.test.effort)
        relevant = np.ones(len(self.lower), dtype=bool)
        if not self.test.effort and not self.exact:
            relevant = ~_any_child(_any_subset(accepted))
            open_ = np.flatnonzero(relevant & accepted & (self.upper > self.lower) & (self.degrees_of_freedom > 0))
            if len(open_):
                self.measure(open_)
        while True:
            worst, where = self._largest_p_values(law, relevant)
            if self.exact:
                return worst
            loose = np.unique(where[self.upper[where] > self.lower[where] + 1e-9])
            if not len(loose) or effort <= 0:
                return worst
            # The supersets of a loose support come first: they tighten more than itself.
            self.measure(loose[np.argsort(self.degrees_of_freedom[loose])][: min(len(loose), effort)])
            effort -= len(loose)

    def _largest_p_values(self, law: NullDistribution, relevant: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The largest p-value among the supports without each group, and a support where it is reached."""
        best = np.zeros(len(self.groups))
        where = np.zeros(len(self.groups), dtype=np.int64)
        for level in np.unique(self.degrees_of_freedom):
            masks = np.flatnonzero((self.degrees_of_freedom == level) & relevant)
            values = self.lower[masks]
            for bit in range(len(self.groups)):
                without = (masks >> bit & 1) == 0
                if without.any():
                    position = int(np.argmin(np.where(without, values, np.inf)))
                    p = law.p_value(float(values[position]), int(level))
                    if p > best[bit]:
                        best[bit], where[bit] = p, masks[position]
        return best, where


def minimal(sufficient: np.ndarray) -> np.ndarray:
    """The sufficient supports none of whose proper subsets is sufficient (bit masks)."""
    return np.flatnonzero(sufficient & ~_any_child(_any_subset(sufficient)))


def without_sufficient_child(sufficient: np.ndarray) -> np.ndarray:
    """The sufficient supports that stop being so whichever one group is taken away: the paper's Rule 1."""
    return np.flatnonzero(sufficient & ~_any_child(sufficient))


def _halves(values: np.ndarray, bit: int) -> np.ndarray:
    """A view [·, 2, ·] whose middle index is the bit: without and with the group."""
    return values.reshape(-1, 2, 1 << bit)


def _any_subset(flags: np.ndarray) -> np.ndarray:
    """Whether a support or any of its subsets is flagged."""
    spread = flags.copy()
    for bit in range(len(flags).bit_length() - 1):
        halves = _halves(spread, bit)
        halves[:, 1] |= halves[:, 0]
    return spread


def _any_child(flags: np.ndarray) -> np.ndarray:
    """Whether a support with one group taken away is flagged."""
    return _any_neighbour(flags, 1, 0)


def _any_neighbour(flags: np.ndarray, here: int, there: int) -> np.ndarray:
    """For supports with (`here` 1) or without a group: whether the one that has it not, or has it (`there`), is flagged."""
    found = np.zeros_like(flags)
    for bit in range(len(flags).bit_length() - 1):
        _halves(found, bit)[:, here] |= _halves(flags, bit)[:, there]
    return found


# -- The two identification rules, on any test of supports: one test a group (Rule 2), or all supports (Rule 1).


@dataclass(frozen=True)
class Verdicts:
    """What a rule concludes: supports that explain the agent, and for every tested group a test and its adjusted p."""

    supports: list[Support]
    tests: dict[int, TestResult]
    adjusted: dict[int, float]
    exhaustive: bool
    withheld: Note | None = None  # why no verdict is given, where none is


def each_group_alone(test: SupportTest, significance: float, correction: Correction = "holm") -> Verdicts:
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


def search_supports(test: SupportTest, significance: float, paper_rule: bool = False) -> Verdicts:
    """Rule 1: all minimal supports I that explain the data.

    By closed testing (default): H_I is rejected when every H_J, J ⊆ I, is rejected at level δ, with no factor 2^d; what
    is reported are the minimal accepted supports. By the paper's rule: λ_I ≤ c(I) and λ_{I∖i} > c(I∖i) for all i ∈ I, c
    at δ/2^d.
    """
    test.prepare(test.space.tested)
    tests = _one_group_out(test)
    groups = list(tests)
    level, factor = (significance / 2.0 ** len(groups), 2.0 ** len(groups)) if paper_rule else (significance, 1.0)
    law = test.law if paper_rule else test.closed_testing_distribution()
    smallest = test.max_degrees_of_freedom()
    below = {g: test.evidence_lower_bound(tests[g]) for g in groups}
    searched = groups
    if len(groups) > test.max_exhaustive_groups:
        # What fails at the critical value of the smallest support, by evidence that only grows, fails in all.
        certain = law.critical(level, smallest)
        searched = [g for g in groups if below[g] <= certain]
    adjusted = {g: min(1.0, factor * law.p_value(below[g], smallest)) for g in groups}
    if len(searched) > test.max_exhaustive_groups:
        support = _greedy(test, law, level, searched, tests)
        unsure = {g: max(adjusted[g], float(np.nextafter(significance, 1))) for g in searched}
        # Every sufficient support holds the others; where they are enough, no other support is minimal.
        only = not support.intersection(searched) and not paper_rule
        return Verdicts([support], tests, adjusted | unsure, only)
    lattice = Lattice.of(test, searched, [tests[g] for g in searched])
    degrees = lattice.degrees_of_freedom
    critical = np.zeros(int(degrees.max(initial=0)) + 1)  # by degrees of freedom
    for m in np.unique(degrees).tolist():
        critical[m] = law.critical(level, m)
    sufficient = lattice.decide(critical[degrees], upward_closed=not paper_rule)
    masks = without_sufficient_child(sufficient) if paper_rule else minimal(sufficient)
    largest = lattice.adjusted_p_values(law, sufficient)
    adjusted |= {g: min(1.0, factor * p) for g, p in zip(searched, largest.tolist(), strict=True)}
    supports = sorted((lattice.support(int(mask)) for mask in masks), key=lambda s: (len(s), sorted(s)))
    return Verdicts(supports, tests, adjusted, True)


def _one_group_out(test: SupportTest) -> dict[int, TestResult]:
    """The test with one group out and all others in, for every tested group."""
    groups = test.space.tested
    say_progress("testing groups")
    return dict(zip(groups, test.test_many([test.space.support_without(g) for g in groups]), strict=True))


def _greedy(
    test: SupportTest, law: NullDistribution, level: float, groups: list[int], tests: dict[int, TestResult]
) -> Support:
    """One support from which no single group can be taken away: weakest evidence first, until none can go."""

    def sufficient(support: Support) -> bool:
        one = test.test_many([support])[0]
        return test.evidence(one) <= law.critical(level, one.degrees_of_freedom)

    support, before = test.space.full_support, None
    if sufficient(support.difference(groups)):
        return support.difference(groups)
    while support != before:  # what could not go at first may go later: c grows with the degrees of freedom
        before = support
        for g in sorted(support.intersection(groups), key=lambda g: test.evidence(tests[g])):
            if sufficient(support - {g}):
                support = support - {g}
    return support


def apply_withholding(test: SupportTest, significance: float, verdicts: Verdicts) -> Verdicts:
    """Where the test itself is not to be trusted only the full support is certain to do: every group stays undecided."""
    trouble = test.withheld(verdicts.tests, significance)
    if trouble is None:
        return verdicts
    everything = [frozenset(verdicts.tests)]
    undecided = dict.fromkeys(verdicts.tests, 1.0)
    return replace(verdicts, supports=everything, adjusted=undecided, exhaustive=False, withheld=trouble)
