"""Importance weights: trajectories seen under ω₀, read as if they came from ω (Section 5)."""

from functools import partial
from typing import Any

from policyspace.policies.jax_setup import jax, jnp
from policyspace.worlds.confmdp import Array, Configuration, ConfMDP
from policyspace.worlds.trajectories import Trajectories


def log_weights(world: ConfMDP, trajectories: Trajectories, configuration: Configuration) -> Array:
    """The log weight of each episode's start and first t transitions [m, T+1], differentiable in ω.

    log w = log μ_ω(s_0)/μ_{ω₀}(s_0) + Σ_{j<t} log p_ω(s_{j+1}|s_j, a_j)/p_{ω₀}(s_{j+1}|s_j, a_j).
    """
    omega = {name: jnp.asarray(value, dtype=jnp.float64) for name, value in configuration.items()}
    return _log_weights(world, trajectories, omega)


def renyi2(log_weight: Array) -> Array:
    """d̂₂(ω‖ω₀) = (1/m) Σ_i w_{ω/ω₀}(τ_i)², exponentiated 2-Rényi divergence, from log weights [m] or [m, T+1]."""
    weight, scale = _scaled(log_weight)
    return jnp.mean(weight**2) * jnp.exp(2.0 * scale)


def effective_sample_size(log_weight: Array) -> Array:
    """(Σ w)² / Σ w²: how many episodes of ω the weighted ones are worth; 0 when every weight is."""
    weight, _ = _scaled(log_weight)
    squares = jnp.sum(weight**2)
    return jnp.where(squares > 0, jnp.sum(weight) ** 2 / jnp.where(squares > 0, squares, 1.0), 0.0)


def largest_weight(log_weight: Array) -> Array:
    """max_i w_{ω/ω₀}(τ_i): when it is large, a few episodes decide everything."""
    return jnp.exp(jnp.max(_whole(log_weight)))


def _whole(log_weight: Array) -> Array:
    """The log weights of whole trajectories [m]."""
    return log_weight[:, -1] if log_weight.ndim == 2 else log_weight


def _scaled(log_weight: Array) -> tuple[Array, Array]:
    """Weights [m] relative to the largest, which cannot overflow, and its logarithm."""
    whole = _whole(log_weight)
    top = jax.lax.stop_gradient(jnp.max(whole))
    scale = jnp.where(jnp.isfinite(top), top, 0.0)
    return jnp.exp(whole - scale), scale


def _episode(world: ConfMDP, configuration: Configuration, states: Any, actions: Array, mask: Array) -> Array:
    """The terms log μ_ω(s_0) and log p_ω(s_{t+1}|s_t, a_t) of one episode [T+1]; 0 after its end."""
    # Steps after the end borrow the first one, so that no density, and no derivative of one, is asked about them.
    step = jnp.where(mask, jnp.arange(mask.shape[0]), 0)
    before, after = (jax.tree.map(lambda leaf, at=at: leaf[at], states) for at in (step, step + 1))
    moves = jax.vmap(world.log_transition, (0, 0, 0, None))(before, actions[step], after, configuration)
    start = world.log_initial(jax.tree.map(lambda leaf: leaf[0], states), configuration)
    return jnp.concatenate([start[None], jnp.where(mask, moves, 0.0)])


def _ratio(world: ConfMDP, trajectories: Trajectories, configuration: Configuration) -> Array:
    def densities(omega: Configuration) -> Array:
        episode = partial(_episode, world, omega)
        return jax.vmap(episode)(trajectories.states, trajectories.actions, trajectories.mask)

    # Both densities come from one batched call: the same arithmetic, so the weights are exactly 1 at ω₀.
    both = jax.tree.map(lambda *values: jnp.stack(values), configuration, trajectories.configuration)
    new, old = jax.vmap(densities)(both)
    return jnp.cumsum(new - old, axis=1)


_log_weights = jax.jit(_ratio, static_argnums=0)
