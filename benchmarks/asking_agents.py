"""Trained agents are asked which inputs move them, beside the truth: `python -m benchmarks.asking_agents`.

The truth is what moves their networks on fresh states (`benchmarks.trained_agents`). Agents are trained at the first call
and kept, and finished runs are not run again. Writes the tables of docs/asking-evidence.md.
"""

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

import policyspace
from benchmarks.trained_agents import AGENTS, FOLDER, MATERIAL, Actor, Trained, actor, truth

WAYS = ("inside", "paired", "played")

PAGE = Path(__file__).parent.parent / "docs" / "asking-evidence.md"
END = "<!-- end of the table -->"


def write_table(page: Path, name: str, table: str) -> None:
    """Put a table between the marks with its name."""
    begin = f"<!-- python -m {name} -->\n"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(f"{before}{begin}\n{table}\n\n{END}{rest.split(END, 1)[1]}", encoding="utf-8")


@dataclass(frozen=True)
class Run:
    """One answer, and what it cost."""

    agent: str
    way: str
    seed: int
    selected: tuple[str, ...]
    barely: tuple[str, ...]
    never: tuple[str, ...]
    effects: dict[str, tuple[float, float, float]]
    """Estimate, low and high."""
    questions: int
    steps: int
    agent_seconds: float
    own_seconds: float
    seconds: float
    """Of the processor, with the play of the agent in its environment."""

    @property
    def found(self) -> set[str]:
        """The inputs that it is said to react to."""
        return {*self.selected, *self.barely}


def ask(actor: Actor, way: str, seed: int) -> Run:
    """The answer in one way; inputs have the names and groups of the truth."""
    trained = actor.trained
    told: dict = (
        {"groups": (4, 4)} if trained.picture else {"features": trained.sensors, "groups": named_groups(trained)}
    )
    begun = time.process_time()
    answer = policyspace.ask(actor.model, actor.env(), way=way, seed=seed, **told)
    seconds = time.process_time() - begun
    return Run(
        actor.name, way, seed, answer.selected, answer.barely, answer.never,
        {one.group: (one.effect_any.estimate, one.effect_any.low, one.effect_any.high)
         for one in answer.groups if one.effect_any is not None},
        answer.cost.questions, answer.cost.steps, answer.cost.agent_seconds, answer.cost.own_seconds, seconds,
    )  # fmt: skip


def named_groups(trained: Trained) -> dict[str, list[str]]:
    """The groups of several sensors."""
    found = {group: [trained.sensors[j] for j in places] for group, places in trained.groups.items()}
    return {group: members for group, members in found.items() if len(members) > 1}


def truth_of(name: str, folder: Path) -> dict[str, float]:
    """What moves an agent; kept beside it."""
    path = folder / f"{name}.truth.json"
    if not path.exists():
        path.write_text(json.dumps(truth(actor(name, folder))))
    return json.loads(path.read_text())


def path_of(name: str, way: str, seed: int, folder: Path) -> Path:
    """Where an answer is kept."""
    return folder / f"{name}.{way}.{seed}.json"


def run(name: str, way: str, seed: int, folder: Path) -> Run:
    """One answer; kept beside the agent."""
    path = path_of(name, way, seed, folder)
    if not path.exists():
        path.write_text(json.dumps(asdict(ask(actor(name, folder), way, seed))))
    return Run(**json.loads(path.read_text()))


# -- Tables.


def fraction(parts: Iterable[bool]) -> str:
    """How many of how many."""
    parts = list(parts)
    return f"{sum(parts)} of {len(parts)}" if parts else "–"


def agents_table(names: Sequence[str], folder: Path) -> str:
    """What was trained, how it plays, and how many inputs matter."""
    lines = [
        "| agent | environment | steps | return of 20 episodes | material | slight | unseen |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in names:
        trained, record, effects = (
            AGENTS[name],
            json.loads((folder / f"{name}.json").read_text()),
            truth_of(name, folder),
        )
        unseen = trained.unseen
        material = sorted((g for g in effects if effects[g] >= MATERIAL), key=lambda g: -effects[g])
        slight = [g for g in effects if 0 < effects[g] < MATERIAL]
        shown = ", ".join(f"{g} {100 * effects[g]:.0f} %" for g in material)
        hidden = ", ".join(sorted(trained.hidden))
        lines.append(
            f"| {name} | {trained.world} | {trained.steps:,} | {record['return']:.4g} ± {record['sd']:.2g} "
            f"| {shown} | {len(slight)} | {len(unseen)}{f' ({hidden})' if hidden else ''} |".replace(",000", " 000")
        )
    return "\n".join(lines)


def ways_table(runs: Sequence[Run], folder: Path) -> str:
    """Of every agent and way what was found, missed and false, and what it cost."""
    lines = [
        "| agent | way | runs | material found | slight found | false | farthest effect | interval holds it | questions "
        "| steps | agent, CPU s | own, CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    kinds = {(one.way, one.agent): None for one in sorted(runs, key=lambda one: WAYS.index(one.way))}
    for way, agent in kinds:
        some = [one for one in runs if (one.way, one.agent) == (way, agent)]
        lines.append(row(agent, way, some, folder))
    for way in WAYS:
        if some := [one for one in runs if one.way == way]:
            lines.append(row("**all**", way, some, folder))
    return "\n".join(lines)


def row(agent: str, way: str, runs: Sequence[Run], folder: Path) -> str:
    """Some runs together."""
    effects = {one.agent: truth_of(one.agent, folder) for one in runs}
    unseen = {one.agent: AGENTS[one.agent].unseen for one in runs}
    material = fraction(g in one.found for one in runs for g, e in effects[one.agent].items() if e >= MATERIAL)
    slight = fraction(g in one.found for one in runs for g, e in effects[one.agent].items() if 0 < e < MATERIAL)
    false = fraction(g in one.found for one in runs for g in unseen[one.agent])
    apart = max((abs(e[0] - effects[one.agent][g]) for one in runs for g, e in one.effects.items()), default=np.nan)
    inside = fraction(e[1] <= effects[one.agent][g] <= e[2] for one in runs for g, e in one.effects.items() if e[0])

    def middle(what: str) -> float:
        return float(np.median([getattr(one, what) for one in runs]))

    measured = (f"{apart:.3f}", inside) if way == "inside" else ("–", "–")  # by bets an effect is at most the truth
    cost = f"{middle('questions'):.0f} | {middle('steps'):.0f} | {middle('agent_seconds'):.2f} | {middle('own_seconds'):.2f}"
    return f"| {agent} | {way} | {len(runs)} | {material} | {slight} | {false} | {' | '.join(measured)} | {cost} |"


def main() -> None:
    """Ask and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where agents and answers are kept")
    parser.add_argument("--agents", nargs="*", default=list(AGENTS), choices=list(AGENTS), help="which")
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=WAYS, help="which")
    parser.add_argument("--runs", type=int, default=5, help="seeds of each agent and way")
    parser.add_argument("--kept", action="store_true", help="only the tables of what has been run")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    folder, runs = arguments.folder, []
    for way in arguments.ways:
        if arguments.kept:
            every = [(name, way, seed, folder) for name in arguments.agents for seed in range(arguments.runs)]
            runs += [run(*one) for one in every if path_of(*one).exists()]
            continue
        for name in arguments.agents:
            if way == "paired" and AGENTS[name].algorithm == "RecurrentPPO":
                continue  # what only acts and has a memory is asked while it plays
            runs += [run(name, way, seed, folder) for seed in range(arguments.runs)]
            print(f"{name}: {way} done", flush=True)
    for name, table in (("agents", agents_table(arguments.agents, folder)), ("ways", ways_table(runs, folder))):
        write_table(PAGE, f"benchmarks.asking_agents: {name}", table)
    print(f"Saved {PAGE}")


if __name__ == "__main__":
    main()
