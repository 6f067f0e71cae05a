"""A log that is read in passes: its rows for sums over them, samples of them, and what the first pass found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from policyspace.data.blocks import LONGEST, Block, Rows
from policyspace.data.chunks import added
from policyspace.data.column_choice import Columns
from policyspace.data.demonstrations import Demonstrations
from policyspace.data.joint_moments import Moments, MomentsOf, shift_near
from policyspace.data.large.backend import Backend, backend_of
from policyspace.data.large.layout import Layout
from policyspace.data.large.parts import DataSet, Part
from policyspace.data.large.reading import Named, Reading
from policyspace.data.large.scan import Facts, Scan, share_of_stretches
from policyspace.data.outstanding import SUSPECT, Far, FarOf, MomentsAndFar
from policyspace.data.readers import located
from policyspace.errors import InputError

SEED = 0
"""Of the samples."""

FILE_APART = 40
"""Bits between the places of rows of different files."""


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

    def total(
        self, function: Callable[[Block], tuple[Any, ...]], size: int = LONGEST, owned: bool = False
    ) -> tuple[Any, ...]:
        """Σ function(block), with the same bits for any number of threads or machines; `owned` blocks know their owners."""
        self.passes += 1
        what = f"pass {self.passes} over {self.num_rows} rows"
        return self.backend.reduce(SumOfPart(self.layout, function, size, owned), self.parts, added, what)


@dataclass(frozen=True)
class SumOfPart:
    """What a task does with its part."""

    layout: Layout
    function: Callable[[Block], tuple[Any, ...]]
    size: int
    owned: bool = False

    def __call__(self, part: Part) -> tuple[Any, ...]:
        """The sum over its blocks."""
        total: tuple[Any, ...] = ()
        layout, place = self.layout, part.file_number << FILE_APART
        every = self.owned or layout.missing == "drop"  # rows without an owner were dropped, too
        for start, taken in layout.tables(part, layout.all_columns if every else layout.columns):
            for block in taken.blocks(self.size, place + start, self.owned):
                total = added(total, self.function(block))
        return total


@dataclass(frozen=True)
class LargeLog:
    """A log whose rows are not in memory.

    `strata` holds rows of every action, with weights that make up for rare ones being taken more often; None where actions
    are numbers. `moments` of features and actions are known where the first pass could make them, and so are rows that lie
    `far` out.
    """

    rows: PartRows
    strata: Demonstrations | None
    label_weights: np.ndarray | None  # what the rows of each label weigh [k+1]
    counted_pairs: int
    num_episodes: int | None
    moments: Moments | None
    far: Far | None
    owners: np.ndarray | None = None  # a number for each subject, or else each episode, in order
    stretched: bool = True  # whether the sample is of whole stretches, rather than of every action

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return self.rows.num_rows


def open_log(
    stored: DataSet, columns: Columns, discrete: bool | None = None, reference: Any = None, backend: Any = None
) -> Demonstrations:
    """The first pass over a data set: a sample in whole stretches of rows, which knows the log that it is of."""
    if not stored.parts:
        raise InputError("a data set needs at least one row, found none: check the files.")
    path = stored.parts[0].file.path
    with located(path):
        reading = Reading.of(stored, columns, discrete)
        layout, guess = reading.layout, reading.guess(reference)
        also = None if guess is None else _sums_near(guess, reading)
    workers = backend_of(backend)
    share = share_of_stretches(stored.num_rows)
    scan = Scan(layout, SEED, share, layout.discrete, None if guess is None else guess.layout, also)
    facts: Facts = workers.reduce(scan, reading.parts, scan.bounds.add, "reading what is in the files")
    total = facts.num_rows + facts.dropped
    dropped = f"rows dropped for missing values: {facts.dropped} of {total}." if facts.dropped else ""
    with located(path):
        named = reading.named(facts.values, reference, dropped)
        foreseen = guess is not None and guess.layout.vocabulary == named.layout.vocabulary
        return _sample(reading, facts if foreseen else replace(facts, sums=None), named, workers, also)


def _sums_near(guess: Named, reading: Reading) -> MomentsOf | MomentsAndFar:
    """What makes the moments of a block, which needs some point in the middle of the rows.

    Where actions are labels it also finds the rows far out, unless the first rows have some: then they are many.
    """
    block = next(guess.layout.take(reading.head.select(guess.layout.columns)).blocks(reading.head.num_rows))
    num_labels = len(guess.action_names) if guess.layout.discrete else None
    shift = shift_near(block.features, block.actions, num_labels)
    moments = MomentsOf(shift, num_labels)
    if num_labels is None:
        return moments
    far = FarOf.of(block, shift[: block.features.shape[1]], SUSPECT)
    return moments if len(far(block)[0].measure) else MomentsAndFar(moments, far)


def _sample(reading: Reading, facts: Facts, named: Named, workers: Backend, also: Any) -> Demonstrations:
    layout, counts, label_weights = named.layout, None, None
    total, positive, broken = facts.weights.tolist()
    if layout.weights is not None and not positive:
        raise InputError("at least one weight must be positive, found only zeros.")
    if layout.discrete:
        for label in facts.values[layout.actions[0]] if layout.weights is not None else ():
            if not facts.weight_of_label[label] > 0:
                raise InputError(f"the action '{label}' is that of rows of weight 0 alone: drop these rows.")
        counts = named.by_label(facts.values[layout.actions[0]])
        label_weights = counts if layout.weights is None else named.by_label(facts.weight_of_label)
    strata = None if facts.strata is None else named.demonstrations(facts.strata.table, counts)
    layout = replace(layout, checked=layout.missing == "error")
    log = LargeLog(
        PartRows(reading.parts, layout, workers, facts.num_rows), strata, label_weights,
        facts.num_rows if layout.weights is None or broken else round(total),
        None if layout.episodes is None else len(facts.clusters[layout.episodes]),
        facts.sums[0] if facts.sums else None,
        Far(also.far, facts.sums[1]) if facts.sums and isinstance(also, MomentsAndFar) else None,
        None if layout.owners is None else facts.clusters[layout.owners],
    )  # fmt: skip
    stretches = facts.stretches.table
    if not named.chooses(stretches):
        if strata is None:
            raise InputError("the actions are the same in every row of a sample: nothing can be identified from them.")
        # So rare are all actions but one that stretches do not hold them.
        return replace(strata, weights=None, whole=replace(log, stretched=False))
    return replace(named.demonstrations(stretches), whole=log)
