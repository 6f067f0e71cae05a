"""The version of the code: it moves with what the code does, not with its words, its layout or its pictures."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import policyspace
from policyspace.data.code_version import NEVER_RUN, code_version, source_digest

PACKAGE = Path(policyspace.__file__).parent


@pytest.fixture
def copy(tmp_path):
    """Some modules of the package."""
    for name in ("fits/law.py", "inference/glr.py", "report/style.py"):
        (tmp_path / name).parent.mkdir()
        shutil.copy(PACKAGE / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def change(copy):
    """Replaces words in a file of the copy for one test, and gives the digest of all files then."""
    before = {}

    def changed(name, old, new):
        path = copy / name
        text = before.setdefault(path, path.read_text(encoding="utf-8"))
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        return source_digest(copy)

    yield changed
    for path, text in before.items():
        path.write_text(text, encoding="utf-8")


def test_the_same_source_is_the_same_version(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "policyspace", ignore=shutil.ignore_patterns("__pycache__"))
    assert code_version() == f"{policyspace.__version__}+{source_digest(tmp_path / 'policyspace')}"


def test_words_and_layout_change_nothing(copy, change):
    version = source_digest(copy)
    law = "fits/law.py"
    assert change(law, '"""The law of λ', '"""Laws of λ') == version  # of a module
    assert change(law, '"""P(χ²_m ≥ λ)', '"""Otherwise') == version  # of a function
    assert change("inference/glr.py", '"""What λ is worth', '"""Worth') == version  # of a number
    assert change(law, "\n\n\n@dataclass", "\n# a comment\n\n\n\n@dataclass") == version
    assert change(law, "if degrees_of_freedom else 1.0\n", "if (degrees_of_freedom) else (1.0)  # so\n") == version


def test_what_is_computed_changes_it(copy, change):
    version = source_digest(copy)
    found = {
        change("inference/glr.py", "ACCURACY = 1e-6", "ACCURACY = 2e-6"),
        change("inference/glr.py", "statistic = 2.0 *", "statistic = 2.0 +"),
        change("fits/law.py", 'name: str = "chi2"', 'name: str = "chi"'),
    }
    assert len(found) == 3 and version not in found


def test_a_new_name_of_a_module_changes_it_and_a_picture_does_not(copy, change):
    version = source_digest(copy)
    assert change("report/style.py", "WIDTH = 7.2", "WIDTH = 8.2") == version
    (copy / "fits" / "another.py").write_text("")
    assert source_digest(copy) != version
    (copy / "fits" / "another.py").unlink()
    (copy / "report" / "another.py").write_text("A = 1\n")
    assert source_digest(copy) == version


def test_what_the_digest_leaves_out_is_never_run_by_experiments():
    """Every experiment, and every world that they are run in, is imported by a process of its own."""
    code = """
import sys
from policyspace.experiments.catalogue import EXPERIMENTS, experiment_module
from policyspace.worlds import WORLDS, make_world
for name in EXPERIMENTS:
    experiment_module(name)
for name in WORLDS:
    make_world(name)
print(*(name.replace(".", "/") for name in sys.modules if name.startswith("policyspace.")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "policyspace/experiments/car_sensors" in loaded
    left_out = {f"policyspace/{part.removesuffix('.py')}" for part in NEVER_RUN}
    assert all((PACKAGE.parent / part).exists() or (PACKAGE.parent / f"{part}.py").exists() for part in left_out)
    assert {name for name in loaded if any(f"{name}/".startswith(f"{part}/") for part in left_out)} == set()
