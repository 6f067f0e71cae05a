"""Docs and the kept results name the code that made their numbers, the same one, or say that they are older."""

import json
import re
from pathlib import Path

import pytest
from policyspace_paper.execution import EXPERIMENTS, record_version

ROOT = Path(__file__).parents[2]
README, PERFORMANCE, RESULTS = (
    (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/performance.md", "docs/results/README.md")
)
PAPER = PERFORMANCE.partition("\n## The paper in numbers\n")[2].partition("\n## ")[0]
"""The section that quotes the kept results in words."""
KEPT = json.loads((ROOT / "docs/results/results.json").read_text(encoding="utf-8"))["experiments"]
MADE_BY = {
    name: {v for column in entry["columns"].values() for v in column["versions"]} for name, entry in KEPT.items()
}
QUOTED = ("gridworld", "car", "surrogate")
"""The experiments whose numbers stand there."""
VERSION = re.compile(r"0\.1\.0\+[0-9a-f]{8}")


def test_all_pages_name_versions_of_the_kept_results():
    known = set.union(*MADE_BY.values())
    assert set(VERSION.findall(RESULTS)) == known
    own = "honesty-table.md"  # made by no experiment: it names the code of the whole package
    pages = [README, *(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md") if path.name != own)]
    assert set(VERSION.findall("".join(pages))) <= known | {record_version("car")}


def test_the_section_on_the_paper_names_the_code_of_what_it_quotes():
    named = set(VERSION.findall(PAPER))
    for name in QUOTED:
        assert MADE_BY[name] <= named, f"it quotes {name}, which was made by {sorted(MADE_BY[name])}"


def test_what_is_older_than_the_code_says_so():
    older = {name for name in EXPERIMENTS if MADE_BY.get(name, set()) - {record_version(name)}}
    assert ("**Older than the code beside it:**" in RESULTS) == bool(older)
    if len(older) < len(EXPERIMENTS):
        assert all(f"`{name}`" in RESULTS for name in older)
    assert ("older than the code beside them" in PAPER) == bool(older & set(QUOTED))


@pytest.mark.parametrize("page", ["drivers-table.md", "honesty-table.md"])
def test_tables_name_their_code_or_say_that_it_was_not_kept(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert VERSION.search(text) or "Counted by earlier code, whose version was not kept" in text


def test_the_section_on_the_paper_has_the_numbers_of_the_kept_results():
    """What it quotes, against the records' own summary; README links to it."""
    assert "(docs/performance.md#the-paper-in-numbers)" in README
    panels = {p["name"]: p for entry in KEPT.values() for c in entry["columns"].values() for p in c["panels"]}
    missed = {(row[0], row[1]): float(row[3].split(" ")[0]) for row in panels["gridworld-totals"]["rows"]}
    quoted = PAPER.partition("**Configuring shows what watching does not.**")[2].partition("![")[0]
    for design, total in [
        ("no configuration", "400"), ("flat start alone", "400"), ("D-optimal", "400"),
        ("D-optimal from where the agent is", "400"), ("the paper's objective", "400"),
        ("flat start, then the paper's objective", "400"), ("flat start alone", "40"), ("no configuration", "40"),
    ]:  # fmt: skip
        share = 100 * missed[design, total]
        assert f"{share:.0f} %" in quoted or f"{share:.1f} %" in quoted, (design, total, share)
    ranked = {row[0]: row[2] for row in panels["surrogate"]["rows"]}
    guide = PAPER.partition("**What C_I is worth as a guide.**")[2].partition("\n\n")[0]
    for name in ("the paper's objective", "D-optimality"):
        assert ranked[name].replace("0.", ".") in guide
    assert ranked["the gap, learned again"].split(" ")[0].removeprefix("0") in guide
