"""What commands print and save: text, tables, a progress bar, JSON, pictures and pages."""

import shlex
import sys
import textwrap
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from policyspace.cli.options import bundled, with_parameters
from policyspace.errors import InputError, printable, safe_json
from policyspace.runtime import heard_by

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import Console

    from policyspace.display import Shown, TextTable


# -- All that commands print: lines and tables in which names are names, whatever characters they hold.


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


def show_table(console: "Console", table: "TextTable", **options: Any) -> None:
    """A table as wide as the window allows, its cells broken where they must be."""
    with _written():
        console.print(table.rich(broken=True, **options))


def show(answer: "Shown", right: Container[str], styles: Sequence[str] = ()) -> None:
    """An answer: its sentence, its table, what must be read with it."""
    show_parts(answer.sentence, answer.table(), answer.notes(), right, styles)


def show_parts(
    sentence: str, table: "TextTable", notes: Sequence[str], right: Container[str], styles: Sequence[str] = ()
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


# -- What every command has: `--quiet`, a bar on the terminal while one waits, and the words that it was called with.

PATIENCE = 2.0
"""Seconds without a bar: what is done by then needs none."""

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def _show_all(context: typer.Context, value: bool) -> None:
    if value:
        command: Any = context.command
        typer.echo(command.help_text(context, True))
        raise typer.Exit


def show_help(context: typer.Context) -> None:
    """What a bare call shows: its commands."""
    typer.echo(context.get_help())


HelpAll = Annotated[bool, typer.Option("--help-all", is_eager=True, callback=_show_all, help="Show every option.")]

T = TypeVar("T")


@dataclass(frozen=True)
class CommandContext:
    """The command that is running."""

    context: typer.Context
    quiet: bool


_RUNNING: ContextVar[CommandContext | None] = ContextVar("running", default=None)


def running(command: Callable[..., None]) -> Callable[..., None]:
    """The command with its bundles of options and an option `--quiet`, which `waiting` and `typed` know about."""
    command = bundled(command)
    own = signature(command)

    @wraps(command)
    def run(*, command_context: typer.Context, quiet: bool = False, help_all: bool = False, **options: Any) -> None:
        before = _RUNNING.set(CommandContext(command_context, quiet))
        try:
            command(**options)
        finally:
            _RUNNING.reset(before)

    more = [Parameter("command_context", Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    more += [Parameter("quiet", Parameter.KEYWORD_ONLY, default=False, annotation=Quiet)]
    more += [Parameter("help_all", Parameter.KEYWORD_ONLY, default=False, annotation=HelpAll)]
    return with_parameters(run, [*own.parameters.values(), *more])


def is_quiet() -> bool:
    """Whether the command that is running was told to show no progress."""
    command = _RUNNING.get()
    return command is not None and command.quiet


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """While this lasts, a terminal shows what is done and how far it is, after two seconds; nothing else ever does."""
    console = new_console(stderr=True)
    if not console.is_terminal or is_quiet():
        yield
        return
    with Bar(console, what) as bar, heard_by(bar.show):
        yield


def one_by_one(items: Iterator[T], what: str) -> Iterator[T]:
    """The same items, with a bar while one waits for the next."""
    while True:
        with waiting(what):
            item = next(items, None)
        if item is None:
            return
        yield item


class Bar:
    """A line on a terminal that comes late and leaves nothing behind."""

    def __init__(self, console: "Console", what: str) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (
            SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(bar_width=24),
            TextColumn("{task.fields[count]}", markup=False), TimeElapsedColumn(),
        )  # fmt: skip
        # What is printed goes where it should: the answer never through the screen of the bar.
        self._bar = Progress(*columns, console=console, transient=True, redirect_stdout=False)
        self._task = self._bar.add_task(what, total=None, count="")
        self._timer = Timer(PATIENCE, self._bar.start)
        self._timer.daemon = True

    def __enter__(self) -> "Bar":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()
        if self._bar.live.is_started:
            self._bar.stop()

    def show(self, what: str, done: int, total: int | None) -> None:
        """What is being done, and how far it is."""
        count = "" if total is None else f"{done} of {total}"
        self._bar.update(self._task, description=what, completed=done, total=total, count=count)


def typed() -> str:
    """The command that is running, as one could type it again."""
    command = _RUNNING.get()
    if command is None:
        return ""
    context: Any = command.context
    words: list[str] = []
    options: list[str] = []
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        source = context.get_parameter_source(str(parameter.name))
        if parameter.name == "quiet" or value is None or source is None or source.name != "COMMANDLINE":
            continue
        values = [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]
        if parameter.param_type_name == "argument":
            words += values
        elif isinstance(value, bool):
            options.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            options += [part for one in values for part in (parameter.opts[0], one)]
    names: list[str] = []
    while context.parent is not None:
        names.insert(0, str(context.info_name))
        context = context.parent
    return shlex.join(["policyspace", *names, *words, *options])


# -- `--help`: panels by theme, in the order of this table, and at most so many lines; `--help-all` shows every option.

PANELS: dict[str, str] = {
    "What the file holds": "actions features episodes subjects trials weights weight-type missing na categorical formula "
    "lags lags-of-inputs rows-are offset reference levels",
    "The agent and its environment": "agent algorithm env env-arg reset-options parameter parameters learn make-agent "
    "vecnormalize frame-stack trust world way play steps horizon randomise",
    "The policy": "policy groups assume hidden covariance no-intercept",
    "Alternatives with attributes": "attributes available specific choice-id chosen alternative",
    "The test": "test significance rule correction paper-rule assigned clusters firth confidence power effect",
    "Rounds and budget": "max-rounds budget design batch configuration controls",
    "A file that grows": "follow wait labels",
    "What is wanted": "by coefficients out json report plot curves calibration subject-plot dask seed quiet help-all",
}
"""Options of many commands by theme; any other is among the command's own."""

RARELY = (
    "trials weights weight-type missing na categorical formula lags-of-inputs rows-are offset reference levels hidden "
    "covariance no-intercept "
    "attributes available specific choice-id chosen alternative paper-rule assigned clusters firth wait labels dask "
    "subject-plot calibration correction rule seed follow budget reset-options frame-stack "
    "vecnormalize memory likely log learning-steps names algorithm learn configuration folds"
)
"""Options that `--help` leaves to `--help-all` where a command has more than so many."""

MANY = 18


def _form(one: Any) -> str:
    """What a value looks like."""
    return str(one.metavar or (one.name.upper() if one.param_type_name == "argument" else "VALUE"))


class LaidOut(TyperCommand):
    """A command whose help fits a screen."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The options that most calls need."""
        formatter.write(self.help_text(ctx, False) + "\n")

    def help_text(self, ctx: Any, whole: bool) -> str:
        """Usage, what the command does, its arguments, and its options by theme."""
        width = max(40, min(new_console().width, 100))
        every: list[Any] = list(self.get_params(ctx))
        arguments = [one for one in every if one.param_type_name == "argument"]
        shown = self._shown(every, whole)
        words = " ".join(" ".join((self.help or "").split("\f")[0].split()).split(" \b "))
        usage = " ".join([ctx.command_path, "[OPTIONS]", *(_form(one) for one in arguments)])
        lines = [f"Usage: {usage}", "", *textwrap.wrap(words, width), ""]
        for one in arguments:
            lines += self._entry(_form(one), one.help or "", width)
        panels: dict[str, list[Any]] = {name: [] for name in PANELS} | {"Options": []}
        themes = {option: panel for panel, names in PANELS.items() for option in names.split()}
        for one in shown:
            panels[themes.get(one.opts[0].lstrip("-"), "Options")].append(one)
        for panel, inside in panels.items():
            if inside:
                lines += ["", typer.style(panel, bold=True)]
            for one in inside:
                lines += self._option(one, ctx, width)
        if not whole and len(shown) < len(self._shown(every, True)):
            rest = len(self._shown(every, True)) - len(shown)
            lines += ["", f"{rest} more options: {ctx.command_path} --help-all"]
        return "\n".join(lines)

    @staticmethod
    def _shown(params: Sequence[Any], whole: bool) -> list[Any]:
        options = [one for one in params if one.param_type_name == "option" and not one.hidden and one.name != "help"]
        if whole or len(options) <= MANY:
            return options
        return [one for one in options if one.opts[0].lstrip("-") not in RARELY.split()]

    def _option(self, one: Any, ctx: Any, width: int) -> list[str]:
        """Its name, what its value looks like, what it does, and what it is by default."""
        names = [*one.opts[:1], *one.secondary_opts[:1]]
        flag = getattr(one, "is_flag", False)
        form = "" if flag else _form(one)
        said = one.help or ""
        if len(form) > 34:
            said, form = f"{said} One of {', '.join(form.split('|'))}." if "|" in form else f"{said} {form}", ""
        default = one.default
        if default not in (None, False, True, "", ()) and not callable(default) and not isinstance(default, list):
            said += f" [default: {default}]"
        return self._entry(f"{'/'.join(names)} {form}".rstrip(), said, width)

    @staticmethod
    def _entry(head: str, said: str, width: int) -> list[str]:
        """A short head and its words on one line, or the words below it."""
        words = " ".join(said.split())
        column = 26
        if len(head) + 4 <= column:
            return textwrap.wrap(
                words, width, initial_indent=f"  {head}".ljust(column), subsequent_indent=" " * column,
                break_long_words=False, break_on_hyphens=False,
            ) or [f"  {head}"]  # fmt: skip
        below = textwrap.wrap(
            words, width, initial_indent=" " * column, subsequent_indent=" " * column, break_long_words=False,
            break_on_hyphens=False,
        )  # fmt: skip
        return [f"  {head}", *below]


# -- Where the results of commands are saved: refused before the work if that cannot be, written whole or not at all.

JsonOut = Annotated[
    str | None,
    typer.Option("--json", help="Write the answer as JSON to a file, or to the screen ('-').", metavar="FILE|-"),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report", help="Save a page that holds all of it, for any browser: one file, no network.", metavar="FILE.html"
    ),
]


def check_targets(
    pictures: Iterable[Path | None] = (),
    json: str | None = None,
    inputs: Iterable[str | Path | None] = (),
    out: Path | None = None,
    report: Path | None = None,
) -> None:
    """Say before the work that its results could not be saved."""
    from policyspace import safe_io as whole_file

    drawn = [picture for picture in pictures if picture is not None]
    if drawn:
        from policyspace.report.figures import format_of

        for picture in drawn:
            format_of(picture)
    if report is not None:
        from policyspace.report.pages import page_path

        page_path(report)
    whole_file.check_targets([*drawn, None if json == "-" else json, out, report], inputs)


def check_suffix(path: Path, suffixes: Sequence[str]) -> None:
    """Say before the work that a file of this name could not be written."""
    if not path.name.lower().endswith(tuple(suffixes)):
        raise InputError(f"{path}: the name must end in one of {', '.join(suffixes)}: choose another name.")


def deliver(text: Callable[[], str], json: str | None, show: Callable[[], None], *saved: Path | None) -> None:
    """The answer as JSON where that is wanted, and on the screen with what was saved, unless the JSON is there."""
    if json is not None:
        write_json(text(), json)
    if json != "-":
        show()
        show_saved([*saved, json])


def write_json(text: str, target: str) -> None:
    """To the screen for '-', otherwise to a file that appears whole or not at all."""
    if target == "-":
        show_json(text)
        return
    from policyspace.errors import safe_json
    from policyspace.safe_io import replacing

    with replacing(target) as out:
        out.write((safe_json(text) + "\n").encode())


def write_report(result: "Shown", target: Path | None) -> None:
    """Save the page of an answer where it is wanted, with the command that makes it again."""
    if target is None:
        return
    object.__setattr__(result, "made_by", typed())
    result.report(target)
