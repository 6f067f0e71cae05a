"""The grid world solved exactly: with 625 states, every expectation is a finite sum, and so is what agents climb."""

from functools import partial
from typing import Any

import numpy as np

from policyspace.policies import PolicySpace
from policyspace.policies.jax_setup import jax, jnp
from policyspace.worlds.agents import ADAM
from policyspace.worlds.confmdp import Array, Configuration, Key
from policyspace.worlds.gridworld import Gridworld


def start_probabilities(world: Gridworld, configuration: Configuration) -> Array:
    """μ_ω(s) of every state [n⁴]."""
    return jnp.exp(jax.vmap(world.log_initial, (0, None))(jnp.asarray(world.states()), configuration))


def _steps(world: Gridworld, space: PolicySpace, theta: Array) -> tuple[Array, Array, Array]:
    """π_θ(a|s), which state follows, and whether the episode goes on there [n⁴, 4]."""
    successors = jnp.asarray(world.successors())
    goes_on = jnp.where(jnp.asarray(world.on_goal())[successors], 0.0, 1.0)
    return world.action_probabilities(space, theta), successors, goes_on


def expected_return(world: Gridworld, space: PolicySpace, theta: Array, configuration: Configuration) -> Array:
    """J(θ, ω) = Σ_s μ_ω(s) V_T(s), with V_0 = 0 and V_{j+1}(s) = Σ_a π_θ(a|s) 1{s' ≠ goal} (γ V_j(s') − 1).

    Its derivatives in θ and ω, by `jax.grad`, are the exact policy gradient and the exact gradient of a configuration.
    """
    policy, successors, goes_on = _steps(world, space, theta)

    def back_up(value: Array, _: None) -> tuple[Array, None]:
        return jnp.sum(policy * goes_on * (world.discount * value[successors] - 1.0), axis=1), None

    value, _ = jax.lax.scan(back_up, jnp.zeros(world.num_states), None, length=world.horizon)
    return start_probabilities(world, configuration) @ value


def visitation(world: Gridworld, space: PolicySpace, theta: Array, configuration: Configuration) -> Array:
    """P(the episode lasts until t and s_t = s) for every step and state [T, n⁴]."""
    policy, successors, goes_on = _steps(world, space, theta)

    def forward(chance: Array, _: None) -> tuple[Array, Array]:
        flow = chance[:, None] * policy * goes_on
        return jnp.zeros_like(chance).at[successors.ravel()].add(flow.ravel()), chance

    _, chances = jax.lax.scan(forward, start_probabilities(world, configuration), None, length=world.horizon)
    return chances


STAGES = ((8, 50), (3, 50), (1, 200))
"""(policies, steps): of eight random starts the best three go on, then the best one."""
RATES = (0.3, 0.05)
"""Adam's rate at the first step and at the last."""


def learn_exactly(
    world: Gridworld, space: PolicySpace, free: np.ndarray, configuration: Configuration, key: Key
) -> tuple[np.ndarray, np.ndarray]:
    """θ that climbs the exact J_ω inside Θ_I from several starts N(0, 1), and J before each of its steps.

    An agent in a real world has no exact gradient; this is a way to near-optimal policies, no more.
    """
    count, last = STAGES[0][0], sum(steps for _, steps in STAGES)
    noise = np.asarray(jax.random.normal(key, (count, space.num_parameters)))
    thetas, done, curves = np.where(free, noise, space.fixed), 0, np.zeros((count, 0))
    rates = np.geomspace(*RATES, last)
    for count, steps in STAGES:
        found = _climb(world, space, thetas[:count], jnp.asarray(free), configuration, rates[done : done + steps])
        climbed, curve = (np.asarray(part) for part in found)
        best = np.argsort(-curve[:, -1], kind="stable")
        thetas, curves, done = climbed[best], np.concatenate([curves[:count], curve], axis=1)[best], done + steps
    return thetas[0], curves[0]


@partial(jax.jit, static_argnums=(0, 1))
def _climb(
    world: Gridworld, space: PolicySpace, thetas: Array, free: Array, configuration: Configuration, rates: Array
) -> tuple[Array, Array]:
    """Adam ascent of J from each θ: where it leads [starts, d], and J before every step [starts, steps]."""
    value_and_slope = jax.value_and_grad(lambda theta: expected_return(world, space, theta, configuration))

    def step(carry: Any, rate: Array) -> Any:
        theta, moments = carry
        value, slope = value_and_slope(theta)
        ascent, moments = ADAM.update(jnp.where(free, slope, 0.0), moments)
        return (theta + rate * jnp.where(free, ascent, 0.0), moments), value

    def one(theta: Array) -> tuple[Array, Array]:
        (theta, _), curve = jax.lax.scan(step, (theta, ADAM.init(theta)), rates)
        return theta, curve

    return jax.lax.map(one, jnp.asarray(thetas))
