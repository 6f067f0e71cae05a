"""Nuisance regressions of the lean test, and the serial dependence of their residuals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from policyspace.data.rows import RowBlock as RowBlock
from policyspace.errors import InputError
from policyspace.inference.base import ClusterKind
from policyspace.inference.lean.clusters import (
    Clustering,
    InMemory,
    UnitChoice,
    autocorrelations,
    candidate_block_lengths,
    choose_clustering,
)
from policyspace.inference.lean.rows import (
    CLIP,
    Basis,
    BasisColumns,
    Bumps,
    InputTransform,
    LeanRows,
    Linear,
    Products,
    Waves,
    sample_of_episodes,
)
from policyspace.inference.lean.scores import Projector, Scorer, ScoreSpec, expanded, moments, score_p_values

# -- How flexible the regressions are: as flexible as the rows allow.

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
class RegressionBasis:
    """The family that is used, and why it carries no guarantee, if so."""

    name: str
    basis: Basis
    too_simple: str | None


def largest_basis(rows: LeanRows, seed: int) -> RegressionBasis:
    """The richest family that the rows can feed."""
    families = families_of(rows, seed)
    name, family = list(families.items())[-1]
    basis = Basis(family, InputTransform.of(rows))
    width, still = int((~rows.constant).sum()), _still_in_few(rows)
    if width < 2:
        return RegressionBasis(name, basis, None)
    num_units, (num_curved, num_still) = _num_units(rows), _counts(rows, still)
    needed, pairs = units_needed(num_curved, num_still, num_units), Products.pairs(rows, np.zeros_like(rows.constant))
    if needed <= num_units and (not pairs.width or any(block.name == "pairs" for block in family)):
        return RegressionBasis(name, basis, None)
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
    return RegressionBasis(name, basis, f"{why}; simpler ones may take what they miss for use")


def min_rows(sizes: Sequence[int], num_curved: int = 0, num_units: int = 0) -> int:
    """Rows below which nothing is guaranteed: those that products of all inputs take.

    An input has one column, a category one for each of its levels but one, which have no squares and no products. Some
    inputs stay the same within each of so many episodes, and have their curves in any case.
    """
    total = sum(sizes)
    products = (total**2 - sum(size**2 for size in sizes)) // 2
    squares = sum(size == 1 for size in sizes)
    return ROWS_A_COLUMN * (1 + total + squares + products + num_curved * _knots(num_units))


def units_needed(num_curved: int, num_still: int, num_units: int) -> int:
    """Of so many episodes (or subjects), those below which nothing is guaranteed: for inputs that stay the same in one.

    Some of these inputs are curved, the others have two values; one of two values has neither curves nor products.
    """
    return UNITS_A_COLUMN * _columns_between(num_curved, num_still, num_units) if num_curved or num_still > 1 else 0


def families_of(rows: LeanRows, seed: int) -> dict[str, tuple[BasisColumns, ...]]:
    """Families that the rows can feed, from simple to rich; they share their blocks, so that no column is made twice.

    Curves get finer and waves more numerous as rows grow, curves of inputs that stay the same within an episode (or
    subject) as episodes do. Such inputs have their curves in every family with products: many rows of each episode leave
    so little noise that nothing simpler would do. Where episodes are too few even for these, they are linear.
    """
    width = rows.inputs.shape[1]
    linear = Linear.of(width)
    families: dict[str, tuple[BasisColumns, ...]] = {"linear": (linear,)}
    most = min(max(WIDEST, 4 * width), rows.num / ROWS_A_COLUMN)

    def offer(name: str, *blocks: BasisColumns) -> None:
        family = tuple(block for block in blocks if block.width)
        if _width(family) <= most and family not in families.values():
            families[name] = family

    still, scale, num_units = _still_in_few(rows), InputTransform.of(rows), _num_units(rows)
    alone = still & (units_needed(*_counts(rows, still), num_units) > num_units)
    curved = ~(rows.constant | rows.two_valued | alone)
    powers = (Products.powers(rows, 2, curved), Products.powers(rows, 3, curved))
    between = Bumps.of(rows, _knots(num_units), curved & still, scale)
    coarse = Bumps.of(rows, 3 if 6 * width < MOST_COLUMNS else 0, curved & ~still, scale)
    offer("additive curves", linear, *powers, coarse, between)
    pairs = Products.pairs(rows, alone) if int((rows.earlier == 0).sum()) ** 2 // 2 < WIDEST else None
    if pairs is not None and width + int(curved.sum()) + pairs.width < WIDEST:
        offer("quadratic", linear, powers[0], between, pairs)
        offer("curves and products", linear, *powers, coarse, between, pairs)
        spare = (MOST_COLUMNS - _width((linear, *powers, between, pairs))) // max(int((curved & ~still).sum()), 1)
        knots = max(min(_knots(rows.num), spare), FEWEST_KNOTS)
        fine = Bumps.of(rows, knots, curved & ~still, scale)
        offer("fine curves and products", linear, *powers, fine, between, pairs)
    rich, mixed = list(families.values())[-1], ~(rows.constant | alone) & (rows.earlier == 0)
    for share in (1.5, 3.0):
        waves = min(int(share * np.sqrt(rows.num)), MOST_COLUMNS - _width(rich))
        if waves >= 10 and mixed.sum() > 1 and len(rich) > 1 and (mixed & ~still).any():
            offer(f"curves, products and {waves} waves", *rich, Waves.of(rows, waves, seed, mixed, still))
    return families


def _still_in_few(rows: LeanRows) -> np.ndarray:
    """The inputs that stay the same within an episode (or subject), where those are too few to take them as any others."""
    unit = rows.episode if rows.subject is None else rows.subject
    same = unit[1:] == unit[:-1]
    still = ~((rows.inputs[1:] != rows.inputs[:-1]) & same[:, None]).any(axis=0) & ~rows.constant
    return still & (ROWS_A_COLUMN * _columns_between(*_counts(rows, still), rows.num) > _num_units(rows))


def _counts(rows: LeanRows, still: np.ndarray) -> tuple[int, int]:
    """How many of the inputs that stay the same are curved, and how many they are."""
    return int((still & ~rows.two_valued).sum()), int(still.sum())


def _columns_between(num_curved: int, num_still: int, num_points: int) -> int:
    """Columns that tell episodes apart: the inputs that stay the same in one, their curves and products."""
    return num_curved * (2 + _knots(num_points)) + num_still * (num_still + 1) // 2


def _num_units(rows: LeanRows) -> int:
    """Episodes, or subjects where there are any."""
    return int((rows.episode if rows.subject is None else rows.subject)[-1]) + 1


def _knots(num_rows: int) -> int:
    return int(np.clip(round(1.6 * num_rows**0.25), FEWEST_KNOTS, 16))


def _width(family: tuple[BasisColumns, ...]) -> int:
    return sum(block.width for block in family)


def _most_inputs() -> int:
    """How many inputs have products that fit."""
    return next(width for width in range(WIDEST, 0, -1) if 1 + width * (width + 3) // 2 <= WIDEST)


# -- How much rows depend on each other: looked at once for all groups of inputs, from what the regressions leave.

MOST_ROWS_FOR_DEPENDENCE = 60_000
"""Rows in which dependence is looked for: whole episodes, evenly spaced."""

NEARLY_ALL = 0.9
GREEDY_CORRELATION = 0.15
GREEDY_ACCURACY = 0.97
CERTAIN = 0.995
"""Labels whose surest half is predicted so well, whatever the correlation, may follow without chance."""

MISFIT_ACCURACY, MISFIT_CORRELATION = 0.94, 0.3
"""Labels that are predicted this well while what is left still correlates this much: misfit rather than chance."""


@dataclass(frozen=True)
class ResidualDiagnosis:
    """What is left of the actions given all inputs."""

    explained: float
    """The share of the actions' variance that the flexible fit explains."""
    lag_one: float
    """The correlation of what is left in neighbouring rows of an episode."""
    sure_accuracy: float
    """Labels: how often the fitted label is right in the half of the rows where it is surest; 0 for other actions."""
    greedy: bool
    """Labels follow nearly without chance from the inputs: scores are then made of misfit, and nothing is tested."""
    doubtful: bool = False
    """Labels may follow without chance: tests are made, but without a guarantee."""

    def sentence(self) -> str:
        """The numbers in words."""
        said = (
            f"the fit explains {self.explained:.0%} of the actions; neighbouring residuals correlate {self.lag_one:.2f}"
        )
        if self.greedy:
            said += (
                f"; the surest half of the discrete actions is predicted {self.sure_accuracy:.0%} right: an agent that "
                "takes its best action without chance, for which this test has no guarantee"
            )
        elif self.doubtful:
            said += (
                f"; the surest half of the discrete actions is predicted {self.sure_accuracy:.1%} right: the agent may "
                "take its best action without chance, for which this test has no guarantee"
            )
        elif self.explained > NEARLY_ALL and self.lag_one > 0.5:
            said += "; hardly any chance in the actions: what is left is mostly the misfit of the regressions"
        return said


def unit_choices(
    scorer: Scorer, plans: dict[int, ScoreSpec], groups: Sequence[tuple[int, ...]], clusters: ClusterKind, fewest: int
) -> tuple[dict[int, UnitChoice], ResidualDiagnosis]:
    """The unit of every tested group, with at least `fewest` clusters, and what was seen of the residuals.

    `plans` of the one-out tests by the group's number; `groups` of columns.
    """
    if clusters not in get_args(ClusterKind):
        known = ", ".join(f"'{kind}'" for kind in get_args(ClusterKind))
        raise InputError(f"clusters must be one of {known}, found '{clusters}': choose one.")
    rows = scorer.rows
    used = sample_of_episodes(rows.episode, rows.num, MOST_ROWS_FOR_DEPENDENCE)
    tested, residuals = _left(scorer, plans, used)
    diagnosis = _diagnose(scorer, used, residuals)
    if diagnosis.greedy and clusters in ("auto", "blocks"):
        return {group: UnitChoice(None, diagnosis.sentence()) for group in plans}, diagnosis
    if clusters in ("rows", "episodes"):
        forced = _forced(scorer, clusters, fewest)
        return dict.fromkeys(plans, forced), diagnosis
    units = candidate_block_lengths(rows, fewest, scorer.source.num_rows, scorer.source.num_owners)
    if rows.subject is not None:
        choice = UnitChoice(units[0], "subjects were named") if units else _too_few("subjects", fewest)
        return dict.fromkeys(plans, choice), diagnosis
    if clusters == "blocks":
        units = [unit for unit in units if unit.length > 1]
    residuals = residuals / np.maximum(np.sqrt((residuals**2).mean(axis=0)), 1e-300)
    # Of an input that the others determine nothing is left: its own range stands in, for tests together with others.
    series = {
        group: left if left.shape[1] else rows.inputs[used][:, list(groups[group])] for group, left in tested.items()
    }
    return {group: choose_clustering(units, series[group], residuals, rows, used) for group in plans}, diagnosis


def _forced(scorer: Scorer, clusters: ClusterKind, fewest: int) -> UnitChoice:
    rows, source = scorer.rows, scorer.source
    if clusters == "rows":
        return UnitChoice(Clustering("rows", 1, np.arange(rows.num), source.num_rows), "asked for")
    codes = rows.episode if rows.subject is None else rows.subject
    name = "episodes" if rows.subject is None else "subjects"
    unit = Clustering(name, max(2.0, source.num_rows / source.num_owners), codes, source.num_owners)
    return UnitChoice(unit, "asked for") if unit.num >= fewest else _too_few(name, fewest)


def _too_few(name: str, fewest: int) -> UnitChoice:
    return UnitChoice(None, f"there are fewer than {fewest} {name}, too few for a guarantee")


def _left(scorer: Scorer, plans: dict[int, ScoreSpec], used: np.ndarray) -> tuple[dict[int, np.ndarray], np.ndarray]:
    """What is left of each group given the others, and of the actions given everything, at the rows looked at."""
    rows, num_actions = scorer.rows, scorer.cross.shape[1]
    looks = [plan.look for plan in plans.values()]
    slopes = np.hstack([scorer.everything] + [look.slopes[:, num_actions:] for look in looks])
    columns = np.concatenate([look.tested for look in looks])
    spread = np.concatenate([look.spread[num_actions:] for look in looks])
    left = np.empty((len(used), slopes.shape[1]))
    block = scorer.here if len(used) == rows.num else RowBlock(rows.inputs[used], rows.actions[used])
    for part, some, table in expanded(scorer.basis, block):
        left[part] = np.hstack([some.actions, some.features[:, columns]]) - table @ slopes
    left[:, num_actions:] /= spread
    tested, at = {}, num_actions
    for group, look in zip(plans, looks, strict=True):
        tested[group] = left[:, at : at + len(look.tested)]
        at += len(look.tested)
    return tested, left[:, :num_actions]


def _diagnose(scorer: Scorer, used: np.ndarray, residuals: np.ndarray) -> ResidualDiagnosis:
    rows = scorer.rows
    explained = 1 - float((residuals**2).mean() / (rows.actions[used] ** 2).mean())
    found, _ = autocorrelations(residuals, rows.episode[used], 1)
    lag_one = float(found[0].mean()) if len(found) else 0.0
    accuracy = 0.0
    if rows.num_labels is not None:
        # Indicators of all labels but the commonest, whose own indicator is one minus their sum.
        seen, guess = rows.actions[used] * rows.label_spread, (rows.actions[used] - residuals) * rows.label_spread
        low = seen.min(axis=0)
        seen, guess = seen - low, guess - low
        seen = np.hstack([1 - seen.sum(axis=1, keepdims=True), seen])
        guess = np.hstack([1 - guess.sum(axis=1, keepdims=True), guess])
        ranked = np.sort(guess, axis=1)
        margin = ranked[:, -1] - ranked[:, -2]
        right = seen.argmax(axis=1) == guess.argmax(axis=1)
        accuracy = float(right[margin >= np.median(margin)].mean())
    greedy = accuracy > GREEDY_ACCURACY and lag_one > GREEDY_CORRELATION
    misfit = accuracy > MISFIT_ACCURACY and lag_one > MISFIT_CORRELATION
    return ResidualDiagnosis(explained, lag_one, accuracy, greedy, accuracy > CERTAIN or misfit)


# -- What actions may depend on beside the inputs: their place in the log, for an agent that learns, and the action before.

FURTHER_LEVEL = 0.01
"""A p-value below which a further input explains what the regressions leave of the actions."""

MOST_ROWS_FOR_FURTHER = 60_000
"""Rows in which that is looked for: whole episodes, evenly spaced."""

PLACE, BEFORE, EARLIER = "the place in the log", "the action before", "what the inputs were up to four rows earlier"

MEMORY = 4
"""So many rows earlier inputs are looked for."""

FEW_INPUTS = 6
"""Up to so many inputs, products of earlier ones are looked for, too."""


@dataclass(frozen=True)
class Further:
    """What actions depend on beside the inputs."""

    columns: dict[str, np.ndarray]
    """Further inputs [n, c] by name, that everything else is tested given."""
    earlier: tuple[np.ndarray, ...]
    """Earlier inputs [n, q], for each lag: those of an input are left out with it."""
    paired: bool
    """Whether there are products of earlier inputs."""
    left_out: tuple[str, ...]
    """What explains the actions, too, but cannot be taken in: the rows are too few, or it determines the inputs."""
    determines: bool = False
    """Whether earlier inputs determine one of now, so that nothing could be tested given them."""

    @property
    def names(self) -> tuple[str, ...]:
        """What everything is tested given."""
        return (*self.columns, *([EARLIER] if self.earlier else []))

    def rows(self, rows: LeanRows) -> LeanRows:
        """With all of these as inputs."""
        tables = [*self.columns.values(), *self.earlier]
        now = sum(own.shape[1] for own in self.columns.values())
        past = np.concatenate(
            [np.zeros(0, np.intp), *(np.full(own.shape[1], lag) for lag, own in enumerate(self.earlier, 1))]
        )
        past = past if self.paired else np.arange(1, 1 + len(past))  # products are of inputs of one time
        return rows.with_further(tables, np.concatenate([np.zeros(now, np.intp), past])) if tables else rows


DETERMINED = 0.02
"""The share of an input's variance given the others of now, below which earlier ones leave nothing to test."""


def past_determines(
    inputs: np.ndarray, past: Sequence[np.ndarray], action: np.ndarray, groups: Sequence[Sequence[int]]
) -> bool:
    """Whether the others' earlier values and the action before determine some group, as in a world without noise."""
    for group in groups:
        others = [np.delete(table, list(group), axis=1) for table in (inputs, *past)]
        now = np.hstack([np.ones((len(inputs), 1)), others[0]])
        both, own = np.hstack([now, *others[1:], action]), inputs[:, list(group)]
        left, right = (own - table @ np.linalg.lstsq(table, own, rcond=None)[0] for table in (now, both))
        if (np.square(right).sum(axis=0) < DETERMINED * np.square(left).sum(axis=0)).any():
            return True
    return False


def further_inputs(scorer: Scorer, seed: int, groups: Sequence[Sequence[int]] = ()) -> Further:
    """What explains what is left of the actions, and is taken in where the rows can feed products of it too.

    Earlier inputs are not where they determine one of the tested groups: then nothing could be tested given them.
    """
    rows = scorer.rows
    place = (np.arange(rows.num)[:, None] - (rows.num - 1) / 2) / (rows.num / np.sqrt(12))
    before = np.repeat(rows.actions.min(axis=0)[None], rows.num, axis=0)  # of labels: none
    before = np.zeros_like(before) if rows.num_labels is None else before
    follows = np.flatnonzero(rows.episode[1:] == rows.episode[:-1])
    before[follows + 1] = rows.actions[follows]
    moves = (rows.inputs[follows + 1] != rows.inputs[follows]).any(axis=0)  # what stays the same has no past
    used = sample_of_episodes(rows.episode, rows.num, MOST_ROWS_FOR_FURTHER)
    lags = range(1, MEMORY + 1) if moves.any() else range(0)
    past = [rows.before(lag, used)[:, moves] for lag in lags]
    drift = [np.hstack([place, place**2])[used], place[used] * np.clip(rows.inputs[used], -CLIP, CLIP)]
    candidates = [*drift, before[used], *past, *(_squares(one) for one in past)]
    left, rest = _given_all(scorer, used, candidates)
    found, doubtful = Further({}, (), True, ()), list[str]()
    for name, candidates in ((PLACE, rest[:2]), (EARLIER, rest[3:]), (BEFORE, rest[2:3])):
        p_values = [p for one in candidates for p in score_p_values(left, one, scorer.basis.width)]
        if not p_values or len(p_values) * min(p_values) > FURTHER_LEVEL:
            continue
        if name == EARLIER and past_determines(
            rows.inputs[used], [rows.before(lag, used) for lag in lags], before[used], groups
        ):
            found, doubtful = replace(found, determines=True), [*doubtful, name]
            continue
        if name == EARLIER:
            earlier = tuple(np.where(moves, rows.before(lag, np.arange(rows.num)), 0.0) for lag in lags)
            wider = [replace(found, earlier=earlier, paired=paired) for paired in (True, False)]
        else:
            wider = [replace(found, columns=found.columns | {name: place if name == PLACE else before})]
        fed = [more for more in wider if largest_basis(more.rows(rows), seed).too_simple is None]
        found = fed[0] if fed else found
        doubtful += [] if fed else [name]
    return replace(found, left_out=tuple(doubtful))


def _squares(inputs: np.ndarray) -> np.ndarray:
    """Squares of inputs and, of a few, their products."""
    seen = np.clip(inputs, -CLIP, CLIP)
    first, second = np.triu_indices(seen.shape[1]) if seen.shape[1] <= FEW_INPUTS else (np.arange(seen.shape[1]),) * 2
    return seen[:, first] * seen[:, second]


def _given_all(
    scorer: Scorer, used: np.ndarray, candidates: Sequence[np.ndarray]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """What all columns of the basis leave of the actions, and of each table of further columns, in some rows."""
    rows, width = scorer.rows, scorer.basis.width
    whole = isinstance(scorer.source, InMemory) and len(used) == rows.num
    block = scorer.here if len(used) == rows.num else RowBlock(rows.inputs[used], rows.actions[used])
    beside = np.hstack([block.actions, *candidates])
    cross, gram = np.zeros((width, beside.shape[1])), np.zeros((width, width))
    for part, _, table in expanded(scorer.basis, block):
        cross += table.T @ beside[part]
        if not whole:
            gram += table.T @ table
    slopes = (scorer.projector if whole else Projector(gram, np.ones(width, bool))).coefficients(cross)
    for part, _, table in expanded(scorer.basis, block):
        beside[part] -= table @ slopes
    ends = np.cumsum([block.actions.shape[1]] + [one.shape[1] for one in candidates])
    left, *rest = np.split(beside, ends[:-1], axis=1)
    return left, rest


# -- How well each family of regressions predicts the actions of episodes that it was not fitted to.

NUM_FOLDS = 5
MOST_ROWS = 60_000
"""Families are compared on so many rows at most."""


def held_out_errors(rows: LeanRows, seed: int) -> dict[str, float]:
    """Five-fold cross-validation over episodes (blocks of rows where there are few); 1 is no better than the mean."""
    families = families_of(rows, seed)
    blocks = list(dict.fromkeys(block for family in families.values() for block in family))
    basis = Basis(tuple(blocks), InputTransform.of(rows))
    sums = moments(basis, rows, folds(rows, seed), NUM_FOLDS)
    starts = np.cumsum([0] + [block.width for block in blocks])
    width = basis.width
    actions = np.arange(width, width + rows.actions.shape[1])
    errors: dict[str, float] = {}
    for name, family in families.items():
        mask = np.zeros(width, bool)
        for block, start in zip(blocks, starts, strict=False):
            mask[start : start + block.width] = block in family
        errors[name] = held_out_error(sums, mask, actions)
    return errors


def held_out_error(sums: np.ndarray, mask: np.ndarray, targets: np.ndarray) -> float:
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


def folds(rows: LeanRows, seed: int) -> np.ndarray:
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
