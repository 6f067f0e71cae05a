"""G(PO)MDP: the gradient of the expected return, summed step by step while an agent's episodes run; nothing is kept.

With cumulative scores S_{i,t} = Σ_{j≤t} ∇log π_θ(a_{i,j}|s_{i,j}) each step t gives mean_i S_{i,t} ⊙ (γ^t r_{i,t} − b_t),
and the gradient is their sum (Appendix B). The baseline has the least variance for each step and component,
b_t = Σ_i S² γ^t r / Σ_i S².

Most episodes of an agent that has learned are short, and a few last long. When few are left they go on alone: what the
ended ones add to the sums of every later step does not change any more.
"""

from typing import Any, NamedTuple

from policyspace.policies import PolicySpace
from policyspace.policies.jax_setup import jax, jnp
from policyspace.worlds.confmdp import Array, Configuration, ConfMDP, Key, State
from policyspace.worlds.trajectories import Trajectories

FEW = 5
"""A fifth of the episodes go on alone: fewer would be worth little, for a step has costs of its own."""


class Running(NamedTuple):
    """Where a batch of episodes stands before step t."""

    t: Array
    states: State  # along the last axis
    alive: Array  # [m]
    scores: Array  # S_t of each episode [d, m]
    gradient: Array  # [d], of the steps so far, summed over episodes
    total_return: Array  # the discounted rewards so far, summed over episodes


class Ended(NamedTuple):
    """What episodes that have ended add to the sums of every later step."""

    scores: Array  # Σ S [d]
    squares: Array  # Σ S² [d]


def policy_gradient(
    world: ConfMDP, space: PolicySpace, theta: Array, configuration: Configuration, key: Key, num_episodes: int
) -> tuple[Array, Array]:
    """∇̂J(θ) = (1/m) Σ_i Σ_t S_{i,t} ⊙ (γ^t r_{i,t} − b_t) [d] and the mean return, from m fresh episodes of π_θ at ω.

    The episodes are those of `rollout`, but for the chance of the few that go on alone.
    """
    episodes = world.begin(space, theta, configuration, key, num_episodes)
    size, few = space.num_parameters, num_episodes // FEW

    def step(running: Running, chances: Array, ended: Ended | None) -> Running:
        t, states, alive, scores, gradient, total_return = running
        happened = episodes.step(chances[t], states)
        left, right = space.score_factors(theta, happened.features.T, happened.actions)
        left = jnp.where(alive[:, None], left, 0.0)
        scores = scores + (left.T[:, None, :] * right.T[None, :, :]).reshape(scores.shape)
        rewards = jnp.where(alive, world.discount**t * happened.rewards, 0.0)
        gradient = gradient + step_gradient(scores, rewards, ended)
        states = jax.tree.map(lambda new, old: jnp.where(alive, new, old), happened.states, states)
        return Running(t + 1, states, alive & ~happened.ended, scores, gradient, total_return + jnp.sum(rewards))

    def more_than(number: int) -> Any:
        return lambda running: (running.t < world.horizon) & (jnp.sum(running.alive) > number)

    scores, alive = jnp.zeros((size, num_episodes)), jnp.ones(num_episodes, bool)
    running = Running(jnp.zeros((), int), episodes.states, alive, scores, jnp.zeros(size), jnp.zeros(()))
    running = jax.lax.while_loop(more_than(few), lambda running: step(running, episodes.chances, None), running)
    if few:
        running, chances, ended = _few_left(running, episodes.chances, few)
        running = jax.lax.while_loop(more_than(0), lambda running: step(running, chances, ended), running)
    return running.gradient / num_episodes, running.total_return / num_episodes


def step_gradient(scores: Array, rewards: Array, ended: Ended | None) -> Array:
    """Σ_i S ⊙ (γ^t r − b) [d] of one step t, from scores [d, m] and γ^t r [m]; b = Σ S² γ^t r / Σ S²."""
    # A constant makes no difference under the baseline: without it, equal rewards give no gradient, not its rounding.
    constant, rewards = rewards[0], rewards - rewards[0]
    # XLA adds rows up one number after the other, but multiplies them by a vector several numbers at a time.
    squares, ones = scores * scores, jnp.ones_like(rewards)
    total, power = scores @ ones, squares @ ones
    gain, paired = scores @ rewards, squares @ rewards
    if ended is not None:  # their reward is 0
        total, power = total + ended.scores, power + ended.squares
        gain, paired = gain - constant * ended.scores, paired - constant * ended.squares
    # A parameter without any score yet has no baseline, and needs none.
    b = jnp.where(power > 0, paired, 0.0) / jnp.where(power > 0, power, 1.0)
    return gain - b * total


def cumulative_scores(space: PolicySpace, theta: Array, trajectories: Trajectories) -> Array:
    """S_{i,t} = Σ_{j≤t} ∇log π_θ(a_{i,j}|s_{i,j}) [m, T, d]; after an episode's end it stays what it was."""
    features, actions, mask = map(jnp.asarray, (trajectories.features, trajectories.actions, trajectories.mask))
    left, right = space.score_factors(jnp.asarray(theta), features, actions)
    scores = jnp.where(mask[..., None], left, 0.0)[..., :, None] * right[..., None, :]
    return jnp.cumsum(scores.reshape(*scores.shape[:2], -1), axis=1)


def _few_left(running: Running, chances: Array, few: int) -> tuple[Running, Array, Ended]:
    """The few episodes that go on, the chances of their steps, and what the others leave behind."""
    kept = jnp.argsort(~running.alive, stable=True)[:few]
    scores = running.scores[:, kept]
    squares = running.scores * running.scores
    ended = Ended(
        jnp.sum(running.scores, axis=1) - jnp.sum(scores, axis=1),
        jnp.sum(squares, axis=1) - jnp.sum(scores * scores, axis=1),
    )
    states = jax.tree.map(lambda leaf: leaf[..., kept], running.states)
    # Keys serve any number of episodes; random bits belong to one each.
    of_all = jnp.issubdtype(chances.dtype, jax.dtypes.prng_key)
    remaining = running._replace(states=states, alive=running.alive[kept], scores=scores)
    return remaining, chances if of_all else chances[:, kept], ended
