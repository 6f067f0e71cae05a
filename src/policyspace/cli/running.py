"""What every command has: `--quiet`, a bar on the terminal while one waits, and the words that it was called with."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from threading import Timer
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from policyspace.cli.bundled import bundled, with_parameters
from policyspace.cli.screen import new_console
from policyspace.progress import heard_by

if TYPE_CHECKING:
    from rich.console import Console

PATIENCE = 2.0
"""Seconds without a bar: what is done by then needs none."""

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]

T = TypeVar("T")


@dataclass(frozen=True)
class Running:
    """The command that is running."""

    context: typer.Context
    quiet: bool


_RUNNING: ContextVar[Running | None] = ContextVar("running", default=None)


def running(command: Callable[..., None]) -> Callable[..., None]:
    """The command with its bundles of options and an option `--quiet`, which `waiting` and `typed` know about."""
    command = bundled(command)
    own = signature(command)

    @wraps(command)
    def run(*, command_context: typer.Context, quiet: bool = False, **options: Any) -> None:
        before = _RUNNING.set(Running(command_context, quiet))
        try:
            command(**options)
        finally:
            _RUNNING.reset(before)

    more = [Parameter("command_context", Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    more += [Parameter("quiet", Parameter.KEYWORD_ONLY, default=False, annotation=Quiet)]
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
