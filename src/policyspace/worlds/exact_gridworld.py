"""The grid world solved exactly: with 625 states, every expectation is a finite sum."""

from policyspace.policies import PolicySpace
from policyspace.policies.jax_setup import jax, jnp
from policyspace.worlds.confmdp import Array, Configuration
from policyspace.worlds.gridworld import Gridworld


def start_probabilities(world: Gridworld, configuration: Configuration) -> Array:
    """μ_ω(s) of every state [n⁴]."""
    return jnp.exp(jax.vmap(world.log_initial, (0, None))(jnp.asarray(world.states()), configuration))


def expected_return(world: Gridworld, space: PolicySpace, theta: Array, configuration: Configuration) -> Array:
    """J(θ, ω) = Σ_s μ_ω(s) V_T(s), with V_0 = 0 and V_{j+1}(s) = Σ_a π_θ(a|s) 1{s' ≠ goal} (γ V_j(s') − 1).

    Its derivatives in θ and ω, by `jax.grad`, are the exact policy gradient and the exact gradient of a configuration.
    """
    policy = world.action_probabilities(space, theta)
    successors = jnp.asarray(world.successors())
    goes_on = jnp.where(jnp.asarray(world.on_goal())[successors], 0.0, 1.0)

    def back_up(value: Array, _: None) -> tuple[Array, None]:
        return jnp.sum(policy * goes_on * (world.discount * value[successors] - 1.0), axis=1), None

    value, _ = jax.lax.scan(back_up, jnp.zeros(world.num_states), None, length=world.horizon)
    return start_probabilities(world, configuration) @ value


def visitation(world: Gridworld, space: PolicySpace, theta: Array, configuration: Configuration) -> Array:
    """P(the episode lasts until t and s_t = s) for every step and state [T, n⁴]."""
    policy = world.action_probabilities(space, theta)
    successors = jnp.asarray(world.successors())
    goes_on = jnp.where(jnp.asarray(world.on_goal())[successors], 0.0, 1.0)

    def forward(chance: Array, _: None) -> tuple[Array, Array]:
        flow = chance[:, None] * policy * goes_on
        return jnp.zeros_like(chance).at[successors.ravel()].add(flow.ravel()), chance

    _, chances = jax.lax.scan(forward, start_probabilities(world, configuration), None, length=world.horizon)
    return chances
