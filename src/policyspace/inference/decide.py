"""Which supports universal inference rejects at one level, with as few searches for a maximum as possible."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from policyspace.inference.universal import Universal
from policyspace.policies.groups import Support


class Decisions:
    """What is accepted and what is rejected at a level, as far as anyone has asked.

    E_I only grows as I shrinks. What a first climb accepts is accepted with all its supersets, for any θ ∈ Θ_I bounds E_I
    from above. What it does not accept is searched in earnest, and if that rejects it, all its subsets are rejected.
    """

    def __init__(self, local: Universal, significance: float) -> None:
        self.local, self.significance = local, significance
        self._threshold = -float(np.log(significance))
        self._accepted: list[Support] = [local.space.everything]
        self._rejected: list[Support] = []

    def one_at_a_time(self) -> Support:
        """Rule 2: Î = {i : H_{all∖i} is rejected}."""
        everything = self.local.space.everything
        return frozenset(g for g in self.local.space.tested if not self._accepts(everything - {g}))

    def minimal(self) -> list[Support]:
        """Rule 1: the accepted supports none of whose proper subsets is accepted."""
        certain = self.one_at_a_time()
        unsure = [g for g in self.local.space.tested if g not in certain]
        base = self.local.space.everything.difference(unsure)
        supports = [base.union(chosen) for size in range(len(unsure) + 1) for chosen in combinations(unsure, size)]
        while True:
            found = self._accepted_by_climbs(supports)
            rest = [s for s in supports if not any(smaller <= s for smaller in found)]
            doubtful = [s for s in rest if not any(s <= larger for larger in self._rejected)]
            if not doubtful:
                return found
            # The largest one settles the most.
            self._accepts(max(doubtful, key=len))

    def _accepted_by_climbs(self, supports: Sequence[Support]) -> list[Support]:
        """Minimal ones among what is accepted at first sight, or was found to be; supports come small first."""
        found: list[Support] = []
        for support in supports:
            if any(smaller <= support for smaller in found) or any(support <= larger for larger in self._rejected):
                continue
            if support in self._accepted or self.local.at_most(support) < self._threshold:
                found.append(support)
        return found

    def _accepts(self, support: Support) -> bool:
        """The verdict on one support: from its neighbours, from a first climb, or from a search."""
        if any(smaller <= support for smaller in self._accepted):
            return True
        if any(support <= larger for larger in self._rejected):
            return False
        accepted = self.local.at_most(support) < self._threshold or not self.local.rejects(support, self._threshold)
        (self._accepted if accepted else self._rejected).append(support)
        return accepted
