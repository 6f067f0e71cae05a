"""Pages of the site that are made from what is written elsewhere: the commands, the changelog, notation and architecture.

MkDocs calls `on_files` when it builds the site (`make docs`).
"""

import re
from pathlib import Path
from typing import Any

import typer
from mkdocs.structure.files import File, Files

from policyspace.cli import app

ROOT = Path(__file__).parents[1]
ELSEWHERE = {"changelog.md": "CHANGELOG.md", "notation.md": "NOTATION.md", "architecture.md": "ARCHITECTURE.md"}


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are not in docs/."""
    for name, path in ELSEWHERE.items():
        text = re.sub(r"\]\(docs/", "](", (ROOT / path).read_text(encoding="utf-8"))
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, "reference/commands.md", content=commands()))
    return files


def commands() -> str:
    """Every command with its arguments and options, as `--help` says them."""
    parts = ["# Commands\n\nMade from the commands themselves: the same words as `--help`.\n"]
    for path, command in _walk(typer.main.get_command(app), ["policyspace"]):
        parts.append(f"## {' '.join(path)}\n\n{_escaped(command.help or '')}\n")
        context = typer.Context(command, info_name=path[-1])
        records = [record for parameter in command.params if (record := parameter.get_help_record(context))]
        rows = [f"| <code>{_escaped(names)}</code> | {_escaped(words)} |" for names, words in records]
        parts += ["| | |\n|---|---|", *rows, ""]
    return "\n".join(parts)


def _walk(command: Any, path: list[str]) -> list[tuple[list[str], Any]]:
    """The commands below this one, each with its path."""
    if not hasattr(command, "commands"):
        return [(path, command)]
    below = {name: command.get_command(None, name) for name in command.list_commands(None)}
    return [found for name, sub in below.items() for found in _walk(sub, [*path, name])]


def _escaped(text: str) -> str:
    """Help as Markdown: no mark is taken for a tag, a link or the end of a cell."""
    return re.sub(r"[<>\[\]|*_]", lambda mark: f"&#{ord(mark[0])};", text.replace("\b", "").strip().replace("\n", " "))
