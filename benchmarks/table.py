"""What every benchmark shares: a clock and a table of rows (what, measured, wanted)."""

import time
from collections.abc import Callable
from typing import Any

from policyspace.display import TextTable

Row = tuple[str, str, str]


def clock(
    function: Callable[[], Any], repeats: int = 1, timer: Callable[[], float] = time.perf_counter
) -> tuple[float, Any]:
    """The shortest time of some repeats, by the wall clock unless another timer is given, and the last result."""
    best, result = float("inf"), None
    for _ in range(repeats):
        start = timer()
        result = function()
        best = min(best, timer() - start)
    return best, result


def show(title: str, rows: list[Row]) -> None:
    """Print the rows under a title."""
    from rich.console import Console

    table = TextTable(("what", "measured", "wanted"), rows)
    shown = table.rich(broken=True, title=title, title_justify="left", header_style="bold", pad_edge=True)
    Console(width=140).print(shown)
