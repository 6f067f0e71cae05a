"""The HTML template; pages of answers and plans."""

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from policyspace import __version__
from policyspace.answer import Identification
from policyspace.display import Shown, TextTable
from policyspace.errors import InputError, escaped
from policyspace.planning import SampleSizePlan
from policyspace.report.figures import (
    DARK,
    FAINT,
    INK,
    PAPER,
    QUIET,
    draw_calibration,
    draw_curves,
    draw_effects_for_page,
    draw_power_for_page,
    drawn,
)
from policyspace.runtime import object_at
from policyspace.safe_io import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# -- A figure's SVG as a part of an HTML page: a drawing alone, no names that meet those of other figures, no fixed size.

_ROOT = re.compile(r"<svg\b[^>]*>", re.DOTALL)
_ID = re.compile(r'(\sid=")([^"]+)"')
_REFERENCE = re.compile(r'(url\(#|href="#)([^")]+)')
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_LEFT_OUT = re.compile(r"<style\b.*?</style>|<metadata>.*?</metadata>|<!--.*?-->", re.DOTALL)
_ELEMENT = re.compile(r'</?(?:svg|g|path|use|defs|clipPath|rect|image)((?:\s+[\w:-]+="[^"<>]*")*)\s*/?>')
_ATTRIBUTE = re.compile(r'([\w:-]+)="([^"]*)"')
_HARMLESS = {"id", "d", "style", "transform", "clip-path", "x", "y", "width", "height"}


def inline_svg(svg: str, name: str, title: str) -> str:
    """The <svg> element alone, its identifiers prefixed by a name that is unique on the page, as wide as there is room.

    Its colours are those of the page, so that it can be read in the dark too.
    Matplotlib's style rule is for every element of the document: in a page it moves to the element itself.
    """
    root = _ROOT.search(svg)
    if root is None:
        raise ValueError(f"{name}: expected an SVG with one <svg> element")
    inside = _LEFT_OUT.sub("", svg[root.end() :]).strip()
    _check_drawing(inside, name)
    inside = _ID.sub(rf'\g<1>{name}-\g<2>"', inside)
    inside = _COLOUR.sub(lambda found: f"var(--{found[0][1:]})" if found[0] in DARK else found[0], inside)
    inside = _REFERENCE.sub(rf"\g<1>{name}-\g<2>", inside)
    width, height = _size(root.group())
    label = escaped(title)
    return (
        f'<svg class="figure" role="img" aria-label="{label}" viewBox="0 0 {width:g} {height:g}" '
        f'style="--width: {width:g}pt" stroke-linejoin="round" xmlns="http://www.w3.org/2000/svg" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink"><title>{label}</title>{inside}'
    )


def _check_drawing(inside: str, name: str) -> None:
    """Lines, areas and pictures, as Matplotlib draws them, and nothing that a browser would run or fetch."""
    if "<" in _ELEMENT.sub("", inside):
        raise ValueError(f"{name}.svg holds more than a drawing")
    for attributes in _ELEMENT.findall(inside):
        for key, value in _ATTRIBUTE.findall(attributes):
            local = key == "xlink:href" and value.startswith(("#", "data:image/png;base64,"))
            if not (local or key in _HARMLESS) or "url(" in value.replace("url(#", ""):
                raise ValueError(f"{name}.svg holds the attribute {key!r}, which is no part of a drawing")


def _size(root: str) -> tuple[float, float]:
    """The size in points, from the view box."""
    box = re.search(r'viewBox="\s*[\d.]+\s+[\d.]+\s+([\d.]+)\s+([\d.]+)\s*"', root)
    if box is None:
        raise ValueError("expected an <svg> element with a viewBox")
    return float(box.group(1)), float(box.group(2))


# -- The one template of all pages: a file that needs nothing else, for screens in light and dark, phones, print and readers.


def write_page(path: Path, title: str, body: Iterable[str]) -> None:
    """Save a page; it appears whole or not at all."""
    text = "\n".join([*_head(title), *body, "</main></body></html>"]) + "\n"
    with replacing(path) as out:
        out.write(text.encode("utf-8", "replace"))


def write_report(answer: Shown, path: str | Path) -> Path:
    """Save the page of an answer, and say where it is."""
    target = page_path(path)
    write_page(target, answer.sentence, page_of(answer))
    return target


def page_of(answer: Shown) -> Iterator[str]:
    """The parts of an answer's page, written by the function that its class names."""
    if not answer.page:
        raise InputError(
            f"a report is made of an answer, a plan, a study or a configured run, found {type(answer).__name__}."
        )
    parts: Iterator[str] = object_at(answer.page)(answer)
    return parts


def page_path(path: str | Path) -> Path:
    """Where a page is to be saved, refused unless the name says that it is one."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: a report is a page that browsers open: name it with .html at its end.")
    return Path(path)


def _head(title: str) -> Iterator[str]:
    light = " ".join(f"--{colour[1:]}: {colour};" for colour in DARK)
    dark = " ".join(f"--{colour[1:]}: {other};" for colour, other in DARK.items())
    names = {"paper": PAPER, "ink": INK, "soft": QUIET, "line": FAINT}
    named = " ".join(f"--{name}: var(--{colour[1:]});" for name, colour in names.items())
    yield "<!DOCTYPE html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield '<link rel="icon" href="data:,">'  # without it a browser asks the network for one
    yield f"<title>policyspace: {escaped(title)}</title>"
    yield f"<style>\n:root {{ {light} {named} }}"
    yield f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
    yield f"{files('policyspace.report').joinpath('page.css').read_text('utf-8')}</style>"
    yield "</head><body><main>"


def header(title: str, lead: str, kind: str = "", version: str = __version__) -> str:
    """The head of a page as a reader sees it; `lead` is HTML."""
    over = f"policyspace {version}" + (f" · {kind}" if kind else "")
    return f'<header><p class="over">{escaped(over)}</p><h1>{escaped(title)}</h1><p class="lead">{lead}</p></header>'


def section(title: str, *content: str) -> str:
    """A part of a page under its heading."""
    anchor = "".join(c if c.isalnum() else "-" for c in title.lower())
    inside = "\n".join(content)
    return (
        f'<section class="panel" aria-labelledby="{anchor}"><h2 id="{anchor}">{escaped(title)}</h2>\n{inside}</section>'
    )


def paragraph(words: str) -> str:
    """Words as a paragraph."""
    return f"<p>{escaped(words)}</p>"


def banner(notes: Iterable[str]) -> Iterator[str]:
    """What a reader must know before believing a number; the notes are HTML."""
    if inside := "".join(f"<p>{note}</p>" for note in notes):
        yield f'<aside class="banner" role="note">{inside}</aside>'


def badge(kind: str, mark: str, words: str) -> str:
    """A verdict in words, with a mark and a colour: "good", "fair", "bad" or "plain"."""
    return f'<span class="badge {kind}"><span aria-hidden="true">{mark}</span> {escaped(words)}</span>'


def figure_html(figure: "Figure", name: str, alternative: str) -> str:
    """A figure as a part of the page, with words for those who do not see it."""
    out = io.BytesIO()
    drawn(figure, out, "svg")
    return framed(inline_svg(out.getvalue().decode(), name, alternative), alternative)


def framed(svg: str, label: str) -> str:
    """A figure that scrolls in its own box where it is too wide."""
    return f"<figure>{sideways(svg, f'Figure: {label}')}</figure>"


def sideways(content: str, label: str) -> str:
    """A box that scrolls alone where its content is too wide, by keys too."""
    name = escaped(label)
    return f'<div class="sideways" role="region" aria-label="{name}" tabindex="0">{content}</div>'


def table(content: TextTable, caption: str, marks: Mapping[str, str] | None = None) -> str:
    """A table in a box of its own; cells that are among the `marks` are shown as that HTML."""
    known = marks or {}
    shown = content.html(caption, heading=_heading, cell=lambda cell: known.get(cell) or _unbroken(cell))
    return sideways(shown, f"Table: {caption}")


def settings_list(named: Mapping[str, str]) -> str:
    """Settings line by line."""
    inside = "".join(f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}</dd></div>" for name, value in named.items())
    return f'<dl class="settings">{inside}</dl>'


def ending(settings: Mapping[str, str], made_by: str, words: str) -> Iterator[str]:
    """The end of every page: the settings, the line that makes the same again where it is known, and the last words."""
    yield section("Settings", settings_list(settings))
    if made_by:
        yield section("Make it again", f'<pre class="again" tabindex="0"><code>{escaped(made_by)}</code></pre>')
    yield footer(words)


def footer(words: str) -> str:
    """The last words of a page."""
    return f"<footer>{paragraph(words)}</footer>"


def _unbroken(words: str) -> str:
    """Numbers stay with their margins and intervals on one line; a long cell may break before a parenthesis."""
    if len(words) > 60:
        return f'<span class="long">{escaped(words)}</span>'
    pieces = [words] if len(words) <= 16 else re.split(r" (?=\()", words)
    return " ".join(_whole_line(piece) if len(piece) <= 24 else escaped(piece) for piece in pieces)


def _whole_line(words: str) -> str:
    return f'<span class="line">{escaped(words)}</span>'


def _heading(words: str) -> str:
    """A column's name may break between words, but not inside a parenthesis."""
    pieces = re.split(r" (?=\()", words)
    return " ".join(_whole_line(piece) if piece.startswith("(") else escaped(piece) for piece in pieces)


# -- The page of an identification: the sentence, the picture, the table, what it rests on, and how to make it again.

VERDICTS = {
    "used": ("good", "✓"),
    "controlled": ("good", "✓"),
    "undecided": ("fair", "◐"),
    "no evidence": ("plain", "–"),
}
CHECKS = {
    "held": ("good", "✓", "held"),
    "violated": ("bad", "✗", "violated"),
    "unchecked": ("plain", "–", "unchecked"),
}
COLUMNS_IN_WORDS = {
    "95 % interval": "where the effect lies, with the noise of the fit",
    "adjusted p": "the chance of so much evidence if the group were not used, comparable with δ although several are tested",
    "λ": "how much worse the policy explains the actions without the group: twice the difference of log-likelihoods",
    "df": "degrees of freedom: how many parameters the group has",
}


def answer_page(answer: Identification) -> Iterator[str]:
    """The parts of the page: the verdict and the effects, the guarantee, the curves, and what they rest on."""
    data = answer.data
    episodes = "" if data.num_episodes is None else f" in {data.num_episodes:,} episodes"
    lead = f"Found from {data.num_rows:,} rows of states and actions{episodes}."
    yield header(answer.sentence, escaped(lead), "identification")
    yield from banner(escaped(f"Warning: {warning}") for warning in answer.warnings)
    picture = figure_html(draw_effects_for_page(answer), "effects", _picture_in_words(answer))
    what = (
        "the share of decisions that change" if data.action_type == "discrete" else "how far the action moves, in sd,"
    )
    meaning = paragraph(f"Effect: {what} when what the other features predict replaces the group.")
    yield section("Effects", meaning, picture, *_table(answer))
    yield section("Guarantee", *_guarantee(answer))
    if answer.has_curves:
        words = "What the agent does on average while one feature changes and the others stay as they were logged"
        drawn_curves = figure_html(draw_curves(answer, columns=2), "curves", words)
        yield section(
            "Behaviour", paragraph(f"{words} (bands: 95 % intervals; marks below: logged values)."), drawn_curves
        )
    if answer.subjects is not None:
        picture = figure_html(answer.subjects.plot(), "subjects", "Weights of each subject, with 1.96 standard errors.")
        content = table(answer.subjects.table(), "Weights of each subject, shrunken towards the average")
        yield section("Subjects", picture, content)
    yield from _weights(answer)
    yield from _assumptions(answer)
    yield from ending(_settings(answer), answer.made_by, "The same data and settings give the same page.")


def _weights(answer: Identification) -> Iterator[str]:
    """The coefficients and the calibration of a linear policy space that was stated."""
    if answer.coefficient_maker is None or not answer.policy.stated:
        return
    found = answer.coefficients()
    shown = [table(found.table(), "Every weight, its standard error and interval"), *map(paragraph, found.notes())]
    yield section("Coefficients", *shown)
    if found.calibration:
        words = "How often labels were chosen, against how often the fitted policy expects them"
        yield section("Calibration", figure_html(draw_calibration(found), "calibration", words))


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _guarantee(answer: Identification) -> Iterator[str]:
    """The notes that the screen shows, the guarantee among them marked."""
    for note in answer.notes():
        if note.startswith("Warning:"):
            continue  # on top of the page
        head, _, rest = note.partition(": ")
        if head == "Guarantee":
            yield f"<p>{badge('good', '✓', f'Guarantee ({answer.grade})')} {escaped(_capital(rest))}</p>"
        elif head == "No guarantee":
            yield f"<p>{badge('bad', '✗', 'No guarantee')} {escaped(_capital(rest))}</p>"
        else:
            yield paragraph(note)


def _picture_in_words(answer: Identification) -> str:
    """What the picture shows, for those who do not see it."""
    shown = [
        f"{one.group}: {one.verdict}, {answer.effect_in_words(one)} ({answer.interval_in_words(one)})"
        for one in answer.by_effect[:30]
    ]
    more = f"; and {len(answer.groups) - 30} more groups" if len(answer.groups) > 30 else ""
    return f"Effects with 95 % intervals. {'; '.join(shown)}{more}."


def _table(answer: Identification) -> Iterator[str]:
    tested = answer.table_of_groups()
    place = tested.columns.index("verdict")
    marks = {row[place]: badge(*VERDICTS[row[place].rstrip(" ✓✗")], row[place]) for row in tested.rows}
    yield table(tested, "Every group, its verdict, effect and test", marks)
    known = {name: words for name, words in COLUMNS_IN_WORDS.items() if name in tested.columns}
    yield f"<details><summary>What the columns mean</summary>{settings_list(known)}</details>"


def _assumptions(answer: Identification) -> Iterator[str]:
    """What the guarantee assumes, and what the data say about it."""
    if not answer.assumptions:
        return
    needed = answer.test.assumes
    rows = [
        (one.name, one.status, "yes" if one.name in needed else "no", f"{_capital(one.message)}.")
        for one in answer.assumptions
    ]
    marks = {words: badge(kind, mark, words) for kind, mark, words in CHECKS.values()}
    yield section(
        "Assumptions and their checks",
        paragraph(f"There is a guarantee only if no assumption that the {answer.test.name} test needs is violated."),
        table(TextTable(("assumption", "status", "needed", "what was found"), rows), "Assumptions and checks", marks),
    )


def _settings(answer: Identification) -> dict[str, str]:
    """The test with its reason, the policy and the data in words."""
    policy, data = answer.policy, answer.data
    found = {
        "test": f"{answer.test.name} ({answer.test.reason})",
        "null distribution": answer.test.null_distribution,
        "clusters": answer.clusters.kind,
        "rule": answer.rule,
        "significance": answer.significance,
        "correction": answer.correction,
        "policy": policy.family,
        "assumed": policy.assumed_groups,
        "covariance": policy.covariance,
        "intercept": policy.intercept,
        "hidden": policy.hidden,
        "offset": policy.offset,
        "features": data.features,
        "actions": data.actions,
        "action type": data.action_type,
        "lagged actions": data.lagged_actions,
        "formula": data.formula,
        "weight type": data.weight_type,
    }
    return {name: _value(value) for name, value in found.items() if value not in (None, (), "")}


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        shown = ", ".join(map(_value, value[:40]))
        return f"{shown} and {len(value) - 40} more" if len(value) > 40 else shown
    return f"{value:g}" if isinstance(value, float) else str(value)


# -- The page of a plan: the sentence, power against the number of pairs, the table, and how to make it again.


def plan_page(plan: SampleSizePlan) -> Iterator[str]:
    """The parts of the page."""
    episodes = "" if plan.num_episodes is None else f" in {plan.num_episodes:,} episodes"
    lead = f"Planned from a pilot of {plan.num_rows:,} rows{episodes}, for power {plan.power:g}."
    yield header(plan.sentence, escaped(lead), "plan")
    yield from banner(escaped(f"Warning: {warning}") for warning in plan.warnings)
    notes = [paragraph(note) for note in plan.notes() if not note.startswith("Warning:")]
    words = "Power against the number of rows, one curve a group; the table has the numbers."
    yield section("Power", figure_html(draw_power_for_page(plan), "power", words))
    yield section("What is needed", table(plan.table(), "Every group, its power now, and what it needs"), *notes)
    named = {"test": plan.test, "power": f"{plan.power:g}", "significance": f"{plan.significance:g}"}
    named |= {"confidence": f"{plan.confidence:g}", "parameters": str(plan.num_parameters)}
    named |= {} if plan.given_effect is None else {"effect": f"{plan.given_effect:g}"}
    yield from ending(named, plan.made_by, "The same pilot and settings give the same page.")
