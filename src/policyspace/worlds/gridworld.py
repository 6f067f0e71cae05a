"""The discrete grid world: an agent walks to a goal whose law, and its own start's, can be configured (Section 6.1)."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from policyspace.policies import BoltzmannLinear, PolicySpace
from policyspace.policies.jax_setup import jax, jnp
from policyspace.policies.random_bits import random_words
from policyspace.worlds.configuration_parameters import ConfigurationParameter
from policyspace.worlds.confmdp import Array, Configuration, ConfMDP, Key
from policyspace.worlds.simulated_gradient import Played
from policyspace.worlds.trajectories import Trajectories

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

    def uniform_configuration(self, key: Key) -> Configuration:
        """Equal logits: every start and every goal is as likely."""
        return self.default_configuration()

    def initial(self, key: Key, configuration: Configuration) -> Array:
        """Four independent draws from the softmaxes of ω."""
        return jax.random.categorical(key, _logits(configuration)).astype(jnp.int32)

    def transition(self, key: Key, state: Array, action: Array, configuration: Configuration) -> Array:
        """One cell up, down, left or right, unless there is a wall; the goal stays."""
        moved = jnp.clip(state[:2] + jnp.asarray(MOVES)[action], 0, self.size - 1)
        return jnp.concatenate([moved.astype(state.dtype), state[2:]])

    def reward(self, state: Array, action: Array, next_state: Array) -> Array:
        """−1, but 0 on the step that reaches the goal."""
        return jnp.where(self.terminal(next_state), 0.0, -1.0)

    def terminal(self, state: Array) -> Array:
        """The agent is on the goal."""
        return (state[:2] == state[2:]).all()

    def log_initial(self, state: Array, configuration: Configuration) -> Array:
        """Σ_i log softmax(ω_i)[s_i]."""
        return jax.nn.log_softmax(_logits(configuration))[jnp.arange(4), state].sum()

    def log_transition(self, state: Array, action: Array, next_state: Array, configuration: Configuration) -> Array:
        """Moves are not configurable."""
        return jnp.zeros(())

    def features(self, state: Array) -> Array:
        """The 4(n−1) indicators."""
        return jnp.where(state[:, None] == jnp.arange(self.size - 1), 1.0, 0.0).ravel()

    def policy_space(self, **options: Any) -> PolicySpace:
        """Boltzmann with three rows of weights for four actions, on the features and a constant."""
        return BoltzmannLinear(self.feature_names, self.action_names, **options)

    def observation_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Every coordinate lies in 0…n−1."""
        return np.zeros(4), np.full(4, self.size - 1.0)

    def simulate(
        self, space: PolicySpace, theta: Array, configuration: Configuration, key: Key, num_episodes: int
    ) -> Trajectories:
        """The same law as for any world, but π_θ is looked up in a table of its values on all states."""
        choices = self.action_probabilities(space, theta)
        last, steps = self._walks(choices, configuration, key, num_episodes)
        index, actions, penalised, mask = (leaf.T for leaf in steps)
        states = self._levels(jnp.concatenate([index, last[:, None]], axis=1), -1)
        features = jax.vmap(jax.vmap(self.features))(states[:, :-1])
        return Trajectories(states, features, actions, -penalised.astype(float), mask, configuration)

    def play(
        self, space: BoltzmannLinear, theta: Array, configuration: Configuration, key: Key, num_episodes: int
    ) -> Played:
        """The same episodes as `simulate`, as the gradient of a linear policy needs them."""
        choices = self.action_probabilities(space, theta)
        _, (index, actions, penalised, _) = self._walks(choices, configuration, key, num_episodes)
        chances = jnp.stack([_look_up(choices[:, a], index) for a in range(3)], axis=1)
        left = (actions[:, None] == jnp.arange(3)[:, None]) - chances
        features = self._levels(index, 1)[:, :, None] == jnp.arange(self.size - 1)[:, None]
        features = features.reshape(len(index), -1, num_episodes)
        constant = jnp.ones((len(index), int(space.intercept), num_episodes), dtype=bool)
        return Played(left, jnp.concatenate([constant, features], axis=1), -penalised.astype(float), ~penalised)

    def _walks(
        self, choices: Array, configuration: Configuration, key: Key, num_episodes: int
    ) -> tuple[Array, tuple[Array, Array, Array, Array]]:
        """Walks by a table of policies: where they end, and of every step state, action, whether it costs, and is taken."""
        start_key, key = jax.random.split(key)
        chances = jnp.cumsum(jax.nn.softmax(_logits(configuration)), axis=1)
        levels = _invert(random_words(start_key, (num_episodes, 4)), chances.T[:-1])
        below = jnp.cumsum(choices, axis=1)
        successors, on_goal = jnp.asarray(self.successors(), jnp.int32).ravel(), jnp.asarray(self.on_goal())

        def step(carry: Any, bits: Array) -> Any:
            index, alive = carry
            action = _invert(bits, [_look_up(below[:, a], index) for a in range(3)])
            following = jnp.where(alive, _look_up(successors, 4 * index + action), index)
            goes_on = alive & ~_look_up(on_goal, following)
            return (following, goes_on), (index, action, goes_on, alive)

        start = (self.state_index(levels).astype(jnp.int32), jnp.ones(num_episodes, dtype=bool))
        # All the chance of the episodes is drawn at once, which is cheaper than step by step.
        (last, _), steps = jax.lax.scan(step, start, random_words(key, (self.horizon, num_episodes)))
        return last, steps

    def _levels(self, index: Array, axis: int) -> Array:
        """The coordinates of states by their numbers, along a new axis."""
        # Whole numbers are divided several times as fast by one known divisor, and without a thought for the sign.
        digits = [jax.lax.rem(jax.lax.div(index, np.int32(self.size**i)), np.int32(self.size)) for i in (3, 2, 1, 0)]
        return jnp.stack(digits, axis)

    def states(self) -> np.ndarray:
        """All states [n⁴, 4], in the order of `state_index`."""
        return np.stack(np.meshgrid(*[np.arange(self.size)] * 4, indexing="ij"), axis=-1).reshape(-1, 4)

    def state_index(self, states: Array) -> Array:
        """The number of each state: its coordinates as the digits of a number in base n."""
        return states @ self.size ** np.arange(3, -1, -1)

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
        table = jax.vmap(self.features)(jnp.asarray(self.states()))
        if isinstance(space, BoltzmannLinear):
            eta = space.natural(theta, table)
            return jax.nn.softmax(jnp.concatenate([eta, jnp.zeros((self.num_states, 1))], axis=1), axis=1)
        codes = jnp.broadcast_to(jnp.arange(4), (self.num_states, 4))
        return jnp.exp(space.log_prob(theta, jnp.repeat(table[:, None], 4, axis=1), codes))


def _logits(configuration: Configuration) -> Array:
    return jnp.stack([configuration[name] for name in COORDINATES])


def _invert(bits: Array, thresholds: Any) -> Array:
    """Draws by inversion: how many of the cumulated probabilities a uniform number, given by its bits, has passed."""
    uniform = bits * 2.0**-32
    return sum((uniform >= threshold).astype(jnp.int32) for threshold in thresholds)


def _look_up(table: Array, index: Array) -> Array:
    return table.at[index].get(mode="promise_in_bounds")
