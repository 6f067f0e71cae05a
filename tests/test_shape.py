"""What makes code hard to read, counted: each number may only fall. `make house` prints them all."""

import tomllib

import pytest

import policyspace
from release.house import COUNTS, ROOT, dead

pytestmark = pytest.mark.quick

CEILINGS = {
    "dict[str, Any]": 11,
    "class names with two meanings": 0,
    "names that nothing uses": 0,
    "private helpers of at most 10 lines called once": 78,
    "isinstance of a family outside its file": 0,
    ".discrete outside families": 1,
    "public objects without numpydoc and example": 0,
    "test modules that import inner modules": 46,
    "inner modules that tests import": 39,
}


@pytest.mark.parametrize("what", CEILINGS)
def test_what_is_counted_only_falls(what):
    found = COUNTS[what]()
    assert len(found) <= CEILINGS[what], f"{len(found)} {what}, at most {CEILINGS[what]} before:\n" + "\n".join(found)


def test_everything_that_is_counted_has_a_ceiling():
    assert set(COUNTS) == set(CEILINGS)


def test_a_private_name_that_nothing_uses_is_found(tmp_path, monkeypatch):
    from release import house

    (tmp_path / "own.py").write_text("def _used():\n    return _used\n\n\nA = 1\n_B = A\n")
    monkeypatch.setattr(house, "MODULES", {"policyspace.own": house.Module("policyspace.own", tmp_path / "own.py")})
    assert dead() == ["policyspace.own._used", "policyspace.own._B"]


def test_both_packages_have_one_version():
    paper = tomllib.loads((ROOT / "paper" / "pyproject.toml").read_text())["project"]
    text = (ROOT / "paper/src/policyspace_paper/__init__.py").read_text()
    assert f'__version__ = "{policyspace.__version__}"' in text
    assert f"policyspace[configure]=={policyspace.__version__}" in paper["dependencies"]


def test_public_objects_have_a_docstring():
    """Ruff asks for them in every module; names that are loaded when used are asked here."""
    assert [name for name in policyspace.__all__ if not getattr(policyspace, name).__doc__] == []
