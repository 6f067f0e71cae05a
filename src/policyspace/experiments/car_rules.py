"""Both rules on one data set of the car, by Wilks' law and by universal inference, from as few fits as they need."""

from typing import Any

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.fits.base import Likelihood
from policyspace.inference import rules
from policyspace.inference.decide import Decisions
from policyspace.inference.lattice import Lattice, without_sufficient_child
from policyspace.inference.universal import Universal
from policyspace.policies import PolicySpace, Support


def by_wilks(likelihood: Likelihood, significance: float) -> dict[str, Any]:
    """The paper's rules: Rule 1 at χ²_{m,1−δ/2^d} with a check of the children, Rule 2 at χ²_{m,1−δ/d}.

    Only supports that the bounds leave open are fitted: λ falls as supports grow, so what one sensor's own λ already
    rejects at the largest critical value is never tried.
    """
    space = likelihood.space
    one_out = rules.one_at_a_time(likelihood, significance, "bonferroni")
    lattice = Lattice.of(likelihood, list(space.tested), _degrees(likelihood))
    statistics = np.array([test.statistic for test in one_out.tests.values()])
    masks = len(lattice.lower) - 1 - 2 ** np.arange(len(space.tested))
    lattice.learn(masks, statistics, statistics)
    level = significance / len(lattice.lower)
    critical = np.array([likelihood.law.critical(level, int(m)) if m else 0.0 for m in lattice.degrees_of_freedom])
    found = without_sufficient_child(lattice.decide(critical, upward_closed=False))
    rule1 = [lattice.support(int(mask)) for mask in found]
    # The fits of Rule 1 may have lifted those of Rule 2: read them again.
    rule2 = rules.one_at_a_time(likelihood, significance, "bonferroni")
    return {
        "rule_1": _named(space, rule1),
        "rule_2": _named(space, rule2.supports)[0],
        "statistics": {space.groups[g].name: _short(test.statistic) for g, test in rule2.tests.items()},
        "p_values": {space.groups[g].name: test.p_value for g, test in rule2.tests.items()},
        "restart_noise": _short(likelihood.restart_noise),
        "num_fits": lattice.num_fits + 1,
    }


def by_universal_inference(
    likelihood: Likelihood, data: Demonstrations, significance: float, seed: int
) -> dict[str, Any]:
    """Our default for networks: both rules on the same e-values, which hold for all supports together.

    Rule 1 by closed testing, Rule 2 without correction. A statistic below 2·log 1/δ may be a bound from above, a larger
    one is a bound from below: enough for the verdict in both cases.
    """
    space = likelihood.space
    local = Universal(space, data, likelihood, seed)
    decisions = Decisions(local, significance)
    rule1, rule2 = decisions.minimal(), decisions.one_at_a_time()
    one_out = {g: local.evidence(space.everything - {g}) for g in space.tested}
    return {
        "rule_1": _named(space, rule1),
        "rule_2": _named(space, [rule2])[0],
        "statistics": {space.groups[g].name: _short(2 * log_e) for g, log_e in one_out.items()},
        "p_values": {space.groups[g].name: float(np.exp(-max(log_e, 0.0))) for g, log_e in one_out.items()},
    }


def _degrees(likelihood: Likelihood) -> np.ndarray:
    """The degrees of freedom of every support [2^D]."""
    everything, groups = likelihood.space.everything, list(likelihood.space.tested)
    return likelihood.num_free(everything) - likelihood.num_free_of_all(groups)


def _named(space: PolicySpace, supports: list[Support]) -> list[list[str]]:
    """Supports by the names of their tested groups, in the order of the groups."""
    return [[space.groups[g].name for g in space.tested if g in support] for support in supports]


def _short(value: float) -> float:
    return round(float(value), 3)
