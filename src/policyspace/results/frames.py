"""Records as a tidy frame, one row an observation, and what its groups estimate."""

from collections.abc import Callable, Iterable
from typing import Any

import polars as pl

from policyspace.experiments.records import Record
from policyspace.report.estimates import Mean, Rate, mean_of, mean_share


def tidy(
    records: Iterable[Record],
    rows: Callable[[Record], Iterable[dict[str, Any]]] = lambda record: [record.setting | record.result],
    **where: Any,
) -> pl.DataFrame:
    """One row an observation of the records with such entries in their settings: `rows` says which ones a record holds."""
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
