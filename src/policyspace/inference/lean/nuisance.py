"""How flexible the regressions are: as flexible as the rows allow.

A score is wrong by the product of what the two regressions miss. What held-out rows cannot show of a misfit is as large as
the noise of the columns that would mend it, and the product of two such misfits may exceed the noise of the score. So no
simpler family is taken because it predicts as well, and where rows cannot feed products of all inputs nothing is promised.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policyspace.inference.lean.bases import Basis, Block, Bumps, Linear, Products, Scale, Waves
from policyspace.inference.lean.rows import Rows

ROWS_A_COLUMN = 8
"""Rows that must be there for every column of a family."""
UNITS_A_COLUMN = 2
"""Episodes (or subjects) that must be there for every column that stays the same in one."""
MOST_COLUMNS = 480
"""How wide curves and waves may make a table; the cost of a pass over the rows grows with its square."""
WIDEST = 1200
"""How wide products may make it, or very many inputs."""
FEWEST_KNOTS = 5
"""Of fine curves."""


@dataclass(frozen=True)
class Choice:
    """The family that is used, and why nothing can be promised by it, if so."""

    name: str
    basis: Basis
    too_simple: str | None


def richest_family(rows: Rows, seed: int) -> Choice:
    """The richest family that the rows can feed."""
    families = families_of(rows, seed)
    name, family = list(families.items())[-1]
    basis = Basis(family, Scale.of(rows))
    width, still = int((~rows.constant).sum()), _still_in_few(rows)
    if width < 2:
        return Choice(name, basis, None)
    num_units, (num_curved, num_still) = _num_units(rows), _counts(rows, still)
    needed, pairs = units_needed(num_curved, num_still, num_units), Products.pairs(rows, np.zeros_like(rows.constant))
    if needed <= num_units and (not pairs.width or any(block.name == "pairs" for block in family)):
        return Choice(name, basis, None)
    squares = int((~(rows.constant | rows.two_valued)).sum())
    columns = 1 + width + squares + pairs.width + num_curved * _knots(num_units)
    if columns > WIDEST:
        why = f"{width} inputs are too many for regressions with products of all of them, {_most_inputs()} at most"
    elif rows.num < ROWS_A_COLUMN * columns:
        why = (
            f"{rows.num} rows are too few for regressions with products of all {width} inputs, which need "
            f"{ROWS_A_COLUMN * columns}"
        )
    else:
        what = "episodes" if rows.subject is None else "subjects"
        why = (
            f"{num_units} {what} are too few for regressions with curves and products of inputs that stay the same within "
            f"one, which need {needed}"
        )
    return Choice(name, basis, f"{why}; simpler ones may take what they miss for use")


def rows_needed(sizes: Sequence[int], num_curved: int = 0, num_units: int = 0) -> int:
    """Rows below which nothing is promised: those that products of all inputs take.

    An input has one column, a category one for each of its levels but one, which have no squares and no products. Some
    inputs stay the same within each of so many episodes, and have their curves in any case.
    """
    total = sum(sizes)
    products = (total**2 - sum(size**2 for size in sizes)) // 2
    squares = sum(size == 1 for size in sizes)
    return ROWS_A_COLUMN * (1 + total + squares + products + num_curved * _knots(num_units))


def units_needed(num_curved: int, num_still: int, num_units: int) -> int:
    """Of so many episodes (or subjects), those below which nothing is promised: for inputs that stay the same in one.

    Some of these inputs are curved, the others have two values; one of two values has neither curves nor products.
    """
    return UNITS_A_COLUMN * _columns_between(num_curved, num_still, num_units) if num_curved or num_still > 1 else 0


def families_of(rows: Rows, seed: int) -> dict[str, tuple[Block, ...]]:
    """Families that the rows can feed, from simple to rich; they share their blocks, so that no column is made twice.

    Curves get finer and waves more numerous as rows grow, curves of inputs that stay the same within an episode (or
    subject) as episodes do. Such inputs have their curves in every family with products: many rows of each episode leave
    so little noise that nothing simpler would do. Where episodes are too few even for these, they are linear.
    """
    width = rows.inputs.shape[1]
    linear = Linear.of(width)
    families: dict[str, tuple[Block, ...]] = {"linear": (linear,)}
    most = min(max(WIDEST, 4 * width), rows.num / ROWS_A_COLUMN)

    def offer(name: str, *blocks: Block) -> None:
        family = tuple(block for block in blocks if block.width)
        if _width(family) <= most and family not in families.values():
            families[name] = family

    still, scale, num_units = _still_in_few(rows), Scale.of(rows), _num_units(rows)
    alone = still & (units_needed(*_counts(rows, still), num_units) > num_units)
    curved = ~(rows.constant | rows.two_valued | alone)
    powers = (Products.powers(rows, 2, curved), Products.powers(rows, 3, curved))
    between = Bumps.of(rows, _knots(num_units), curved & still, scale)
    coarse = Bumps.of(rows, 3 if 6 * width < MOST_COLUMNS else 0, curved & ~still, scale)
    offer("additive curves", linear, *powers, coarse, between)
    if width * (width + 3) // 2 < WIDEST:
        pairs = Products.pairs(rows, alone)
        offer("quadratic", linear, powers[0], between, pairs)
        offer("curves and products", linear, *powers, coarse, between, pairs)
        spare = (MOST_COLUMNS - _width((linear, *powers, between, pairs))) // max(int((curved & ~still).sum()), 1)
        knots = max(min(_knots(rows.num), spare), FEWEST_KNOTS)
        fine = Bumps.of(rows, knots, curved & ~still, scale)
        offer("fine curves and products", linear, *powers, fine, between, pairs)
    rich, mixed = list(families.values())[-1], ~(rows.constant | alone)
    for share in (1.5, 3.0):
        waves = min(int(share * np.sqrt(rows.num)), MOST_COLUMNS - _width(rich))
        if waves >= 10 and mixed.sum() > 1 and len(rich) > 1 and (mixed & ~still).any():
            offer(f"curves, products and {waves} waves", *rich, Waves.of(rows, waves, seed, mixed, still))
    return families


def _still_in_few(rows: Rows) -> np.ndarray:
    """The inputs that stay the same within an episode (or subject), where those are too few to take them as any others."""
    unit = rows.episode if rows.subject is None else rows.subject
    same = unit[1:] == unit[:-1]
    still = ~((rows.inputs[1:] != rows.inputs[:-1]) & same[:, None]).any(axis=0) & ~rows.constant
    return still & (ROWS_A_COLUMN * _columns_between(*_counts(rows, still), rows.num) > _num_units(rows))


def _counts(rows: Rows, still: np.ndarray) -> tuple[int, int]:
    """How many of the inputs that stay the same are curved, and how many they are."""
    return int((still & ~rows.two_valued).sum()), int(still.sum())


def _columns_between(num_curved: int, num_still: int, num_points: int) -> int:
    """Columns that tell episodes apart: the inputs that stay the same in one, their curves and products."""
    return num_curved * (2 + _knots(num_points)) + num_still * (num_still + 1) // 2


def _num_units(rows: Rows) -> int:
    """Episodes, or subjects where there are any."""
    return int((rows.episode if rows.subject is None else rows.subject)[-1]) + 1


def _knots(num_rows: int) -> int:
    return int(np.clip(round(1.6 * num_rows**0.25), FEWEST_KNOTS, 16))


def _width(family: tuple[Block, ...]) -> int:
    return sum(block.width for block in family)


def _most_inputs() -> int:
    """How many inputs have products that fit."""
    return next(width for width in range(WIDEST, 0, -1) if 1 + width * (width + 3) // 2 <= WIDEST)
