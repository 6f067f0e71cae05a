"""The one template of all pages: a file that needs nothing else, for screens in light and dark, phones, print and readers.

The same content gives the same bytes: no dates, no random identifiers.
"""

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from policyspace import __version__
from policyspace.data.whole_file import replacing
from policyspace.errors import InputError
from policyspace.printable import escaped
from policyspace.report.inline_svg import inline_svg
from policyspace.report.style import DARK, FAINT, INK, PAPER, QUIET, drawn
from policyspace.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_page(path: Path, title: str, body: Iterable[str]) -> None:
    """Save a page; it appears whole or not at all."""
    text = "\n".join([*_head(title), *body, "</main></body></html>"]) + "\n"
    with replacing(path) as out:
        out.write(text.encode("utf-8", "replace"))


def page_path(path: str | Path) -> Path:
    """Where a page is to be saved, refused unless the name says that it is one."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: a report is a page that browsers open: name it with .html at its end.")
    return Path(path)


def _head(title: str) -> Iterator[str]:
    light = " ".join(f"--{colour[1:]}: {colour};" for colour in DARK)
    dark = " ".join(f"--{colour[1:]}: {other};" for colour, other in DARK.items())
    names = {"paper": PAPER, "ink": INK, "soft": QUIET, "line": FAINT}
    named = " ".join(f"--{name}: var(--{colour[1:]});" for name, colour in names.items())
    yield "<!DOCTYPE html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield '<link rel="icon" href="data:,">'  # without it a browser asks the network for one
    yield f"<title>policyspace: {escaped(title)}</title>"
    yield f"<style>\n:root {{ {light} {named} }}"
    yield f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
    yield f"{files('policyspace.report').joinpath('page.css').read_text('utf-8')}</style>"
    yield "</head><body><main>"


def header(title: str, lead: str, kind: str = "", version: str = __version__) -> str:
    """The head of a page as a reader sees it; `lead` is HTML."""
    over = f"policyspace {version}" + (f" · {kind}" if kind else "")
    return f'<header><p class="over">{escaped(over)}</p><h1>{escaped(title)}</h1><p class="lead">{lead}</p></header>'


def section(title: str, *content: str) -> str:
    """A part of a page under its heading."""
    anchor = "".join(c if c.isalnum() else "-" for c in title.lower())
    inside = "\n".join(content)
    return (
        f'<section class="panel" aria-labelledby="{anchor}"><h2 id="{anchor}">{escaped(title)}</h2>\n{inside}</section>'
    )


def paragraph(words: str) -> str:
    """Words as a paragraph."""
    return f"<p>{escaped(words)}</p>"


def banner(notes: Iterable[str]) -> Iterator[str]:
    """What a reader must know before believing a number; the notes are HTML."""
    if inside := "".join(f"<p>{note}</p>" for note in notes):
        yield f'<aside class="banner" role="note">{inside}</aside>'


def badge(kind: str, mark: str, words: str) -> str:
    """A verdict in words, with a mark and a colour: "good", "fair", "bad" or "plain"."""
    return f'<span class="badge {kind}"><span aria-hidden="true">{mark}</span> {escaped(words)}</span>'


def picture(figure: "Figure", name: str, alternative: str) -> str:
    """A figure as a part of the page, with words for those who do not see it."""
    out = io.BytesIO()
    drawn(figure, out, "svg")
    return framed(inline_svg(out.getvalue().decode(), name, alternative), alternative)


def framed(svg: str, label: str) -> str:
    """A figure that scrolls in its own box where it is too wide."""
    return f"<figure>{sideways(svg, f'Figure: {label}')}</figure>"


def sideways(content: str, label: str) -> str:
    """A box that scrolls alone where its content is too wide, by keys too."""
    name = escaped(label)
    return f'<div class="sideways" role="region" aria-label="{name}" tabindex="0">{content}</div>'


def table(content: Table, caption: str, marks: Mapping[str, str] | None = None) -> str:
    """A table in a box of its own; cells that are among the `marks` are shown as that HTML."""
    known = marks or {}
    shown = content.html(caption, heading=_heading, cell=lambda cell: known.get(cell) or _unbroken(cell))
    return sideways(shown, f"Table: {caption}")


def settings_list(named: Mapping[str, str]) -> str:
    """Settings line by line."""
    inside = "".join(f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}</dd></div>" for name, value in named.items())
    return f'<dl class="settings">{inside}</dl>'


def ending(settings: Mapping[str, str], made_by: str, words: str) -> Iterator[str]:
    """The end of every page: the settings, the line that makes the same again where it is known, and the last words."""
    yield section("Settings", settings_list(settings))
    if made_by:
        yield section("Make it again", f'<pre class="again" tabindex="0"><code>{escaped(made_by)}</code></pre>')
    yield footer(words)


def footer(words: str) -> str:
    """The last words of a page."""
    return f"<footer>{paragraph(words)}</footer>"


def _unbroken(words: str) -> str:
    """Numbers stay with their margins and intervals on one line; a long cell may break before a parenthesis."""
    if len(words) > 60:
        return f'<span class="long">{escaped(words)}</span>'
    pieces = [words] if len(words) <= 16 else re.split(r" (?=\()", words)
    return " ".join(_whole_line(piece) if len(piece) <= 24 else escaped(piece) for piece in pieces)


def _whole_line(words: str) -> str:
    return f'<span class="line">{escaped(words)}</span>'


def _heading(words: str) -> str:
    """A column's name may break between words, but not inside a parenthesis."""
    pieces = re.split(r" (?=\()", words)
    return " ".join(_whole_line(piece) if piece.startswith("(") else escaped(piece) for piece in pieces)
