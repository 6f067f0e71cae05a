"""`python -m benchmarks.honesty`: every scenario by every test, resumable, and the table in docs/."""

import argparse
import multiprocessing
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.honesty import SCENARIOS
from benchmarks.honesty.page import page
from benchmarks.honesty.runs import COLUMNS, Records, Run, Task, run
from policyspace.inference.test_choice import TESTS

DOCS = Path(__file__).parent.parent.parent / "docs"


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.honesty", description=__doc__)
    parser.add_argument("--runs", type=int, default=300, help="logs a scenario and test")
    parser.add_argument("--cells", nargs="+", choices=SCENARIOS, default=list(SCENARIOS), metavar="CELL")
    parser.add_argument(
        "--columns", nargs="+", choices=dict.fromkeys([*TESTS, *COLUMNS]), default=list(COLUMNS), metavar="TEST"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--seed", type=int, default=10_000, help="the seed of the first log")
    parser.add_argument(
        "--records",
        type=Path,
        default=Path("results/honesty.jsonl"),
        help="finished runs, which are not run again: delete the file after changing a test",
    )
    parser.add_argument("--table", type=Path, default=DOCS / "honesty-table.md", help="the page to write")
    return parser.parse_args(words)


def outcomes(tasks: list[Task], jobs: int) -> Iterator[Run]:
    """Runs as they finish; Ctrl-C is the parent's alone, and leaves no process behind."""
    if jobs == 1:
        yield from map(run, tasks)
        return
    ignore = (signal.SIGINT, signal.SIG_IGN)
    with multiprocessing.get_context("spawn").Pool(jobs, initializer=signal.signal, initargs=ignore) as pool:
        yield from pool.imap_unordered(run, tasks, chunksize=4)


def main(words: Sequence[str]) -> int:
    """Run what is missing and write the table of what was asked for."""
    options = arguments(words)
    seeds = range(options.seed, options.seed + options.runs)
    tasks = [Task(cell, column, seed) for cell in options.cells for column in options.columns for seed in seeds]
    records = Records(options.records)
    missing = records.missing(tasks)
    print(f"{len(tasks)} runs, {len(missing)} of them to do; records in {options.records}", flush=True)
    try:
        for done, outcome in enumerate(outcomes(missing, options.jobs), start=1):
            records.add(outcome)
            if done % 100 == 0 or done == len(missing):
                print(f"{done} of {len(missing)}: {outcome.cell}, {outcome.column}", flush=True)
    except KeyboardInterrupt:
        print(f"Stopped. What has finished is in {options.records}: the same command goes on from there.")
        return 130
    command = shlex.join(["python", "-m", "benchmarks.honesty", *words])
    options.table.write_text(page([records.runs[task] for task in tasks], command), encoding="utf-8")
    print(f"Saved {options.table}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
