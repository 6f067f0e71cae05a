"""Bad input at the command line: exit code 2, one sentence on stderr, nothing on stdout, and no traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars
import pytest

from policyspace import Sample, write

N = 60
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, N))
LABEL = np.where(X + RNG.normal(size=N) > 0, "go", "stop")
FORCE, OTHER = X + 0.5 * RNG.normal(size=N), RNG.normal(size=N)
ROWS = [f"{x},{y},{a}" for x, y, a in zip(X, Y, LABEL, strict=True)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = {"x": X, "y": Y, "move": LABEL, "force": FORCE, "other": OTHER}
    polars.DataFrame(table).write_csv("log.csv")
    return tmp_path


@pytest.fixture
def run(command_line):
    return lambda *arguments: command_line("identify", *arguments)


def check(result, *expected):
    """One sentence, with what was expected in it."""
    code, out, err = result
    assert code == 2
    assert out == ""
    assert err.startswith("policyspace: ")
    assert err.count("\n") == 1
    assert err.rstrip()[-1] in ".?"
    assert not err.rstrip().endswith("?.")
    for part in expected:
        assert part in err, err


def save(text, name="table.csv"):
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def table(*changed, head="x,y,move"):
    """The good table with some rows replaced, (number from 1, text)."""
    rows = list(ROWS)
    for number, text in changed:
        rows[number - 1] = text
    return save("\n".join([head, *rows]) + "\n")


MOVE = ("--actions", "move", "--features", "x,y")
FORCED = ("--actions", "force", "--features", "x,y")

OPTIONS = {
    "no action": ((), "--actions", "'x', 'y', 'move'"),
    "empty action": (("--actions", ""), "say which column is the action"),
    "unknown action": (("--actions", "moev"), "no column 'moev'", "did you mean 'move'?"),
    "unknown feature": (("--actions", "move", "--features", "x,fxrce"), "no column 'fxrce'", "did you mean 'force'?"),
    "far name": (("--actions", "qqq"), "valid names are 'x', 'y', 'move', 'force', 'other'."),
    "no feature": (("--actions", "move", "--features", ""), "at least one column"),
    "bad quotes": (("--actions", "a\nb"), "separated by commas"),
    "unknown episode": ((*MOVE, "--episodes", "nope"), "no column 'nope'"),
    "unknown weight": ((*MOVE, "--weights", "nope"), "no column 'nope'"),
    "twice a feature": (("--actions", "move", "--features", "x,x"), "'x' in two"),
    "action and feature": (("--actions", "move", "--features", "x,move"), "'move' in two"),
    "weight and feature": ((*MOVE, "--weights", "x"), "'x' in two"),
    "episode and action": ((*MOVE, "--episodes", "move"), "'move' in two"),
    "negative weight": ((*MOVE, "--weights", "force"), "not negative", "row"),
    "text weight": (("--actions", "force", "--features", "x", "--weights", "move"), "'move' must be numbers", "row 1"),
    "policy": ((*MOVE, "--policy", "gauss"), "--policy", "'gauss'"),
    "labels as numbers": ((*MOVE, "--policy", "gaussian"), "'move' must be numbers", "row 1"),
    "numbers as labels": ((*FORCED, "--policy", "boltzmann"), "whole numbers", "row 1"),
    "two discrete": (("--actions", "force,other", "--features", "x", "--policy", "boltzmann"), "one column"),
    "text among actions": (("--actions", "force,move", "--features", "x"), "'move' must be numbers", "'"),
    "rule": ((*MOVE, "--rule", "simple"), "'simple'", "did you mean 'simplified'?"),
    "correction": ((*MOVE, "--correction", "hol"), "'hol'", "did you mean 'holm'?"),
    "two corrections": ((*MOVE, "--paper-rule", "--correction", "bh"), "drop one"),
    "significance 0": ((*MOVE, "--significance", "0"), "between 0 and 1", "found 0.0"),
    "significance 1": ((*MOVE, "--significance", "1"), "between 0 and 1"),
    "significance nan": ((*MOVE, "--significance", "nan"), "between 0 and 1"),
    "significance text": ((*MOVE, "--significance", "abc"), "--significance", "policyspace identify --help"),
    "unknown option": ((*MOVE, "--bogus"), "--bogus", "policyspace identify --help"),
    "option without value": ((*MOVE, "--json"), "--json", "--help"),
    "two files": (("second.csv", *MOVE), "second.csv", "policyspace identify --help"),
    "reference": ((*MOVE, "--reference", "halt"), "'halt' is no action"),
    "reference of a number": ((*FORCED, "--reference", "go"), "only discrete actions"),
    "firth": ((*FORCED, "--firth"), "Firth"),
    "assume": ((*MOVE, "--assume", "z"), "'z'", "valid names are 'x', 'y'"),
    "older option": ((*MOVE, "--always", "x"), "the option --always is now --assume"),
    "assume all": ((*MOVE, "--assume", "x,y"), "nothing is left to test"),
    "covariance of labels": ((*MOVE, "--covariance", "1"), "belongs to the Gaussian"),
    "negative covariance": ((*FORCED, "--covariance", "-1"), "positive definite", "-1"),
    "zero covariance": ((*FORCED, "--covariance", "0"), "positive definite"),
    "nan covariance": ((*FORCED, "--covariance", "nan"), "finite"),
    "tiny covariance": ((*FORCED, "--covariance", "1e-320"), "other units"),
    "huge covariance": ((*FORCED, "--covariance", "1e308"), "other units"),
    "covariance below rounding": ((*FORCED, "--covariance", "1e-30"), "rounding"),
    "two variances": ((*FORCED, "--covariance", "1,2"), "shape (2,)"),
    "no covariance file": ((*FORCED, "--covariance", "none.csv"), "'none.csv'"),
    "empty covariance": ((*FORCED, "--covariance", ""), "found ''"),
    "folder as covariance": ((*FORCED, "--covariance", "."), "found '.'"),
    "endless covariance": ((*FORCED, "--covariance", "a" * 5000), "too long"),
    "parameters without covariance": (("--actions", "force,other", "--features", "x", "--groups", "parameter"), "exact"),
    "json folder missing": ((*MOVE, "--json", "no/such/a.json"), "no/such"),
    "json is a folder": ((*MOVE, "--json", "."), "folder"),
    "json name too long": ((*MOVE, "--json", "a" * 300), "too long"),
    "plot folder missing": ((*MOVE, "--plot", "no/such/a.png"), "no/such"),
    "plot suffix": ((*MOVE, "--plot", "a.gif"), ".png, .svg or .pdf", "'.gif'"),
    "plot without suffix": ((*MOVE, "--plot", "a"), "no suffix"),
    "seed": ((*MOVE, "--test", "bootstrap", "--seed", "-1"), "--seed", "-1"),
    "unknown test": ((*MOVE, "--test", "wilk"), "'wilk'", "did you mean 'wilks'?"),
    "follow without episodes": ((*MOVE, "--follow"), "--episodes"),
    "follow and json": ((*MOVE, "--follow", "--episodes", "other", "--json", "-"), "--follow", "--json"),
    "follow and rule": ((*MOVE, "--follow", "--episodes", "other", "--rule", "combinatorial"), "--rule"),
    "wait alone": ((*MOVE, "--wait", "1"), "--wait belongs to --follow"),
    "no budget": ((*MOVE, "--follow", "--episodes", "other", "--budget", "0"), "--budget", "found 0"),
    "endless wait": ((*MOVE, "--follow", "--episodes", "other", "--wait", "nan"), "--wait", "nan"),
    "hidden": ((*FORCED, "--policy", "network", "--hidden", "eight"), "'eight'"),
    "groups word": ((*MOVE, "--groups", "features"), "'feature'"),
    "groups missing": ((*MOVE, "--groups", "none.toml"), "none.toml"),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_bad_options(name, run, folder):
    arguments, *expected = OPTIONS[name]
    check(run("log.csv", *arguments), *expected)
    assert [path.name for path in folder.iterdir()] == ["log.csv"]  # nothing was written


def test_no_file_at_all(run):
    check(run(), "SOURCE", "policyspace identify --help")


FILES = {
    "missing": ("none.csv", None, "there is no such file"),
    "suffix": ("table.txt", b"x", ".csv", ".parquet"),
    "empty": ("table.csv", b"", "empty"),
    "blank": ("table.csv", b"\n\n", "header"),
    "header only": ("table.csv", b"x,move\n", "at least one row"),
    "utf-16": ("table.csv", "x,move\n1,a\n".encode("utf-16"), "UTF-8", "line 1"),
    "latin-1": ("table.csv", "x,move\n1,é\n".encode("latin-1"), "UTF-8", "line 2"),
    "semicolons": ("table.csv", b"x;move\n1;a\n2;b\n", "';'"),
    "same name twice": ("table.csv", b"x,x,move\n1,1,a\n", "'x' twice"),
    "too many fields": ("table.csv", b"x,move\n1,a\n2,b,3\n", "found 3 in row 2"),
    "only bookkeeping": ("table.csv", b",reward,move\n0,1,a\n1,2,b\n", "only log data ('', 'reward')", "name the"),
    "no feature": ("table.csv", b"move\na\nb\n", "at least one column"),
    "free text": ("table.csv", b"x,note,move\n1,hi,a\n2,ho,b\n3,hu,a\n", "'note'", "row 1"),
    "constant text": ("table.csv", b"x,note,move\n1,hi,a\n2,hi,b\n3,hi,a\n", "'note' is constant"),
    "named as the constant": ("table.csv", b"intercept,move\n1,a\n2,b\n3,a\n", "'intercept'"),
    "category named as the constant": (
        "table.csv", b"intercept,move\n" + b"u,a\nv,b\nu,b\nv,a\n" * 9, "'intercept'", "rename"
    ),
    "cut csv.gz": ("table.csv.gz", b"\x1f\x8b\x08\x00", "csv.gz"),
    "no parquet": ("table.parquet", b"PAR1 nothing", "parquet"),
    "no feather": ("table.feather", b"ARROW1 nothing", "feather"),
    "no arrow": ("table.arrow", b"nothing", "arrow"),
    "no npz": ("table.npz", b"PK\x03\x04nothing", "npz"),
    "newer header": ("table.csv", b'# policyspace: {"version": 99}\nx,move\n1,a\n', "update policyspace"),
    "damaged header": ("table.csv", b"# policyspace: {oops\nx,move\n1,a\n", "header"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_bad_files(name, run):
    path, content, *expected = FILES[name]
    if content is not None:
        save(content, path)
    check(run(path, "--actions", "move"), *expected)


def test_a_folder_without_tables(run):
    Path("empty").mkdir()
    check(run("empty", "--actions", "move"), "expected a folder with files", "found none")


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".feather", ".arrow", ".npz"])
def test_files_cut_anywhere(suffix, run):
    """A file of ours that lost its end is never taken for a shorter log."""
    data = Sample.from_arrays(np.column_stack([X, Y]), LABEL, ["x", "y"])
    write(data, f"log{suffix}")
    whole = Path(f"log{suffix}").read_bytes()
    for share in (0.2, 0.5, 0.9, 0.99):
        save(whole[: int(share * len(whole))], f"cut{suffix}")
        check(run(f"cut{suffix}"), f"cut{suffix}")


CELLS = {
    "nan": ("nan,1,go", "'x'", "missing", "row 5"),
    "infinite": ("1,-inf,go", "'y'", "-inf", "row 5"),
    "overflow": ("1e400,1,go", "'x'", "inf", "row 5"),
    "missing": (",1,go", "'x'", "missing", "row 5"),
    "missing action": ("1,1,", "'move'", "missing", "row 5"),
    "short row": ("1,1", "'move'", "missing", "row 5"),
    "text": ("fast,1,go", "'x'", "'fast'", "row 5"),
    "NA": ("NA,1,go", "'x'", "missing", "row 5"),
    "long row": ("1,1,go,4", "found 4", "row 5"),
}


@pytest.mark.parametrize("name", CELLS)
def test_bad_cells(name, run):
    cell, *expected = CELLS[name]
    check(run(table((5, cell)), "--actions", "move"), *expected)


def columns(**given):
    polars.DataFrame(given).write_csv("table.csv")
    return "table.csv"


def test_one_action_only(run):
    check(run(columns(x=X, move=["go"] * N), "--actions", "move"), "'go'", "never chooses")
    check(run(columns(x=X, force=[2.5] * N), "--actions", "force"), "2.5", "never chooses")


def test_fewer_rows_than_parameters(run):
    few = columns(x=X[:3], y=Y[:3], z=OTHER[:3], move=["go", "stop", "go"])
    check(run(few, "--actions", "move"), "3 rows are fewer than the 4 parameters")
    check(run(columns(x=X[:2], force=FORCE[:2]), "--actions", "force"), "2 rows are too few")


def test_actions_without_noise(run):
    """λ would be a ratio of roundings."""
    check(run(columns(x=X, force=2 * X + 1), "--actions", "force"), "exact linear function")
    twice = columns(x=X, force=FORCE, again=2 * FORCE)
    check(run(twice, "--actions", "force,again"), "linear functions of one another")


@pytest.mark.parametrize("factor", [1e200, 1e-200])
@pytest.mark.parametrize("action", ["move", "force"])
def test_values_beyond_the_range_of_squares(factor, action, run):
    file = columns(x=X * factor, y=Y, move=LABEL, force=FORCE)
    check(run(file, "--actions", action, "--features", "x,y"), "'x'", "other units")
    check(run(columns(x=X, force=FORCE * factor), "--actions", "force"), "'force'", "other units")


def test_too_many_labels(run):
    check(run(columns(x=np.tile(X, 4), move=np.arange(4 * N)), "--actions", "move"), "looks continuous")


GROUPS = {
    "[groups]\np = ['x', 'zz']": "'zz'",
    "[groups]\np = 'x'": "list of feature names",
    "[groups.a]\nb = ['x']": "list of feature names",
    "groups = 'feat'": "'feat'",
    "[groups\n": "TOML",
    "assume = 'x'": "a list assume",
    "assume = ['zz']": "'zz'",
    "[fixed]\nx = 'a'": "number",
    "[fixed]\nx = true": "number",
    "[fixed]\nx = nan": "'x'",
    "[fixed]\nx = 1" + "0" * 400: "'x'",
    "[fixed]\nzz = 1": "'zz'",
    "[fixed]\nx = 1e20": "no choice",
    "fixed = 3": "number",
    "foo = 1": "'foo'",
    "[groups]\np = []": "empty",
    "[groups]\np = ['x']\nq = ['x']": "share",
    "[groups]\ny = ['x']": "'y'",
    "[groups]\nintercept = ['x']": "'intercept'",
    "assume = ['x']\n[groups]\np = ['x', 'y']": "in part only",
}


@pytest.mark.parametrize("text", GROUPS)
def test_bad_groups_files(text, run):
    save(text, "groups.toml")
    check(run("log.csv", *MOVE, "--groups", "groups.toml"), GROUPS[text])


def test_groups_files_that_cannot_be_read(run):
    save(b"\xff", "groups.toml")
    check(run("log.csv", *MOVE, "--groups", "groups.toml"), "groups.toml", "TOML")
    Path("folder.toml").mkdir()
    check(run("log.csv", *MOVE, "--groups", "folder.toml"), "folder.toml")


MATRICES = {
    "not positive definite": ("c.txt", b"1 2\n2 1\n", "eigenvalue -1"),
    "not symmetric": ("c.csv", b"1,0.5\n0.2,1\n", "symmetric"),
    "ragged": ("c.csv", b"1,0.5\n0.5\n", "not a matrix"),
    "with a header": ("c.csv", b"u,v\n1,0\n0,1\n", "not a matrix", "'u'"),
    "empty": ("c.csv", b"", "shape (0,)"),
    "bytes": ("c.csv", b"\xff\xfe\x00", "not a matrix"),
    "three": ("c.csv", b"1,0,0\n0,1,0\n0,0,1\n", "shape (3, 3)"),
    "no npy": ("c.npy", b"garbage", "not a matrix"),
    "json object": ("c.json", b"{}", "must be numbers"),
    "json text": ("c.json", b'"estimate"', "must be numbers"),
    "json numbers as text": ("c.json", b'[["1", "0"], ["0", "1"]]', "must be numbers"),
    "json ragged": ("c.json", b"[[1, 0], [0]]", "not a matrix"),
    "json too deep": ("c.json", b"[" * 100_000, "not a matrix"),
}


@pytest.mark.parametrize("name", MATRICES)
def test_bad_covariance_files(name, run):
    path, content, *expected = MATRICES[name]
    save(content, path)
    check(run("log.csv", "--actions", "force,other", "--features", "x,y", "--covariance", path), *expected)


@pytest.mark.parametrize("matrix", [np.eye(2) + 1j, np.array([[{}, {}], [{}, {}]], dtype=object)])
def test_covariance_arrays_that_are_no_numbers(matrix, run):
    np.save("c.npy", matrix, allow_pickle=True)
    check(run("log.csv", "--actions", "force,other", "--features", "x,y", "--covariance", "c.npy"), "numbers")


def test_a_name_cannot_break_the_line_or_the_terminal(run):
    name = "red\x1b[31m\nline"
    polars.DataFrame({name: [np.nan, 1.0], "move": ["a", "b"]}).write_parquet("table.parquet")
    code, out, err = run("table.parquet", "--actions", "move")
    check((code, out, err), "complete")
    assert "\x1b" not in err


# -- in a process of its own ----------------------------------------------------------------------------------------------

COMMAND = [sys.executable, "-m", "policyspace"]


def process(*arguments, **settings):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, **settings)


def test_the_entry_point():
    done = process("identify", "none.csv", "--actions", "move")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "policyspace: none.csv: there is no such file: check the path.\n"


def test_unknown_command():
    done = process("identfy")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "identfy" in done.stderr


def test_a_terminal_without_greek():
    settings = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = process("identify", "log.csv", *MOVE, "--policy", "boltzmann", env=os.environ | settings)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "The agent uses 1 of 2: x."
    assert lines[1].split()[-2:] == ["?", "df"]  # λ


def test_a_reader_that_leaves():
    """`policyspace identify … | head -1`: the pipe closes early, and nobody complains."""
    script = (
        f"{sys.executable} -m policyspace identify log.csv {' '.join(MOVE)} --json - | true; echo ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() in ("0", "1")  # typer says 1 where the pipe breaks inside a command
    assert done.stderr == ""


def test_interrupted(folder):
    """Ctrl-C in the middle of the work: exit code 130, one sentence, no file."""
    polars.read_csv("log.csv").with_row_index("episode").with_columns(polars.col("episode") // 6).write_csv("log.csv")
    arguments = ["identify", "log.csv", *MOVE, "--episodes", "episode", "--follow", "--wait", "600"]
    settings = os.environ | {"PYTHONUNBUFFERED": "1"}
    running = subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=settings
    )
    assert running.stdout is not None and running.stdout.readline()  # it has begun, and waits for more rows
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert err.count("\n") == 1
    assert "interrupted" in err
    assert [path.name for path in folder.iterdir()] == ["log.csv"]
