"""What a configuration is worth: the paper's C_I(ω/ω₀), and the information it would bring."""

from typing import NamedTuple

from policyspace.policies.base import PolicySpace
from policyspace.policies.jax_setup import jax, jnp
from policyspace.worlds.confmdp import Array, Configuration, ConfMDP
from policyspace.worlds.importance import effective_sample_size, largest_weight, log_weights, renyi2
from policyspace.worlds.policy_gradient import cumulative_scores
from policyspace.worlds.trajectories import Trajectories


class Terms(NamedTuple):
    """The two terms of an objective, and how far the data at hand can be trusted about it."""

    gain: Array
    cost: Array
    effective_sample_size: Array
    largest_weight: Array


class Logged(NamedTuple):
    """What an objective needs of trajectories of π_θ under ω₀: sums over an episode where only its start is weighted."""

    trajectories: Trajectories
    per_step: Array  # [m, T or 1, …], what each step adds


def weights_of(world: ConfMDP, trajectories: Trajectories, configuration: Configuration) -> tuple[Array, Array]:
    """log w of whole trajectories [m], and of everything up to s_{t+1} [m, T], or [m, 1] if only starts are configured."""
    if world.configures_transitions:
        cumulative = log_weights(world, trajectories, configuration)
        return cumulative[:, -1], cumulative[:, 1:]
    first = jax.tree.map(lambda leaf: leaf[:, 0], trajectories.states)
    both = jax.tree.map(lambda a, b: jnp.stack([a, b]), configuration, trajectories.configuration)
    density = jax.vmap(jax.vmap(world.log_initial, (0, None)), (None, 0))(first, both)
    whole = density[0] - density[1]
    return whole, whole[:, None]


def gradient_terms(
    world: ConfMDP, space: PolicySpace, theta: Array, trajectories: Trajectories, indices: Array
) -> Logged:
    """γ^t r_t Σ_{j≤t} ∇_I log π_θ(a_j|s_j) of every step: the G(PO)MDP gradient is their weighted mean (Appendix B)."""
    scores = cumulative_scores(space, theta, trajectories)[:, :, indices]
    discounted = trajectories.rewards * world.discount ** jnp.arange(trajectories.rewards.shape[1])
    return _logged(world, trajectories, scores * discounted[..., None])


def paper_objective(
    world: ConfMDP, logged: Logged, configuration: Configuration, penalty: Array
) -> tuple[Array, Terms]:
    """C_I(ω/ω₀) = ‖∇̂J_{ω/ω₀}(θ̂)|_I‖² − ζ √(d̂₂(ω‖ω₀)/m) (Equation 11), I the tested parameters."""
    whole, steps = weights_of(world, logged.trajectories, configuration)
    gradient = jnp.einsum("mt,mtc->c", jnp.exp(steps), logged.per_step) / whole.shape[0]
    gain, cost = jnp.sum(gradient**2), penalty * jnp.sqrt(renyi2(whole) / whole.shape[0])
    return gain - cost, Terms(gain, cost, effective_sample_size(whole), largest_weight(whole))


def information_terms(world: ConfMDP, space: PolicySpace, theta: Array, trajectories: Trajectories) -> Logged:
    """F(θ, s_t) of every step as a root [m, T, k, d], or summed over each episode [m, 1, d, d]: F̂ is a weighted sum."""
    root = space.information_root(theta, jnp.asarray(trajectories.features), jnp.asarray(trajectories.actions))
    root = jnp.where(trajectories.mask[..., None, None], root, 0.0)
    if world.configures_transitions:
        return Logged(trajectories, root)
    return Logged(trajectories, jnp.einsum("mtkd,mtke->mde", root, root)[:, None])


def expected_information(world: ConfMDP, logged: Logged, configuration: Configuration) -> tuple[Array, Array]:
    """E_ω[Σ_t F(θ̂, s_t)] of one episode [d, d] by importance weighting, and the log weights of whole trajectories [m]."""
    trajectories = logged.trajectories
    if not world.configures_transitions:
        whole, _ = weights_of(world, trajectories, configuration)
        return jnp.einsum("m,mde->de", jnp.exp(whole), logged.per_step[:, 0]) / whole.shape[0], whole
    cumulative = log_weights(world, trajectories, configuration)
    # The state at step t depends on ω through the start and the first t transitions.
    weight = jnp.exp(cumulative[:, :-1])
    information = jnp.einsum("mt,mtkd,mtke->de", weight, logged.per_step, logged.per_step, optimize=True)
    return information / weight.shape[0], cumulative[:, -1]


def log_det_gain(information: Array, units: Array, others: Array, num_episodes: Array) -> Array:
    """log det of what m episodes tell about the tested units beyond the others, log det(mF + 1) − log det(mF + 1)|others.

    `units` and `others` are masks [d]; the unit matrix is the information of a guess that weights are of order one.
    """
    matrix = num_episodes * information + jnp.eye(len(units))
    return _log_det(matrix, units | others) - _log_det(matrix, others)


def noncentrality_gain(information: Array, theta: Array, masks: Array, num_episodes: Array) -> Array:
    """Σ_u log(1 + n·θ̂_uᵀ([F⁻¹]_uu)⁻¹θ̂_u): how far m episodes move the statistic of each unit (masks [units, d])."""
    inverse = jnp.linalg.inv(num_episodes * information + jnp.eye(len(theta)))

    def one(mask: Array) -> Array:
        block = jnp.where(mask[:, None] & mask[None, :], inverse, jnp.eye(len(theta)))
        effect = jnp.where(mask, theta, 0.0)
        return jnp.log1p(effect @ jnp.linalg.solve(block, effect))

    return jnp.sum(jax.vmap(one)(masks))


def _log_det(matrix: Array, chosen: Array) -> Array:
    """log det of the rows and columns chosen by a mask."""
    return jnp.linalg.slogdet(jnp.where(chosen[:, None] & chosen[None, :], matrix, jnp.eye(len(chosen))))[1]


def _logged(world: ConfMDP, trajectories: Trajectories, per_step: Array) -> Logged:
    return Logged(trajectories, per_step if world.configures_transitions else per_step.sum(axis=1, keepdims=True))
