"""A log that is read in passes: its rows for sums over them, samples of them, and what the first pass found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from policyspace.data.blocks import LONGEST, Block, Rows
from policyspace.data.column_choice import Columns
from policyspace.data.demonstrations import Demonstrations
from policyspace.data.large.backend import Backend, backend_of
from policyspace.data.large.layout import Layout
from policyspace.data.large.parts import DataSet, Part, located
from policyspace.data.large.reading import Named, Reading
from policyspace.data.large.scan import Facts, Scan, share_of_stretches
from policyspace.errors import InputError

First = Callable[[np.ndarray, np.ndarray], Callable[[Block], tuple[Any, ...]]]
"""From features and actions of the first rows to a function whose sum the first pass makes."""


@dataclass
class PartRows(Rows):
    """Rows that lie in files: every sum over them is one pass."""

    parts: Sequence[Part]
    layout: Layout
    backend: Backend
    num_rows: int
    passes: int = 1

    @property
    def weighted(self) -> bool:  # type: ignore[override]
        """Whether they have weights."""
        return self.layout.weights is not None

    def total(self, function: Callable[[Block], tuple[Any, ...]], size: int = LONGEST) -> tuple[Any, ...]:
        """Σ function(block), with the same bits for any number of threads or machines."""
        self.passes += 1
        what = f"pass {self.passes} over {self.num_rows} rows"
        return self.backend.reduce(SumOfPart(self.layout, function, size), self.parts, _added, what)


@dataclass(frozen=True)
class SumOfPart:
    """What a task does with its part."""

    layout: Layout
    function: Callable[[Block], tuple[Any, ...]]
    size: int

    def __call__(self, part: Part) -> tuple[Any, ...]:
        """The sum over its blocks."""
        total: tuple[Any, ...] = ()
        for _, taken in self.layout.tables(part, self.layout.columns):
            for block in taken.blocks(self.size):
                total = _added(total, self.function(block))
        return total


def _added(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    if not first or not second:  # of a part all of whose rows were dropped
        return first or second
    return tuple(a + b for a, b in zip(first, second, strict=True))


@dataclass(frozen=True)
class LargeLog:
    """All that is known of a log without its rows in memory.

    `sample` holds whole stretches of rows (episodes, subjects, or neighbours), None where they hold only one action;
    `strata` rows of every action, with weights that make up for rare ones being taken more often; of numbers, the sample.
    `sums` are those that the first pass made.
    """

    rows: PartRows
    sample: Demonstrations | None
    strata: Demonstrations
    counted_pairs: int
    num_episodes: int | None
    sums: tuple[Any, ...] | None


def open_log(
    stored: DataSet,
    columns: Columns,
    discrete: bool | None = None,
    reference: Any = None,
    sampling_weights: bool = False,
    backend: Any = None,
    first: First | None = None,
    seed: int = 0,
) -> LargeLog:
    """The first pass over a data set; `first` says what else it adds up, where the features are known before it."""
    if not stored.parts:
        raise InputError("a data set needs at least one row, found none: check the files.")
    path = stored.parts[0].file.path
    with located(path):
        reading = Reading.of(stored, columns, discrete)
        layout = reading.layout
        also = None
        if first is not None and not (layout.coded or sampling_weights):
            block = next(layout.take(reading.head.select(layout.columns)).blocks(reading.head.num_rows))
            also = first(block.features, block.actions)
    workers = backend_of(backend)
    scan = Scan(layout, seed, share_of_stretches(stored.num_rows), layout.discrete, also)
    facts: Facts = workers.reduce(scan, reading.parts, Facts.__add__, "reading what is in the files")
    with located(path):
        return _made(reading, facts, reading.named(facts, reference), sampling_weights, workers)


def _made(reading: Reading, facts: Facts, named: Named, sampling: bool, workers: Backend) -> LargeLog:
    layout, num_rows = named.layout, facts.num_rows
    total, positive, broken = facts.weights.tolist()
    if layout.weights is not None and not positive:
        raise InputError("at least one weight must be positive, found only zeros.")
    if sampling:  # they say how rows compare, not how many there are
        layout = replace(layout, weight_factor=positive / total)
        named = replace(named, layout=layout, metadata=named.metadata | {"weights_are": "sampling"})
    whole = layout.weights is not None and not sampling and not broken
    counts = None
    if layout.discrete:
        words = layout.vocabulary[layout.actions[0]]
        counts = np.zeros(len(named.action_names))
        for value, count in facts.values[layout.actions[0]].items():
            counts[words[value]] += count
    named = replace(named, metadata=named.metadata | {"sampled_from": num_rows})
    stretches, strata = facts.stretches.table, facts.strata
    sample = named.demonstrations(stretches) if _varied(named, stretches) else None
    rows_of_actions = sample if strata is None else named.demonstrations(strata.table, counts)
    if rows_of_actions is None:
        raise InputError("every row has the same action: nothing can be identified from an agent that never chooses.")
    return LargeLog(
        PartRows(reading.parts, layout, workers, num_rows), sample, rows_of_actions,
        round(total) if whole else num_rows,
        None if layout.episodes is None else len(facts.clusters[layout.episodes]), facts.sums,
    )  # fmt: skip


def _varied(named: Named, table: Any) -> bool:
    """Do these rows hold two different actions that weigh anything?"""
    block = next(named.layout.take(table).blocks(max(table.num_rows, 1)), None)
    if block is None:
        return False
    actions = block.actions if block.weights is None else block.actions[block.weights > 0]
    return bool(len(actions)) and bool((actions != actions[0]).any())
