"""The page of results: every claim beside what was found."""

import json
import re
from collections import Counter
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
    "too few runs to say": ("plain", "…"),
    "our own": ("plain", "◇"),
    "not run": ("plain", "–"),
    "no settings stated": ("plain", "–"),
}
"""Colours, and what is shown beside the words, so that no verdict is said by colour alone."""

PLURALS = {
    "holds": "hold",
    "holds partly": "hold partly",
    "does not hold": "do not hold",
    "too few runs to say": "have too few runs to say",
    "not run": "were not run",
    "no settings stated": "have no settings stated",
}
"""What is said of claims of the paper, and of several of them."""

PROCEDURES = {"literal": "Literal", "ours": "Ours"}
"""The columns beside the paper's own words."""
SETTINGS = {"literal": "By the paper's own settings", "ours": "By our settings"}

NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class PageFiles:
    """Where a page, its numbers and its figures lie in the folder of results."""

    page: str
    numbers: str
    figures: str

    def figures_of(self, procedure: str) -> str:
        """The folder of the figures of one column."""
        return self.figures if procedure == "ours" else f"{self.figures}/{procedure}"


@dataclass(frozen=True)
class Claim:
    """A claim of the paper or a question of ours, and the panels that speak about it, by whose settings they are."""

    panels: dict[str, dict[str, Any]]

    @property
    def first(self) -> dict[str, Any]:
        """The panel that says what is claimed: ours, if there is one."""
        return self.panels.get("ours") or self.panels["literal"]

    @property
    def our_own(self) -> bool:
        """Whether the paper does not say anything about it."""
        return all(panel["verdict"] == "our own" for panel in self.panels.values())

    def verdict(self, procedure: str) -> str:
        """What a column says."""
        if procedure in self.panels:
            return str(self.panels[procedure]["verdict"])
        return "not run" if self.first.get("stated", True) else "no settings stated"


def claims_of(experiment: dict[str, Any]) -> list[Claim]:
    """What an experiment is about, in the order of our panels; those of the paper's settings alone come last."""
    found: dict[str, dict[str, Any]] = {}
    for procedure in ("ours", "literal"):
        for panel in experiment["columns"].get(procedure, {"panels": []})["panels"]:
            found.setdefault(_name(panel), {})[procedure] = panel
    return [Claim({name: own[name] for name in PROCEDURES if name in own}) for own in found.values()]


def write_page(folder: Path, files: PageFiles, order: tuple[str, ...]) -> None:
    """Make the page from numbers and figures."""
    results = json.loads((folder / files.numbers).read_text(encoding="utf-8"))
    title = "The paper's experiments, run again"
    try:
        body = list(_body(title, results, folder, files, order))
    except (LookupError, TypeError, ValueError, AttributeError, OSError) as error:
        raise InputError(
            f"{folder / files.numbers}: is not a file of results ({error}): delete it; the records remake it in seconds."
        ) from error
    page.write_page(folder / files.page, title, body)


def _body(title: str, results: dict[str, Any], folder: Path, files: PageFiles, order: tuple[str, ...]) -> Iterator[str]:
    experiments: dict[str, Any] = results["experiments"]
    yield page.header(title, _lead(experiments), version=results["version"])
    yield from _banner(experiments, order)
    yield from _summary(experiments)
    yield from _how_to_read()
    for name, experiment in experiments.items():
        yield from _experiment(name, experiment, folder, files)
    yield page.footer("Made by policyspace reproduce from its records: the same records give the same page.")


def _lead(experiments: dict[str, Any]) -> str:
    """What this page is, and how the claims of the paper fared by either settings, in a sentence each."""
    claims = [claim for experiment in experiments.values() for claim in claims_of(experiment) if not claim.our_own]
    told = []
    for procedure, words in SETTINGS.items():
        counts = Counter(claim.verdict(procedure) for claim in claims)
        listed = ", ".join(f"{counts[v]}{NO_BREAK}{v if counts[v] == 1 else PLURALS[v]}" for v in PLURALS if counts[v])
        told.append(f" {words}, of {len(claims)} claims {listed}." if listed else "")
    return (
        "The claims of “Policy Space Identification in Configurable Environments”, each beside what came out when its "
        "experiment was run again: <em>literally</em>, by the settings that the paper states, and by <em>our</em> defaults."
        + "".join(told)
    )


def _banner(experiments: dict[str, Any], order: tuple[str, ...]) -> Iterator[str]:
    """What a reader must know before believing a number: miniatures, other numbers of runs, what is not here yet."""
    quick = [name for name, experiment in experiments.items() if any(c["quick"] for c in _columns(experiment))]
    fewer = [
        name
        for name, experiment in experiments.items()
        if any(column["runs"] is not None and not column["quick"] for column in _columns(experiment))
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


def _columns(experiment: dict[str, Any]) -> list[dict[str, Any]]:
    return list(experiment["columns"].values())


def _summary(experiments: dict[str, Any]) -> Iterator[str]:
    """All claims with their verdicts, each a link to its panel."""
    yield '<nav aria-label="All claims"><h2 id="summary">In short</h2>'
    yield from _facts(list(experiments.values()))
    yield '<div class="sideways"><table class="summary">'
    heads = "".join(
        f'<th scope="col">{words}</th>' for words in ("The paper's claim, or our question", *PROCEDURES.values())
    )
    yield f"<thead><tr>{heads}</tr></thead>"
    for name, experiment in experiments.items():
        link = f'<a href="#{escaped(name)}">{escaped(experiment["title"])}</a>'
        yield f'<tbody><tr><th scope="rowgroup" colspan="{1 + len(PROCEDURES)}">{link}</th></tr>'
        for claim in claims_of(experiment):
            link = f'<a href="#{_anchor(claim.first)}">{escaped(claim.first["title"])}</a>'
            cells = "".join(f"<td>{_shown(claim, procedure)}</td>" for procedure in PROCEDURES)
            yield f"<tr><td>{link}</td>{cells}</tr>"
        yield "</tbody>"
    yield "</table></div></nav>"


def _shown(claim: Claim, procedure: str) -> str:
    """The verdict of a column; nothing where a question of ours was not asked."""
    return "" if claim.our_own and procedure not in claim.panels else _badge(claim.verdict(procedure))


def _how_to_read() -> Iterator[str]:
    meanings = {
        "holds": "the numbers show all that the paper says, by the criteria beside them.",
        "holds partly": "they show it in part; the text says where not.",
        "does not hold": "they contradict it, and show no part of it.",
        "too few runs to say": "no verdict could rest on so few.",
        "our own": "a question that the paper does not ask.",
        "not run": "there are no records of it.",
        "no settings stated": "the paper proves it and simulates nothing, so there is nothing to run literally.",
    }
    yield '<section class="reading"><h2>How to read this</h2><dl>'
    for verdict, meaning in meanings.items():
        yield f"<div><dt>{_badge(verdict)}</dt><dd>{meaning}</dd></div>"
    yield "</dl><p><em>Literal</em> is what the paper's own settings give: its optimisers, its learning, its levels, its"
    yield "number of runs; what it does not state is a guess, and named as one. <em>Ours</em> is what the defaults of"
    yield "policyspace give. Every verdict is a function of the numbers by the criteria that stand below it. Intervals are"
    yield "95 % unless a table says otherwise. A <em>cell</em> is one run of one setting with its own seed."
    yield "<em>Computing</em> is the time of all cells one after the other on one core; <em>on the clock</em> is what passed"
    yield "while they ran, several at once. What the authors' code would need is an estimate: single runs of it were timed"
    yield "on one core and multiplied by the paper's number of runs; none was run whole.</p></section>"


def _experiment(name: str, experiment: dict[str, Any], folder: Path, files: PageFiles) -> Iterator[str]:
    small = any(column["quick"] for column in _columns(experiment))
    mark = ' <span class="small">miniature</span>' if small else ""
    yield f'<section class="experiment" id="{escaped(name)}"><h2>{escaped(experiment["title"])}{mark}</h2>'
    yield from _facts([experiment])
    for claim in claims_of(experiment):
        yield from _claim(claim, experiment, folder, files)
    yield '<p class="back"><a href="#summary">All claims</a></p></section>'


def _whole(experiment: dict[str, Any]) -> bool:
    """Whether it has as many runs as the paper, which the estimate for the authors' code is for."""
    return all(not column["quick"] and column["runs"] is None for column in _columns(experiment))


def _facts(experiments: list[dict[str, Any]]) -> Iterator[str]:
    """Cells, times and versions of each column, as far as they are known, and what the authors' code would need."""
    facts = {}
    for procedure, words in PROCEDURES.items():
        found = [e["columns"][procedure] for e in experiments if procedure in e["columns"]]
        facts[words] = spent(found) if found else "not run"
    if len(experiments) > 1:
        facts["Together"] = spent([column for experiment in experiments for column in _columns(experiment)])
    hours = sum(experiment["authors_hours"] or 0 for experiment in experiments)
    if hours and all(map(_whole, experiments)):
        how = experiments[0]["authors_measured"] if len(experiments) == 1 else None
        facts["Authors' code, estimate"] = f"≈ {duration(3600 * hours)}" + (f": {how}" if how else "")
    versions = sorted({v for e in experiments for column in _columns(e) for v in column["versions"]})
    if len(experiments) == 1:
        facts["Version"] = ", ".join(versions)
    inside = "".join(f"<div><dt>{escaped(k)}</dt><dd>{escaped(v)}</dd></div>" for k, v in facts.items())
    yield f'<dl class="facts">{inside}</dl>'


def spent(columns: list[dict[str, Any]]) -> str:
    """What cells of one column took."""
    clocks = [column["seconds_on_the_clock"] for column in columns]
    cells = f"{sum(column['num_cells'] for column in columns):,}".replace(",", NO_BREAK)
    computing = duration(sum(column["seconds_of_computing"] for column in columns))
    clock = "" if None in clocks else f", {duration(sum(clocks))} on the clock"
    return f"{cells} cells, {computing} of processor time{clock}"


def _claim(claim: Claim, experiment: dict[str, Any], folder: Path, files: PageFiles) -> Iterator[str]:
    """The paper's words, what each column says to them and by which criteria, then figures and numbers."""
    anchor, first = _anchor(claim.first), claim.first
    yield f'<article class="panel" id="{anchor}" aria-labelledby="{anchor}-title">'
    yield f'<h3 id="{anchor}-title">{escaped(first["title"])}</h3><dl class="settings">'
    yield f"<div><dt>{'Question' if claim.our_own else 'The paper'}</dt><dd>{escaped(first['claim'])}</dd></div>"
    for procedure, words in PROCEDURES.items():
        if badge := _shown(claim, procedure):
            why = escaped(claim.panels[procedure]["why"]) if procedure in claim.panels else ""
            yield f"<div><dt>{words}</dt><dd>{badge} {why}</dd></div>"
    if first["criteria"]:
        yield f"<div><dt>Judged by</dt><dd>{escaped(first['criteria'])}</dd></div>"
    yield "</dl>"
    for procedure, panel in claim.panels.items():
        yield from _numbers(panel, procedure, folder / files.figures_of(procedure), several=len(claim.panels) > 1)
    commands = dict.fromkeys(experiment["columns"][procedure]["command"] for procedure in claim.panels)
    shown = ", ".join(f"<code>{escaped(command)}</code>" for command in commands)
    yield f'<p class="command"><span class="label">Remake it</span> {shown}</p></article>'


def _numbers(panel: dict[str, Any], procedure: str, figures: Path, several: bool) -> Iterator[str]:
    """The figure and the table of one column."""
    title = f"{panel['title']}, {SETTINGS[procedure].lower()}" if several else panel["title"]
    if several:
        yield f"<h4>{SETTINGS[procedure]}</h4>"
    if panel["figure"]:
        name = _name(panel)
        drawn = inline_svg((figures / f"{name}.svg").read_text("utf-8"), f"{procedure}-{name}", title)
        yield page.framed(drawn, title)
    if panel["rows"]:
        yield page.table(Table(panel["columns"], panel["rows"]), f"{title}: the numbers")


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
