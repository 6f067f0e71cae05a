"""A world of your own in one class: a rover on a line, whose motor gain can be configured.

Everything else works on it unchanged: rollouts, importance weights, learning, identification, Gymnasium.
Run it with `python examples/own_world.py`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from policyspace.families.base import PolicySpace
from policyspace.families.gaussian import GaussianLinear
from policyspace.families.jax_backend import jax, jnp
from policyspace.worlds.base import Array, Configuration, ConfigurationParameter, Key
from policyspace.worlds.confmdp import ConfMDP, effective_sample_size, log_weights, renyi2, rollout


@dataclass(frozen=True)
class Rover(ConfMDP):
    """The state is (position, temperature); the motor moves the rover by ω·a plus noise; home is at 0."""

    noise: float = 0.2
    horizon: int = 10
    discount: float = 0.95

    name = "rover"
    feature_names = ("position", "temperature")
    action_names = ("throttle",)
    action_bounds = (-1.0, 1.0)
    parameters = (ConfigurationParameter("gain", (), 0.2, 3.0, 1.0, "metres a unit of throttle"),)

    def initial(self, key: Key, configuration: Configuration) -> Array:
        """The rover wakes up somewhere near home, on a warm or a cold day."""
        return jax.random.normal(key, (2,), jnp.float64)

    def transition(self, key: Key, state: Array, action: Array, configuration: Configuration) -> Array:
        """x' = x + ω·a + σε; the temperature stays."""
        slip = self.noise * jax.random.normal(key, (), jnp.float64)
        return jnp.stack([state[0] + configuration["gain"] * action[0] + slip, state[1]])

    def reward(self, state: Array, action: Array, next_state: Array) -> Array:
        """Being away from home costs."""
        return -(next_state[0] ** 2)

    def terminal(self, state: Array) -> Array:
        """More than five metres away the rover is lost."""
        return jnp.abs(state[0]) > 5.0

    def log_initial(self, state: Array, configuration: Configuration) -> Array:
        """The start does not depend on ω."""
        return jnp.zeros(())

    def log_transition(self, state: Array, action: Array, next_state: Array, configuration: Configuration) -> Array:
        """The Normal density of x' as a function of ω, without its constant."""
        return -0.5 * ((next_state[0] - state[0] - configuration["gain"] * action[0]) / self.noise) ** 2

    def features(self, state: Array) -> Array:
        """The rover measures both."""
        return state

    def policy_space(self, **options: Any) -> PolicySpace:
        """Throttle is linear in what it measures, plus Gaussian noise."""
        return GaussianLinear(self.feature_names, self.action_names, **{"covariance": 0.05} | options)


def main() -> None:
    """Watch a rover that steers by its position only, and read what was seen as if the motor were stronger."""
    world = Rover()
    space = world.policy_space()
    theta = np.array([0.0, -0.5, 0.0])  # the constant, the position, and no weight on the temperature
    seen = rollout(world, space, theta, world.default_configuration(), jax.random.key(0), num_episodes=2000)
    print(f"{seen.num_rows} pairs of state and action, mean return {np.mean(seen.returns(world.discount)):.2f}")

    stronger = world.check_configuration({"gain": 1.05})
    weights = log_weights(world, seen, stronger)
    print(f"mean weight at gain 1.05: {np.mean(np.exp(weights[:, -1])):.3f} (should be near 1)")
    print(f"2-Rényi divergence {renyi2(weights):.2f}, worth {effective_sample_size(weights):.0f} of 2000 episodes")

    from policyspace.identification import identify

    answer = identify(seen.pairs(world.feature_names, world.action_names))
    print(answer.sentence)


if __name__ == "__main__":
    main()
