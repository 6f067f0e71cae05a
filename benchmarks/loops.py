"""How often a whole loop of configuring selects anything wrongly, as a table in docs/designs.md.

`python -m benchmarks.loops` runs the loops that the file of records does not have yet. Every loop is one agent with random
controls from a random first configuration, which learns anew in every round. The same seed is the same agent in every
cell of its world, and what it learned in a configuration is learned once.
"""

import argparse
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from scipy.stats import binom

from policyspace.configuration import DESIGNS, configure
from policyspace.data.code_version import code_version
from policyspace.policies import PolicySpace
from policyspace.policies.jax_setup import jax
from policyspace.table import Table
from policyspace.worlds import make_world
from policyspace.worlds.agents import Agent, learn
from policyspace.worlds.confmdp import ConfMDP

SIGNIFICANCE = 0.1
FIRST_SEED = 10_000
BLOCK = 20
"""Loops between two looks at the records."""
BRIEF = {"gridworld": 200, "continuous-gridworld": 100, "minigolf": 300, "cartpole": 100}
"""Steps of agents that hardly learn; what they do not control is exactly zero all the same."""
SIZES = {"gridworld": (30, 100), "continuous-gridworld": (40, 130), "minigolf": (10, 30), "cartpole": (30, 100)}
CHEAP, EXPENSIVE = 200, 60
"""Loops a cell: the first where one takes about a second of one core or less, else the second."""
LINEAR = {"minigolf": CHEAP, "cartpole": CHEAP, "gridworld": EXPENSIVE, "continuous-gridworld": EXPENSIVE}
"""Loops a cell in each world whose policies are linear."""
PAGE = Path("docs/designs.md")
COLUMNS = (
    "world", "design", "episodes a round", "rounds", "agents learned", "loops", "with a false selection", "at most",
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One kind of loop, and how many of it."""

    world: str
    design: str
    num_episodes: int  # a round
    well: bool  # whether agents learn as well as they can, or hardly
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
    """Every world, design and size of a round, with agents that learned well and agents that hardly did."""
    usual = [
        Cell(world, design, size, well, num_loops)
        for world, num_loops in LINEAR.items()
        for well in ((True, False) if num_loops == EXPENSIVE else (False,))  # learning well takes longer than the loop
        for design in ("none", "uniform", "d-optimal", "noncentrality")
        for size in SIZES[world]
    ]
    few = {"num_updates": 50}
    return [
        *usual,
        Cell("minigolf", "paper", 10, False, EXPENSIVE, 2, options=few | {"penalty": 0.25}),
        Cell("minigolf", "d-optimal", 10, False, EXPENSIVE, rule="combinatorial"),
        Cell("gridworld", "paper", 30, True, EXPENSIVE, 1, options=few),
    ]


@cache
def _world(name: str) -> tuple[ConfMDP, PolicySpace]:
    """One object each, so that what is compiled for one cell serves all."""
    world = make_world(name)
    return world, world.policy_space()


_learned: dict[Any, Agent] = {}


def selects_wrongly(cell: Cell, seed: int) -> bool:
    """Whether the loop of one agent ever selects what the agent does not control."""
    world, space = _world(cell.world)
    controls, start, key = jax.random.split(jax.random.key(seed), 3)
    truth = world.random_controls(controls)

    def observe(key: Any, omega: Any, size: int) -> Any:
        learning, acting = jax.random.split(key)
        settings = {} if cell.well else {"num_steps": BRIEF[cell.world]}
        chance, where = jax.random.key_data(learning).tobytes(), tuple(value.tobytes() for value in omega.values())
        known = (cell.world, cell.well, chance, where)
        if known not in _learned:
            _learned[known] = learn(world, space, truth, omega, learning, **settings)
        return _learned[known].act(world, omega, acting, size)

    design = DESIGNS[cell.design](**cell.options)
    *_, last = configure(
        world, observe, key, space, cell.rule, SIGNIFICANCE, design, cell.num_episodes, cell.num_attempts,
        configuration=world.random_configuration(start),
    )  # fmt: skip
    return bool(set(last.selected) - truth)


def false_selections(cell: Cell, first: int, count: int) -> Found:
    """What came of some of the loops of a cell, counted from 0."""
    seeds = range(FIRST_SEED + first, FIRST_SEED + first + count)
    return Found(count, sum(selects_wrongly(cell, seed) for seed in seeds))


def row(cell: Cell, found: Found) -> tuple[str, ...]:
    """One line of the table."""
    rounds = 1 + cell.num_attempts * (1 if DESIGNS[cell.design]().joint else len(_world(cell.world)[1].tested))
    design = cell.design if cell.rule == "simplified" else f"{cell.design}, {cell.rule} rule"
    learned = "well" if cell.well else "hardly"
    return cell.world, design, *map(str, (cell.num_episodes, rounds, learned, found.loops, found.wrong, found.bound))


def remake(known: Mapping[str, Found]) -> None:
    """The table between the marks of the page."""
    rows = [row(cell, known[cell.key]) for cell in cells() if cell.key in known]
    table = f"<!-- table loops -->\n{Table(COLUMNS, rows).markdown()}\n<!-- end of table loops -->"
    page = PAGE.read_text(encoding="utf-8")
    page = re.sub("<!-- table loops -->.*?<!-- end of table loops -->", lambda _: table, page, flags=re.S)
    PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    """First the fewest loops of every cell, then the others; those in the records file are not run again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loops", description=__doc__)
    parser.add_argument("--worlds", nargs="*", default=list(SIZES))
    parser.add_argument("--records", type=Path, default=Path("results/loops.jsonl"))
    given, known, version = parser.parse_args(), dict[str, Found](), code_version()
    given.records.parent.mkdir(parents=True, exist_ok=True)
    for line in given.records.read_text(encoding="utf-8").splitlines() if given.records.exists() else []:
        _add(known, json.loads(line))
    for wanted in range(BLOCK, CHEAP + 1, BLOCK):
        for cell in cells():
            if cell.world in given.worlds and known.get(cell.key, Found()).loops < min(wanted, cell.num_loops):
                found = false_selections(cell, known.get(cell.key, Found()).loops, BLOCK)
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
