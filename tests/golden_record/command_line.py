"""The command line in this process, which has loaded already what it needs."""

import contextlib
import io
import sys
from typing import Any
from unittest import mock


def run(*arguments: Any) -> None:
    """Run a command that must succeed; what it says goes nowhere."""
    from policyspace.cli import main

    said = io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["policyspace", *map(str, arguments)]),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
    ):
        try:
            main()
        except SystemExit as stop:
            if stop.code:
                raise RuntimeError(f"policyspace {arguments}: exit code {stop.code}: {said.getvalue()}") from stop
