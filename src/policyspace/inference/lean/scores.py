"""Scores: what is left of the actions times what is left of the tested inputs, summed over clusters of rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from policyspace.inference.lean.all_rows import MOST_ENTRIES, Source
from policyspace.inference.lean.bases import Basis
from policyspace.inference.lean.clusters import Clusters
from policyspace.inference.lean.moments import Projector
from policyspace.inference.lean.rows import Rows
from policyspace.inference.lean.sums import (
    CHUNK,
    FREQUENCIES,
    BasisMoments,
    ClusterSums,
    Directions,
    ExtraMoments,
    Look,
    StepMoments,
    Steps,
)

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


@dataclass(frozen=True)
class Plan:
    """How one support is scored: the columns that are regressed on, and how rows are looked at."""

    mask: np.ndarray
    projector: Projector
    look: Look


@dataclass(frozen=True)
class ClusterScores:
    """Sums [G, m] over clusters, which entries are linear use [m], and how many columns were regressed on."""

    sums: np.ndarray
    major: np.ndarray
    num_regressors: int


class Scorer:
    """Scores supports of one data set with one basis."""

    def __init__(self, rows: Rows, basis: Basis, source: Source) -> None:
        """`rows` at hand, and where all rows lie."""
        self.rows, self.basis, self.source = rows, basis, source
        width, (moments,) = basis.width, source.total(BasisMoments(basis))
        self.gram, self.cross, self._own = moments[:width, :width], moments[:width, width:], moments[width:, width:]
        linear = np.arange(width) <= rows.inputs.shape[1]
        weight = Projector(self.gram, linear).coefficients(self.cross)[1 : 1 + rows.inputs.shape[1]]
        self._importance = (weight**2).sum(axis=1)
        self._linear = linear

    def plan(self, kept: Sequence[int], tested: Sequence[int]) -> Plan:
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
        return Plan(mask, projector, Look(columns, slopes[:, alive], spread, self._directions(kept, columns)))

    def _directions(self, kept: Sequence[int], tested: np.ndarray) -> Directions:
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
        return Directions(np.sort(usable[: max(0, min(allowed, MOST_PARTNERS))]), pairs, waved)

    def cluster_scores(self, plans: Sequence[Plan], clusters: Sequence[Clusters]) -> list[ClusterScores]:
        """For every plan its scores summed over its clusters, several plans in two passes over the rows."""
        out: list[ClusterScores] = []
        start = 0
        while start < len(plans):
            sizes = [own.num * plan.look.num_entries for plan, own in zip(plans, clusters, strict=True)][start:]
            some = slice(start, start + max(1, int(np.sum(np.cumsum(sizes[:BATCH]) <= self.source.most_numbers))))
            out += self._batch(plans[some], clusters[some])
            start = some.stop
        return out

    def _batch(self, plans: Sequence[Plan], clusters: Sequence[Clusters]) -> list[ClusterScores]:
        looks = self._with_steps(plans)
        again, spreads = self._second_regressions(plans, looks)
        sums = self.source.total(
            ClusterSums(self.basis, looks, again, spreads, tuple(clusters)), any(own.by_owner for own in clusters)
        )
        return [
            ClusterScores(
                total[total.any(axis=1)] if total.any() else total,
                np.arange(total.shape[1]) < plan.look.num_actions * len(plan.look.tested),
                int(plan.mask.sum()) + (0 if look.steps is None else len(look.steps.source)),
            )
            for plan, look, total in zip(plans, looks, sums, strict=True)
        ]

    def _with_steps(self, plans: Sequence[Plan]) -> tuple[Look, ...]:
        """Looks that regress on steps of first fits, too: linear and whole ones of actions, whole ones of tested inputs."""
        every = self._steps(plans)
        looks = []
        for plan, steps, total in zip(plans, every, self.source.total(StepMoments(self.basis, every)), strict=True):
            look, num = plan.look, len(steps.source)
            cross, inner, acted = np.split(total, [self.basis.width, self.basis.width + num])
            together = Projector(
                np.block([[self.gram, cross], [cross.T, inner]]), np.append(plan.mask, np.ones(num, bool))
            )
            targets = np.hstack([self.cross, self.gram[:, 1 + look.tested]])
            beside = np.hstack([acted.T, cross[1 + look.tested].T])
            slopes, weights = np.split(together.coefficients(np.vstack([targets, beside])), [self.basis.width])
            gained = np.sum(slopes * targets, axis=0) + np.sum(weights * beside, axis=0)
            before = np.sum(look.slopes * targets, axis=0)
            spread = np.sqrt(np.maximum(look.spread**2 - (gained - before) / self.source.num_rows, NOTHING))
            looks.append(replace(look, slopes=slopes, spread=spread, steps=steps, weights=weights))
        return tuple(looks)

    def _steps(self, plans: Sequence[Plan]) -> tuple[Steps, ...]:
        """Steps at the quantiles of the first fits, where rows are."""
        num_actions = self.cross.shape[1]
        some = self.rows.inputs[:: max(1, self.rows.num // MOST_SORTED)]
        indexes = []
        for plan in plans:
            linear = Projector(self.gram, plan.mask & self._linear).coefficients(self.cross)
            indexes.append(np.hstack([linear, plan.look.slopes[:, : num_actions + MOST_STEPPED]]))
        fits = [np.empty((len(some), index.shape[1])) for index in indexes]
        for start in range(0, len(some), CHUNK):
            table = self.basis.columns(some[start : start + CHUNK])
            for index, fit in zip(indexes, fits, strict=True):  # one by one: the same bits in any company
                fit[start : start + CHUNK] = table @ index
        return tuple(self._at_quantiles(index, fit) for index, fit in zip(indexes, fits, strict=True))

    def _at_quantiles(self, index: np.ndarray, fit: np.ndarray) -> Steps:
        num = int(np.clip(self.rows.num // (ROWS_A_STEP * fit.shape[1]), *NUM_STEPS))
        centres = np.quantile(fit, (np.arange(num) + 0.5) / num, axis=0)
        widths = np.maximum(np.gradient(centres, axis=0), 1e-3) / 2
        return Steps(index, np.repeat(np.arange(fit.shape[1]), num), centres.T.ravel(), widths.T.ravel())

    def _second_regressions(
        self, plans: Sequence[Plan], looks: tuple[Look, ...]
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
