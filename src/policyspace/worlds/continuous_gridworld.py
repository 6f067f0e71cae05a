"""The continuous grid world: an agent glides to a goal; the means of their starts can be configured (Appendix C.2)."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from policyspace.policies import GaussianLinear, PolicySpace
from policyspace.policies.jax_setup import jax, jnp
from policyspace.worlds.configuration_parameters import ConfigurationParameter
from policyspace.worlds.confmdp import Array, Configuration, ConfMDP, Key

COORDINATES = ("x", "y", "goal_x", "goal_y")


@final
@dataclass(frozen=True)
class ContinuousGridworld(ConfMDP):
    """States (x, y, x_g, y_g) in a box; an action, clipped to [−1, 1]², moves the agent; −1 a step until the goal.

    μ_ω is Normal with mean ω, truncated to the box and to starts outside the goal's disc. The logged action is the
    one before clipping.
    """

    half_width: float = 2.5
    radius: float = 0.75  # of the goal's disc
    variances: tuple[float, float] = (0.2, 0.4)  # of the agent's and of the goal's coordinates
    policy_deviation: float = 0.02
    horizon: int = 50
    discount: float = 0.98

    name = "continuous-gridworld"
    configures_transitions = False
    action_names = ("right", "up")
    num_normals = 0
    action_bounds = (-1.0, 1.0)

    @property
    def centres(self) -> np.ndarray:
        """The centres of the radial features [25, 2]."""
        line = np.arange(-2.0, 3.0)
        return np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Radial features of the agent's position, then of the goal's, one a centre (i, j)."""
        return tuple(f"{who}_rbf_{i}_{j}" for who in ("agent", "goal") for i in range(5) for j in range(5))

    @property
    def parameters(self) -> tuple[ConfigurationParameter, ...]:
        """The means of the four Normals."""
        what = ("agent's x", "agent's y", "goal's x", "goal's y")
        return tuple(
            ConfigurationParameter(
                name, (), -self.half_width, self.half_width, start, f"mean of the {text} at the start"
            )
            for name, text, start in zip(COORDINATES, what, (-1.0, -1.0, 1.0, 1.0), strict=True)
        )

    def random_configuration(self, key: Key) -> Configuration:
        """Uniform on [−2, 2]⁴."""
        means = jax.random.uniform(key, (4,), minval=-2.0, maxval=2.0)
        return dict(zip(COORDINATES, means, strict=True))

    def initial(self, key: Key, configuration: Configuration) -> Array:
        """Normals truncated to the box, drawn again while the start lies in the goal's disc."""
        mean, deviation = _means(configuration), self._deviations()
        low, high = (-self.half_width - mean) / deviation, (self.half_width - mean) / deviation

        def draw(carry: tuple[Key, Array]) -> tuple[Key, Array]:
            key, draw_key = jax.random.split(carry[0])
            return key, mean + deviation * jax.random.truncated_normal(draw_key, low, high, (4,), jnp.float64)

        return jax.lax.while_loop(lambda carry: self.terminal(carry[1]), draw, draw((key, mean)))[1]

    def move(self, noise: Array, state: Array, action: Array, configuration: Configuration) -> Array:
        """The agent moves by the clipped action and stays in the box; the goal stays."""
        moved = jnp.clip(state[:2] + jnp.clip(action, -1.0, 1.0), -self.half_width, self.half_width)
        return jnp.concatenate([moved, state[2:]])

    def reward(self, state: Array, action: Array, next_state: Array) -> Array:
        """−1, but 0 on the step that reaches the goal."""
        return jnp.where(self.terminal(next_state), 0.0, -1.0)

    def terminal(self, state: Array) -> Array:
        """The agent is in the goal's disc."""
        return (state[0] - state[2]) ** 2 + (state[1] - state[3]) ** 2 <= self.radius**2

    def log_initial(self, state: Array, configuration: Configuration) -> Array:
        """Σ_i log N(s_i; ω_i, σ_i²) − log Z(ω), with the constants that are free of ω left out."""
        z = (state - _means(configuration)) / self._deviations()
        return -0.5 * jnp.sum(z**2) - jnp.log(self.normaliser(configuration))

    def log_transition(self, state: Array, action: Array, next_state: Array, configuration: Configuration) -> Array:
        """Moves are not configurable."""
        return jnp.zeros(())

    def features(self, state: Array) -> Array:
        """exp(−‖p − c‖²) at the agent and at the goal [50]."""
        # A product of one factor an axis: twenty exponentials instead of fifty.
        levels = np.arange(-2.0, 3.0).reshape(5, *[1] * (state.ndim - 1))
        factors = jnp.exp(-((state[:, None] - levels) ** 2))
        return (factors[0::2, :, None] * factors[1::2, None, :]).reshape(50, *state.shape[1:])

    def policy_space(self, **options: Any) -> PolicySpace:
        """Gaussian with covariance 0.02² I on the 50 features, without a constant."""
        settings = {"covariance": self.policy_deviation**2, "intercept": False} | options
        return GaussianLinear(self.feature_names, self.action_names, **settings)

    def observation_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Every coordinate lies in the box."""
        return np.full(4, -self.half_width), np.full(4, self.half_width)

    def normaliser(self, configuration: Configuration) -> Array:
        """Z(ω) = P(both in the box) − P(both in the box, the start in the disc), for independent Normals.

        The second is ∬_{|d| ≤ r} g_x(d_x) g_y(d_y) dd, where g(d) is the density, on the box, of goal − agent = d along
        one axis; it is smooth but for kinks on the axes, so that each quadrant has its own Gauss–Legendre rule in
        polar coordinates.
        """
        mean, deviation = _means(configuration), self._deviations()
        box = jnp.prod(_interval(-self.half_width, self.half_width, mean, deviation))
        dx, dy, weight = _disc_rule(self.radius)
        inside = self._difference_density(dx, mean[0], mean[2]) * self._difference_density(dy, mean[1], mean[3])
        return box - inside @ weight

    def _difference_density(self, d: Array, agent: Array, goal: Array) -> Array:
        """g(d) = N(d; m_g − m_a, σ_a² + σ_g²) P(both in the box | d), the last for the agent's Normal given d."""
        va, vg = self.variances
        total = va + vg
        given = (vg * agent + va * (goal - d)) / total
        low, high = -self.half_width - jnp.minimum(d, 0.0), self.half_width - jnp.maximum(d, 0.0)
        density = jnp.exp(-0.5 * (d - goal + agent) ** 2 / total) / np.sqrt(2 * np.pi * total)
        return density * _interval(low, high, given, np.sqrt(va * vg / total))

    def _deviations(self) -> np.ndarray:
        return np.sqrt(np.repeat(self.variances, 2))


def _means(configuration: Configuration) -> Array:
    return jnp.stack([configuration[name] for name in COORDINATES])


def _interval(low: Array, high: Array, mean: Array, deviation: Any) -> Array:
    """P(low ≤ X ≤ high) for a Normal, without cancellation in the tails."""
    a, b = (low - mean) / deviation, (high - mean) / deviation
    cdf = jax.scipy.special.ndtr
    return jnp.where(a + b < 0, cdf(b) - cdf(a), cdf(-a) - cdf(-b))


def _disc_rule(radius: float, order: int = 16) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points and weights that integrate over a disc, quadrant by quadrant: ∫∫ f(r cos t, r sin t) r dr dt."""
    node, weight = np.polynomial.legendre.leggauss(order)
    unit, weight = (node + 1) / 2, weight / 2
    r = radius * unit[:, None, None]
    angle = np.pi / 2 * (np.arange(4)[:, None] + unit)[None]
    share = r * (radius * weight)[:, None, None] * (np.pi / 2 * weight)
    share = np.broadcast_to(share, (order, 4, order))
    return (r * np.cos(angle)).ravel(), (r * np.sin(angle)).ravel(), share.ravel()
