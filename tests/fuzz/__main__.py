"""`make fuzz SECONDS=600`: inputs until the time is over, what fails kept in `found/`; then processes that are killed."""

import argparse
import collections
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.case import failure, tidy
from tests.fuzz.from_hypothesis import examples
from tests.fuzz.kills import kill_many
from tests.fuzz.targets import draw

BATCH = 100
"""Examples of hypothesis in a row."""


def fuzz(seconds: float, most: int, seed: int, folder: Path) -> tuple[collections.Counter, list[str]]:
    """Inputs by target, and what went wrong."""
    rng, counts, found, seen = random.Random(seed), collections.Counter(), [], set()
    end, told = time.monotonic() + seconds, time.monotonic()
    while time.monotonic() < end and counts.total() < most:
        if rng.random() < 0.001:
            batch = [("hypothesis", case) for case in examples(rng.getrandbits(32), BATCH)]
        else:
            batch = [draw(rng)]
        for name, case in batch:
            counts[name] += 1
            wrong = failure(case, folder)
            if wrong is None:
                continue
            where = wrong.strip().splitlines()
            key = (name, where[-1][:60], where[-3] if len(where) > 3 else "")  # one of each kind is enough
            if key not in seen:
                seen.add(key)
                found.append(f"{name}: {case.keep().name}: {' '.join(case.arguments)}\n{wrong[-1500:]}")
                print(found[-1], flush=True)
        if time.monotonic() - told > 60:
            told = time.monotonic()
            tidy()
            print(f"{counts.total()} inputs, {len(found)} found", flush=True)
    return counts, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--inputs", type=int, default=sys.maxsize, help="stop after so many, whatever the time")
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--only", help="the one command to kill")
    parser.add_argument("--seed", type=int, default=random.randrange(10**9))
    said = parser.parse_args()
    print(f"seed {said.seed}", flush=True)
    began = time.process_time()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        killed = kill_many(said.kills, said.seed, said.only)
        counts, found = fuzz(said.seconds, said.inputs, said.seed, Path(folder))
    for name, count in sorted(counts.items()):
        print(f"{name:15} {count:8}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{counts.total()} inputs, {len(found)} found; {time.process_time() - began:.0f} s of processor, {peak:.0f} MB"
    )
    print("\n".join(killed.lines()))
    sys.exit(bool(found or killed.wrong))


if __name__ == "__main__":
    main()
