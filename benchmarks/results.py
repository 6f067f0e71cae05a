"""What a finished `policyspace reproduce` left, as docs/results/ shows it: figures, numbers, records, and a page to read.

`python -m benchmarks.results [FOLDER]`, by default `results`.
"""

import json
import lzma
import shutil
import sys
from pathlib import Path

from policyspace_paper.execution import EXPERIMENTS, Procedure
from policyspace_paper.page import (
    NUMBERS,
    PROCEDURES,
    SETTINGS,
    ClaimRow,
    SavedExperiment,
    claims_of,
    duration,
    figures_of,
    spent,
)

from policyspace.display import TextTable

DOCS = Path(__file__).parent.parent / "docs" / "results"
HEAD = """# Results

What `policyspace reproduce` found with the paper's number of runs: each claim in the paper's words, what the settings that
the paper states give (*literal*), and what our defaults give (*ours*). The command itself leaves the same as one
self-contained page ([how](../reproduce.md)). All digits: [results.json](results.json); every run:
[records.sqlite.xz](records.sqlite.xz).
"""


def made_by(experiments: dict[str, SavedExperiment]) -> str:
    """Which code made the records, and which experiments are not among them."""
    columns = [column for entry in experiments.values() for column in entry["columns"].values()]
    versions = ", ".join(sorted({version for column in columns for version in column["versions"]}))
    missing = [f"`{name}`" for name in EXPERIMENTS if name not in experiments]
    left_out = f" Not run by it: {', '.join(missing)}." if missing else ""
    return f"Made by the code {versions}, in all {spent(columns)}. Processor times are of one core.{left_out}\n"


def summary(experiments: dict[str, SavedExperiment]) -> list[str]:
    """One line an experiment: what came out by either settings, and what it cost."""
    rows = []
    for name, entry in experiments.items():
        verdicts = [_verdicts(entry, procedure) for procedure in PROCEDURES]
        rows.append([f"[{entry['title']}](#{name})", *verdicts, *_times([entry])])
    rows.append(["all", "", "", *_times(list(experiments.values()))])
    heads = ("experiment", "literal", "ours", "literal took", "ours took", "the authors' code (estimate)")
    return [TextTable(heads, rows).markdown().replace("]\\(#", "](#"), ""]  # links of our own, which tables write out


def _verdicts(entry: SavedExperiment, procedure: Procedure) -> str:
    """What is said of the claims of an experiment, each once."""
    claims = claims_of(entry)
    asked = [claim for claim in claims if procedure in claim.panels or not claim.our_own]
    return ", ".join(dict.fromkeys(claim.verdict(procedure) for claim in asked)) or "–"


def _times(entries: list[SavedExperiment]) -> list[str]:
    found = {name: [e["columns"][name] for e in entries if name in e["columns"]] for name in PROCEDURES}
    hours = sum(entry["authors_hours"] or 0.0 for entry in entries)
    authors = f"≈ {duration(3600 * hours)}" if hours else "–"
    return [*(spent(columns) if columns else "–" for columns in found.values()), authors]


def section(name: str, entry: SavedExperiment) -> list[str]:
    """The claims of an experiment as paper / literal / ours, with their figures and numbers."""
    lines = [f'<a id="{name}"></a>', "", f"## {entry['title']}", ""]
    lines += [f"    {command}" for command in dict.fromkeys(c["command"] for c in entry["columns"].values())] + [""]
    if entry["authors_measured"]:
        lines += [f"What the authors' code would need is an estimate: {entry['authors_measured']}.", ""]
    return lines + [line for claim in claims_of(entry) for line in _claim(claim)]


def _claim(claim: ClaimRow) -> list[str]:
    first = claim.first
    rows = [("question" if claim.our_own else "the paper", first["claim"])]
    for procedure, words in PROCEDURES.items():
        if procedure in claim.panels:
            panel = claim.panels[procedure]
            rows.append((words.lower(), f"**{panel['verdict']}.** {panel['why']}"))
        elif not claim.our_own:
            rows.append((words.lower(), "**not run.**"))
    if first["criteria"]:
        rows.append(("judged by", first["criteria"]))
    lines = [f"### {first['title']}", "", TextTable(("", ""), rows).markdown(), ""]
    for procedure, panel in claim.panels.items():
        if len(claim.panels) > 1:
            lines += [f"*{SETTINGS[procedure]}:*", ""]
        if panel["figure"]:
            lines += [f"![{panel['title']}]({figures_of(procedure)}/{panel['name']}.svg)", ""]
        if panel["rows"]:
            lines += [TextTable(panel["columns"], panel["rows"]).markdown(), ""]
    return lines


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    found = json.loads((folder / NUMBERS).read_text(encoding="utf-8"))["experiments"]
    small = [n for n, e in found.items() if any(c["quick"] or c["runs"] is not None for c in e["columns"].values())]
    if small:
        sys.exit(f"{folder}: {', '.join(small)} ran with other numbers of runs than the paper's: run them whole first.")
    shutil.rmtree(DOCS, ignore_errors=True)
    DOCS.mkdir(parents=True)
    shutil.copy(folder / NUMBERS, DOCS / "results.json")
    records = (folder / "records.sqlite").read_bytes()
    (DOCS / "records.sqlite.xz").write_bytes(lzma.compress(records, preset=9))
    for entry in found.values():
        for procedure, column in entry["columns"].items():
            figures = figures_of(procedure)
            (DOCS / figures).mkdir(parents=True, exist_ok=True)
            for panel in column["panels"]:
                if panel["figure"]:
                    shutil.copy(folder / figures / f"{panel['name']}.svg", DOCS / figures)
    lines = [
        HEAD,
        made_by(found),
        *summary(found),
        *(line for name, entry in found.items() for line in section(name, entry)),
    ]
    (DOCS / "README.md").write_text("\n".join(lines), encoding="utf-8")
    print(f"Saved {DOCS}")


if __name__ == "__main__":
    main()
