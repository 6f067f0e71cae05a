"""Logs larger than memory: a first pass over their files, a sample of their rows, and all rows in passes."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from policyspace.data.columns import MAX_LEVELS, ColumnRoles, DataTable, choose, listed
from policyspace.data.files import located
from policyspace.data.large.backends import Backend, backend_of
from policyspace.data.large.layout import (
    MOST_STRETCHED,
    STRETCH,
    BlockSample,
    ColumnLayout,
    RowArrays,
    StratifiedSample,
    column_numbers,
    hashed_order,
    keep_smallest,
    rows_of,
)
from policyspace.data.large.parts import DataSet, FilePart
from policyspace.data.origin import Origin
from policyspace.data.rows import (
    BLOCK,
    LARGEST,
    LONGEST,
    SUSPECT,
    ComputeMoments,
    ComputeMomentsAndExtremes,
    ExtremeRows,
    FindExtremeRows,
    Moments,
    RowBlock,
    Rows,
    shift_near,
)
from policyspace.data.sample import Sample
from policyspace.data.schema import Schema, is_as_written, with_roles
from policyspace.data.validation import TEXTS, is_discrete
from policyspace.errors import InputError
from policyspace.runtime import check_limit, sum_tuples

if TYPE_CHECKING:
    import pyarrow


# -- The first pass over a log: what is in it, whether it is whole, and samples of its rows.

MOST_LABELS = 1000
"""An action with more distinct values is no label."""


@dataclass(frozen=True)
class ScanSummary:
    """What is known about some rows."""

    num_rows: int
    dropped: int
    values: dict[str, Counter[Any]]  # of coded columns, with how many rows have them
    weights: np.ndarray  # [their sum, rows that weigh anything, rows whose weight is no whole number]
    weight_of_label: Counter[Any]
    clusters: dict[str, np.ndarray]  # of episodes and subjects, a number for each
    stretches: BlockSample
    strata: StratifiedSample | None
    sums: tuple[Any, ...] | None  # of whatever else was to be added up; None where a value was not foreseen
    most_values: dict[str, int]  # that each coded column may have

    def __add__(self, other: "ScanSummary") -> "ScanSummary":
        values = {
            name: _bounded(name, own + other.values[name], self.most_values[name]) for name, own in self.values.items()
        }
        clusters = {name: np.union1d(own, other.clusters[name]) for name, own in self.clusters.items()}
        for name, found in clusters.items():
            check_limit("MAX_CLUSTERS", len(found), f"the different values of '{name}'")
        strata = None if self.strata is None or other.strata is None else self.strata + other.strata
        sums = None if self.sums is None or other.sums is None else sum_tuples(self.sums, other.sums)
        return ScanSummary(
            self.num_rows + other.num_rows, self.dropped + other.dropped, values, self.weights + other.weights,
            self.weight_of_label + other.weight_of_label, clusters, self.stretches + other.stretches, strata,
            sums, self.most_values,
        )  # fmt: skip


@dataclass
class SampleThresholds:
    """Random numbers from which on no row can be in the samples any more, by what has been added up so far.

    Tasks that begin later send back fewer rows, and the samples are the same: the smallest numbers of all.
    """

    stretches: int = 2**64
    strata: Mapping[Any, float] = field(default_factory=dict)

    def add(self, first: ScanSummary, second: ScanSummary) -> ScanSummary:
        """Both together, which tell more than was known."""
        total = first + second
        self.stretches = min(self.stretches, total.stretches.below)
        if total.strata is not None:
            self.strata = keep_smallest(self.strata, total.strata.below)
        return total


@dataclass(frozen=True)
class Scan:
    """What a task of the first pass does with its part; `also` is a function of blocks whose sum is wanted, too.

    `guess` is the layout with the values of its columns as far as the first rows show them.
    """

    layout: ColumnLayout
    seed: int
    share: float  # of stretches that are candidates at all
    stratified: bool
    guess: ColumnLayout | None = None
    also: Callable[[RowBlock], tuple[Any, ...]] | None = None
    bounds: SampleThresholds = field(default_factory=SampleThresholds)

    def __call__(self, part: FilePart) -> ScanSummary:
        """What there is to know about it."""
        total: ScanSummary | None = None
        for start, table in part.tables(self.layout.all_columns):
            with located(part.file.path):
                facts = self._facts(part, start, table, total)
            total = facts if total is None else total + facts
        if total is None:
            raise InputError(f"{part.file.path}: a table needs at least one row, found none: leave the file out.")
        return total

    def _facts(self, part: FilePart, start: int, table: "pyarrow.Table", before: ScanSummary | None) -> ScanSummary:
        layout = self.layout
        taken, sums = self._taken(table, start)
        most = {name: MAX_LEVELS if name in layout.categories else MOST_LABELS for name in layout.coded}
        values = {}
        for name in layout.coded:
            codes, labels = taken.codes[name]
            counts = np.bincount(codes, minlength=len(labels)).tolist()
            counted = Counter({label: n for label, n in zip(labels, counts, strict=True) if n})
            values[name] = _bounded(name, counted, most[name])
        weights, of_label = self._weights(taken, start)
        clusters = {
            name: column_numbers(taken.table.column(name))
            for name in (layout.episodes, layout.subjects)
            if name is not None
        }
        strata = None
        if self.stratified:
            drawn = np.random.Generator(np.random.PCG64([self.seed, part.number, start])).random(len(taken))
            below = {} if before is None or before.strata is None else before.strata.below
            strata = StratifiedSample.of(
                taken.table, layout.actions[0], drawn, keep_smallest(self.bounds.strata, below)
            )
        return ScanSummary(
            len(taken), taken.dropped, values, weights, of_label, {n: np.unique(found) for n, found in clusters.items()},
            self._stretches(part, start, taken, clusters, before), strata, sums, most,
        )  # fmt: skip

    def _taken(self, table: "pyarrow.Table", start: int) -> tuple[RowArrays, tuple[Any, ...] | None]:
        """The complete rows, and the sums over them; where these are finite, so is every number that they are made of."""
        if self.also is not None and self.layout.weights is None:
            with np.errstate(all="ignore"):
                taken = replace(self.layout, checked=True).take(table, start)
                sums = self._sums(taken)
                if sums and sums[0].within(LARGEST / 2):
                    return taken, sums
        taken = self.layout.take(table, start)
        return taken, self._sums(taken)

    def _sums(self, taken: RowArrays) -> tuple[Any, ...] | None:
        """None where the guess was wrong, and nothing where there are no rows."""
        if self.also is None or self.guess is None:
            return None
        known = self.guess.vocabulary
        if any(value not in known[name] for name in self.guess.coded for value in taken.codes[name][1]):
            return None
        sums: tuple[Any, ...] = ()
        for block in replace(taken, layout=self.guess).blocks(BLOCK):
            sums = sum_tuples(sums, self.also(block))
        return sums

    def _weights(self, taken: RowArrays, start: int) -> tuple[np.ndarray, Counter[Any]]:
        """Their sum, how many are positive, how many are no whole numbers; and the sum of each label."""
        layout = self.layout
        if layout.weights is None:
            return np.zeros(3), Counter()
        weights = taken.numbers[layout.weights]
        if len(weights) and weights.min() < 0:
            row = int(np.argmax(weights < 0))
            raise InputError(
                f"weights must be finite and not negative, found {weights[row]} in row {start + row + 1}: drop it."
            )
        of_label: Counter[Any] = Counter()
        if layout.label is not None:
            codes, values = taken.codes[layout.label]
            of_label.update(dict(zip(values, np.bincount(codes, weights, len(values)).tolist(), strict=True)))
        whole = weights % 1 == 0
        return np.array(
            [weights.sum(dtype=np.float64), (weights > 0).sum(), (~whole).sum()], dtype=np.float64
        ), of_label

    def _stretches(
        self, part: FilePart, start: int, taken: RowArrays, clusters: dict[str, np.ndarray], before: ScanSummary | None
    ) -> BlockSample:
        """Whole subjects or episodes where they are named, else neighbouring rows."""
        layout = self.layout
        if clusters:
            numbers = hashed_order(clusters[layout.owners or ""], self.seed)
            below = 2**64 if before is None else before.stretches.below
            return BlockSample.of(taken.table, numbers, MOST_STRETCHED, min(below, self.bounds.stretches))
        own = np.arange(-(-len(taken) // STRETCH), dtype=np.uint64) + np.uint64(start // STRETCH)
        numbers = hashed_order(own + np.uint64(part.number << 40), self.seed)
        chosen = np.flatnonzero(numbers <= np.uint64(int(self.share * (2**64 - 1025))))
        rows = (chosen[:, None] * STRETCH + np.arange(STRETCH)).ravel()
        rows = rows[rows < len(taken)]
        return BlockSample.of(rows_of(taken.table, rows), numbers[rows // STRETCH], MOST_STRETCHED)


def share_of_stretches(num_rows: int | None) -> float:
    """How many of all stretches are candidates: twice as many as are kept, where the number of rows is known."""
    return 1.0 if num_rows is None else min(1.0, 2 * MOST_STRETCHED / max(num_rows, 1))


def _bounded(name: str, found: Counter[Any], most: int) -> Counter[Any]:
    if len(found) > most:
        value = next(iter(found))
        what = "free text is no feature" if most == MAX_LEVELS else "that are too many to be labels"
        raise InputError(
            f"column '{name}' has more than {most} different values, found '{value}' and others: {what}, so leave the "
            "column out or read it as numbers."
        )
    return found


# -- How a data set is read: what its columns are by its first rows, and what their values stand for once all are seen.

HEAD = 10_000
"""Rows by which it is judged what the columns are."""


@dataclass(frozen=True)
class LayoutGuess:
    """Which columns are read as what; `labels` are the file's own, where the action is as it was written."""

    parts: tuple[FilePart, ...]
    schema: "pyarrow.Schema"
    layout: ColumnLayout
    categorical: tuple[str, ...]
    labels: Schema | None
    roles: Schema | None
    origin: Origin
    head: "pyarrow.Table"

    @classmethod
    def of(cls, stored: DataSet, columns: ColumnRoles, discrete: bool | None = None) -> Self:
        """As `columns` says, else as the files say, else as the first rows look."""
        roles = stored.roles
        if columns.choices is not None:
            raise InputError(
                "attributes of alternatives need all rows in memory: use a smaller file, or a linear policy."
            )
        if columns.actions is None and (roles is None or not roles.action):
            names = ", ".join(f"'{name}'" for name in stored.schema.names)
            raise InputError(f"say which column is the action, with actions= or --actions; the columns are {names}.")
        columns = columns if roles is None else with_roles(columns, roles)
        labels = roles if roles is not None and is_as_written(roles, columns, discrete) else None
        head = stored.parts[0].head(stored.schema.names, HEAD)
        if columns.na is not None:
            raise InputError("texts that mean a missing value (--na) are for files that fit in memory: leave them out.")
        choice = choose(DataTable.of(head), columns, TEXTS if labels is None else ())
        table, actions = choice.table, listed(columns.actions)
        if labels is not None:
            discrete = labels.action_type.as_text
        else:
            values = table.actions(actions, discrete)
            discrete = is_discrete(values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values, discrete)
        numbers = [*([] if discrete else actions), *([columns.weights] if columns.weights else [])]
        for name in numbers:
            table.numbers(name)
        kinds = {name: table.column(name).dtype for name in choice.features}
        categories = {name for name, kind in kinds.items() if not (kind.is_numeric() or str(kind) == "Boolean")}
        texts = {name for name in [*kinds, *numbers] if str(table.frame[name].dtype) == "String"} - categories
        layout = ColumnLayout(
            tuple(choice.features), tuple(actions), columns.weights, columns.episodes, columns.subjects,
            frozenset(categories), frozenset(texts), actions[0] if discrete else None, columns.missing, labels is None,
        )  # fmt: skip
        kept = [note for note in choice.notes if not note.startswith("rows dropped")]
        origin = replace(choice, notes=kept).noted(Origin() if roles is None else roles.origin)
        parts = tuple(part.with_numbers({*kinds, *numbers} - categories - texts) for part in stored.parts)
        categorical = tuple(listed(columns.categorical))
        return cls(parts, stored.schema, layout, categorical, labels, roles, origin, head)

    def named(self, values: Mapping[str, Collection[Any]], reference: Any = None, dropped: str = "") -> "NamedLayout":
        """The same with places for all these values, and names for what is made of them."""
        words, names, blocks = {}, list[str](), dict[str, tuple[str, ...]]()
        for name in self.layout.features:
            if name in self.layout.categories:
                words[name], blocks[name] = self._levels(name, list(values[name]))
            names += blocks.get(name, (name,))
        action_names = self.layout.actions
        if (label := self.layout.label) is not None:
            words[label], action_names = self._labels(list(values[label]), reference)
        elif reference is not None:
            raise InputError(
                f"only discrete actions have a reference, found continuous ones: drop the reference '{reference}'."
            )
        if self.roles is not None:
            blocks = self.roles.blocks_among(names) | blocks
        origin = replace(self.origin, notes=(dropped, *self.origin.notes)) if dropped else self.origin
        return NamedLayout(replace(self.layout, vocabulary=words), tuple(names), tuple(action_names), blocks, origin)

    def guess(self, reference: Any) -> "NamedLayout | None":
        """What the first rows alone would say, if they say enough."""
        taken = self.layout.take(self.head.select(self.layout.columns))
        values = {}
        for name in self.layout.coded:
            codes, found = taken.codes[name]
            values[name] = [found[code] for code in np.unique(codes).tolist()]
        try:
            return self.named(values, reference) if len(taken) else None
        except InputError:
            return None

    def _distinct(self, name: str, values: list[Any]) -> DataTable:
        """A table of these values as the column holds them."""
        import polars
        import pyarrow

        empty, kind = self.head.select([name]).slice(0, 0), self.schema.field(name).type
        coded = pyarrow.types.is_dictionary(kind)
        if coded:
            empty = empty.set_column(0, name, empty.column(0).cast(kind.value_type))
        table = DataTable.of(polars.DataFrame([polars.Series(name, values, DataTable.of(empty).frame[name].dtype)]))
        numbers = coded and not pyarrow.types.is_string(kind.value_type)
        return table.with_categories([name] if name in self.categorical or numbers else [])

    def _levels(self, name: str, values: list[Any]) -> tuple[dict[Any, int], tuple[str, ...]]:
        """The place of each level, and the names of the features that are made of them."""
        marks, names, _ = self._distinct(name, 2 * values).features([name])  # twice: no level is free text
        places = np.where(marks.any(axis=1), marks.argmax(axis=1), marks.shape[1])
        return dict(zip(values, places.tolist(), strict=False)), names

    def _labels(self, values: list[Any], reference: Any) -> tuple[dict[Any, int], tuple[str, ...]]:
        """The code of each label, and the labels in the order of their codes."""
        action = self.layout.actions[0]
        table, state = self._distinct(action, values), np.zeros((len(values), 1))
        if self.labels is not None:
            assert self.labels.action_names is not None
            made = Sample(
                state,
                self.labels.action_type.encode(table.labels(self.labels.action[0])),
                ("state",),
                self.labels.action_names,
            )
        else:
            made = Sample.from_arrays(state, table.actions([action], True), discrete=True)
        made = made if reference is None else made.with_reference(reference)
        return dict(zip(values, made.actions.tolist(), strict=True)), made.action_names


@dataclass(frozen=True)
class NamedLayout:
    """A layout with places for all values, and the names of features and actions."""

    layout: ColumnLayout
    names: tuple[str, ...]
    action_names: tuple[str, ...]
    blocks: dict[str, tuple[str, ...]]
    origin: Origin

    def by_label(self, found: Counter[Any]) -> np.ndarray:
        """What was counted by value, in the order of the labels."""
        total = np.zeros(len(self.action_names))
        for value, place in self.layout.vocabulary[self.layout.actions[0]].items():
            total[place] += found[value]
        return total

    def chooses(self, table: "pyarrow.Table") -> bool:
        """Do these rows hold two different actions that weigh anything?"""
        block = next(self.layout.take(table).blocks(max(table.num_rows, 1)), None)
        if block is None:
            return False
        actions = block.actions if block.weights is None else block.actions[block.weights > 0]
        return bool(len(actions)) and bool((actions != actions[0]).any())

    def sample(self, table: "pyarrow.Table", counts: np.ndarray | None = None) -> Sample:
        """Some rows in memory; with `counts` of each label, weights that make up for how many of them are here."""
        layout = self.layout
        taken = layout.take(table)
        block = next(taken.blocks(max(len(taken), 1)))
        weights = block.weights
        if counts is not None:
            share = counts / np.maximum(np.bincount(block.actions, minlength=len(counts)), 1)
            weights = share[block.actions] * (1.0 if weights is None else weights)
        episodes, subjects = (
            None if name is None else column_numbers(taken.table.column(name))
            for name in (layout.episodes, layout.subjects)
        )
        return Sample(
            block.features, block.actions, self.names, self.action_names, episodes, weights, self.blocks,
            self.origin, subjects,
        )  # fmt: skip


# -- A log that is read in passes: its rows for sums over them, samples of them, and what the first pass found.

SEED = 0
"""Of the samples."""

FILE_APART = 40
"""Bits between the places of rows of different files."""


@dataclass
class OutOfCoreRows(Rows):
    """Rows that lie in files: every sum over them is one pass."""

    parts: Sequence[FilePart]
    layout: ColumnLayout
    backend: Backend
    num_rows: int
    num_observed: int
    num_episodes: int | None
    label_weights: np.ndarray | None
    strata: Sample | None
    moments: Moments | None
    far: ExtremeRows | None
    owners: np.ndarray | None
    stretched: bool
    passes: int = 1
    in_memory = False

    @property
    def weighted(self) -> bool:  # type: ignore[override]
        """Whether they have weights."""
        return self.layout.weights is not None

    def total(
        self, function: Callable[[RowBlock], tuple[Any, ...]], size: int = LONGEST, owned: bool = False
    ) -> tuple[Any, ...]:
        """Σ function(block), with the same bits for any number of threads or machines; `owned` blocks know their owners."""
        self.passes += 1
        what = f"pass {self.passes} over {self.num_rows} rows"
        return self.backend.reduce(SumOfPart(self.layout, function, size, owned), self.parts, sum_tuples, what)


@dataclass(frozen=True)
class SumOfPart:
    """What a task does with its part."""

    layout: ColumnLayout
    function: Callable[[RowBlock], tuple[Any, ...]]
    size: int
    owned: bool = False

    def __call__(self, part: FilePart) -> tuple[Any, ...]:
        """The sum over its blocks."""
        total: tuple[Any, ...] = ()
        layout, place = self.layout, part.file_number << FILE_APART
        every = self.owned or layout.missing == "drop"  # rows without an owner were dropped, too
        for start, taken in layout.tables(part, layout.all_columns if every else layout.columns):
            for block in taken.blocks(self.size, place + start, self.owned):
                total = sum_tuples(total, self.function(block))
        return total


def open_log(
    stored: DataSet, columns: ColumnRoles, discrete: bool | None = None, reference: Any = None, backend: Any = None
) -> Sample:
    """The first pass over a data set: a sample in whole stretches of rows, which knows the log that it is of."""
    if not stored.parts:
        raise InputError("a data set needs at least one row, found none: check the files.")
    path = stored.parts[0].file.path
    with located(path):
        reading = LayoutGuess.of(stored, columns, discrete)
        layout, guess = reading.layout, reading.guess(reference)
        also = None if guess is None else _sums_near(guess, reading)
    workers = backend_of(backend)
    share = share_of_stretches(stored.num_rows)
    scan = Scan(layout, SEED, share, layout.label is not None, None if guess is None else guess.layout, also)
    facts: ScanSummary = workers.reduce(scan, reading.parts, scan.bounds.add, "reading what is in the files")
    total = facts.num_rows + facts.dropped
    dropped = f"rows dropped for missing values: {facts.dropped} of {total}." if facts.dropped else ""
    with located(path):
        named = reading.named(facts.values, reference, dropped)
        foreseen = guess is not None and guess.layout.vocabulary == named.layout.vocabulary
        return _sample(reading, facts if foreseen else replace(facts, sums=None), named, workers, also)


def _sums_near(guess: NamedLayout, reading: LayoutGuess) -> ComputeMoments | ComputeMomentsAndExtremes:
    """What makes the moments of a block, which needs some point in the middle of the rows.

    Where actions are labels it also finds the rows far out, unless the first rows have some: then they are many.
    """
    block = next(guess.layout.take(reading.head.select(guess.layout.columns)).blocks(reading.head.num_rows))
    num_labels = None if guess.layout.label is None else len(guess.action_names)
    shift = shift_near(block.features, block.actions, num_labels)
    moments = ComputeMoments(shift, num_labels)
    if num_labels is None:
        return moments
    far = FindExtremeRows.of(block, shift[: block.features.shape[1]], SUSPECT)
    return moments if len(far(block)[0].measure) else ComputeMomentsAndExtremes(moments, far)


def _sample(reading: LayoutGuess, facts: ScanSummary, named: NamedLayout, workers: Backend, also: Any) -> Sample:
    layout, counts, label_weights = named.layout, None, None
    total, positive, broken = facts.weights.tolist()
    if layout.weights is not None and not positive:
        raise InputError("at least one weight must be positive, found only zeros.")
    if layout.label is not None:
        for label in facts.values[layout.label] if layout.weights is not None else ():
            if not facts.weight_of_label[label] > 0:
                raise InputError(f"the action '{label}' is that of rows of weight 0 alone: drop these rows.")
        counts = named.by_label(facts.values[layout.label])
        label_weights = counts if layout.weights is None else named.by_label(facts.weight_of_label)
    strata = None if facts.strata is None else named.sample(facts.strata.table, counts)
    layout = replace(layout, checked=layout.missing == "error")
    stretches = facts.stretches.table
    stretched = named.chooses(stretches)  # else all actions but one are so rare that stretches do not hold them
    rows = OutOfCoreRows(
        reading.parts, layout, workers, facts.num_rows,
        facts.num_rows if layout.weights is None or broken else round(total),
        None if layout.episodes is None else len(facts.clusters[layout.episodes]),
        label_weights, strata,
        facts.sums[0] if facts.sums else None,
        ExtremeRows(also.far, facts.sums[1]) if facts.sums and isinstance(also, ComputeMomentsAndExtremes) else None,
        None if layout.owners is None else facts.clusters[layout.owners],
        stretched,
    )  # fmt: skip
    if stretched:
        return replace(named.sample(stretches), rows=rows)
    if strata is None:
        raise InputError("the actions are the same in every row of a sample: nothing can be identified from them.")
    return replace(strata, weights=None, rows=rows)
