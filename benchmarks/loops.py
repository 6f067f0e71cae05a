"""How often a whole loop of configuring selects anything wrongly, as a table in docs/designs.md.

`python -m benchmarks.loops` runs the loops that its file of records does not have yet. Every loop is one random agent
(`benchmarks.loop_agents`) from a random first configuration; the same seed is the same agent in every cell of its world.
"""

import argparse
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from scipy.stats import binom

from benchmarks.loop_agents import PARAMETERS, READINGS, subject, world_of
from benchmarks.loop_readings import READERS
from policyspace.data.large.backends import code_version
from policyspace.display import TextTable
from policyspace.study.designs import ANYWHERE, DESIGNS
from policyspace.study.loop import configure

SIGNIFICANCE = 0.1
FIRST_SEED = 10_000
BLOCK = 20
"""Loops between two looks at the records."""
SIZES = {
    "minigolf": (10, 30),
    "cartpole": (30, 100),
    "gridworld": (30, 100),
    "continuous-gridworld": (40, 130),
    "car": (10, 30),
    "CartPole-v1": (10, 40),
    "Pendulum-v1": (10, 40),
    READINGS: (10, 40),
}
"""Episodes of a round: few, and enough."""
NOISE = {"gridworld": SIZES["gridworld"], "continuous-gridworld": (504, 1000)}
"""The same for agents that did not learn; in the continuous world a batch of their noise is not tested below 504."""
DEAR_NOISE = ("continuous-gridworld", "d-optimal")
"""Where a loop of such an agent takes more than a second."""
CHEAP, EXPENSIVE, DEARER, DEAREST = 200, 60, 20, 10
"""Loops a cell: where one takes about a second of one core or less; longer; up to seven; and in the car up to thirty."""
LEARNING = ("minigolf", "cartpole", "gridworld", "continuous-gridworld")
"""The package's own worlds but the car. In the grid worlds there are agents that learned well, too, which takes seconds."""
DEAR = ("continuous-gridworld", "noncentrality")
"""Where a loop takes longer than a second even if agents hardly learn."""
WITHOUT_DENSITIES = (
    ("minigolf", "space-filling", CHEAP),
    ("minigolf", "simulated", CHEAP),
    ("cartpole", "space-filling", CHEAP),
    ("cartpole", "simulated", EXPENSIVE),
    ("gridworld", "space-filling", CHEAP),
    ("gridworld", "simulated", DEARER),
    ("continuous-gridworld", "space-filling", CHEAP),
    ("continuous-gridworld", "simulated", DEARER),
)
"""Worlds and designs that need no densities, though these worlds have them, and loops a cell."""
SHORT = tuple((10, design) for design in ("space-filling", "uniform", "none"))
"""Episodes of a round and designs of which a loop in Pendulum-v1, whose episodes have 200 steps, is as short."""
PAGE, RECORDS = Path("docs/designs.md"), Path("benchmarks/loops.jsonl")
"""The page, and what was counted for it so far."""
COLUMNS = (
    "world", "agents", "design", "episodes a round", "rounds", "loops", "with a false selection", "at most",
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One kind of loop, and how many of it."""

    world: str
    agents: str  # as "learned well"; in Gymnasium as "network"; of readings one of `READERS`
    design: str
    num_episodes: int  # a round
    num_loops: int
    num_attempts: int = 3
    rule: str = "simplified"
    options: Mapping[str, Any] = field(default_factory=dict)  # of the design

    @property
    def key(self) -> str:
        """What it is called in the file of records."""
        return json.dumps({name: value for name, value in asdict(self).items() if name != "num_loops"}, sort_keys=True)


class Found(NamedTuple):
    """How many loops were run, and in how many of them anything was selected wrongly."""

    loops: int = 0
    wrong: int = 0

    @property
    def bound(self) -> int:
        """Loops with a false selection that a chance of δ exceeds once in a thousand times."""
        return int(binom.ppf(0.999, self.loops, SIGNIFICANCE))


def cells() -> list[Cell]:
    """Worlds, kinds of agents, designs and sizes of a round: all that are cheap enough, and some that are not."""
    learning = [
        Cell(world, agents, design, size, EXPENSIVE if agents == "learned well" or (world, design) == DEAR else CHEAP)
        for world in LEARNING
        for agents in ("learned well", "hardly learned")
        if "gridworld" in world or agents == "hardly learned"  # else learning well takes longer than the loop
        for design in ("none", "uniform", "d-optimal", "noncentrality")
        for size in SIZES[world]
    ]
    made_of_noise = [
        Cell(world, "not learned", design, size, CHEAP if (world, design) != DEAR_NOISE else EXPENSIVE)
        for world in NOISE
        for design in ("none", "d-optimal")
        for size in NOISE[world]
    ]
    without_densities = [
        Cell(world, "hardly learned", design, size, num_loops)
        for world, design, num_loops in WITHOUT_DENSITIES
        for size in SIZES[world]
    ]
    unknown = [
        Cell(world, agents, design, size, CHEAP if world == "CartPole-v1" or (size, design) in SHORT else DEARER)
        for world in PARAMETERS
        for agents in ("linear", "network", "abrupt network")
        if world == "CartPole-v1" or agents != "abrupt network"  # which chooses between labels
        for design in ANYWHERE
        for size in SIZES[world]
    ]
    driving = [
        Cell("car", "learned well", design, size, DEAREST)
        for design in ("none", "uniform", "d-optimal", "noncentrality")
        for size in SIZES["car"]
    ]
    hard = [Cell(READINGS, agents, "space-filling", size, CHEAP) for agents in READERS for size in SIZES[READINGS]]
    few = {"num_updates": 50}
    return [
        *learning,
        *made_of_noise,
        *without_densities,
        *driving,
        Cell("minigolf", "hardly learned", "paper", 10, EXPENSIVE, 2, options=few | {"penalty": 0.25}),
        Cell("minigolf", "hardly learned", "d-optimal", 10, EXPENSIVE, rule="combinatorial"),
        Cell("gridworld", "learned well", "paper", 30, EXPENSIVE, 1, options=few),
        *unknown,
        *hard,
    ]


def selects_wrongly(cell: Cell, seed: int) -> bool:
    """Whether the loop of one agent ever selects what the agent does not control."""
    agent, key = subject(cell.world, cell.agents, seed)
    design = {**DESIGNS, **ANYWHERE}[cell.design](**cell.options)
    *_, last = configure(
        agent.world, agent.observe, key, agent.space, cell.rule, SIGNIFICANCE, design, cell.num_episodes,
        cell.num_attempts, configuration=agent.start,
    )  # fmt: skip
    return bool(set(last.selected) - agent.truth)


def false_selections(cell: Cell, first: int, count: int) -> Found:
    """What came of some of the loops of a cell, counted from 0."""
    seeds = range(FIRST_SEED + first, FIRST_SEED + first + count)
    return Found(count, sum(selects_wrongly(cell, seed) for seed in seeds))


def row(cell: Cell, found: Found) -> tuple[str, ...]:
    """One line of the table."""
    rounds = 1 + cell.num_attempts * (len(world_of(cell.world)[1].tested) if cell.design == "paper" else 1)
    design = cell.design if cell.rule == "simplified" else f"{cell.design}, {cell.rule} rule"
    numbers = (cell.num_episodes, rounds, found.loops, found.wrong, found.bound)
    return cell.world, cell.agents, design, *map(str, numbers)


def remake(known: Mapping[str, Found]) -> None:
    """The table between the marks of the page."""
    rows = [row(cell, known[cell.key]) for cell in cells() if cell.key in known]
    table = f"<!-- table loops -->\n{TextTable(COLUMNS, rows).markdown()}\n<!-- end of table loops -->"
    page = PAGE.read_text(encoding="utf-8")
    page = re.sub("<!-- table loops -->.*?<!-- end of table loops -->", lambda _: table, page, flags=re.S)
    shown = [known[cell.key] for cell in cells() if cell.key in known]
    loops, wrong = sum(found.loops for found in shown), sum(found.wrong for found in shown)
    page = re.sub(r"In all, [\d ]+ of [\d ]+ loops", f"In all, {wrong} of {loops} loops", page)
    PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    """First the fewest loops of every cell, then the others; those in the records file are not run again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loops", description=__doc__)
    parser.add_argument("--worlds", nargs="*", default=list(SIZES))
    parser.add_argument("--records", type=Path, default=RECORDS)
    given, known, version = parser.parse_args(), dict[str, Found](), code_version()
    given.records.parent.mkdir(parents=True, exist_ok=True)
    for line in given.records.read_text(encoding="utf-8").splitlines() if given.records.exists() else []:
        _add(known, json.loads(line))
    for wanted in range(BLOCK, CHEAP + 1, BLOCK):
        for cell in cells():
            if cell.world in given.worlds and known.get(cell.key, Found()).loops < min(wanted, cell.num_loops):
                done = known.get(cell.key, Found()).loops
                found = false_selections(cell, done, min(BLOCK, cell.num_loops - done))
                record = {"cell": cell.key, "version": version, **found._asdict()}
                _add(known, record)
                print(*row(cell, known[cell.key]), flush=True)
                with given.records.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
    remake(known)


def _add(known: dict[str, Found], record: Mapping[str, Any]) -> None:
    before = known.get(record["cell"], Found())
    known[record["cell"]] = Found(before.loops + record["loops"], before.wrong + record["wrong"])


if __name__ == "__main__":
    main()
