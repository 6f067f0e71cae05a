"""The classic cart-pole, configured through its physics, with noise on the state so that a density exists."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from policyspace.families.base import PolicySpace
from policyspace.families.jax_backend import jax, jnp, sine_cosine
from policyspace.families.softmax import SoftmaxLinear
from policyspace.worlds.base import Array, Configuration, ConfigurationParameter, Key
from policyspace.worlds.confmdp import ConfMDP


@final
@dataclass(frozen=True)
class CartPole(ConfMDP):
    """States (x, ẋ, angle, angular velocity); a push left or right; +1 a step until the pole falls or the cart leaves.

    s' = s + τ f_ω(s, a) + diag(σ) ε: one Euler step of the equations of motion of Barto, Sutton and Anderson (1983).
    """

    time_step: float = 0.02
    noise: tuple[float, float, float, float] = (0.002, 0.02, 0.002, 0.02)
    horizon: int = 200
    discount: float = 0.99

    name = "cartpole"
    feature_names = ("position", "velocity", "angle", "angular_velocity")
    action_names = ("right", "left")  # the reference action, whose weights are zero, is the last
    num_normals = 4
    parameters = (
        ConfigurationParameter("gravity", (), 1.0, 25.0, 9.8, "acceleration of free fall, m/s²"),
        ConfigurationParameter("cart_mass", (), 0.1, 10.0, 1.0, "mass of the cart, kg"),
        ConfigurationParameter("pole_mass", (), 0.01, 2.0, 0.1, "mass of the pole, kg"),
        ConfigurationParameter("pole_half_length", (), 0.1, 3.0, 0.5, "half the length of the pole, m"),
        ConfigurationParameter("force", (), 1.0, 30.0, 10.0, "strength of a push, N"),
    )

    def initial(self, key: Key, configuration: Configuration) -> Array:
        """Uniform on [−0.05, 0.05]⁴, whatever ω."""
        return jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05)

    def move(self, noise: Array, state: Array, action: Array, configuration: Configuration) -> Array:
        """s' = s + τ f_ω(s, a) + diag(σ) ε."""
        shake = jnp.stack([deviation * number for deviation, number in zip(self.noise, noise, strict=True)])
        return self.drift(state, action, configuration) + shake

    def drift(self, state: Array, action: Array, configuration: Configuration) -> Array:
        """The mean of s', s + τ f_ω(s, a)."""
        g, cart, pole, half, push = (configuration[p.name] for p in self.parameters)
        _, velocity, angle, spin = state
        sine, cosine = sine_cosine(angle)
        force = jnp.where(action == 0, push, -push)
        common = (force + pole * half * spin**2 * sine) / (cart + pole)
        turning = (g * sine - cosine * common) / (half * (4.0 / 3.0 - pole * cosine**2 / (cart + pole)))
        pushing = common - pole * half * turning * cosine / (cart + pole)
        return state + self.time_step * jnp.stack([velocity, pushing, spin, turning])

    def reward(self, state: Array, action: Array, next_state: Array) -> Array:
        """+1 a step."""
        return jnp.ones_like(next_state[0])

    def terminal(self, state: Array) -> Array:
        """The cart is more than 2.4 m away, or the pole more than 12° from upright."""
        return (jnp.abs(state[0]) > 2.4) | (jnp.abs(state[2]) > np.deg2rad(12.0))

    def log_initial(self, state: Array, configuration: Configuration) -> Array:
        """The start is not configurable."""
        return jnp.zeros(())

    def log_transition(self, state: Array, action: Array, next_state: Array, configuration: Configuration) -> Array:
        """The density N(s'; s + τ f_ω(s, a), diag σ²), without its constant."""
        z = (next_state - self.drift(state, action, configuration)) / jnp.asarray(self.noise)
        return -0.5 * jnp.sum(z**2)

    def features(self, state: Array) -> Array:
        """The state itself."""
        return state

    def policy_space(self, **options: Any) -> PolicySpace:
        """Boltzmann with one row of weights for two pushes, on the state and a constant."""
        return SoftmaxLinear(self.feature_names, self.action_names, **options)
