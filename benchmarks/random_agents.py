"""How often what is promised is false, on agents drawn at random: `python -m benchmarks.random_agents --draw 1`.

Kinds and logs are those of `benchmarks.honesty.grammar`; finished runs are kept and not run again. Tests are tuned on one
draw and judged on another.
"""

import argparse
import multiprocessing
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from policyspace_paper.estimates import Rate

from benchmarks.honesty.grammar import Kind, kinds, log_of
from benchmarks.honesty.runs import SIGNIFICANCE, Records, Run, Task, asked_of

TESTS = ("auto", "lean", "wilks")


@cache
def kinds_by_name(draw: int, count: int) -> dict[str, Kind]:
    """The kinds of a draw."""
    return {kind.name: kind for kind in kinds(draw, count)}


def run(work: tuple[int, int, Task]) -> Run:
    """One log of one kind, asked by one test."""
    draw, count, task = work
    return asked_of(log_of(kinds_by_name(draw, count)[task.cell], task.seed), task)


def share(part: float, whole: float) -> str:
    """As three decimals, or a dash where there is nothing to share."""
    return f"{part / whole:.3f}" if whole else "–"


def row(name: str, test: str, runs: Sequence[Run]) -> str:
    """False among promised, promised, found, refused and cost of some runs."""
    promised = [one for one in runs if one.promised]
    false = sum(one.any_false for one in promised)
    rate = Rate(false, len(promised), test, SIGNIFICANCE).words if promised else "–"
    used = sum(len(one.used) for one in runs)
    found = sum(len(set(one.found) & set(one.used)) for one in runs)
    cost = np.mean([one.seconds for one in runs])
    counts = f"{len(runs)} | {false} | {rate} | {share(len(promised), len(runs))} | {share(found, used)}"
    return f"| {name} | {test} | {counts} | {cost:.2f} |"


def against_oracle(runs: Sequence[Run], known: dict[str, Kind], test: str) -> str:
    """The used inputs that a test finds without a false name, against an oracle who takes the best test log by log."""
    best = dict[tuple[str, int], int]()
    found = 0
    for one in runs:
        if known[one.cell].logged:
            right = 0 if one.any_false else len(set(one.found) & set(one.used))
            best[one.cell, one.seed] = max(best.get((one.cell, one.seed), 0), right)
            found += right * (one.column == test)
    return share(found, sum(best.values()))


HEAD = (
    "| agents | test | logs | false and promised | of promised (95 %) | promised | used inputs found | CPU s |\n"
    "|---|---|---|---|---|---|---|---|"
)


def page(runs: Sequence[Run], known: dict[str, Kind], command: str) -> str:
    """All kinds together, by the words of the grammar, and each kind."""
    tests = list(dict.fromkeys(one.column for one in runs))

    def rows(name: str, belongs: Callable[[Kind], bool]) -> list[str]:
        found = []
        for test in tests:
            own = [one for one in runs if one.column == test and belongs(known[one.cell])]
            found += [row(name, test, own)] if own else []
        return found

    lines = [
        "# False among promised, on agents drawn at random",
        "",
        f"Remade by `{command}`; δ = {SIGNIFICANCE:g}.",
        "",
    ]
    lines += ["Kinds with an unlogged cause are counted apart: dependence is real there, use is not.", "", HEAD]
    lines += rows("all whose causes are logged", lambda kind: kind.logged)
    lines += rows("with an unlogged cause", lambda kind: not kind.logged)
    if len(tests) > 1:
        words = ", ".join(f"`{test}` {against_oracle(runs, known, test)}" for test in tests)
        lines += [
            "",
            "Used inputs found in answers without a false name, as a share of what an oracle finds, who takes for each log "
            f"whichever of these tests finds most: {words}.",
        ]
    for column in ("form", "noise", "rows", "memory", "sensors", "actions", "size"):
        words = dict.fromkeys(getattr(kind, column) for kind in known.values() if kind.logged)
        lines += ["", f"## By {column}", "", HEAD]
        for word in words:
            lines += rows(str(word), lambda kind, c=column, w=word: kind.logged and getattr(kind, c) == w)  # type: ignore[misc]
    lines += ["", "## Each kind", "", HEAD]
    for name, kind in known.items():
        lines += rows(name if kind.logged else f"{name} (unlogged cause)", lambda other, own=kind: other is own)  # type: ignore[misc]
    return "\n".join(lines) + "\n"


def main(words: Sequence[str]) -> int:
    """Run what is missing and print, or write, the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.random_agents", description=__doc__)
    parser.add_argument("--draw", type=int, default=0, help="which kinds")
    parser.add_argument("--kinds", type=int, default=48)
    parser.add_argument("--logs", type=int, default=20, help="logs a kind")
    parser.add_argument("--tests", nargs="+", default=list(TESTS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--records", type=Path, default=Path("results/random-agents.jsonl"))
    parser.add_argument("--table", type=Path, help="the page to write instead of printing it")
    options = parser.parse_args(words)
    known = kinds_by_name(options.draw, options.kinds)
    seeds = range(1000 * options.draw, 1000 * options.draw + options.logs)
    tasks = [Task(kind, test, seed) for seed in seeds for kind in known for test in options.tests]
    records = Records(options.records)
    missing = [(options.draw, options.kinds, task) for task in records.missing(tasks)]
    print(f"{len(tasks)} runs, {len(missing)} of them to do; records in {options.records}", flush=True)
    ignore = (signal.SIGINT, signal.SIG_IGN)
    try:
        with multiprocessing.get_context("spawn").Pool(options.jobs, signal.signal, ignore) as pool:
            for done, outcome in enumerate(pool.imap_unordered(run, missing, chunksize=4), start=1):
                records.add(outcome)
                if done % 200 == 0:
                    print(f"{done} of {len(missing)}", flush=True)
    except KeyboardInterrupt:
        print(f"Stopped. What has finished is in {options.records}: the same command goes on from there.")
        return 130
    command = shlex.join(["python", "-m", "benchmarks.random_agents", *words])
    text = page([records.runs[task] for task in tasks], known, command)
    if options.table:
        options.table.write_text(text, encoding="utf-8")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
