"""The order of rows: keys by which a table was sorted, and whether rows are in random order otherwise."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import gammaln

from policyspace.data.sample import Sample

CHANCE = 1e-6
"""The chance that a column of random order is sorted, below which it is a key."""

DRAWS, RANDOM = 199, 0.05
"""Random orders with which that of the rows is compared, and the share of them below which it is not random."""

FEWEST_PAIRS = 50
"""Neighbouring rows with equal keys, without which nothing is known of the order."""

MOST_PAIRS = 20_000
"""Rows that are looked at: the first, for keys need whole blocks."""

SEED = 0
"""Of the order in which rows without order are taken."""


def without_order(data: Sample) -> Sample:
    """The same rows in an order that is drawn, so that nothing depends on how they were sorted."""
    drawn = data.take(np.random.default_rng(SEED).permutation(data.num_rows))
    return replace(drawn, origin=replace(data.origin, exchangeable=True))


def sort_keys(data: Sample) -> tuple[str, ...]:
    """The columns by which a table was sorted, if its rows are in random order otherwise; empty where that is not known.

    A key is the action, or a category among the features, of which equal labels stand together in every block of rows with
    equal keys before it, as they hardly would by chance. Among rows with equal keys neither the features nor, unless it is a
    key, the action may depend on neighbours.
    """
    columns = _columns_of(data)
    blocks, keys = np.zeros(data.num_rows, dtype=np.int64), list[str]()
    while found := next((name for name in columns if name not in keys and _is_key(*columns[name], blocks)), None):
        keys.append(found)
        values = columns[found][0]
        changed = (values[1:] != values[:-1]) | (blocks[1:] != blocks[:-1])
        blocks = np.concatenate([[0], np.cumsum(changed)])
        rest = [values for name, (values, _) in columns.items() if name not in keys]
        if (blocks[1:] == blocks[:-1]).sum() < FEWEST_PAIRS or not rest:
            return ()
        if order_p(rest, blocks) > RANDOM:
            return tuple("the action" if name == ACTION else name for name in keys)
    return ()


ACTION = "\0action"
"""The name of the action among the columns, which no feature can have."""


def _columns_of(data: Sample) -> dict[str, tuple[np.ndarray, bool]]:
    """The columns of the table as numbers [n], and whether they are labels: the action first, then categories."""
    found, place = dict[str, tuple[np.ndarray, bool]](), {name: j for j, name in enumerate(data.names)}
    actions = np.asarray(data.actions, dtype=float)
    labels = actions.ndim == 1
    found |= {
        ACTION if labels else f"{ACTION}{j}": (column, labels) for j, column in enumerate(np.atleast_2d(actions.T))
    }
    for name, inside in data.blocks.items():
        found[name] = (data.features[:, [place[column] for column in inside]] @ (1.0 + np.arange(len(inside))), True)
    grouped = {column for inside in data.blocks.values() for column in inside}
    return found | {name: (data.features[:, j], False) for name, j in place.items() if name not in grouped}


def _is_key(values: np.ndarray, labels: bool, blocks: np.ndarray) -> bool:
    """Whether equal labels stand together in every block, and would hardly do so in random order."""
    if not labels:
        return False
    log_chance = 0.0
    for part in np.split(values, np.flatnonzero(blocks[1:] != blocks[:-1]) + 1):
        _, counts = np.unique(part, return_counts=True)
        if (part[1:] != part[:-1]).sum() != len(counts) - 1:
            return False
        log_chance += gammaln(counts + 1.0).sum() + gammaln(len(counts) + 1.0) - gammaln(len(part) + 1.0)
    return bool(log_chance < np.log(CHANCE))


def order_p(columns: Sequence[np.ndarray], blocks: np.ndarray) -> float:
    """How often random orders of the rows of each block make neighbours as alike as they are, in the column most so."""
    rows = slice(None, MOST_PAIRS)
    blocks = blocks[rows]
    _, first, counts = np.unique(blocks, return_index=True, return_counts=True)
    found = [np.unique(values[rows], return_inverse=True, return_counts=True)[1:] for values in columns]
    ranks = np.stack([(np.cumsum(sizes) - (sizes - 1) / 2)[place] for place, sizes in found], axis=1)
    sums = np.add.reduceat(ranks, first, axis=0)
    ranks = ranks - np.repeat(sums / counts[:, None], counts, axis=0)
    ranks = ranks[:, (ranks != 0).any(axis=0)]
    if not ranks.shape[1]:
        return 1.0
    inside = np.flatnonzero(blocks[1:] == blocks[:-1])
    rng = np.random.default_rng(SEED)

    def alike(order: np.ndarray) -> np.ndarray:
        moved = ranks[order]
        return np.asarray((moved[inside] * moved[inside + 1]).sum(axis=0))

    drawn = np.stack([alike(np.lexsort((rng.random(len(blocks)), blocks))) for _ in range(DRAWS)])
    size = np.maximum(drawn.std(axis=0), np.finfo(float).tiny)
    seen = np.abs((alike(np.arange(len(blocks))) - drawn.mean(axis=0)) / size).max()
    others = np.abs((drawn - drawn.mean(axis=0)) / size).max(axis=1)
    return float((1 + (others >= seen).sum()) / (DRAWS + 1))
