"""Minigolf: a ball is putted towards a hole; the length of the putter can be configured (Section 6.2)."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from policyspace.families.base import PolicySpace
from policyspace.families.gaussian import GaussianLinear
from policyspace.families.jax_backend import jax, jnp
from policyspace.worlds.base import Array, Configuration, ConfigurationParameter, Key
from policyspace.worlds.confmdp import ConfMDP

GRAVITY = 9.81
BALL_RADIUS = 0.02135
HOLE_RADIUS = 0.10
# How much faster than needed, in v², the ball may reach the hole and still fall in.
HOLED_ENERGY = (2 * HOLE_RADIUS - BALL_RADIUS) ** 2 * GRAVITY / (2 * BALL_RADIUS)

SAFE_SPEED = 0.95 * float(np.sqrt(HOLED_ENERGY))
"""A ball this fast is never too fast to fall in."""


@final
@dataclass(frozen=True)
class Minigolf(ConfMDP):
    """States (x, f, clipped): distance, friction, and −1 or 1 if the last stroke met an end of its clip, else 0.

    A stroke gives the ball the speed u = ω·clip(a + σ_e ε) and it rolls x' = x − u²/2D with D = (5/7)·9.81·f: short of the
    hole −1, holed 0 and the end, too fast −100 and the end. Since x' says how fast the ball was, x' ≤ 0 means an end:
    holed if −2D·x' ≤ v_max² − v_min², else lost.
    """

    shortest: float = 1e-5  # the clip of strokes
    longest: float = 2.0
    noise: float = 0.01  # σ_e
    policy_deviation: float = 0.01
    horizon: int = 20
    discount: float = 0.99

    name = "minigolf"
    feature_names = ("x", "f", "sqrt_x", "sqrt_f", "sqrt_xf")
    action_names = ("stroke",)
    num_normals = 1
    parameters = (ConfigurationParameter("putter_length", (), 1.0, 15.0, 5.0, "speed of the ball per unit of stroke"),)

    @property
    def action_bounds(self) -> tuple[float, float]:
        """Strokes are clipped to an interval that all but starts at 0."""
        return 0.0, self.longest

    def initial(self, key: Key, configuration: Configuration) -> Array:
        """Distance x ~ U[1, 20] and friction f ~ U[0.02, 0.5], whatever ω."""
        x, f = jax.random.uniform(key, (2,), minval=jnp.array([1.0, 0.02]), maxval=jnp.array([20.0, 0.5]))
        return jnp.stack([x, f, jnp.zeros(())])

    def move(self, noise: Array, state: Array, action: Array, configuration: Configuration) -> Array:
        """The ball rolls until friction stops it; beyond the hole x' is negative."""
        meant = self._clip(action[0]) + self.noise * noise[0]
        clipped = (meant >= self.longest) * 1.0 - (meant <= self.shortest) * 1.0
        speed = self._clip(meant) * configuration["putter_length"]
        return jnp.stack([state[0] - speed**2 / (2.0 * deceleration(state[1])), state[1], clipped])

    def reward(self, state: Array, action: Array, next_state: Array) -> Array:
        """−1 short of the hole, 0 in it, −100 when the ball is too fast to fall in."""
        too_fast = -2.0 * deceleration(next_state[1]) * next_state[0] > HOLED_ENERGY
        return jnp.where(next_state[0] > 0, -1.0, jnp.where(too_fast, -100.0, 0.0))

    def terminal(self, state: Array) -> Array:
        """The ball has reached the hole, at whatever speed."""
        return state[0] <= 0

    def log_initial(self, state: Array, configuration: Configuration) -> Array:
        """The start is not configurable."""
        return jnp.zeros(())

    def log_transition(self, state: Array, action: Array, next_state: Array, configuration: Configuration) -> Array:
        """The law of x' through that of the swing ã = u/ω, u² = 2D(x − x').

        Inside the clip log N(ã; a, σ_e²) + log|dã/dx'|, where the Jacobian is D/(uω). A clipped swing is an atom of mass
        P(a + σ_e ε beyond the clip); the ball of another ω stops elsewhere, so there the density is 0.
        """
        omega, aim, d = configuration["putter_length"], self._clip(action[0]), deceleration(state[1])
        u = jnp.sqrt(jnp.maximum(2.0 * d * (state[0] - next_state[0]), 1e-300))
        swing = u / omega
        density = -0.5 * ((swing - aim) / self.noise) ** 2 - np.log(self.noise * np.sqrt(2 * np.pi))
        # The swing is known no better than the rounding of x − x' lets it be.
        slack = 8.0 * d / (u * omega) * np.finfo(float).eps * (jnp.abs(state[0]) + jnp.abs(next_state[0]))
        inside = (swing >= self.shortest - slack) & (swing <= self.longest + slack)
        between = jnp.where(inside, density + jnp.log(d / (u * omega)), -jnp.inf)
        mass = jax.scipy.stats.norm.logcdf
        high = jnp.where(jnp.abs(swing - self.longest) <= slack, mass((aim - self.longest) / self.noise), -jnp.inf)
        low = jnp.where(jnp.abs(swing - self.shortest) <= slack, mass((self.shortest - aim) / self.noise), -jnp.inf)
        return jnp.where(next_state[2] > 0, high, jnp.where(next_state[2] < 0, low, between))

    def features(self, state: Array) -> Array:
        """(x, f, √x, √f, √(xf)), with x floored at 0."""
        x, f = jnp.maximum(state[0], 0.0), state[1]
        root_x, root_f = jnp.sqrt(x), jnp.sqrt(f)
        return jnp.stack([x, f, root_x, root_f, root_x * root_f])

    def policy_space(self, **options: Any) -> PolicySpace:
        """Gaussian with deviation 0.01 on the five features and a constant."""
        return GaussianLinear(
            self.feature_names, self.action_names, **{"covariance": self.policy_deviation**2} | options
        )

    def first_weights(self, space: PolicySpace, configuration: Configuration) -> np.ndarray | None:
        """A stroke that is the same everywhere and never too fast: from random weights no ball may ever reach the hole."""
        if space.describe() != self.policy_space().describe():
            return None
        start = np.zeros(space.num_parameters)
        start[0] = min(SAFE_SPEED / float(configuration["putter_length"]), self.longest)
        return start

    def observation_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The longest putt, with the longest putter and the least friction, bounds how far a ball can go."""
        furthest = (self.longest * self.parameters[0].high) ** 2 / (2.0 * deceleration(0.02))
        return np.array([-furthest, 0.02, -1.0]), np.array([20.0, 0.5, 1.0])

    def _clip(self, swing: Array) -> Array:
        return jnp.clip(swing, self.shortest, self.longest)


AGENT_A2 = frozenset({"x", "sqrt_x"})
"""What the paper's second agent owns besides the constant; the first owns everything."""


def deceleration(friction: Any) -> Any:
    """D = (5/7)·f·g, how fast a rolling ball slows down."""
    return 5.0 / 7.0 * friction * GRAVITY
