"""Tests by e-values: universal inference, the e-process, and the mixture e-value."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from policyspace.data.sample import Sample
from policyspace.errors import InputError, printable
from policyspace.families.base import Policy, PolicySpace, Support
from policyspace.families.likelihood import Likelihood, LinearLikelihood
from policyspace.families.registry import likelihood_of
from policyspace.inference.base import SupportTest, TestResult, e_value
from policyspace.runtime import counted

# -- Universal inference: one half of the episodes bets against every H_I on the other half (Wasserman et al. 2020).


class Direction(NamedTuple):
    """One half of the data, what the other half's policies give it, and a policy of its own to start fits from."""

    likelihood: Likelihood
    log_bet: float
    start: np.ndarray


@final
class UniversalTest(SupportTest):
    """E_I = L_{D₀}(θ₁)/sup_{Θ_I} L_{D₀} with θ₁ learned on D₁, averaged over priors and directions; reject if E_I ≥ 1/δ.

    Valid at any n, without regularity, under separation. One numerator serves all I and every true H_I has
    sup L ≥ L(π*), so that all 2^d supports keep the level together: no correction is due.
    """

    name, in_words = "universal", "universal inference"
    statistic_name = "2·log E"
    simultaneous = True

    def __init__(self, likelihood: Likelihood, data: Sample, level: float = 0.05, seed: int = 0) -> None:
        data = data.expand_weights("universal inference")
        self.space, self.likelihood, self._data = likelihood.space, likelihood, data
        self.halves = halves(data, seed)
        self._known: dict[Support, float] = {}
        self._climbs: dict[Support, list[float]] = {}
        self._at_least: dict[Support, float] = {}

    @cached_property
    def _directions(self) -> list[Direction]:
        """For each half, its likelihood and what the policies learned on the other half give it."""
        try:
            own = [likelihood_of(self.space, self._data.take(half)) for half in self.halves]
        except InputError as error:
            raise InputError(f"universal inference needs two halves that can both be fitted: {error}") from error
        learned = [likelihood.prior_predictive_policies() for likelihood in own]
        found = []
        for half in (0, 1):
            rows = self.halves[half]
            features, actions = self._data.features[rows], self._data.actions[rows]
            each = [float(policy.log_probs(features, actions).sum()) for policy in learned[1 - half]]
            bet = float(logsumexp(each)) - float(np.log(len(each)))
            found.append(Direction(own[half], bet, learned[half][-1].theta))
        return found

    def log_e(self, supports: Sequence[Support]) -> np.ndarray:
        """log of the mean of the two e-values, for each support."""
        todo = [support for support in supports if support not in self._known]
        if todo:
            each = [
                here.log_bet - np.array([fit.log_likelihood for fit in here.likelihood.fit_many(todo)])
                for here in self._directions
            ]
            self._known.update(zip(todo, _log_mean(*each).tolist(), strict=True))
        return np.array([self._known[support] for support in supports])

    def at_most(self, support: Support) -> float:
        """An upper bound on log E_I from one climb a half: any θ ∈ Θ_I bounds E_I from above, the best one is E_I."""
        return self._known[support] if support in self._known else float(_log_mean(*self._first_climbs(support)))

    def rejects(self, support: Support, threshold: float) -> bool:
        """Whether log E_I reaches a threshold, by a search of both halves or, where it is enough, of one.

        E_I is no less than half of what either direction says: if the one that is stronger after the first climbs still
        reaches twice the threshold's E when its null likelihood has been searched in earnest, the other cannot matter.
        """
        if support not in self._known:
            stronger = self._directions[int(np.argmax(self._first_climbs(support)))]
            found = stronger.log_bet - stronger.likelihood.fit(support).log_likelihood - float(np.log(2.0))
            if found >= threshold:
                self._at_least[support] = found
                return True
        return bool(self.log_e([support])[0] >= threshold)

    def _first_climbs(self, support: Support) -> list[float]:
        """What each direction's log E is at most."""
        if support not in self._climbs:
            self._climbs[support] = [
                here.log_bet - here.likelihood.approximate_max(support, here.start) for here in self._directions
            ]
        return self._climbs[support]

    def test_many(self, supports: Sequence[Support]) -> list[TestResult]:
        """p = min(1, 1/E_I), all supports that are asked for fitted together."""
        return [
            TestResult(s, 2 * float(e), self.likelihood.degrees_of_freedom(s), float(np.exp(-max(e, 0.0))), e_value(e))
            for s, e in zip(supports, self.log_e(supports), strict=True)
        ]

    def evidence(self, test: TestResult) -> float:
        """2·log E_I, which only grows as I shrinks: the sup over a smaller Θ_J is smaller."""
        return test.statistic

    def bound_statistics(self, supports: Sequence[Support], criticals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A first climb may show that E_I is too small; otherwise a search shows whether it is large enough."""
        bounds = [self._bounds(support, critical / 2) for support, critical in zip(supports, criticals, strict=True)]
        return 2 * np.array([low for low, _ in bounds]), 2 * np.array([high for _, high in bounds])

    def _bounds(self, support: Support, threshold: float) -> tuple[float, float]:
        """Bounds of log E_I on one side of the threshold."""
        if support not in self._known:
            at_most = self.at_most(support)
            if at_most <= threshold:
                return -np.inf, at_most
            if self.rejects(support, float(np.nextafter(threshold, np.inf))) and support not in self._known:
                return self._at_least[support], at_most
        return self._known[support], self._known[support]

    def note(self) -> str:
        """How the data were split."""
        unit = "episodes" if self._data.num_episodes and self._data.num_episodes > 1 else "rows, taken as independent"
        return f"universal inference, cross-fitted over two halves of the {unit}; valid at any sample size"


def _log_mean(first: ArrayLike, second: ArrayLike) -> np.ndarray:
    """log of the mean of two numbers whose logs are given."""
    return np.asarray(np.logaddexp(first, second) - np.log(2.0))


def halves(data: Sample, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows of two random halves: whole episodes where there are two or more, otherwise single rows."""
    rng = np.random.default_rng(seed)
    if data.episodes is not None and data.num_episodes and data.num_episodes > 1:
        order = rng.permutation(data.num_episodes)
        lengths = np.bincount(data.episodes)[order]
        # Whole episodes until half of the pairs are in, at least one on either side.
        cut = int(np.clip(np.searchsorted(np.cumsum(lengths), data.num_rows / 2) + 1, 1, len(order) - 1))
        first = np.isin(data.episodes, order[:cut])
    else:
        first = np.zeros(data.num_rows, dtype=bool)
        first[rng.permutation(data.num_rows)[: data.num_rows // 2]] = True
    return np.flatnonzero(first), np.flatnonzero(~first)


# -- The prequential e-process: bets on each episode with what was learned before it, valid at every stopping time.

BLOCK = 50
"""Rows that count as an episode where the data name none."""

GROWTH = 1.1
"""The bettor learns again when there are this many times more rows than at the last time."""


class Episode(NamedTuple):
    """The pairs of one episode; an agent may do one thing only in all of it."""

    features: np.ndarray  # [T, q]
    actions: np.ndarray  # [T] codes or [T, k]


class PredictiveEProcess:
    """M_t = Π_s π_{θ̂_{s−1}}(a_s|s_s), the mean over a few priors: every episode is predicted from those before it.

    The first episodes, until a policy can be learned at all, are not bet on; E_t leaves them out of both its parts.
    """

    def __init__(self, space: PolicySpace) -> None:
        self.space = space
        self.bet_on: list[Episode] = []
        self._seen: list[Episode] = []
        self._policies: list[Policy] = []
        self._wealths = np.zeros(1)  # log, one a policy
        self._learned_from = 0

    @property
    def num_rows(self) -> int:
        """The rows seen so far."""
        return sum(len(part.features) for part in self._seen)

    def tell(self, episode: Episode) -> None:
        """Bet on an episode, then learn from it."""
        if self._policies:
            won = [policy.log_probs(episode.features, episode.actions).sum() for policy in self._policies]
            self._wealths = self._wealths + np.array(won)
            self.bet_on.append(episode)
        self._seen.append(episode)
        if self.num_rows >= (GROWTH * self._learned_from if self._policies else self.space.min_training_rows):
            self._learn()

    @property
    def log_wealth(self) -> float:
        """log M_t: the wealth was divided evenly over the policies at the start."""
        return float(logsumexp(self._wealths)) - float(np.log(len(self._wealths)))

    def _learn(self) -> None:
        try:
            likelihood = likelihood_of(self.space, pooled_episodes(self.space, self._seen))
        except InputError:
            return  # not yet: too few rows, or an agent that has done only one thing so far
        self._policies = likelihood.prior_predictive_policies(self._policies)
        self._wealths = np.broadcast_to(self._wealths, len(self._policies))
        self._learned_from = self.num_rows


@dataclass(frozen=True)
class GroupEvidence:
    """Where one group stands in a stream."""

    group: str
    log_e: float  # the evidence now
    highest: float  # the most that there ever was, which is what counts
    state: Literal["controlled", "open"]


@dataclass(frozen=True)
class MonitoringState:
    """Where all groups stand after an episode."""

    num_episodes: int
    num_rows: int
    units: list[GroupEvidence]

    @property
    def decided(self) -> bool:
        """Whether every group is known to be controlled; that one is not can never be proven."""
        return all(unit.state == "controlled" for unit in self.units)

    @property
    def controlled(self) -> list[str]:
        """The groups found so far."""
        return [unit.group for unit in self.units if unit.state == "controlled"]

    def __str__(self) -> str:
        cells = [
            f"{printable(u.group)} {'controlled' if u.state == 'controlled' else f'E = {np.exp(u.log_e):.2g}'}"
            for u in self.units
        ]
        return f"episode {self.num_episodes}, {self.num_rows} rows: " + ", ".join(cells)


class SequentialMonitor:
    """A stream of episodes, looked at as often as one likes: the chance of any false "controlled" ever is ≤ δ."""

    def __init__(self, space: PolicySpace, significance: float = 0.05) -> None:
        self.space, self.significance = space, significance
        self._bettor = PredictiveEProcess(space)
        self._highest = dict.fromkeys(space.tested, -np.inf)
        self.num_episodes = 0

    def tell(self, episode: Episode, look: bool = True, late: bool = False) -> MonitoringState:
        """Take in one episode, or `late` rows of an earlier one, and, if asked to, test every group that is still open."""
        self.num_episodes += not late
        self._bettor.tell(episode)
        now = dict(self._highest)
        open_ = [g for g in self.space.tested if self._highest[g] < self._threshold]
        if look and open_ and self._bettor.bet_on:
            supports = [self.space.full_support - {g} for g in open_]
            now |= dict(zip(open_, evidence(self.space, self._bettor, supports), strict=True))
            self._highest |= {g: max(now[g], self._highest[g]) for g in open_}
        units = [
            GroupEvidence(
                self.space.groups[g].name,
                float(now[g]) if np.isfinite(now[g]) else 0.0,
                float(self._highest[g]),
                "controlled" if self._highest[g] >= self._threshold else "open",
            )
            for g in self.space.tested
        ]
        return MonitoringState(self.num_episodes, self._bettor.num_rows, units)

    @property
    def _threshold(self) -> float:
        return -float(np.log(self.significance))


@final
class EProcess(SupportTest):
    """E_T(I) = M_T / sup_{Θ_I} L_T at the end of the data, the episodes taken in the order of the rows."""

    name, in_words = "eprocess", "e-process"
    statistic_name = "2·log E"
    simultaneous = True

    def __init__(self, likelihood: Likelihood, data: Sample, level: float = 0.05, seed: int = 0) -> None:
        self.space, self.likelihood = likelihood.space, likelihood
        self._bettor = PredictiveEProcess(self.space)
        for episode in counted(list(episodes_of(data.expand_weights("the e-process"))), "betting on episodes"):
            self._bettor.tell(episode)
        if not self._bettor.bet_on:
            raise InputError(
                f"{data.num_rows} rows are too few to learn from the first and bet on the rest: collect more rows, "
                "or use another test."
            )
        self._after = likelihood_of(self.space, pooled_episodes(self.space, self._bettor.bet_on))

    def test_many(self, supports: Sequence[Support]) -> list[TestResult]:
        """p = min(1, 1/E_T(I)), all supports that are asked for fitted together."""
        values = [self._bettor.log_wealth - fit.log_likelihood for fit in self._after.fit_many(supports)]
        return [
            TestResult(s, 2 * e, self.likelihood.degrees_of_freedom(s), float(np.exp(-max(e, 0.0))), e_value(e))
            for s, e in zip(supports, values, strict=True)
        ]

    def evidence(self, test: TestResult) -> float:
        """2·log E_I, which only grows as I shrinks: the sup over a smaller Θ_J is smaller."""
        return test.statistic

    def note(self) -> str:
        """What it is."""
        return "prequential e-process, each episode predicted from those before it; valid at every look"


def evidence(space: PolicySpace, bettor: PredictiveEProcess, supports: Sequence[Support]) -> list[float]:
    """log E_t(I) for each support; 0 while the data cannot be fitted."""
    try:
        fits = likelihood_of(space, pooled_episodes(space, bettor.bet_on)).fit_many(supports)
    except InputError:
        return [0.0 for _ in supports]
    return [bettor.log_wealth - fit.log_likelihood for fit in fits]


def episodes_of(data: Sample) -> Iterator[Episode]:
    """The episodes in the order in which they begin, or blocks of rows where the data name none."""
    labels = np.arange(data.num_rows) // BLOCK if data.episodes is None else data.episodes
    order = np.argsort(labels, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        yield Episode(data.features[rows], data.actions[rows])


def pooled_episodes(space: PolicySpace, parts: Sequence[Episode]) -> Sample:
    """Several episodes as one data set."""
    return Sample(
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.actions for part in parts]),
        space.feature_names,
        space.action_names,
        np.repeat(np.arange(len(parts)), [len(part.features) for part in parts]),
    )


# -- The mixture e-value of a linear policy: λ weighed against a prior on what is tested, cheap and valid at every look.

SPREAD = 1.0
"""τ: the prior's standard deviation for weights of standardised features (Gaussian: in units of the action's noise); what
a group of several columns adds to η has it in place of its weights, so that no level and no label is special."""


@final
class MixtureTest(SupportTest):
    """E_I = Π_j (1 + 1/v_j)^{−½} · exp{½ λ_I · min_j 1/(1 + v_j)}, v_j the variances of what Θ_I fixes over the prior's.

    For one parameter this is the likelihood ratio averaged over a N(0, τ²) prior, to second order; for several a lower
    bound on it. Asymptotic, but unlike Wilks' p-value it may be looked at after every episode.
    """

    name, in_words = "mixture", "mixture e-value"
    statistic_name = "λ"
    monotone = False  # smaller supports fix more, and the prior's price is higher

    def __init__(self, likelihood: Likelihood, data: Sample | None = None, level: float = 0.05, seed: int = 0) -> None:
        likelihood = likelihood.as_linear("the mixture e-value is")
        if not likelihood.identifiable:
            raise InputError(
                "the mixture e-value needs features that are not collinear: drop a redundant one, or use 'universal'."
            )
        self.likelihood, self.space = likelihood, likelihood.space
        self._variance, self._prior = self._standardised_variance(likelihood), np.linalg.inv(likelihood.prior_precision)

    def _standardised_variance(self, likelihood: LinearLikelihood) -> np.ndarray:
        """(nF̂)⁻¹ of the weights of standardised features [d, d]."""
        space = likelihood.space
        scale = np.ones((len(space.row_names), len(space.column_names)))
        scale[:, int(space.intercept) :] = likelihood.design.scale
        scale = scale / likelihood.action_scale()[:, None]
        unit = likelihood.total_weight * likelihood.information() / np.outer(scale, scale)
        return np.linalg.pinv(unit, hermitian=True)

    def test_many(self, supports: Sequence[Support]) -> list[TestResult]:
        """p = min(1, 1/E_I)."""
        return [self._test(support) for support in supports]

    def _test(self, support: Support) -> TestResult:
        fit = self.likelihood.fit(support)
        self.likelihood.replace_full_fit_if_better(fit)
        statistic = 2 * (self.likelihood.full.log_likelihood - fit.log_likelihood)
        zeroed = np.flatnonzero(~self.space.free_mask(support))
        degrees = self.likelihood.degrees_of_freedom(support)
        among = np.ix_(zeroed, zeroed)
        log_e = log_mixture(statistic, self._variance[among], SPREAD**2 * self._prior[among])
        return TestResult(support, statistic, degrees, float(np.exp(-max(log_e, 0.0))), e_value(log_e))

    def note(self) -> str:
        """What it is."""
        return "mixture e-value, 1/E as p-value; asymptotic, valid at every look"


def log_mixture(statistic: float, variance: np.ndarray, prior: np.ndarray) -> float:
    """log E from λ and the covariance matrices [m, m] of the m estimates that the hypothesis fixes, and of their prior."""
    if not len(variance):
        return 0.0
    root = np.linalg.cholesky(prior)
    half = np.linalg.solve(root, np.linalg.solve(root, variance).T)
    v = np.maximum(np.linalg.eigvalsh((half + half.T) / 2), np.finfo(float).tiny)
    price = -0.5 * float(np.log1p(1 / v).sum())
    return price + 0.5 * statistic * float((1 / (1 + v)).min())
