"""What independent runs estimate: a mean or a share, its interval, and the words for both."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import binomtest, t


@dataclass(frozen=True)
class Mean:
    """A mean with the half-width of its interval, usually of 95 %, by Student's law; none from a single run.

    Runs that all found the same have no spread: where they are shares, their `ends` say how far the mean may be from it.
    """

    value: float
    margin: float | None
    num_runs: int
    ends: tuple[float, float] | None = None

    @property
    def low(self) -> float:
        """The lower end; −∞ where one run says nothing about the spread."""
        if self.ends is not None:
            return self.ends[0]
        return self.value - self.margin if self.margin is not None else -np.inf

    @property
    def high(self) -> float:
        """The upper end."""
        if self.ends is not None:
            return self.ends[1]
        return self.value + self.margin if self.margin is not None else np.inf

    @property
    def words(self) -> str:
        """The mean ± its margin."""
        return self.rounded(2)

    def rounded(self, digits: int) -> str:
        """The same with so many digits."""
        margin = "" if self.margin is None else f" ± {self.margin:.{digits}f}"
        if self.ends is not None:
            margin = f" ({self.low:.{digits}f}–{self.high:.{digits}f})"
        return f"{self.value:.{digits}f}{margin}".replace("-", "−")

    @property
    def numbers(self) -> dict[str, float | int | None]:
        """As plain data."""
        ends = {} if self.ends is None else {"low": self.low, "high": self.high}
        return {"mean": self.value, "margin": self.margin, "runs": self.num_runs, **ends}


@dataclass(frozen=True)
class Rate:
    """How often something happened in so many runs, where it may happen as often as `nominal` says."""

    count: int
    num_runs: int
    name: str = ""
    nominal: float = 1.0

    @property
    def value(self) -> float:
        """The share."""
        return self.count / self.num_runs

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of Clopper and Pearson."""
        found = binomtest(self.count, self.num_runs).proportion_ci(0.95, method="exact")
        return float(found.low), float(found.high)

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.interval[0]

    @property
    def high(self) -> float:
        """The upper end."""
        return self.interval[1]

    @property
    def words(self) -> str:
        """The share with its interval."""
        return f"{self.value:.3f} ({self.low:.3f}–{self.high:.3f})"

    @property
    def verdict(self) -> str:
        """Too often or less often where the interval lies on one side of the nominal level, else as promised."""
        return "too often" if self.low > self.nominal else "less often" if self.high < self.nominal else "as promised"


def mean_of(values: Sequence[float], confidence: float = 0.95) -> Mean:
    """x̄ ± t·s/√m with Student's t of m − 1 degrees of freedom."""
    m = len(values)
    margin = float(t.ppf(0.5 + confidence / 2, m - 1) * np.std(values, ddof=1) / np.sqrt(m)) if m > 1 else None
    return Mean(float(np.mean(values)), margin, m)


def mean_share(values: Sequence[float], num_units: int | None = None) -> Mean:
    """The mean of shares, each of some of so many units in all, as `mean_of`; its interval also where all are none or all.

    Then it is that of Clopper and Pearson: of the units, as if they were independent, or, if nobody counted them, of runs.
    """
    found = mean_of(values)
    if found.margin is None or max(values) > min(values) or found.value not in (0.0, 1.0):
        return found
    m = num_units or len(values)
    return Mean(found.value, found.margin, found.num_runs, Rate(round(found.value * m), m).interval)
