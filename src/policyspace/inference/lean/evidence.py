"""How large a score is: a mixture e-value, and the share of sign flips that make it as large."""

import numpy as np

SPREADS = (0.05, 0.15, 0.45)
"""Sizes of use that are looked for: correlations of action and input given the rest."""

MINOR = 0.5
"""The size at which interactions, even use and use in the spread are looked for, against that of linear use."""

EXHAUSTIVE = 12
"""Up to so many clusters all sign flips are tried."""

ENOUGH = 20
"""Random flips stop when so many were as large as what was seen (Besag and Clifford)."""


class Mixture:
    """E(s) = mean over D of |1 + DVD|^−½ exp{½ (Ds)ᵀ(1 + DVD)⁻¹(Ds)}: N(0, V) against shifts Vθ with θ ~ N(0, D²)."""

    def __init__(self, variance: np.ndarray, major: np.ndarray) -> None:
        """`variance` V [m, m] of the score, `major` [m] which of its entries are linear use."""
        self._roots: list[np.ndarray] = []
        self._prices: list[float] = []
        for spread in SPREADS:
            for minor in (0.0, MINOR):
                size = spread * np.where(major, 1.0, minor)
                kept = size > 0
                if (minor and major.all()) or not kept.any():
                    continue
                values, vectors = np.linalg.eigh(size[kept, None] * variance[np.ix_(kept, kept)] * size[kept])
                values = np.maximum(values, 0.0)
                root = np.zeros((len(size), kept.sum()))
                root[kept] = size[kept, None] * vectors / np.sqrt(1 + values)
                self._roots.append(root)
                self._prices.append(-0.5 * float(np.log1p(values).sum()))

    def log(self, scores: np.ndarray) -> np.ndarray:
        """log E of each score [f, m]."""
        terms = [
            price + 0.5 * ((scores @ root) ** 2).sum(axis=1)
            for root, price in zip(self._roots, self._prices, strict=True)
        ]
        return np.logaddexp.reduce(terms, axis=0) - np.log(len(terms))


def united(clusters: np.ndarray, most: int) -> np.ndarray:
    """Neighbouring clusters [G, m] added up until there are at most so many."""
    together = -(-len(clusters) // most)
    return np.add.reduceat(clusters, np.arange(0, len(clusters), together), axis=0)


def log_evidence(clusters: np.ndarray, major: np.ndarray, correction: float = 1.0) -> float:
    """log E of the sum of cluster scores [G, m], their variance inflated by `correction`."""
    return float(Mixture(correction * clusters.T @ clusters, major).log(clusters.sum(axis=0)[None])[0])


def flip_p_value(clusters: np.ndarray, major: np.ndarray, shrink: float, most: int, seed: int) -> tuple[float, float]:
    """The share of sign flips of whole clusters whose mixture statistic is as large as the observed one, and its log.

    `clusters` [G, m]; the observed sum is multiplied by `shrink`; `most` random flips at most where there are too many.
    """
    mixture = Mixture(clusters.T @ clusters, major)
    observed = float(mixture.log(shrink * clusters.sum(axis=0)[None])[0])
    edge = observed - 1e-9 * max(1.0, abs(observed))
    num = len(clusters)
    if num <= EXHAUSTIVE:
        codes = np.arange(2 ** (num - 1))
        signs = 1.0 - 2.0 * ((codes[:, None] >> np.arange(num)) & 1)
        return float(np.mean(mixture.log(signs @ clusters) >= edge)), observed
    rng = np.random.default_rng([seed, 7])
    drawn = as_large = 0
    while drawn < most:
        size = min(500, most - drawn)
        signs = rng.integers(0, 2, (size, num), dtype=np.int8) * 2.0 - 1.0
        as_large += int(np.sum(mixture.log(signs @ clusters) >= edge))
        drawn += size
        if as_large >= ENOUGH:
            break
    return (1 + as_large) / (1 + drawn), observed
