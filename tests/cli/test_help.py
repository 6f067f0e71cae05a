"""The help of every command: a screen, its options by theme, and all of them on demand; completion; a bare call."""

import os
import re
import subprocess
import sys

import pytest
import typer

import policyspace
from policyspace.cli import app

pytestmark = pytest.mark.quick


def commands(command, name="policyspace", parent=None):
    context = typer.Context(command, info_name=name, parent=parent)
    if hasattr(command, "commands"):
        for own, inside in command.commands.items():
            yield from commands(inside, own, context)
    elif hasattr(command, "help_text"):
        yield context.command_path, command, context


COMMANDS = {path: (command, context) for path, command, context in commands(typer.main.get_command(app))}


@pytest.mark.parametrize("path", COMMANDS)
def test_help_fits_a_screen(path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    command, context = COMMANDS[path]
    short, whole = command.get_help(context).splitlines(), command.help_text(context, True)
    assert len(short) <= 60
    assert max(len(re.sub(r"\x1b\[[\d;]*m", "", line)) for line in short) <= 80
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    for one in options:
        if one.name != "help":
            assert one.opts[0] in whole
            assert " ".join((one.help or "").split())[:20] in " ".join(whole.split())
    assert ("more options: " in short[-1]) == any(
        one.opts[0] not in "\n".join(short) for one in options if one.name != "help"
    )


def run(*arguments, **variables):
    environment = {**os.environ, "COLUMNS": "80", **variables}
    return subprocess.run(
        [sys.executable, "-m", "policyspace", *arguments], capture_output=True, text=True, check=False, env=environment
    )


def test_a_bare_call_shows_the_commands():
    done = run()
    assert done.returncode == 0 and "identify" in done.stdout and not done.stderr


def test_commands_complete():
    done = run(_POLICYSPACE_COMPLETE="complete_bash", COMP_WORDS="policyspace ide", COMP_CWORD="1")
    assert "identify" in done.stdout.split()


def test_a_mistyped_world_needs_no_jax():
    """Neither JAX nor Gymnasium is imported before the name is looked at."""
    code = (
        "import sys; from policyspace.cli import main\n"
        "sys.argv = ['policyspace', *{words!r}.split()]\n"
        "try:\n    main()\nexcept SystemExit as end:\n"
        "    print(end.code, 'jax' in sys.modules, 'gymnasium' in sys.modules)\n"
    )
    for words in (
        "simulate gridwrld",
        "configure gridwrld",
        "worlds gridwrld",
        "study create a.sqlite --world gridwrld",
    ):
        done = subprocess.run(
            [sys.executable, "-c", code.format(words=words)], capture_output=True, text=True, check=False
        )
        assert "did you mean 'gridworld'" in done.stderr and done.stdout.split() == ["2", "False", "False"], words


def test_every_world_is_known_before_it_is_imported():
    from policyspace import worlds

    for name in worlds.WORLDS:
        worlds.known_world(name)
    with pytest.raises(policyspace.InputError, match="did you mean 'car'"):
        worlds.known_world("carr")
