"""How flexible the regressions are: the family of functions that predicts actions best in episodes it has not seen."""

from dataclasses import dataclass

import numpy as np

from policyspace.inference.lean.bases import Basis, Block, Bumps, Linear, Products, Waves
from policyspace.inference.lean.moments import Projector, moments
from policyspace.inference.lean.rows import Rows

NUM_FOLDS = 5
MOST_COLUMNS = 480
"""The widest table (wider only for very many inputs); the cost of a pass over the rows grows with its square."""

MOST_ROWS = 60_000
"""Families are compared on so many rows at most."""

TIE = 1.0
"""A richer family must lower the held-out error by more than this share of it, divided by the number of rows."""


@dataclass(frozen=True)
class Choice:
    """The family that was chosen, and every candidate's held-out error (1: no better than the mean action)."""

    name: str
    basis: Basis
    errors: dict[str, float]
    limited: bool
    """Whether some family was no candidate because rows are few against inputs."""

    def sentence(self) -> str:
        """What was chosen and why."""
        shown = ", ".join(f"{name} {error:.4f}" for name, error in self.errors.items())
        said = f"regressions are {self.name} ({self.basis.width} columns); held-out error: {shown}"
        return said + ("; few rows against inputs: the regressions stay simple" if self.limited else "")


def choose_family(rows: Rows, seed: int) -> Choice:
    """Five-fold cross-validation over episodes (blocks of rows where there are fewer than five); ties to the simpler."""
    families, limited = _candidates(rows, seed)
    blocks = list(dict.fromkeys(block for family in families.values() for block in family))
    basis = Basis(tuple(blocks))
    fold = _folds(rows, seed)
    sums = moments(basis, rows, fold, NUM_FOLDS)
    starts = np.cumsum([0] + [block.width for block in blocks])
    errors: dict[str, float] = {}
    for name, family in families.items():
        mask = np.zeros(basis.width, bool)
        for block, start in zip(blocks, starts, strict=False):
            mask[start : start + block.width] = block in family
        errors[name] = _held_out_error(sums, mask)
    best = max(min(errors.values()), 1e-9)
    chosen = next(name for name, error in errors.items() if error <= best * (1 + TIE / rows.num))
    return Choice(chosen, Basis(families[chosen]), errors, limited)


class _Offers:
    """Families from simple to rich, those that rows can feed."""

    def __init__(self, num_rows: int, num_inputs: int) -> None:
        self._num_rows = num_rows
        self.most_columns = max(MOST_COLUMNS, 4 * num_inputs)
        self.families: dict[str, tuple[Block, ...]] = {}

    def offer(self, name: str, rows_a_column: float, *family: Block) -> bool:
        """Take a family up if it has enough rows a column and is not too wide."""
        columns = sum(block.width for block in family)
        fits = all(block.width for block in family) and columns <= min(
            self.most_columns, self._num_rows / rows_a_column
        )
        if fits:
            self.families[name] = family
        return fits


def _candidates(rows: Rows, seed: int) -> tuple[dict[str, tuple[Block, ...]], bool]:
    """At least 8 rows a column (6 for cubes); curves get finer and waves more numerous as rows grow."""
    num, width = rows.inputs.shape
    offers = _Offers(num, width)
    linear = Linear.of(width)
    offers.families["linear"] = (linear,)
    rich: tuple[Block, ...] = (linear,)
    curves = Bumps.of(rows, 3 if 6 * width < MOST_COLUMNS else 0)
    if offers.offer("additive curves", 8, linear, curves):
        rich = (linear, curves)
    num_pairs = width * (width + 3) // 2
    if num_pairs <= MOST_COLUMNS:
        squares, pairs = Products.of(rows, 2, squares=True), Products.of(rows, 2, squares=False)
        offers.offer("quadratic", 8, linear, squares)
        if offers.offer("curves and products", 8, linear, curves, pairs):
            rich = (linear, curves, pairs)
    if (width + 1) * (width + 2) * (width + 3) // 6 <= MOST_COLUMNS:
        offers.offer("cubic", 6, linear, squares, Products.of(rows, 3, squares=True))
    finer = Bumps.of(rows, int(np.clip(round(1.6 * num**0.25), 5, 16)))
    if len(rich) > 1 and offers.offer("fine curves" + " and products" * (len(rich) > 2), 8, linear, finer, *rich[2:]):
        rich = (linear, finer, *rich[2:])
    for share in (1.5, 3.0):
        waves = min(int(share * np.sqrt(num)), MOST_COLUMNS - sum(block.width for block in rich))
        if waves >= 10 and width > 1 and len(rich) > 1:
            offers.offer(f"curves, products and {waves} waves", 8, *rich, Waves.of(rows, waves, seed, "waves"))
    return offers.families, max(num_pairs + 1, 1 + width + curves.width) > num / 8


def _held_out_error(sums: np.ndarray, mask: np.ndarray) -> float:
    """Squared error of predicting one fold from the others, as a share of the actions' variance."""
    width = len(mask)
    total = sums.sum(axis=0)
    error = 0.0
    for held in sums:
        rest = total - held
        slopes = Projector(rest[:width, :width], mask).coefficients(rest[:width, width:])
        cross, own = held[:width, width:], held[width:, width:]
        error += float(np.trace(own) - 2 * np.sum(slopes * cross) + np.sum(slopes * (held[:width, :width] @ slopes)))
    return error / float(np.trace(total[width:, width:]))


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
