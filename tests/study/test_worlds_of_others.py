"""A study from someone else runs nothing: the module that it names is imported only if the user names it too."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from policyspace import InputError, Sample, Study, write
from policyspace.cli import app

SEEN = Sample.from_arrays(np.arange(8.0).reshape(-1, 2), ["go", "stay"] * 2, features=["speed", "left"])
HOSTILE = "trap:World"
TRAP = "from pathlib import Path\nPath('sprung').touch()\nfrom policyspace.worlds.minigolf import Minigolf as World\n"


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study whose file names a module that lies in wait in the working folder."""
    monkeypatch.chdir(tmp_path)
    Path("trap.py").write_text(TRAP)
    write(SEEN, "seen.csv")
    Study.create("s.sqlite", "minigolf").ask()
    with closing(sqlite3.connect("s.sqlite")) as connection, connection:
        connection.execute("UPDATE settings SET value = ? WHERE name = 'world'", (f'"{HOSTILE}"',))
        connection.executescript("DROP TABLE seals; PRAGMA user_version=1")  # files of version 1 have none
    return tmp_path


def sprung():
    return Path("sprung").exists() or "trap" in sys.modules


@pytest.mark.parametrize(
    "command",
    [
        ["tell", "s.sqlite", "seen.csv"],
        ["tell", "s.sqlite", "seen.csv", "--actions", "action", "--episodes", "episode"],
        ["ask", "s.sqlite"],
        ["ask", "s.sqlite", "--out", "next.toml", "--json", "-"],
        ["status", "s.sqlite"],
        ["status", "s.sqlite", "--json", "-"],
        ["status", "s.sqlite", "--plot", "p.png"],
        ["status", "s.sqlite", "--rounds", "p.png"],
        ["status", "s.sqlite", "--rounds", "p.gif"],
        ["ask", "s.sqlite", "--world", "minigolf"],
        ["ask", "s.sqlite", "--world", "trap:Other"],
    ],
)
def test_no_command_imports_what_the_file_names(study, command):
    done = CliRunner().invoke(app, ["study", *command])
    assert done.exit_code == 0 or isinstance(done.exception, InputError), done.exception
    assert not sprung()
    if command[0] == "tell" or "--rounds" in command:
        assert "name it too, with --world" in str(done.exception)
    if "--world" in command:
        assert f"is about the world '{HOSTILE}'" in str(done.exception)


def test_python_imports_nothing_either(study):
    opened = Study.open("s.sqlite")
    opened.status(), opened.rounds(), opened.ask()
    for touched in (lambda: opened.world, lambda: opened.space, lambda: opened.tell(SEEN)):
        with pytest.raises(InputError, match="would run code from outside policyspace"):
            touched()
    with pytest.raises(InputError, match="is about the world 'trap:World', found 'minigolf'"):
        Study.open("s.sqlite", world="minigolf")
    assert not sprung()


def test_a_fresh_ask_imports_nothing_either(study):
    with closing(sqlite3.connect("s.sqlite")) as connection, connection:
        connection.execute("DELETE FROM requests")
    with pytest.raises(InputError, match="would run code"):
        Study.open("s.sqlite").ask()
    assert not sprung()


def test_what_the_user_names_is_imported(study):
    """In a process of its own, for the import of a module happens once."""
    program = "from policyspace import Study; print(Study.open('s.sqlite', world='trap:World').world.name)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "minigolf\n", done.stderr
    assert Path("sprung").exists()


def test_our_own_worlds_need_not_be_named(tmp_path):
    Study.create(tmp_path / "s.sqlite", "minigolf")
    assert Study.open(tmp_path / "s.sqlite").world.name == "minigolf"
    assert Study.open(tmp_path / "s.sqlite", world="minigolf").world.name == "minigolf"
