"""Configurable MDPs with densities in JAX: rollouts and importance weights."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from policyspace.data.validation import explain_arguments
from policyspace.errors import InputError
from policyspace.families.base import PolicySpace
from policyspace.families.jax_backend import jax, jnp, standard_normals
from policyspace.runtime import check_limit
from policyspace.worlds.base import Array, Configurable, Configuration, Key, Trajectories, checked_configuration

# -- Configurable Markov decision processes: what a world must say, and how agents are run in it (Definition 2.1).

State = Any  # an array or a pytree of arrays


class Transition(NamedTuple):
    """One step of many episodes, which stand along the last axis: each number of a state is then contiguous."""

    features: Array  # φ(s) [q, m]
    actions: Array  # [m] codes or [m, k]
    rewards: Array  # [m]
    states: State  # s'
    ended: Array  # [m], whether s' ends the episode


class Episodes(NamedTuple):
    """Episodes before their first step, and how a step is made."""

    states: State  # s_0 of each, along the last axis
    chances: Array  # what each step draws from: two keys [T, 2], or random bits of each episode [T, m]
    step: Callable[[Array, State], Transition]  # from the chances of a step and the states before it


class ConfMDP(Configurable):
    """A family of worlds (S, A, R, γ, μ_ω, p_ω), one for each configuration ω.

    Methods are pure JAX functions of one sample; callers batch them with `vmap` and differentiate them in ω. Rewards
    and ends do not depend on ω: where an outcome does, the state carries it. A world is hashable and never changes.

    Examples
    --------
    >>> import policyspace
    >>> world = policyspace.make_world("gridworld")
    >>> isinstance(world, policyspace.ConfMDP), world.horizon, world.discount
    (True, 50, 0.98)
    """

    @property
    @abstractmethod
    def horizon(self) -> int:
        """The largest number of steps T of an episode."""

    @property
    @abstractmethod
    def discount(self) -> float:
        """γ."""

    @property
    def configures_transitions(self) -> bool:
        """Whether p_ω depends on ω; where only μ_ω does, weights come from the first state alone."""
        return True

    @abstractmethod
    def initial(self, key: Key, configuration: Configuration) -> State:
        """Draw s_0 ~ μ_ω."""

    def transition(self, key: Key, state: State, action: Array, configuration: Configuration) -> State:
        """Draw s' ~ p_ω(·|s, a): `move` with Normal numbers, or what the world itself says where it needs other chances."""
        if self.num_normals is None:
            raise InputError(f"the world '{self.name}' does not say how it moves: give it a method `transition`.")
        return self.move(jax.random.normal(key, (self.num_normals,), jnp.float64), state, action, configuration)

    @property
    def num_normals(self) -> int | None:
        """How many Normal numbers a transition needs; None if it draws from its key as it likes, the usual case.

        A world that says a number is simulated several times as fast. It has a method `move`, of which its `transition`
        is made, and `move`, `reward`, `terminal` and `features` then also take many samples at once, along the last axis.
        """
        return None

    def move(self, noise: Array, state: State, action: Array, configuration: Configuration) -> State:
        """s' as a function of s, a and independent standard Normal numbers [num_normals]; see there."""
        raise InputError(
            f"the world '{self.name}' says how many Normal numbers it needs: give it a method `move`, too."
        )

    @abstractmethod
    def reward(self, state: State, action: Array, next_state: State) -> Array:
        """R(s, a, s')."""

    @abstractmethod
    def terminal(self, state: State) -> Array:
        """Whether an episode that has moved to s ends there."""

    @abstractmethod
    def log_initial(self, state: State, configuration: Configuration) -> Array:
        """The log-density log μ_ω(s), up to terms free of ω."""

    @abstractmethod
    def log_transition(self, state: State, action: Array, next_state: State, configuration: Configuration) -> Array:
        """The log-density log p_ω(s'|s, a), up to terms free of ω; the mass of s' where the law has an atom there."""

    @abstractmethod
    def features(self, state: State) -> Array:
        """φ(s) [q], without the constant."""

    def simulate(
        self, space: PolicySpace, theta: Array, configuration: Configuration, key: Key, num_episodes: int
    ) -> Trajectories:
        """Episodes of π_θ at ω, by the one `rollout`."""
        return rollout(self, space, theta, configuration, key, num_episodes)

    @property
    def true_controls(self) -> frozenset[str]:
        """The features that an agent of this world owns unless told otherwise."""
        return frozenset(self.feature_names)

    def random_controls(self, key: Key) -> frozenset[str]:
        """The features of a random agent: each is owned with probability ½."""
        owned = np.asarray(jax.random.bernoulli(key, 0.5, (len(self.feature_names),)))
        return frozenset(name for name, own in zip(self.feature_names, owned, strict=True) if own)

    def default_configuration(self) -> Configuration:
        """The ω that holds unless another is given."""
        return self.check_configuration({})

    def random_configuration(self, key: Key) -> Configuration:
        """The ω that an experiment starts from: uniform between the bounds, unless the world says otherwise."""
        keys = jax.random.split(key, len(self.parameters))
        return {
            p.name: jax.random.uniform(k, p.shape, minval=p.low, maxval=p.high)
            for p, k in zip(self.parameters, keys, strict=True)
        }

    def uniform_configuration(self, key: Key) -> Configuration:
        """The ω that plays no favourites: the flat one, or uniform between the bounds where there is none."""
        flat = self.flat_configuration()
        return ConfMDP.random_configuration(self, key) if flat is None else flat

    def check_configuration(self, given: Mapping[str, Any]) -> Configuration:
        """ω from what a user gave: names, shapes, finiteness and bounds checked; what is missing has its default."""
        return {name: jnp.asarray(value) for name, value in checked_configuration(self.parameters, given).items()}

    def first_weights(self, space: PolicySpace, configuration: Configuration) -> np.ndarray | None:
        """The θ that agents begin to learn from at ω, where random ones may leave them nothing to learn from."""
        return None

    def observation_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The bounds of the state's numbers, one after the other; infinite unless the world knows better."""
        state = jax.eval_shape(self.initial, jax.random.key(0), self.default_configuration())
        size = sum(leaf.size for leaf in jax.tree.leaves(state))
        return np.full(size, -np.inf), np.full(size, np.inf)

    def begin(
        self, space: PolicySpace, theta: Array, configuration: Configuration, key: Key, num_episodes: int
    ) -> Episodes:
        """m episodes of π_θ at ω before their first step; a world may replace it by something faster of the same law."""
        # One key for the starts and two a step, from one split: each would be compiled, and run, on its own.
        keys = jax.random.split(key, 1 + 2 * self.horizon)
        starts = _each(self.initial, (0, None))(jax.random.split(keys[0], num_episodes), configuration)
        return Episodes(starts, keys[1:].reshape(self.horizon, 2), partial(self._step, space, theta, configuration))

    def _step(
        self, space: PolicySpace, theta: Array, configuration: Configuration, keys: Key, states: State
    ) -> Transition:
        """a ~ π_θ(·|s) from the first key, s' ~ p_ω(·|s, a) from the second."""
        num_episodes = jax.tree.leaves(states)[0].shape[-1]
        free = self.num_normals is None
        over = _each if free else lambda method, _: method
        features = over(self.features, -1)(states)
        actions = space.sample(keys[0], theta, features.T)
        if self.num_normals is None:
            chances = jax.random.split(keys[1], num_episodes)
            moved = _each(self.transition, (0, -1, -1, None))(chances, states, actions.T, configuration)
        else:
            noise = standard_normals(keys[1], (self.num_normals, num_episodes))
            moved = self.move(noise, states, actions.T, configuration)
        rewards = over(self.reward, -1)(states, actions.T, moved)
        return Transition(features, actions, rewards, moved, over(self.terminal, -1)(moved))


def _each(method: Any, in_axes: Any) -> Any:
    return jax.vmap(method, in_axes, out_axes=-1)


def check_simulated(world: ConfMDP, num_episodes: int) -> None:
    """So many episodes must have room: each step keeps its features, action, reward and end."""
    size = 8 * num_episodes * world.horizon * (len(world.feature_names) + 3)
    check_limit("MAX_SIMULATED_BYTES", size, f"the bytes of {num_episodes:.3g} simulated episodes")


@explain_arguments
def rollout(
    world: ConfMDP, space: PolicySpace, theta: Array, configuration: Configuration, key: Key, num_episodes: int
) -> Trajectories:
    """Run m episodes of π_θ in the world at ω, compiled once per world, space and m; may be called inside `jit`.

    τ ~ μ_ω(s_0) Π_t π_θ(a_t|s_t) p_ω(s_{t+1}|s_t, a_t).

    Parameters
    ----------
    world : ConfMDP
        The world.
    space : PolicySpace
        The policies.
    theta : array of shape (d,)
        θ.
    configuration : mapping
        ω, as `world.check_configuration` returns it.
    key : jax.random.key
        What chance is drawn from: the same key, the same episodes.
    num_episodes : int
        m.

    Returns
    -------
    Trajectories
        The episodes.

    Examples
    --------
    >>> import jax, numpy as np
    >>> import policyspace
    >>> world = policyspace.make_world("gridworld")
    >>> space, omega = world.policy_space(), world.default_configuration()
    >>> policyspace.rollout(world, space, np.zeros(space.num_parameters), omega, jax.random.key(0), 5).num_episodes
    5
    """
    check_simulated(world, num_episodes)
    omega = {name: jnp.asarray(value, dtype=jnp.float64) for name, value in configuration.items()}
    return _compiled(world, space, jnp.asarray(theta, dtype=jnp.float64), omega, key, num_episodes)


def _simulate(
    world: ConfMDP, space: PolicySpace, theta: Array, configuration: Configuration, key: Key, num_episodes: int
) -> Trajectories:
    """All episodes side by side inside a `scan` over time."""
    episodes = world.begin(space, theta, configuration, key, num_episodes)

    def step(carry: Any, chances: Array) -> Any:
        states, alive = carry
        happened = episodes.step(chances, states)
        following = jax.tree.map(lambda new, old: jnp.where(alive, new, old), happened.states, states)
        rewards = jnp.where(alive, happened.rewards, 0.0)
        return (following, alive & ~happened.ended), (states, happened.actions, rewards, alive)

    start = (episodes.states, jnp.ones(num_episodes, dtype=bool))
    (last, _), (states, actions, rewards, mask) = jax.lax.scan(step, start, episodes.chances)
    path = jax.tree.map(lambda before, end: jnp.concatenate([before, end[None]]), states, last)
    episodes_first = partial(jnp.moveaxis, source=-1, destination=0)
    states = jax.tree.map(episodes_first, path)
    return Trajectories(
        states=states,
        features=jax.vmap(jax.vmap(world.features))(jax.tree.map(lambda leaf: leaf[:, :-1], states)),
        actions=jnp.swapaxes(actions, 0, 1),
        rewards=rewards.T,
        mask=mask.T,
        configuration=configuration,
    )


_compiled = jax.jit(_simulate, static_argnums=(0, 1, 5))
jax.tree_util.register_dataclass(
    Trajectories,
    data_fields=["states", "features", "actions", "rewards", "mask", "configuration"],
    meta_fields=["notes"],
)


# -- Importance weights: trajectories seen under ω₀, read as if they came from ω (Section 5).


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
