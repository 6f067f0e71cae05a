"""The base class of results: text, HTML, LaTeX, JSON, `report()`; text tables."""

import functools
import inspect
import json
import math
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, ParamSpec, TypeVar, final

from policyspace.errors import InputError, escaped, printable
from policyspace.runtime import object_at

if TYPE_CHECKING:
    import rich.table

    from policyspace.safe_io import JSON


# -- A table of words: the same columns and rows as text, on a terminal, in HTML and in Markdown.


@final
@dataclass(frozen=True)
class TextTable:
    """Columns by name, and rows of cells that are words already."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    @property
    def numbers(self) -> list[bool]:
        """Which columns hold numbers, which are aligned on the right."""
        return [
            place > 0 and any(cells) and all(_NUMBER.fullmatch(cell) for cell in cells)
            for place, cells in enumerate(zip(*self.rows, strict=True) if self.rows else [()] * len(self.columns))
        ]

    def text(self, ruled: bool = False) -> str:
        """Aligned lines under the names of the columns, with a rule between them if wanted."""
        lines = [[printable(cell) for cell in cells] for cells in (self.columns, *self.rows)]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        place = [str.rjust if number else str.ljust for number in self.numbers]
        text = [
            "  ".join(put(cell, width) for put, cell, width in zip(place, cells, widths, strict=True)).rstrip()
            for cells in lines
        ]
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
        for name, number in zip(self.columns, self.numbers, strict=True):
            justify: Literal["left", "right"] = "right" if number or name in right else "left"
            table.add_column(
                Text(printable(name)), justify=justify, no_wrap=not broken, overflow="fold" if broken else "ellipsis"
            )
        for i, row in enumerate(self.rows):
            cells = [Text(printable(cell)) for cell in row]  # as text: [brake] is no markup
            table.add_row(*cells, style=styles[i] if styles else None)
        return table


_NUMBER = re.compile(r"|–|unknown|[<≤≥±]? ?[-−+]?[\d.,]+(e[-−+]?\d+)?( to [\d.,]+)?( %| sd)?")
"""A cell that is aligned on the right."""


def _markdown(cell: str) -> str:
    return printable(cell).replace("|", "\\|").replace("<", "&lt;").replace("](", "]\\(")


# -- What every answer can do: show itself in a notebook, write itself for LaTeX, become a page, name the call behind it.

P = ParamSpec("P")
R = TypeVar("R")

LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    '"': "''", "λ": r"$\lambda$", "θ": r"$\theta$", "δ": r"$\delta$", "ω": r"$\omega$", "χ": r"$\chi$",
    "·": r"$\cdot$", "−": r"$-$", "≤": r"$\le$", "≥": r"$\ge$", "∞": r"$\infty$", "²": r"$^2$", "₀": r"$_0$",
    "‖": r"$\Vert$", "✓": r"$\checkmark$", "✗": r"$\times$", "–": "--", "—": "---", "…": r"\dots{}",
}  # fmt: skip
"""Characters that LaTeX reads as commands, or that its standard fonts do not have."""

LABEL = re.compile(r"[^\w .:/+*()-]")
"""What a key of LaTeX cannot hold."""

_POWER_OF_TEN = re.compile(r"(\d(?:\.\d+)?)e([+-]\d+)")


class Shown(ABC):
    """An answer in one sentence, a table, and what must be read with it."""

    page: ClassVar[str] = ""  # `module:function` that writes the parts of its page; none has no page
    made_by: str = ""  # the call or the command that makes it again, where that is known

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The answer in one plain sentence."""

    @abstractmethod
    def table(self) -> TextTable:
        """The rows under their columns."""

    @abstractmethod
    def notes(self) -> list[str]:
        """What must be read with the table."""

    def _repr_html_(self) -> str:
        """For notebooks."""
        table = self.table().html(attributes=" style='text-align:left'")
        notes = "".join(f"<div>{escaped(note)}</div>" for note in self.notes())
        return f"<p><b>{escaped(self.sentence)}</b></p>{table}{notes}"

    def to_latex(self, caption: str | None = None, label: str | None = None) -> str:
        """The table for LaTeX with the package booktabs; a caption or a label puts it into a `table` that floats.

        Of answers whose truth is known, ✓ needs the package amssymb. A label is a key, not text: what LaTeX would obey in it
        is written as `-`.
        """
        table = self.table()
        lines = [f"\\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}", r"\toprule"]
        lines += [" & ".join(map(latex, table.columns)) + r" \\", r"\midrule"]
        lines += [" & ".join([latex(name), *map(_latex_number, cells)]) + r" \\" for name, *cells in table.rows]
        lines += [r"\bottomrule", r"\end{tabular}"]
        if caption is not None or label is not None:
            return floating(lines, self.sentence if caption is None else caption, label)
        return "\n".join(lines) + "\n"

    def report(self, path: str | Path) -> Path:
        """Save a page (.html) that holds the answer, its picture and all that is behind it, and needs nothing else."""
        written: Path = object_at("policyspace.report.pages:write_report")(self, path)
        return written


class Answer(Shown):
    """An answer that will not change any more: also as text, and as plain data."""

    ruled: ClassVar[bool] = False  # whether a line stands under the names of the columns

    @abstractmethod
    def to_dict(self) -> "dict[str, JSON]":
        """Everything as plain data; what JSON cannot hold, such as an infinite effect, is None."""

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json_text(self.to_dict())

    def __str__(self) -> str:
        parts = [printable(self.sentence), "", self.table().text(self.ruled), "", *map(printable, self.notes())]
        return "\n".join(parts)


class Renamed:
    """An object whose attributes had other names before: for one release these are read with a warning."""

    renamed: ClassVar[Mapping[str, str]] = {}  # the older name, and where its value is now

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What an older name gave: lists, and sentences as text."""
            if name not in self.renamed:
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
            now = self.renamed[name]
            warnings.warn(f"{type(self).__name__}.{name} is now .{now}", DeprecationWarning, stacklevel=2)
            value = attrgetter(now)(self)
            return list(value) if isinstance(value, tuple) else getattr(value, "text", value)


def remembering_its_call(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, whose answer knows the call that makes it again."""
    names = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def call(*args: P.args, **given: P.kwargs) -> R:
        said = [_argument(name, value) for name, value in zip(names, args, strict=False)]
        said += [f"{name}={_argument(name, value)}" for name, value in given.items() if value is not None]
        answer = function(*args, **given)
        # Answers are frozen, but this one is not yet born: nobody has seen it without.
        object.__setattr__(answer, "made_by", f"policyspace.{function.__name__}({', '.join(said)})")
        return answer

    return call


def json_text(value: Any) -> str:
    """Plain data as JSON for people and programs."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def plain_data(value: Any) -> Any:
    """The same for JSON, in which infinities and NaN are null.

    Of a dataclass its fields, but those that do not count in comparisons; and its sentence, if it has a `text`.
    """
    if is_dataclass(value):
        found = {one.name: plain_data(getattr(value, one.name)) for one in fields(value) if one.compare}
        return found | ({"text": value.text} if hasattr(value, "text") else {})
    if isinstance(value, Mapping):
        return {name: plain_data(inside) for name, inside in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(inside) for inside in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float | str | None) else float(value)


def listed_names(names: Sequence[str]) -> str:
    """Names in a sentence: a, b and c; of many the first."""
    if len(names) > 12:
        return ", ".join(names[:10]) + f" and {len(names) - 10} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def frame_of(columns: Mapping[str, Sequence[Any]], pandas: bool) -> Any:
    """Columns as a table of polars or, if asked, of pandas."""
    if not pandas:
        from polars import DataFrame

        return DataFrame(columns)
    try:
        from pandas import DataFrame as PandasFrame
    except ImportError as error:
        raise InputError(
            "to_frame(pandas=True) needs pandas, which is not installed: pip install pandas, or leave it out."
        ) from error
    return PandasFrame(columns)


def latex(text: str) -> str:
    """Words as LaTeX shows them."""
    return "".join(LATEX.get(c, c) for c in printable(text))


def floating(lines: Sequence[str], caption: str | None, label: str | None) -> str:
    """A `tabular` in a `table` that floats."""
    title = [f"\\caption{{{latex(caption)}}}"] if caption is not None else []
    title += [f"\\label{{{LABEL.sub('-', label)}}}"] if label is not None else []
    return "\n".join([r"\begin{table}", r"\centering", *title, *lines, r"\end{table}"]) + "\n"


def _latex_number(text: str) -> str:
    """A cell, in which 1.2e-05 is a number times a power of ten."""
    return _POWER_OF_TEN.sub(lambda found: f"${found[1]} \\cdot 10^{{{int(found[2])}}}$", latex(text))


def _argument(name: str, value: Any) -> str:
    """A value as it would be typed, or the name of what is too large for that."""
    value = str(value) if isinstance(value, Path) else value
    return repr(value) if _plain(value) and len(repr(value)) <= 400 else name


def _plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_plain, value))
    if isinstance(value, dict):
        return all(map(_plain, [*value, *value.values()]))
    return value is None or isinstance(value, str | bool | int | float)
