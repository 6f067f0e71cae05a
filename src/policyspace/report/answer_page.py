"""The page of an identification: the sentence, the picture, the table, what it rests on, and how to make it again."""

from collections.abc import Iterator
from typing import Any

from policyspace.answer import GroupTest, Identification
from policyspace.printable import escaped
from policyspace.report import page
from policyspace.report.evidence_picture import draw_evidence_for_page
from policyspace.table import Table

VERDICTS = {
    "used": ("good", "✓"),
    "controlled": ("good", "✓"),
    "undecided": ("fair", "◐"),
    "no evidence": ("plain", "–"),
}
CHECKS = {
    True: ("good", "✓", "not contradicted"),
    False: ("bad", "✗", "contradicted"),
    None: ("plain", "–", "not checked"),
}
COLUMNS_IN_WORDS = {
    "λ": "how much worse the policy explains the actions without the group: twice the difference of log-likelihoods",
    "df": "degrees of freedom: how many parameters the group has",
    "p": "the chance of so much evidence if the group were not used",
    "adjusted p": "the same, made comparable with δ although several groups are tested",
}
NOT_SHOWN = {
    "test_note",
    "test_reason",
    "assumes",
    "about_features",
    "withheld",
    "version",
    "discrete",
    "groups",
    "fixed",
}
"""Settings that the page says elsewhere, or in other words."""


def answer_page(answer: Identification) -> Iterator[str]:
    """The parts of the page."""
    yield page.header(answer.sentence, escaped(_lead(answer)), "identification")
    yield from page.banner(escaped(f"Warning: {warning}") for warning in answer.warnings)
    picture = page.picture(draw_evidence_for_page(answer), "evidence", _picture_in_words(answer))
    yield page.section("Evidence for every group", picture, *_table(answer))
    yield page.section("What is promised", *_promise(answer))
    yield from _behaviour(answer)
    yield from _assumptions(answer)
    yield from page.ending(_settings(answer), answer.made_by, "The same data and settings give the same page.")


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _lead(answer: Identification) -> str:
    episodes = "" if answer.num_episodes is None else f" in {answer.num_episodes:,} episodes"
    return f"Found from {answer.num_pairs:,} pairs of state and action{episodes}."


def _promise(answer: Identification) -> Iterator[str]:
    """The notes that the screen shows, the promise among them marked."""
    for note in answer.notes():
        if note.startswith("Warning:"):
            continue  # on top of the page
        head, _, rest = note.partition(": ")
        if head == "Promise":
            yield f"<p>{page.badge('good', '✓', 'Promise')} {escaped(_capital(rest))}</p>"
        elif head == "No promise is made":
            yield f"<p>{page.badge('bad', '✗', 'No promise')} {escaped(_capital(rest))}</p>"
        else:
            yield page.paragraph(note)


def _picture_in_words(answer: Identification) -> str:
    """What the bars show, for those who do not see them."""
    shown = [f"{t.group}: {answer.verdict_in_words(t)}, p = {t.adjusted_p_value:.2g}" for t in answer.tests[:30]]
    more = f"; and {len(answer.tests) - 30} more groups" if len(answer.tests) > 30 else ""
    return f"Bars of evidence, adjusted p-values. {'; '.join(shown)}{more}."


def _table(answer: Identification) -> Iterator[str]:
    table = answer.table()
    marks = {words: page.badge(*VERDICTS[words.rstrip(" ✓✗")], words) for *_, words, _ in table.rows}
    yield page.table(table, "Every group, its statistic, p-values, verdict and effect", marks)
    known = {name: words for name, words in COLUMNS_IN_WORDS.items() if name in table.columns}
    yield f"<details><summary>What the columns mean</summary>{page.settings_list(known | _effect_column(answer))}</details>"


def _effect_column(answer: Identification) -> dict[str, str]:
    if answer.test == "lean":
        return {"effect": _change_in_words(answer)}
    return {
        "effect": "the size of the estimated weights; 'shows from' is the smallest that would have been found (power 0.8)"
    }


def _change_in_words(answer: Identification) -> str:
    unit = (
        "the share of decisions" if answer.settings["discrete"] else "how far the action moves, in standard deviations,"
    )
    return f"{unit} that would change if the group held no more than what the other features say about it"


def _behaviour(answer: Identification) -> Iterator[str]:
    """How much the agent's behaviour hangs on each group, largest first."""
    known = [test for test in answer.tests if test.behavioural_effect == test.behavioural_effect]
    if not known:
        return
    known.sort(key=lambda test: -test.behavioural_effect)
    most = max(known[0].behavioural_effect, 1e-12)
    rows = [(t.group, _amount(answer, t), str(i)) for i, t in enumerate(known)]
    bars = {
        str(i): f'<span class="bar" style="width: {max(100 * t.behavioural_effect / most, 0.5):.1f}%"></span>'
        for i, t in enumerate(known)
    }
    change = "decisions that change" if answer.settings["discrete"] else "change of the action"
    content = page.table(Table(("group", change, "beside the largest"), rows), "How much behaviour depends on it", bars)
    words = _change_in_words(answer).replace(", that would change", ",")
    yield page.section("How much the behaviour depends on it", page.paragraph(f"{_capital(words)}."), content)


def _amount(answer: Identification, test: GroupTest) -> str:
    change = test.behavioural_effect
    return f"{100 * change:.1f} %" if answer.settings["discrete"] else f"{change:.3f} sd"


def _assumptions(answer: Identification) -> Iterator[str]:
    """What the promise rests on, and what the data say about it."""
    if not answer.assumptions:
        return
    needed = set(answer.settings["assumes"])
    rows = [
        (a.name, CHECKS[a.held][2], "yes" if a.name in needed else "no", f"{_capital(a.words)}.")
        for a in answer.assumptions
    ]
    marks = {words: page.badge(kind, mark, words) for kind, mark, words in CHECKS.values()}
    yield page.section(
        "Assumptions, and what the data say",
        page.paragraph(
            f"What the test '{answer.test}' needs must not be contradicted by the data, else nothing is promised."
        ),
        page.table(
            Table(("assumption", "check", "needed", "what was found"), rows), "Assumptions and their check", marks
        ),
    )


def _settings(answer: Identification) -> dict[str, str]:
    """The settings in words, and the test with its reason."""
    given = {"test": f"{answer.test} ({answer.test_reason})", "independent units": answer.dependence}
    rest = {name: value for name, value in answer.settings.items() if name not in NOT_SHOWN | {"test"}}
    return given | {
        name.replace("_", " "): _value(value) for name, value in rest.items() if value not in (None, [], "")
    }


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        shown = ", ".join(map(_value, value[:40]))
        return f"{shown} and {len(value) - 40} more" if len(value) > 40 else shown
    return f"{value:g}" if isinstance(value, float) else str(value)
