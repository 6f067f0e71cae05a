"""How flexible the regressions are: as flexible as the rows allow.

A score is wrong by the product of what the two regressions miss. What held-out rows cannot show of a misfit is as large as
the noise of the columns that would mend it, and the product of two such misfits may exceed the noise of the score. So no
simpler family is taken because it predicts as well, and where rows cannot feed products of all inputs nothing is promised.
"""

from dataclasses import dataclass

import numpy as np

from policyspace.inference.lean.bases import Basis, Block, Bumps, Linear, Products, Waves
from policyspace.inference.lean.rows import Rows

ROWS_A_COLUMN = 8
"""Rows that must be there for every column of a family; for columns that stay the same in an episode, so many episodes."""
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
    width = int((~rows.constant).sum())
    if width < 2 or any(block.name == "pairs" for block in family):
        return Choice(name, Basis(family), None)
    if 1 + width * (width + 3) // 2 > WIDEST:
        why = f"{width} inputs are too many for regressions with products of all of them, {_most_inputs()} at most"
    elif rows.num < rows_needed(width):
        why = (
            f"{rows.num} rows are too few for regressions with products of all {width} inputs, which need "
            f"{rows_needed(width)}"
        )
    else:
        num_units, curved = _num_units(rows), int((~rows.constant & ~rows.two_valued).sum())
        what = "episodes" if rows.subject is None else "subjects"
        why = (
            f"{num_units} {what} are too few for regressions with curves and products of {width} inputs that stay the same "
            f"within one, which need {units_needed(curved, width, rows.num)}"
        )
    return Choice(name, Basis(family), f"{why}; simpler ones may take what they miss for use")


def rows_needed(num_inputs: int) -> int:
    """Rows below which nothing is promised: those that products of all inputs take."""
    return ROWS_A_COLUMN * (1 + num_inputs * (num_inputs + 3) // 2)


def units_needed(num_curved: int, num_still: int, num_rows: int) -> int:
    """Episodes (or subjects) below which inputs that stay the same within one, some of them curved, have no products."""
    return ROWS_A_COLUMN * (num_curved * (2 + _knots(num_rows)) + num_still * (num_still + 1) // 2)


def families_of(rows: Rows, seed: int) -> dict[str, tuple[Block, ...]]:
    """Families that the rows can feed, from simple to rich; they share their blocks, so that no column is made twice.

    Curves get finer and waves more numerous as rows grow. Of columns that stay the same within an episode (or subject) only
    other episodes tell one from another: where those are few, such inputs have no curves and no products with each other.
    """
    width = rows.inputs.shape[1]
    linear = Linear.of(width)
    families: dict[str, tuple[Block, ...]] = {"linear": (linear,)}
    most = min(max(WIDEST, 4 * width), rows.num / ROWS_A_COLUMN)

    def offer(name: str, *blocks: Block) -> None:
        family = tuple(block for block in blocks if block.width)
        if _width(family) <= most and family not in families.values():
            families[name] = family

    alone = _without_curves(rows)
    curved = ~(rows.constant | rows.two_valued | alone)
    powers = (Products.powers(rows, 2, curved), Products.powers(rows, 3, curved))
    coarse = Bumps.of(rows, 3 if 6 * width < MOST_COLUMNS else 0, curved)
    offer("additive curves", linear, *powers, coarse)
    if width * (width + 3) // 2 < WIDEST:
        pairs = Products.pairs(rows, alone)
        offer("quadratic", linear, powers[0], pairs)
        offer("curves and products", linear, *powers, coarse, pairs)
        spare = (MOST_COLUMNS - _width((linear, *powers, pairs))) // max(int(curved.sum()), 1)
        knots = max(min(_knots(rows.num), spare), FEWEST_KNOTS)
        offer("fine curves and products", linear, *powers, Bumps.of(rows, knots, curved), pairs)
    rich, mixed = list(families.values())[-1], ~(rows.constant | alone)
    for share in (1.5, 3.0):
        waves = min(int(share * np.sqrt(rows.num)), MOST_COLUMNS - _width(rich))
        if waves >= 10 and mixed.sum() > 1 and len(rich) > 1:
            offer(f"curves, products and {waves} waves", *rich, Waves.of(rows, waves, seed, mixed))
    return families


def _without_curves(rows: Rows) -> np.ndarray:
    """The inputs that stay the same within an episode (or subject), where those are too few for curves of them."""
    unit = rows.episode if rows.subject is None else rows.subject
    same = unit[1:] == unit[:-1]
    still = ~((rows.inputs[1:] != rows.inputs[:-1]) & same[:, None]).any(axis=0) & ~rows.constant
    num_curved, num_still = int((still & ~rows.two_valued).sum()), int(still.sum())
    return still & (units_needed(num_curved, num_still, rows.num) > _num_units(rows))


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
