"""The folder of results: records of finished experiments become numbers, figures, and one page of claims beside findings."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, NotRequired, TypedDict

from polars.exceptions import PolarsError

from policyspace import __version__
from policyspace.display import TextTable
from policyspace.errors import InputError, escaped
from policyspace.report import pages as page
from policyspace.report.figures import save
from policyspace.report.pages import inline_svg
from policyspace.safe_io import replacing
from policyspace_paper.execution import Procedure, Record, RunSize, find_experiment
from policyspace_paper.panels import Panel

# -- What the file of results holds.

PAGE, NUMBERS, FIGURES = "index.html", "results.json", "figures"
"""In the folder of results."""


class SavedPanel(TypedDict):
    """A panel, without its figure."""

    name: str
    title: str
    claim: str
    verdict: str
    why: str
    figure: bool  # whether it has one
    columns: list[str]
    rows: list[list[str]]
    numbers: object
    criteria: str
    procedure: Procedure
    stated: NotRequired[bool]
    in_how_many: NotRequired[str]


class SavedColumn(TypedDict):
    """The panels by one procedure, and what their records cost."""

    command: str
    quick: bool
    runs: int | None
    versions: list[str]
    num_cells: int
    seconds_of_computing: float
    seconds_on_the_clock: float | None
    panels: list[SavedPanel]
    older: NotRequired[str]  # what to know of records that are not of the present settings


class SavedExperiment(TypedDict):
    """An experiment by both procedures, as far as they were run."""

    title: str
    authors_hours: float | None
    authors_measured: str | None
    columns: dict[Procedure, SavedColumn]


def figures_of(procedure: Procedure) -> str:
    """The folder of the figures of one column."""
    return FIGURES if procedure == "ours" else f"{FIGURES}/{procedure}"


# -- The page of results: every claim beside what was found.


class VerdictWords(NamedTuple):
    """How a verdict is shown: its colour, a mark, so that colour alone says nothing; what it means; of several claims."""

    colour: str
    mark: str
    meaning: str
    plural: str = ""


VERDICTS = {
    "holds": VerdictWords("good", "✓", "the numbers show all that the paper says, by the criteria beside them.", "hold"),
    "holds partly": VerdictWords("fair", "◐", "they show it in part; the text says where not.", "hold partly"),
    "does not hold": VerdictWords("bad", "✗", "they contradict it, and show no part of it.", "do not hold"),
    "too few runs to say": VerdictWords(
        "plain", "…", "no verdict could rest on so few.", "have too few runs to say"
    ),
    "our own": VerdictWords("plain", "◇", "a question that the paper does not ask."),
    "not run": VerdictWords("plain", "–", "there are no records of it.", "were not run"),
    "no settings stated": VerdictWords(
        "plain", "–", "the paper proves it and simulates nothing, so there is nothing to run literally.",
        "have no settings stated",
    ),
}  # fmt: skip

PROCEDURES: dict[Procedure, str] = {"literal": "Literal", "ours": "Ours"}
"""The columns beside the paper's own words."""
SETTINGS: dict[Procedure, str] = {"literal": "By the paper's own settings", "ours": "By our settings"}

NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class ClaimRow:
    """A claim of the paper or a question of ours, and the panels that speak about it, by whose settings they are."""

    panels: Mapping[Procedure, SavedPanel]

    @property
    def first(self) -> SavedPanel:
        """The panel that says what is claimed: ours, if there is one."""
        return self.panels.get("ours") or self.panels["literal"]

    @property
    def our_own(self) -> bool:
        """Whether the paper does not say anything about it."""
        return all(panel["verdict"] == "our own" for panel in self.panels.values())

    def verdict(self, procedure: Procedure) -> str:
        """What a column says."""
        if procedure in self.panels:
            return self.panels[procedure]["verdict"]
        return "not run" if self.first.get("stated", True) else "no settings stated"

    def badge(self, procedure: Procedure) -> str:
        """The verdict of a column as the page shows it; nothing where a question of ours was not asked."""
        if self.our_own and procedure not in self.panels:
            return ""
        return _badge(self.verdict(procedure), self.in_how_many(procedure))

    def in_how_many(self, procedure: Procedure) -> str:
        """In how many readings of the paper a column's claim holds, where there are several."""
        return self.panels[procedure].get("in_how_many", "") if procedure in self.panels else ""


def claims_of(experiment: SavedExperiment) -> list[ClaimRow]:
    """What an experiment is about, in the order of our panels; those of the paper's settings alone come last."""
    found: dict[str, dict[Procedure, SavedPanel]] = {}
    for procedure in reversed(PROCEDURES):
        for panel in experiment["columns"][procedure]["panels"] if procedure in experiment["columns"] else ():
            found.setdefault(_name(panel), {})[procedure] = panel
    return [ClaimRow({name: own[name] for name in PROCEDURES if name in own}) for own in found.values()]


def write_page(folder: Path, order: Sequence[str]) -> None:
    """Make the page from numbers and figures; experiments of the `order` that are not there are named.

    Raises
    ------
    InputError
        If the numbers are not those of a folder of results.
    """
    results = json.loads((folder / NUMBERS).read_text(encoding="utf-8"))
    title = "The paper's experiments, run again"
    try:
        experiments: dict[str, SavedExperiment] = results["experiments"]
        body = [
            page.header(title, _lead(experiments), version=results["version"]),
            *page.banner(list(_notes(experiments, order))),
            *_summary(experiments),
            *_how_to_read(),
            *(line for name, experiment in experiments.items() for line in _experiment(name, experiment, folder)),
            page.footer("Made by policyspace reproduce from its records: the same records give the same page."),
        ]
    except (LookupError, TypeError, ValueError, AttributeError, OSError) as error:
        raise InputError(
            f"{folder / NUMBERS}: is not a file of results ({error}): delete it; the records remake it in seconds."
        ) from error
    page.write_page(folder / PAGE, title, body)


def _lead(experiments: Mapping[str, SavedExperiment]) -> str:
    """What this page is, and how the claims of the paper fared by either settings, in a sentence each."""
    claims = [claim for one in experiments.values() for claim in claims_of(one) if not claim.our_own]
    told = []
    for procedure, words in SETTINGS.items():
        counts = Counter(claim.verdict(procedure) for claim in claims)
        listed = ", ".join(
            f"{counts[verdict]}{NO_BREAK}{verdict if counts[verdict] == 1 else how.plural}"
            for verdict, how in VERDICTS.items()
            if counts[verdict]
        )
        told.append(f" {words}, of {len(claims)} claims {listed}." if listed else "")
    return (
        "The claims of “Policy Space Identification in Configurable Environments”, each beside what came out when its "
        "experiment was run again: <em>literally</em>, by the settings that the paper states, and by <em>our</em> defaults."
        + "".join(told)
    )


def _notes(experiments: Mapping[str, SavedExperiment], order: Sequence[str]) -> Iterator[str]:
    """What a reader must know before believing a number: miniatures, other numbers of runs, what is not here yet."""
    columns = {name: list(experiment["columns"].values()) for name, experiment in experiments.items()}
    quick = [name for name, own in columns.items() if any(column["quick"] for column in own)]
    fewer = [name for name, own in columns.items() if any(c["runs"] is not None and not c["quick"] for c in own)]
    absent = [name for name in order if name not in experiments]
    if quick:
        which = "" if len(quick) == len(experiments) else f": {escaped(', '.join(quick))}"
        yield (
            f"<strong>A miniature{which}.</strong> A quick look (<code>--quick</code>) at every figure, from few points and "
            "few runs. Its verdicts are no evidence; the same command without <code>--quick</code> gives that."
        )
    if fewer:
        yield f"<strong>Not the paper's number of runs</strong> (<code>--runs</code>): {escaped(', '.join(fewer))}."
    if absent:
        yield f"<strong>Not here yet:</strong> {', '.join(absent)}."


def _summary(experiments: Mapping[str, SavedExperiment]) -> Iterator[str]:
    """All claims with their verdicts, each a link to its panel."""
    yield '<nav aria-label="All claims"><h2 id="summary">In short</h2>'
    yield from _facts(list(experiments.values()))
    yield '<div class="sideways"><table class="summary">'
    heads = ("The paper's claim, or our question", *PROCEDURES.values())
    yield "<thead><tr>" + "".join(f'<th scope="col">{words}</th>' for words in heads) + "</tr></thead>"
    for name, experiment in experiments.items():
        link = f'<a href="#{escaped(name)}">{escaped(experiment["title"])}</a>'
        yield f'<tbody><tr><th scope="rowgroup" colspan="{1 + len(PROCEDURES)}">{link}</th></tr>'
        for claim in claims_of(experiment):
            link = f'<a href="#panel-{_name(claim.first)}">{escaped(claim.first["title"])}</a>'
            cells = "".join(f"<td>{claim.badge(procedure)}</td>" for procedure in PROCEDURES)
            yield f"<tr><td>{link}</td>{cells}</tr>"
        yield "</tbody>"
    yield "</table></div></nav>"


def _how_to_read() -> Iterator[str]:
    yield '<section class="reading"><h2>How to read this</h2><dl>'
    for verdict, words in VERDICTS.items():
        yield f"<div><dt>{_badge(verdict)}</dt><dd>{words.meaning}</dd></div>"
    yield "</dl><p><em>Literal</em> is what the paper's own settings give: its optimisers, its learning, its levels, its"
    yield "number of runs; what it does not state is of its authors' code or ours, and says so. <em>Ours</em> is what the"
    yield "defaults of policyspace give."
    yield "Every verdict is a function of the numbers by the criteria that stand below it. Intervals are"
    yield "95 % unless a table says otherwise. A <em>cell</em> is one run of one setting with its own seed."
    yield "<em>Computing</em> is the time of all cells one after the other on one core; <em>on the clock</em> is what passed"
    yield "while they ran, several at once. What the authors' code would need is an estimate: single runs of it were timed"
    yield "on one core and multiplied by the paper's number of runs; none was run whole.</p></section>"


def _experiment(name: str, experiment: SavedExperiment, folder: Path) -> Iterator[str]:
    small = any(column["quick"] for column in experiment["columns"].values())
    mark = ' <span class="small">miniature</span>' if small else ""
    yield f'<section class="experiment" id="{escaped(name)}"><h2>{escaped(experiment["title"])}{mark}</h2>'
    yield from _facts([experiment])
    for claim in claims_of(experiment):
        yield from _claim(claim, experiment, folder)
    yield '<p class="back"><a href="#summary">All claims</a></p></section>'


def _facts(experiments: list[SavedExperiment]) -> Iterator[str]:
    """Cells, times and versions of each column, as far as they are known, and what the authors' code would need."""
    facts = {}
    for procedure, words in PROCEDURES.items():
        found = [e["columns"][procedure] for e in experiments if procedure in e["columns"]]
        facts[words] = spent(found) if found else "not run"
    columns = [column for one in experiments for column in one["columns"].values()]
    if len(experiments) > 1:
        facts["Together"] = spent(columns)
    hours = sum(one["authors_hours"] or 0 for one in experiments)
    if hours and all(not column["quick"] and column["runs"] is None for column in columns):  # as many runs as estimated
        how = experiments[0]["authors_measured"] if len(experiments) == 1 else None
        facts["Authors' code, estimate"] = f"≈ {duration(3600 * hours)}" + (f": {how}" if how else "")
    if len(experiments) == 1:
        facts["Version"] = ", ".join(sorted({version for column in columns for version in column["versions"]}))
    inside = "".join(f"<div><dt>{escaped(k)}</dt><dd>{escaped(v)}</dd></div>" for k, v in facts.items())
    yield f'<dl class="facts">{inside}</dl>'


def spent(columns: Sequence[SavedColumn]) -> str:
    """What cells of some columns took."""
    clocks = [column["seconds_on_the_clock"] for column in columns]
    cells = f"{sum(column['num_cells'] for column in columns):,}".replace(",", NO_BREAK)
    computing = duration(sum(column["seconds_of_computing"] for column in columns))
    known = [seconds for seconds in clocks if seconds is not None]
    clock = f", {duration(sum(known))} on the clock" if len(known) == len(clocks) else ""
    return f"{cells} cells, {computing} of processor time{clock}"


def _claim(claim: ClaimRow, experiment: SavedExperiment, folder: Path) -> Iterator[str]:
    """The paper's words, what each column says to them and by which criteria, then figures and numbers."""
    anchor, first = f"panel-{_name(claim.first)}", claim.first
    yield f'<article class="panel" id="{anchor}" aria-labelledby="{anchor}-title">'
    yield f'<h3 id="{anchor}-title">{escaped(first["title"])}</h3><dl class="settings">'
    yield f"<div><dt>{'Question' if claim.our_own else 'The paper'}</dt><dd>{escaped(first['claim'])}</dd></div>"
    for procedure, words in PROCEDURES.items():
        if badge := claim.badge(procedure):
            why = escaped(claim.panels[procedure]["why"]) if procedure in claim.panels else ""
            yield f"<div><dt>{words}</dt><dd>{badge} {why}</dd></div>"
    if first["criteria"]:
        yield f"<div><dt>Judged by</dt><dd>{escaped(first['criteria'])}</dd></div>"
    yield "</dl>"
    for procedure, panel in claim.panels.items():
        title, name = panel["title"], _name(panel)
        if len(claim.panels) > 1:
            title = f"{title}, {SETTINGS[procedure].lower()}"
            yield f"<h4>{SETTINGS[procedure]}</h4>"
        if panel["figure"]:
            text = (folder / figures_of(procedure) / f"{name}.svg").read_text("utf-8")
            yield page.framed(inline_svg(text, f"{procedure}-{name}", title), title)
        if panel["rows"]:
            yield page.table(TextTable(panel["columns"], panel["rows"]), f"{title}: the numbers")
    commands = dict.fromkeys(experiment["columns"][procedure]["command"] for procedure in claim.panels)
    shown = ", ".join(f"<code>{escaped(command)}</code>" for command in commands)
    yield f'<p class="command"><span class="label">Remake it</span> {shown}</p></article>'


def _name(panel: SavedPanel) -> str:
    """It names a file too: letters, digits and hyphens, and so no other folder."""
    if not re.fullmatch(r"\w[\w.-]*", panel["name"], re.ASCII):
        raise ValueError(f"a panel is called {panel['name']!r}")
    return panel["name"]


def _badge(verdict: str, more: str = "") -> str:
    return page.badge(*VERDICTS[verdict][:2], f"{verdict}: {more}" if more else verdict)


def duration(seconds: float) -> str:
    """A time in the unit that a person would use."""
    for unit, size in (("weeks", 604800), ("days", 86400), ("hours", 3600), ("min", 60)):
        if seconds >= 2 * size:
            number = seconds / size
            return f"{number:.0f} {unit}" if number >= 10 else f"{number:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


# -- What the experiments would cost in the authors' own code: estimates, and how each was made.


class AuthorsTime(NamedTuple):
    """Hours on one core, and which times of single runs they are multiplied from."""

    hours: float
    measured: str


LEARNING = 112
"""Seconds that one golfer takes to learn in the authors' code."""

AUTHORS_TIMES = {
    "gridworld": AuthorsTime(
        25 * (4 * 1.0 + 2.75 + 5 * 0.1),
        "25 runs × (1 h with configuration at each n ≤ 300 and 2¾ h at n = 1000, where single ones took 2 to 3½ h; 6 min "
        "without)",
    ),
    "continuous-gridworld": AuthorsTime(
        25 * 4 * (5.5 + 0.06),
        "25 runs × 4 numbers of episodes × (5½ h with configuration, where single ones took 4½ to 6½ h; 4 min without)",
    ),
    "minigolf-curve": AuthorsTime(100 * 30 * LEARNING / 3600, "100 runs × 30 learnings × 112 s"),
    "minigolf-strategies": AuthorsTime(
        100 * 5 * LEARNING / 3600, "100 runs × 5 learnings (one to watch, one for each strategy) × 112 s"
    ),
    "minigolf-features": AuthorsTime(100 * 3 * 34 / 60, "100 runs × 3 numbers of episodes × 34 min with configuration"),
    "car": AuthorsTime(
        470.0, "100 runs × (940 s of learning and 1 h of fits at 100 episodes, more and fewer in proportion)"
    ),
    "imitation": AuthorsTime(
        25 * (4 * 1.0 + 2.75 + 8.0), "25 runs × (1 h at each n ≤ 300, 2¾ h at 1000 and, in proportion, 8 h at 3000)"
    ),
}
"""Of the experiments that they have: single runs were timed on one core, their number is the paper's; none ran whole."""


# -- Records of a finished experiment → its panels, kept as a small JSON, figures, and the page of results.


@dataclass(frozen=True)
class Results:
    """The folder of results: one page, on which what the paper's own settings give stands beside what ours give."""

    folder: Path
    scale: RunSize
    order: tuple[str, ...]  # of the experiments on the page

    def add(self, name: str, records: Sequence[Record[Any, Any]]) -> list[Panel]:
        """Analyse an experiment all of whose cells have finished; save its figures and numbers; write the page anew.

        A column of the page of which there are no records here stays as an earlier command left it.

        Raises
        ------
        InputError
            If records, or the numbers of an earlier command, are not as this version writes them.
        """
        shown = find_experiment(name)
        default: Procedure = "literal" if self.scale.as_published else "ours"  # of records that do not say it
        columns: dict[Procedure, SavedColumn] = {}
        panels: list[Panel] = []
        for procedure in PROCEDURES:
            own = [record for record in records if record.setting.get("procedure", default) == procedure]
            if not own:
                continue
            try:
                found = [replace(panel, procedure=procedure) for panel in shown.analyse(own)]
            except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, PolarsError) as error:
                reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
                raise InputError(
                    f"the records of '{name}' are not as this version writes them ({reason}): make them anew with --fresh."
                ) from error
            figures = self.folder / figures_of(procedure)
            figures.mkdir(parents=True, exist_ok=True)
            for panel in found:
                if panel.figure is not None:
                    save(panel.figure, figures / f"{panel.name}.svg")
            columns[procedure] = self._column(name, own, found)
            panels += found
        hours, measured = AUTHORS_TIMES.get(name, (None, None))
        self._write(
            name, {"title": shown.title, "authors_hours": hours, "authors_measured": measured, "columns": columns}
        )
        return panels

    def _column(self, name: str, records: Sequence[Record[Any, Any]], panels: Sequence[Panel]) -> SavedColumn:
        """Its panels as plain data; how long its cells took is unknown if it is of any of them."""
        clocks = [record.elapsed for record in records if record.elapsed is not None]
        options = [
            *(["--quick"] if self.scale.quick else []),
            *([f"--runs {self.scale.runs}"] if self.scale.runs is not None else []),
            *(["--as-published"] if self.scale.as_published else []),
        ]
        return {
            "command": " ".join(["policyspace reproduce", name, *options]),
            "quick": self.scale.quick,
            "runs": self.scale.runs,
            "versions": sorted({record.version for record in records}),
            "num_cells": len(records),
            "seconds_of_computing": round(sum(record.duration for record in records), 1),
            "seconds_on_the_clock": round(sum(clocks), 1) if len(clocks) == len(records) else None,
            "panels": [
                {
                    "name": panel.name,
                    "title": panel.title,
                    "claim": panel.claim.statement,
                    "verdict": panel.verdict,
                    "why": panel.why,
                    "figure": panel.figure is not None,
                    "columns": list(panel.columns),
                    "rows": [list(row) for row in panel.rows],
                    "numbers": _plain(panel.numbers),
                    "criteria": panel.claim.criteria,
                    "procedure": panel.procedure,
                    "stated": panel.claim.stated,
                    "in_how_many": panel.in_how_many,
                }
                for panel in panels
            ],
        }

    def _write(self, name: str, entry: SavedExperiment) -> None:
        """Replace the columns of one experiment in the JSON, then make the page anew."""
        path = self.folder / NUMBERS
        try:
            found = dict(json.loads(path.read_text(encoding="utf-8"))["experiments"]) if path.exists() else {}
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path}: is not a file of results ({error}): delete it; the records remake it in seconds."
            ) from error
        found[name] = entry | {"columns": found.get(name, {}).get("columns", {}) | entry["columns"]}
        known = {known: found[known] for known in self.order if known in found}
        results = {"version": __version__, "experiments": known}
        with replacing(path) as out:
            out.write((json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())
        write_page(self.folder, self.order)


def _plain(value: object) -> object:
    """Numbers as JSON has them: no arrays, and null for what is not a number."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(inside) for name, inside in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inside) for inside in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
