"""Logs, and changes of them that must not change an answer: each says what the groups are called afterwards.

A change takes a problem and gives another one that asks the same question. What is compared is in `differences`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars

import policyspace

NUMBERS = ("speed", "gap", "idle")
FEATURES = (*NUMBERS, "road")


@dataclass(frozen=True)
class Problem:
    """A table, and the words that `identify` is called with."""

    table: Any
    words: Mapping[str, Any]
    names: Mapping[str, str] = field(default_factory=dict)
    """What groups of the first problem are called here, where it differs."""
    close: float = 1e-6
    """How far p-values may be apart, relative to themselves."""

    def answer(self) -> policyspace.Identification:
        return policyspace.identify(self.table, **self.words)

    def but(self, table: Any = None, **words: Any) -> "Problem":
        return replace(self, table=self.table if table is None else table, words={**self.words, **words})


def log(kind: str, seed: int = 0, rows: int = 240) -> Problem:
    """A log of one kind of actions: two features and a category that are used, and one that is not."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(rows, 3)) * [2.0, 0.5, 1.0] + [10.0, 0.0, -3.0]
    road = rng.integers(0, 3, size=rows)
    drive = 0.5 * (numbers[:, 0] - 10) - 1.4 * numbers[:, 1] + np.array([0.0, 0.8, -0.6])[road]
    table = {name: numbers[:, i] for i, name in enumerate(NUMBERS)} | {"road": np.array(["dirt", "ice", "tar"])[road]}
    words: dict[str, Any] = {"actions": "move", "features": list(FEATURES)}
    if kind == "continuous":
        table["move"] = drive + rng.normal(size=rows)
    elif kind == "discrete":
        table["move"] = np.array(["back", "on", "stop"])[
            np.argmax(np.column_stack([drive, 0 * drive, -0.5 * drive]) + rng.gumbel(size=(rows, 3)), axis=1)
        ]
    elif kind == "binary":
        table["move"] = np.where(1.3 * drive + rng.logistic(size=rows) > 0, "on", "stop")
    elif kind == "counts":
        table["move"] = rng.poisson(np.exp(0.3 + 0.5 * drive)).astype(float)
        words["policy"] = "poisson"
    elif kind == "spread":
        table["move"] = rng.poisson(np.exp(0.8 + 0.6 * drive) * rng.gamma(2.0, 0.5, size=rows)).astype(float)
        words["policy"] = "negative-binomial"
    elif kind == "ordered":
        table["move"] = np.array(["low", "middle", "top"])[np.digitize(1.2 * drive + rng.logistic(size=rows), [-1, 1])]
        words |= {"policy": "ordered", "levels": ["low", "middle", "top"]}
    return Problem(polars.DataFrame(table), words)


KINDS = ("continuous", "discrete", "binary", "counts", "spread", "ordered")
LABELS = ("discrete", "binary", "ordered")

# -- The changes. Each is told the generator and a folder, and may refuse a problem by giving None.

Change = Callable[[Problem, np.random.Generator, Path], Problem | None]


def other_order_of_columns(one: Problem, rng: np.random.Generator, folder: Path) -> Problem:
    names = list(one.table.columns)
    features = [str(name) for name in rng.permutation(one.words["features"])]
    return one.but(one.table.select([names[i] for i in rng.permutation(len(names))]), features=features)


def other_names_of_columns(one: Problem, rng: np.random.Generator, folder: Path) -> Problem:
    order = rng.permutation(len(FEATURES))
    names = {name: f"{'zyxw'[i]} {name}" for i, name in zip(order, FEATURES, strict=True)} | {"move": "a"}
    changed = one.but(one.table.rename(names), actions="a", features=[names[name] for name in one.words["features"]])
    return replace(changed, names=names)


def other_names_of_actions(one: Problem, rng: np.random.Generator, folder: Path) -> Problem | None:
    if one.table["move"].dtype != polars.String:
        return None
    actions = one.table["move"].unique().sort().to_list()
    new = dict(zip(actions, ("c", "a", "b"), strict=False))  # the last one, which is the reference, is another
    changed = one.but(one.table.with_columns(polars.col("move").replace_strict(new)))
    return changed.but(levels=[new[name] for name in one.words["levels"]]) if "levels" in one.words else changed


def other_reference(one: Problem, rng: np.random.Generator, folder: Path) -> Problem | None:
    if one.table["move"].dtype != polars.String or "levels" in one.words:
        return None
    return one.but(reference=str(rng.choice(one.table["move"].unique().sort().to_list())))


def other_names_of_categories(one: Problem, rng: np.random.Generator, folder: Path) -> Problem:
    new = {"dirt": "slow", "ice": "quick", "tar": "fast"}  # the last one, which is the reference, is another
    return one.but(one.table.with_columns(polars.col("road").replace_strict(new)))


def another_sign(one: Problem, rng: np.random.Generator, folder: Path) -> Problem:
    return one.but(one.table.with_columns(-polars.col(str(rng.choice(NUMBERS)))))


def other_units(one: Problem, rng: np.random.Generator, folder: Path) -> Problem:
    return one.but(one.table.with_columns(polars.col(name) * 10.0 ** rng.uniform(-4, 4) for name in NUMBERS))


def another_zero(one: Problem, rng: np.random.Generator, folder: Path) -> Problem:
    return one.but(one.table.with_columns(polars.col(name) + rng.uniform(-30, 30) for name in NUMBERS))


def a_constant_column(one: Problem, rng: np.random.Generator, folder: Path) -> Problem:
    table = one.table.with_columns(polars.lit(float(rng.normal())).alias("fixed"))
    return one.but(table, features=["fixed", *one.words["features"]])


def weights_of_one(one: Problem, rng: np.random.Generator, folder: Path) -> Problem:
    return one.but(one.table.with_columns(w=polars.lit(1.0)), weights="w")


def rows_of_weight_zero(one: Problem, rng: np.random.Generator, folder: Path) -> Problem:
    extra = one.table.sample(15, seed=int(rng.integers(1000))).with_columns(w=polars.lit(0.0))
    return one.but(polars.concat([one.table.with_columns(w=polars.lit(1.0)), extra]), weights="w")


def a_file(one: Problem, rng: np.random.Generator, folder: Path) -> Problem:
    kind = str(rng.choice(["csv", "parquet", "arrow"]))
    path = folder / f"log.{kind}"
    {"csv": one.table.write_csv, "parquet": one.table.write_parquet, "arrow": one.table.write_ipc}[kind](path)
    return one.but(str(path))


def pandas_frame(one: Problem, rng: np.random.Generator, folder: Path) -> Problem:
    return one.but(one.table.to_pandas())


CHANGES: dict[str, Change] = {
    change.__name__.replace("_", " "): change
    for change in (
        other_order_of_columns, other_names_of_columns, other_names_of_actions, other_reference, other_names_of_categories,
        another_sign, other_units, another_zero, a_constant_column, weights_of_one, rows_of_weight_zero, a_file,
        pandas_frame,
    )
}  # fmt: skip


def differences(first: policyspace.Identification, other: Problem) -> list[str]:
    """What another way of asking the same question changes in an answer."""
    second = other.answer()
    name = {group.group: other.names.get(group.group, group.group) for group in first.groups}
    groups = {group.group: group for group in second.groups}
    found = []
    if first.test.name != second.test.name:
        found.append(f"test {first.test.name} → {second.test.name}")
    if (first.guarantee is None) != (second.guarantee is None):
        found.append(f"guarantee {first.guarantee} → {second.guarantee}; {first.no_guarantee} {second.no_guarantee}")
    for group in first.groups:
        there = groups.get(name[group.group])
        if there is None:
            found.append(f"{group.group} is missing")
        elif there.verdict != group.verdict:
            found.append(f"{group.group}: {group.verdict} → {there.verdict}, p {group.p_value} → {there.p_value}")
        elif not np.isclose(there.p_value, group.p_value, rtol=other.close, atol=1e-12):
            found.append(f"{group.group}: p {group.p_value:.9g} → {there.p_value:.9g}")
    return found
