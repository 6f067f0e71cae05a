"""The sums over rows that the test is made of: functions of blocks of standardised rows, small enough to travel to them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from policyspace.data.blocks import Block
from policyspace.inference.lean.bases import Basis
from policyspace.inference.lean.clusters import Clusters

CHUNK = 4096
"""Rows that are expanded into columns at a time."""

FREQUENCIES = (1.5, 3.0)
CLIP = 3.0


def chunks(block: Block) -> Iterator[tuple[slice, Block]]:
    """The rows of a block, so many at a time."""
    for start in range(0, len(block), CHUNK):
        part = slice(start, min(start + CHUNK, len(block)))
        yield part, Block(block.features[part], block.actions[part])


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
class Steps:
    """Labels, and actions at a bound, change faster than curves of the inputs can: steps of first fits can, too."""

    index: np.ndarray
    """Coefficients of first fits of the actions and of tested inputs [P, i]."""
    source: np.ndarray
    """Which fit each step is of [m]."""
    centre: np.ndarray
    """Where it rises [m]."""
    width: np.ndarray
    """How slowly [m]."""

    def columns(self, first: np.ndarray) -> np.ndarray:
        """Steps [rows, m] of the first fits."""
        return 1 / (1 + np.exp(np.clip((self.centre - first[:, self.source]) / self.width, -50.0, 50.0)))


@dataclass(frozen=True)
class Look:
    """What one support makes of a row: what is left of actions and tested inputs, and the directions of use."""

    tested: np.ndarray
    """Tested inputs of which something is left [c]."""
    slopes: np.ndarray
    """Coefficients of the actions, then of the tested inputs [P, k + c]."""
    spread: np.ndarray
    """Standard deviations of what is left of them [k + c]."""
    directions: Directions
    steps: Steps | None = None
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

    def fitted(self, table: np.ndarray, products: np.ndarray) -> np.ndarray:
        """Actions and tested inputs [rows, k + c], from the basis' columns and their products with the slopes."""
        if self.steps is None:
            return products
        # By themselves, not beside other looks: steps are steep, and must have the same bits in any company.
        return products + self.steps.columns(table @ self.steps.index) @ self.weights

    def left(self, rows: Block, fitted: np.ndarray) -> np.ndarray:
        """What is left of the actions and of the tested inputs, in standard deviations [rows, k + c]."""
        seen = np.hstack([rows.actions, rows.features[:, self.tested]])
        return (seen - fitted) / self.spread

    def extra(self, rows: Block, left: np.ndarray) -> np.ndarray:
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

    def __call__(self, block: Block) -> tuple[np.ndarray]:
        """A sum over rows."""
        total = np.zeros((self.basis.width + block.actions.shape[1],) * 2)
        for _, rows in chunks(block):
            table = np.hstack([self.basis.columns(rows.features), rows.actions])
            total += table.T @ table
        return (total,)


@dataclass(frozen=True)
class StepMoments:
    """Products [P + m + k, m] of the basis' columns, the steps of a look and the actions with those steps."""

    basis: Basis
    steps: tuple[Steps, ...]

    def __call__(self, block: Block) -> tuple[np.ndarray, ...]:
        """A sum over rows."""
        beside = self.basis.width + block.actions.shape[1]
        totals = tuple(np.zeros((beside + len(own.source), len(own.source))) for own in self.steps)
        for _, rows in chunks(block):
            table = self.basis.columns(rows.features)
            for own, total in zip(self.steps, totals, strict=True):
                steps = own.columns(table @ own.index)
                total += np.hstack([table, steps, rows.actions]).T @ steps
        return totals


@dataclass(frozen=True)
class ExtraMoments:
    """Products of the basis' columns with the extra columns of several looks [P, e], and the squares of these [e]."""

    basis: Basis
    looks: tuple[Look, ...]

    def __call__(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        """A sum over rows."""
        width = sum(look.num_extra for look in self.looks)
        cross, squares = np.zeros((self.basis.width, width)), np.zeros(width)
        slopes = [look.slopes for look in self.looks]
        for _, rows in chunks(block):
            table = self.basis.columns(rows.features)
            every = zip(self.looks, _side_by_side(table, slopes), strict=True)
            extra = np.hstack([look.extra(rows, look.left(rows, look.fitted(table, found))) for look, found in every])
            cross += table.T @ extra
            squares += np.einsum("ij,ij->j", extra, extra)
        return cross, squares


@dataclass(frozen=True)
class ClusterSums:
    """The scores of several looks, each summed over clusters of its own [G, m]."""

    basis: Basis
    looks: tuple[Look, ...]
    again: tuple[np.ndarray, ...]
    """Coefficients of the extra columns of each [P, e]."""
    spreads: tuple[np.ndarray, ...]
    """Standard deviations of what is left of them [e]."""
    clusters: tuple[Clusters, ...]

    def __call__(self, block: Block) -> tuple[np.ndarray, ...]:
        """A sum over rows."""
        sums = tuple(np.zeros((own.num, look.num_entries)) for look, own in zip(self.looks, self.clusters, strict=True))
        known = {own: own.codes(block) for own in self.clusters}
        slopes = [look.slopes for look in self.looks]
        for part, rows in chunks(block):
            table = self.basis.columns(rows.features)
            first, second = _side_by_side(table, slopes), _side_by_side(table, self.again)
            for number, (look, own) in enumerate(zip(self.looks, self.clusters, strict=True)):
                left = look.left(rows, look.fitted(table, first[number]))
                extra = (look.extra(rows, left) - second[number]) / self.spreads[number]
                add_by_cluster(sums[number], known[own][part], products(left, extra, look.num_actions))
        return sums


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
