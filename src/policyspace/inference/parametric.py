"""Likelihood-ratio, Firth, bootstrap and cluster-robust Wald tests."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import final

import numpy as np
from scipy.special import chdtrc, fdtrc, gammaincc

from policyspace.answer import AssumptionCheck, ClusterSummary, Note, Reason
from policyspace.data.sample import Sample
from policyspace.errors import InputError
from policyspace.families.base import Policy, Support
from policyspace.families.covariance import (
    Collinearity,
    clustered_covariance,
    collinear_groups,
    cr2,
    num_clusters,
    wald_statistic,
)
from policyspace.families.likelihood import Likelihood, NullDistribution, WorstCaseThreshold
from policyspace.families.registry import likelihood_of
from policyspace.inference.base import SupportTest, TestResult, likelihood_ratio
from policyspace.runtime import num_workers, say_progress

# -- Wilks' theorem: λ_I against its law (χ², F or Wilks' Λ), by plain or by Firth's penalised likelihood.

QUIET = 0.1
"""Restart noise must stay below this share of the critical value for a χ² verdict to mean anything."""

FEW = 10
"""Rows a parameter below which the χ² distribution is too liberal for discrete actions; Firth's penalty makes up for it."""


@final
class WilksTest(SupportTest):
    """λ_I falls as supports grow, and its law under H_I is that of the likelihood (Theorem 2.1)."""

    statistic_name = "λ"
    assumes = (*SupportTest.assumes, "finite fit", "enough rows")
    batch = 64
    effort = 128

    def __init__(self, likelihood: Likelihood) -> None:
        self.likelihood, self.space, self.law = likelihood, likelihood.space, likelihood.law
        self.name = "firth" if likelihood.penalised else "wilks"
        self.in_words = f"{'penalised ' if likelihood.penalised else ''}likelihood-ratio test"
        self.max_exhaustive_groups = 24 if likelihood.has_all_subsets else 16

    def test_many(self, supports: Sequence[Support]) -> list[TestResult]:
        """All fits in one pass, where the likelihood can; a restricted fit that stopped short is no evidence."""
        likelihood = self.likelihood
        fits = likelihood.fit_many(supports)
        for fit in fits:
            likelihood.replace_full_fit_if_better(fit)
        tests = [likelihood_ratio(fit, likelihood.full) for fit in fits]
        if likelihood.design is None:
            return tests  # what restarts leave open is judged by their noise
        return [
            t if fit.converged else replace(t, statistic=0.0, p_value=1.0) for t, fit in zip(tests, fits, strict=True)
        ]

    def evidence(self, test: TestResult) -> float:
        """λ_I."""
        return test.statistic

    def bound_statistics(self, supports: Sequence[Support], criticals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of λ_I from fits that go on only until their side of the critical value is certain."""
        return self.likelihood.bound_statistics(supports, criticals)

    def evidence_of_all(self, groups: list[int]) -> np.ndarray | None:
        """λ of all supports, where one recursion gives them."""
        return self.likelihood.statistics_of_all(groups) if self.likelihood.has_all_subsets else None

    def expected_evidence(self, groups: list[int], one_out: np.ndarray) -> np.ndarray:
        """The quadratic approximation of λ."""
        screened = self.likelihood.approximate_statistics(groups)
        return self.degrees_of_all(groups) * 1.0 if screened is None else screened

    def degrees_of_all(self, groups: list[int]) -> np.ndarray:
        """Differences of ranks."""
        return self.likelihood.num_free(self.space.full_support) - self.likelihood.num_free_of_all(groups)

    def max_degrees_of_freedom(self) -> int:
        """All tested scalars, collinear ones aside."""
        return self.likelihood.degrees_of_freedom(frozenset())

    @cached_property
    def dependences(self) -> list[Collinearity]:
        """Features that cannot be told apart."""
        return collinear_groups(self.likelihood)

    def closed_testing_distribution(self) -> NullDistribution:
        """Where features are collinear without being exchangeable, one threshold for all supports."""
        if self.likelihood.identifiable or all(related.exchangeable for related in self.dependences):
            return self.law
        return WorstCaseThreshold(self.law, self.likelihood.degrees_of_freedom(frozenset()))

    def prepare(self, groups: Sequence[int]) -> None:
        """Fits that help each other are made together."""
        self.likelihood.prepare(groups)

    def withheld(self, tests: dict[int, TestResult], significance: float) -> Note | None:
        """Fits of a network that other random starts would change by as much as decides."""
        degrees = min((test.degrees_of_freedom for test in tests.values()), default=0)
        critical = self.law.critical(significance / max(len(tests), 1), degrees)
        noise = self.likelihood.restart_noise
        if not degrees or noise <= QUIET * critical:
            return None
        return Note(Reason.RESTARTS_DIFFER, {"noise": noise, "critical": critical})

    def own_assumptions(self) -> list[AssumptionCheck]:
        """Firth's penalty makes every fit finite, and its λ has the χ² law on few pairs too."""
        separated = self.likelihood.full.separated and not self.likelihood.penalised
        words, other = (
            "the most likely parameters are finite",
            "bootstrap" if self.likelihood.penalty is None else "firth",
        )
        if separated:
            words = f"the data are separated, where λ has no χ² distribution; use the test '{other}'"
        found = [AssumptionCheck.of("finite fit", not separated, words)]
        if few_rows(self.likelihood) and not self.likelihood.penalised:
            few = Note(Reason.FEW_ROWS, few_rows(self.likelihood))
            words = f"{few}, where the χ² distribution of λ is too liberal; use the test '{other}'"
            found.append(AssumptionCheck.of("enough rows", False, words))
        return found

    def note(self) -> str:
        """Which ratio, which law."""
        law = {"chi2": "χ²", "F": "the F distribution"}.get(self.law.name, self.law.name)
        if self.likelihood.penalised:
            return f"likelihood ratio with Firth's penalty against {law}"
        return f"likelihood ratio against {law}"


def few_rows(likelihood: Likelihood) -> dict[str, float]:
    """The numbers of rows and parameters, if these are too few choices for the χ² distribution of λ; else nothing."""
    space = likelihood.space
    if not space.asymptotic or likelihood.total_weight >= FEW * space.num_parameters:
        return {}
    return {"rows": likelihood.total_weight, "parameters": space.num_parameters}


# -- The parametric bootstrap: how large λ_I is when H_I is true, by simulation on the observed states.

FEWEST = 19
"""Simulated data sets before any verdict."""

CLEAR = 0.02
"""A verdict is clear when the fitted tail puts p below this share of the level."""


@final
class Bootstrap(SupportTest):
    """λ_I against λ*_I of actions simulated from a regularised fit inside Θ_I; p = (1 + #{λ* ≥ λ})/(1 + B).

    Observed and simulated data follow the identical protocol. Simulation stops early when too many λ* exceed λ
    (Besag and Clifford: p = exceedances/simulations), or when λ lies far beyond a gamma law fitted to them.
    """

    name, in_words = "bootstrap", "parametric bootstrap"
    statistic_name = "λ"
    monotone = False  # λ is, but each H_I has a law of its own

    def __init__(
        self,
        likelihood: Likelihood,
        data: Sample,
        level: float = 0.05,
        seed: int = 0,
        num_simulations: int | None = None,
    ) -> None:
        self.space, self.likelihood, self._seed = likelihood.space, likelihood, seed
        self._data, self._level = data.expand_weights("the bootstrap"), level
        # Enough for the smallest p-value that a correction over all groups may ask for.
        self._most = (
            max(99, int(np.ceil(len(self.space.tested) / level)) - 1) if num_simulations is None else num_simulations
        )
        self._known: dict[Support, TestResult] = {}
        self.simulated: dict[Support, np.ndarray] = {}

    def test(self, support: Support) -> TestResult:
        """The p-value of one H_I by simulation."""
        if support not in self._known:
            policy = self.likelihood.penalised_policy(support)
            observed = self._statistic(self._data.actions, support, policy)
            degrees = self.likelihood.degrees_of_freedom(support)
            p_value = self._p_value(observed, support, policy) if degrees else 1.0
            self._known[support] = TestResult(support, observed, degrees, p_value)
        return self._known[support]

    def test_many(self, supports: Sequence[Support]) -> list[TestResult]:
        """One support after the other: each keeps all cores busy."""
        return [self.test(support) for support in supports]

    def _p_value(self, observed: float, support: Support, policy: Policy) -> float:
        enough = int(np.ceil(self._level * (self._most + 1))) + 1  # so many exceedances, and p is above the level
        drawn: list[float] = []
        while len(drawn) < self._most:
            say_progress(f"hypothesis {len(self._known) + 1}: simulating data sets", len(drawn), self._most)
            size = min(FEWEST + 1 - len(drawn) if len(drawn) < FEWEST else 10, self._most - len(drawn))
            drawn += self._simulate(support, policy, len(drawn), size)
            exceeding = int(np.sum(np.array(drawn) >= observed))
            if exceeding >= enough:
                break
            if len(drawn) >= FEWEST and not exceeding:
                tail = gamma_tail(observed, np.array(drawn))
                if tail < CLEAR * self._level / max(len(self.space.tested), 1):
                    self.simulated[support] = np.array(drawn)
                    return tail
        self.simulated[support] = np.array(drawn)
        if exceeding >= enough:
            return exceeding / len(drawn)
        return (1 + exceeding) / (1 + len(drawn))

    def _simulate(self, support: Support, policy: Policy, first: int, count: int) -> list[float]:
        """λ* of simulated data sets number first, first+1, …: the same whatever the number of threads."""

        def one(number: int) -> float:
            rng = np.random.default_rng([self._seed, number, *sorted(support)])
            return self._statistic(policy.sample(rng, self._data.features), support, policy)

        with ThreadPoolExecutor(num_workers()) as pool:
            return list(pool.map(one, range(first, first + count)))

    def _statistic(self, actions: np.ndarray, support: Support, policy: Policy) -> float:
        """λ_I of some actions on the observed states."""
        short = self.likelihood.quick_statistic(actions, policy, support)
        if short is not None:
            return short
        if actions is not self._data.actions:
            try:
                likelihood = likelihood_of(self.space, replace(self._data, actions=actions))
            except InputError:
                return 0.0  # simulated actions that never differ fit every hypothesis perfectly
        else:
            likelihood = self.likelihood
        restricted = likelihood.fit(support)
        likelihood.replace_full_fit_if_better(restricted)
        return 2 * (likelihood.full.log_likelihood - restricted.log_likelihood)

    @cached_property
    def _ceiling(self) -> np.ndarray:
        """λ* of the smallest support, the largest law that any H_I has."""
        support: Support = frozenset()
        return np.array(self._simulate(support, self.likelihood.penalised_policy(support), 0, FEWEST))

    def evidence_lower_bound(self, test: TestResult) -> float:
        """λ_J ≥ λ_I for J ⊆ I: what lies far beyond even the law of the smallest support is rejected with its subsets."""
        if test.p_value > self._level:
            return 0.0
        tail = gamma_tail(test.statistic, self._ceiling)
        return self.evidence(replace(test, p_value=max(tail, test.p_value))) if tail < CLEAR * self._level else 0.0

    def note(self) -> str:
        """How much was simulated."""
        counts = [len(values) for values in self.simulated.values()]
        spread = (
            f"{min(counts)} to {max(counts)}" if counts and min(counts) < max(counts) else f"{max(counts, default=0)}"
        )
        return (
            f"parametric bootstrap, {spread} simulated data sets a hypothesis; p-values below 1/{self._most + 1} come "
            "from a gamma tail fitted to them"
        )


def gamma_tail(observed: float, simulated: np.ndarray) -> float:
    """P(G ≥ λ) for the gamma law with the simulated mean and variance, a scaled χ²; 1 inside the simulated range."""
    mean, variance = float(simulated.mean()), float(simulated.var(ddof=1))
    if observed <= simulated.max() or not (mean > 0 and variance > 0):
        return 1.0 if observed <= simulated.max() else 0.0
    return float(gammaincc(mean**2 / variance, observed * mean / variance))


# -- Wald's test with a covariance by cluster: for subjects whose rows belong together, and for sampling weights.

FEWEST_CLUSTERS = 40
"""Clusters from which the level is kept in simulations (tests/inference/test_robust_level.py); at 20 it may be 6 %."""


FEWEST_STATES = 20
"""States from which a covariance by state keeps its level, where rows are counts (`python -m benchmarks.counts`)."""


def equal_states(data: Sample) -> np.ndarray:
    """The state of each row, as a number [n]."""
    return np.asarray(np.unique(data.features, axis=0, return_inverse=True)[1]).ravel()


def num_counted_states(data: Sample) -> int:
    """In how many states decisions were counted, where rows are counts of labels; 0 where they are single decisions."""
    labels = data.action_type.num_labels is not None
    if not labels or data.weights is None or data.sampling_weights or data.subjects is not None or not data.in_memory:
        return 0
    states = int(equal_states(data).max()) + 1
    return states if data.total_weight >= 2 * states and bool((data.weights % 1 == 0).all()) else 0


def state_dispersion(likelihood: Likelihood, data: Sample) -> tuple[float, float] | None:
    """X²/df of the labels counted in each state beside those expected, and its p-value; None where nothing is left over."""
    if not num_counted_states(data):
        return None
    codes, weights = equal_states(data), np.asarray(data.weights)
    _, first = np.unique(codes, return_index=True)
    expected = likelihood.space.mean(likelihood.full.theta, data.features[first])
    assert expected is not None
    shares = np.column_stack([expected, 1 - expected.sum(axis=1)])
    counts = np.zeros(shares.shape)
    np.add.at(counts, (codes, np.asarray(data.actions)), weights)
    wanted = counts.sum(axis=1, keepdims=True) * shares
    degrees = (counts.sum(axis=1) > 1).sum() * (shares.shape[1] - 1) - likelihood.num_free(
        likelihood.space.full_support
    )
    if degrees <= 0:
        return None
    excess = float(((counts - wanted) ** 2 / np.maximum(wanted, 1e-9))[counts.sum(axis=1) > 1].sum())
    return excess / degrees, float(chdtrc(degrees, excess))


@final
class RobustWald(SupportTest):
    """W_I = θ̂_Jᵀ V_JJ⁻¹ θ̂_J with V by cluster, J what Θ_I fixes, m = |J|.

    V is corrected for the number G of clusters, and W_I has Hotelling's law with degrees of freedom of its own; beyond
    many clusters neither matters, and W_I/m is taken as F_{m, G−1}.
    """

    name, in_words = "robust", "cluster-robust Wald test"
    statistic_name = "W"
    monotone = False  # larger hypotheses have more degrees of freedom
    assumes: tuple[str, ...] = ("form", "no feedback", "independent clusters")
    sampled = True

    def __init__(self, likelihood: Likelihood, data: Sample) -> None:
        if likelihood.full.separated and not likelihood.penalised:
            raise InputError(
                "the test 'robust' needs finite weights, found separated data: use the test 'lean' or 'firth'."
            )
        self._states = data.subjects is None and num_counted_states(data) > 0
        if self._states:
            data = replace(data, subjects=equal_states(data))
        elif data.subjects is None and not data.sampling_weights:
            self.assumes = (*self.assumes, "independent rows")
        self.space, self.likelihood, self._data = likelihood.space, likelihood, data
        self._num_clusters = num_clusters(data)
        self._few = cr2(likelihood, data)
        self._covariance = clustered_covariance(likelihood, data) if self._few is None else None

    def test_many(self, supports: Sequence[Support]) -> list[TestResult]:
        """Each from the one full fit."""
        return [self._test(support) for support in supports]

    def _test(self, support: Support) -> TestResult:
        fixed = np.flatnonzero(~self.space.free_mask(support))
        if not len(fixed) or len(fixed) >= self._num_clusters - 1:
            return TestResult(support, 0.0, len(fixed), 1.0)
        away = (self.likelihood.full.theta - self.space.fixed)[fixed]
        if self._few is not None:
            statistic, p_value = self._few.test(away, fixed)
            return TestResult(support, statistic, len(fixed), p_value)
        assert self._covariance is not None
        statistic = wald_statistic(away, self._covariance[np.ix_(fixed, fixed)])
        p_value = float(fdtrc(len(fixed), self._num_clusters - 1, statistic / len(fixed)))
        return TestResult(support, statistic, len(fixed), p_value)

    @property
    def clusters(self) -> ClusterSummary:
        """Subjects where they are known, states where rows are counts, else rows."""
        kind = "states" if self._states else "rows" if self._data.subjects is None else "subjects"
        return ClusterSummary(kind, self._num_clusters)

    def conditions(self) -> tuple[Note, ...]:
        """What remains to be assumed."""
        mean = Note(Reason.POLICY_MEAN, {"family": self.space.in_words})
        return mean, Note(Reason.INDEPENDENT_CLUSTERS, {"clusters": self.clusters.kind})

    def own_assumptions(self) -> list[AssumptionCheck]:
        """That there are enough clusters."""
        words = f"{self._num_clusters} {self.clusters.kind} are taken as independent of each other"
        least = FEWEST_STATES if self._states else FEWEST_CLUSTERS
        enough = self._num_clusters >= least
        if not enough:
            words = f"{self._num_clusters} {self.clusters.kind} are too few: a covariance by cluster needs {least}"
        return [AssumptionCheck.of("independent clusters", enough, words)]

    def note(self) -> str:
        """What it is."""
        by = f"Wald test, its covariance by {self._num_clusters} {self.clusters.kind}"
        return f"{by}, against the F distribution" if self._few is None else f"{by}, corrected for so few (CR2 and HTZ)"
