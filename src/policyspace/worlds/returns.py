"""Returns of many episodes, and nothing else of them: the fastest way to know how well an agent does in a world."""

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from policyspace.errors import InputError
from policyspace.policies import PolicySpace
from policyspace.policies.jax_setup import jax, jnp
from policyspace.worlds.confmdp import Array, Configuration, ConfMDP, Key, State

BLOCK = 5000
"""At most so many episodes are simulated by one thread, one block after the other."""
SLOTS = 512
"""So many of them at a time, few enough to stay in a processor's cache."""
SEGMENT = 4
"""After so many steps, slots whose episodes have ended are given new ones."""


class Returns(NamedTuple):
    """Σ_t γ^t r_t of each episode, and how many steps it lasted, both [m]."""

    returns: np.ndarray
    lengths: np.ndarray


def simulate_returns(
    world: ConfMDP,
    space: PolicySpace,
    theta: Array,
    configuration: Configuration,
    key: Key,
    num_episodes: int,
    discount: float = 1.0,
) -> Returns:
    """The returns of m episodes of π_θ in the world at ω, on all cores; the law is that of `rollout`.

    The same key gives the same answer whatever the number of cores: episodes are cut into blocks by their number alone.
    Not for use inside `jit`; there, only what is used of a `rollout` is computed.
    """
    if num_episodes < 1:
        raise InputError(f"returns need one episode or more, found num_episodes={num_episodes}.")
    omega = {name: np.asarray(value, dtype=np.float64) for name, value in configuration.items()}
    weights, count = np.asarray(theta, dtype=np.float64), -(-num_episodes // BLOCK)
    size = -(-num_episodes // count)

    waiting = deque(range(count))

    def work() -> dict[int, Any]:
        """Takes the next block, until none is left."""
        done = {}
        while waiting:
            try:
                index = waiting.popleft()
            except IndexError:  # another thread was faster
                break
            done[index] = jax.block_until_ready(_compiled(world, space, weights, omega, key, index, size, discount))
        return done

    helping = [_helpers(os.getpid()).submit(work) for _ in range(min(count, os.cpu_count() or 1) - 1)]
    done = work()
    for helper in helping:
        done |= helper.result()
    parts = [done[index] for index in range(count)]
    # All blocks have the same size, so that one compilation serves them: the last episodes may be too many.
    return Returns(*(np.concatenate(part)[:num_episodes] for part in zip(*parts, strict=True)))


@cache
def _helpers(process: int) -> ThreadPoolExecutor:
    """Threads that stay: new ones cost more than short simulations. Those of a forked process are its own."""
    return ThreadPoolExecutor(max((os.cpu_count() or 1) - 1, 1))


class _Slots(NamedTuple):
    """What is known of the episode that each slot plays."""

    episodes: Array  # their numbers; those from m on are none
    rows: Any  # of their states
    alive: Array
    lengths: Array
    returns: Array
    factors: Array  # γ^t


def _block(
    world: ConfMDP,
    space: PolicySpace,
    theta: Array,
    configuration: Configuration,
    key: Key,
    index: Array,
    num_episodes: int,
    discount: Array,
) -> tuple[Array, Array]:
    """The returns and lengths of a block of episodes."""
    key = jax.random.fold_in(key, index)
    if type(world).simulate is not ConfMDP.simulate:  # the world has its own way, faster than any other
        seen = world.simulate(space, theta, configuration, key, num_episodes)
        return seen.rewards @ discount ** jnp.arange(world.horizon), jnp.sum(seen.mask, axis=1)

    start_key, key = jax.random.split(key)
    starts = world.starts(configuration, start_key, num_episodes)
    structure, starts = jax.tree.structure(starts), _rows(starts)

    def fill(slots: _Slots, first: Array) -> _Slots:
        """Slots without a living episode play the next ones, from number `first` on."""
        ended = ~slots.alive
        episodes = jnp.where(ended, first + _counted(ended) - 1, slots.episodes)
        which = jnp.minimum(episodes, num_episodes - 1)
        fresh = jax.tree.map(lambda leaf: leaf.at[..., which].get(mode="promise_in_bounds"), starts)
        return _Slots(
            episodes,
            jax.tree.map(lambda new, old: jnp.where(ended, new, old), fresh, slots.rows),
            episodes < num_episodes,
            *(jnp.where(ended, new, old) for new, old in zip((0, 0.0, 1.0), slots[3:], strict=True)),
        )

    def step(rows: Any, chance: tuple[Key, Array]) -> tuple[Any, tuple[Array, Array]]:
        states = _whole(rows, structure)
        _, _, rewards, moved, ended = world.advance(space, theta, configuration, *chance, states)
        return _rows(moved), (rewards, ended)

    def after(slots: _Slots, rows: Any, rewards: Array, ended: Array) -> _Slots:
        """The slots after a segment, from what its steps brought; those after an episode's end are nobody's."""
        alive, lengths, gained = slots.alive, slots.lengths, jnp.zeros(size)
        for i in range(SEGMENT):
            gained = gained + jnp.where(alive, discount**i * rewards[i], 0.0)
            lengths = lengths + alive.astype(jnp.int32)
            alive = alive & ~ended[i] & (lengths < world.horizon)
        returns = slots.returns + slots.factors * gained
        return _Slots(slots.episodes, rows, alive, lengths, returns, slots.factors * discount**SEGMENT)

    def segment(carry: Any) -> Any:
        turn, slots, first, totals, lengths = carry
        # The chances of a whole segment are drawn at once, which is cheaper than step by step.
        chances = world.chances(keys[turn, 0], SEGMENT, size)
        rows, steps = jax.lax.scan(step, slots.rows, (keys[turn, 1:], chances), unroll=True)
        slots = after(slots, rows, *steps)
        # What is written of a living episode is overwritten later; numbers from m on are dropped.
        totals = totals.at[slots.episodes].set(slots.returns, mode="drop", unique_indices=True)
        lengths = lengths.at[slots.episodes].set(slots.lengths, mode="drop", unique_indices=True)
        return turn + 1, fill(slots, first), first + jnp.sum(~slots.alive, dtype=jnp.int32), totals, lengths

    size = min(SLOTS, num_episodes)
    # While episodes wait every slot plays, and then each plays one at most: there are no more segments than these.
    longest = -(-world.horizon // SEGMENT)
    keys = jax.random.split(key, (num_episodes * longest // size + longest, SEGMENT + 1))
    none = jnp.zeros(size, dtype=bool)
    rows = jax.tree.map(lambda leaf: leaf[..., :size], starts)
    # Numbers of 32 bits where they do, of which a processor handles twice as many at a time.
    count = jnp.zeros(size, jnp.int32)
    slots = fill(_Slots(count, rows, none, count, jnp.zeros(size), jnp.ones(size)), jnp.int32(0))
    carry = (0, slots, jnp.int32(size), jnp.zeros(num_episodes), jnp.zeros(num_episodes, jnp.int32))
    *_, totals, lengths = jax.lax.while_loop(lambda carry: carry[1].alive.any(), segment, carry)
    return totals, lengths


def _counted(ended: Array) -> Array:
    """How many have ended up to each [m]: in rows of 16 by one product, which is faster than to add one by one."""
    rows = jnp.pad(ended, (0, -len(ended) % 16)).astype(jnp.int32).reshape(-1, 16)
    inside = rows @ jnp.triu(jnp.ones((16, 16), jnp.int32))
    before = jnp.cumsum(inside[:, -1], dtype=jnp.int32) - inside[:, -1]
    return (inside + before[:, None]).ravel()[: len(ended)]


def _rows(states: State) -> list[Any]:
    """The rows of each array [k, m] of states: whoever puts them together and takes one out again copies nothing."""
    return [tuple(leaf) if leaf.ndim == 2 else leaf for leaf in jax.tree.leaves(states)]


def _whole(rows: list[Any], structure: Any) -> State:
    """The states from their rows."""
    return jax.tree.unflatten(structure, [jnp.stack(leaf) if isinstance(leaf, tuple) else leaf for leaf in rows])


_compiled = jax.jit(_block, static_argnums=(0, 1, 6))
