"""How often each test errs, and what it finds: the table in docs/.

`python -m benchmarks.calibration [share of the runs] [scenario …]` measures all scenarios, or some again.
"""

import sys
import time
from pathlib import Path

from policyspace.calibrated.levels import SCENARIOS, Level, measure

RUNS = {
    ("linear", "wilks"): 1000,
    ("linear", "bootstrap"): 100,
    ("linear", "universal"): 400,
    ("linear", "eprocess"): 200,
    ("linear", "mixture"): 1000,
    ("linear-long", "wilks"): 200,
    ("linear-long", "universal"): 200,
    ("linear-long", "eprocess"): 60,
    ("linear-long", "mixture"): 200,
    ("separated", "wilks"): 400,
    ("separated", "firth"): 200,
    ("separated", "bootstrap"): 40,
    ("separated", "universal"): 300,
    ("separated", "eprocess"): 100,
    ("peeking", "wilks"): 200,
    ("peeking", "mixture"): 200,
    ("peeking", "eprocess"): 200,
    ("network", "wilks"): 30,
    ("network", "universal"): 30,
    ("network", "bootstrap"): 20,
}

HEAD = ["| scenario | test | runs | type-I error (nominal .05) | power | seconds a run |", "|---|---|---|---|---|---|"]
TABLE = Path(__file__).parent.parent / "docs" / "calibration-table.md"


def row(level: Level, seconds: float) -> str:
    return (
        f"| {level.scenario} | {level.test} | {level.num_runs} | {level.error:.3f} ± {level.standard_error:.3f} "
        f"| {level.power:.2f} | {seconds / level.num_runs:.2f} |"
    )


def known() -> dict[tuple[str, str], str]:
    """The rows of the table as it is, so that one scenario can be measured again without the others."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()[2:] if TABLE.exists() else []
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    return {(cell[1], cell[2]): line for cell, line in zip(cells, lines, strict=True)}


def main() -> None:
    share = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    wanted = sys.argv[2:] or list(SCENARIOS)
    rows = known()
    for (scenario, test), runs in RUNS.items():
        if scenario not in wanted:
            continue
        start = time.perf_counter()
        level = measure(SCENARIOS[scenario], test, max(1, round(runs * share)))
        rows[scenario, test] = row(level, time.perf_counter() - start)
        print(rows[scenario, test], flush=True)
        ordered = [rows[key] for key in RUNS if key in rows]
        TABLE.write_text("\n".join([*HEAD, *ordered]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
