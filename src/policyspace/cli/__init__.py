"""The command line: one file a command; what a command needs is imported when it runs."""

import os
import sys

import typer

from policyspace.cli.demo import demo
from policyspace.cli.identify import identify
from policyspace.errors import InputError

app = typer.Typer(
    name="policyspace",
    help="What does this agent perceive and control? Answers from logged behaviour, with statistical guarantees.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(identify)
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
    try:
        app()
    except InputError as error:
        typer.echo(f"policyspace: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("policyspace: interrupted; nothing half-written was left behind.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output (head, less) has gone: that is no error, and the interpreter must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
