"""The page of results: every claim beside what was found."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policyspace.errors import InputError
from policyspace.printable import escaped
from policyspace.report import page
from policyspace.report.inline_svg import inline_svg
from policyspace.table import Table

MARKS = {
    "holds": ("good", "✓"),
    "holds partly": ("fair", "◐"),
    "does not hold": ("bad", "✗"),
    "our own": ("plain", "◇"),
}
"""Colours, and what is shown beside the words, so that no verdict is said by colour alone."""

PLURALS = {"holds": "hold", "holds partly": "hold partly", "does not hold": "do not hold"}
"""The verdicts on claims of the paper, as they are said of several."""

NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class PageFiles:
    """Where a page, its numbers and its figures lie in the folder of results."""

    page: str
    numbers: str
    figures: str


def write_page(folder: Path, files: PageFiles, other: PageFiles, order: tuple[str, ...]) -> None:
    """Make the page from numbers and figures; it links to the other one where that exists."""
    results = json.loads((folder / files.numbers).read_text(encoding="utf-8"))
    published = files.page != "index.html"
    link = other.page if (folder / other.numbers).exists() else None
    title = (
        "The paper's experiments, by the paper's own settings" if published else "The paper's experiments, run again"
    )
    try:
        body = list(_body(title, results, folder / files.figures, order, published, link))
    except (LookupError, TypeError, ValueError, AttributeError, OSError) as error:
        raise InputError(
            f"{folder / files.numbers}: is not a file of results ({error}): delete it; the records remake it in seconds."
        ) from error
    page.write_page(folder / files.page, title, body)


def _body(
    title: str, results: dict[str, Any], figures: Path, order: tuple[str, ...], published: bool, link: str | None
) -> Iterator[str]:
    experiments: dict[str, Any] = results["experiments"]
    yield page.header(title, _lead(experiments, published), version=results["version"])
    yield _other(link, published)
    yield from _banner(experiments, order)
    yield from _summary(experiments)
    yield from _how_to_read()
    for name, experiment in experiments.items():
        yield from _experiment(name, experiment, figures)
    yield page.footer("Made by policyspace reproduce from its records: the same records give the same page.")


def _lead(experiments: dict[str, Any], published: bool) -> str:
    """What this page is, and how the claims of the paper fared, in a sentence each."""
    panels = [panel for experiment in experiments.values() for panel in experiment["panels"]]
    counts = {verdict: sum(panel["verdict"] == verdict for panel in panels) for verdict in PLURALS}
    listed = ", ".join(f"{n}{NO_BREAK}{verdict if n == 1 else PLURALS[verdict]}" for verdict, n in counts.items() if n)
    whose = "the paper's literal settings where ours differ" if published else "our default settings"
    return (
        "The claims of “Policy Space Identification in Configurable Environments”, beside what came out when the "
        f"experiments were run again with {whose}." + (f" Of its claims, {listed}." if listed else "")
    )


def _other(link: str | None, published: bool) -> str:
    if link is None:
        return ""
    words = "the same by our default settings" if published else "the same by the paper's literal settings"
    return f'<p class="other"><a href="{link}">See {words}</a></p>'


def _banner(experiments: dict[str, Any], order: tuple[str, ...]) -> Iterator[str]:
    """What a reader must know before believing a number: miniatures, other numbers of runs, what is not here yet."""
    quick = [name for name, experiment in experiments.items() if experiment["quick"]]
    fewer = [
        name for name, experiment in experiments.items() if experiment["runs"] is not None and not experiment["quick"]
    ]
    absent = [name for name in order if name not in experiments]
    notes = []
    if quick:
        which = "" if len(quick) == len(experiments) else f": {escaped(', '.join(quick))}"
        notes.append(
            f"<strong>A miniature{which}.</strong> A quick look (<code>--quick</code>) at every figure, from few points and "
            "few runs. Its verdicts are no evidence; the same command without <code>--quick</code> gives that."
        )
    if fewer:
        notes.append(
            f"<strong>Not the paper's number of runs</strong> (<code>--runs</code>): {escaped(', '.join(fewer))}."
        )
    if absent:
        notes.append(f"<strong>Not here yet:</strong> {', '.join(absent)}.")
    yield from page.banner(notes)


def _summary(experiments: dict[str, Any]) -> Iterator[str]:
    """All claims with their verdicts, each a link to its panel."""
    yield '<nav aria-label="All claims"><h2 id="summary">In short</h2>'
    yield f'<dl class="facts">{_facts(_together(list(experiments.values())))}</dl>'
    yield '<div class="sideways"><table class="summary">'
    yield '<thead><tr><th scope="col">What is looked at</th><th scope="col">Verdict</th></tr></thead>'
    for name, experiment in experiments.items():
        link = f'<a href="#{escaped(name)}">{escaped(experiment["title"])}</a>'
        yield f'<tbody><tr><th scope="rowgroup" colspan="2">{link}</th></tr>'
        for panel in experiment["panels"]:
            link = f'<a href="#{_anchor(panel)}">{escaped(panel["title"])}</a>'
            yield f"<tr><td>{link}</td><td>{_badge(panel['verdict'])}</td></tr>"
        yield "</tbody>"
    yield "</table></div></nav>"


def _how_to_read() -> Iterator[str]:
    meanings = {
        "holds": "our numbers show what the paper says.",
        "holds partly": "they show it in part; the text says where not.",
        "does not hold": "they contradict it, or show no sign of it.",
        "our own": "a question that the paper does not ask.",
    }
    yield '<section class="reading"><h2>How to read this</h2><dl>'
    for verdict, meaning in meanings.items():
        yield f"<div><dt>{_badge(verdict)}</dt><dd>{meaning}</dd></div>"
    yield "</dl><p>Intervals are 95 % unless a table says otherwise. A <em>cell</em> is one run of one setting with its own"
    yield "seed. <em>Computing</em> is the time of all cells one after the other on one core; <em>on the clock</em> is what"
    yield "passed while they ran, several at once. The time of the authors' code is an estimate: the paper's number of runs"
    yield "× the measured time of one.</p></section>"


def _experiment(name: str, experiment: dict[str, Any], figures: Path) -> Iterator[str]:
    small = ' <span class="small">miniature</span>' if experiment["quick"] else ""
    yield f'<section class="experiment" id="{escaped(name)}"><h2>{escaped(experiment["title"])}{small}</h2>'
    yield f'<dl class="facts">{_facts({**experiment, "whole": _whole(experiment)})}</dl>'
    for panel in experiment["panels"]:
        yield from _panel(panel, experiment["command"], figures)
    yield '<p class="back"><a href="#summary">All claims</a></p></section>'


def _together(experiments: list[dict[str, Any]]) -> dict[str, Any]:
    """What all of them took."""

    def total(name: str) -> float | None:
        known = [experiment[name] for experiment in experiments]
        return None if None in known else sum(known)

    return {
        "num_cells": total("num_cells"),
        "seconds_of_computing": total("seconds_of_computing"),
        "seconds_on_the_clock": total("seconds_on_the_clock"),
        "authors_hours": sum(experiment["authors_hours"] or 0 for experiment in experiments),
        "whole": all(_whole(experiment) for experiment in experiments),
        "versions": [],
    }


def _whole(experiment: dict[str, Any]) -> bool:
    """Whether it has as many runs as the paper, which the estimate for the authors' code is for."""
    return not experiment["quick"] and experiment["runs"] is None


def _facts(experiment: dict[str, Any]) -> str:
    """Runs, times and versions, as far as they are known."""
    clock, hours = experiment["seconds_on_the_clock"], experiment["authors_hours"]
    facts = {
        "Cells": f"{experiment['num_cells']:,}".replace(",", NO_BREAK),
        "Computing": duration(experiment["seconds_of_computing"]),
        "On the clock": None if clock is None else duration(clock),
        "Authors' code, estimate": f"≈ {duration(3600 * hours)}" if hours and experiment["whole"] else None,
        "Version": ", ".join(experiment["versions"]),
    }
    return "".join(f"<div><dt>{escaped(k)}</dt><dd>{escaped(v)}</dd></div>" for k, v in facts.items() if v)


def _panel(panel: dict[str, Any], command: str, figures: Path) -> Iterator[str]:
    anchor = _anchor(panel)
    yield f'<article class="panel" id="{anchor}" aria-labelledby="{anchor}-title">'
    yield f'<h3 id="{anchor}-title">{escaped(panel["title"])}</h3>'
    asked = "Question" if panel["verdict"] == "our own" else "The paper"
    yield f'<p class="claim"><span class="label">{asked}</span> {escaped(panel["claim"])}</p>'
    yield f'<p class="finding">{_badge(panel["verdict"])} {escaped(panel["why"])}</p>'
    if panel["figure"]:
        name = _name(panel)
        drawn = inline_svg((figures / f"{name}.svg").read_text("utf-8"), name, panel["title"])
        yield page.framed(drawn, panel["title"])
    if panel["rows"]:
        yield page.table(Table(panel["columns"], panel["rows"]), f"{panel['title']}: the numbers")
    yield f'<p class="command"><span class="label">Remake it</span> <code>{escaped(command)}</code></p></article>'


def _anchor(panel: dict[str, Any]) -> str:
    return f"panel-{_name(panel)}"


def _name(panel: dict[str, Any]) -> str:
    """It names a file too: letters, digits and hyphens, and so no other folder."""
    if not re.fullmatch(r"\w[\w.-]*", panel["name"], re.ASCII):
        raise ValueError(f"a panel is called {panel['name']!r}")
    return str(panel["name"])


def _badge(verdict: str) -> str:
    return page.badge(*MARKS[verdict], verdict)


def duration(seconds: float) -> str:
    """A time in the unit that a person would use."""
    for unit, size in (("weeks", 604800), ("days", 86400), ("hours", 3600), ("min", 60)):
        if seconds >= 2 * size:
            number = seconds / size
            return f"{number:.0f} {unit}" if number >= 10 else f"{number:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
