"""Forecasts: the power that simulated studies have, and nothing promised by noise."""

from pathlib import Path

import jax
import numpy as np
from scipy.stats import binom

from policyspace import make_world, rollout, simplified
from policyspace.study import estimated_theta, load_world
from policyspace.study.forecast import forecast

WORLD = make_world("gridworld")
SPACE = WORLD.policy_space()
EXAMPLES = Path(__file__).parents[2] / "examples"


def test_forecast_power_is_the_share_of_simulated_studies_that_find_it(tmp_path, monkeypatch):
    """A Gaussian agent whose θ is known: the χ² law is exact given the states, which the forecast averages."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    world = load_world("own_world:Rover")
    space = world.policy_space()
    sigma = float(np.sqrt(space.covariance[0, 0]))
    theta, omega = np.array([0.0, -0.5, 0.09 * sigma]), world.check_configuration({"gain": 1.4})
    units = list(space.tested)
    logged = rollout(world, space, theta, omega, jax.random.key(0), 100)
    found = {
        f.unit: f for f in forecast(world, space, theta, logged, 10**12, omega, units, 60, 0.05, jax.random.key(1))
    }
    shown = dict.fromkeys(found, 0)
    for run in range(200):
        data = rollout(world, space, theta, omega, jax.random.key(100 + run), 60)
        answer = simplified(space, data.pairs(world.feature_names, world.action_names), 0.05, "bonferroni")
        for name in answer.selected:
            shown[name] += 1
    assert found["position"].power > 0.99 and shown["position"] == 200
    power = found["temperature"].power
    assert 0.3 < power < 0.95
    # Simulated episodes stand for the expectation, which adds some per cent to the binomial error.
    assert abs(shown["temperature"] / 200 - power) < 4 * np.sqrt(power * (1 - power) / 200) + 0.05
    again = forecast(world, space, theta, logged, 10**12, omega, units, 60, 0.05, jax.random.key(1))
    assert again == list(found.values())


def test_noise_is_not_mistaken_for_control():
    """Weights estimated from the noise of an agent that owns nothing promise, but for one unit in twenty, nothing."""
    promising = 0
    for seed in range(5):
        omega = WORLD.default_configuration()
        seen = rollout(WORLD, SPACE, np.zeros(51), omega, jax.random.key(seed), 60)
        theta = estimated_theta(SPACE, seen.pairs(WORLD.feature_names, WORLD.action_names))
        told = forecast(WORLD, SPACE, theta, seen, 60, omega, list(SPACE.tested), 60, 0.05, jax.random.key(seed))
        promising += sum(f.power > 0.2 for f in told)
    assert binom.sf(promising - 1, 80, 0.06) > 1e-4
