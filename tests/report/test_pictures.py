"""No picture of README and docs is older than what draws it."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("docs_pictures", ROOT / "docs" / "pictures.py")
pictures = importlib.util.module_from_spec(SPEC)
sys.modules["docs_pictures"] = pictures
SPEC.loader.exec_module(pictures)
RECORD = json.loads(pictures.RECORD.read_text())


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_is_as_new_as_its_code(name):
    again = f"python docs/pictures.py {name}"
    assert RECORD[name]["code"] == pictures.code_digest(pictures.PICTURES[name].drawn_by), f"make it again: {again}"
    assert RECORD[name]["file"] == pictures.file_digest(pictures.IMAGES / name), f"it is not what was drawn: {again}"


def test_every_picture_of_the_pages_has_its_command():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    shown = {name for page in pages for name in re.findall(r"images/([\w.-]+)", page.read_text(encoding="utf-8"))}
    known = {*pictures.PICTURES, *pictures.ELSEWHERE}
    assert shown <= known
    assert {path.name for path in pictures.IMAGES.iterdir()} == known | {"record.json"}


def test_words_are_no_code(tmp_path, monkeypatch):
    """The digest sees what a module does, not what it says of itself."""
    folder = tmp_path / "src" / "policyspace"
    folder.mkdir(parents=True)
    monkeypatch.setattr(pictures, "ROOT", tmp_path)
    digests = []
    for text in (
        '"""One."""\ndef f():\n    """A."""\n    return 1\n',
        "def f():  # two\n    return 1\n",
        "def f():\n    return 2\n",
    ):
        (folder / "m.py").write_text(text)
        digests.append(pictures.code_digest(("m.py",)))
    assert digests[0] == digests[1] != digests[2]
