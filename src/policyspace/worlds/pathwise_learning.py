"""How agents of the continuous grid world learn well: by gradients through the world itself, confirmed by true returns.

The world's moves are smooth in the actions, so the return of an episode with given starts and noise has a derivative in θ,
far less noisy than a score. Only an episode's end is not smooth: it is blurred at first and sharpened later. This uses the
simulator's derivatives, which an agent in a real world would not have; it is a way to near-optimal policies, no more.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from policyspace.policies import PolicySpace
from policyspace.policies.jax_setup import jax, jnp
from policyspace.policies.random_numbers import standard_normals
from policyspace.worlds.agents import ADAM
from policyspace.worlds.confmdp import Array, Configuration, Key
from policyspace.worlds.continuous_gridworld import ContinuousGridworld

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
        def step(carry: Any, now: tuple[Key, Annealed]) -> Any:
            (theta, moments), (draw, at) = carry, now
            chosen, noisy = jax.random.split(draw)
            states = starts[:, jax.random.randint(chosen, (BATCH,), 0, starts.shape[1])]
            noise = at.noise * standard_normals(noisy, (HORIZON, 2, BATCH))
            slope = jax.grad(_blurred_return, 2)(world, space, theta, states, noise, at.blur, at.leak)
            ascent, moments = ADAM.update(jnp.where(free & jnp.isfinite(slope), slope, 0.0), moments)
            return (theta + at.rate * jnp.where(free, ascent, 0.0), moments), None

        draws = jax.random.split(key, schedule.rate.shape[0])
        (theta, _), _ = jax.lax.scan(step, (start, ADAM.init(start)), (draws, schedule))
        return theta

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
