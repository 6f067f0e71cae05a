"""Simulated trials of mice that turn a wheel to the side of a grating: a file as laboratories keep it."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import polars

SEED = 7
NUM_MICE, SESSIONS, TRIALS = 12, 4, 60
IDLE = ("m04", "m11")
"""Mice that never look at the grating."""


def trials() -> "polars.DataFrame":
    """One row a trial; every mouse has a bias, a habit and (but two) a use for the contrast; nobody minds the tone."""
    import polars

    rng = np.random.default_rng(SEED)
    rows = []
    for number in range(1, NUM_MICE + 1):
        mouse = f"m{number:02d}"
        look = 0.0 if mouse in IDLE else rng.uniform(1.2, 2.4)
        bias, habit = rng.normal(0, 0.3), rng.uniform(0.3, 1.0)
        for session in range(1, SESSIONS + 1):
            last = 0.0
            for trial in range(1, TRIALS + 1):
                contrast, tone = rng.choice([-1.0, -0.5, -0.25, 0.25, 0.5, 1.0]), rng.choice(["high", "low"])
                right = rng.random() < 1 / (1 + np.exp(-(look * contrast + bias + habit * last)))
                last = 1.0 if right else -1.0
                side = "right" if right else "left"
                rows.append((mouse, f"{mouse}-{session}", trial, contrast, tone, side, int(last * contrast > 0)))
    names = ["mouse", "session", "trial", "contrast", "tone", "choice", "reward"]
    return polars.DataFrame(rows, schema=names, orient="row")
