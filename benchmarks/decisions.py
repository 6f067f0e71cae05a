"""The round that most lowers the regret of a decision, against the D-optimal one, at equal totals.

python -m benchmarks.decisions [minigolf|gridworld …]

Agents that use a random part of the features in question learn anew in every round of a study. After the study the
configuration is chosen whose largest regret is smallest over all supports that are possible; what that loses of the return
of the agent's own best configuration is the regret. Counts are kept in benchmarks/decisions.jsonl: a run goes on where the
last one ended.
"""

import json
import sys
from pathlib import Path

import numpy as np

import policyspace
from policyspace.families.jax_backend import jax
from policyspace.study.deciding import (
    Cube,
    DecisionDesign,
    ReturnTable,
    largest_regrets,
    play_in_world,
    possible_supports,
    spread_points,
)
from policyspace.study.designs import Information
from policyspace.worlds.gridworld import Gridworld
from policyspace.worlds.minigolf import Minigolf

KEPT = Path("benchmarks/decisions.jsonl")
WORLDS = {
    # The world, the features in question, learning steps of agents, configurations to choose among, episodes of a study.
    "minigolf": (Minigolf(policy_deviation=0.1), Minigolf.feature_names, 600, 6, 40),
    "gridworld": (Gridworld(), ("goal_row_0", "goal_row_1", "goal_row_2", "goal_row_3"), None, 5, 60),
}
ROUNDS, AGENTS = 3, 20


def run(name, design_name, seed, table):
    """The regret of the choice after a study, and the largest regret that is possible."""
    world, asked, steps, _, total = WORLDS[name]
    known = [one for one in world.feature_names if one not in asked]
    space = world.policy_space().with_assumed(known)
    rng = np.random.default_rng(seed)
    controls = [*known, *(one for one in asked if rng.random() < 0.5)]

    def observe(key, omega, count):
        learning, acting = jax.random.split(key)
        return policyspace.learn(world, space, controls, omega, learning, num_steps=steps).act(
            world, omega, acting, count
        )

    design = DecisionDesign(world, table=table) if design_name == "decision" else Information()
    study = policyspace.configure(
        world, observe, jax.random.key(seed), space=space, design=design, budget=total, max_rounds=ROUNDS
    )
    last = list(study)[-1]
    values = table.values(possible_supports([*known, *last.selected], last.undecided))
    choice = int(largest_regrets(values).argmin())
    (own,) = table.values([tuple(controls)])
    return {
        "regret": float(own.max() - own[choice]),
        "largest": float(largest_regrets(values).min()),
        "found": len(last.selected),
        "used": len(controls) - len(known),
        "false": len(set(last.selected) - set(controls)),
    }


def main(names):
    """Runs that are missing, and a table of all."""
    kept = [json.loads(line) for line in KEPT.read_text().splitlines()] if KEPT.exists() else []
    for name in names or WORLDS:
        world, _, steps, count, total = WORLDS[name]
        cube = Cube(world)
        places = [cube.configuration(point) for point in spread_points(count, cube.num_numbers, 0)]
        table = ReturnTable(play_in_world(world, 500, 0, None, steps), places)
        for seed in range(AGENTS):
            for design in ("d-optimal", "decision"):
                key = {"world": name, "design": design, "seed": seed}
                if not any(key.items() <= one.items() for one in kept):
                    kept.append(key | run(name, design, seed, table))
                    with KEPT.open("a") as file:
                        file.write(json.dumps(kept[-1]) + "\n")
        for design in ("d-optimal", "decision"):
            rows = [one for one in kept if one["world"] == name and one["design"] == design]
            parts = [
                np.array([one[what] for one in rows], dtype=float) for what in ("regret", "largest", "found", "used")
            ]
            error = parts[0].std(ddof=1) / np.sqrt(len(rows))
            print(
                f"{name}, {total} episodes, {design}: regret {parts[0].mean():.3f} ± {error:.3f}, largest possible "
                f"{parts[1].mean():.3f}, found {parts[2].sum():.0f} of {parts[3].sum():.0f}, false "
                f"{sum(one['false'] for one in rows)}, {len(rows)} agents",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
