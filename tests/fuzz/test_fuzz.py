"""The short version of `make fuzz`: what was found once stays mended, some fresh inputs, and some kills."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.case import FOUND, Case, failure
from tests.fuzz.from_hypothesis import examples
from tests.fuzz.targets import draw

KEPT = sorted(FOUND.glob("*.json"))


@pytest.mark.parametrize("path", KEPT, ids=[path.stem for path in KEPT])
def test_what_was_found_stays_mended(path, tmp_path):
    assert failure(Case.from_json(path.read_text()), tmp_path) is None


def test_some_inputs(tmp_path):
    rng = random.Random(int(os.environ.get("POLICYSPACE_FUZZ_SEED", "0")))
    for name, case in [draw(rng) for _ in range(400)]:
        assert (name, failure(case, tmp_path)) == (name, None), case.keep()


def test_some_inputs_by_hypothesis(tmp_path):
    for case in examples(0, 40):
        assert failure(case, tmp_path) is None, case.keep()


def test_a_failure_is_seen_kept_and_found_again(tmp_path, monkeypatch):
    """A fuzzer that sees nothing would pass every test above."""
    import policyspace.data.files

    case = Case(["identify", "t.csv", "--actions", "a"], {"t.csv": b"x,a\n1,b\n"})
    home = tmp_path / "home"
    home.mkdir()
    assert failure(case, home) is None
    monkeypatch.setattr(policyspace.data.files, "size_of", lambda *_: 1 / 0)
    assert "ZeroDivisionError" in failure(case, home)
    kept = case.keep(tmp_path / "found")
    assert Case.from_json(kept.read_text()) == case


def test_some_kills():
    arguments = [
        sys.executable,
        "-m",
        "tests.fuzz",
        "--inputs",
        "0",
        "--kills",
        "3",
        "--only",
        "identify",
        "--seed",
        "0",
    ]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 kills (identify 3), 0 wrong" in done.stdout
