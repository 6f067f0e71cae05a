"""The whole loop keeps its δ: over many agents the chance of any false selection in any round is at most what it says."""

import pytest
from scipy.stats import binom

from policyspace.configuration import DESIGNS, configure
from policyspace.policies.jax_setup import jax
from policyspace.worlds import make_world
from policyspace.worlds.agents import learn

pytestmark = pytest.mark.slow
SIGNIFICANCE = 0.1


@pytest.mark.parametrize(
    ("name", "rule", "design", "options", "num_episodes", "num_attempts", "runs"),
    [
        ("gridworld", "simplified", "d-optimal", {}, 30, 3, 120),
        ("gridworld", "simplified", "d-optimal", {}, 100, 3, 80),
        ("gridworld", "simplified", "uniform", {}, 30, 3, 120),
        ("gridworld", "simplified", "paper", {"num_updates": 50}, 30, 1, 30),
        ("continuous-gridworld", "simplified", "d-optimal", {}, 30, 3, 60),
        ("minigolf", "simplified", "paper", {"penalty": 0.25, "num_updates": 50}, 10, 2, 60),
        ("minigolf", "combinatorial", "d-optimal", {}, 10, 3, 60),
    ],
)
def test_any_false_selection_is_as_rare_as_it_says(name, rule, design, options, num_episodes, num_attempts, runs):
    world = make_world(name)
    space = world.policy_space()
    # What an agent does not control is exactly zero however long it learns: the hypothesis holds after few steps, too.
    steps = {"gridworld": 200, "continuous-gridworld": 100, "minigolf": 300}[name]
    wrong = 0
    for seed in range(runs):
        controls, start, key = jax.random.split(jax.random.key(10_000 + seed), 3)
        truth = world.random_controls(controls)

        def observe(key, omega, size, truth=truth):
            learning, acting = jax.random.split(key)
            return learn(world, space, truth, omega, learning, num_steps=steps).act(world, omega, acting, size)

        *_, last = configure(
            world, observe, key, space, rule, SIGNIFICANCE, DESIGNS[design](**options), num_episodes, num_attempts,
            initial=world.random_configuration(start),
        )  # fmt: skip
        wrong += bool(set(last.selected) - truth)
    print(f"{name}, {rule}, {design}, {num_episodes} episodes a look: {wrong} of {runs} agents with a false selection")
    assert wrong <= binom.ppf(0.999, runs, SIGNIFICANCE)
