"""Both rules on any local test: one test a group, or the minimal supports by closed testing."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from policyspace.inference.base import LocalTest
from policyspace.inference.corrections import CORRECTIONS, Correction
from policyspace.inference.glr import Test
from policyspace.inference.rules import Verdicts
from policyspace.policies.groups import Support

MOST_SEARCHED = 12
"""Groups whose supports are searched exhaustively, each costing fits or simulations."""


def one_at_a_time(local: LocalTest, significance: float, correction: Correction) -> Verdicts:
    """Rule 2: Î = {i : H_{all∖i} is rejected}; e-values that hold for all supports together are not corrected."""
    tests = _one_group_out(local)
    p_values = np.array([test.p_value for test in tests.values()])
    adjusted = p_values if local.simultaneous else CORRECTIONS[correction](p_values)
    by_group = dict(zip(tests, adjusted.tolist(), strict=True))
    chosen = frozenset(g for g in tests if by_group[g] <= significance)
    return Verdicts([chosen], tests, by_group, True, local.likelihood.full)


def all_supports(local: LocalTest, significance: float) -> Verdicts:
    """Rule 1 by closed testing: H_I is rejected when every H_J, J ⊆ I, is; the minimal accepted supports.

    A group whose own test bounds all smaller supports too is in every accepted one; the others are tried small first.
    """
    tests = _one_group_out(local)
    everything = local.likelihood.space.everything
    bounds = {g: local.bound(test) for g, test in tests.items()}
    unsure = [g for g in tests if bounds[g] > significance]
    certain = everything.difference(unsure)
    if len(unsure) > MOST_SEARCHED:
        support = _greedy(local, significance, unsure, tests)
        return Verdicts(
            [support], tests, {g: max(bounds[g], tests[g].p_value) for g in tests}, False, local.likelihood.full
        )
    minimal: list[Support] = []
    worst = dict.fromkeys(unsure, 0.0)
    for size in range(len(unsure) + 1):
        level = [certain.union(chosen) for chosen in combinations(unsure, size)]
        level = [support for support in level if not any(found <= support for found in minimal)]
        if not level:
            break
        for support, test in zip(level, _tests(local, level, everything), strict=True):
            for g in unsure:
                if g not in support:
                    worst[g] = max(worst[g], test.p_value)
            if test.p_value > significance:
                minimal.append(support)
    adjusted = {g: worst[g] if g in worst else bounds[g] for g in tests}
    return Verdicts(minimal, tests, adjusted, True, local.likelihood.full)


def _tests(local: LocalTest, supports: Sequence[Support], everything: Support) -> list[Test]:
    """The tests of a level; the full support holds by itself."""
    if list(supports) == [everything]:
        return [Test(everything, 0.0, 0, 1.0)]
    return local.test_many(supports)


def _one_group_out(local: LocalTest) -> dict[int, Test]:
    space = local.likelihood.space
    supports = [space.everything - {g} for g in space.tested]
    return dict(zip(space.tested, local.test_many(supports), strict=True))


def _greedy(local: LocalTest, significance: float, groups: list[int], tests: dict[int, Test]) -> Support:
    """One support from which no single group can be taken away: weakest evidence first."""
    support = local.likelihood.space.everything
    for g in sorted(groups, key=lambda g: -tests[g].p_value):
        if local.test(support - {g}).p_value > significance:
            support = support - {g}
    return support
