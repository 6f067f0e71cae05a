"""Which rows may be taken as independent: single rows, blocks of an episode, whole episodes, or subjects."""

from dataclasses import dataclass

import numpy as np

from policyspace.inference.lean.rows import Rows

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
class Unit:
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
    """The unit for one group of inputs and why; None where no unit carries a promise."""

    unit: Unit | None
    reason: str
    inflation: float = 1.0
    """Estimated variance of the score's sum against that of independent rows."""
    missed: float = 1.0
    """By which factor clusters may understate the variance: the inflation, plus its standard error, beyond theirs."""


def ladder(rows: Rows, fewest: int, num_rows: int, num_owners: int) -> list[Unit]:
    """Rows, blocks, episodes from fine to coarse: those with at least `fewest` clusters.

    `num_rows` and `num_owners`, the subjects or else the episodes, are those of all rows, where these are a sample.
    """
    if rows.subject is not None:
        units = [Unit("subjects", np.inf, rows.subject, num_owners)]
    else:
        lengths = np.bincount(rows.episode)
        units = [Unit("rows", 1, np.arange(rows.num), num_rows)]
        for length in LADDER[1:]:
            if length <= lengths.max() / 2:
                codes = block_codes(lengths, length)
                num = int((codes[-1] + 1) * num_rows / rows.num)
                units.append(Unit(f"blocks of {length} rows", length, codes, num))
        if rows.has_episodes and lengths.max() > 1:
            units.append(Unit("episodes", float(lengths.mean()), rows.episode, num_owners))
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


def merged(unit: Unit) -> np.ndarray:
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


def choose_unit(
    units: list[Unit], tested: np.ndarray, residuals: np.ndarray, rows: Rows, used: np.ndarray
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
        return UnitChoice(None, "there are too few clusters of rows for any promise")
    if most_lag < 1:
        return UnitChoice(units[0], "every episode is one row")
    seen = Dependence.of(tested, residuals, episode, most_lag)
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
        z = neighbours_agree(scores, unit.codes[used], episode)
        if z <= CORRELATED:
            inside = whole + seen.error if unit.name == "episodes" else seen.inflation(unit.length)
            reason = f"{numbers}; neighbouring clusters' scores agree with z = {z:.1f}"
            return UnitChoice(unit, reason, whole, (whole + seen.error) / inside)
    return UnitChoice(None, f"{numbers}; clusters long enough for that are too few for any promise", whole)


@dataclass(frozen=True)
class Dependence:
    """Autocorrelations of what is left of inputs [lags, c] and their products with those of the actions [lags, c, k]."""

    of_input: np.ndarray
    joint: np.ndarray
    faded: int
    """Lags until the actions' autocorrelations have faded for the first time."""
    error: float
    """Standard error of the inflation if the actions were independent."""

    @classmethod
    def of(cls, tested: np.ndarray, residuals: np.ndarray, episode: np.ndarray, most_lag: int) -> "Dependence":
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


def neighbours_agree(scores: np.ndarray, codes: np.ndarray, episode: np.ndarray) -> float:
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
