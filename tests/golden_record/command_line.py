"""The command line in this process, which has loaded already what it needs."""

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import Any
from unittest import mock

SCREEN = {"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"}


def said(*arguments: Any, folder: Path | None = None) -> tuple[int, str]:
    """The exit code of a command, and all that it says to a screen without colours."""
    from policyspace.cli import main

    screen = io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["policyspace", *map(str, arguments)]),
        mock.patch.object(sys.modules["__main__"], "__package__", None),  # or the help names what runs this
        mock.patch.dict(os.environ, SCREEN),
        contextlib.chdir(folder or Path.cwd()),
        contextlib.redirect_stdout(screen),
        contextlib.redirect_stderr(screen),
    ):
        try:
            main()
        except SystemExit as stop:
            return int(stop.code or 0), screen.getvalue()
    return 0, screen.getvalue()


def run(*arguments: Any) -> None:
    """Run a command that must succeed; what it says goes nowhere."""
    code, words = said(*arguments)
    if code:
        raise RuntimeError(f"policyspace {arguments}: exit code {code}: {words}")
