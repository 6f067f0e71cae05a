"""The continuous grid world: an agent glides to a goal; the means of their starts can be configured (Appendix C.2)."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np

from policyspace.families.base import PolicySpace
from policyspace.families.gaussian import GaussianLinear
from policyspace.families.jax_backend import jax, jnp, standard_normals
from policyspace.worlds.agents import adam_ascent
from policyspace.worlds.base import Array, Configuration, ConfigurationParameter, Key
from policyspace.worlds.confmdp import ConfMDP

# -- The continuous grid world: an agent glides to a goal; the means of their starts can be configured (Appendix C.2).

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


# -- How agents of the continuous grid world learn well: by gradients through the world itself, confirmed by true returns.

HORIZON = 20  # of training
BATCH = 100  # episodes a step
NUM_STARTS = 4000  # to train on, and as many to confirm on
STEEPEST = 0.3
"""The largest ∂J/∂s_t of one episode: a blurred end far ahead would otherwise drown all other episodes."""


class Annealed(NamedTuple):
    """What changes over the steps of a run: the first and the last value, or all values on a logarithmic scale."""

    rate: Any
    blur: Any  # τ of the end, in units of distance
    noise: Any = (0.2, 0.02)
    leak: Any = (0.3, 0.001)  # of the gradient through a clip that holds


RUNS = (
    Annealed((0.04, 0.004), (1.0, 0.05)),
    Annealed((0.04, 0.004), (0.3, 0.02)),
    Annealed((0.1, 0.01), (0.3, 0.02)),
)
"""Three ways from θ = 0, of which the best is kept: which one that is depends on the agent."""
RUN_STEPS, STAGE_STEPS, NUM_STAGES = 300, 100, 5
FIRST_RATE, LEAST_RATE = 0.1, 0.005


def learn_pathwise(
    world: ContinuousGridworld, space: PolicySpace, free: np.ndarray, configuration: Configuration, key: Key
) -> tuple[np.ndarray, np.ndarray]:
    """θ that climbs J_ω inside Θ_I, and its true return on confirming starts after each phase that was kept.

    Three annealed runs; then short stages at the policy's own noise, each kept only if the true return has risen.
    """
    keys = jax.random.split(key, 4)
    train, confirm = (_starts(world, configuration, k) for k in keys[:2])
    mask, zero = jnp.asarray(free), jnp.asarray(np.where(free, 0.0, space.fixed))
    schedules = _schedules(RUNS, RUN_STEPS)
    found = _runs(world, space, zero, mask, train, jax.random.split(keys[2], len(RUNS)), schedules)
    values = np.asarray(_true_returns(world, space, found, confirm, keys[3]))
    theta, value, rate = found[int(np.argmax(values))], float(values.max()), FIRST_RATE
    curve = [float(_true_returns(world, space, zero[None], confirm, keys[3])[0]), value]
    for stage in range(NUM_STAGES):
        annealed = Annealed((rate, rate / 3), (0.1, 0.05), (world.policy_deviation,) * 2, (0.001, 0.001))
        draw = jax.random.fold_in(keys[2], stage)[None]
        tried = _runs(world, space, theta, mask, train, draw, _schedules((annealed,), STAGE_STEPS))
        after = float(_true_returns(world, space, tried, confirm, keys[3])[0])
        if after > value:
            theta, value, rate = tried[0], after, 1.2 * rate
            curve.append(value)
        else:
            rate = rate / 2
        if rate < LEAST_RATE:
            break
    return np.asarray(theta), np.array(curve)


def _schedules(runs: tuple[Annealed, ...], num_steps: int) -> Annealed:
    """The values at every step [runs, steps]."""
    columns = zip(*runs, strict=True)
    return Annealed(*(np.array([np.geomspace(first, last, num_steps) for first, last in ends]) for ends in columns))


@partial(jax.jit, static_argnums=0)
def _starts(world: ContinuousGridworld, configuration: Configuration, key: Key) -> Array:
    """Many s_0 ~ μ_ω, the samples last [4, m]."""
    return jax.vmap(world.initial, (0, None), out_axes=-1)(jax.random.split(key, NUM_STARTS), configuration)


@partial(jax.jit, static_argnums=(0, 1))
def _runs(
    world: ContinuousGridworld, space: PolicySpace, start: Array, free: Array, starts: Array, keys: Key, schedules: Any
) -> Array:
    """Adam ascent of the blurred return from `start`, one run a key [runs, d]."""

    def run(key: Key, schedule: Annealed) -> Array:
        def slope(theta: Array, now: tuple[Key, Annealed]) -> tuple[Array, None]:
            draw, at = now
            chosen, noisy = jax.random.split(draw)
            states = starts[:, jax.random.randint(chosen, (BATCH,), 0, starts.shape[1])]
            noise = at.noise * standard_normals(noisy, (HORIZON, 2, BATCH))
            gradient = jax.grad(_blurred_return, 2)(world, space, theta, states, noise, at.blur, at.leak)
            return jnp.where(free & jnp.isfinite(gradient), gradient, 0.0), None

        draws = jax.random.split(key, schedule.rate.shape[0])
        return adam_ascent(slope, start, schedule.rate, (draws, schedule))[0]

    return jax.vmap(run)(keys, schedules)


def _blurred_return(
    world: ContinuousGridworld, space: PolicySpace, theta: Array, states: Array, noise: Array, blur: Array, leak: Array
) -> Array:
    """The mean of −Σ_t γ^t p_{t+1} over episodes, p the chance to be still under way when ends are blurred by τ."""
    half, goal = world.half_width, states[2:]
    weights_of_features = theta.reshape(2, -1)

    def step(carry: Any, now: tuple[Array, Array]) -> Any:
        (position, alive, total), (noise_now, weight) = carry, now
        position = _gentle(position)
        features = world.features(jnp.concatenate([position, goal]))
        action = weights_of_features @ features + noise_now
        moved = _leaky(position + _leaky(action, 1.0, leak), half, leak)
        z = (jnp.sqrt(jnp.sum((moved - goal) ** 2, axis=0) + 1e-12) - world.radius) / blur
        alive = alive * 0.5 * (1.0 + z / jnp.sqrt(1.0 + z**2))
        return (moved, alive, total - weight * alive), None

    weights = world.discount ** jnp.arange(noise.shape[0])
    nothing = jnp.zeros(states.shape[1])
    (_, _, total), _ = jax.lax.scan(step, (states[:2], nothing + 1.0, nothing), (noise, weights))
    return jnp.mean(total)


def _leaky(value: Array, bound: float, leak: Array) -> Array:
    """Clipped to ±bound, with a part of the gradient where the clip holds."""
    outside = jnp.where(jnp.abs(value) > bound, leak, 0.0)
    return jnp.clip(value, -bound, bound) + outside * (value - jax.lax.stop_gradient(value))


def _same(position: Array) -> Array:
    """The same position, whose gradient is bounded for each episode."""
    return position


def _bounded(_: None, slope: Array) -> tuple[Array]:
    size = slope.shape[-1] * jnp.sqrt(jnp.sum(slope**2, axis=0))  # the mean over episodes divided by their number
    return (slope * jnp.minimum(1.0, STEEPEST / jnp.maximum(size, 1e-30)),)


_gentle = jax.custom_vjp(_same)
_gentle.defvjp(lambda position: (position, None), _bounded)


@partial(jax.jit, static_argnums=(0, 1))
def _true_returns(world: ContinuousGridworld, space: PolicySpace, thetas: Array, starts: Array, key: Key) -> Array:
    """The mean discounted return of each policy, all from the same starts with the same noise [policies]."""

    def value(theta: Array) -> Array:
        def under_way(carry: Any) -> Array:
            return (carry[0] < world.horizon) & carry[2].any()

        def step(carry: Any) -> Any:
            t, states, alive, total = carry
            noise = world.policy_deviation * standard_normals(jax.random.fold_in(key, t), (2, starts.shape[1]))
            action = theta.reshape(2, -1) @ world.features(states) + noise
            moved = world.move(jnp.zeros(0), states, action, {})
            alive = alive & ~world.terminal(moved)
            return t + 1, moved, alive, total - world.discount**t * jnp.mean(alive)

        first = (0, starts, jnp.ones(starts.shape[1], bool), jnp.zeros(()))
        return jax.lax.while_loop(under_way, step, first)[3]

    return jax.lax.map(value, thetas)
