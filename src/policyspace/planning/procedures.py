"""The power of each kind of test at n pairs, from what one pair is worth.

One pair is worth a `rate` of non-centrality, 2·KL(θ*‖Θ_I): twice the likelihood that is lost, per pair, by the best
policy that does not use the group. The restricted fit is the KL projection of the full one, so λ_I/n is its plug-in.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np
from scipy.special import ndtr

from policyspace.fits.law import ReferenceLaw, WilksLambda

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

    def power(self, num_pairs: float, rate: float, degrees_of_freedom: int) -> float:
        """P(the group is found) from that many pairs."""


@dataclass(frozen=True)
class Wilks:
    """λ > c: P(χ²_m(n·rate) > c), or the non-central F where the covariance is estimated."""

    law: ReferenceLaw
    level: float  # of this one test: δ divided by the number of tests
    name: str = "wilks"

    @property
    def fewest(self) -> float:
        """One more than the parameters, where a covariance must be estimated beside them."""
        return self.law.num_columns + self.law.num_actions + 1.0 if isinstance(self.law, WilksLambda) else 0.0

    def power(self, num_pairs: float, rate: float, degrees_of_freedom: int) -> float:
        """Holm's step-down can only do better: this is the power of its first, strictest step."""
        law = replace(self.law, num_pairs=num_pairs) if isinstance(self.law, WilksLambda) else self.law
        return law.power(num_pairs * rate, self.level, degrees_of_freedom)


@dataclass(frozen=True)
class Universal:
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

    def power(self, num_pairs: float, rate: float, degrees_of_freedom: int) -> float:
        """The same draws at every n and rate, so that power grows smoothly with both."""
        if not degrees_of_freedom:
            return 0.0
        length = np.sqrt(num_pairs * rate / 2)
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

    def power(self, num_pairs: float, rate: float, degrees_of_freedom: int) -> float:
        """By the normal law of log E_n."""
        if not degrees_of_freedom:
            return 0.0
        d, bets = self.num_parameters, max(num_pairs - self.fewest, 0.0)
        cost = d * np.log1p(bets / (self.fewest - d - 1))
        mean = (bets * rate - (d - degrees_of_freedom) - cost) / 2
        deviation = np.sqrt(bets * rate + cost + np.finfo(float).tiny)
        return float(ndtr((mean + np.log(self.significance)) / deviation))
