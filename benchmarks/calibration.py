"""How often each test errs, and what it finds: `python -m benchmarks.calibration` writes the table in docs/."""

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

TABLE = Path(__file__).parent.parent / "docs" / "calibration-table.md"


def row(level: Level, seconds: float) -> str:
    return (
        f"| {level.scenario} | {level.test} | {level.num_runs} | {level.error:.3f} ± {level.standard_error:.3f} "
        f"| {level.power:.2f} | {seconds / level.num_runs:.2f} |"
    )


def main() -> None:
    share = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    lines = [
        "| scenario | test | runs | type-I error (nominal .05) | power | seconds a run |",
        "|---|---|---|---|---|---|",
    ]
    for (scenario, test), runs in RUNS.items():
        start = time.perf_counter()
        level = measure(SCENARIOS[scenario], test, max(1, round(runs * share)))
        lines.append(row(level, time.perf_counter() - start))
        print(lines[-1], flush=True)
        TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
