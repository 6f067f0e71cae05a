"""Cluster sums of products of residuals."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.special import fdtrc

from policyspace.data.rows import RowBlock
from policyspace.inference.lean.clusters import MOST_ENTRIES, Clusters, InMemory, KeptBlock, LeanData, kept
from policyspace.inference.lean.rows import Basis, LeanRows, Waves

# -- The sums over rows that the test is made of: functions of blocks of standardised rows, small enough to travel to them.

CHUNK = 1024
"""Rows that are expanded into columns at a time."""

FREQUENCIES = (1.5, 3.0)
CLIP = 3.0


def expanded(basis: Basis, block: RowBlock) -> Iterator[tuple[slice, RowBlock, np.ndarray]]:
    """The rows of a block, so many at a time, with the columns that a basis makes of them."""
    for start in range(0, len(block), CHUNK):
        part = slice(start, min(start + CHUNK, len(block)))
        rows = RowBlock(block.features[part], block.actions[part])
        yield part, rows, kept(block, (basis, start), lambda rows=rows: basis.columns(rows.features))  # type: ignore[misc]


@dataclass(frozen=True)
class ScoreDirections:
    """Where use is looked for beside the tested inputs themselves."""

    partners: np.ndarray
    """Kept inputs that each tested one is multiplied by."""
    pairs: tuple[np.ndarray, np.ndarray]
    """Positions of tested inputs that are multiplied by each other."""
    waved: np.ndarray
    """Tested inputs whose sines and cosines are taken."""


@dataclass(frozen=True, eq=False)
class FirstFits:
    """Fits whose steps are regressed on."""

    index: np.ndarray
    """Coefficients of the actions and of tested inputs [P, i]."""

    def rows(self, block: RowBlock, part: slice, table: np.ndarray) -> np.ndarray:
        """Of some rows of a block [rows, i], from the basis' columns.

        By themselves, not beside other looks: steps are steep, and must have the same bits in any company.
        """
        return kept(block, (self, part.start), lambda: table @ self.index)


@dataclass(frozen=True, eq=False)
class StepFeatures:
    """Labels, and actions at a bound, change faster than curves of the inputs can: steps of first fits can, too."""

    fits: FirstFits
    source: np.ndarray
    """Which fit each step is of [m]."""
    centre: np.ndarray
    """Where it rises [m]."""
    width: np.ndarray
    """How slowly [m]."""

    def columns(self, first: np.ndarray) -> np.ndarray:
        """Steps [rows, m] of the first fits."""
        steps = first[:, self.source]
        np.subtract(self.centre, steps, out=steps)
        steps /= self.width
        np.clip(steps, -50.0, 50.0, out=steps)
        np.exp(steps, out=steps)
        steps += 1
        return np.reciprocal(steps, out=steps)


@dataclass(frozen=True, eq=False)
class RowScores:
    """What one support makes of a row: what is left of actions and tested inputs, and the directions of use."""

    tested: np.ndarray
    """Tested inputs of which something is left [c]."""
    slopes: np.ndarray
    """Coefficients of the actions, then of the tested inputs [P, k + c]."""
    spread: np.ndarray
    """Standard deviations of what is left of them [k + c]."""
    directions: ScoreDirections
    steps: StepFeatures | None = None
    """Of first fits; none before there are any."""
    weights: np.ndarray | None = None
    """Coefficients of the steps [m, k + c]."""

    @property
    def num_actions(self) -> int:
        """k."""
        return len(self.spread) - len(self.tested)

    @property
    def num_extra(self) -> int:
        """Columns that are regressed again: directions beside the tested inputs themselves, and the size of the actions."""
        found = self.directions
        waves = 2 * len(FREQUENCIES) * len(found.waved)
        return len(self.tested) * len(found.partners) + len(found.pairs[0]) + waves + self.num_actions

    @property
    def num_entries(self) -> int:
        """Of the score vector."""
        return self.num_actions * (2 * len(self.tested) + self.num_extra - self.num_actions)

    def fitted(self, stepped: np.ndarray | None, products: np.ndarray) -> np.ndarray:
        """Actions and tested inputs [rows, k + c], from its steps and the products of the basis' columns with the slopes."""
        return products if stepped is None else products + stepped @ self.weights

    def left(self, rows: RowBlock, fitted: np.ndarray) -> np.ndarray:
        """What is left of the actions and of the tested inputs, in standard deviations [rows, k + c]."""
        seen = np.hstack([rows.actions, rows.features[:, self.tested]])
        return (seen - fitted) / self.spread

    def extra(self, rows: RowBlock, left: np.ndarray) -> np.ndarray:
        """Interactions, products and waves of tested inputs, and the size of what is left of the actions."""
        tested, found = left[:, self.num_actions :], self.directions
        partners = np.clip(rows.features[:, found.partners], -CLIP, CLIP)
        crossed = (tested[:, :, None] * partners[:, None, :]).reshape(len(left), -1)
        clipped = np.clip(tested, -CLIP, CLIP)
        even = clipped[:, found.pairs[0]] * clipped[:, found.pairs[1]]
        waved = np.clip(rows.features[:, found.waved], -CLIP, CLIP)
        waves = [wave(frequency * waved) for frequency in FREQUENCIES for wave in (np.sin, np.cos)]
        return np.hstack([crossed, even, *waves, np.abs(left[:, : self.num_actions])])


@dataclass(frozen=True)
class BasisMoments:
    """[Φ, Y]ᵀ[Φ, Y] of the basis' columns and the actions [P + k, P + k]."""

    basis: Basis

    def __call__(self, block: RowBlock) -> tuple[np.ndarray]:
        """A sum over rows."""
        width = self.basis.width
        total = np.zeros((width + block.actions.shape[1],) * 2)
        for _, rows, table in expanded(self.basis, block):
            total[:width, :width] += table.T @ table
            total[:width, width:] += table.T @ rows.actions
            total[width:, width:] += rows.actions.T @ rows.actions
        total[width:, :width] = total[:width, width:].T
        return (total,)


@dataclass(frozen=True)
class StepMoments:
    """Products [P + m + k, m] of the basis' columns, the steps of a look and the actions with those steps."""

    basis: Basis
    steps: tuple[StepFeatures, ...]

    def __call__(self, block: RowBlock) -> tuple[np.ndarray, ...]:
        """A sum over rows."""
        width, beside = self.basis.width, self.basis.width + block.actions.shape[1]
        totals = tuple(np.zeros((beside + len(own.source), len(own.source))) for own in self.steps)
        for part, rows, table in expanded(self.basis, block):
            for own, total in zip(self.steps, totals, strict=True):
                steps = stepped_rows(own, block, part, table)
                total[:width] += table.T @ steps
                total[width : width + len(own.source)] += steps.T @ steps
                total[width + len(own.source) :] += rows.actions.T @ steps
        return totals


@dataclass(frozen=True)
class ExtraMoments:
    """Products of the basis' columns with the extra columns of several looks [P, e], and the squares of these [e]."""

    basis: Basis
    looks: tuple[RowScores, ...]

    def __call__(self, block: RowBlock) -> tuple[np.ndarray, np.ndarray]:
        """A sum over rows."""
        width = sum(look.num_extra for look in self.looks)
        cross, squares = np.zeros((self.basis.width, width)), np.zeros(width)
        slopes = [look.slopes for look in self.looks]
        for part, rows, table in expanded(self.basis, block):
            every = looked_at(self.looks, slopes, block, part, rows, table)
            extra = np.hstack([own for _, own in every])
            cross += table.T @ extra
            squares += np.einsum("ij,ij->j", extra, extra)
        return cross, squares


@dataclass(frozen=True)
class ClusterSums:
    """The scores of several looks, each summed over clusters of its own [G, m]."""

    basis: Basis
    looks: tuple[RowScores, ...]
    again: tuple[np.ndarray, ...]
    """Coefficients of the extra columns of each [P, e]."""
    spreads: tuple[np.ndarray, ...]
    """Standard deviations of what is left of them [e]."""
    clusters: tuple[Clusters, ...]

    def __call__(self, block: RowBlock) -> tuple[np.ndarray, ...]:
        """A sum over rows."""
        sums = tuple(np.zeros((own.num, look.num_entries)) for look, own in zip(self.looks, self.clusters, strict=True))
        known = {own: own.codes(block) for own in self.clusters}
        slopes = [look.slopes for look in self.looks]
        for part, rows, table in expanded(self.basis, block):
            second = _side_by_side(table, self.again)
            every = looked_at(self.looks, slopes, block, part, rows, table)
            for number, (look, own) in enumerate(zip(self.looks, self.clusters, strict=True)):
                left, extra = every[number]
                extra = (extra - second[number]) / self.spreads[number]
                add_by_cluster(sums[number], known[own][part], products(left, extra, look.num_actions))
        return sums


def stepped_rows(steps: StepFeatures, block: RowBlock, part: slice, table: np.ndarray) -> np.ndarray:
    """The steps of some rows of a block, from the basis' columns."""
    return kept(block, (steps, part.start), lambda: steps.columns(steps.fits.rows(block, part, table)))


def looked_at(
    looks: Sequence[RowScores],
    slopes: Sequence[np.ndarray],
    block: RowBlock,
    part: slice,
    rows: RowBlock,
    table: np.ndarray,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """For every look what is left of actions and tested inputs in some rows, and the extra columns."""
    found = []
    for number, products in enumerate(_side_by_side(table, slopes)):
        look = looks[number]
        steps = None if look.steps is None else stepped_rows(look.steps, block, part, table)
        left = look.left(rows, look.fitted(steps, products))
        found.append((left, kept(block, (look, part.start), lambda look=look, left=left: look.extra(rows, left))))  # type: ignore[misc]
    return found


def _side_by_side(table: np.ndarray, slopes: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The table times each of several matrices, in one product."""
    ends = np.cumsum([own.shape[1] for own in slopes])
    return np.split(table @ np.hstack(slopes), ends[:-1], axis=1)


def products(left: np.ndarray, extra: np.ndarray, num_actions: int) -> np.ndarray:
    """Score rows [n, m]: tested ⊗ actions, then the other directions ⊗ actions, then tested ⊗ size of the actions."""
    actions, tested = left[:, :num_actions], left[:, num_actions:]
    minor, size = extra[:, : extra.shape[1] - num_actions], extra[:, extra.shape[1] - num_actions :]
    parts = [(tested, actions), (minor, actions), (tested, size)]
    return np.hstack([(a[:, :, None] * b[:, None, :]).reshape(len(left), -1) for a, b in parts])


def add_by_cluster(total: np.ndarray, codes: np.ndarray, rows: np.ndarray) -> None:
    """Add rows to the total of their cluster."""
    if not rows.shape[1]:
        return
    starts = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1])
    np.add.at(total, codes[starts], np.add.reduceat(rows, starts, axis=0))


# -- Sums of products of all columns, from which every regression of the test is solved without reading the rows again.

JITTER = 1e-12
"""Added to the diagonal of the scaled moments, so that columns that repeat each other do no harm."""


class Projector:
    """Least squares on some columns of a table whose moments are known."""

    def __init__(self, gram: np.ndarray, mask: np.ndarray) -> None:
        """`gram` [P, P] of all columns, `mask` [P] those to regress on."""
        self._mask, self._rows = mask, float(gram[0, 0])
        inner = gram if mask.all() else gram[np.ix_(mask, mask)]
        self._scale = _scale_of(inner, self._rows)
        scaled = inner / self._scale
        scaled /= self._scale[:, None]
        np.fill_diagonal(scaled, 1.0 + JITTER * mask.sum())
        self._factor = cholesky(scaled, lower=True, check_finite=False, overwrite_a=True)

    def coefficients(self, cross: np.ndarray) -> np.ndarray:
        """From the moments [P, t] of all columns with t targets, their coefficients [P, t], zero outside the mask."""
        return self._second_half(self._first_half(cross))

    def beside(
        self, cross: np.ndarray, inner: np.ndarray, targets: np.ndarray, with_targets: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients [P, t] and [m, t] where m further columns are regressed on, too.

        `cross` [P, m] and `inner` [m, m] are the moments of these, `targets` [P, t] and `with_targets` [m, t] those of the
        targets: the last rows of a Cholesky factor, of which the first are known.
        """
        scale = _scale_of(inner, self._rows)
        below, first = self._first_half(cross / scale), self._first_half(targets)
        rest = inner / np.outer(scale, scale)
        np.fill_diagonal(rest, 1.0 + JITTER * (len(below) + len(scale)))
        factor = cho_factor(rest - below.T @ below, lower=True, check_finite=False, overwrite_a=True)
        weights = cho_solve(factor, with_targets / scale[:, None] - below.T @ first, check_finite=False)
        return self._second_half(first - below @ weights), weights / scale[:, None]

    def _first_half(self, cross: np.ndarray) -> np.ndarray:
        return solve_triangular(self._factor, cross[self._mask] / self._scale[:, None], lower=True, check_finite=False)

    def _second_half(self, half: np.ndarray) -> np.ndarray:
        out = np.zeros((len(self._mask), half.shape[1]))
        solved = solve_triangular(self._factor, half, lower=True, trans="T", check_finite=False)
        out[self._mask] = solved / self._scale[:, None]
        return out

    def whitened(self, table: np.ndarray) -> np.ndarray:
        """Rows [n, P] times R [P, p] with RRᵀ the inverse of the moments: the noise of what coefficients say of them."""
        inner = table[:, self._mask] / self._scale
        return np.asarray(solve_triangular(self._factor, inner.T, lower=True, check_finite=False).T)


def _scale_of(inner: np.ndarray, rows: float) -> np.ndarray:
    """The roots of a diagonal; infinite for columns that are next to nothing in so many rows."""
    scale = np.sqrt(np.maximum(np.diag(inner), 0.0))
    return np.where(scale > 1e-9 * np.sqrt(max(rows, 1.0)), scale, np.inf)


def moments(basis: Basis, rows: LeanRows, fold: np.ndarray, num_folds: int) -> np.ndarray:
    """Products of the columns and the actions, [Φ, Y]ᵀ[Φ, Y], one matrix a fold [folds, P+k, P+k]; fold −1 is left out."""
    inside = [fold == number for number in range(num_folds)]
    return np.stack([BasisMoments(basis)(RowBlock(rows.inputs[own], rows.actions[own]))[0] for own in inside])


# -- Scores: what is left of the actions times what is left of the tested inputs, summed over clusters of rows.

DETERMINED = 1e-4
"""An input of which the others leave less than this share of its variance cannot be tested."""

NOTHING = 1e-10
"""Actions of which less than this share of the variance is left are rounding."""

MOST_PARTNERS = 16
FEW_TESTED = 6
"""Up to so many tested inputs, products of each two and waves of each are looked at, too."""

NUM_STEPS, ROWS_A_STEP, MOST_SORTED = (3, 12), 20, 20_000
"""Steps of each fit, at least and at most; rows for each; rows whose quantiles are taken."""

MOST_STEPPED = 2
"""Tested inputs that have steps of their fits."""

BATCH = 24
"""Supports that are scored in one pass over the rows."""

SAMPLE = 4000
"""Rows on which effects and echoes are averaged."""


@dataclass(frozen=True)
class ScoreSpec:
    """How one support is scored: the columns that are regressed on, and how rows are looked at."""

    mask: np.ndarray
    projector: Projector
    look: RowScores


@dataclass(frozen=True)
class ClusterScores:
    """Sums [G, m] over clusters, which entries are linear use [m], and how many columns were regressed on."""

    sums: np.ndarray
    major: np.ndarray
    num_regressors: int


class Scorer:
    """Scores supports of one data set with one basis."""

    def __init__(self, rows: LeanRows, basis: Basis, source: LeanData) -> None:
        """`rows` at hand, and where all rows lie."""
        self.rows, self.basis, self.source = rows, basis, source
        width, (moments,) = basis.width, source.total(BasisMoments(basis))
        self.gram, self.cross, self._own = moments[:width, :width], moments[:width, width:], moments[width:, width:]
        linear = np.arange(width) <= rows.inputs.shape[1]
        weight = Projector(self.gram, linear).coefficients(self.cross)[1 : 1 + rows.inputs.shape[1]]
        self._importance = (weight**2).sum(axis=1)
        self.linear = linear
        self.smooth = np.concatenate([np.full(block.width, not isinstance(block, Waves)) for block in basis.blocks])
        """The columns that are no random waves: a guess lies between values that were seen, where waves may be anything."""

    @cached_property
    def here(self) -> KeptBlock:
        """The rows at hand."""
        return (
            self.source.block if isinstance(self.source, InMemory) else KeptBlock(self.rows.inputs, self.rows.actions)
        )

    @cached_property
    def projector(self) -> Projector:
        """On all columns."""
        return Projector(self.gram, np.ones(self.basis.width, bool))

    @cached_property
    def everything(self) -> np.ndarray:
        """Coefficients of the actions on all columns [P, k]."""
        return self.projector.coefficients(self.cross)

    @cached_property
    def smoothly(self) -> np.ndarray:
        """Coefficients of the actions on the smooth columns [P, k]."""
        return self.smooth_projector.coefficients(self.cross)

    @cached_property
    def smooth_projector(self) -> Projector:
        """On these."""
        return Projector(self.gram, self.smooth)

    @cached_property
    def expected(self) -> np.ndarray:
        """The actions that these expect at the rows that are looked at [n', k]."""
        return self.looked_at[1] @ self.smoothly

    @cached_property
    def looked_at(self) -> tuple[np.ndarray, np.ndarray]:
        """At most `SAMPLE` of the rows at hand, evenly spaced, and the columns that the basis makes of them."""
        used = np.unique(np.linspace(0, self.rows.num - 1, min(self.rows.num, SAMPLE)).astype(np.intp))
        if len(self.here.made) and self.rows.num <= 4 * SAMPLE:
            table = np.empty((len(used), self.basis.width))
            for part, _, own in expanded(self.basis, self.here):
                inside = (used >= part.start) & (used < part.stop)
                table[inside] = own[used[inside] - part.start]
            return used, table
        return used, self.basis.columns(self.rows.inputs[used])

    def plan(self, kept: Sequence[int], tested: Sequence[int]) -> ScoreSpec:
        """Score `tested` inputs given those `kept` (column indexes)."""
        mask = self.basis.within(kept)
        projector = Projector(self.gram, mask)
        columns = np.array(sorted(tested), dtype=np.intp)
        cross = np.hstack([self.cross, self.gram[:, 1 + columns]])
        own = np.concatenate([np.diag(self._own), np.diag(self.gram)[1 + columns]])
        slopes = projector.coefficients(cross)
        left = own - 2 * np.sum(slopes * cross, axis=0) + np.sum(slopes * (self.gram @ slopes), axis=0)
        left = np.maximum(left / self.source.num_rows, 0.0)
        num_actions = self.cross.shape[1]
        alive = np.concatenate([np.ones(num_actions, bool), left[num_actions:] > DETERMINED])
        columns = columns[alive[num_actions:]]
        spread = np.where(left[alive] > NOTHING, np.sqrt(np.maximum(left[alive], NOTHING)), np.inf)
        return ScoreSpec(mask, projector, RowScores(columns, slopes[:, alive], spread, self._directions(kept, columns)))

    def left_over(self, mask: np.ndarray, inputs: np.ndarray) -> tuple[np.ndarray, int]:
        """Sums of products of what some columns leave of the actions and of inputs [k + c, k + c], and how many columns."""
        seen = 1 + inputs
        cross = np.hstack([self.cross, self.gram[:, seen]])
        own = np.block([[self._own, self.cross[seen].T], [self.cross[seen], self.gram[np.ix_(seen, seen)]]])
        return own - cross.T @ Projector(self.gram, mask).coefficients(cross), int(mask.sum())

    def _directions(self, kept: Sequence[int], tested: np.ndarray) -> ScoreDirections:
        """As many as the score vector has room for."""
        num = len(tested)
        waved = tested[~self.rows.two_valued[tested]][: FEW_TESTED if num <= FEW_TESTED else 0]
        room = MOST_ENTRIES // self.cross.shape[1] - 2 * num
        if 2 * len(FREQUENCIES) * len(waved) > room / 2:
            waved = waved[:0]
        room -= 2 * len(FREQUENCIES) * len(waved)
        pairs = np.triu_indices(num) if num <= FEW_TESTED else (np.arange(num), np.arange(num))
        if len(pairs[0]) > room:
            pairs = (np.zeros(0, np.intp), np.zeros(0, np.intp))
        allowed = (room - len(pairs[0])) // num if num else 0
        usable = np.array([i for i in kept if not self.rows.constant[i]], dtype=np.intp)
        usable = usable[np.argsort(-self._importance[usable], kind="stable")]
        return ScoreDirections(np.sort(usable[: max(0, min(allowed, MOST_PARTNERS))]), pairs, waved)

    def cluster_scores(self, plans: Sequence[ScoreSpec], clusters: Sequence[Clusters]) -> list[ClusterScores]:
        """For every plan its scores summed over its clusters, several plans in two passes over the rows."""
        out: list[ClusterScores] = []
        start = 0
        while start < len(plans):
            sizes = [own.num * plan.look.num_entries for plan, own in zip(plans, clusters, strict=True)][start:]
            some = slice(start, start + max(1, int(np.sum(np.cumsum(sizes[:BATCH]) <= self.source.most_numbers))))
            out += self._batch(plans[some], clusters[some])
            start = some.stop
        return out

    def _batch(self, plans: Sequence[ScoreSpec], clusters: Sequence[Clusters]) -> list[ClusterScores]:
        looks = self._with_steps(plans)
        again, spreads = self._second_regressions(plans, looks)
        sums = self.source.total(
            ClusterSums(self.basis, looks, again, spreads, tuple(clusters)), any(own.by_owner for own in clusters)
        )
        self.here.forget_all_but(self.basis)
        return [
            ClusterScores(
                total[total.any(axis=1)] if total.any() else total,
                np.arange(total.shape[1]) < plan.look.num_actions * len(plan.look.tested),
                int(plan.mask.sum()) + (0 if look.steps is None else len(look.steps.source)),
            )
            for plan, look, total in zip(plans, looks, sums, strict=True)
        ]

    def _with_steps(self, plans: Sequence[ScoreSpec]) -> tuple[RowScores, ...]:
        """Looks that regress on steps of first fits, too: linear and whole ones of actions, whole ones of tested inputs."""
        every = self._steps(plans)
        looks = []
        for plan, steps, total in zip(plans, every, self.source.total(StepMoments(self.basis, every)), strict=True):
            look, num = plan.look, len(steps.source)
            cross, inner, acted = np.split(total, [self.basis.width, self.basis.width + num])
            targets = np.hstack([self.cross, self.gram[:, 1 + look.tested]])
            beside = np.hstack([acted.T, cross[1 + look.tested].T])
            slopes, weights = plan.projector.beside(cross, inner, targets, beside)
            gained = np.sum(slopes * targets, axis=0) + np.sum(weights * beside, axis=0)
            before = np.sum(look.slopes * targets, axis=0)
            spread = np.sqrt(np.maximum(look.spread**2 - (gained - before) / self.source.num_rows, NOTHING))
            looks.append(replace(look, slopes=slopes, spread=spread, steps=steps, weights=weights))
        return tuple(looks)

    def _steps(self, plans: Sequence[ScoreSpec]) -> tuple[StepFeatures, ...]:
        """Steps at the quantiles of the first fits, where rows are."""
        num_actions = self.cross.shape[1]
        every, indexes = max(1, self.rows.num // MOST_SORTED), []
        block = self.here if every == 1 else RowBlock(self.rows.inputs[::every], self.rows.actions[::every])
        for plan in plans:
            linear = Projector(self.gram, plan.mask & self.linear).coefficients(self.cross)
            indexes.append(FirstFits(np.hstack([linear, plan.look.slopes[:, : num_actions + MOST_STEPPED]])))
        fits = [np.empty((len(block), own.index.shape[1])) for own in indexes]
        for part, _, table in expanded(self.basis, block):
            for own, fit in zip(indexes, fits, strict=True):
                fit[part] = own.rows(block, part, table)
        return tuple(self._at_quantiles(index, fit) for index, fit in zip(indexes, fits, strict=True))

    def _at_quantiles(self, index: FirstFits, fit: np.ndarray) -> StepFeatures:
        num = int(np.clip(self.rows.num // (ROWS_A_STEP * fit.shape[1]), *NUM_STEPS))
        centres = np.quantile(fit, (np.arange(num) + 0.5) / num, axis=0)
        widths = np.maximum(np.gradient(centres, axis=0), 1e-3) / 2
        return StepFeatures(index, np.repeat(np.arange(fit.shape[1]), num), centres.T.ravel(), widths.T.ravel())

    def _second_regressions(
        self, plans: Sequence[ScoreSpec], looks: tuple[RowScores, ...]
    ) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """Coefficients of the extra columns on each plan's own basis columns, and the spread of what is left."""
        cross, squares = self.source.total(ExtraMoments(self.basis, looks))
        slopes, spreads, at = [], [], 0
        for plan, wide in zip(plans, (look.num_extra for look in looks), strict=True):
            inner = cross[:, at : at + wide]
            found = plan.projector.coefficients(inner)
            left = squares[at : at + wide] - 2 * np.sum(found * inner, 0) + np.sum(found * (self.gram @ found), 0)
            left = left / self.source.num_rows
            slopes.append(found)
            spreads.append(np.where(left > DETERMINED**2, np.sqrt(np.maximum(left, DETERMINED**2)), np.inf))
            at += wide
        return tuple(slopes), tuple(spreads)


# -- Does anything else explain what is left? Score tests of columns beside those that were regressed on.

ROWS_A_PRODUCT = 1024
"""Rows whose products are made at a time."""


def bonferroni_min_p(targets: np.ndarray, base: np.ndarray, candidates: Iterable[np.ndarray]) -> float:
    """F tests of each candidate's columns beside `base`, for every target; the smallest p-value times their number.

    The variance is robust to a spread that depends on the state: rows of the score are squared, not their mean.
    Candidates are changed in place, one after the other: each may be as large as all the rest of a check.
    """
    p_values = []
    basis = _orthonormal(base)
    left = targets - basis @ (basis.T @ targets)
    for columns in candidates:
        columns -= basis @ (basis.T @ columns)
        p_values += score_p_values(left, columns, base.shape[1])
    return min(1.0, len(p_values) * min(p_values)) if p_values else 1.0


def score_p_values(left: np.ndarray, columns: np.ndarray, num_regressors: int) -> list[float]:
    """For each target whether columns explain what so many regressors leave of it, of them too; none where rows are few."""
    square = np.einsum("ij,ij->j", columns, columns) / len(columns)
    spread = np.sqrt(np.maximum(square - columns.mean(axis=0) ** 2, 0.0))
    varies = spread > 1e-6
    own = columns if varies.all() else columns[:, varies]
    own /= spread[varies]
    if own.shape[1] == 0 or len(own) <= num_regressors + 2 * own.shape[1]:
        return []
    return [score_p(own, column) for column in left.T]


def _orthonormal(base: np.ndarray) -> np.ndarray:
    """Orthonormal columns [n, r] that span those of a base [n, m]."""
    factor = np.linalg.qr(base, mode="r")
    _, singular, turned = np.linalg.svd(factor)
    real = singular > 1e-10 * singular[0]
    return base @ (turned[: len(singular)][real] / singular[real, None]).T


def score_p(columns: np.ndarray, residuals: np.ndarray) -> float:
    """Hotelling's test that the mean of the rows of columns [n, m] times residuals [n] is zero."""
    n, width = columns.shape
    total, gram = columns.T @ residuals, np.zeros((width, width))
    for start in range(0, n, ROWS_A_PRODUCT):
        scores = columns[start : start + ROWS_A_PRODUCT] * residuals[start : start + ROWS_A_PRODUCT, None]
        gram += scores.T @ scores
    rank = int(np.linalg.matrix_rank(gram, hermitian=True))
    if n <= rank + 1 or not rank:
        return 1.0
    share = float(np.clip(total @ np.linalg.pinv(gram, hermitian=True) @ total / n, 0.0, 1 - 1e-12))
    return float(fdtrc(rank, n - rank, share / (1 - share) * (n - rank) / rank))
