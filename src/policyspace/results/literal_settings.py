"""Every constant of the paper's settings, and where it states them, as a panel."""

from dataclasses import fields
from typing import Any

from policyspace.experiments.literal import GUESS, LITERAL, Literal
from policyspace.experiments.records import Record
from policyspace.results.panel import Panel


def settings_panels(experiment: str, world: str, records: list[Record]) -> list[Panel]:
    """Beside results of the literal procedure, every constant of it and where the paper states it."""
    if records[0].setting.get("procedure") != "literal":
        return []
    own = [(one.name, getattr(LITERAL[world], one.name)) for one in fields(Literal)]
    rows: list[tuple[str, ...]] = [
        (name.replace("_", " "), _words(said.value), said.where) for name, said in own if said is not None
    ]
    guesses = sum(row[-1].startswith(GUESS) for row in rows)
    return [
        Panel(
            f"{experiment}-settings",
            "The literal settings, and where the paper states them",
            "Which of these settings are the paper's, and which are guesses where it is silent?",
            "our own",
            f"{len(rows) - guesses} of {len(rows)} are stated in the paper, {guesses} are guesses.",
            None,
            ("setting", "value", "stated in"),
            rows,
        )
    ]


def _words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
