"""Both rules on one data set of the car, by Wilks' law and by universal inference."""

from typing import Any

from policyspace.data.demonstrations import Demonstrations
from policyspace.fits.base import Likelihood
from policyspace.inference.rules import Verdicts, all_supports, one_at_a_time
from policyspace.inference.universal import Universal
from policyspace.inference.wilks import WilksTest
from policyspace.policies import PolicySpace, Support


def by_wilks(likelihood: Likelihood, significance: float) -> dict[str, Any]:
    """The paper's rules: Rule 1 at χ²_{m,1−δ/2^d} with a check of the children, Rule 2 at χ²_{m,1−δ/d}."""
    space, test = likelihood.space, WilksTest(likelihood)
    rule1 = all_supports(test, significance, paper_rule=True)
    rule2 = one_at_a_time(test, significance, "bonferroni")
    return _recorded(space, rule1, rule2) | {"restart_noise": _short(likelihood.restart_noise)}


def by_universal_inference(
    likelihood: Likelihood, data: Demonstrations, significance: float, seed: int
) -> dict[str, Any]:
    """Both rules on the same e-values, which hold for all supports together: Rule 2 needs no correction."""
    test = Universal(likelihood, data, significance, seed)
    return _recorded(likelihood.space, all_supports(test, significance), one_at_a_time(test, significance))


def _recorded(space: PolicySpace, rule1: Verdicts, rule2: Verdicts) -> dict[str, Any]:
    return {
        "rule_1": _named(space, rule1.supports),
        "rule_2": _named(space, rule2.supports)[0],
        "statistics": {space.groups[g].name: _short(test.statistic) for g, test in rule2.tests.items()},
        "p_values": {space.groups[g].name: test.p_value for g, test in rule2.tests.items()},
    }


def _named(space: PolicySpace, supports: list[Support]) -> list[list[str]]:
    """Supports by the names of their tested groups, in the order of the groups."""
    return [[space.groups[g].name for g in space.tested if g in support] for support in supports]


def _short(value: float) -> float:
    return round(float(value), 3)
