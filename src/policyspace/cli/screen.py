"""All that commands print: lines and tables in which names are names, whatever characters they hold."""

import sys
from collections.abc import Container, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from policyspace.errors import InputError
from policyspace.printable import printable, safe_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import Console

    from policyspace.shown import Shown
    from policyspace.table import Table


class ReaderGone(Exception):
    """Nobody reads the output any more, as after `| head`: the command ends, and that is no error."""


class Stopped(Exception):
    """Ctrl-C, and what the user should know then, in a sentence."""


def new_console(stderr: bool = False, width: int | None = None) -> "Console":
    """The screen, where nothing in a text is taken for a colour or an emoji."""
    from rich.console import Console

    class Screen(Console):
        def on_broken_pipe(self) -> None:
            raise ReaderGone

    return Screen(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)


def say(console: "Console", text: str, style: str | None = None, wrap: bool = False) -> None:
    """One line as it is, never cut short; `wrap` breaks it between words, for prose."""
    from rich.text import Text

    with _written():
        console.print(Text(printable(text)), style=style, soft_wrap=not wrap)


def show_table(console: "Console", table: "Table", **options: Any) -> None:
    """A table as wide as the window allows, its cells broken where they must be."""
    with _written():
        console.print(table.rich(broken=True, **options))


def show(answer: "Shown", right: Container[str], styles: Sequence[str] = ()) -> None:
    """An answer: its sentence, its table, what must be read with it."""
    show_parts(answer.sentence, answer.table(), answer.notes(), right, styles)


def show_parts(
    sentence: str, table: "Table", notes: Sequence[str], right: Container[str], styles: Sequence[str] = ()
) -> None:
    """The parts of an answer; a number is never cut short, a narrow window wraps the line."""
    console = new_console()
    say(console, sentence, style="bold")
    shown = table.rich(right, styles, header_style="dim")
    needed = console.measure(shown, options=console.options.update(max_width=1000)).maximum
    with _written():
        new_console(width=max(console.width, needed)).print(shown)
    for note in notes:
        say(console, note, style="yellow" if note.startswith("Warning") else None)


def show_saved(paths: "Iterable[str | Path | None]") -> None:
    """Where files were saved."""
    console = new_console()
    for path in paths:
        if path is not None:
            say(console, f"Saved {path}")


def show_json(text: str) -> None:
    """JSON for a program, which may be a terminal too."""
    with _written():
        sys.stdout.write(safe_json(text) + "\n")


@contextmanager
def _written() -> "Iterator[None]":
    """A full disk behind the output is no defect of this program; a reader that has gone is no error at all."""
    try:
        yield
    except BrokenPipeError:
        raise ReaderGone from None
    except OSError as error:
        raise InputError(f"the output cannot be written ({error.strerror or error}): make room for it.") from error
