"""Columns that are no sensors: rewards, ends of episodes, counters and row numbers; and columns that look like episodes."""

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars

PATTERNS = (
    "reward", "rewards", "done", "dones", "terminated", "truncated", "terminal", "terminals", "timeout", "timeouts",
    "next_*", "timestep", "timesteps", "step", "steps", "episode*", "timestamp", "timestamps", "info*", "seed",
    "", "unnamed:*", "__index_level_*",
)  # fmt: skip
"""Names, whatever their case, of what a recorder writes beside the state; the last three are those of nameless columns."""

CLOCKS = ("t", "time")
"""Names that may be a sensor: bookkeeping only where they grow from every row to the next."""

FEWEST_ROWS = 10
"""In fewer rows, 0, 1, 2, … may well be a sensor."""

LONG_RUN = 5
"""Rows that a value of an episode-like column lasts, on average."""


def is_bookkeeping(series: "polars.Series") -> bool:
    """Is this column about the recording, by its name or because it numbers the rows?"""
    name = series.name.strip().lower()
    if any(fnmatchcase(name, pattern) for pattern in PATTERNS):
        return True
    return _numbers_rows(series) or (name in CLOCKS and _grows(series))


def looks_like_episodes(series: "polars.Series") -> bool:
    """Does it hold each of its values through one long run, or count runs up, perhaps beginning again at the first?"""
    if not _orders(series) or len(series) < 3 * LONG_RUN:
        return False
    runs = series.rle().struct.field("value")
    if len(runs) * LONG_RUN > len(series) or series.n_unique() < 3:
        return False
    if len(runs) == series.n_unique():
        return True
    steps = runs.diff().drop_nulls() if runs.dtype.is_integer() else None
    return steps is not None and bool(((steps == 1) | (runs[1:] == runs[0])).all())


def _numbers_rows(series: "polars.Series") -> bool:
    """Is it 0, 1, 2, … or 1, 2, 3, …?"""
    whole = series.dtype.is_integer() and not series.null_count()
    return whole and len(series) >= FEWEST_ROWS and series[0] in (0, 1) and bool((series.diff()[1:] == 1).all())


def _grows(series: "polars.Series") -> bool:
    return _orders(series) and len(series) > 1 and bool((series[1:] > series[:-1]).all())


def _orders(series: "polars.Series") -> bool:
    """Is it complete, and of a type with an order that tells more than two values apart?"""
    import polars

    return not (series.null_count() or series.dtype.is_nested() or series.dtype in (polars.Boolean, polars.Object))
