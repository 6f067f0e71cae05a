"""What a finished `policyspace reproduce` left, as docs/results/ shows it: its figures, its numbers, and a page to read.

`python -m benchmarks.results [FOLDER]`, by default `results`.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from policyspace.experiments.results import OURS
from policyspace.report.results_page import duration
from policyspace.table import Table

DOCS = Path(__file__).parent.parent / "docs" / "results"
HEAD = """# Results

What `policyspace reproduce` found with the paper's number of runs, each claim beside what came out. The command itself
leaves the same as one self-contained page ([how](../reproduce.md)). All digits: [results.json](results.json).
"""


def summary(experiments: dict[str, Any]) -> list[str]:
    """One line an experiment: what came out, and what it cost."""
    rows = []
    for name, entry in experiments.items():
        verdicts = ", ".join(dict.fromkeys(panel["verdict"] for panel in entry["panels"]))
        clock, authors = entry["seconds_on_the_clock"], entry["authors_hours"]
        times = [duration(clock) if clock else "–", duration(entry["seconds_of_computing"])]
        cells = [f"[{entry['title']}](#{name})", verdicts, *times, f"≈ {duration(3600 * authors)}" if authors else "–"]
        rows.append(cells)
    clock = sum(entry["seconds_on_the_clock"] or 0.0 for entry in experiments.values())
    computing = sum(entry["seconds_of_computing"] for entry in experiments.values())
    authors = sum(entry["authors_hours"] or 0.0 for entry in experiments.values())
    rows.append(["all", "", duration(clock), duration(computing), f"≈ {duration(3600 * authors)}"])
    return [Table(("experiment", "what holds", "on the clock", "computing", "the authors' code"), rows).markdown(), ""]


def section(name: str, entry: dict[str, Any]) -> list[str]:
    lines = [f'<a id="{name}"></a>', "", f"## {entry['title']}", "", f"    {entry['command']}", ""]
    for panel in entry["panels"]:
        lines += [f"### {panel['title']}", "", f"*{panel['claim']}*", "", f"**{panel['verdict']}.** {panel['why']}", ""]
        if panel["figure"]:
            lines += [f"![{panel['title']}](figures/{panel['name']}.svg)", ""]
        if panel["rows"]:
            lines += [Table(panel["columns"], panel["rows"]).markdown(), ""]
    return lines


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    found = json.loads((folder / OURS.numbers).read_text(encoding="utf-8"))["experiments"]
    small = [name for name, entry in found.items() if entry["quick"] or entry["runs"] is not None]
    if small:
        sys.exit(f"{folder}: {', '.join(small)} ran with other numbers of runs than the paper's: run them whole first.")
    shutil.rmtree(DOCS, ignore_errors=True)
    (DOCS / "figures").mkdir(parents=True)
    shutil.copy(folder / OURS.numbers, DOCS / "results.json")
    for entry in found.values():
        for panel in entry["panels"]:
            if panel["figure"]:
                shutil.copy(folder / OURS.figures / f"{panel['name']}.svg", DOCS / "figures")
    lines = [HEAD, *summary(found), *(line for name, entry in found.items() for line in section(name, entry))]
    (DOCS / "README.md").write_text("\n".join(lines), encoding="utf-8")
    print(f"Saved {DOCS}")


if __name__ == "__main__":
    main()
