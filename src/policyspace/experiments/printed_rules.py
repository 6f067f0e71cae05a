"""Both identification rules as they are printed, on any λ: nothing is withheld, and nothing follows from monotonicity."""

from typing import Any

import numpy as np

from policyspace.fits.law import ChiSquare
from policyspace.inference.lattice import without_sufficient_child
from policyspace.policies import PolicySpace
from policyspace.policies.groups import Support


def all_of(space: PolicySpace) -> list[Support]:
    """The 2^d supports; bit b of a place in the list says whether the b-th tested group is in, so the last is the whole."""
    return [
        space.everything.difference(g for bit, g in enumerate(space.tested) if not mask >> bit & 1)
        for mask in range(2 ** len(space.tested))
    ]


def one_out(space: PolicySpace) -> list[Support]:
    """The d supports that Rule 2 tests."""
    return [space.everything - {g} for g in space.tested]


def rule_1(space: PolicySpace, statistics: np.ndarray, significance: float) -> list[list[str]]:
    """All I with λ_I ≤ c(I) and λ_{I∖i} > c(I∖i) for every i ∈ I, where c = χ²_{m,1−δ/2^d}, m the scalars that are zeroed.

    `statistics` are λ of `all_of` the supports.
    """
    law, level = ChiSquare(), significance / len(statistics)
    degrees = [int((~space.free(support)).sum()) for support in all_of(space)]
    sufficient = statistics <= np.array([law.critical(level, m) for m in degrees])
    names = [space.groups[g].name for g in space.tested]
    return [
        [name for bit, name in enumerate(names) if mask >> bit & 1] for mask in without_sufficient_child(sufficient)
    ]


def rule_2(space: PolicySpace, statistics: np.ndarray, significance: float) -> list[str]:
    """All i with λ_{all∖i} > χ²_{m,1−δ/d}; `statistics` are λ of `one_out`."""
    groups = [space.groups[g] for g in space.tested]
    level = significance / len(groups)
    return [
        group.name
        for group, statistic in zip(groups, statistics, strict=True)
        if statistic > ChiSquare().critical(level, len(group.indices))
    ]


def both_rules(space: PolicySpace, statistics: np.ndarray, significance: float) -> dict[str, Any]:
    """What the rules say of λ of all supports, and λ with one group out."""
    names = [space.groups[g].name for g in space.tested]
    without = statistics[[len(statistics) - 1 - 2**bit for bit in range(len(names))]]
    return {
        "rule_1": rule_1(space, statistics, significance),
        "rule_2": rule_2(space, without, significance),
        "statistics": dict(zip(names, np.round(without, 3).tolist(), strict=True)),
    }
