"""Evidence that adds up over rounds: each round's p-value counts, and the promise holds for all rounds together.

A unit that is not controlled has the weight zero in every configuration, so its p-value in round r is at least a uniform
number given all that came before, however ω_r was chosen. T_s = Σ_{r≤s} log e(p_r) is then no larger in law than the same
sum of independent uniform numbers (replace the p-values by them one by one, from the last round backwards), and
p^(s) = P(Σ log e(U_r) ≥ T_s) is a p-value. Several may be looked at: min_s p^(s)/a_s is one, too, if Σ a_s ≤ 1.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.signal import fftconvolve

from policyspace.configuration.round import Round
from policyspace.inference.corrections import holm

STEP, HIGHEST = 0.001, 60.0
"""The grid on which sums of log e are convolved, and where it ends: beyond it p-values are below 1e-28."""
TILT = 1.0
"""Convolved is the law times exp(x), so that its far tail is as exact as its middle."""


class Look(NamedTuple):
    """Where a unit stands after a round."""

    log_evidence: float  # T_s, of all rounds so far
    p_value: float  # min over the rounds s so far of p^(s)/a_s


NOTHING = Look(0.0, 1.0)


def log_evidence(p_values: np.ndarray) -> np.ndarray:
    """log e(p) with e(p) = ½ + ½·0.1·p^−0.9, which has mean 1 under a uniform p and pays most for very small ones."""
    return np.asarray(np.log(0.5 + 0.05 * np.maximum(p_values, 1e-300) ** -0.9))


def combined_p_value(total: float, num_rounds: int) -> float:
    """P(Σ_{r≤s} log e(U_r) ≥ T) for independent uniform U_r, rounded up by at most s thousandths of itself."""
    lowest = num_rounds * float(log_evidence(np.ones(1))[0])
    tail = _tail(num_rounds)
    # A sum on the grid is at least the true one: what is compared with it may be rounded up, but not past a point.
    place = int(np.ceil((total - lowest) / STEP - 1e-9))
    return float(min(tail[np.clip(place, 0, len(tail) - 1)], 1.0))


def looked_at(
    p_values: Mapping[str, float], before: Mapping[str, Look], number: int, shares: Sequence[float]
) -> dict[str, Look]:
    """Every unit after round `number` (from 0), given where it stood before; a_s are the shares of the rounds."""
    looks = {}
    for unit, p in p_values.items():
        last = before.get(unit, NOTHING)
        total = last.log_evidence + float(log_evidence(np.array([p]))[0])
        looks[unit] = Look(total, min(last.p_value, combined_p_value(total, number + 1) / shares[number]))
    return looks


def evidence_rows(
    tests: Sequence[Mapping[str, Any]],
    units: Sequence[str],
    rounds: Sequence[Round],
    shares: Sequence[float],
    level: float,
) -> list[dict[str, Any]]:
    """What a round keeps of every unit: its own test, p = 1 where there is none, and the evidence of all rounds by Holm.

    A unit that was selected before this round keeps the evidence that it had.
    """
    own = {row["group"]: dict(row) for row in tests}
    p_values = {unit: float(own[unit]["p_value"]) if unit in own else 1.0 for unit in units}
    before = (
        {row["group"]: Look(row["log_evidence"], row["combined_p_value"]) for row in rounds[-1].tests} if rounds else {}
    )
    decided = {unit: before[unit] for unit in (rounds[-1].selected if rounds else ()) if unit in before}
    looks = looked_at(p_values, before, len(rounds), shares) | decided
    adjusted = holm(np.array([looks[unit].p_value for unit in units]))
    return [
        {"group": unit}
        | {name: value for name, value in own.get(unit, {}).items() if name not in ("group", "verdict")}
        | {
            "testable": unit in own,
            "p_value": p_values[unit],
            "log_evidence": looks[unit].log_evidence,
            "combined_p_value": looks[unit].p_value,
            "adjusted_p_value": float(p),
            "rejected": bool(p <= level),
        }
        for unit, p in zip(units, adjusted, strict=True)
    ]


@lru_cache(maxsize=64)
def _tail(num_rounds: int) -> np.ndarray:
    """P(S ≥ s·log e(1) + k·STEP) for the sum S of s rounds, every term rounded up to the grid [points]."""
    tilted = _tilted(num_rounds)
    mass = tilted * np.exp(-TILT * STEP * np.arange(len(tilted)))
    return np.asarray(np.cumsum(mass[::-1])[::-1])


@lru_cache(maxsize=64)
def _tilted(num_rounds: int) -> np.ndarray:
    """The law of the sum on the grid, times exp(TILT·x); the last point holds all that lies beyond."""
    x = np.arange(int(HIGHEST / STEP) + 1) * STEP
    lowest = float(log_evidence(np.ones(1))[0])
    # P(log e(U) ≥ y) = P(U ≤ ((eʸ − ½)/0.05)^(−1/0.9)).
    above = np.minimum(((np.exp(lowest + x) - 0.5) / 0.05) ** (-1 / 0.9), 1.0)
    one = np.append([0.0], above[:-1] - above[1:]) * np.exp(TILT * x)  # rounded up
    one[-1] += above[-1] * np.exp(TILT * x[-1])
    if num_rounds == 1:
        return one
    both = np.maximum(fftconvolve(_tilted(num_rounds - 1), one), 0.0)
    last = len(x) - 1
    beyond = both[last:] @ np.exp(-TILT * STEP * np.arange(len(both) - last))
    return np.append(both[:last], beyond)
