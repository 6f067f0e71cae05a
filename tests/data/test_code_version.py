"""The version of the code: it moves with what the code does, not with its words, its layout or its pictures."""

import shutil
from pathlib import Path

import pytest

import policyspace
from policyspace.data.large.backends import NEVER_RUN, code_version, source_digest

PACKAGE = Path(policyspace.__file__).parent


@pytest.fixture
def copy(tmp_path):
    """Some modules of the package."""
    for name in ("families/likelihood.py", "inference/base.py", "report/figures.py"):
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
    law = "families/likelihood.py"
    assert change(law, '"""The interface of likelihoods, fits', '"""Fits') == version  # of a module
    assert change(law, '"""P(χ²_m ≥ λ)', '"""Otherwise') == version  # of a function
    assert change("inference/base.py", '"""What λ is worth', '"""Worth') == version  # of a number
    assert change(law, "\n\n\n@dataclass", "\n# a comment\n\n\n\n@dataclass") == version
    assert change(law, "if degrees_of_freedom else 1.0\n", "if (degrees_of_freedom) else (1.0)  # so\n") == version


def test_what_is_computed_changes_it(copy, change):
    version = source_digest(copy)
    found = {
        change("inference/base.py", "ACCURACY = 1e-6", "ACCURACY = 2e-6"),
        change("inference/base.py", "statistic = 2.0 *", "statistic = 2.0 +"),
        change("families/likelihood.py", 'name: str = "chi2"', 'name: str = "chi"'),
    }
    assert len(found) == 3 and version not in found


def test_a_new_name_of_a_module_changes_it_and_a_picture_does_not(copy, change):
    version = source_digest(copy)
    assert change("report/figures.py", "WIDTH = 7.2", "WIDTH = 8.2") == version
    (copy / "families" / "another.py").write_text("")
    assert source_digest(copy) != version
    (copy / "families" / "another.py").unlink()
    (copy / "report" / "another.py").write_text("A = 1\n")
    assert source_digest(copy) == version


def test_what_the_digest_leaves_out_is_there():
    assert all((PACKAGE / part).exists() for part in NEVER_RUN)
