"""Standardised rows and the basis functions of the nuisance regressions."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import ndtri

from policyspace.data.rows import RowBlock as RowBlock
from policyspace.errors import InputError

# -- How inputs and actions are standardised: the same way for every row of a log, whether it lies in memory or not.

MOST_LABELS = 40
"""Only so many of the most frequent labels get an indicator of their own."""


Levels = Sequence[tuple[int, ...]]
"""The columns of each category, one a level, but for one level."""


class Spread(NamedTuple):
    """Where columns lie: their means, standard deviations and sizes [c]."""

    mean: np.ndarray
    deviation: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, columns: np.ndarray) -> "Spread":
        """Of the columns of a table."""
        mean = columns.mean(axis=0)
        centred = columns - mean
        deviation = np.sqrt(np.einsum("ij,ij->j", centred, centred) / len(columns))
        return cls(mean, deviation, np.maximum(columns.max(axis=0), -columns.min(axis=0)))

    @property
    def varies(self) -> np.ndarray:
        """Which columns are more than one value and its rounding."""
        return self.deviation > 1e-12 * np.maximum(self.size, 1e-300)


@dataclass(frozen=True)
class Standard:
    """Means and spreads by which rows are standardised; inputs that are constant become 0.

    Continuous actions stay as they are, but for the columns that do not vary; labels become indicators of all but the most
    frequent one.
    """

    shift: np.ndarray
    scale: np.ndarray
    """Of inputs [q]; infinite for constant ones."""
    kept: np.ndarray
    """The labels that have an indicator, or the columns of the action that vary [k]."""
    action_shift: np.ndarray
    action_scale: np.ndarray
    num_labels: int | None
    recoded: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """Of categories, the column that stands for the level without one, and all columns of the category."""

    @classmethod
    def of(cls, inputs: Spread, actions: Spread | None, counts: np.ndarray | None, levels: Levels = ()) -> Self:
        """From what is known of inputs and of continuous actions, or from how many rows have each label.

        `levels` are the columns of each category: the most frequent level is left out, whichever has no column, so that
        the names of levels do not matter.
        """
        recoded, shares = [], inputs.mean.copy()
        for inside in levels:
            column, rest = inside[int(np.argmax(shares[list(inside)]))], 1 - shares[list(inside)].sum()
            if shares[column] > rest:
                recoded.append((column, tuple(inside)))
                shares[column] = rest
        if recoded:
            deviation = inputs.deviation.copy()
            for column, _ in recoded:
                deviation[column] = np.sqrt(shares[column] * (1 - shares[column]))
            inputs = Spread(shares, deviation, inputs.size)
        if counts is not None:
            frequent = [label for label in np.argsort(-counts, kind="stable")[1 : 1 + MOST_LABELS] if counts[label]]
            kept = np.array(sorted(frequent), dtype=np.intp)
            mean = counts[kept] / counts.sum()
            deviation = np.sqrt(mean * (1 - mean))
        else:
            assert actions is not None
            kept = np.flatnonzero(actions.varies)
            mean, deviation = actions.mean[kept], actions.deviation[kept]
        if not len(kept):
            raise InputError(
                "the agent takes one and the same action in every row: nothing can be said about what it uses."
            )
        scale = np.where(inputs.varies, inputs.deviation, np.inf)
        num_labels = None if counts is None else len(counts)
        return cls(inputs.mean, scale, kept, mean, deviation, num_labels, tuple(recoded))

    def inputs(self, features: np.ndarray) -> np.ndarray:
        """[n, q]."""
        moved = features - self.shift
        for column, inside in self.recoded:
            moved[:, column] = 1 - features[:, inside].sum(axis=1) - self.shift[column]
        moved /= self.scale
        return moved

    def actions(self, actions: np.ndarray) -> np.ndarray:
        """[n, k] from codes of labels [n] or numbers [n, …]."""
        columns = actions[:, None] == self.kept if self.num_labels is not None else actions[:, self.kept]
        return (columns - self.action_shift) / self.action_scale

    def block(self, block: RowBlock) -> RowBlock:
        """The same rows, standardised."""
        inputs, actions = self.inputs(block.features), self.actions(block.actions)
        return RowBlock(inputs, actions, block.weights, block.start, block.owners)


# -- What the test reads: checked inputs and actions in the order of time, standardised, with their episodes and subjects.


@dataclass(frozen=True)
class LeanRows:
    """Rows sorted by subject, then episode, each in the order given.

    `inputs` [n, q] and `actions` [n, k] are standardised. Rows of one episode or subject are neighbours.
    """

    inputs: np.ndarray
    actions: np.ndarray
    episode: np.ndarray
    subject: np.ndarray | None
    constant: np.ndarray
    two_valued: np.ndarray
    num_labels: int | None
    has_episodes: bool
    label_spread: np.ndarray
    """What one unit of each column of `actions` is in the action's own units [k]."""
    earlier: np.ndarray
    """When each input was read [q], 0 for now; products are of inputs of one time."""
    standard: Standard
    """How they were standardised."""

    @property
    def num(self) -> int:
        """The number of rows."""
        return len(self.inputs)

    def before(self, lag: int, used: np.ndarray) -> np.ndarray:
        """What the inputs of some rows [n'] were so many rows earlier in the episode, or in its first row [n', q]."""
        starts = np.flatnonzero(np.append(True, self.episode[1:] != self.episode[:-1]))
        first = starts[np.searchsorted(starts, used, side="right") - 1]
        return self.inputs[np.maximum(used - lag, first)]

    def with_further(self, columns: Sequence[np.ndarray], earlier: np.ndarray) -> "LeanRows":
        """The same rows with further inputs [n, …], which are standardised already; `earlier` says when each was read."""
        more = np.hstack(columns)
        low, high = more.min(axis=0), more.max(axis=0)
        two_valued = ((more == low) | (more == high)).all(axis=0)
        return replace(
            self,
            inputs=np.hstack([self.inputs, more]),
            constant=np.concatenate([self.constant, low == high]),
            two_valued=np.concatenate([self.two_valued, two_valued]),
            earlier=np.concatenate([self.earlier, earlier]),
        )


def checked_rows(
    features: np.ndarray,
    actions: np.ndarray,
    num_labels: int | None = None,
    episodes: np.ndarray | None = None,
    subjects: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    standard: Standard | None = None,
    levels: Levels = (),
) -> LeanRows:
    """Check everything that was handed in, sort it and standardise it: by its own means and spreads unless told.

    `levels` are the columns of each category.
    """
    features = np.asarray(features, dtype=np.float64)
    if features.ndim != 2:
        raise InputError(f"features must be a table [rows, inputs], and have {features.ndim} dimensions: reshape them.")
    num, width = features.shape
    if weights is not None and not np.all(np.asarray(weights) == 1):
        raise InputError(
            "the lean test takes rows one by one and cannot weigh them, and weights other than 1 were given: repeat rows "
            "that stand for several, or use --test wilks."
        )
    if width == 0 or num < fewest_rows(width):
        raise InputError(
            f"the lean test needs at least 20 rows and two rows an input, and found {num} rows of {width} inputs: "
            "record more rows or name fewer inputs."
        )
    if not np.isfinite(features).all():
        raise InputError("features must be finite numbers, and some are missing or infinite: drop those rows first.")
    order = _order(num, episodes, subjects)
    columns = _checked_actions(np.asarray(actions), num, num_labels)
    if standard is None and num_labels is not None:  # in the order of their first rows, so that names break no ties
        _, first, columns = np.unique(columns, return_index=True, return_inverse=True)
        columns = np.argsort(np.argsort(first))[columns]
    if standard is None:
        counts = None if num_labels is None else np.bincount(columns, minlength=num_labels)
        standard = Standard.of(Spread.of(features), Spread.of(columns) if counts is None else None, counts, levels)
    inputs, numbers = standard.inputs(features), standard.actions(columns)
    del features
    if order is not None:
        inputs, numbers = inputs[order], numbers[order]
    low, high = inputs.min(axis=0), inputs.max(axis=0)
    two_valued = np.array([bool(np.all((c == a) | (c == b))) for c, a, b in zip(inputs.T, low, high, strict=True)])
    return LeanRows(
        inputs=inputs,
        actions=numbers,
        episode=np.zeros(num, dtype=np.intp) if episodes is None else _runs(np.asarray(episodes), order),
        subject=None if subjects is None else _runs(np.asarray(subjects), order),
        constant=low == high,
        two_valued=two_valued,
        num_labels=num_labels,
        has_episodes=episodes is not None,
        label_spread=standard.action_scale,
        earlier=np.zeros(width, dtype=np.intp),
        standard=standard,
    )


def fewest_rows(num_inputs: int) -> int:
    """Rows below which the test refuses."""
    return max(20, 2 * (num_inputs + 2))


def sample_of_episodes(episodes: np.ndarray | None, num: int, most: int) -> np.ndarray:
    """About `most` of the `num` rows: whole episodes, evenly spaced; the first rows where there are few episodes or none."""
    if num <= most:
        return np.arange(num)
    every = -(-num // most)
    rows = np.flatnonzero(episodes % every == 0) if episodes is not None and episodes.max() >= 9 else np.arange(most)
    return rows if len(rows) else np.arange(most)


def _order(num: int, episodes: np.ndarray | None, subjects: np.ndarray | None) -> np.ndarray | None:
    """The rows by subject, then by episode; None where they already are."""
    keys = []
    for name, codes in (("episodes", episodes), ("subjects", subjects)):
        if codes is None:
            continue
        if np.shape(codes) != (num,):
            raise InputError(f"{name} must be one code a row ({num}), and have shape {np.shape(codes)}: give one each.")
        keys.append(np.asarray(codes))
    order = np.lexsort(tuple(keys)) if keys else None
    return None if order is None or np.array_equal(order, np.arange(num)) else order


def _runs(codes: np.ndarray, order: np.ndarray | None) -> np.ndarray:
    """0, 1, 2, … for the runs of equal codes."""
    codes = codes if order is None else codes[order]
    return np.concatenate([[0], np.cumsum(codes[1:] != codes[:-1])]).astype(np.intp)


def _checked_actions(actions: np.ndarray, num: int, num_labels: int | None) -> np.ndarray:
    """Numbers [n, k], or codes of labels [n]."""
    if len(actions) != num:
        raise InputError(f"there must be one action a row, and there are {len(actions)} for {num} rows.")
    if num_labels is None:
        columns = np.asarray(actions, dtype=np.float64).reshape(num, -1)
        if not np.isfinite(columns).all():
            raise InputError("actions must be finite numbers, and some are missing or infinite: drop those rows first.")
        return columns
    labels = actions.reshape(-1)
    if labels.size != len(actions) or not np.issubdtype(labels.dtype, np.integer):
        raise InputError(
            f"discrete actions must be one whole-number code a row, and are {actions.dtype} of shape {actions.shape}."
        )
    if labels.min() < 0 or labels.max() >= num_labels:
        raise InputError(
            f"action codes must be 0 to {num_labels - 1}, and range from {labels.min()} to {labels.max()}."
        )
    return labels


# -- Functions of the inputs: one table of columns serves every support, as each column knows the inputs it depends on.

CLIP = 4.0
"""Inputs are clipped at so many standard deviations before anything but the linear terms is computed."""
HEAVY, FAR = 2.0, 8.0
"""An input has heavy tails if its deviation is so many times that of its middle half, and some rows lie so far out."""
NUM_QUANTILES = 101
"""Points at which the scale of such an input is known."""
MOST_SORTED = 20_000
"""Rows whose quantiles are taken."""


@dataclass(frozen=True, eq=False)
class InputTransform:
    """Inputs as curves and products see them: clipped, those with heavy tails at the normal quantile of their rank.

    A few rows far out make the deviation so large that all others would lie in one bump.
    """

    quantiles: Mapping[int, tuple[np.ndarray, np.ndarray]]
    """By input: points of it, and where each lies on the new scale."""

    @classmethod
    def of(cls, rows: LeanRows) -> "InputTransform":
        """By the rows at hand."""
        z = rows.inputs[:: max(1, rows.num // MOST_SORTED)]
        shares = (np.arange(NUM_QUANTILES) + 0.5) / NUM_QUANTILES
        found = {}
        for i in np.flatnonzero(~(rows.constant | rows.two_valued) & (np.abs(rows.inputs).max(axis=0) > FAR)):
            low, high = np.quantile(z[:, i], [0.25, 0.75])
            if 0 < HEAVY * (high - low) < 2 * ndtri(0.75):
                points, first = np.unique(np.quantile(z[:, i], shares), return_index=True)
                last = np.append(first[1:], NUM_QUANTILES) - 1
                found[int(i)] = points, ndtri((shares[first] + shares[last]) / 2)
        return cls(found)

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """[n, q], a copy."""
        seen = np.clip(z, -CLIP, CLIP)
        for i, (points, places) in self.quantiles.items():
            seen[:, i] = np.interp(z[:, i], points, places)
        return seen


@dataclass(frozen=True, eq=False)
class BasisColumns(ABC):
    """Columns of one kind: z → fn(z), `depends` [q, p] says which inputs each reads."""

    name: str
    depends: np.ndarray

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.depends.shape[1]

    by_column: ClassVar[tuple[str, ...]] = ()
    """Fields whose last axis is the columns."""

    def only(self, mask: np.ndarray) -> Self:
        """Some of the columns."""
        fields = {name: getattr(self, name)[..., mask] for name in ("depends", *self.by_column)}
        return replace(self, **fields)

    @abstractmethod
    def columns(self, z: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """[n, p] from standardised inputs [n, q], and from these as curves see them."""


@dataclass(frozen=True, eq=False)
class Linear(BasisColumns):
    """A constant and the inputs themselves."""

    by_column = ("source",)
    source: np.ndarray
    """Which of them each column is: 0 the constant, then the inputs."""

    @classmethod
    def of(cls, num_inputs: int) -> "Linear":
        """For so many inputs."""
        depends = np.hstack([np.zeros((num_inputs, 1), bool), np.eye(num_inputs, dtype=bool)])
        return cls("linear", depends, np.arange(num_inputs + 1))

    def columns(self, z: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """The constant, then z."""
        return np.hstack([np.ones((len(z), 1)), z])[:, self.source]


@dataclass(frozen=True, eq=False)
class Bumps(BasisColumns):
    """Gaussian bumps of one input each, at its quantiles."""

    by_column = ("source", "centre", "width_of")
    source: np.ndarray
    centre: np.ndarray
    width_of: np.ndarray

    @classmethod
    def of(cls, rows: LeanRows, num_knots: int, inputs: np.ndarray, scale: InputTransform) -> "Bumps":
        """`num_knots` bumps for each of some inputs."""
        z, curved = scale(rows.inputs[:: max(1, rows.num // MOST_SORTED)]), np.flatnonzero(inputs)
        knots = np.quantile(z[:, curved], np.linspace(0.02, 0.98, num_knots), axis=0)
        gaps = np.maximum(np.gradient(knots, axis=0), 0.2) if num_knots > 1 else np.ones_like(knots)
        source = np.repeat(curved, num_knots)
        depends = np.zeros((rows.inputs.shape[1], len(source)), bool)
        depends[source, np.arange(len(source))] = True
        return cls("bumps", depends, source, knots.T.ravel(), 1.2 * gaps.T.ravel())

    def columns(self, z: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """One bump a column."""
        bumps = seen[:, self.source]
        bumps -= self.centre
        bumps /= self.width_of
        bumps *= bumps
        bumps *= -0.5
        return np.exp(bumps, out=bumps)


@dataclass(frozen=True, eq=False)
class Products(BasisColumns):
    """Powers of one input, or products of two."""

    by_column = ("factors",)
    factors: np.ndarray  # [2 or 3, p]

    @classmethod
    def pairs(cls, rows: LeanRows, alone: np.ndarray) -> "Products":
        """All products of two inputs of one time that are not both `alone`, and not sums of the two, as of two levels."""
        left_out = (alone[:, None] & alone) | _sums(rows) | (rows.earlier[:, None] != rows.earlier)
        kept = [(a, b) for a, b in combinations(np.flatnonzero(~rows.constant), 2) if not left_out[a, b]]
        return cls._from("pairs", rows, np.array(kept, dtype=np.intp).reshape(-1, 2))

    @classmethod
    def powers(cls, rows: LeanRows, degree: int, inputs: np.ndarray) -> "Products":
        """One power of each of some inputs."""
        return cls._from(f"powers of {degree}", rows, np.repeat(np.flatnonzero(inputs)[:, None], degree, axis=1))

    @classmethod
    def _from(cls, name: str, rows: LeanRows, factors: np.ndarray) -> "Products":
        depends = np.zeros((rows.inputs.shape[1], len(factors)), bool)
        for position in range(factors.shape[1]):
            depends[factors[:, position], np.arange(len(factors))] = True
        return cls(name, depends, factors.T)

    def columns(self, z: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """One product a column."""
        first, *others = self.factors
        out = seen[:, first]
        for other in others:
            out *= seen[:, other]
        return out


@dataclass(frozen=True, eq=False)
class Waves(BasisColumns):
    """Cosines of random directions, each within two or three inputs, so that most survive leaving one input out."""

    by_column = ("slopes", "phases")
    slopes: np.ndarray
    phases: np.ndarray

    @classmethod
    def of(cls, rows: LeanRows, num_waves: int, seed: int, inputs: np.ndarray, still: np.ndarray) -> "Waves":
        """`num_waves` random cosines of some inputs, each with one at least that does not stay `still` in an episode."""
        rng = np.random.default_rng([seed, num_waves])
        usable, moving = np.flatnonzero(inputs), np.flatnonzero(inputs & ~still)
        slopes = np.zeros((rows.inputs.shape[1], num_waves))
        for wave in range(num_waves):
            chosen = rng.permutation(usable)[: min(2 + wave % 2, len(usable))]
            if still[chosen].all():
                chosen[0] = rng.choice(moving)
            slopes[chosen, wave] = rng.choice([0.7, 1.3, 2.2]) * rng.standard_normal(len(chosen)) / np.sqrt(len(chosen))
        return cls("waves", slopes != 0, slopes, rng.uniform(0, 2 * np.pi, num_waves))

    def columns(self, z: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """One cosine a column."""
        angle = seen @ self.slopes
        angle += self.phases
        return np.cos(angle, out=angle)


def _sums(rows: LeanRows) -> np.ndarray:
    """Which products of two inputs are a sum of both and a constant [q, q]: of two values each, but not all four pairs."""
    high = ((rows.inputs > 0) & rows.two_valued).astype(np.float64)
    low = rows.two_valued - high
    fewest = np.minimum.reduce([high.T @ high, high.T @ low, low.T @ high, low.T @ low])
    return np.asarray((fewest == 0) & rows.two_valued & rows.two_valued[:, None])


@dataclass(frozen=True, eq=False)
class Basis:
    """The columns of several blocks side by side; the first is the constant, then come the inputs themselves."""

    blocks: tuple[BasisColumns, ...]
    scale: InputTransform

    @property
    def depends(self) -> np.ndarray:
        """Which inputs each column reads [q, P]."""
        return np.hstack([block.depends for block in self.blocks])

    @property
    def width(self) -> int:
        """The number of columns."""
        return sum(block.width for block in self.blocks)

    def columns(self, z: np.ndarray) -> np.ndarray:
        """The table [n, P]."""
        seen, table, start = self.scale(z), np.empty((len(z), self.width)), 0
        for block in self.blocks:
            table[:, start : start + block.width] = block.columns(z, seen)
            start += block.width
        return table

    def only(self, mask: np.ndarray) -> "Basis":
        """Some of the columns."""
        ends = np.cumsum([block.width for block in self.blocks])
        parts = np.split(mask, ends[:-1])
        return Basis(tuple(block.only(part) for block, part in zip(self.blocks, parts, strict=True)), self.scale)

    def within(self, inputs: Sequence[int]) -> np.ndarray:
        """The columns that read nothing but these inputs, as a mask [P]."""
        outside = np.ones(self.depends.shape[0], bool)
        outside[list(inputs)] = False
        return np.logical_not(np.any(self.depends[outside], axis=0, keepdims=True))[0]
