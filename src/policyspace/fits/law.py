"""The law of λ when the hypothesis is true: χ² (Wilks), F and Wilks' Λ for an estimated covariance."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import betaincinv, chdtrc, chdtri, chndtr, fdtrc, ncfdtr


class ReferenceLaw(Protocol):
    """How large λ may be by chance, for a number of degrees of freedom."""

    def __hash__(self) -> int:
        """Laws are plain values: what follows from one is remembered by it."""
        ...

    @property
    def name(self) -> str:
        """The name that reports show."""

    def p_value(self, statistic: float, degrees_of_freedom: int) -> float:
        """P(λ ≥ statistic) under the hypothesis."""

    def critical(self, significance: float, degrees_of_freedom: int) -> float:
        """c: the λ that is exceeded with probability `significance` under the hypothesis."""

    def power(self, noncentrality: float, significance: float, degrees_of_freedom: int) -> float:
        """P(λ > c) when the agent does control, at the given non-centrality."""


class NoncentralLaw(ReferenceLaw, Protocol):
    """A law of λ that is known under the alternative too, so that it can be planned with."""

    def cumulative(self, statistic: float, noncentrality: float, degrees_of_freedom: int) -> float:
        """P(λ ≤ statistic) when the agent does control, at the given non-centrality."""


@dataclass(frozen=True)
class ChiSquare:
    """Wilks' theorem (Theorem 2.1): λ → χ²_m; exact for a Gaussian policy of known covariance on states that were fixed.

    On trajectories later states are made of earlier actions: there it holds as the number of episodes grows.
    """

    name: str = "chi2"

    def p_value(self, statistic: float, degrees_of_freedom: int) -> float:
        """P(χ²_m ≥ λ); a hypothesis that fixes nothing cannot be rejected."""
        return float(chdtrc(degrees_of_freedom, statistic)) if degrees_of_freedom else 1.0

    def critical(self, significance: float, degrees_of_freedom: int) -> float:
        """The quantile χ²_{m,1−α}; c(0) = 0 is never exceeded, the full set is always sufficient."""
        return float(chdtri(degrees_of_freedom, significance)) if degrees_of_freedom else np.inf

    def power(self, noncentrality: float, significance: float, degrees_of_freedom: int) -> float:
        """P(χ²_m(ncp) > c)."""
        if not degrees_of_freedom:
            return 0.0
        return 1.0 - self.cumulative(self.critical(significance, degrees_of_freedom), noncentrality, degrees_of_freedom)

    def cumulative(self, statistic: float, noncentrality: float, degrees_of_freedom: int) -> float:
        """P(χ²_m(ncp) ≤ λ)."""
        return float(chndtr(statistic, degrees_of_freedom, noncentrality)) if degrees_of_freedom else 1.0


@dataclass(frozen=True)
class WilksLambda:
    """Λ = |S|/|S_I| = exp(−λ/n) by Rao's F: for one action the F test.

    Exact, on states that were fixed, for up to two actions or two fixed rows.
    """

    num_pairs: float
    num_columns: int  # rank of the design, the constant included
    num_actions: int
    name: str = "F"

    def _rao(self, degrees_of_freedom: int) -> tuple[float, float, float]:
        """(t, df1, df2) of F = (Λ^{−1/t} − 1)·df2/df1."""
        p, h = self.num_actions, degrees_of_freedom / self.num_actions
        error = self.num_pairs - self.num_columns
        denominator = p * p + h * h - 5
        t = np.sqrt((p * p * h * h - 4) / denominator) if denominator > 0 else 1.0
        return t, p * h, (error + h - (p + h + 1) / 2) * t - (p * h - 2) / 2

    def p_value(self, statistic: float, degrees_of_freedom: int) -> float:
        """P(F_{df1,df2} ≥ F(λ))."""
        if not degrees_of_freedom:
            return 1.0
        t, df1, df2 = self._rao(degrees_of_freedom)
        return float(fdtrc(df1, df2, np.expm1(statistic / self.num_pairs / t) * df2 / df1))

    def critical(self, significance: float, degrees_of_freedom: int) -> float:
        """The critical F brought back to the scale of λ."""
        if not degrees_of_freedom:
            return np.inf
        t, df1, df2 = self._rao(degrees_of_freedom)
        return float(self.num_pairs * t * np.log1p(_critical_f(significance, df1, df2) * df1 / df2))

    def power(self, noncentrality: float, significance: float, degrees_of_freedom: int) -> float:
        """P(F_{df1,df2}(ncp) > c)."""
        if not degrees_of_freedom:
            return 0.0
        _, df1, df2 = self._rao(degrees_of_freedom)
        return 1.0 - float(ncfdtr(df1, df2, noncentrality, _critical_f(significance, df1, df2)))

    def cumulative(self, statistic: float, noncentrality: float, degrees_of_freedom: int) -> float:
        """P(F_{df1,df2}(ncp) ≤ F(λ))."""
        if not degrees_of_freedom:
            return 1.0
        t, df1, df2 = self._rao(degrees_of_freedom)
        return float(ncfdtr(df1, df2, noncentrality, np.expm1(statistic / self.num_pairs / t) * df2 / df1))


def _critical_f(significance: float, df1: float, df2: float) -> float:
    """The F that is exceeded with probability `significance`, exact far in the tail too."""
    x = float(betaincinv(df2 / 2, df1 / 2, significance))
    return df2 * (1 - x) / (df1 * x)


@dataclass(frozen=True)
class ConstantThreshold:
    """One critical value for every support, that of the smallest: valid at once for all true supports.

    Where features are collinear several supports can be true together, and every one of them has
    λ_I ≤ 2(ℓ̂(θ*) − ℓ̂(θ̂)), which has the law of the largest hypothesis.
    """

    law: ReferenceLaw
    most: int
    name: str = "constant"

    def p_value(self, statistic: float, degrees_of_freedom: int) -> float:
        """The p-value as if all `most` scalars were zeroed."""
        return self.law.p_value(statistic, self.most) if degrees_of_freedom else 1.0

    def critical(self, significance: float, degrees_of_freedom: int) -> float:
        """The critical value of the smallest support."""
        return self.law.critical(significance, self.most if degrees_of_freedom else 0)

    def power(self, noncentrality: float, significance: float, degrees_of_freedom: int) -> float:
        """Power is not used under a constant threshold; the law's own is an upper bound."""
        return self.law.power(noncentrality, significance, degrees_of_freedom)
