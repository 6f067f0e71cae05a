"""From an answer of any kind to its page."""

from collections.abc import Iterator
from functools import singledispatch
from pathlib import Path

from policyspace.answer import Identification
from policyspace.configuration.rounds import Rounds
from policyspace.errors import InputError
from policyspace.planning import Plan
from policyspace.report.answer_page import answer_page
from policyspace.report.page import page_path, write_page
from policyspace.report.plan_page import plan_page
from policyspace.report.rounds_page import rounds_page
from policyspace.shown import Shown


def write_report(answer: Shown, path: str | Path) -> Path:
    """Save the page of an answer, and say where it is."""
    target = page_path(path)
    write_page(target, answer.sentence, page_of(answer))
    return target


@singledispatch
def page_of(answer: Shown) -> Iterator[str]:
    """The parts of the page that a kind of answer has."""
    raise InputError(
        f"a report is made of an answer, a plan, a study or a configured run, found {type(answer).__name__}."
    )


page_of.register(Identification)(answer_page)
page_of.register(Plan)(plan_page)
page_of.register(Rounds)(rounds_page)
