"""How often the lean test finds exactly the sensors of drivers that nothing was tuned on: `python -m benchmarks.drivers`."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from policyspace_paper.car import CAR, by_rules, driver
from policyspace_paper.configuring import world_and_space
from policyspace_paper.estimates import Rate
from policyspace_paper.execution import record_version

from policyspace.display import TextTable
from policyspace.inference.lean.lean_test import LeanTest

EPISODES, SIGNIFICANCE, LEARNING_RATE = CAR.num_episodes.value, CAR.significance.value, CAR.learning_rate.value
COLUMNS = ("episodes", "rule", "drivers", "identified exactly (95 %)", "with a false selection (95 %)")


def outcomes(seed: int) -> Iterator[dict[str, Any]]:
    """What both rules say of one driver, by its number of episodes."""
    world, space = world_and_space("car")
    seen, how = driver(seed, LEARNING_RATE)
    owned = [name for name in world.feature_names if name in world.true_controls]
    for num_episodes in EPISODES:
        data = seen.take(np.flatnonzero(seen.episodes < num_episodes))
        found = by_rules(LeanTest(space, data, SIGNIFICANCE, seed), SIGNIFICANCE)
        for rule, supports in (("combinatorial", found["rule_1"]), ("simplified", [found["rule_2"]])):
            core = set.intersection(*map(set, supports))
            exact, false = supports == [owned], not core <= set(owned)
            kept = {"seed": seed, "episodes": num_episodes, "rule": rule, "exact": exact, "false": false}
            yield kept | {"failed": how["failed"]}


def table(rows: list[dict[str, Any]]) -> str:
    """Shares with their exact 95 % intervals, of drivers that learned to drive."""
    learned = [row for row in rows if not row["failed"]]
    lines = []
    for num_episodes in EPISODES:
        for rule in ("combinatorial", "simplified"):
            own = [row for row in learned if (row["episodes"], row["rule"]) == (num_episodes, rule)]
            if own:
                exact, false = (Rate(sum(row[kind] for row in own), len(own)) for kind in ("exact", "false"))
                lines.append((str(num_episodes), rule, str(len(own)), exact.words, false.words))
    return TextTable(COLUMNS, lines).markdown()


def main() -> None:
    """Drivers one after the other; those in the records file are not driven again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drivers", description=__doc__)
    parser.add_argument("--drivers", type=int, default=100)
    parser.add_argument("--seed", type=int, default=50_000, help="of the first driver")
    parser.add_argument("--records", type=Path, default=Path("results/drivers.jsonl"))
    parser.add_argument("--table", type=Path, default=Path("docs/drivers-table.md"))
    given = parser.parse_args()
    given.records.parent.mkdir(parents=True, exist_ok=True)
    known = given.records.read_text(encoding="utf-8").splitlines() if given.records.exists() else []
    rows = [json.loads(line) for line in known]
    for seed in range(given.seed, given.seed + given.drivers):
        if not any(row["seed"] == seed for row in rows):
            new = list(outcomes(seed))
            rows += new
            with given.records.open("a", encoding="utf-8") as file:
                file.write("".join(json.dumps(row) + "\n" for row in new))
            print(f"driver {seed}: {sum(row['exact'] for row in new)} of {len(new)} exact", flush=True)
    failed = len({row["seed"] for row in rows if row["failed"]})
    version = record_version("car")
    text = (
        "# Sensors of drivers by the lean test\n\n"
        f"The car of the paper, δ = {SIGNIFICANCE:g}, drivers {given.seed} to {given.seed + given.drivers - 1}, on which "
        f"nothing was tuned; {failed} of them failed to learn and are left out. "
        f"Counted by the code {version}. Remade by `python -m benchmarks.drivers "
        f"--drivers {given.drivers} --seed {given.seed}`.\n\n"
    )
    given.table.write_text(text + table(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
