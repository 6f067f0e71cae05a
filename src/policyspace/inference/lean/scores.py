"""Scores: what is left of the actions times what is left of the tested inputs, summed over clusters of rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policyspace.inference.lean.bases import Basis
from policyspace.inference.lean.moments import Projector, chunks
from policyspace.inference.lean.rows import Rows

DETERMINED = 1e-4
"""An input of which the others leave less than this share of its variance cannot be tested."""

NOTHING = 1e-10
"""Actions of which less than this share of the variance is left are rounding."""

MOST_ENTRIES = 300
"""Entries of a score vector: beyond, interactions and products of tested inputs are dropped."""

MOST_PARTNERS = 16
FEW_TESTED = 6
"""Up to so many tested inputs, products of each two and waves of each are looked at, too."""

FREQUENCIES = (1.5, 3.0)
CLIP = 3.0
BATCH = 24
"""Supports that are scored in one pass over the rows."""


@dataclass(frozen=True)
class Plan:
    """How one support is scored: what is regressed on its columns, and the directions in which use is looked for."""

    mask: np.ndarray
    projector: Projector
    tested: np.ndarray
    """Tested inputs of which something is left [c]."""
    slopes: np.ndarray
    """Coefficients of the actions, then of the tested inputs [P, k + c]."""
    spread: np.ndarray
    """Standard deviations of what is left of them [k + c]."""
    directions: "Directions"

    @property
    def num_minor(self) -> int:
        """Directions beside the tested inputs themselves."""
        found = self.directions
        waves = 2 * len(FREQUENCIES) * len(found.waved)
        return len(self.tested) * len(found.partners) + len(found.pairs[0]) + waves


@dataclass(frozen=True)
class Directions:
    """Where use is looked for beside the tested inputs themselves."""

    partners: np.ndarray
    """Kept inputs that each tested one is multiplied by."""
    pairs: tuple[np.ndarray, np.ndarray]
    """Positions of tested inputs that are multiplied by each other."""
    waved: np.ndarray
    """Tested inputs whose sines and cosines are taken."""


@dataclass(frozen=True)
class ClusterScores:
    """Sums [G, m] over clusters, which entries are linear use [m], and how many columns were regressed on."""

    sums: np.ndarray
    major: np.ndarray
    num_regressors: int


class Scorer:
    """Scores supports of one data set with one basis whose moments are known."""

    def __init__(self, rows: Rows, basis: Basis, moments: np.ndarray) -> None:
        """`moments` of the basis and the actions, over all rows [P+k, P+k]."""
        self.rows, self.basis = rows, basis
        width = basis.width
        self.gram, self.cross, self._own = moments[:width, :width], moments[:width, width:], moments[width:, width:]
        linear = np.arange(width) <= rows.inputs.shape[1]
        weight = Projector(self.gram, linear).coefficients(self.cross)[1 : 1 + rows.inputs.shape[1]]
        self._importance = (weight**2).sum(axis=1)

    def plan(self, kept: Sequence[int], tested: Sequence[int]) -> Plan:
        """Score `tested` inputs given those `kept` (column indexes)."""
        mask = self.basis.within(kept)
        projector = Projector(self.gram, mask)
        columns = np.array(sorted(tested), dtype=np.intp)
        cross = np.hstack([self.cross, self.gram[:, 1 + columns]])
        own = np.concatenate([np.diag(self._own), np.diag(self.gram)[1 + columns]])
        slopes = projector.coefficients(cross)
        left = own - 2 * np.sum(slopes * cross, axis=0) + np.sum(slopes * (self.gram @ slopes), axis=0)
        left = np.maximum(left / self.rows.num, 0.0)
        num_actions = self.cross.shape[1]
        alive = np.concatenate([np.ones(num_actions, bool), left[num_actions:] > DETERMINED])
        columns = columns[alive[num_actions:]]
        spread = np.where(left[alive] > NOTHING, np.sqrt(np.maximum(left[alive], NOTHING)), np.inf)
        return Plan(mask, projector, columns, slopes[:, alive], spread, self._directions(kept, columns))

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

    def cluster_scores(self, plans: Sequence[Plan], clusters: Sequence[np.ndarray]) -> list[ClusterScores]:
        """For every plan its scores summed over its clusters (codes 0, 1, … that never fall from row to row)."""
        out: list[ClusterScores] = []
        for start in range(0, len(plans), BATCH):
            out += self._batch(plans[start : start + BATCH], clusters[start : start + BATCH])
        return out

    def _batch(self, plans: Sequence[Plan], clusters: Sequence[np.ndarray]) -> list[ClusterScores]:
        again, spreads = self._second_regressions(plans)
        first = np.hstack([plan.slopes for plan in plans])
        second = np.hstack(again)
        num_actions = self.cross.shape[1]
        sums = [
            np.zeros((int(codes[-1]) + 1, num_actions * (2 * len(plan.tested) + plan.num_minor)))
            for plan, codes in zip(plans, clusters, strict=True)
        ]
        for part in chunks(self.rows.num):
            table = self.basis.columns(self.rows.inputs[part])
            fitted, refitted = table @ first, table @ second
            at = at_second = 0
            for plan, spread, codes, total in zip(plans, spreads, clusters, sums, strict=True):
                wide, wide_second = plan.slopes.shape[1], plan.num_minor + num_actions
                left = self._left(plan, part, fitted[:, at : at + wide])
                extra = (self._extra(plan, part, left) - refitted[:, at_second : at_second + wide_second]) / spread
                add_by_cluster(total, codes[part], products(left, extra, num_actions))
                at, at_second = at + wide, at_second + wide_second
        majors = [
            np.arange(total.shape[1]) < num_actions * len(plan.tested) for plan, total in zip(plans, sums, strict=True)
        ]
        return [
            ClusterScores(total, major, int(plan.mask.sum()))
            for plan, total, major in zip(plans, sums, majors, strict=True)
        ]

    def _left(self, plan: Plan, part: slice, fitted: np.ndarray) -> np.ndarray:
        """What is left of the actions and of the tested inputs, in standard deviations [rows, k + c]."""
        seen = np.hstack([self.rows.actions[part], self.rows.inputs[part][:, plan.tested]])
        return (seen - fitted) / plan.spread

    def _extra(self, plan: Plan, part: slice, left: np.ndarray) -> np.ndarray:
        """Interactions, products and waves of tested inputs, and the size of what is left of the actions."""
        num_actions = self.cross.shape[1]
        tested, found = left[:, num_actions:], plan.directions
        partners = np.clip(self.rows.inputs[part][:, found.partners], -CLIP, CLIP)
        crossed = (tested[:, :, None] * partners[:, None, :]).reshape(len(left), -1)
        clipped = np.clip(tested, -CLIP, CLIP)
        even = clipped[:, found.pairs[0]] * clipped[:, found.pairs[1]]
        waved = np.clip(self.rows.inputs[part][:, found.waved], -CLIP, CLIP)
        waves = [wave(frequency * waved) for frequency in FREQUENCIES for wave in (np.sin, np.cos)]
        return np.hstack([crossed, even, *waves, np.abs(left[:, :num_actions])])

    def _second_regressions(self, plans: Sequence[Plan]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Coefficients of the extra columns on each plan's own basis columns, and the spread of what is left."""
        first = np.hstack([plan.slopes for plan in plans])
        num_actions = self.cross.shape[1]
        widths = [plan.num_minor + num_actions for plan in plans]
        cross = np.zeros((self.basis.width, sum(widths)))
        squares = np.zeros(sum(widths))
        for part in chunks(self.rows.num):
            table = self.basis.columns(self.rows.inputs[part])
            fitted = table @ first
            columns, at = [], 0
            for plan in plans:
                wide = plan.slopes.shape[1]
                columns.append(self._extra(plan, part, self._left(plan, part, fitted[:, at : at + wide])))
                at += wide
            extra = np.hstack(columns)
            cross += table.T @ extra
            squares += np.einsum("ij,ij->j", extra, extra)
        slopes, spreads, at = [], [], 0
        for plan, wide in zip(plans, widths, strict=True):
            inner = cross[:, at : at + wide]
            found = plan.projector.coefficients(inner)
            left = squares[at : at + wide] - 2 * np.sum(found * inner, 0) + np.sum(found * (self.gram @ found), 0)
            left = left / self.rows.num
            slopes.append(found)
            spreads.append(np.where(left > DETERMINED**2, np.sqrt(np.maximum(left, DETERMINED**2)), np.inf))
            at += wide
        return slopes, spreads


def products(left: np.ndarray, extra: np.ndarray, num_actions: int) -> np.ndarray:
    """Score rows [n, m]: tested ⊗ actions, then the other directions ⊗ actions, then tested ⊗ size of the actions."""
    actions, tested = left[:, :num_actions], left[:, num_actions:]
    minor, size = extra[:, : extra.shape[1] - num_actions], extra[:, extra.shape[1] - num_actions :]
    parts = [(tested, actions), (minor, actions), (tested, size)]
    return np.hstack([(a[:, :, None] * b[:, None, :]).reshape(len(left), -1) for a, b in parts])


def add_by_cluster(total: np.ndarray, codes: np.ndarray, rows: np.ndarray) -> None:
    """Add rows to the total of their cluster; codes never fall."""
    if not rows.shape[1]:
        return
    starts = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1])
    total[codes[starts]] += np.add.reduceat(rows, starts, axis=0)
