"""Where results are saved: only in place of a file, never of an input, with its mode, and nothing left behind."""

import os
import socket
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from policyspace import InputError, Sample, identify, write
from policyspace.safe_io import check_targets, place_of, replacing

RNG = np.random.default_rng(0)
STATES = RNG.normal(size=(200, 2))
LOG = Sample.from_arrays(
    STATES, np.where(STATES[:, 0] + RNG.normal(size=200) > 0, "go", "stay"), features=["speed", "left"]
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def device(path):
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes devices")


def unix_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


MADE = {
    "a device": device,
    "a pipe": os.mkfifo,
    "a socket": unix_socket,
    "a folder": os.mkdir,
    "leads to no file": lambda path: Path(path).symlink_to("nowhere"),
    "leads to no": lambda path: Path(path).symlink_to(path),
}


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("linked", [False, True])
def test_what_is_no_file_is_refused_and_stays(folder, kind, linked):
    MADE[kind]("target.csv")
    before = os.lstat("target.csv")
    target = "target.csv"
    if linked:
        Path("link.csv").symlink_to("target.csv")
        target = "link.csv"
    for attempt in (lambda: check_targets([target]), lambda: write(LOG, target)):
        with pytest.raises(InputError) as told:
            attempt()
        assert (kind if not linked or "leads" not in kind else "leads to no file") in str(told.value)
    after = os.lstat("target.csv")
    assert (after.st_mode, after.st_ino, after.st_rdev) == (before.st_mode, before.st_ino, before.st_rdev)
    assert not list(folder.glob(".policyspace*"))


@pytest.mark.parametrize("name", ["input.csv", "hard.csv", "soft.csv", "./sub/../input.csv", "other/input.csv"])
def test_an_input_is_never_a_target(folder, name):
    (folder / "input.csv").write_text("data")
    os.link("input.csv", "hard.csv")
    Path("soft.csv").symlink_to("input.csv")
    (folder / "sub").mkdir()
    Path("other").symlink_to(".")
    with pytest.raises(InputError, match="is the file that is read"):
        check_targets([name], ["input.csv"])
    with pytest.raises(InputError, match="named twice"):
        check_targets(["input.csv", None, name])
    check_targets([name], [None, "feature", "not there"])


def test_a_file_that_is_not_there_yet_is_not_named_twice(folder):
    Path("other").symlink_to(".")
    with pytest.raises(InputError, match="named twice"):
        check_targets(["new.json", "other/new.json"])


@pytest.mark.parametrize("name", ["no/folder/x.json", "x" * 300, "zero\0byte", ""])
def test_names_that_cannot_be_are_refused_in_a_sentence(name):
    with pytest.raises(InputError):
        place_of(name)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755])
def test_an_existing_file_keeps_its_mode(folder, mode):
    (folder / "x").write_text("old")
    (folder / "x").chmod(mode)
    with replacing("x") as file:
        file.write(b"new")
    assert (folder / "x").read_text() == "new"
    assert stat.S_IMODE((folder / "x").stat().st_mode) == mode


def test_a_new_file_has_the_mode_that_the_user_wants(folder):
    before = os.umask(0o027)
    try:
        with replacing("x") as file:
            file.write(b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "x").stat().st_mode) == 0o640


def test_a_link_stays_a_link(folder):
    (folder / "real").write_text("old")
    Path("link").symlink_to("real")
    with replacing("link") as file:
        file.write(b"new")
    assert Path("link").readlink() == Path("real") and (folder / "real").read_text() == "new"


WRITER = textwrap.dedent(
    """
    import sys
    from policyspace.safe_io import replacing
    with replacing("x") as file:
        file.write(b"half")
        file.flush()
        print("half", flush=True)
        sys.stdin.readline()
    """
)


def writer():
    pipe = subprocess.PIPE
    started = subprocess.Popen([sys.executable, "-c", WRITER], stdin=pipe, stdout=pipe, text=True)
    assert started.stdout.readline() == "half\n"
    return started


def test_the_next_run_cleans_up_after_one_that_was_killed_and_not_under_one_that_lives(folder):
    killed, alive = writer(), writer()
    killed.kill()
    killed.wait()
    assert len(list(folder.glob(".policyspace*"))) == 2
    (folder / ".policyspace-of-a-user.txt").write_text("mine")
    os.mkfifo(".policyspace-trap.tmp")  # opening it would take for ever
    with replacing("y") as file:
        file.write(b"whole")
    assert len([path for path in folder.glob(".policyspace-*.tmp") if path.is_file()]) == 1
    alive.communicate("go on\n")
    assert (folder / "x").read_text() == "half" and alive.returncode == 0
    assert sorted(path.name for path in folder.glob(".policyspace*")) == [
        ".policyspace-of-a-user.txt",
        ".policyspace-trap.tmp",
    ]


def test_a_file_that_was_taken_for_left_over_is_made_again(folder, monkeypatch):
    """Between making and locking it: then a lock is all that another process can see of this one."""
    from policyspace import safe_io as whole_file

    lock, taken = whole_file._lock, []

    def slow(file, wait):
        if wait and not taken:
            taken.append(file.name)
            Path(file.name).unlink()
        return lock(file, wait)

    monkeypatch.setattr(whole_file, "_lock", slow)
    with replacing("x") as file:
        file.write(b"whole")
    assert taken and (folder / "x").read_text() == "whole"


def test_an_answer_is_not_written_over_its_data_by_python_either(folder):
    """In Python a file that was read may be written again: the data are in memory."""
    write(LOG, "log.csv")
    answer = identify("log.csv")
    write(LOG, "log.csv")
    assert identify("log.csv").selected == answer.selected
