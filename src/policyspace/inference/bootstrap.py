"""The parametric bootstrap: how large λ_I is when H_I is true, by simulation on the observed states."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import final

import numpy as np
from scipy.special import gammaincc

from policyspace.data.chunks import num_workers
from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.fits import likelihood_of
from policyspace.fits.base import Likelihood
from policyspace.inference.base import SupportTest
from policyspace.inference.glr import Test
from policyspace.policies.base import Policy
from policyspace.policies.groups import Support
from policyspace.progress import say_progress

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

    name = "bootstrap"
    statistic_name = "λ"
    monotone = False  # λ is, but each H_I has a law of its own

    def __init__(
        self,
        likelihood: Likelihood,
        data: Demonstrations,
        level: float = 0.05,
        seed: int = 0,
        num_simulations: int | None = None,
    ) -> None:
        self.space, self.likelihood, self._seed = likelihood.space, likelihood, seed
        self._data, self._level = data.without_weights("the bootstrap"), level
        # Enough for the smallest p-value that a correction over all groups may ask for.
        self._most = (
            max(99, int(np.ceil(len(self.space.tested) / level)) - 1) if num_simulations is None else num_simulations
        )
        self._known: dict[Support, Test] = {}
        self.simulated: dict[Support, np.ndarray] = {}

    def test(self, support: Support) -> Test:
        """The p-value of one H_I by simulation."""
        if support not in self._known:
            policy = self.likelihood.penalised_policy(support)
            observed = self._statistic(self._data.actions, support, policy)
            degrees = self.likelihood.degrees_of_freedom(support)
            p_value = self._p_value(observed, support, policy) if degrees else 1.0
            self._known[support] = Test(support, observed, degrees, p_value)
        return self._known[support]

    def test_many(self, supports: Sequence[Support]) -> list[Test]:
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
        short = self.likelihood.short_statistic(actions, policy, support)
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
        likelihood.adopt(restricted)
        return 2 * (likelihood.full.log_likelihood - restricted.log_likelihood)

    @cached_property
    def _ceiling(self) -> np.ndarray:
        """λ* of the smallest support, the largest law that any H_I has."""
        support: Support = frozenset()
        return np.array(self._simulate(support, self.likelihood.penalised_policy(support), 0, FEWEST))

    def evidence_below(self, test: Test) -> float:
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
