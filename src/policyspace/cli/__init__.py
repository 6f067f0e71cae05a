"""The command line: one file a command; what a command needs is imported when it runs."""

import os
import sys
from contextlib import suppress
from importlib.metadata import entry_points
from typing import Any

import typer
from typer.core import TyperGroup

from policyspace.cli.ask import ask
from policyspace.cli.clone import clone
from policyspace.cli.configure import configure
from policyspace.cli.console import LaidOut, ReaderGone, Stopped, new_console, say, show_help
from policyspace.cli.identify import identify
from policyspace.cli.plan import demo, plan, theory
from policyspace.cli.recommend import recommend
from policyspace.cli.reward import reward
from policyspace.cli.study import app as study
from policyspace.cli.worlds import simulate, watch, worlds
from policyspace.errors import InputError

INTERRUPTED = 130

PLUGINS = "policyspace.commands"
"""The group of entry points that name commands of other packages."""


RENAMED = {
    "--always": "--assume",
    "--attempts": "--max-rounds",
    "--dependence": "--clusters",
    "--weights-are": "--weight-type",
}
"""Options of earlier versions, and what they are called now."""


class Commands(TyperGroup):
    """Our commands, and those of other packages: their entry points are looked up for help and unknown names only."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Ours, then those of other packages."""
        return [*super().list_commands(ctx), *sorted(entry_points(group=PLUGINS).names)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command of ours, or of another package."""
        if (own := super().get_command(ctx, cmd_name)) is not None:
            return own
        if found := tuple(entry_points(group=PLUGINS, name=cmd_name)):
            alone = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})
            alone.command(cmd_name)(found[0].load())
            return typer.main.get_command(alone)
        if cmd_name == "reproduce":
            raise InputError("`policyspace reproduce` needs policyspace-paper: pip install policyspace-paper.")
        return None


app = typer.Typer(
    cls=Commands,
    name="policyspace",
    help="What does this agent perceive and control? Answers from logged behaviour, with statistical guarantees.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=LaidOut)(ask)
app.command(cls=LaidOut)(identify)
app.command(cls=LaidOut)(watch)
app.command(cls=LaidOut)(plan)
app.command(cls=LaidOut)(theory)
app.command(cls=LaidOut)(worlds)
app.command(cls=LaidOut)(simulate)
app.command(cls=LaidOut)(configure)
app.command(cls=LaidOut)(recommend)
app.command(cls=LaidOut)(clone)
app.command(cls=LaidOut)(reward)
app.add_typer(study)
app.command(cls=LaidOut)(demo)


def _version(value: bool) -> None:
    if value:
        from policyspace import __version__

        say(new_console(), f"policyspace {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and stop."
    ),
) -> None:
    """What does this agent perceive and control? Answers from logged behaviour, with statistical guarantees."""
    if context.invoked_subcommand is None:
        show_help(context)


def main() -> None:
    """Run a command: bad input is one sentence and exit code 2, Ctrl-C exit code 130."""
    _open_streams()
    try:
        code = app(standalone_mode=False) or 0
        sentence = "interrupted; nothing half-written was left behind." if code == INTERRUPTED else ""
    except ReaderGone:
        code, sentence = 0, ""
    except SystemExit as stopped:
        code, sentence = 2, f"code that was run here ended the program (SystemExit: {stopped}): it must return instead."
        if isinstance(stopped.__context__, BrokenPipeError):  # by typer, if nobody reads its help
            code, sentence = 0, ""
    except Stopped as stopped:
        code, sentence = INTERRUPTED, str(stopped)
    except Exception as error:
        code, sentence = 2, _sentence(error)
    code, sentence = _flush(code, sentence)
    if sentence:
        with suppress(ReaderGone, InputError):  # nobody reads this either
            say(new_console(stderr=True), f"policyspace: {sentence}")
    sys.exit(code)


def _open_streams() -> None:
    """A stream that the caller closed leads nowhere, so that no file of ours takes its place; all show what they can."""
    while (free := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(free)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # an old terminal that has no λ shows '?' instead of a traceback


def _flush(code: int, sentence: str) -> tuple[int, str]:
    """What is still to be written; if that fails, the interpreter must not try again."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not sentence and not isinstance(error, BrokenPipeError):
            return 2, f"the output cannot be written ({error.strerror}): make room for it."
    return code, sentence


def _sentence(error: Exception) -> str:
    """What the user did, in one sentence; whatever else went wrong is a defect of this program and goes on."""
    if isinstance(error, InputError):
        return str(error)
    if not hasattr(error, "format_message"):  # what typer raises at a command line that it cannot read
        raise error
    command = getattr(getattr(error, "ctx", None), "command_path", "policyspace")
    if (now := RENAMED.get(getattr(error, "option_name", ""))) is not None:
        return f"the option {error.option_name} is now {now}: see '{command} --help'."  # type: ignore[attr-defined]
    return f"{error.format_message().rstrip('.')}: see '{command} --help'."
