"""The first pass over a log: what is in it, whether it is whole, and samples of its rows."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from policyspace.data.blocks import LARGEST, Block
from policyspace.data.chunks import added
from policyspace.data.columns import MAX_LEVELS
from policyspace.data.joint_moments import BLOCK
from policyspace.data.large.layout import Layout, Taken, column_numbers
from policyspace.data.large.parts import Part
from policyspace.data.large.samples import MOST_STRETCHED, STRETCH, Strata, Stretches, rows_of, scattered, smaller
from policyspace.data.limits import check_limit
from policyspace.data.readers import located
from policyspace.errors import InputError

if TYPE_CHECKING:
    import pyarrow

MOST_LABELS = 1000
"""An action with more distinct values is no label."""


@dataclass(frozen=True)
class Facts:
    """What is known about some rows."""

    num_rows: int
    dropped: int
    values: dict[str, Counter[Any]]  # of coded columns, with how many rows have them
    weights: np.ndarray  # [their sum, rows that weigh anything, rows whose weight is no whole number]
    weight_of_label: Counter[Any]
    clusters: dict[str, np.ndarray]  # of episodes and subjects, a number for each
    stretches: Stretches
    strata: Strata | None
    sums: tuple[Any, ...] | None  # of whatever else was to be added up; None where a value was not foreseen
    most_values: dict[str, int]  # that each coded column may have

    def __add__(self, other: "Facts") -> "Facts":
        values = {
            name: _bounded(name, own + other.values[name], self.most_values[name]) for name, own in self.values.items()
        }
        clusters = {name: np.union1d(own, other.clusters[name]) for name, own in self.clusters.items()}
        for name, found in clusters.items():
            check_limit("MAX_CLUSTERS", len(found), f"the different values of '{name}'")
        strata = None if self.strata is None or other.strata is None else self.strata + other.strata
        sums = None if self.sums is None or other.sums is None else added(self.sums, other.sums)
        return Facts(
            self.num_rows + other.num_rows, self.dropped + other.dropped, values, self.weights + other.weights,
            self.weight_of_label + other.weight_of_label, clusters, self.stretches + other.stretches, strata,
            sums, self.most_values,
        )  # fmt: skip


@dataclass
class Bounds:
    """Random numbers from which on no row can be in the samples any more, by what has been added up so far.

    Tasks that begin later send back fewer rows, and the samples are the same: the smallest numbers of all.
    """

    stretches: int = 2**64
    strata: Mapping[Any, float] = field(default_factory=dict)

    def add(self, first: Facts, second: Facts) -> Facts:
        """Both together, which tell more than was known."""
        total = first + second
        self.stretches = min(self.stretches, total.stretches.below)
        if total.strata is not None:
            self.strata = smaller(self.strata, total.strata.below)
        return total


@dataclass(frozen=True)
class Scan:
    """What a task of the first pass does with its part; `also` is a function of blocks whose sum is wanted, too.

    `guess` is the layout with the values of its columns as far as the first rows show them.
    """

    layout: Layout
    seed: int
    share: float  # of stretches that are candidates at all
    stratified: bool
    guess: Layout | None = None
    also: Callable[[Block], tuple[Any, ...]] | None = None
    bounds: Bounds = field(default_factory=Bounds)

    def __call__(self, part: Part) -> Facts:
        """What there is to know about it."""
        total: Facts | None = None
        for start, table in part.tables(self.layout.all_columns):
            with located(part.file.path):
                facts = self._facts(part, start, table, total)
            total = facts if total is None else total + facts
        if total is None:
            raise InputError(f"{part.file.path}: a table needs at least one row, found none: leave the file out.")
        return total

    def _facts(self, part: Part, start: int, table: "pyarrow.Table", before: Facts | None) -> Facts:
        layout = self.layout
        taken, sums = self._taken(table, start)
        most = {name: MAX_LEVELS if name in layout.categories else MOST_LABELS for name in layout.coded}
        values = {name: _counted(name, taken.arrays[name], most[name]) for name in layout.coded}
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
            strata = Strata.of(taken.table, layout.actions[0], drawn, smaller(self.bounds.strata, below))
        return Facts(
            len(taken), taken.dropped, values, weights, of_label, {n: np.unique(found) for n, found in clusters.items()},
            self._stretches(part, start, taken, clusters, before), strata, sums, most,
        )  # fmt: skip

    def _taken(self, table: "pyarrow.Table", start: int) -> tuple[Taken, tuple[Any, ...] | None]:
        """The complete rows, and the sums over them; where these are finite, so is every number that they are made of."""
        if self.also is not None and self.layout.weights is None:
            with np.errstate(all="ignore"):
                taken = replace(self.layout, checked=True).take(table, start)
                sums = self._sums(taken)
                if sums and sums[0].within(LARGEST / 2):
                    return taken, sums
        taken = self.layout.take(table, start)
        return taken, self._sums(taken)

    def _sums(self, taken: Taken) -> tuple[Any, ...] | None:
        """None where the guess was wrong, and nothing where there are no rows."""
        if self.also is None or self.guess is None:
            return None
        known = self.guess.vocabulary
        if any(value not in known[name] for name in self.guess.coded for value in taken.arrays[name][1]):
            return None
        sums: tuple[Any, ...] = ()
        for block in replace(taken, layout=self.guess).blocks(BLOCK):
            sums = added(sums, self.also(block))
        return sums

    def _weights(self, taken: Taken, start: int) -> tuple[np.ndarray, Counter[Any]]:
        """Their sum, how many are positive, how many are no whole numbers; and the sum of each label."""
        layout = self.layout
        if layout.weights is None:
            return np.zeros(3), Counter()
        weights = taken.arrays[layout.weights]
        if len(weights) and weights.min() < 0:
            row = int(np.argmax(weights < 0))
            raise InputError(
                f"weights must be finite and not negative, found {weights[row]} in row {start + row + 1}: drop it."
            )
        of_label: Counter[Any] = Counter()
        if layout.discrete:
            codes, values = taken.arrays[layout.actions[0]]
            of_label.update(dict(zip(values, np.bincount(codes, weights, len(values)).tolist(), strict=True)))
        whole = weights % 1 == 0
        return np.array(
            [weights.sum(dtype=np.float64), (weights > 0).sum(), (~whole).sum()], dtype=np.float64
        ), of_label

    def _stretches(
        self, part: Part, start: int, taken: Taken, clusters: dict[str, np.ndarray], before: Facts | None
    ) -> Stretches:
        """Whole subjects or episodes where they are named, else neighbouring rows."""
        layout = self.layout
        if clusters:
            numbers = scattered(clusters[layout.owners or ""], self.seed)
            below = 2**64 if before is None else before.stretches.below
            return Stretches.of(taken.table, numbers, MOST_STRETCHED, min(below, self.bounds.stretches))
        own = np.arange(-(-len(taken) // STRETCH), dtype=np.uint64) + np.uint64(start // STRETCH)
        numbers = scattered(own + np.uint64(part.number << 40), self.seed)
        chosen = np.flatnonzero(numbers <= np.uint64(int(self.share * (2**64 - 1025))))
        rows = (chosen[:, None] * STRETCH + np.arange(STRETCH)).ravel()
        rows = rows[rows < len(taken)]
        return Stretches.of(rows_of(taken.table, rows), numbers[rows // STRETCH], MOST_STRETCHED)


def share_of_stretches(num_rows: int | None) -> float:
    """How many of all stretches are candidates: twice as many as are kept, where the number of rows is known."""
    return 1.0 if num_rows is None else min(1.0, 2 * MOST_STRETCHED / max(num_rows, 1))


def _counted(name: str, coded: tuple[np.ndarray, Sequence[Any]], most: int) -> Counter[Any]:
    """How many rows have each value."""
    codes, values = coded
    counts = np.bincount(codes, minlength=len(values)).tolist()
    return _bounded(name, Counter({v: n for v, n in zip(values, counts, strict=True) if n}), most)


def _bounded(name: str, found: Counter[Any], most: int) -> Counter[Any]:
    if len(found) > most:
        value = next(iter(found))
        what = "free text is no feature" if most == MAX_LEVELS else "that are too many to be labels"
        raise InputError(
            f"column '{name}' has more than {most} different values, found '{value}' and others: {what}, so leave the "
            "column out or read it as numbers."
        )
    return found
