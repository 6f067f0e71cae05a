"""The pages build into a site without a warning, and the site needs nothing from the network."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import policyspace

ROOT = Path(__file__).parents[1]


def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}  # news of the theme's own
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=quiet)
    assert built.returncode == 0 and "WARNING" not in built.stderr, built.stderr
    pages = {path.relative_to(tmp_path / "site").as_posix(): path.read_text() for path in tmp_path.rglob("*.html")}
    assert {"index.html", "reference/commands.html", "reference/python.html", "changelog.html"} <= set(pages)
    assert all(f"policyspace {name}" in pages["reference/commands.html"] for name in ("identify", "study ask"))
    assert "significance" in pages["reference/python.html"]
    for name, text in pages.items():
        loaded = re.findall(r'<(?:script|img|link|iframe)[^>]+(?:src|href)="(https?://[^"]+)"', text)
        assert not loaded, f"{name} loads {loaded}"


def test_every_public_name_is_in_the_reference():
    shown = (ROOT / "docs" / "reference" / "python.md").read_text()
    missing = [name for name in policyspace.__all__ if not re.search(rf"\.{name}$", shown, re.MULTILINE)]
    assert not missing, f"docs/reference/python.md lacks {missing}"


def test_version_and_changelog_agree():
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest and newest[1] == policyspace.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "Typing :: Typed" in project["classifiers"] and (ROOT / "src/policyspace/py.typed").exists()
