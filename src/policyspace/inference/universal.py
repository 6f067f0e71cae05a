"""Universal inference: one half of the episodes bets against every H_I on the other half (Wasserman et al. 2020)."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.fits import likelihood_of
from policyspace.fits.base import Likelihood
from policyspace.inference.base import SupportTest, e_value
from policyspace.inference.glr import Test
from policyspace.policies.groups import Support


class Direction(NamedTuple):
    """One half of the data, what the other half's policies give it, and a policy of its own to start fits from."""

    likelihood: Likelihood
    log_bet: float
    start: np.ndarray


@final
class Universal(SupportTest):
    """E_I = L_{D₀}(θ₁)/sup_{Θ_I} L_{D₀} with θ₁ learned on D₁, averaged over priors and directions; reject if E_I ≥ 1/δ.

    Valid at any n, without regularity, under separation. One numerator serves all I and every true H_I has
    sup L ≥ L(π*), so that all 2^d supports keep the level together: no correction is due.
    """

    name = "universal"
    statistic_name = "2·log E"
    simultaneous = True

    def __init__(self, likelihood: Likelihood, data: Demonstrations, level: float = 0.05, seed: int = 0) -> None:
        data = data.without_weights("universal inference")
        self.space, self.likelihood, self._data = likelihood.space, likelihood, data
        self.halves = halves(data, seed)
        self._known: dict[Support, float] = {}
        self._climbs: dict[Support, list[float]] = {}
        self._at_least: dict[Support, float] = {}

    @cached_property
    def _directions(self) -> list[Direction]:
        """For each half, its likelihood and what the policies learned on the other half give it."""
        try:
            own = [likelihood_of(self.space, self._data.rows(half)) for half in self.halves]
        except InputError as error:
            raise InputError(f"universal inference needs two halves that can both be fitted: {error}") from error
        learned = [likelihood.bets() for likelihood in own]
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
                here.log_bet - here.likelihood.first_climb(support, here.start) for here in self._directions
            ]
        return self._climbs[support]

    def test_many(self, supports: Sequence[Support]) -> list[Test]:
        """p = min(1, 1/E_I), all supports that are asked for fitted together."""
        return [
            Test(s, 2 * float(e), self.likelihood.degrees_of_freedom(s), float(np.exp(-max(e, 0.0))), e_value(e))
            for s, e in zip(supports, self.log_e(supports), strict=True)
        ]

    def evidence(self, test: Test) -> float:
        """2·log E_I, which only grows as I shrinks: the sup over a smaller Θ_J is smaller."""
        return test.statistic

    def bracket(self, supports: Sequence[Support], criticals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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


def halves(data: Demonstrations, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows of two random halves: whole episodes where there are two or more, otherwise single rows."""
    rng = np.random.default_rng(seed)
    if data.episodes is not None and data.num_episodes and data.num_episodes > 1:
        order = rng.permutation(data.num_episodes)
        lengths = np.bincount(data.episodes)[order]
        # Whole episodes until half of the pairs are in, at least one on either side.
        cut = int(np.clip(np.searchsorted(np.cumsum(lengths), data.num_pairs / 2) + 1, 1, len(order) - 1))
        first = np.isin(data.episodes, order[:cut])
    else:
        first = np.zeros(data.num_pairs, dtype=bool)
        first[rng.permutation(data.num_pairs)[: data.num_pairs // 2]] = True
    return np.flatnonzero(first), np.flatnonzero(~first)
