"""A table of words: the same columns and rows as text, on a terminal, in HTML and in Markdown."""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

from policyspace.printable import escaped, printable

if TYPE_CHECKING:
    import rich.table


@final
@dataclass(frozen=True)
class Table:
    """Columns by name, and rows of cells that are words already."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self, ruled: bool = False) -> str:
        """Aligned lines under the names of the columns, with a rule between them if wanted."""
        lines = [[printable(cell) for cell in cells] for cells in (self.columns, *self.rows)]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        text = ["  ".join(map(str.ljust, cells, widths)).rstrip() for cells in lines]
        rule = ["  ".join("─" * width for width in widths)] if ruled else []
        return "\n".join([text[0], *rule, *text[1:]])

    def markdown(self) -> str:
        """Lines of a Markdown table, whose words are neither HTML nor links."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "\n".join("| " + " | ".join(map(_markdown, cells)) + " |" for cells in lines)

    def html(
        self,
        caption: str = "",
        attributes: str = "",
        heading: Callable[[str], str] = escaped,
        cell: Callable[[str], str] = escaped,
    ) -> str:
        """A <table> whose first cells head their rows; `heading` and `cell` turn words into HTML."""
        title = f"<caption>{escaped(caption)}</caption>" if caption else ""
        names = "".join(f'<th scope="col"{attributes}>{heading(name)}</th>' for name in self.columns)
        body = [
            f'<tr><th scope="row"{attributes}>{escaped(first)}</th>'
            + "".join(f"<td{attributes}>{cell(words)}</td>" for words in rest)
            + "</tr>"
            for first, *rest in self.rows
        ]
        return "\n".join([f"<table>{title}<thead><tr>", names, "</tr></thead><tbody>", *body, "</tbody></table>"])

    def rich(
        self, right: Container[str] = (), styles: Sequence[str] = (), broken: bool = False, **options: Any
    ) -> "rich.table.Table":
        """For a terminal: columns on the `right`, a style a row, cells that may be `broken` into several lines."""
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(**{"box": None, "pad_edge": False} | options)
        for name in self.columns:
            justify: Literal["left", "right"] = "right" if name in right else "left"
            table.add_column(
                Text(printable(name)), justify=justify, no_wrap=not broken, overflow="fold" if broken else "ellipsis"
            )
        for i, row in enumerate(self.rows):
            cells = [Text(printable(cell)) for cell in row]  # as text: [brake] is no markup
            table.add_row(*cells, style=styles[i] if styles else None)
        return table


def _markdown(cell: str) -> str:
    return printable(cell).replace("|", "\\|").replace("<", "&lt;").replace("](", "]\\(")
