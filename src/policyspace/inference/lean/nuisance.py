"""How flexible the regressions are: as flexible as the rows allow, or as cross-validation finds where rows are few.

A score is wrong by the product of what the two regressions miss. What held-out rows cannot show of a misfit is as large as
the noise of the columns that would mend it, and the product of two such misfits may exceed the noise of the score. So where
rows can feed curves and products of all inputs, no simpler family is taken because it predicts as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from policyspace.inference.lean.bases import Basis, Block, Bumps, Linear, Products, Waves
from policyspace.inference.lean.moments import Projector, moments
from policyspace.inference.lean.rows import Rows

NUM_FOLDS = 5
MOST_COLUMNS = 480
"""The widest table (wider only for very many inputs); the cost of a pass over the rows grows with its square."""

FINE = "fine curves and products"
"""The least that rows must be able to feed for the richest family to be taken."""

MOST_ROWS = 60_000
"""Families are compared on so many rows at most."""

ROWS_FOR_INPUTS = 60
"""Rows a column that a family needs to be chosen for the sake of the inputs."""

MOST_SAMPLED = 6
MANY_MORE = 4
"""Times as many rows tested as compared: from there on, ties between families go to the richer."""

TIE_OF_INPUTS = 0.005
"""A richer family must lower the held-out error of inputs by more than this share of it, that of actions by one row's."""


@dataclass(frozen=True)
class Choice:
    """The family that was chosen."""

    name: str
    basis: Basis
    limited: bool
    """Whether some family was no candidate because rows are few against inputs."""
    reason: str
    """Why this one."""


@dataclass(frozen=True)
class HeldOut:
    """The candidates' errors on rows that they were not fitted to (1: no better than the mean)."""

    of_actions: dict[str, float]
    """In predicting the actions from all inputs."""
    of_inputs: dict[str, float]
    """In predicting inputs from the others."""
    num_compared: int
    """Rows that were used."""


class Candidates:
    """Families from simple to rich that these rows can feed; they are compared only where somebody asks."""

    def __init__(self, rows: Rows, groups: Sequence[tuple[int, ...]], seed: int) -> None:
        self._rows, self._groups, self._seed = rows, groups, seed
        self.families, self._limited = _candidates(rows, seed)

    def chosen(self, num_tested: int = 0) -> Choice:
        """The richest family if rows feed fine curves and products; else the richer of the best for actions and for inputs.

        There ties go to the simpler; to the richer where the rows are a sample of many more that are tested (`num_tested`):
        more rows show smaller misfits, and pay for more columns.
        """
        if FINE in self.families:
            return self._choice(list(self.families)[-1], "the richest that so many rows can feed")
        found = self.held_out
        if num_tested > MANY_MORE * found.num_compared:
            widths = {name: _width(family) for name, family in self.families.items()}
            best = [_richest(errors, widths, found.num_compared) for errors in (found.of_actions, found.of_inputs)]
        else:
            best = [_simplest(found.of_actions, 1 / self._rows.num), _simplest(found.of_inputs, TIE_OF_INPUTS)]
        return self._choice(max(best, key=list(self.families).index), "chosen by cross-validation")

    def _choice(self, name: str, reason: str) -> Choice:
        return Choice(name, Basis(self.families[name]), self._limited, reason)

    @cached_property
    def held_out(self) -> HeldOut:
        """Five-fold cross-validation over episodes (blocks of rows where there are few).

        Actions are predicted from all inputs, and a sample of the groups from the others, as a score is wrong only by the
        product of what both regressions miss.
        """
        rows = self._rows
        blocks = list(dict.fromkeys(block for family in self.families.values() for block in family))
        basis = Basis(tuple(blocks))
        fold = _folds(rows, self._seed)
        sums = moments(basis, rows, fold, NUM_FOLDS)
        starts = np.cumsum([0] + [block.width for block in blocks])
        width = basis.width
        acts = np.arange(width, width + rows.actions.shape[1])
        for_actions: dict[str, float] = {}
        for_inputs: dict[str, float] = {}
        sampled = _sampled(rows, self._groups)
        for name, family in self.families.items():
            mask = np.zeros(width, bool)
            for block, start in zip(blocks, starts, strict=False):
                mask[start : start + block.width] = block in family
            for_actions[name] = _held_out_error(sums, mask, acts)
            if mask.sum() <= rows.num / ROWS_FOR_INPUTS or not for_inputs:
                others = [mask & ~basis.depends[list(group)].any(axis=0) for group in sampled]
                found = [_held_out_error(sums, m, 1 + np.array(g)) for m, g in zip(others, sampled, strict=True)]
                for_inputs[name] = float(np.mean(found)) if found else 1.0
        return HeldOut(for_actions, for_inputs, int((fold >= 0).sum()))


def _simplest(errors: dict[str, float], tie: float) -> str:
    """The first family that is as good as the best, up to a tie."""
    best = max(min(errors.values()), 1e-9)
    return next(name for name, error in errors.items() if error <= best * (1 + tie))


def _richest(errors: dict[str, float], widths: dict[str, int], num_rows: int) -> str:
    """The last family whose misfit is that of the best, as far as so many rows can tell.

    p columns fitted to n rows raise the held-out error by the factor 1 + p/n, give or take √(2p)/n.
    """
    fitted = num_rows * (NUM_FOLDS - 1) / NUM_FOLDS
    misfit = {name: error / (1 + widths[name] / fitted) for name, error in errors.items()}
    best = max(min(misfit.values()), 1e-9)
    return [n for n, error in misfit.items() if error <= best * (1 + 3 * np.sqrt(2 * widths[n]) / num_rows)][-1]


def _sampled(rows: Rows, groups: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """A few groups of inputs that vary, evenly spaced."""
    usable = [group for group in groups if len(groups) > 1 and not rows.constant[list(group)].any()]
    picked = np.unique(np.linspace(0, len(usable) - 1, min(len(usable), MOST_SAMPLED)).astype(np.intp))
    return [usable[position] for position in picked]


class _Offers:
    """Families from simple to rich, those that rows can feed."""

    def __init__(self, rows: Rows) -> None:
        self._num_rows, num_inputs = rows.inputs.shape
        self.most_columns = max(MOST_COLUMNS, 4 * num_inputs)
        unit = rows.episode if rows.subject is None else rows.subject
        self._num_units = int(unit[-1]) + 1
        same = unit[1:] == unit[:-1]
        self._varies = ((rows.inputs[1:] != rows.inputs[:-1]) & same[:, None]).any(axis=0)
        self._still = ~self._varies & ~rows.constant
        self.families: dict[str, tuple[Block, ...]] = {}

    def offer(self, name: str, rows_a_column: float, *kinds: tuple[Block, ...]) -> bool:
        """Take a family up if it has columns of every kind, enough rows a column, and is not too wide.

        Of columns that stay the same within an episode (or subject), only other episodes tell one from another.
        """
        family = tuple(block for kind in kinds for block in kind if block.width)
        read = [(block.depends[self._still].any(axis=0), block.depends[self._varies].any(axis=0)) for block in family]
        still = sum(int((slow & ~fast).sum()) for slow, fast in read)
        fits = all(map(_width, kinds)) and _width(family) <= min(self.most_columns, self._num_rows / rows_a_column)
        fits = fits and (not still or still <= self._num_units / rows_a_column)
        if fits:
            self.families[name] = family
        return fits


def _width(kind: tuple[Block, ...]) -> int:
    return sum(block.width for block in kind)


def _candidates(rows: Rows, seed: int) -> tuple[dict[str, tuple[Block, ...]], bool]:
    """At least 8 rows a column (6 for cubes); curves get finer and waves more numerous as rows grow.

    Families share their blocks, so that no column is expanded twice.
    """
    num, width = rows.inputs.shape
    offers = _Offers(rows)
    linear = (Linear.of(width),)
    offers.families["linear"] = linear
    rich: tuple[tuple[Block, ...], ...] = (linear,)
    powers = (Products.powers(rows, 2), Products.powers(rows, 3))
    curves = (*powers, Bumps.of(rows, 3 if 6 * width < MOST_COLUMNS else 0))
    if offers.offer("additive curves", 8, linear, curves):
        rich = (linear, curves)
    num_pairs = width * (width + 3) // 2
    if num_pairs <= MOST_COLUMNS:
        pairs = (Products.of(rows, 2, squares=False),)
        squares = (powers[0], *pairs)
        offers.offer("quadratic", 8, linear, squares)
        if offers.offer("curves and products", 8, linear, curves, pairs):
            rich = (linear, curves, pairs)
    if (width + 1) * (width + 2) * (width + 3) // 6 <= MOST_COLUMNS:
        offers.offer("cubic", 6, linear, squares, (Products.of(rows, 3, squares=True),))
    finer = (*powers, Bumps.of(rows, int(np.clip(round(1.6 * num**0.25), 5, 16))))
    if len(rich) > 1 and offers.offer(FINE if len(rich) > 2 else "fine curves", 8, linear, finer, *rich[2:]):
        rich = (linear, finer, *rich[2:])
    for share in (1.5, 3.0):
        waves = min(int(share * np.sqrt(num)), MOST_COLUMNS - sum(map(_width, rich)))
        if waves >= 10 and width > 1 and len(rich) > 1:
            offers.offer(f"curves, products and {waves} waves", 8, *rich, (Waves.of(rows, waves, seed, "waves"),))
    return offers.families, max(num_pairs + 1, 1 + width + _width(curves)) > num / 8


def _held_out_error(sums: np.ndarray, mask: np.ndarray, targets: np.ndarray) -> float:
    """Squared error of predicting one fold's targets from the others, as a share of their variance.

    `sums` of products a fold, `mask` [P] the columns to regress on, `targets` the positions of what is predicted.
    """
    own = np.flatnonzero(mask)
    inner, cross = sums[:, own[:, None], own], sums[:, own[:, None], targets]
    all_inner, all_cross = inner.sum(axis=0), cross.sum(axis=0)
    squares = float(sums[:, targets, targets].sum())
    error = squares
    for held, held_cross in zip(inner, cross, strict=True):
        slopes = Projector(all_inner - held, np.ones(len(own), bool)).coefficients(all_cross - held_cross)
        error += float(np.sum(slopes * (held @ slopes - 2 * held_cross)))
    return error / squares


def _folds(rows: Rows, seed: int) -> np.ndarray:
    """The fold of each row; −1 for rows beyond those that are compared."""
    unit = rows.episode if rows.subject is None else rows.subject
    if unit[-1] + 1 < 2 * NUM_FOLDS:
        unit = np.arange(rows.num) // int(np.clip(rows.num // 50, 1, 200))
    num_units = int(unit[-1]) + 1
    rng = np.random.default_rng([seed, 5])
    of_unit = rng.permutation(num_units) % NUM_FOLDS
    share = MOST_ROWS / rows.num
    if share < 1:
        of_unit[rng.permutation(num_units)[max(2 * NUM_FOLDS, int(share * num_units)) :]] = -1
    return of_unit[unit]
