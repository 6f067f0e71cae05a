"""Rule 1's search: which of the 2^D supports are sufficient, and which of those are minimal — exactly."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from policyspace.fits.law import ReferenceLaw
from policyspace.inference.base import SupportTest
from policyspace.inference.glr import Test
from policyspace.policies.groups import Support
from policyspace.progress import say_progress


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
    def of(cls, test: SupportTest, groups: list[int], one_out: Sequence[Test] = ()) -> "Lattice":
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
            lattice.learn(masks, lattice.one_out, lattice.one_out, np.array([test.evidence_below(t) for t in one_out]))
        return lattice

    @property
    def exact(self) -> bool:
        """Whether all evidence is known."""
        return self.lower is self.upper

    def support(self, mask: int) -> Support:
        """The support that a bit mask stands for."""
        absent = {g for bit, g in enumerate(self.groups) if not mask >> bit & 1}
        return self.test.space.everything - absent

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
        self.learn(masks, evidence, evidence, np.array([self.test.evidence_below(test) for test in tests]))

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
                wanted = barren | _any_parent(accepted & barren)
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
        lower, upper = self.test.bracket([self.support(int(m)) for m in masks], critical[masks])
        self.learn(masks, lower, upper, lower)

    def adjusted_p_values(self, law: ReferenceLaw, accepted: np.ndarray) -> np.ndarray:
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

    def _largest_p_values(self, law: ReferenceLaw, relevant: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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


def _any_parent(flags: np.ndarray) -> np.ndarray:
    """Whether a support with one group added is flagged."""
    return _any_neighbour(flags, 0, 1)


def _any_neighbour(flags: np.ndarray, here: int, there: int) -> np.ndarray:
    """For supports with (`here` 1) or without a group: whether the one that has it not, or has it (`there`), is flagged."""
    found = np.zeros_like(flags)
    for bit in range(len(flags).bit_length() - 1):
        _halves(found, bit)[:, here] |= _halves(flags, bit)[:, there]
    return found
