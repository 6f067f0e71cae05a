"""G(PO)MDP of an agent at work: episodes are simulated and their gradient is summed step by step, nothing is kept.

Most episodes of an agent that has learned are short, and a few last long. When few are left they go on alone: what the
ended ones add to the sums of every later step does not change any more.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

from policyspace.policies import BoltzmannLinear, PolicySpace
from policyspace.policies.jax_setup import jax, jnp
from policyspace.worlds.confmdp import Array, Configuration, ConfMDP, Key
from policyspace.worlds.policy_gradient import Ended, one_decision, score_factors

FEW = 5
"""A fifth of the episodes go on alone: fewer would be worth little, for a step has costs of its own."""


class Played(NamedTuple):
    """Whole episodes of a linear policy, as its gradient needs them; what follows an episode's end is not read."""

    left: Array  # u(a) − E[u] of every step [T, k, m]
    right: Array  # φ(s), the constant included [T, q, m]
    rewards: Array  # [T, m]
    over: Array  # whether the episode ends with the step [T, m]


@runtime_checkable
class Finite(Protocol):
    """A world of so few states that the policy is a table: it plays faster than step by step."""

    def play(
        self, space: BoltzmannLinear, theta: Array, configuration: Configuration, key: Key, num_episodes: int
    ) -> Played:
        """m episodes of π_θ at ω, of the same law as for any world."""


class Running(NamedTuple):
    """Where a batch of episodes stands before step t."""

    t: Array
    states: Any  # a pytree of […, m]; nothing where the episodes are already played
    alive: Array  # [m]
    scores: Array  # S_t of each episode [d, m]
    gradient: Array  # [d], of the steps so far, summed over episodes
    returned: Array  # the discounted rewards so far, summed over episodes


class Happened(NamedTuple):
    """One step of a batch of episodes."""

    left: Array  # the factors of the score, [k, m]
    right: Array  # and [q, m]
    rewards: Array
    states: Any  # that follow
    over: Array


def simulated_gradient(
    world: ConfMDP, space: PolicySpace, theta: Array, configuration: Configuration, key: Key, num_episodes: int
) -> tuple[Array, Array]:
    """∇̂J(θ) [d] with its baseline, as `policy_gradient`, and the mean return, from m fresh episodes of π_θ at ω."""
    if isinstance(world, Finite) and isinstance(space, BoltzmannLinear):
        played = world.play(space, theta, configuration, key, num_episodes)
        return _summed(world, space, num_episodes, (), played, _replayed)

    keys = jax.random.split(key, 1 + 2 * world.horizon)
    steps = keys[1:].reshape(world.horizon, 2)

    def simulated(running: Running, _: None) -> Happened:
        act, happen = steps[running.t, 0], world.chances(steps[running.t, 1], 1, len(running.alive))[0]
        features, actions, rewards, moved, over = world.advance(
            space, theta, configuration, act, happen, running.states
        )
        u, phi = score_factors(space, theta, features.T, actions, running.alive)
        states = jax.tree.map(lambda new, old: jnp.where(running.alive, new, old), moved, running.states)
        return Happened(u.T, phi.T, rewards, states, over)

    states = world.starts(configuration, keys[0], num_episodes)
    return _summed(world, space, num_episodes, states, None, simulated)


def _replayed(running: Running, played: Played) -> Happened:
    left, right, rewards, over = (part[running.t] for part in played)
    return Happened(jnp.where(running.alive, left, 0.0), right, rewards, (), over)


def _summed(
    world: ConfMDP,
    space: PolicySpace,
    num_episodes: int,
    states: Any,
    played: Played | None,
    happens: Callable[[Running, Any], Happened],
) -> tuple[Array, Array]:
    """The gradient and the mean return, summed over the steps of all episodes, then over those of the few left."""
    size, few = space.num_parameters, num_episodes // FEW

    def step(running: Running, played: Played | None, ended: Ended | None) -> Running:
        t, _, alive, scores, gradient, returned = running
        left, right, rewards, states, over = happens(running, played)
        scores = scores + (left[:, None, :] * right[None, :, :]).reshape(scores.shape)
        rewards = jnp.where(alive, world.discount**t * rewards, 0.0)
        gradient = gradient + one_decision(scores, rewards, None, True, ended)
        return Running(t + 1, states, alive & ~over, scores, gradient, returned + jnp.sum(rewards))

    def more_than(number: int) -> Any:
        return lambda running: (running.t < world.horizon) & (jnp.sum(running.alive) > number)

    scores, alive = jnp.zeros((size, num_episodes)), jnp.ones(num_episodes, bool)
    most = Running(jnp.zeros((), int), states, alive, scores, jnp.zeros(size), jnp.zeros(()))
    most = jax.lax.while_loop(more_than(few), lambda running: step(running, played, None), most)
    if few:
        start, rest, ended = _left(most, played, few)
        most = jax.lax.while_loop(more_than(0), lambda running: step(running, rest, ended), start)
    return most.gradient / num_episodes, most.returned / num_episodes


def _left(running: Running, played: Played | None, few: int) -> tuple[Running, Played | None, Ended]:
    """The few that go on, what they have played, and what the others leave behind."""
    chosen = jnp.argsort(~running.alive, stable=True)[:few]
    scores = running.scores[:, chosen]
    squares = running.scores * running.scores
    ended = Ended(
        jnp.sum(running.scores, axis=1) - jnp.sum(scores, axis=1),
        jnp.sum(squares, axis=1) - jnp.sum(scores * scores, axis=1),
    )
    states, rest = jax.tree.map(lambda leaf: leaf[..., chosen], (running.states, played))
    return running._replace(states=states, alive=running.alive[chosen], scores=scores), rest, ended
