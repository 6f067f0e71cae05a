"""What every answer can do: show itself in a notebook, write itself for LaTeX, become a page, name the call behind it."""

import functools
import inspect
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, ParamSpec, TypeVar

from policyspace.printable import escaped, printable
from policyspace.table import Table

P = ParamSpec("P")
R = TypeVar("R")

LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    '"': "''", "λ": r"$\lambda$", "θ": r"$\theta$", "δ": r"$\delta$", "ω": r"$\omega$", "χ": r"$\chi$",
    "·": r"$\cdot$", "−": r"$-$", "≤": r"$\le$", "≥": r"$\ge$", "∞": r"$\infty$", "²": r"$^2$", "₀": r"$_0$",
    "✓": r"$\checkmark$", "✗": r"$\times$", "–": "--", "—": "---", "…": r"\dots{}",
}  # fmt: skip
"""Characters that LaTeX reads as commands, or that its standard fonts do not have."""

_POWER_OF_TEN = re.compile(r"(\d(?:\.\d+)?)e([+-]\d+)")


class Shown(ABC):
    """An answer in one sentence, a table, and what must be read with it."""

    made_by: str = ""  # the call or the command that makes it again, where that is known

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The answer in one plain sentence."""

    @abstractmethod
    def table(self) -> Table:
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

        Of answers whose truth is known, ✓ needs the package amssymb.
        """
        table = self.table()
        lines = [f"\\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}", r"\toprule"]
        lines += [" & ".join(map(latex, table.columns)) + r" \\", r"\midrule"]
        lines += [" & ".join([latex(name), *map(_latex_number, cells)]) + r" \\" for name, *cells in table.rows]
        lines += [r"\bottomrule", r"\end{tabular}"]
        if caption is not None or label is not None:
            title = [f"\\caption{{{latex(self.sentence if caption is None else caption)}}}"]
            title += [f"\\label{{{label}}}"] if label is not None else []
            lines = [r"\begin{table}", r"\centering", *title, *lines, r"\end{table}"]
        return "\n".join(lines) + "\n"

    def report(self, path: str | Path) -> Path:
        """Save a page (.html) that holds the answer, its picture and all that is behind it, and needs nothing else."""
        # The one import against the arrows: whoever holds an answer asks it for its page.
        from policyspace.report.reports import write_report

        return write_report(self, path)


class Answer(Shown):
    """An answer that will not change any more: also as text, and as plain data."""

    ruled: ClassVar[bool] = False  # whether a line stands under the names of the columns

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data; what JSON cannot hold, such as an infinite effect, is None."""

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json_text(self.to_dict())

    def __str__(self) -> str:
        parts = [printable(self.sentence), "", self.table().text(self.ruled), "", *map(printable, self.notes())]
        return "\n".join(parts)


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
    """The same for JSON, in which infinities and NaN are null."""
    if isinstance(value, dict):
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


def latex(text: str) -> str:
    """Words as LaTeX shows them."""
    return "".join(LATEX.get(c, c) for c in printable(text))


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
