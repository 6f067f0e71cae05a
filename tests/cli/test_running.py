"""Progress on a terminal, silence in pipes, `--quiet`, and the command that makes a report again."""

import io
import os
import pty
import re
import shlex
import subprocess
import sys
import threading

import pytest
from rich.console import Console

from policyspace.cli import console as running
from policyspace.runtime import counted, heard_by, say_progress

ROWS = "\n".join(f"{i % 7},{(i * i) % 11},{(3 * i) % 5},{'ab'[(i * 3 + i // 5) % 2]}" for i in range(60))
COMMANDS = {
    "identify": ["identify", "log.csv", "--actions", "move", "--test", "bootstrap"],
    "plan": ["plan", "log.csv", "--actions", "move"],
}
WITHOUT_PATIENCE = "import policyspace.cli.console as r; r.PATIENCE = 0.0; from policyspace.cli import main; main()"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("logs")
    (path / "log.csv").write_text(f"x,y,z,move\n{ROWS}\n")
    return path


def on_a_terminal(arguments, folder):
    """(what a terminal shows of stderr, stdout in a pipe) of a command whose patience is none."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", WITHOUT_PATIENCE, *arguments], cwd=folder, stderr=theirs, stdout=subprocess.PIPE,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "120"},
    )  # fmt: skip
    os.close(theirs)
    shown = []

    def listen():
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                return
            if not piece:
                return
            shown.append(piece)

    listener = threading.Thread(target=listen)
    listener.start()
    out, _ = process.communicate(timeout=120)
    listener.join()
    os.close(ours)
    assert process.returncode == 0, b"".join(shown)
    return b"".join(shown).decode(), out.decode()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_terminal_shows_how_far_it_is(command, folder, command_line, monkeypatch):
    shown, out = on_a_terminal(COMMANDS[command], folder)
    monkeypatch.chdir(folder)
    _, piped, complained = command_line(*COMMANDS[command])
    assert complained == "", "in pipes there is nothing"
    assert out == piped, "the answer is the same, and only the answer"
    if command == "identify":
        assert re.search(r"simulating data sets.*\d+ of \d+", shown)
    assert "0:00:0" in shown, "the time that has passed"
    assert "\x1b[2K" in shown[shown.rindex("0:00:0") :], "at the end the line is gone"


@pytest.mark.parametrize("command", COMMANDS)
def test_quiet_is_quiet(command, folder):
    shown, out = on_a_terminal([*COMMANDS[command], "--quiet"], folder)
    assert shown == "" and len(out.splitlines()) > 5


def test_what_is_fast_shows_nothing(monkeypatch, capfd):
    monkeypatch.setattr(running, "PATIENCE", 3600.0)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes this for a terminal
    with running.waiting("testing"):
        say_progress("testing", 1, 2)
    assert capfd.readouterr().err == ""


def test_the_bar_says_what_it_hears():
    console = Console(force_terminal=True, width=100, record=True, file=io.StringIO())
    bar = running.Bar(console, "testing")
    bar.show("searching supports [/x]", 3, 8)
    console.print(bar._bar.get_renderable())
    assert re.search(r"searching supports \[/x\].*3 of 8", console.export_text())


def test_whoever_listens_hears_every_step():
    heard = []
    with heard_by(lambda *said: heard.append(said)):
        assert list(counted(["a", "b"], "letters")) == ["a", "b"]
    say_progress("nobody listens")
    assert heard == [("letters", 0, 2), ("letters", 1, 2)]


def test_every_long_command_can_be_quiet(command_line):
    pytest.importorskip("policyspace_paper")
    for command in (
        "identify",
        "plan",
        "theory",
        "simulate",
        "configure",
        "watch",
        "reproduce",
        "study ask",
        "study tell",
        "study status",
    ):
        assert "--quiet" in command_line(*command.split(), "--help")[1], command


def test_the_report_holds_the_command_that_makes_it_again(folder, tmp_path, command_line, monkeypatch):
    monkeypatch.chdir(folder)
    page = tmp_path / "a page.html"
    arguments = ["identify", "log.csv", "--actions", "move", "--features", "x", "--features", "y,z", "--no-intercept"]
    arguments += ["--rule", "combinatorial", "--report", str(page)]
    assert f"Saved {page}" in command_line(*arguments, "-q")[1]
    text = page.read_text(encoding="utf-8")
    command = re.search(r"<pre[^>]*><code>(.*?)</code>", text, re.DOTALL)[1].replace("&#x27;", "'")
    assert sorted(shlex.split(command)) == sorted(["policyspace", *arguments])
    code, _, _ = command_line(*shlex.split(command)[1:])
    assert not code and page.read_text(encoding="utf-8") == text


def test_reports_that_cannot_be_saved_are_refused_before_the_work(folder, command_line, monkeypatch):
    monkeypatch.chdir(folder)
    for target, words in {"answer.txt": ".html", "absent/answer.html": "there is no folder"}.items():
        code, out, err = command_line("identify", "log.csv", "--actions", "move", "--report", target)
        assert code == 2 and words in err and out == ""
