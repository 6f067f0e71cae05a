"""How many more pairs or episodes? The power of every test from a pilot, with the pilot's own uncertainty."""

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.data.vocabulary import one_vocabulary
from policyspace.errors import InputError, nearest
from policyspace.fits import Likelihood, likelihood_of
from policyspace.fits.fisher import dependences, inverse_of, worst_variance
from policyspace.fits.law import ChiSquare, NoncentralLaw, WilksLambda
from policyspace.identification import Source, bound
from policyspace.inference.glr import Test
from policyspace.inference.intervals import Interval, profile_intervals
from policyspace.inference.rules import one_at_a_time
from policyspace.inference.wilks import WilksTest
from policyspace.planning.plans import Estimate, GroupPlan, Plan
from policyspace.planning.power import check_share, noncentrality_quantile, pairs_for_power, rate_for_power
from policyspace.planning.procedures import Prequential, Procedure, Universal, Wilks
from policyspace.policies.groups import Group
from policyspace.shown import remembering_its_call

TESTS = ("wilks", "universal", "eprocess")


@dataclass(frozen=True)
class Aim:
    """What a plan is to reach: the wanted power of tests at a level, with the confidence of what the pilot leaves open."""

    power: float = 0.9
    significance: float = 0.05
    confidence: float = 0.9
    effect: float | None = None  # plan for this ‖θ_g‖ instead of what the pilot shows
    test: str = "wilks"

    def __post_init__(self) -> None:
        for name in ("power", "significance", "confidence"):
            check_share(getattr(self, name), f"the {name}")
        if self.power <= self.significance:
            raise InputError(f"the power must exceed the significance {self.significance:g}, found {self.power:g}.")
        if self.effect is not None and not 1e-100 < self.effect < 1e100:
            raise InputError(f"the effect must be a positive number within 1e±100, found {self.effect:g}.")


@remembering_its_call
@one_vocabulary
def plan(
    data: Any,
    actions: Any = None,
    *,
    power: float = 0.9,
    significance: float = 0.05,
    confidence: float = 0.9,
    effect: float | None = None,
    test: str = "wilks",
    **source: Unpack[Source],
) -> Plan:
    """How many pairs and episodes find each group with the wanted power? What data are, is said as to `identify`.

    The size of each effect is taken from the pilot, with its uncertainty at `confidence`; or it is `effect`, a ‖θ_g‖ in
    the direction that shows least. `test` is the one that will be used: wilks (λ with Holm), universal or eprocess.
    """
    return plan_likelihood(*pilot(data, actions, **source), Aim(power, significance, confidence, effect, test))


def pilot(data: Any, actions: Any = None, **source: Unpack[Source]) -> tuple[Likelihood, Demonstrations]:
    """The likelihood of a pilot in a linear policy space, the only kind whose λ has a known law under the alternative."""
    space, pairs = bound(data, actions, **source)
    return likelihood_of(space.as_linear("theory and planning"), pairs), pairs


def plan_likelihood(likelihood: Likelihood, demonstrations: Demonstrations, aim: Aim) -> Plan:
    """The plan from a likelihood that is already made."""
    procedure = procedure_of(likelihood, aim.test, aim.significance)
    planner = _Planner(likelihood, demonstrations, procedure, aim.power, (1 - aim.confidence) / 2, aim.effect)
    tests = one_at_a_time(WilksTest(likelihood), aim.significance).tests
    intervals = profile_intervals(likelihood, aim.significance)
    return Plan(
        [planner.group(likelihood.space.groups[g], tests[g], intervals) for g in tests],
        intervals, aim.test, aim.power, aim.significance, aim.confidence,
        demonstrations.num_logged, demonstrations.num_episodes, likelihood.space.num_parameters, procedure, aim.effect,
        _warnings(likelihood, demonstrations),
    )  # fmt: skip


def procedure_of(likelihood: Likelihood, test: str, significance: float) -> Procedure:
    """The test that will be used; e-values need no correction for their number, λ the strictest step of Holm's."""
    num_parameters = likelihood.num_free(likelihood.space.everything)
    if test == "universal":
        return Universal(significance, num_parameters)
    if test == "eprocess":
        begins = 5.0 * len(likelihood.space.column_names)  # where the e-process begins to bet
        return Prequential(significance, num_parameters, begins)
    if test != "wilks":
        raise InputError(f"unknown test '{test}': {nearest(test, TESTS)}")
    return Wilks(likelihood.law, significance / len(likelihood.space.tested))


class _Planner:
    """Everything that the plans of all groups share."""

    def __init__(
        self, likelihood: Likelihood, data: Demonstrations, procedure: Procedure, power: float, tail: float, effect: Any
    ) -> None:
        assert isinstance(likelihood.law, ChiSquare | WilksLambda)
        self.likelihood, self.procedure, self.power, self.tail, self.effect = likelihood, procedure, power, tail, effect
        self.law: NoncentralLaw = likelihood.law
        self.total = likelihood.total_weight
        self.inverse, self.hidden = inverse_of(likelihood)
        # Weights are counts: plans are made in what they add up to, and told in rows of the same mean weight.
        self.rows_per_weight = data.num_logged / self.total
        self.pairs_per_episode = None if data.num_episodes is None else data.num_logged / data.num_episodes

    def group(self, group: Group, test: Test, intervals: list[Interval]) -> GroupPlan:
        """One group: the rate that the pilot leaves, and what follows from it."""
        worst = worst_variance(self.inverse, self.hidden, group)
        m, likelihood, indices = test.degrees_of_freedom, self.likelihood, list(group.indices)
        rate = self._rate(test) if self.effect is None else Estimate(*[self.effect**2 / worst] * 3)
        size = float(np.linalg.norm(likelihood.full.theta[indices] - likelihood.space.fixed[indices]))
        if likelihood.diverging[indices].any():
            # The information fades as weights run off to infinity, and nothing can be said about sizes.
            size = worst = np.inf
        pairs = Estimate(*(self._pairs(r, m) for r in (rate.value, rate.high, rate.low)))
        needed = rate_for_power(self.procedure, self.total, m, self.power)
        detectable = float(np.sqrt(needed * worst)) if needed < np.inf and worst < np.inf else np.inf
        return GroupPlan(
            group.name, test.statistic, m, test.p_value, rate,
            Estimate(*(self.procedure.power(self.total, r, m) for r in (rate.value, rate.low, rate.high))),
            pairs, self._episodes(pairs), size if self.effect is None else self.effect, detectable,
            max(interval.bound for interval in intervals if interval.group == group.name),
        )  # fmt: skip

    def _rate(self, test: Test) -> Estimate:
        """From λ ~ χ²_m(n·rate): the median-unbiased estimate, and the interval of the same family."""
        m = test.degrees_of_freedom
        if not m:
            return Estimate(0.0, 0.0, 0.0)
        quantiles = (noncentrality_quantile(self.law, test.statistic, m, p) for p in (0.5, 1 - self.tail, self.tail))
        return Estimate(*(ncp / self.total for ncp in quantiles))

    def _pairs(self, rate: float, degrees_of_freedom: int) -> float:
        found = pairs_for_power(self.procedure, rate, degrees_of_freedom, self.power) * self.rows_per_weight
        # A hair above a whole number is that number: the search stops at twelve digits.
        return float(np.ceil(found * (1 - 1e-9)))

    def _episodes(self, pairs: Estimate) -> Estimate | None:
        if self.pairs_per_episode is None:
            return None
        return Estimate(*(float(np.ceil(n / self.pairs_per_episode)) for n in (pairs.value, pairs.low, pairs.high)))


def _warnings(likelihood: Likelihood, data: Demonstrations) -> list[str]:
    found = []
    if likelihood.design is not None:
        related = dependences(likelihood.space.as_linear("dependences"), likelihood.design)
        found = [f"{dependence} No number of pairs like these changes that." for dependence in related]
    if likelihood.full.separated:
        found.append(
            "the pilot is separated: no finite parameter is most likely. λ and the plans made from it still hold as limits, "
            "sizes of effects do not: intervals are open on one side, and what is detectable cannot be said."
        )
    if not likelihood.full.converged:
        found.append("the full fit of the pilot did not converge: read the plan with care.")
    if data.discrete and likelihood.total_weight < 5 * likelihood.space.num_parameters:
        found.append(
            f"a pilot of {data.num_logged} pairs for {likelihood.space.num_parameters} parameters is small: its λ run high, "
            "and the plan is too hopeful; plan again when more is there."
        )
    return found
