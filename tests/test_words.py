"""The words of the field, and none of our own: docs, help texts and messages are searched for words that were replaced."""

import ast
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from policyspace.cli import app

ROOT = Path(__file__).resolve().parents[1]

REPLACED = {
    r"\bpromis\w*": "guarantee",
    r"\blaws?\b": "distribution, theorem",
    r"(?<!ground )(?<!ground\n)\btruths?\b": "ground truth, or boolean",
    r"\bamounts?\b": "continuous actions",
    r"\bbookkeeping\b": "log data; excluded columns",
    r"\bshows from\b": "minimum detectable effect",
    r"\bweights[-_]are\b": "weight type",
    r"--(always|attempts|dependence)\b": "--assume, --max-rounds, --clusters",
    r"\b(always|attempts|dependence)=": "assume=, max_rounds=, clusters=",
    r"\bnumber of pairs\b|\bpairs (and episodes|are (enough|needed)|until|on;)|(^|\d) pairs[,:]|\ba pair\b,": "rows",
    r"\bundecided units?\b|\bunits? (is|are|was|were) (shown|tested|found)\b": "group",
}
"""What is searched for, and the word instead."""

GENERATED = {"honesty-table.md", "random-agents.md", "calibration-table.md", "drivers-table.md"}
"""Tables of evidence, with the names of scenarios."""

ALLOWED = {
    "docs/reproduce.md": ("num attempts 0",),  # a line of the paper's experiments
}
"""Places where such a word is meant."""

MESSAGES_ALLOWED = ("in any amount",)


def found(text, allowed=()):
    for words in allowed:
        text = text.replace(words, "")
    hits = ((pattern, re.search(pattern, text, re.IGNORECASE)) for pattern in REPLACED)
    return [f"{hit.group()!r}: say {REPLACED[pattern]}" for pattern, hit in hits if hit]


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.quick
@pytest.mark.parametrize("page", [p for p in PAGES if p.name not in GENERATED], ids=lambda p: p.name)
def test_docs_use_the_words_of_the_field(page):
    allowed = ALLOWED.get(str(page.relative_to(ROOT)), ())
    lines = page.read_text(encoding="utf-8").splitlines()
    wrong = [f"{page.name}:{n}: {hit}" for n, line in enumerate(lines, 1) for hit in found(line, allowed)]
    assert not wrong, "\n".join(wrong)


def commands(group, path=()):
    for name, command in group.commands.items():
        if isinstance(command, typer.core.TyperGroup):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


@pytest.mark.quick
@pytest.mark.parametrize("command", list(commands(typer.main.get_command(app))), ids=" ".join)
def test_help_uses_the_words_of_the_field(command):
    said = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "400", "TERM": "dumb"})
    text = re.sub(r"\s+", " ", said.output)
    assert said.exit_code == 0 and not found(text)


def messages(tree):
    """Texts of more than one word that are no docstrings."""
    docstrings = {
        id(body[0].value)
        for node in ast.walk(tree)
        if isinstance(body := getattr(node, "body", None), list) and body and isinstance(body[0], ast.Expr)
    }
    docstrings |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in docstrings else None
        if isinstance(text, str) and " " in text:
            yield node.lineno, text


@pytest.mark.quick
def test_messages_use_the_words_of_the_field():
    wrong = []
    for file in sorted((ROOT / "src").rglob("*.py")):
        if file.name == "saved_answers.py":  # which reads the words of format 1
            continue
        for line, text in messages(ast.parse(file.read_text(encoding="utf-8"))):
            wrong += [f"{file.relative_to(ROOT)}:{line}: {hit}" for hit in found(text, MESSAGES_ALLOWED)]
    assert not wrong, "\n".join(wrong)
