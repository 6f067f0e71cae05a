"""Random bits against JAX's own generator, of which they are a faster writing."""

import numpy as np
import pytest

from policyspace.policies.jax_setup import jax, jnp
from policyspace.policies.random_bits import mixed_bits, random_bits, random_words, uniforms


@pytest.mark.parametrize("size", [1, 2, 7, 1000, 4097])
def test_bits_are_those_of_jax(size: int) -> None:
    for seed in (0, 1, 2**40 + 3):
        key = jax.random.key(seed)
        assert np.array_equal(random_bits(key, size), jax.random.bits(key, (size,), jnp.uint64))


def test_uniform_numbers_are_those_of_jax() -> None:
    key = jax.random.key(5)
    assert np.array_equal(uniforms(key, (3, 501)), jax.random.uniform(key, (3, 501), jnp.float64))


def test_many_keys_at_once_give_what_each_gives() -> None:
    keys = jax.random.split(jax.random.key(1), 4)
    together = jax.vmap(lambda key: random_bits(key, 9))(keys)
    assert np.array_equal(together, np.stack([random_bits(key, 9) for key in keys]))


def test_words_are_the_halves_of_the_bits() -> None:
    key = jax.random.key(2)
    words, bits = np.asarray(random_words(key, (3, 3))), np.asarray(random_bits(key, 5))
    assert words.dtype == np.uint32
    assert np.array_equal(words.ravel(), np.concatenate([bits >> 32, bits & 0xFFFFFFFF])[:9])


def test_keys_of_another_generator_do() -> None:
    first, again, other = (uniforms(jax.random.key(seed, impl="rbg"), (4000,)) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert abs(float(jnp.mean(first)) - 0.5) < 5 / np.sqrt(12 * 4000)


def test_mixed_bits_are_the_published_sequence_from_where_the_key_starts() -> None:
    """SplitMix64 in plain integers; its first numbers from 1234567 are those that its authors' code is known to give."""

    def sequence(state: int, count: int) -> list[int]:
        found, all_bits = [], 2**64 - 1
        for _ in range(count):
            z = state
            z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & all_bits
            z = ((z ^ z >> 27) * 0x94D049BB133111EB) & all_bits
            found.append(z ^ z >> 31)
            state = (state + 0x9E3779B97F4A7C15) & all_bits
        return found

    # The authors' code steps before it mixes.
    assert sequence((1234567 + 0x9E3779B97F4A7C15) % 2**64, 2) == [6457827717110365317, 3203168211198807973]
    key = jax.random.key(8)
    assert mixed_bits(key, 7).tolist() == sequence(int(random_bits(key, 1)[0]), 7)


def test_mixed_bits_of_many_keys_are_fair_and_independent() -> None:
    keys = jax.random.split(jax.random.key(5), 4000)
    drawn = np.asarray(jax.vmap(lambda key: mixed_bits(key, 2))(keys))
    ones = (drawn[..., None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)).astype(float)
    signs = 2 * ones.reshape(len(keys), 128) - 1
    between = signs.T @ signs / np.sqrt(len(keys))  # Normal numbers, but for the diagonal
    assert np.abs(signs.sum(axis=0)).max() < 5 * np.sqrt(len(keys))
    assert np.abs(between - np.diag(np.diag(between))).max() < 6
    assert np.abs((signs[1:] * signs[:-1]).sum(axis=0)).max() < 5 * np.sqrt(len(keys))
