"""The page of a study or a configured run: the answer so far, the rounds in pictures and words, and what comes next."""

from collections.abc import Iterator
from typing import Any

from policyspace.configuration.round import Round
from policyspace.configuration.rounds import Rounds
from policyspace.configuration.status import Status
from policyspace.printable import escaped, number_of
from policyspace.report import page
from policyspace.report.configuration_words import configuration_in_words
from policyspace.report.rounds_picture import Story, draw_rounds
from policyspace.table import Table

SETTINGS = ("rule", "significance", "num_rounds", "num_episodes", "budget", "test", "paper_rule")


def rounds_page(study: Rounds) -> Iterator[str]:
    """The parts of the page."""
    status, world = study.status(), study.world
    most = number_of(status.schedule.num_rounds, "round")
    lead = f"{status.total_episodes:,} episodes in {len(status.rounds)} of at most {most}"
    yield page.header(status.sentence, escaped(f"{lead}, in the world {world.name}."), "configured rounds")
    yield from page.banner(escaped(f"Warning: {warning}") for r in status.rounds for warning in r.warnings)
    if status.rounds:
        story = Story.of(world, status.rounds, status.schedule.units, status.truth)
        told = f"Round after round, {story.verdict}; the table below says the same in words."
        table = page.table(study.table(), "What every round has shown")
        yield page.section("The rounds", page.picture(draw_rounds(story), "rounds", told), table)
        yield page.section("Where the agent was observed", *(_round(world.name, r) for r in status.rounds))
        yield from _last_tests(status.rounds[-1])
    yield page.section("What is promised, and what comes next", *map(page.paragraph, study.notes()))
    yield from page.ending(_settings(status), study.made_by, "The same rounds give the same page.")


def _round(world: str, record: Round) -> str:
    """Where, and in which configuration."""
    return page.paragraph(
        f"Round {record.number + 1}, {record.how}: {configuration_in_words(world, record.configuration)}."
    )


def _last_tests(record: Round) -> Iterator[str]:
    """The numbers of the last round's tests."""
    if not record.tests:
        return
    columns = [
        name
        for name, value in max(record.tests, key=len).items()  # units that were not tested have fewer entries
        if not isinstance(value, list | dict | bool) and any(row.get(name) is not None for row in record.tests)
    ]
    rows = [[_cell(row.get(name)) for name in columns] for row in record.tests]
    names = [name.replace("_", " ") for name in columns]
    yield page.section("The tests of the last round", page.table(Table(names, rows), "Tests of the last round"))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _settings(status: Status) -> dict[str, str]:
    named = {name: getattr(status.schedule, name) for name in SETTINGS}
    named |= {name: status.settings[name] for name in ("world", "design", "seed") if name in status.settings}
    return {name.replace("_", " "): _cell(value) for name, value in named.items() if value is not None}
