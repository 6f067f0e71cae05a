"""The whole loop keeps its δ: over many agents the chance of any false selection in any round is at most what it says."""

import pytest
from scipy.stats import binom

from policyspace.configuration import DESIGNS, configure
from policyspace.policies.jax_setup import jax
from policyspace.worlds import make_world
from policyspace.worlds.agents import learn

pytestmark = pytest.mark.slow
SIGNIFICANCE = 0.1
BRIEF = {"gridworld": 200, "continuous-gridworld": 100, "minigolf": 300}
"""Steps of agents that hardly learn; what they do not control is exactly zero all the same."""
SIZES = {"gridworld": (30, 100), "continuous-gridworld": (40, 130), "minigolf": (10, 30)}
RUNS = {"gridworld": 200, "continuous-gridworld": 60, "minigolf": 200}
"""Loops a cell: 200 where one is cheap."""

CELLS = [
    (name, "simplified", design, {}, size, 3, RUNS[name], well)
    for name in SIZES
    for design in ("d-optimal", "uniform", "none")
    for size in SIZES[name]
    for well in ((True, False) if name != "minigolf" else (False,))
] + [
    ("gridworld", "simplified", "paper", {"num_updates": 50}, 30, 1, 30, True),
    ("minigolf", "simplified", "paper", {"penalty": 0.25, "num_updates": 50}, 10, 2, 60, False),
    ("minigolf", "combinatorial", "d-optimal", {}, 10, 3, 60, False),
]


@pytest.mark.parametrize(("name", "rule", "design", "options", "num_episodes", "num_attempts", "runs", "well"), CELLS)
def test_any_false_selection_is_as_rare_as_it_says(name, rule, design, options, num_episodes, num_attempts, runs, well):
    """Agents that learned well and agents that hardly did, by world, design and episodes of a round."""
    world = make_world(name)
    space = world.policy_space()
    learning = {} if well else {"num_steps": BRIEF[name]}
    wrong = 0
    for seed in range(runs):
        controls, start, key = jax.random.split(jax.random.key(10_000 + seed), 3)
        truth = world.random_controls(controls)

        def observe(key, omega, size, truth=truth):
            learn_key, acting = jax.random.split(key)
            return learn(world, space, truth, omega, learn_key, **learning).act(world, omega, acting, size)

        *_, last = configure(
            world, observe, key, space, rule, SIGNIFICANCE, DESIGNS[design](**options), num_episodes, num_attempts,
            initial=world.random_configuration(start),
        )  # fmt: skip
        wrong += bool(set(last.selected) - truth)
    how = "well" if well else "briefly"
    print(f"{name}, {rule}, {design}, {num_episodes} a round, learned {how}: {wrong} of {runs} with a false selection")
    assert wrong <= binom.ppf(0.999, runs, SIGNIFICANCE)
