"""What a finished `policyspace reproduce` left, as docs/results/ shows it: figures, numbers, records, and a page to read.

`python -m benchmarks.results [FOLDER]`, by default `results`. `--from-records` first makes numbers and figures of the
records in the folder, without computing: parts that are there by other settings than today's alone say by which.
"""

import json
import lzma
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from policyspace_paper.execution import (
    EXPERIMENTS,
    Cell,
    Procedure,
    Record,
    RunSize,
    Store,
    find_experiment,
    record_version,
)
from policyspace_paper.page import (
    NUMBERS,
    PROCEDURES,
    SETTINGS,
    ClaimRow,
    Results,
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


def from_records(folder: Path) -> None:
    """Numbers and figures of the records of a folder; where a part was run by other settings than today's, of those."""
    results, notes = Results(folder, RunSize(), tuple(EXPERIMENTS)), dict[tuple[str, Procedure], str]()
    (folder / NUMBERS).unlink(missing_ok=True)
    with Store(folder / "records.sqlite") as store:
        for name in EXPERIMENTS:
            cells, there = find_experiment(name).cells(RunSize()), store.records(name)
            present, shown = {cell.key for cell in cells}, list[Record[Any, Any]]()
            for kind in sorted({kind_of(cell) for cell in cells}):
                wanted = [cell for cell in cells if kind_of(cell) == kind]
                own = [r for r in there if kind_of(r) == kind]
                if missing := store.missing(wanted):
                    own = [r for r in own if Cell(name, r.setting).key not in present]
                    told = changes(own, missing) if own else "not run yet"
                    part = f"the part “{kind[1]}”" if kind[1] else "all"
                    notes[name, kind[0]] = notes.get((name, kind[0]), "") + f" {part}, {told};"
                    print(f"{name}, {kind}: {len(missing)} of {len(wanted)} cells are missing: {told}.")
                else:
                    own = [r for r in own if Cell(name, r.setting).key in present]
                shown += own
            if shown:
                results.add(name, shown)
    found = json.loads((folder / NUMBERS).read_text(encoding="utf-8"))
    for (name, procedure), note in notes.items():
        if procedure in found["experiments"][name]["columns"]:
            found["experiments"][name]["columns"][procedure]["older"] = (
                f"Not of the present settings:{note.rstrip(';')}."
            )
    (folder / NUMBERS).write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def kind_of(run: Cell | Record[Any, Any]) -> tuple[Procedure, str]:
    """The procedure and the part of an experiment."""
    return run.setting.get("procedure", "ours"), run.setting.get("part", "")


def changes(records: list[Record[Any, Any]], cells: list[Cell]) -> str:
    """The entries in which the settings of records and of cells differ."""

    def entries(value: object, name: str = "") -> Iterator[tuple[str, str]]:
        if isinstance(value, Mapping):
            for key, inside in value.items():
                yield from entries(inside, f"{name} {key}".strip().replace("_", " "))
        else:
            yield name, json.dumps(value)

    before, now = (
        {entry for one in runs for entry in entries(one.setting) if entry[0] not in ("seed", "guess")}
        for runs in (records, cells)
    )
    names = sorted({name for name, _ in before ^ now})
    told = []
    for name in names:
        values = [sorted(value for other, value in found if other == name) for found in (before - now, now - before)]
        short = all(len(words) == 1 and len(words[0]) < 24 for words in values)
        told.append(f"{name} {values[0][0]} instead of {values[1][0]}" if short else f"other {name}")
    return f"run with {', '.join(told)}" if told else "run with other guesses"


def made_by(experiments: dict[str, SavedExperiment]) -> str:
    """Which code made the records, which of them are not of the present one, and which experiments are not among them."""
    columns = {(name, p): column for name, entry in experiments.items() for p, column in entry["columns"].items()}
    versions = ", ".join(sorted({version for column in columns.values() for version in column["versions"]}))
    missing = [f"`{name}`" for name in EXPERIMENTS if name not in experiments]
    left_out = f" Not run by it: {', '.join(missing)}." if missing else ""
    changed = [name for name, e in experiments.items() if any(
        set(column["versions"]) != {record_version(name)} for column in e["columns"].values()
    )]  # fmt: skip
    older = ""
    if changed:
        which = "all experiments" if len(changed) == len(experiments) else ", ".join(f"`{name}`" for name in changed)
        older = (
            f" **Older than the code beside it:** records of {which} were made before what they run was last changed; "
            "verdicts are by the present criteria, but where a column says otherwise. `policyspace reproduce --fresh` makes "
            "all anew."
        )
    return (
        f"Made by the code {versions}, in all {spent(list(columns.values()))}. Processor times are of one core."
        f"{older}{left_out}\n"
    )


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
    said = dict.fromkeys(
        claim.verdict(procedure) + (f" ({more})" if (more := claim.in_how_many(procedure)) else "") for claim in asked
    )
    return ", ".join(said) or "–"


def _times(entries: list[SavedExperiment]) -> list[str]:
    found = {name: [e["columns"][name] for e in entries if name in e["columns"]] for name in PROCEDURES}
    hours = sum(entry["authors_hours"] or 0.0 for entry in entries)
    authors = f"≈ {duration(3600 * hours)}" if hours else "–"
    return [*(spent(columns) if columns else "–" for columns in found.values()), authors]


def section(name: str, entry: SavedExperiment) -> list[str]:
    """The claims of an experiment as paper / literal / ours, with their figures and numbers."""
    lines = [f'<a id="{name}"></a>', "", f"## {entry['title']}", ""]
    lines += [f"    {command}" for command in dict.fromkeys(c["command"] for c in entry["columns"].values())] + [""]
    for procedure, column in entry["columns"].items():
        if "older" in column:
            lines += [f"**{SETTINGS[procedure]}:** {column['older']}", ""]
    if entry["authors_measured"]:
        lines += [f"What the authors' code would need is an estimate: {entry['authors_measured']}.", ""]
    return lines + [line for claim in claims_of(entry) for line in _claim(claim)]


def _claim(claim: ClaimRow) -> list[str]:
    first = claim.first
    rows = [("question" if claim.our_own else "the paper", first["claim"])]
    for procedure, words in PROCEDURES.items():
        if procedure in claim.panels:
            panel = claim.panels[procedure]
            more = f", {panel['in_how_many']}" if panel.get("in_how_many") else ""
            rows.append((words.lower(), f"**{panel['verdict']}{more}.** {panel['why']}"))
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
    said = [word for word in sys.argv[1:] if word != "--from-records"]
    folder = Path(said[0] if said else "results")
    if len(said) < len(sys.argv) - 1:
        from_records(folder)
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
