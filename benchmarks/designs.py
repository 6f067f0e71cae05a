"""What a configuration is worth at equal totals, as docs/designs.md shows it, from what `policyspace reproduce` left.

`python -m benchmarks.designs [FOLDER]`, by default `results`: the tables and figures of the worlds whose cells are finished.
"""

import re
import sys
from pathlib import Path

from policyspace_paper.configuring_results import COLUMNS, at_totals
from policyspace_paper.execution import Record, RunSize, Store, find_experiment

from policyspace.display import TextTable
from policyspace.report.figures import save

WORLDS = {
    "gridworld": "Discrete grid world",
    "continuous-gridworld": "Continuous grid world",
    "minigolf-features": "Minigolf",
}
PAGE = Path("docs/designs.md")


def remake(records: dict[str, list[Record]]) -> None:
    """The tables between the marks of the page, and their figures."""
    page = PAGE.read_text(encoding="utf-8")
    for name, found in records.items():
        panel = at_totals(name, WORLDS[name], found)
        if panel.figure is not None:
            save(panel.figure, PAGE.parent / "images" / f"designs-{name}.svg")
        marks = f"<!-- table {name} -->", f"<!-- end of table {name} -->"
        table = TextTable(COLUMNS, panel.rows).markdown()
        page = re.sub(
            f"{re.escape(marks[0])}.*?{re.escape(marks[1])}",
            lambda _, t=table, m=marks: f"{m[0]}\n{t}\n{m[1]}",
            page,
            flags=re.S,
        )
    PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    """The parts of the experiments at equal totals."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    records = {}
    with Store(folder / "records.sqlite") as store:
        for name in WORLDS:
            cells = [c for c in find_experiment(name).cells(RunSize()) if c.setting.get("part") == "totals"]
            if missing := store.missing(cells):
                print(
                    f"{name}: {len(missing)} of {len(cells)} cells are missing: run `policyspace reproduce {name}` first."
                )
            else:
                records[name] = store.records_of(cells)
    remake(records)


if __name__ == "__main__":
    main()
