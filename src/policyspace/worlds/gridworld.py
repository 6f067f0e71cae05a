"""The discrete grid world: an agent walks to a goal whose law, and its own start's, can be configured (Section 6.1)."""

from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np

from policyspace.families.base import PolicySpace
from policyspace.families.jax_backend import jax, jnp, random_bits_32
from policyspace.families.softmax import SoftmaxLinear
from policyspace.worlds.agents import adam_ascent
from policyspace.worlds.base import Array, Configuration, ConfigurationParameter, Key
from policyspace.worlds.confmdp import ConfMDP, Episodes, Transition

# -- The discrete grid world: an agent walks to a goal whose law, and its own start's, can be configured (Section 6.1).

COORDINATES = ("row", "col", "goal_row", "goal_col")
MOVES = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])  # up, down, left, right


@final
@dataclass(frozen=True)
class Gridworld(ConfMDP):
    """States (row, col, goal row, goal col) of an n×n grid, μ_ω four independent softmaxes, deterministic moves.

    −1 a step and 0 on the one that reaches the goal, which ends the episode. Starting on the goal does not.
    """

    size: int = 5
    horizon: int = 50
    discount: float = 0.98

    name = "gridworld"
    configures_transitions = False
    action_names = ("up", "down", "left", "right")
    num_normals = 0

    @property
    def num_states(self) -> int:
        """How many states there are, 625 on the paper's grid."""
        return self.size**4

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One-hot of the first n−1 levels of each coordinate; the last level is the constant's."""
        return tuple(f"{name}_{level}" for name in COORDINATES for level in range(self.size - 1))

    @property
    def parameters(self) -> tuple[ConfigurationParameter, ...]:
        """The logits of the four softmaxes; equal ones make the start uniform."""
        what = ("agent's start row", "agent's start column", "goal's row", "goal's column")
        return tuple(
            ConfigurationParameter(name, (self.size,), -10.0, 10.0, 1.0, f"logits of the {text}")
            for name, text in zip(COORDINATES, what, strict=True)
        )

    def random_configuration(self, key: Key) -> Configuration:
        """All logits 1, but one a coordinate, drawn uniformly, is 5."""
        peaks = jax.random.randint(key, (4,), 0, self.size)
        return {name: jnp.ones(self.size).at[peak].set(5.0) for name, peak in zip(COORDINATES, peaks, strict=True)}

    def flat_configuration(self) -> Configuration:
        """Equal logits: every start and every goal is as likely."""
        return self.default_configuration()

    def initial(self, key: Key, configuration: Configuration) -> Array:
        """Four independent draws from the softmaxes of ω."""
        return jax.random.categorical(key, _logits(configuration)).astype(jnp.int32)

    def move(self, noise: Array, state: Array, action: Array, configuration: Configuration) -> Array:
        """One cell up, down, left or right, unless there is a wall; the goal stays."""
        moved = jnp.clip(state[:2] + jnp.asarray(MOVES.T)[:, action], 0, self.size - 1)
        return jnp.concatenate([moved.astype(state.dtype), state[2:]])

    def reward(self, state: Array, action: Array, next_state: Array) -> Array:
        """−1, but 0 on the step that reaches the goal."""
        return jnp.where(self.terminal(next_state), 0.0, -1.0)

    def terminal(self, state: Array) -> Array:
        """The agent is on the goal."""
        return (state[:2] == state[2:]).all(axis=0)

    def log_initial(self, state: Array, configuration: Configuration) -> Array:
        """Σ_i log softmax(ω_i)[s_i]."""
        return jax.nn.log_softmax(_logits(configuration))[jnp.arange(4), state].sum()

    def log_transition(self, state: Array, action: Array, next_state: Array, configuration: Configuration) -> Array:
        """Moves are not configurable."""
        return jnp.zeros(())

    def features(self, state: Array) -> Array:
        """The 4(n−1) indicators."""
        levels = np.arange(self.size - 1).reshape(-1, *[1] * (state.ndim - 1))
        return jnp.where(state[:, None] == levels, 1.0, 0.0).reshape(-1, *state.shape[1:])

    def policy_space(self, **options: Any) -> PolicySpace:
        """Boltzmann with three rows of weights for four actions, on the features and a constant."""
        return SoftmaxLinear(self.feature_names, self.action_names, **options)

    def observation_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Every coordinate lies in 0…n−1."""
        return np.zeros(4), np.full(4, self.size - 1.0)

    def begin(
        self, space: PolicySpace, theta: Array, configuration: Configuration, key: Key, num_episodes: int
    ) -> Episodes:
        """The same law as for any world, but π_θ is looked up in a table of its values on all states."""
        start_key, key = jax.random.split(key)
        levels_below = jnp.cumsum(jax.nn.softmax(_logits(configuration)), axis=1)
        starts = _invert(random_bits_32(start_key, (num_episodes, 4)), levels_below.T[:-1]).T
        actions_below = jnp.cumsum(self.action_probabilities(space, theta), axis=1).T[:-1]

        def step(words: Array, states: Array) -> Transition:
            index = self.state_index(states.T)
            actions = _invert(words, [row.at[index].get(mode="promise_in_bounds") for row in actions_below])
            moved = self.move(jnp.zeros(0), states, actions, configuration)
            rewards = self.reward(states, actions, moved)
            return Transition(self.features(states), actions, rewards, moved, self.terminal(moved))

        # All the chance of the episodes is drawn at once, which is cheaper than step by step.
        return Episodes(starts, random_bits_32(key, (self.horizon, num_episodes)), step)

    def states(self) -> np.ndarray:
        """All states [n⁴, 4], in the order of `state_index`."""
        return np.stack(np.meshgrid(*[np.arange(self.size)] * 4, indexing="ij"), axis=-1).reshape(-1, 4)

    def state_index(self, states: Array) -> Array:
        """The number of each state: its coordinates as the digits of a number in base n."""
        row, col, goal_row, goal_col = (states[..., i] for i in range(4))
        return ((row * self.size + col) * self.size + goal_row) * self.size + goal_col

    def successors(self) -> np.ndarray:
        """The number of the state that follows each state and action [n⁴, 4]."""
        states = self.states()[:, None, :].repeat(4, axis=1)
        states[..., :2] = np.clip(states[..., :2] + MOVES, 0, self.size - 1)
        return self.state_index(states)

    def on_goal(self) -> np.ndarray:
        """Which states have the agent on the goal [n⁴]."""
        states = self.states()
        return (states[:, :2] == states[:, 2:]).all(axis=1)

    def action_probabilities(self, space: PolicySpace, theta: Array) -> Array:
        """The table π_θ(a|s) [n⁴, 4]."""
        table = self.features(jnp.asarray(self.states().T)).T

        def log_probability(code: Array) -> Array:
            return space.log_prob(theta, table, jnp.broadcast_to(code, (self.num_states,)))

        return jnp.exp(jax.vmap(log_probability, out_axes=1)(jnp.arange(4)))


def _logits(configuration: Configuration) -> Array:
    return jnp.stack([configuration[name] for name in COORDINATES])


def _invert(bits: Array, thresholds: Any) -> Array:
    """Draws by inversion: how many of the cumulated probabilities a uniform number, given by its bits, has passed."""
    uniform = bits * 2.0**-32
    return sum((uniform >= threshold).astype(jnp.int32) for threshold in thresholds)


# -- The grid world solved exactly: with 625 states, every expectation is a finite sum, and so is what agents climb.


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

    def slope(theta: Array, _: None) -> tuple[Array, Array]:
        value, gradient = value_and_slope(theta)
        return jnp.where(free, gradient, 0.0), value

    return jax.lax.map(lambda theta: adam_ascent(slope, theta, rates), jnp.asarray(thetas))
