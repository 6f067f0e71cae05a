"""Means and rates of independent runs with their intervals, and the tidy frames that records become."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import binomtest, t

from policyspace_paper.execution import M, Record, S

# -- What independent runs estimate: a mean or a share, its interval, and the words for both.


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


# -- Records as a tidy frame, one row an observation, and what its groups estimate.


def tidy(
    records: Iterable[Record[S, M]],
    rows: Callable[[Record[S, M]], Iterable[Mapping[str, object]]] = lambda record: [
        {**record.setting, **record.result}
    ],
    **where: object,
) -> pl.DataFrame:
    """One row an observation of the records with such entries in their settings; `rows` says which ones a record holds."""
    own = [r for r in records if all(r.setting[name] == value for name, value in where.items())]
    return pl.DataFrame([row for record in own for row in rows(record)], infer_schema_length=None)


def in_order(frame: pl.DataFrame, column: str, names: Iterable[str], *then: str) -> pl.DataFrame:
    """Sorted by the place of a column's entries among names, then by other columns."""
    place = pl.col(column).replace_strict({name: i for i, name in enumerate(names)})
    return frame if frame.is_empty() else frame.sort(place, *then, maintain_order=True)


def groups(frame: pl.DataFrame, *by: str) -> dict[Any, pl.DataFrame]:
    """The rows that agree in some columns, by the entry of the one column, or the entries of several."""
    found = {} if frame.is_empty() else frame.partition_by(by, maintain_order=True, as_dict=True)
    return {key if len(by) > 1 else key[0]: own for key, own in found.items()}


def means(frame: pl.DataFrame, column: str, *by: str, confidence: float = 0.95) -> dict[Any, Mean]:
    """The mean of a column in every group that has any."""
    found = groups(frame.drop_nulls(column), *by)
    return {key: mean_of(own[column].to_list(), confidence) for key, own in found.items()}


def shares(frame: pl.DataFrame, column: str, *by: str) -> dict[Any, Mean]:
    """The same of a column of shares; `{column}_of` says how many units each is a share of, or null."""
    found = groups(frame.drop_nulls(column), *by)
    units = {key: own[f"{column}_of"] for key, own in found.items()}
    counts = {key: None if own.null_count() else int(own.sum()) for key, own in units.items()}
    return {key: mean_share(own[column].to_list(), counts[key]) for key, own in found.items()}


def rates(frame: pl.DataFrame, column: str, *by: str) -> dict[Any, Rate]:
    """How often a column is true, in every group."""
    return {key: Rate(int(own[column].sum()), len(own)) for key, own in groups(frame, *by).items()}


def paired(frame: pl.DataFrame, column: str, way: str, one: Any, other: Any, *by: str) -> pl.DataFrame:
    """The `difference` of a column in one `way` and in another, of every run (`seed`) that was made in both."""
    if frame.is_empty():
        return frame
    runs = [*by, "seed"]
    first, second = (frame.filter(pl.col(way) == name).select(*runs, column).drop_nulls() for name in (one, other))
    both = first.join(second, on=runs, maintain_order="left")
    return both.with_columns(difference=pl.col(column) - pl.col(f"{column}_right"))


def difference(
    frame: pl.DataFrame, column: str, way: str, one: Any, other: Any, confidence: float = 0.95
) -> Mean | None:
    """The mean of those differences over all runs; none if no run was made in both ways."""
    found = paired(frame, column, way, one, other)
    return None if found.is_empty() else mean_of(found["difference"].to_list(), confidence)


def differences(
    frame: pl.DataFrame, column: str, way: str, one: Any, other: Any, by: str, confidence: float = 0.95
) -> dict[Any, Mean]:
    """The mean of those differences in every group."""
    return means(paired(frame, column, way, one, other, by), "difference", by, confidence=confidence)
