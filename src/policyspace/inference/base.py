"""`TestOptions`, the interface of tests of a support, and corrections for multiple testing."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Self, cast, final, get_args

import numpy as np

from policyspace.answer import AssumptionCheck, ClusterSummary, Grade, Note, Reason, SubjectEffects
from policyspace.errors import InputError, nearest
from policyspace.families.base import PolicySpace, Support
from policyspace.families.likelihood import Fit, NullDistribution
from policyspace.inference.effects import Behaviour, GroupEffect
from policyspace.runtime import check_seed

# -- The generalised likelihood ratio test of one hypothesis H_I: π* ∈ Π_{Θ_I} (Section 3).

ACCURACY = 1e-6
"""What λ is worth: fits agree with each other to half of this."""


@dataclass(frozen=True)
class TestResult:
    """λ_I with its degrees of freedom and its p-value.

    Parameters
    ----------
    support : frozenset of int
        I, what is left free under the hypothesis.
    statistic : float
        λ_I, or what the test has in its place.
    degrees_of_freedom : int
        The number of scalars that Θ_I fixes.
    p_value : float
        The chance of such a statistic under the hypothesis.
    evidence : float
        E, where the test is an e-value: its mean is at most 1 under the hypothesis.

    Examples
    --------
    >>> import policyspace
    >>> policyspace.TestResult(frozenset([0]), statistic=3.84, degrees_of_freedom=1, p_value=0.05).degrees_of_freedom
    1
    """

    __test__ = False  # not a test of this project, whatever pytest thinks of the name

    support: Support
    statistic: float
    degrees_of_freedom: int
    p_value: float
    evidence: float = float("nan")  # E, where the test is an e-value: its mean is at most 1 under the hypothesis


def likelihood_ratio(restricted: Fit, full: Fit) -> TestResult:
    """λ_I = 2(ℓ̂(θ̂_I) − ℓ̂(θ̂)), measured against Wilks' χ², or against F if the covariance is estimated.

    F is exact for one action on states that were fixed; on trajectories it holds as the number of episodes grows.

    Parameters
    ----------
    restricted, full : Fit
        The fit inside Θ_I, and the one in all of Θ.

    Returns
    -------
    TestResult
        λ_I, its degrees of freedom and its p-value.

    Examples
    --------
    >>> import policyspace
    >>> sample = policyspace.Sample([[0.0], [1.0], [2.0]], [1.0, 2.0, 3.5], names=["speed"])
    >>> space = policyspace.GaussianLinear(["speed"], covariance=0.1)
    >>> intercept, full = (policyspace.fit(space, sample, frozenset(groups)) for groups in ([0], [0, 1]))
    >>> round(policyspace.likelihood_ratio(intercept, full).statistic, 2)  # Σ(x − x̄)(y − ȳ) = 2.5, squared / (2 · 0.1)
    31.25
    """
    statistic = 2.0 * (full.log_likelihood - restricted.log_likelihood)
    if statistic < -ACCURACY * max(1.0, 1e-9 * abs(full.log_likelihood)):
        raise InputError(
            f"the restricted fit is more likely than the full one (λ = {statistic:.3g}): the full fit has not converged; "
            "fit it again, starting from the restricted one."
        )
    if statistic != statistic:
        raise InputError("λ is not a number, for a likelihood overflowed: measure the features in other units.")
    statistic = max(statistic, 0.0)  # two separate fits of the same maximum differ by their rounding
    degrees_of_freedom = full.num_free - restricted.num_free
    p_value = restricted.law.p_value(statistic, degrees_of_freedom)
    return TestResult(restricted.support, statistic, degrees_of_freedom, p_value)


# -- Many tests, one guarantee: p-values adjusted for their number.

Correction = Literal["holm", "bonferroni", "bh"]


def bonferroni(p_values: np.ndarray) -> np.ndarray:
    """min(1, d·p): the paper's split δ/d; family-wise error ≤ δ."""
    return np.minimum(len(p_values) * p_values, 1.0)


def holm(p_values: np.ndarray) -> np.ndarray:
    """Step-down Bonferroni: family-wise error ≤ δ, and never less powerful."""
    order = np.argsort(p_values, kind="stable")
    remaining = len(p_values) - np.arange(len(p_values))
    stepped = np.maximum.accumulate(np.minimum(p_values[order] * remaining, 1.0))
    return _back(stepped, order)


def benjamini_hochberg(p_values: np.ndarray) -> np.ndarray:
    """Step-up: the expected share of false ones among the rejected is ≤ δ; this is not δ-correctness."""
    order = np.argsort(p_values, kind="stable")[::-1]
    rank = len(p_values) - np.arange(len(p_values))
    stepped = np.minimum.accumulate(np.minimum(p_values[order] * len(p_values) / rank, 1.0))
    return _back(stepped, order)


CORRECTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "holm": holm,
    "bonferroni": bonferroni,
    "bh": benjamini_hochberg,
}


def _back(stepped: np.ndarray, order: np.ndarray) -> np.ndarray:
    adjusted = np.empty_like(stepped)
    adjusted[order] = stepped
    return adjusted


def check_share(value: float, what: str) -> None:
    """A probability strictly between 0 and 1."""
    if not (isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1):
        raise InputError(f"{what} must lie between 0 and 1, found {value!r}.")


def check_significance(significance: float) -> None:
    """δ must be a probability."""
    if not (isinstance(significance, int | float) and 0 < significance < 1):
        raise InputError(f"the significance must lie between 0 and 1, found {significance!r}: 0.05 is customary.")


# -- How is tested: said once, checked once.

TestName = Literal[
    "auto", "wilks", "firth", "lean", "randomised", "robust", "mixed", "bootstrap", "universal", "eprocess", "mixture"
]
RuleName = Literal["simplified", "combinatorial"]
ClusterKind = Literal["auto", "rows", "blocks", "episodes"]


@final
@dataclass(frozen=True)
class TestOptions:
    """How groups are tested: what `identify` takes beside the data and the policy.

    Examples
    --------
    >>> TestOptions.of(firth=True, significance=0.01)
    TestOptions(test='firth', rule='simplified', significance=0.01, correction='holm', clusters='auto', seed=0)
    >>> TestOptions(test="lien")
    Traceback (most recent call last):
    policyspace.errors.InputError: unknown test 'lien': did you mean 'lean'?
    """

    __test__ = False  # not a test of this project, whatever pytest thinks of the name

    test: TestName = "auto"
    """The test that decides; "auto": one whose assumptions the data do not contradict."""
    rule: RuleName = "simplified"
    """One test a group, or all supports."""
    significance: float = 0.05
    """The accepted probability of any false "used"."""
    correction: Correction | Literal["paper"] = "holm"
    """For the number of tests; "paper" is δ/d, or δ/2^d for the combinatorial rule."""
    clusters: ClusterKind = "auto"
    """What the test `lean` takes as independent of each other."""
    seed: int = 0
    """Of whatever is drawn."""

    def __post_init__(self) -> None:
        for word, what, known in (
            ("rule", "rule", get_args(RuleName)),
            ("correction", "correction", (*CORRECTIONS, "paper")),
            ("test", "test", get_args(TestName)),
            ("clusters", "clusters", get_args(ClusterKind)),
        ):
            value = getattr(self, word)
            if not isinstance(value, str) or value not in known:
                raise InputError(f"unknown {what} '{value}': {nearest(str(value), known)}")
        check_significance(self.significance)
        check_seed(self.seed)
        if self.of_paper and self.rule == "combinatorial" and self.test not in ("auto", "wilks", "firth"):
            raise InputError(
                f"the paper's rule belongs to the test 'wilks', found '{self.test}': leave one of them out."
            )

    @classmethod
    def of(
        cls,
        test: TestName = "auto",
        rule: RuleName = "simplified",
        significance: float = 0.05,
        correction: Correction | Literal["paper"] = "holm",
        clusters: ClusterKind = "auto",
        seed: int = 0,
        paper_rule: bool = False,
        firth: bool = False,
    ) -> Self:
        """The options, where `paper_rule` and `firth` are other words for a correction and a test."""
        if firth and test not in ("auto", "wilks", "firth"):
            raise InputError(f"Firth's penalty belongs to the test 'firth', found '{test}': leave one of them out.")
        if correction == "bh" and paper_rule:
            raise InputError(
                "the paper's rule splits δ evenly (Bonferroni), found the correction 'bh': drop one of them."
            )
        return cls(
            "firth" if firth else test, rule, significance, "paper" if paper_rule else correction, clusters, seed
        )

    @property
    def of_paper(self) -> bool:
        """Whether δ is split as in the paper."""
        return self.correction == "paper"

    @property
    def one_by_one(self) -> Correction:
        """The correction of the simplified rule: the paper's split is that of Bonferroni."""
        return "bonferroni" if self.of_paper else cast(Correction, self.correction)


# -- A test of H_I for every support I: the one interface that the rules and the search over supports know.


@dataclass(frozen=True)
class EvidenceLaw:
    """Evidence on the scale −2·log p: exp(−evidence/2) is a p-value, and for e-values evidence = 2·log E."""

    name: str = "evidence"

    def p_value(self, statistic: float, degrees_of_freedom: int) -> float:
        """min(1, exp(−evidence/2)); a hypothesis that fixes nothing cannot be rejected."""
        return float(np.exp(-0.5 * max(statistic, 0.0))) if degrees_of_freedom else 1.0

    def critical(self, significance: float, degrees_of_freedom: int) -> float:
        """The largest evidence that does not reject: a p-value equal to the significance does."""
        return float(np.nextafter(-2.0 * np.log(significance), -np.inf)) if degrees_of_freedom else np.inf

    def power(self, noncentrality: float, significance: float, degrees_of_freedom: int) -> float:
        """The law of p-values under the alternative is not known here."""
        return float("nan")


class SupportTest(ABC):
    """A test of every H_I at any level: p-values of supports, and how those of several supports may be read together.

    The search over supports works on evidence: λ for Wilks' theorem, 2·log E for e-values, −2·log p for the rest; `law`
    turns it into p-values. Only `test_many` must be written for a new test.
    """

    name: str
    in_words: str  # what it is called in a sentence
    grade: Grade = Grade.MODEL_BASED
    statistic_name: str  # what the number beside the p-value is
    space: PolicySpace
    law: NullDistribution = EvidenceLaw()
    assumes: tuple[str, ...] = (
        "form", "noise", "independent rows", "no feedback", "one row per subject", "frequency weights",
    )  # fmt: skip
    """The assumptions on which its guarantee rests, by name."""
    simultaneous = False  # whether all true H_I keep the level together, so that no correction is due
    monotone = True  # whether the evidence against H_I only grows as I shrinks
    max_exhaustive_groups = 12  # groups whose supports are searched exhaustively
    batch = 1  # supports that are tried together on either side of the critical value
    effort = 0  # tests that may be spent on nothing but sharper adjusted p-values
    sampled = False  # whether it looks at a sample only, where a log is read in passes

    @abstractmethod
    def test_many(self, supports: Sequence[Support]) -> list[TestResult]:
        """The tests of several H_I."""

    def evidence(self, test: TestResult) -> float:
        """The evidence against H_I, on the scale of `law`."""
        return -2.0 * float(np.log(test.p_value)) if test.p_value > 0 else float("inf")

    def evidence_lower_bound(self, test: TestResult) -> float:
        """What the evidence against every H_J, J ⊂ I, is at least, from the test of H_I alone."""
        return self.evidence(test) if self.monotone else 0.0

    def bound_statistics(self, supports: Sequence[Support], criticals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of the evidence, tight enough to say on which side of its critical value each lies."""
        exact = np.array([self.evidence(test) for test in self.test_many(supports)])
        return exact, exact

    def evidence_of_all(self, groups: list[int]) -> np.ndarray | None:
        """The evidence against all 2^D supports of some groups, where it comes at once."""
        return None

    def expected_evidence(self, groups: list[int], one_out: np.ndarray) -> np.ndarray:
        """A guess of the evidence of all 2^D supports, which orders the search: that of the groups left out, added up."""
        total = np.zeros(2 ** len(groups))
        for bit, evidence in enumerate(one_out):
            total.reshape(-1, 2, 1 << bit)[:, 0] += evidence
        return total

    def degrees_of_all(self, groups: list[int]) -> np.ndarray:
        """The degrees of freedom of all 2^D supports; only whether there are any matters, unless the law says otherwise."""
        degrees = np.ones(2 ** len(groups), dtype=np.int64)
        degrees[-1] = 0
        return degrees

    def max_degrees_of_freedom(self) -> int:
        """The degrees of freedom of the smallest support, in which no tested group is."""
        return 1

    def closed_testing_distribution(self) -> NullDistribution:
        """The law that closed testing over all supports may use."""
        return self.law

    def prepare(self, groups: Sequence[int]) -> None:  # noqa: B027 (most tests have nothing to prepare)
        """Called before the supports of these groups are searched."""

    def withheld(self, tests: dict[int, TestResult], significance: float) -> Note | None:
        """Why no verdict can be given, if so."""
        return None

    @property
    def clusters(self) -> ClusterSummary:
        """What is taken as independent of each other."""
        return ClusterSummary("rows")

    def conditions(self) -> tuple[Note, ...]:
        """What its guarantee assumes."""
        return Note(Reason.POLICY_FAMILY, {"family": self.space.in_words}), Note(Reason.INDEPENDENT_ROWS)

    def own_assumptions(self) -> list[AssumptionCheck]:
        """What this test assumes beyond the policy space, and whether the data contradict it."""
        return []

    def action_effect(self, group: int) -> GroupEffect | None:
        """How far the action moves when a group is replaced by what the others predict; None: ask the fitted policy."""
        return None

    def behaviour(self) -> Behaviour | None:
        """What it says of the agent's mean action; None: ask the fitted policy."""
        return None

    def effects(self, significance: float) -> SubjectEffects | None:
        """How subjects differ, where they have random weights."""
        return None

    def note(self) -> str:
        """What a reader must know about these p-values, if anything."""
        return ""


def e_value(log_e: float) -> float:
    """E from its logarithm, cut off where a number could not hold it."""
    return float(np.exp(min(log_e, 300.0)))
