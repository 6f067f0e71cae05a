"""How often each test errs, and what it finds: the table in docs/, from the cells of the experiment `calibration`.

`python -m benchmarks.calibration [records.sqlite]` runs the cells that the file of records does not have yet.
"""

import sys
from pathlib import Path

from policyspace_paper.calibration import EXPERIMENT, Measured, measured_tests
from policyspace_paper.execution import Cell, RunSize, Store, run_cells

from policyspace.display import TextTable

COLUMNS = ("scenario", "test", "runs", "type-I error (nominal .05, 95 %)", "power", "seconds a run")
TABLE = Path(__file__).parent.parent / "docs" / "calibration-table.md"


def row(scenario: str, test: str, found: Measured) -> tuple[str, ...]:
    rate = found.rate
    return scenario, test, str(rate.num_runs), rate.words, f"{found.power:.2f}", f"{found.seconds:.2f}"


def main() -> None:
    records = Path(sys.argv[1] if len(sys.argv) > 1 else "results/records.sqlite")
    wanted = [cell for cell in EXPERIMENT.cells(RunSize()) if cell.setting["kind"] == "test"]
    with Store(records) as store:
        run_cells(wanted, store, finished=lambda cell, seconds, _: print(f"{cell.setting} {seconds:.1f} s", flush=True))
        keys = {cell.key for cell in wanted}
        own = [r for r in store.records("calibration") if Cell(r.experiment, r.setting).key in keys]
    rows = [row(scenario, test, found) for (scenario, test), found in measured_tests(own).items()]
    TABLE.write_text(TextTable(COLUMNS, rows).markdown() + "\n", encoding="utf-8")
    print(f"Saved {TABLE}")


if __name__ == "__main__":
    main()
