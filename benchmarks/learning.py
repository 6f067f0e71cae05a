"""Agents that learn: the time of a whole learning run after compilation, and what it reached."""

from typing import Any

import numpy as np

from benchmarks.table import Row, clock, show
from policyspace.policies.jax_setup import jax
from policyspace.worlds import make_world
from policyspace.worlds.agents import Learning, learn

RUNS = {
    "gridworld": (Learning(200, 250, 0.1), 0.6),
    "continuous-gridworld": (Learning(100, 100, 0.1), None),
    "minigolf": (Learning(1000, 100, 0.001), None),
    "car": (Learning(100, 50, 0.03), 15.0),
    "cartpole": (Learning(100, 100, 0.05), None),
}
"""How much each world's agent learns here (the paper's numbers where it has any), and the seconds it may take."""


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


def main() -> None:
    show("Learning (G(PO)MDP with Adam, after compilation)", [measure(name) for name in RUNS])


if __name__ == "__main__":
    main()
