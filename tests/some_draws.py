"""Rows with drawn readings, for tests that need some; and what chance allows."""

import numpy as np
from scipy.stats import binom

from policyspace.inference import DrawnRows


def drawn_rows(agent, n, seed, q=4, candidates=4, share=0.2, caused=False):
    """Normal readings, of which a share is one of so many others; `agent` acts on what is delivered [n, q].

    `caused`: the true readings are driven by the walk that drives the actions.
    """
    rng = np.random.default_rng(seed)
    readings = rng.normal(size=(n, q, 1 + candidates))
    if caused:
        readings[..., 0] += np.cumsum(np.random.default_rng([seed, 1]).normal(size=n))[:, None]
    chances = np.full((n, 1 + candidates), share / candidates)
    chances[:, 0] = 1 - share
    asked = rng.random((n, q)) < share
    drawn = np.where(asked, rng.integers(1, 1 + candidates, (n, q)), 0)
    seen = np.take_along_axis(readings, drawn[..., None], 2)[..., 0]
    actions = agent(seen, np.random.default_rng([seed, 1]))
    starts = np.arange(n) % 200 == 0
    return DrawnRows(
        seen, actions, [readings[:, j, :, None] for j in range(q)], [chances] * q, drawn, starts, np.zeros(n, dtype=int)
    )


def most_false(runs, level):
    """The largest number of errors that a rate of at most `level` allows, but for one case in a thousand."""
    return int(binom.isf(1e-3, runs, level))
