"""Power and sample size from a pilot log."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from typing import Any, ClassVar, Protocol, Unpack

import numpy as np
from scipy.special import ndtr

from policyspace.data.request import Request
from policyspace.data.sample import Sample
from policyspace.data.validation import explain_arguments, translate_keywords
from policyspace.display import Answer, TextTable, listed_names, plain_data, remembering_its_call
from policyspace.errors import InputError, nearest
from policyspace.families.base import Group
from policyspace.families.covariance import dependences, inverse_of, worst_variance
from policyspace.families.likelihood import ChiSquare, Likelihood, NullDistribution, PowerFunction, WilksLambda
from policyspace.families.registry import likelihood_of
from policyspace.identification import SourceOptions, bind, request_of
from policyspace.inference.base import TestResult, check_share
from policyspace.inference.coefficients import Interval, profile_intervals
from policyspace.inference.parametric import WilksTest
from policyspace.inference.selection import each_group_alone
from policyspace.safe_io import JSON

# -- The power of each kind of test at n pairs, from what one pair is worth.

DRAWS = 20_000
"""Draws behind the power of universal inference: its Monte-Carlo error is at most 0.0036."""


class Procedure(Protocol):
    """A way to test one group, of which the power can be foretold."""

    @property
    def name(self) -> str:
        """The word that selects it."""

    @property
    def fewest(self) -> float:
        """The number of pairs below which the test does not exist."""

    def power(self, num_rows: float, rate: float, degrees_of_freedom: int) -> float:
        """P(the group is found) from that many pairs."""


@dataclass(frozen=True)
class Wilks:
    """λ > c: P(χ²_m(n·rate) > c), or the non-central F where the covariance is estimated."""

    law: NullDistribution
    level: float  # of this one test: δ divided by the number of tests
    name: str = "wilks"

    @property
    def fewest(self) -> float:
        """One more than the parameters, where a covariance must be estimated beside them."""
        return self.law.num_columns + self.law.num_actions + 1.0 if isinstance(self.law, WilksLambda) else 0.0

    def power(self, num_rows: float, rate: float, degrees_of_freedom: int) -> float:
        """Holm's step-down can only do better: this is the power of its first, strictest step."""
        law = replace(self.law, num_rows=num_rows) if isinstance(self.law, WilksLambda) else self.law
        return law.power(num_rows * rate, self.level, degrees_of_freedom)


@dataclass(frozen=True)
class UniversalPower:
    """Universal inference, cross-fit over two halves: (E + E')/2 ≥ 1/δ, E = L_{D₀}(θ̂_{D₁}) / sup_{Θ_I} L_{D₀}.

    In coordinates where F = I, each half has θ̂ = θ* + Z√(2/n), and with μ the half's distance to Θ_I (‖μ‖² = n·rate/2)

        log E = ½‖μ‖² + μ·Z₀ + Z₀·Z₁ − ½‖Z₁‖² − ½‖Z₁ − Z₀‖²_rest,

    Z in the m tested directions, the last term in the other d − m. It grows by rate/4 a pair and pays about d − m/2.
    """

    significance: float
    num_parameters: int
    seed: int = 0
    name: str = "universal"
    fewest: float = 0.0

    def power(self, num_rows: float, rate: float, degrees_of_freedom: int) -> float:
        """The same draws at every n and rate, so that power grows smoothly with both."""
        if not degrees_of_freedom:
            return 0.0
        length = np.sqrt(num_rows * rate / 2)
        first, second, product, square_first, square_second, rest = _draws(
            self.seed, degrees_of_freedom, self.num_parameters - degrees_of_freedom
        )
        one = length * first + product - square_second / 2
        other = length * second + product - square_first / 2
        log_e = length**2 / 2 - rest + np.logaddexp(one, other) - np.log(2)
        return float((log_e >= -np.log(self.significance)).mean())


@lru_cache(maxsize=32)
def _draws(seed: int, m: int, others: int) -> tuple[np.ndarray, ...]:
    """What log E needs of Z₀ and Z₁: their first coordinates, product, squares, and the untested directions."""
    random = np.random.default_rng(seed)
    left, right = random.standard_normal((2, DRAWS, m))
    # ½‖Z₁ − Z₀‖² over the other d − m directions is a χ².
    rest = random.chisquare(others, DRAWS) if others else np.zeros(DRAWS)
    squares = (left**2).sum(axis=1), (right**2).sum(axis=1)
    return left[:, 0], right[:, 0], (left * right).sum(axis=1), *squares, rest


@dataclass(frozen=True)
class Prequential:
    """The anytime-valid e-process at one look: E_n = Π π_{θ̂_{s−1}}(a_s|s_s) / sup_{Θ_I} L_n ≥ 1/δ.

    A prediction from s pairs costs d/(2(s−d−1)) on average (exactly so for Gaussian features), with twice that as
    variance. With n₁ pairs before the first bet and B = d·log((n−d−1)/(n₁−d−1)), log E_n is about normal with

        mean ½(n−n₁)·rate − ½(d − m) − ½B,  variance (n−n₁)·rate + B.

    It grows by rate/2 a pair; looking earlier as well can only find more.
    """

    significance: float
    num_parameters: int
    first_bet: float = 0.0
    name: str = "eprocess"

    @property
    def fewest(self) -> float:
        """n₁, the pairs before the first bet: predictions from few more than d cost more than they can win."""
        return max(self.first_bet, 2.0 * (self.num_parameters + 1))

    def power(self, num_rows: float, rate: float, degrees_of_freedom: int) -> float:
        """By the normal law of log E_n."""
        if not degrees_of_freedom:
            return 0.0
        d, prior_predictive_policies = self.num_parameters, max(num_rows - self.fewest, 0.0)
        cost = d * np.log1p(prior_predictive_policies / (self.fewest - d - 1))
        mean = (prior_predictive_policies * rate - (d - degrees_of_freedom) - cost) / 2
        deviation = np.sqrt(prior_predictive_policies * rate + cost + np.finfo(float).tiny)
        return float(ndtr((mean + np.log(self.significance)) / deviation))


# -- A plan: what every group needs, in numbers and in words.

COLUMNS = ("group", "λ", "effect", "power now", "rows", "episodes", "MDE", "|θ| below")
CRITERIA = {
    "wilks": "λ at δ = {significance:g} over {tests} tests (Bonferroni; Holm finds at least as much)",
    "universal": "universal inference at δ = {significance:g} over all supports at once",
    "eprocess": "the anytime-valid e-process at δ = {significance:g}, one look at the end",
}


@dataclass(frozen=True)
class Estimate:
    """A number from the pilot and the range that the pilot leaves for it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class GroupPlan:
    """What the pilot says about the test of one group; `rate` is its non-centrality a row, 2·KL(θ*‖Θ_I)."""

    group: str
    statistic: float
    degrees_of_freedom: int
    p_value: float
    rate: Estimate
    power_now: Estimate  # of a new data set of the same size
    rows: Estimate  # for the wanted power; infinite where the pilot shows no effect
    episodes: Estimate | None
    effect: float  # ‖θ̂_g‖ or, where one was asked for, that effect
    minimum_detectable_effect: float  # the smallest ‖θ_g‖ that the present n shows with the wanted power
    effect_bound: float  # every |θ_i| of the group is smaller, with the confidence of one test


@dataclass(frozen=True)
class SampleSizePlan(Answer):
    """The plan for every tested group, and all that it rests on."""

    page: ClassVar[str] = "policyspace.report.pages:plan_page"
    groups: list[GroupPlan]
    intervals: list[Interval]
    test: str
    power: float
    significance: float
    confidence: float
    num_rows: int
    num_episodes: int | None
    num_parameters: int
    procedure: Procedure
    given_effect: float | None
    warnings: list[str]
    made_by: str = ""  # the call or the command that makes it again

    @property
    def sentence(self) -> str:
        """How far the data are, and how many more are needed for the groups that show something."""
        seen = [g for g in self.groups if g.rows.value < math.inf]
        if not seen:
            return (
                "The pilot shows no effect that more rows could confirm; the minimum detectable effect (MDE) says what it "
                "could have shown."
            )
        done = [g for g in seen if g.rows.value <= self.num_rows]
        open_ = [g for g in seen if g.rows.value > self.num_rows]
        parts = []
        if done:
            names = listed_names([g.group for g in done])
            parts.append(f"{names}: {_count(self.num_rows)} rows are enough for power {self.power:g}")
        if open_:
            most = max(open_, key=lambda g: g.rows.value)
            episodes = "" if most.episodes is None else f" (about {_count(most.episodes.value)} episodes)"
            parts.append(
                f"{listed_names([g.group for g in open_])}: {_count(most.rows.value)} rows{episodes} are needed"
            )
        rest = [g.group for g in self.groups if g.rows.value == math.inf]
        if rest:
            parts.append(f"{listed_names(rest)}: no effect to plan for")
        return "; ".join(parts) + "."

    def rows(self) -> list[tuple[str, ...]]:
        """One tuple a group, in the order of COLUMNS; ranges are what the pilot leaves open."""
        return [
            (
                g.group,
                f"{g.statistic:.2f}",
                _size(g.effect, "diverges"),
                _range(g.power_now, "{:.2f}".format),
                _range(g.rows),
                "" if g.episodes is None else _range(g.episodes),
                _size(g.minimum_detectable_effect, "—"),
                _size(g.effect_bound, "no bound"),
            )
            for g in self.groups
        ]

    def table(self) -> TextTable:
        """The rows under their columns."""
        return TextTable(COLUMNS, self.rows())

    def notes(self) -> list[str]:
        """What the numbers mean."""
        episodes = "" if self.num_episodes is None else f" in {_count(self.num_episodes)} episodes"
        criterion = CRITERIA[self.test].format(significance=self.significance, tests=len(self.groups))
        source = (
            f"effects as the pilot shows them, in brackets what it leaves open with confidence {self.confidence:g}"
            if self.given_effect is None
            else f"for an effect ‖θ‖ = {self.given_effect:g} in the direction that shows least"
        )
        return [
            f"{_count(self.num_rows)} rows{episodes}, {self.num_parameters} parameters; {criterion}.",
            f"Rows and episodes are totals for power {self.power:g}; {source}.",
            f"MDE, the minimum detectable effect: the smallest ‖θ‖ that this data would show with power {self.power:g}; "
            f"'|θ| below': every weight of the group is smaller, with confidence {1 - self.significance:g} each.",
            *(f"Warning: {warning}" for warning in self.warnings),
        ]

    def to_dict(self) -> dict[str, JSON]:
        """Everything as plain data; what is infinite (no number of rows would do) becomes null."""
        plain = {name: value for name, value in vars(self).items() if name not in ("procedure", "made_by")}
        plain["groups"] = [asdict(group) for group in self.groups]
        plain["intervals"] = [asdict(interval) | {"bound": interval.bound} for interval in self.intervals]
        return {"answer": self.sentence, **{name: plain_data(value) for name, value in plain.items()}}


def _count(number: float) -> str:
    if number == math.inf:
        return "∞"
    return f"{number:,.0f}".replace(",", " ") if number < 1e7 else f"{number:.2g}"


def _range(estimate: Estimate, shown: Callable[[float], str] = _count) -> str:
    """The number, with what the pilot leaves open in brackets."""
    if estimate.low == estimate.high:
        return shown(estimate.value)
    return f"{shown(estimate.value)} ({shown(estimate.low)}–{shown(estimate.high)})"


def _size(value: float, otherwise: str) -> str:
    return f"{value:.3g}" if value < math.inf else otherwise


# -- Power turned around: the number of pairs, the rate and the non-centrality at which something happens.

MOST_PAIRS = 1e15
"""Beyond this many pairs the honest answer is "never"."""


def pairs_for_power(procedure: Procedure, rate: float, degrees_of_freedom: int, power: float) -> float:
    """The smallest n at which a group worth `rate` a pair is found with that power; infinite where it is worth nothing."""
    check_share(power, "the power")
    if not rate > 0 or not degrees_of_freedom:
        return np.inf
    if isinstance(procedure, UniversalPower):
        return _noncentrality(procedure, degrees_of_freedom, power) / rate
    return smallest(
        lambda n: procedure.power(n, rate, degrees_of_freedom) >= power, max(procedure.fewest, 1.0), MOST_PAIRS
    )


def rate_for_power(procedure: Procedure, num_rows: float, degrees_of_freedom: int, power: float) -> float:
    """The smallest rate, 2·KL a pair, that n pairs show with that power."""
    check_share(power, "the power")
    if not degrees_of_freedom or num_rows < procedure.fewest:
        return np.inf
    if isinstance(procedure, UniversalPower):
        return _noncentrality(procedure, degrees_of_freedom, power) / num_rows
    return smallest(lambda rate: procedure.power(num_rows, rate, degrees_of_freedom) >= power, 0.0, MOST_PAIRS)


@cache
def _noncentrality(procedure: UniversalPower, degrees_of_freedom: int, power: float) -> float:
    """The n·rate that is needed, once for all groups of one size: simulated power costs more than a formula."""
    return smallest(lambda ncp: procedure.power(1.0, ncp, degrees_of_freedom) >= power, 0.0, MOST_PAIRS)


def noncentrality_quantile(law: PowerFunction, statistic: float, degrees_of_freedom: int, probability: float) -> float:
    """The non-centrality at which P(λ' ≤ λ) is `probability`: ½ gives a median-unbiased estimate, two tails an interval.

    Zero where λ is so small that even a group which is not controlled exceeds it that often.
    """
    check_share(probability, "the probability")
    return smallest(lambda ncp: law.cumulative(statistic, ncp, degrees_of_freedom) <= probability, 0.0, MOST_PAIRS)


def smallest(holds: Callable[[float], bool], low: float, most: float) -> float:
    """The smallest number from `low` on at which a condition that stays true becomes true; infinite beyond `most`."""
    if holds(low):
        return low
    high = max(2 * low, 1e-12)
    while not holds(high):
        low, high = high, 2 * high
        if high > most:
            return np.inf
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


# -- How many more pairs or episodes? The power of every test from a pilot, with the pilot's own uncertainty.

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


@explain_arguments
@remembering_its_call
@translate_keywords
def plan(
    data: Any,
    actions: Any = None,
    *,
    power: float = 0.9,
    significance: float = 0.05,
    confidence: float = 0.9,
    effect: float | None = None,
    test: str = "wilks",
    **source: Unpack[SourceOptions],
) -> SampleSizePlan:
    """How many rows and episodes find each group with the wanted power?

    The size of each effect is taken from the pilot, with its uncertainty, unless it is given.

    Parameters
    ----------
    data, actions, **source
        A pilot, and what is said about its columns and the policy, as in `identify`.
    power : float
        The wanted probability that a group that is used is found.
    significance : float
        The accepted probability of any false "used".
    confidence : float
        Of the interval of each effect, which becomes one of sample sizes.
    effect : float, optional
        A ‖θ_g‖, in the direction that shows least.
    test : {"wilks", "universal", "eprocess"}
        The test that will be used: λ with Holm, or an e-value.

    Returns
    -------
    SampleSizePlan
        Power now, and the rows and episodes that each group needs.

    Raises
    ------
    InputError
        If a number is out of its range, or the policy is not linear.

    Examples
    --------
    >>> import numpy as np
    >>> import policyspace
    >>> states = np.random.default_rng(0).normal(size=(100, 2))
    >>> actions = 0.4 * states[:, 0] + np.random.default_rng(1).normal(size=100)
    >>> found = policyspace.plan(states, actions, features=["speed", "noise"], effect=0.4)
    >>> found.groups[0].group, found.groups[0].power_now.value > 0.9
    ('speed', True)
    """
    aim = Aim(power, significance, confidence, effect, test)
    return plan_likelihood(*pilot(request_of(data, actions, **source)), aim)


def pilot(request: Request) -> tuple[Likelihood, Sample]:
    """The likelihood of a pilot in a linear policy space, the only kind whose λ has a known law under the alternative."""
    space, sample = bind(request)
    return likelihood_of(space.as_linear("theory and planning"), sample), sample


def plan_likelihood(likelihood: Likelihood, demonstrations: Sample, aim: Aim) -> SampleSizePlan:
    """The plan from a likelihood that is already made."""
    procedure = procedure_of(likelihood, aim.test, aim.significance)
    planner = _Planner(likelihood, demonstrations, procedure, aim.power, (1 - aim.confidence) / 2, aim.effect)
    tests = each_group_alone(WilksTest(likelihood), aim.significance).tests
    intervals = profile_intervals(likelihood, aim.significance)
    return SampleSizePlan(
        [planner.group(likelihood.space.groups[g], tests[g], intervals) for g in tests],
        intervals, aim.test, aim.power, aim.significance, aim.confidence,
        demonstrations.num_rows_total, demonstrations.num_episodes, likelihood.space.num_parameters, procedure, aim.effect,
        _warnings(likelihood, demonstrations),
    )  # fmt: skip


def procedure_of(likelihood: Likelihood, test: str, significance: float) -> Procedure:
    """The test that will be used; e-values need no correction for their number, λ the strictest step of Holm's."""
    num_parameters = likelihood.num_free(likelihood.space.full_support)
    if test == "universal":
        return UniversalPower(significance, num_parameters)
    if test == "eprocess":
        begins = 5.0 * len(likelihood.space.column_names)  # where the e-process begins to bet
        return Prequential(significance, num_parameters, begins)
    if test != "wilks":
        raise InputError(f"unknown test '{test}': {nearest(test, TESTS)}")
    return Wilks(likelihood.law, significance / len(likelihood.space.tested))


class _Planner:
    """Everything that the plans of all groups share."""

    def __init__(
        self, likelihood: Likelihood, data: Sample, procedure: Procedure, power: float, tail: float, effect: Any
    ) -> None:
        assert isinstance(likelihood.law, ChiSquare | WilksLambda)
        self.likelihood, self.procedure, self.power, self.tail, self.effect = likelihood, procedure, power, tail, effect
        self.law: PowerFunction = likelihood.law
        self.total = likelihood.total_weight
        self.inverse, self.hidden = inverse_of(likelihood)
        # Weights are counts: plans are made in what they add up to, and told in rows of the same mean weight.
        self.rows_per_weight = data.num_rows_total / self.total
        self.pairs_per_episode = None if data.num_episodes is None else data.num_rows_total / data.num_episodes

    def group(self, group: Group, test: TestResult, intervals: list[Interval]) -> GroupPlan:
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

    def _rate(self, test: TestResult) -> Estimate:
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


def _warnings(likelihood: Likelihood, data: Sample) -> list[str]:
    found = []
    if likelihood.design is not None:
        related = dependences(likelihood.space.as_linear("dependences"), likelihood.design)
        found = [f"{dependence} No number of rows like these changes that." for dependence in related]
    if likelihood.full.separated:
        found.append(
            "the pilot is separated: no finite parameter is most likely. λ and the plans made from it still hold as limits, "
            "sizes of effects do not: intervals are open on one side, and what is detectable cannot be said."
        )
    if not likelihood.full.converged:
        found.append("the full fit of the pilot did not converge: read the plan with care.")
    if likelihood.space.asymptotic and likelihood.total_weight < 5 * likelihood.space.num_parameters:
        found.append(
            f"a pilot of {data.num_rows_total} rows for {likelihood.space.num_parameters} parameters is small: its λ run "
            f"high, "
            "and the plan is too hopeful; plan again when more is there."
        )
    return found
