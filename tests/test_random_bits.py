"""Random bits against JAX's own generator, of which they are a faster writing."""

import numpy as np
import pytest

from policyspace.jax_setup import jax, jnp
from policyspace.random_bits import random_bits, random_words, uniforms


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
