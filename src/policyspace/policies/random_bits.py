"""Random bits for simulations: JAX's own, bit for bit, but several times as fast on a processor; and cheaper ones."""

from typing import Any

import numpy as np

from policyspace.policies.jax_setup import jax, jnp

Array = Any  # a JAX array
Key = Any  # a JAX random key

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)
# The step and the mixing of SplitMix64.
GOLDEN, FIRST, SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def random_bits(key: Key, size: int) -> Array:
    """Independent bits [size], 64 each, as `jax.random.bits` gives them."""
    half = (size + 1) // 2
    # A loop of two turns: its results are stored, and not computed again wherever one of them is used.
    starts = jnp.arange(2, dtype=jnp.uint32) * half
    return jax.lax.map(lambda start: unstored_bits(key, half, start), starts).ravel()[:size]


def unstored_bits(key: Key, size: int, start: Array = 0) -> Array:
    """The bits from number `start` on, by Threefry-2x32 (Salmon et al., 2011).

    JAX runs the twenty rounds as a loop, which stores every round; written out they stay in registers.
    """
    words = jax.random.key_data(key)
    if words.shape != (2,):  # a key of another generator: let that one make ours
        words = jax.random.bits(key, (2,), jnp.uint32)
    high, low = _threefry(words[0], words[1], jax.lax.iota(jnp.uint32, size) + jnp.uint32(start))
    return high.astype(jnp.uint64) << 32 | low


def mixed_bits(key: Key, size: int) -> Array:
    """Independent bits [size], 64 each, a fifth the cost of the others: SplitMix64 (Steele, Lea and Flood, 2014).

    Threefry draws where a key's sequence starts, one of 2⁶⁴ places: those of two keys hardly ever meet.
    """
    z = unstored_bits(key, 1)[0] + jax.lax.iota(jnp.uint64, size) * GOLDEN
    z = (z ^ z >> 30) * FIRST
    z = (z ^ z >> 27) * SECOND
    return z ^ z >> 31


def random_words(key: Key, shape: tuple[int, ...]) -> Array:
    """Independent bits of a shape, 32 each: the halves of 64."""
    size = int(np.prod(shape))
    pairs = random_bits(key, (size + 1) // 2)
    return jnp.concatenate([(pairs >> 32).astype(jnp.uint32), pairs.astype(jnp.uint32)])[:size].reshape(shape)


def uniforms(key: Key, shape: tuple[int, ...]) -> Array:
    """Independent numbers of a shape, uniform on [0, 1): 52 bits as the fraction of a float64 in [1, 2), less 1."""
    bits = random_bits(key, int(np.prod(shape))) >> 12 | np.float64(1.0).view(np.uint64)
    return jax.lax.bitcast_convert_type(bits, jnp.float64).reshape(shape) - 1.0


def _threefry(first: Array, second: Array, counter: Array) -> tuple[Array, Array]:
    """Two words for each counter: twenty rounds that add, rotate and mix, with the key added after every fourth."""
    keys = (first, second, first ^ second ^ PARITY)
    x, y = jnp.zeros_like(counter) + first, counter + second
    for group in range(5):
        for distance in ROTATIONS[group % 2]:
            x = x + y
            y = x ^ (y << distance | y >> (32 - distance))
        x, y = x + keys[(group + 1) % 3], y + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x, y
