"""Commands as the tests of the command line run them: in this process."""

import sys

import pytest

from policyspace.cli import main


@pytest.fixture
def command_line(monkeypatch, capfd):
    """Runs `policyspace ARGUMENTS…`: its exit code, and what it printed and complained."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["policyspace", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capfd.readouterr()
        return stop.value.code, out, err

    return run
