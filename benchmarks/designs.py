"""What a configuration is worth at equal totals: `python -m benchmarks.designs` remakes the tables of docs/designs.md."""

import argparse
import json
import re
from pathlib import Path
from typing import Any

from policyspace.data.code_version import code_version
from policyspace.experiments.catalogue import experiment_module
from policyspace.experiments.configuring_panels import COLUMNS, at_totals
from policyspace.experiments.panel import Scale
from policyspace.experiments.records import Cell, Record
from policyspace.report.style import save
from policyspace.table import Table

WORLDS = {
    "gridworld": "Discrete grid world",
    "continuous-gridworld": "Continuous grid world",
    "minigolf-features": "Minigolf",
}
ORDER = ("d-optimal", "none", "uniform", "paper", "noncentrality")
"""Which designs are run first."""
PAGE = Path("docs/designs.md")


def cells(name: str, agents: int) -> list[Cell]:
    """The part of an experiment at equal totals, design by design."""
    found = experiment_module(name).cells(Scale(runs=agents))
    totals = [cell for cell in found if cell.setting.get("part") == "totals"]
    return sorted(totals, key=lambda cell: (ORDER.index(cell.setting["design"]), cell.setting["budget"]))


def remake(records: dict[str, list[Record]]) -> None:
    """The tables between the marks of the page, and their figures."""
    page = PAGE.read_text(encoding="utf-8")
    for name, found in records.items():
        if not found:
            continue
        panel = at_totals(name, WORLDS[name], found)
        if panel.figure is not None:
            save(panel.figure, PAGE.parent / "images" / f"designs-{name}.svg")
        marks = f"<!-- table {name} -->", f"<!-- end of table {name} -->"
        table = Table(COLUMNS, panel.rows).markdown()
        page = re.sub(
            f"{re.escape(marks[0])}.*?{re.escape(marks[1])}",
            lambda _, t=table, m=marks: f"{m[0]}\n{t}\n{m[1]}",
            page,
            flags=re.S,
        )
    PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    """Cells one after the other; those in the records file are not run again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.designs", description=__doc__)
    parser.add_argument("--agents", type=int, default=25)
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS))
    parser.add_argument("--designs", nargs="*", default=list(ORDER))
    parser.add_argument("--records", type=Path, default=Path("results/designs.jsonl"))
    given = parser.parse_args()
    given.records.parent.mkdir(parents=True, exist_ok=True)
    lines = given.records.read_text(encoding="utf-8").splitlines() if given.records.exists() else []
    known: dict[tuple[str, str], Any] = {tuple(row["cell"]): row["result"] for row in map(json.loads, lines)}
    wanted = {name: cells(name, given.agents) for name in given.worlds}
    for name, some in wanted.items():
        for cell in some:
            if cell.key not in known and cell.setting["design"] in given.designs:
                known[cell.key] = experiment_module(name).run(cell.setting)
                with given.records.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"cell": cell.key, "result": known[cell.key]}) + "\n")
    version = code_version()
    remake(
        {
            name: [
                Record(cell.experiment, cell.setting, version, 0.0, known[cell.key])
                for cell in some
                if cell.key in known
            ]
            for name, some in wanted.items()
        }
    )


if __name__ == "__main__":
    main()
