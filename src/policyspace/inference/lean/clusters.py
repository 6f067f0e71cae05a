"""Clusters of rows: single rows, blocks, episodes, subjects; autocorrelation of scores."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from policyspace.data.large.layout import hashed_order
from policyspace.data.rows import BLOCK, ComputeMoments, Moments, RowBlock, Rows, shift_near
from policyspace.inference.lean.rows import LeanRows, Levels, Spread, Standard
from policyspace.runtime import limit

if TYPE_CHECKING:
    from policyspace.data.sample import Sample


# -- Clusters of rows over which scores are summed, as a block of rows tells them.


class Clusters(ABC):
    """Which of `num` clusters each row belongs to."""

    num: int
    by_owner = False  # whether it asks whose rows they are

    @abstractmethod
    def codes(self, block: RowBlock) -> np.ndarray:
        """The cluster of each row of a block."""


@dataclass(frozen=True, eq=False)
class ListedClusters(Clusters):
    """The cluster of each row in memory, by the place of the row."""

    of_row: np.ndarray

    @property
    def num(self) -> int:  # type: ignore[override]
        """The codes are 0, 1, …."""
        return int(self.of_row.max()) + 1

    def codes(self, block: RowBlock) -> np.ndarray:
        """Those of its rows."""
        return self.of_row[block.start : block.start + len(block)]


@dataclass(frozen=True, eq=False)
class WholeClusters(Clusters):
    """Whole subjects or episodes; about as many in each cluster where there are too many of them."""

    by_owner = True
    edges: np.ndarray
    """The smallest number of an owner in each cluster."""

    @classmethod
    def of(cls, owners: np.ndarray, most: int) -> "WholeClusters":
        """From the numbers of all owners, which say nothing about them, in order."""
        return cls(owners[:: -(-len(owners) // most)])

    @property
    def num(self) -> int:  # type: ignore[override]
        """A cluster an edge."""
        return len(self.edges)

    def codes(self, block: RowBlock) -> np.ndarray:
        """By the number of each row's owner."""
        assert block.owners is not None
        return np.searchsorted(self.edges, block.owners, side="right") - 1


@dataclass(frozen=True)
class RowBlocks(Clusters):
    """Runs of so many neighbouring rows of a file, thrown together at random where they are too many."""

    length: int
    num: int

    def codes(self, block: RowBlock) -> np.ndarray:
        """By the places of the rows."""
        runs = np.arange(block.start, block.start + len(block)) // self.length
        return (hashed_order(runs, 0) % np.uint64(self.num)).astype(np.intp)


# -- Which rows may be taken as independent: single rows, blocks of an episode, whole episodes, or subjects.

LADDER = (1, 5, 10, 25, 50, 100, 200)
"""Lengths of blocks, in rows."""

FEWEST_CLUSTERS = 8
MOST_CLUSTERS = 4096
"""Independent rows are summed over neighbours into so many clusters at most: nothing is lost, and flips stay cheap."""

CORRELATED = 1.5
"""Neighbouring blocks are called correlated from this z on."""

HARMLESS = 1.25
"""Rows are used as they are when dependence makes a score's variance at most so many times larger."""

MOST_LEFT = 1.06
"""Clusters must hold all but this factor of the inflation."""

FEWEST_LAGS, MOST_LAG = 5, 400
FADED = 0.03
"""Autocorrelations are followed until they are smaller than this, at these lags."""


@dataclass(frozen=True)
class Clustering:
    """One way to cluster rows."""

    name: str
    length: float
    codes: np.ndarray
    """The cluster of each row that is at hand, never falling."""
    num: int
    """The number of clusters; where rows are a sample, that of all rows."""

    @property
    def whole(self) -> bool:
        """Is it an episode or a subject, rather than some rows of one?"""
        return self.name in ("episodes", "subjects")


@dataclass(frozen=True)
class UnitChoice:
    """The unit for one group of inputs and why; None where there are too few for a guarantee."""

    unit: Clustering | None
    reason: str
    inflation: float = 1.0
    """Estimated variance of the score's sum against that of independent rows."""
    missed: float = 1.0
    """By which factor clusters may understate the variance: the inflation, plus its standard error, beyond theirs."""


def candidate_block_lengths(rows: LeanRows, fewest: int, num_rows: int, num_owners: int) -> list[Clustering]:
    """Rows, blocks, episodes from fine to coarse: those with at least `fewest` clusters.

    `num_rows` and `num_owners`, the subjects or else the episodes, are those of all rows, where these are a sample.
    """
    if rows.subject is not None:
        units = [Clustering("subjects", np.inf, rows.subject, num_owners)]
    else:
        lengths = np.bincount(rows.episode)
        units = [Clustering("rows", 1, np.arange(rows.num), num_rows)]
        for length in LADDER[1:]:
            if length <= lengths.max() / 2:
                codes = block_codes(lengths, length)
                num = int((codes[-1] + 1) * num_rows / rows.num)
                units.append(Clustering(f"blocks of {length} rows", length, codes, num))
        if rows.has_episodes and lengths.max() > 1:
            units.append(Clustering("episodes", float(lengths.mean()), rows.episode, num_owners))
    return [unit for unit in units if unit.num >= fewest]


def fewest_clusters(num_hypotheses: int, significance: float) -> int:
    """So many that the smallest p-value of sign flips, 2^(1−G), can pass the strictest of Holm's thresholds."""
    return max(FEWEST_CLUSTERS, int(np.ceil(1 + np.log2(max(num_hypotheses, 1) / significance))))


def block_codes(lengths: np.ndarray, block: int) -> np.ndarray:
    """Every episode in equal parts of about `block` rows: the part of each row, counted through all episodes."""
    parts = np.maximum(1, np.round(lengths / block).astype(np.intp))
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    first = np.cumsum(parts) - parts
    return np.repeat(first, lengths) + within * np.repeat(parts, lengths) // np.repeat(lengths, lengths)


def merged(unit: Clustering) -> np.ndarray:
    """The unit's clusters, neighbours united where there are more than need be."""
    together = -(-unit.num // MOST_CLUSTERS)
    return unit.codes // together


def autocorrelations(
    series: np.ndarray, episode: np.ndarray, most_lag: int, until_faded: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Within episodes, at lags 1, 2, … (until all have faded): [lags, columns], and the number of pairs at each lag."""
    power = np.maximum((series**2).mean(axis=0), 1e-300)
    found, pairs = [], []
    for lag in range(1, most_lag + 1):
        same = episode[lag:] == episode[:-lag]
        count = int(same.sum())
        if count < 20:
            break
        total = np.einsum("ij,ij->j", series[lag:] * same[:, None], series[:-lag])
        found.append(total / count / power)
        pairs.append(count)
        if until_faded and np.abs(found[-1]).max() < FADED and lag >= FEWEST_LAGS:
            break
    return np.array(found).reshape(-1, series.shape[1]), np.array(pairs, dtype=float)


TOO_SHORT = (
    "neighbouring rows look dependent over about {reach:.0f} rows, and the log is too short to split into enough "
    "independent blocks of that length: collect more episodes, or name them (--episodes, episodes=)"
)


def choose_clustering(
    units: list[Clustering], tested: np.ndarray, residuals: np.ndarray, rows: LeanRows, used: np.ndarray
) -> UnitChoice:
    """The unit for one group of inputs.

    Rows where dependence hardly inflates the variance of the score. Otherwise clusters as long as the range of the inputs
    that hold most of the inflation and whose neighbours do not agree. `tested` [n', c] is what is left of the group's
    inputs, `residuals` [n', k] of the actions given all inputs, both at the rows `used` [n'].
    """
    episode = rows.episode[used]
    lengths = np.bincount(rows.episode)
    most_lag = int(min(MOST_LAG, lengths.max() - 1, len(used) // 4))
    if not units:
        return UnitChoice(None, "there are too few independent clusters of rows: collect more episodes")
    if most_lag < 1:
        return UnitChoice(units[0], "every episode is one row")
    seen = Autocorrelation.of(tested, residuals, episode, most_lag)
    mean_length = float(lengths.mean())
    reach, whole = seen.reach(mean_length), seen.inflation(mean_length)
    numbers = f"its range is {reach:.1f} rows, variance inflation {whole:.2f} ± {seen.error:.2f}"
    if whole + seen.error <= HARMLESS and units[0].length == 1:
        return UnitChoice(units[0], numbers, whole, whole + seen.error)
    scores = (tested[:, :, None] * residuals[:, None, :]).reshape(len(tested), -1)
    start = 1.0 if reach < 1.5 else min(reach, mean_length)
    for unit in units:
        if unit.length < start or whole > MOST_LEFT * seen.inflation(unit.length):
            continue
        z = check_serial_correlation(scores, unit.codes[used], episode)
        if z <= CORRELATED:
            inside = whole + seen.error if unit.name == "episodes" else seen.inflation(unit.length)
            reason = f"{numbers}; neighbouring clusters' scores agree with z = {z:.1f}"
            return UnitChoice(unit, reason, whole, (whole + seen.error) / inside)
    return UnitChoice(None, TOO_SHORT.format(reach=reach), whole)


@dataclass(frozen=True)
class Autocorrelation:
    """Autocorrelations of what is left of inputs [lags, c] and their products with those of the actions [lags, c, k]."""

    of_input: np.ndarray
    joint: np.ndarray
    faded: int
    """Lags until the actions' autocorrelations have faded for the first time."""
    error: float
    """Standard error of the inflation if the actions were independent."""

    @classmethod
    def of(cls, tested: np.ndarray, residuals: np.ndarray, episode: np.ndarray, most_lag: int) -> "Autocorrelation":
        """Measured within episodes."""
        of_input, pairs = autocorrelations(tested, episode, most_lag)
        of_action, _ = autocorrelations(residuals, episode, len(of_input), until_faded=False)
        error = 2 * np.sqrt(np.sum(of_input**2 / pairs[:, None], axis=0)).max(initial=0.0)
        joint = of_input[:, :, None] * of_action[:, None, :]
        faded = np.flatnonzero(np.abs(of_action).max(axis=1)[FEWEST_LAGS - 1 :] < FADED)
        return cls(of_input, joint, FEWEST_LAGS + int(faded[0]) if len(faded) else len(joint), float(error))

    def reach(self, length: float) -> float:
        """How many rows the inputs take to change, within clusters of this length."""
        return float(
            (1 + 2 * np.einsum("l,lc->c", self._taper(length), np.maximum(self.of_input, 0.0))).max(initial=1.0)
        )

    def inflation(self, length: float) -> float:
        """The variance of a cluster's score against that of as many independent rows, for the worst input and action."""
        parts = self._taper(length)[:, None, None] * self.joint
        # Beyond the first lags noise may cancel what they show, and weak persistence may add to it: the larger counts.
        sums = np.stack([parts.sum(axis=0), parts[: self.faded].sum(axis=0)])
        return float((1 + 2 * sums).max(initial=1.0))

    def _taper(self, length: float) -> np.ndarray:
        return np.maximum(1 - np.arange(1, len(self.of_input) + 1) / length, 0.0)


def check_serial_correlation(scores: np.ndarray, codes: np.ndarray, episode: np.ndarray) -> float:
    """The largest z of products of clusters' scores: of neighbours, up to lag 4, of all pairs of an episode."""
    starts = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1])
    sums = np.add.reduceat(scores, starts, axis=0)
    sums /= np.maximum(np.sqrt((sums**2).mean(axis=0)), 1e-300)
    owner = episode[starts]
    near = np.zeros((4, len(sums)))
    for lag in range(1, min(5, len(sums))):
        same = owner[lag:] == owner[:-lag]
        near[lag - 1, :-lag] = np.einsum("ij,ij->i", sums[lag:], sums[:-lag]) * same
    first = np.concatenate([[0], np.flatnonzero(np.diff(owner)) + 1])
    whole = np.add.reduceat(sums, first, axis=0)
    all_pairs = (whole**2).sum(axis=1) - np.add.reduceat((sums**2).sum(axis=1), first)
    candidates = [_z(near[0]), _z(near.sum(axis=0))]
    if len(first) >= 5:
        candidates.append(_z(all_pairs))
    return max(candidates)


def _z(values: np.ndarray) -> float:
    size = float(np.sqrt(np.sum(values**2)))
    return float(values.sum()) / size if size > 0 else 0.0


# -- Where the rows of the test lie: in memory, or in files of which only a sample is in memory.

MOST_CLUSTERS_IN_PASSES = 1024
"""Clusters over which scores are summed in passes: few, because every part of the files sends back a sum for each."""

RUNS_A_CLUSTER = 8
"""Runs of rows that are thrown together, so that clusters are about equally large."""

MOST_NUMBERS = 2 << 20
"""Numbers that a part of the files sends back at a time (16 MiB)."""

MOST_ENTRIES = 300
"""Entries of a score vector: beyond, interactions and products of tested inputs are dropped."""

OVERHEAD = 100
"""What a row costs beside products, in columns."""


class LeanData(ABC):
    """All rows that are tested; `num_owners` is the number of subjects, or else of episodes, among them."""

    num_rows: int
    num_owners: int
    most_numbers: float

    @abstractmethod
    def total(self, function: Callable[[RowBlock], tuple[Any, ...]], owned: bool = False) -> tuple[Any, ...]:
        """Σ function(block) over blocks of standardised rows, which know their owners if asked to."""

    @abstractmethod
    def clusters(self, unit: Clustering) -> Clusters:
        """Clusters made of whole units."""


MOST_KEPT = 3 << 23
"""Numbers that are made of the rows in memory once and kept (192 MiB); what is beyond is made anew where it is needed."""


@dataclass(frozen=True)
class KeptBlock(RowBlock):
    """Rows in memory, and what was made of them."""

    made: dict[Any, np.ndarray] = field(default_factory=dict)

    def forget_all_but(self, what: object) -> None:
        """Of keys (what, place)."""
        for key in [key for key in self.made if key[0] is not what]:
            del self.made[key]


def kept(block: RowBlock, key: Any, make: Callable[[], np.ndarray]) -> np.ndarray:
    """What is made of rows, made once where they are in memory and there is room; `key` says what it is."""
    if not isinstance(block, KeptBlock):
        return make()
    found = block.made.get(key)
    if found is None:
        found = make()
        if sum(one.size for one in block.made.values()) + found.size <= MOST_KEPT:
            block.made[key] = found
    return found


@dataclass(frozen=True)
class InMemory(LeanData):
    """The rows that are at hand."""

    rows: LeanRows
    most_numbers = np.inf

    @cached_property
    def block(self) -> KeptBlock:
        """All of them."""
        return KeptBlock(self.rows.inputs, self.rows.actions)

    @property
    def num_rows(self) -> int:  # type: ignore[override]
        """How many."""
        return self.rows.num

    @property
    def num_owners(self) -> int:  # type: ignore[override]
        """Codes never fall."""
        return int((self.rows.episode if self.rows.subject is None else self.rows.subject)[-1]) + 1

    def total(self, function: Callable[[RowBlock], tuple[Any, ...]], owned: bool = False) -> tuple[Any, ...]:
        """All rows are one block."""
        return function(self.block)

    def clusters(self, unit: Clustering) -> Clusters:
        """The units, neighbours united where they are many."""
        return ListedClusters(merged(unit))


def levels_of(data: "Sample") -> Levels:
    """The columns of each category."""
    return [tuple(data.names.index(name) for name in inside) for inside in data.blocks.values()]


class InPasses(LeanData):
    """The rows of a log in files, of which a sample is in memory."""

    most_numbers = MOST_NUMBERS

    @staticmethod
    def is_needed(data: "Sample") -> bool:
        """Whether the sample of a log in files is not the whole log, which is then tested as in memory."""
        return data.num_rows < data.num_rows_total

    def __init__(self, log: Rows, sample: "Sample", num_supports: int = 0) -> None:
        """`num_supports` that will be tested beside those with one group out."""
        self._log, self._sample, self._num_supports = log, sample, num_supports
        self.num_rows = log.num_rows
        self.num_owners = 1 if log.owners is None else len(log.owners)

    @cached_property
    def standard(self) -> Standard:
        """By the means and spreads of all rows."""
        width, moments, counts = self._sample.features.shape[1], self._moments(), self._log.label_weights
        deviation = np.sqrt(np.diag(moments.scatter) / moments.total_weight)
        known = Spread(moments.mean, deviation, np.abs(moments.mean) + deviation)
        inputs, actions = (Spread(*(one[part] for one in known)) for part in (slice(width), slice(width, None)))
        return Standard.of(inputs, actions, counts, levels_of(self._sample))

    def _moments(self) -> Moments:
        """From the first pass if it made them."""
        if self._log.moments is not None:
            return self._log.moments
        sample = self._sample
        num_labels = sample.action_type.num_labels
        shift = shift_near(sample.features, sample.actions, num_labels)
        return self._log.total(ComputeMoments(shift, num_labels), BLOCK)[0]

    def why_not(self, rows: LeanRows, width: int, groups: Sequence[tuple[int, ...]]) -> str:
        """Why the test must look at the sample `rows` alone, or nothing; `width` is that of the regressions.

        Where the sample shows one or two values of an input that has others, nobody would look for its curves; a
        standardised column of two values has them at z and −1/z.
        """
        low, high = rows.inputs.min(axis=0), rows.inputs.max(axis=0)
        other = np.abs(1 + low * high) > 1e-9 * np.maximum(1.0, (high - low) ** 2)
        hidden = np.flatnonzero(rows.two_valued & np.isfinite(self.standard.scale) & other)
        if len(hidden):
            return f"'{self._sample.names[hidden[0]]}' has values that the sample does not show"
        sizes, num_actions = np.array([len(group) for group in groups]), rows.actions.shape[1]
        extra = np.minimum(MOST_ENTRIES // num_actions, 20 * sizes + sizes * (sizes + 1) // 2)
        columns = 2 * (2 * num_actions + sizes + extra).sum() * (1 + self._num_supports / len(sizes))
        work = self.num_rows * (width + OVERHEAD) * (width / 2 + columns)
        if work > limit("MAX_PRODUCTS"):
            return f"all rows would take {work:.0e} products, more than POLICYSPACE_MAX_PRODUCTS"
        return ""

    def total(self, function: Callable[[RowBlock], tuple[Any, ...]], owned: bool = False) -> tuple[Any, ...]:
        """One pass over the files."""
        return self._log.total(OnStandardisedRows(self.standard, function), owned=owned)

    def clusters(self, unit: Clustering) -> Clusters:
        """Whole subjects or episodes; runs of rows instead where units are shorter and runs are more.

        Rows of several episodes may take turns in a file: so many times longer are the runs than the unit.
        """
        owned = None if self._log.owners is None else WholeClusters.of(self._log.owners, MOST_CLUSTERS_IN_PASSES)
        if owned is not None and unit.whole:
            return owned
        shortest = -(-self.num_rows // (RUNS_A_CLUSTER * MOST_CLUSTERS_IN_PASSES))
        length = max(int(unit.length) * self.num_owners, shortest)
        if owned is not None and owned.num >= min(self.num_rows // length, MOST_CLUSTERS_IN_PASSES):
            return owned
        return RowBlocks(length, MOST_CLUSTERS_IN_PASSES)


def in_order_of_rows(codes: np.ndarray | None) -> np.ndarray | None:
    """Numbers of episodes or subjects, which files give as they please, by where each begins."""
    if codes is None:
        return None
    _, first, code = np.unique(codes, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[code])


@dataclass(frozen=True)
class OnStandardisedRows:
    """A function of standardised rows as one of rows as they are."""

    standard: Standard
    function: Callable[[RowBlock], tuple[Any, ...]]

    def __call__(self, block: RowBlock) -> tuple[Any, ...]:
        """Of one block."""
        return self.function(self.standard.block(block))
