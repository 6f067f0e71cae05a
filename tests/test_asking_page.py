"""The page *Asking an agent* is run, from its first example to its last.

After a change of words, `POLICYSPACE_REWRITE_PAGES=1 pytest tests/test_asking_page.py` writes its output again.
"""

import os
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "asking.md"
BLOCK = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


def test_the_page_shows_what_was_printed():
    pytest.importorskip("stable_baselines3")
    text = PAGE.read_text(encoding="utf-8")
    printed = []
    names = {"print": lambda *values, sep=" ": printed.append(sep.join(map(str, values)))}
    found = []
    for block in BLOCK.finditer(text):
        exec(block[1], names)
        lines = [line.rstrip() for line in "\n".join(printed).splitlines()]
        found.append("\n".join(lines) + "\n")
        printed.clear()
    if os.environ.get("POLICYSPACE_REWRITE_PAGES"):
        rest = iter(found)
        text = BLOCK.sub(lambda block: f"```python\n{block[1]}```\n\n```text\n{next(rest)}```", text)
        PAGE.write_text(text, encoding="utf-8")
    shown = [block[2] for block in BLOCK.finditer(text)]
    assert [*found[:2], *found[3:]] == [*shown[:2], *shown[3:]]
    words = re.compile(
        r"^(\w+ +(?:never|reacts)) .*?(used|no evidence)", re.MULTILINE
    )  # what a log shows is for others
    assert words.findall(found[2]) == words.findall(shown[2])
    paired, answer, watched, played, delivered, compared = found
    assert paired.startswith("Reacts to angle and angular_velocity; no evidence for position and velocity")
    assert "never to position, velocity and angular_velocity" in answer and answer.splitlines()[-1].endswith(", 0, 0")
    assert re.search(r"angular_velocity +never +0 +used .* false", watched)
    assert "also reacts to angular_velocity" in compared
    assert played.startswith("Reacts to angle;") and played.splitlines()[-1] == "angle"
    assert delivered.startswith("The agent uses 2 of 4: angle and angular_velocity.")
