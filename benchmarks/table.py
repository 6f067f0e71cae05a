"""What every benchmark shares: a clock and a table of rows (what, measured, wanted)."""

import time
from collections.abc import Callable
from typing import Any

Row = tuple[str, str, str]


def clock(function: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """The shortest wall-clock time of some repeats, and the last result."""
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def show(title: str, rows: list[Row]) -> None:
    """Print the rows under a title."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, header_style="bold")
    for name in ("what", "measured", "wanted"):
        table.add_column(name)
    for row in rows:
        table.add_row(*row)
    Console(width=140).print(table)
