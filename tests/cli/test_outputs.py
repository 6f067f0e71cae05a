"""What commands write and print, in a hostile world: targets, names full of controls, readers that go, Ctrl-C."""

import ast
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import numpy as np
import pytest

import policyspace

HOSTILE = "a\x1b[31m\x07\x08\x9b2J\u202e\u2066x[bold]:warning:$\\frac$<script>"
COMMAND = [sys.executable, "-m", "policyspace"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 80))
    rows = [
        f"{i // 8},{u},{v},{'go' if u + rng.normal() > 0 else 'stop'}"
        for i, (u, v) in enumerate(zip(x, y, strict=True))
    ]
    Path("log.csv").write_text("\n".join([f"e,{HOSTILE},y,act\x1b[2Jion", *rows, ""]), encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(command_line):
    return command_line


DATA = ("log.csv", "--actions", "act\x1b[2Jion", "--episodes", "e")


NAMED_IN = {"identify": "groups", "plan": "groups"}


def controls(text):
    """What a terminal would obey, other than ends of lines."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c != "\n"}


@pytest.mark.parametrize(
    "command",
    [
        ["identify", *DATA],
        ["identify", *DATA, "--follow"],
        ["identify", *DATA, "--json", "-"],
        ["identify", *DATA, "--plot", "p\x1b[31m\u202e.svg"],
        ["identify", *DATA, "--features", f"{HOSTILE},\x9bno"],
        ["identify", "no\x1b[31m[bold]file\n.csv"],
        ["plan", *DATA],
        ["plan", *DATA, "--json", "-"],
        ["theory", *DATA],
        ["simulate", "no\x1b\u202eworld"],
        ["study", "status", "no\x1b\u202estudy"],
        ["worlds", "\x1b\u202e"],
        ["\x1b\u202e"],
    ],
)
def test_no_name_commands_the_terminal(run, command):
    code, out, err = run(*command)
    assert code in (0, 2)
    assert not controls(out + err)
    if code == 0 and "-" in command:
        assert HOSTILE in [row["group"] for row in json.loads(out)[NAMED_IN[command[0]]]]
    elif code == 0:
        assert "\\x1b[31m" in out and "[bold]:warning:" in out
    else:
        assert err.count("\n") == 1


def test_pictures_hold_names_as_names(run, folder):
    for picture in ("p.svg", "p.png", "p.pdf"):
        code, _, err = run("identify", *DATA, "--plot", picture)
        assert (code, err) == (0, "")
    text = Path("p.svg").read_text(encoding="utf-8")
    assert not controls(text) and "<script" not in text


def test_python_shows_names_as_names_too():
    answer = policyspace.identify("log.csv", actions="act\x1b[2Jion", episodes="e")
    assert not controls(str(answer)) and not controls(answer._repr_html_())
    assert "<script" not in answer._repr_html_()
    assert answer.groups[0].group == HOSTILE  # the data stay what they are
    with pytest.raises(policyspace.errors.InputError) as told:
        policyspace.identify("log.csv", actions="\x1b")
    assert not controls(str(told.value))


def test_only_one_module_prints():
    """Whatever is printed goes through cli/console.py; rich's bars take its console."""
    for path in (Path(policyspace.__file__).parent / "cli").glob("*.py"):
        if path.name == "console.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            name = getattr(node, "attr", getattr(node, "id", ""))
            assert name not in ("print", "echo", "secho", "Console"), f"{path.name}:{node.lineno}"


# -- targets -------------------------------------------------------------------------------------------------------


def test_targets_are_refused_before_any_work(run, monkeypatch):
    pytest.importorskip("jax")  # of commands with worlds, too
    os.mkfifo("pipe.json")
    Path("cfg").mkdir()
    os.mkfifo("cfg/rounds.gif")
    Path("res").mkdir()
    os.mkfifo("res/records.sqlite")
    os.link("log.csv", "same.json")
    run("study", "create", "s.sqlite", "--world", "minigolf")
    monkeypatch.setattr("policyspace.data.files.read", None)
    for command, said in [
        (["identify", *DATA, "--json", "pipe.json"], "a pipe"),
        (["identify", *DATA, "--json", "same.json"], "is the file that is read"),
        (["identify", *DATA, "--json", "x.svg", "--plot", "./x.svg"], "named twice"),
        (["plan", *DATA, "--json", "log.csv"], "is the file that is read"),
        (["theory", *DATA, "--json", "pipe.json"], "a pipe"),
        (["worlds", "--json", "pipe.json"], "a pipe"),
        (["simulate", "gridworld", "--save-agent", "pipe.json"], "a pipe"),
        (["simulate", "gridworld", "--out", "x.csv", "--save-agent", "x.csv"], "named twice"),
        (["configure", "gridworld", "--out", "cfg"], "a pipe"),
        (["study", "ask", "s.sqlite", "--json", "s.sqlite"], "is the file that is read"),
        (["study", "status", "s.sqlite", "--json", "pipe.json"], "a pipe"),
        (["study", "create", "pipe.json", "--world", "gridworld"], "a pipe"),
        (["reproduce", "--quick", "--out", "res"], "a pipe"),
    ]:
        code, out, err = run(*command)
        assert (code, out, err.count("\n")) == (2, "", 1), command
        assert said in err, (command, err)


# -- streams and Ctrl-C ----------------------------------------------------------------------------------------------


def shell(line):
    return subprocess.run(["bash", "-c", f"set -o pipefail; {line}"], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    "line",
    [
        "{identify} | true",
        "{identify} --json - | true",
        "{identify} --follow | head -n 1 > first",
        "{policyspace} --help | true",
        "{identify} >&-",
        "{identify} --json - >&-",
        "{identify} >&- 2>&-",
        "{identify} --json out.json <&- >&- 2>&- && grep -q answer out.json",
    ],
)
def test_a_reader_that_goes_ends_the_command_quietly(line):
    words = " ".join(f"'{word}'" for word in (*COMMAND, "identify", "log.csv"))
    words += " --actions $'act\\x1b[2Jion' --episodes e"
    done = shell(line.format(identify=words, policyspace=" ".join(COMMAND)))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_behind_the_output_is_one_sentence(folder):
    try:
        os.mknod("full", 0o600 | stat.S_IFCHR, os.makedev(1, 7))
    except PermissionError:
        pytest.skip("only root makes devices")
    for more in ("", "--json -"):
        done = shell(f"{' '.join(COMMAND)} identify log.csv --actions $'act\\x1b[2Jion' --episodes e {more} > full")
        assert done.returncode == 2
        assert re.fullmatch(r"policyspace: the output cannot be written \(.*\): make room for it.\n", done.stderr)


def interrupted(*arguments, when):
    """(exit code, lines on stderr) of a command that gets Ctrl-C once it has printed what is waited for."""
    started = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in started.stdout:
        if when in line:
            break
    started.send_signal(signal.SIGINT)
    _, err = started.communicate(timeout=120)
    return started.returncode, err.splitlines()


def test_ctrl_c_is_130_and_one_sentence(folder):
    pytest.importorskip("jax")
    code, said = interrupted("identify", *DATA, "--follow", "--wait", "60", when="episode 9")
    assert (code, len(said)) == (130, 1) and "interrupted" in said[0]
    code, said = interrupted("configure", "gridworld", "--out", "cfg", when="An agent in")
    assert (code, len(said)) == (130, 1) and "interrupted" in said[0]
    assert not list(folder.glob("**/.policyspace*"))


SWALLOWING = """
import os, signal, sys, time
from policyspace import __main__, cli
__main__.AGAIN = 0.05

def work(**options):
    class Lost:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)  # raised here, and lost
    Lost()
    for _ in range(1000):
        time.sleep(0.01)
    sys.stdout.write("not heard")

cli.app = lambda **options: work()
__main__.main()
"""


def test_ctrl_c_that_a_library_swallows_comes_again(folder):
    done = subprocess.run([sys.executable, "-c", SWALLOWING], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "policyspace: interrupted; nothing half-written was left behind.\n"


def test_ctrl_c_waits_for_an_import(folder):
    Path("slow.py").write_text(
        "import os, signal, sys, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(0.3)\nsys.stdout.write('imported')\n"
    )
    program = "from policyspace import __main__, cli\ndef app(**options):\n    import slow, time\n    time.sleep(9)\n"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", program + "cli.app = app\n__main__.main()"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (130, "imported")


def test_ctrl_c_does_not_disturb_what_is_clearing_up(folder):
    program = (
        "import os, signal, time\nfrom policyspace import __main__, cli\n__main__.AGAIN = 0.05\n"
        "def app(**options):\n    try:\n        os.kill(os.getpid(), signal.SIGINT)\n        time.sleep(9)\n"
        "    finally:\n        time.sleep(0.4)\n        print('cleared up', flush=True)\n"
        "cli.app = app\n__main__.main()"
    )
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (130, "cleared up\n"), time.monotonic() - started
