"""G(PO)MDP of an agent at work: episodes are simulated and their gradient is summed step by step, nothing is kept.

Most episodes of an agent that has learned are short, and a few last long. When few are left they go on alone: what the
ended ones add to the sums of every later step does not change any more.
"""

from typing import Any, NamedTuple

from policyspace.confmdp import Array, Configuration, ConfMDP, Key
from policyspace.jax_setup import jax, jnp
from policyspace.policies.base import PolicySpace
from policyspace.policy_gradient import Ended, one_decision, score_factors

FEW = 5
"""A fifth of the episodes go on alone: fewer would be worth little, for a step has costs of its own."""


class Running(NamedTuple):
    """Where a batch of episodes stands before step t."""

    t: Array
    states: Any  # a pytree of […, m]
    alive: Array  # [m]
    scores: Array  # S_t of each episode [d, m]
    gradient: Array  # [d], of the steps so far, summed over episodes
    returned: Array  # the discounted rewards so far, summed over episodes


def simulated_gradient(
    world: ConfMDP, space: PolicySpace, theta: Array, configuration: Configuration, key: Key, num_episodes: int
) -> tuple[Array, Array]:
    """∇̂J(θ) [d] with its baseline, as `policy_gradient`, and the mean return, from m fresh episodes of π_θ at ω."""
    keys = jax.random.split(key, 1 + 2 * world.horizon)
    steps = keys[1:].reshape(world.horizon, 2)
    states = world.starts(configuration, keys[0], num_episodes)
    size, zero = space.num_parameters, jnp.zeros(())
    start = Running(
        jnp.zeros((), int), states, jnp.ones(num_episodes, bool), jnp.zeros((size, num_episodes)), jnp.zeros(size), zero
    )
    few = num_episodes // FEW

    def step(running: Running, ended: Ended | None) -> Running:
        t, states, alive, scores, gradient, returned = running
        act, happen = steps[t, 0], world.chances(steps[t, 1], 1, len(alive))[0]
        features, actions, rewards, moved, over = world.advance(space, theta, configuration, act, happen, states)
        u, phi = score_factors(space, theta, features.T, actions, alive)
        scores = scores + (u.T[:, None, :] * phi.T[None, :, :]).reshape(scores.shape)
        rewards = jnp.where(alive, world.discount**t * rewards, 0.0)
        gradient = gradient + one_decision(scores, rewards, None, True, ended)
        states = jax.tree.map(lambda new, old: jnp.where(alive, new, old), moved, states)
        return Running(t + 1, states, alive & ~over, scores, gradient, returned + jnp.sum(rewards))

    def more_than(number: int) -> Any:
        return lambda running: (running.t < world.horizon) & (jnp.sum(running.alive) > number)

    most = jax.lax.while_loop(more_than(few), lambda running: step(running, None), start)
    if few:
        left, ended = _left(most, few)
        most = jax.lax.while_loop(more_than(0), lambda running: step(running, ended), left)
    return most.gradient / num_episodes, most.returned / num_episodes


def _left(running: Running, few: int) -> tuple[Running, Ended]:
    """The few that go on, and what the others leave behind."""
    chosen = jnp.argsort(~running.alive, stable=True)[:few]
    scores = running.scores[:, chosen]
    squares = running.scores * running.scores
    ended = Ended(
        jnp.sum(running.scores, axis=1) - jnp.sum(scores, axis=1),
        jnp.sum(squares, axis=1) - jnp.sum(scores * scores, axis=1),
    )
    states = jax.tree.map(lambda leaf: leaf[..., chosen], running.states)
    return running._replace(states=states, alive=running.alive[chosen], scores=scores), ended
