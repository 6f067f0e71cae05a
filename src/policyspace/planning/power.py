"""Power turned around: the number of pairs, the rate and the non-centrality at which something happens."""

from collections.abc import Callable
from functools import cache

import numpy as np

from policyspace.fits.law import NoncentralLaw
from policyspace.inference.corrections import check_share as check_share
from policyspace.planning.procedures import Procedure, Universal

MOST_PAIRS = 1e15
"""Beyond this many pairs the honest answer is "never"."""


def pairs_for_power(procedure: Procedure, rate: float, degrees_of_freedom: int, power: float) -> float:
    """The smallest n at which a group worth `rate` a pair is found with that power; infinite where it is worth nothing."""
    check_share(power, "the power")
    if not rate > 0 or not degrees_of_freedom:
        return np.inf
    if isinstance(procedure, Universal):
        return _noncentrality(procedure, degrees_of_freedom, power) / rate
    return smallest(
        lambda n: procedure.power(n, rate, degrees_of_freedom) >= power, max(procedure.fewest, 1.0), MOST_PAIRS
    )


def rate_for_power(procedure: Procedure, num_pairs: float, degrees_of_freedom: int, power: float) -> float:
    """The smallest rate, 2·KL a pair, that n pairs show with that power."""
    check_share(power, "the power")
    if not degrees_of_freedom or num_pairs < procedure.fewest:
        return np.inf
    if isinstance(procedure, Universal):
        return _noncentrality(procedure, degrees_of_freedom, power) / num_pairs
    return smallest(lambda rate: procedure.power(num_pairs, rate, degrees_of_freedom) >= power, 0.0, MOST_PAIRS)


@cache
def _noncentrality(procedure: Universal, degrees_of_freedom: int, power: float) -> float:
    """The n·rate that is needed, once for all groups of one size: simulated power costs more than a formula."""
    return smallest(lambda ncp: procedure.power(1.0, ncp, degrees_of_freedom) >= power, 0.0, MOST_PAIRS)


def noncentrality_quantile(law: NoncentralLaw, statistic: float, degrees_of_freedom: int, probability: float) -> float:
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
