"""Agents that learn: the time of a whole learning run after compilation, what it reached, and how far the best known is.

And of the paper's Algorithm 4, in which an agent learns anew in every round: as printed, and with agents that learn well.
"""

import time
from functools import partial
from typing import Any

import numpy as np
from policyspace_paper.execution import RunSize, find_experiment

from benchmarks.table import Row, clock, show
from policyspace.families.jax_backend import jax
from policyspace.study.designs import PaperObjective
from policyspace.study.loop import configure
from policyspace.worlds import make_world
from policyspace.worlds.agents import Learning, learn, returns_of

RUNS = {
    "gridworld": (Learning(200, 250, 0.1), 0.6),
    "continuous-gridworld": (Learning(100, 100, 0.1), None),
    "minigolf": (Learning(1000, 100, 0.001), None),
    "car": (Learning(100, 50, 0.03), 15.0),
    "cartpole": (Learning(100, 100, 0.05), None),
}
"""How much each world's agent learns here (the paper's numbers where it has any), and the seconds it may take."""
CONFIGURED: dict[str, tuple[int, float | None]] = {
    "gridworld": (1000, 15.0),
    "continuous-gridworld": (300, None),
}
"""Whole runs of Algorithm 4 as printed, by experiment: episodes of a round, and the seconds of a processor it may take."""
NUM_RUNS = 3
"""Agents of Algorithm 4: the first seeds, of which the very first compiles."""
BY_DEFAULT = {"gridworld": 16, "continuous-gridworld": 8, "minigolf": 3, "car": 3}
"""Agents that learn as their worlds' agents do, each compared with the best known policy in its space."""


def measure(name: str) -> Row:
    """The best of three runs with different seeds and configurations, compiled before."""
    settings, limit = RUNS[name]
    world = make_world(name)
    space = world.policy_space()

    def run(seed: int) -> Any:
        omega = world.default_configuration() if seed == 0 else world.random_configuration(jax.random.key(seed))
        numbers = (settings.num_steps, settings.num_episodes, settings.learning_rate)
        return learn(world, space, None, omega, seed, *numbers)

    learned = run(0)
    seeds = iter((1, 2, 3))
    seconds, _ = clock(lambda: run(next(seeds)), repeats=3)
    first, last = np.mean(learned.learning_curve[:5]), np.mean(learned.learning_curve[-5:])
    what = f"{name}: {settings.num_steps} steps × {settings.num_episodes} episodes × {world.horizon}"
    return (
        f"{what} (return {first:.3g} → {last:.3g})",
        f"{seconds:.2f} s",
        "" if limit is None else f"≤ {limit:g} s",
    )


def measure_default(name: str) -> Row:
    """`learn(world)` for the first seeds, with random controls and configurations; the first of them compiles."""
    world = make_world(name)
    space = world.policy_space()
    seconds, found = [], []
    for seed in range(BY_DEFAULT[name]):
        owned, start, learning, comparing = jax.random.split(jax.random.key(seed), 4)
        controls, omega = sorted(world.random_controls(owned)), world.random_configuration(start)
        took, agent = clock(partial(learn, world, space, controls, omega, learning))
        seconds.append(took)
        found.append(returns_of(agent, world, comparing))
    distances = [one.distance for one in found]
    return (
        f"{name}: {len(found)} agents by default, mean J {np.mean([one.agent for one in found]):.3g} (best known "
        f"{np.mean(distances):.2g} better, at most {max(distances):.2g})",
        f"{np.mean(seconds[1:]):.2f} s",
        "",
    )


def measure_algorithm_4_by_default() -> Row:
    """What `policyspace configure gridworld --design paper --episodes 1000` does, its agents learning by default."""
    world = make_world("gridworld")
    space = world.policy_space()

    def run(seed: int) -> int:
        owned, start, key = jax.random.split(jax.random.key(seed), 3)
        controls = sorted(world.random_controls(owned))

        def observe(key: Any, omega: Any, num_episodes: int) -> Any:
            learning, acting = jax.random.split(key)
            return learn(world, space, controls, omega, learning).act(world, omega, acting, num_episodes)

        first = world.random_configuration(start)
        design = PaperObjective(penalty=0.125)
        return len(list(configure(world, observe, key, space, design=design, episodes=1000, configuration=first)))

    timed = [clock(partial(run, seed), timer=time.process_time) for seed in range(NUM_RUNS)]
    seconds, rounds = [took for took, _ in timed], [count for _, count in timed]
    return (
        f"gridworld: Algorithm 4, agents by default, n = 1000, {' and '.join(map(str, rounds[1:]))} rounds",
        f"{np.mean(seconds[1:]):.1f} s of processor (the first, of {rounds[0]} rounds, compiling: {seconds[0]:.1f} s)",
        "",
    )


def measure_algorithm_4(name: str) -> Row:
    """The processor's time for one agent by the literal cells: the mean after the first, and the first, which compiles."""
    experiment, (num_episodes, limit) = find_experiment(name), CONFIGURED[name]
    wanted = {"procedure": "literal", "part": "episodes", "design": "paper", "num_episodes": num_episodes}
    settings = [cell.setting for cell in experiment.cells(RunSize(runs=NUM_RUNS))]
    settings = [setting for setting in settings if wanted.items() <= setting.items()]
    timed = [clock(lambda s=setting: experiment.run(s), timer=time.process_time) for setting in settings]
    seconds, rounds = [took for took, _ in timed], [result["num_rounds"] for _, result in timed]
    return (
        f"{name}: Algorithm 4 as printed, n = {num_episodes}, {' and '.join(map(str, rounds[1:]))} rounds",
        f"{np.mean(seconds[1:]):.1f} s of processor (the first, of {rounds[0]} rounds, compiling: {seconds[0]:.1f} s)",
        "" if limit is None else f"≤ {limit:g} s",
    )


def main() -> None:
    show("Learning (G(PO)MDP with Adam, after compilation)", [measure(name) for name in RUNS])
    show("Learning (by default, beside the best policy known)", [measure_default(name) for name in BY_DEFAULT])
    printed = [measure_algorithm_4(name) for name in CONFIGURED]
    show("Configuring (one agent, whole)", [*printed, measure_algorithm_4_by_default()])


if __name__ == "__main__":
    main()
