"""The command line: one file a command; what a command needs is imported when it runs."""

import os
import sys

import typer

from policyspace.cli.configure import configure
from policyspace.cli.demo import demo
from policyspace.cli.identify import identify
from policyspace.cli.plan import plan
from policyspace.cli.reproduce import reproduce
from policyspace.cli.simulate import simulate
from policyspace.cli.study import app as study
from policyspace.cli.theory import theory
from policyspace.cli.watch import watch
from policyspace.cli.worlds import worlds
from policyspace.errors import InputError

INTERRUPTED = 130

app = typer.Typer(
    name="policyspace",
    help="What does this agent perceive and control? Answers from logged behaviour, with statistical guarantees.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(identify)
app.command()(watch)
app.command()(plan)
app.command()(theory)
app.command()(worlds)
app.command()(simulate)
app.command()(configure)
app.add_typer(study)
app.command()(reproduce)
app.command()(demo)


def _version(value: bool) -> None:
    if value:
        from policyspace import __version__

        typer.echo(f"policyspace {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and stop."
    ),
) -> None:
    """What does this agent perceive and control? Answers from logged behaviour, with statistical guarantees."""


def main() -> None:
    """Run a command: bad input is one sentence and exit code 2, Ctrl-C exit code 130."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # an old terminal that has no λ shows '?' instead of a traceback
    try:
        code = app(standalone_mode=False) or 0
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output (head, less) has gone: that is no error, and the interpreter must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:
        _tell(_sentence(error))
        code = 2
    if code == INTERRUPTED:  # typer turns Ctrl-C into this code too
        _tell("interrupted; nothing half-written was left behind.")
    sys.exit(code)


def _sentence(error: Exception) -> str:
    """What the user did, in one sentence; whatever else went wrong is a defect of this program and goes on."""
    if isinstance(error, InputError):
        return str(error)
    if not hasattr(error, "format_message"):  # what typer raises at a command line that it cannot read
        raise error
    command = getattr(getattr(error, "ctx", None), "command_path", "policyspace")
    return f"{error.format_message().rstrip('.')}: see '{command} --help'."


def _tell(sentence: str) -> None:
    """One line, whatever names a file has put into it."""
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in sentence)
    typer.echo(f"policyspace: {line}", err=True)
