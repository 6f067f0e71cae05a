"""Universal inference: one half of the episodes bets against every H_I on the other half (Wasserman et al. 2020)."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from policyspace.calibrated.base import LocalTest, rows_of, written_out
from policyspace.calibrated.regularised import bets
from policyspace.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.glr import Test
from policyspace.likelihood import likelihood_of
from policyspace.likelihood.base import Likelihood
from policyspace.policies.base import PolicySpace
from policyspace.policies.groups import Support


class Universal(LocalTest):
    """E_I = L_{D₀}(θ₁)/sup_{Θ_I} L_{D₀} with θ₁ learned on D₁, averaged over priors and directions; reject if E_I ≥ 1/δ.

    Valid at any n, without regularity, under separation. One numerator serves all I and every true H_I has
    sup L ≥ L(π*), so that all 2^d supports keep the level together: no correction is due.
    """

    name = "universal"
    statistic_name = "2·log E"
    simultaneous = True

    def __init__(self, space: PolicySpace, data: Demonstrations, likelihood: Likelihood, seed: int = 0) -> None:
        data = written_out(data, "universal inference")
        self.space, self.likelihood, self._data = space, likelihood, data
        self.halves = halves(data, seed)
        self._known: dict[Support, float] = {}

    @cached_property
    def _directions(self) -> list[tuple[Likelihood, float]]:
        """For each half, its likelihood and what the policy learned on the other half gives it."""
        found = []
        try:
            own = [likelihood_of(self.space, rows_of(self._data, half)) for half in self.halves]
        except InputError as error:
            raise InputError(f"universal inference needs two halves that can both be fitted: {error}") from error
        for half, here, there in ((0, own[0], own[1]), (1, own[1], own[0])):
            rows = self.halves[half]
            features, actions = self._data.features[rows], self._data.actions[rows]
            each = [float(policy.log_probs(features, actions).sum()) for policy in bets(there)]
            found.append((here, float(logsumexp(each)) - float(np.log(len(each)))))
        return found

    def log_e(self, supports: Sequence[Support]) -> np.ndarray:
        """log of the mean of the two e-values, for each support."""
        todo = [support for support in supports if support not in self._known]
        if todo:
            each = [
                bet - np.array([fit.log_likelihood for fit in here.fit_many(todo)]) for here, bet in self._directions
            ]
            log_mean = np.logaddexp(*each) - np.log(2.0)
            self._known.update(zip(todo, log_mean.tolist(), strict=True))
        return np.array([self._known[support] for support in supports])

    def test(self, support: Support) -> Test:
        """p = min(1, 1/E_I)."""
        return self.test_many([support])[0]

    def test_many(self, supports: Sequence[Support]) -> list[Test]:
        """All supports that are asked for, fitted together."""
        return [
            Test(s, 2 * float(e), self.likelihood.degrees_of_freedom(s), float(np.exp(-max(e, 0.0))))
            for s, e in zip(supports, self.log_e(supports), strict=True)
        ]

    def bound(self, test: Test) -> float:
        """sup over a smaller Θ_J is smaller: E_J ≥ E_I."""
        return test.p_value

    def note(self) -> str:
        """How the data were split."""
        unit = "episodes" if self._data.num_episodes and self._data.num_episodes > 1 else "rows, taken as independent"
        return f"universal inference, cross-fitted over two halves of the {unit}; valid at any sample size"


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
