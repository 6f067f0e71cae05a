"""An answer on the screen: a sentence, a table, and what must be read with it."""

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from policyspace.table import Table


def show(
    sentence: str, table: "Table", notes: Sequence[str], right: Container[str], styles: Sequence[str] = ()
) -> None:
    """Print them; a number is never cut short, a narrow window wraps the line instead."""
    from rich.console import Console

    console = Console(highlight=False)
    console.print(sentence, style="bold", markup=False, soft_wrap=True)
    shown = table.rich(right, styles, header_style="dim")
    needed = console.measure(shown, options=console.options.update(max_width=1000)).maximum
    Console(highlight=False, width=max(console.width, needed)).print(shown)
    for note in notes:
        console.print(note, style="yellow" if note.startswith("Warning") else None, markup=False, soft_wrap=True)
