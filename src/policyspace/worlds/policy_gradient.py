"""G(PO)MDP: the gradient of the expected return from trajectories, of the same world or of another configuration.

With cumulative scores S_{i,t} = Σ_{j≤t} ∇log π_θ(a_{i,j}|s_{i,j}) and the importance weights w_{i,t} of ω against ω₀
(1 when ω = ω₀), each decision t gives mean_i w_{i,t} S_{i,t} ⊙ (γ^t r_{i,t} − b_t), and the gradient is their sum
(Appendix B). The baseline has the least variance for each step and component, b_t = Σ_i (w S)² γ^t r / Σ_i (w S)².
"""

from typing import Any, NamedTuple

from policyspace.policies.base import ExponentialFamily, PolicySpace
from policyspace.policies.jax_setup import jax, jnp
from policyspace.policies.network import Network
from policyspace.worlds.trajectories import Trajectories

Array = Any  # a JAX array


def policy_gradient(
    space: PolicySpace,
    theta: Array,
    trajectories: Trajectories,
    discount: float,
    log_weights: Array | None = None,
    baseline: bool = True,
) -> Array:
    """∇̂_θ J(θ) [d] from trajectories of π_θ; with `log_weights` [m, T+1] of a new ω, the gradient in that world.

    ∇̂J = (1/m) Σ_i Σ_t w_{i,t} S_{i,t} ⊙ (γ^t r_{i,t} − b_t). For a linear space nothing larger than [m, d] is kept.
    """
    rewards, weights = _decisions(trajectories, discount, log_weights)
    features, actions, mask = (
        jnp.swapaxes(part, 0, 1) for part in (trajectories.features, trajectories.actions, trajectories.mask)
    )

    def step(t: Array, carry: Any) -> Any:
        scores, gradient = carry
        u, phi = score_factors(space, theta, features[t], actions[t], mask[t])
        scores = scores + (u.T[:, None, :] * phi.T[None, :, :]).reshape(scores.shape)
        return scores, gradient + one_decision(
            scores, rewards[:, t], None if weights is None else weights[:, t], baseline
        )

    size = space.num_parameters
    start = (jnp.zeros((size, trajectories.num_episodes)), jnp.zeros(size))
    # When the last episode has ended there are no rewards left; the weighted gradient is differentiated, which needs
    # to know the number of steps.
    last = jnp.max(jnp.sum(mask, axis=0)) if weights is None else mask.shape[0]
    return jax.lax.fori_loop(0, last, step, start)[1] / trajectories.num_episodes


def cumulative_scores(space: PolicySpace, theta: Array, trajectories: Trajectories) -> Array:
    """S_{i,t} = Σ_{j≤t} ∇log π_θ(a_{i,j}|s_{i,j}) [m, T, d]; after an episode's end it stays what it was."""
    left, right = score_factors(space, theta, trajectories.features, trajectories.actions, trajectories.mask)
    scores = left[..., :, None] * right[..., None, :]
    return jnp.cumsum(scores.reshape(*scores.shape[:2], -1), axis=1)


def gradient_from_scores(
    scores: Array, trajectories: Trajectories, discount: float, log_weights: Array | None = None, baseline: bool = True
) -> Array:
    """The same ∇̂J [d] from cumulative scores [m, T, d] at hand: they do not change with ω, only the weights do."""
    rewards, weights = _decisions(trajectories, discount, log_weights)

    def decision(score: Array, reward: Array, weight: Array | None) -> Array:
        return one_decision(score.T, reward, weight, baseline)

    return jnp.sum(jax.vmap(decision, 1)(scores, rewards, weights), axis=0) / scores.shape[0]


class Ended(NamedTuple):
    """What episodes that have ended add to the sums of every later step."""

    scores: Array  # Σ S [d]
    squares: Array  # Σ S² [d]


def one_decision(
    scores: Array, reward: Array, weight: Array | None, baseline: bool, ended: Ended | None = None
) -> Array:
    """Σ_i w S ⊙ (γ^t r − b) [d] at one step t, from scores [d, m]; b = Σ (w S)² γ^t r / Σ (w S)²."""
    weighted = scores if weight is None else scores * weight
    if not baseline:
        return weighted @ reward
    # A constant makes no difference under the baseline: without it, equal rewards give no gradient, not its rounding.
    constant, reward = reward[0], reward - reward[0]
    # XLA adds rows up one number after the other, but multiplies them by a vector several numbers at a time.
    squares, ones = weighted * weighted, jnp.ones_like(reward)
    total, power = weighted @ ones, squares @ ones
    gain, paired = weighted @ reward, squares @ reward
    if ended is not None:  # their reward is 0
        total, power = total + ended.scores, power + ended.squares
        gain, paired = gain - constant * ended.scores, paired - constant * ended.squares
    # A parameter without any score yet has no baseline, and needs none.
    b = jnp.where(power > 0, paired, 0.0) / jnp.where(power > 0, power, 1.0)
    return gain - b * total


def _decisions(trajectories: Trajectories, discount: float, log_weights: Array | None) -> tuple[Array, Array | None]:
    """γ^t r_{i,t} [m, T], and the weight w_{i,t} [m, T] of everything up to the state that step t leads to."""
    rewards = trajectories.rewards * discount ** jnp.arange(trajectories.rewards.shape[1])
    return rewards, None if log_weights is None else jnp.exp(log_weights[:, 1:])


def score_factors(
    space: PolicySpace, theta: Array, features: Array, actions: Array, mask: Array
) -> tuple[Array, Array]:
    """∇log π_θ(a|s) = u ⊗ φ as its two factors […, k] and […, q]; u is 0 after an episode's end.

    A linear policy has u = u(a) − E[u] and φ the design; any other has its whole score as u, and φ = 1.
    """
    theta, features, actions = jnp.asarray(theta), jnp.asarray(features), jnp.asarray(actions)
    if isinstance(space, ExponentialFamily):
        left = space.action_statistic(actions) - space.cumulant_gradient(space.natural(theta, features))
        right = space.design(features)
    else:
        left, right = _score(space, theta, features, actions), jnp.ones((*features.shape[:-1], 1))
    return jnp.where(jnp.asarray(mask)[..., None], left, 0.0), right


def _score(space: PolicySpace, theta: Array, features: Array, actions: Array) -> Array:
    """The score […, d] as the space says it, or by automatic differentiation of its density."""
    if isinstance(space, Network):
        return space.score(theta, features, actions)
    each = jax.grad(space.log_prob)
    for _ in features.shape[:-1]:
        each = jax.vmap(each, (None, 0, 0))
    return each(theta, features, actions)
