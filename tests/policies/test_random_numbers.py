"""Random numbers against SciPy's laws and a published sequence; elementary functions against NumPy's long doubles."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from policyspace.families.jax_backend import (
    logarithm,
    mixed_bits,
    normal_pair,
    random_bits_32,
    sine_cosine,
    standard_normals,
)

RNG = np.random.default_rng(0)

# As simulations use them: compiled as a whole, not operation by operation.
normals, mixed = (jax.jit(function, static_argnums=1) for function in (standard_normals, mixed_bits))
slopes_of = jax.jit(jax.jacobian(sine_cosine))


@pytest.mark.parametrize(
    "x",
    [
        RNG.uniform(0, 1, 100_000),
        1.0 + np.concatenate([-(2.0 ** -np.arange(2, 53)), 2.0 ** -np.arange(2, 53)]),
        np.exp(RNG.uniform(-700, 700, 100_000)),
        np.array([1.0, np.sqrt(0.5), np.sqrt(2.0), np.nextafter(np.sqrt(0.5), 0), 2.0**-33, 1e-300, 1e300]),
    ],
)
def test_logarithms(x: np.ndarray) -> None:
    found, true = np.asarray(jax.jit(logarithm)(x)), np.log(x.astype(np.longdouble))
    assert np.all(np.abs(found - true) <= 4.5e-16 * np.abs(true))


@pytest.mark.parametrize("reach", [0.8, 20.0, 1e4, 1e8])
def test_sines_and_cosines(reach: float) -> None:
    angle = np.concatenate([RNG.uniform(-reach, reach, 100_000), [0.0, -reach, reach]])
    sine, cosine = (np.asarray(part) for part in jax.jit(sine_cosine)(angle))
    exact = angle.astype(np.longdouble)
    assert np.max(np.abs(sine - np.sin(exact))) < 3e-16
    assert np.max(np.abs(cosine - np.cos(exact))) < 3e-16


def test_their_derivatives() -> None:
    for angle in (-4.0, 0.3, 2.0, 9.0):
        slopes = slopes_of(angle)
        assert [float(slope) for slope in slopes] == pytest.approx([np.cos(angle), -np.sin(angle)], abs=1e-14)


def test_they_are_independent_standard_normals() -> None:
    """Kolmogorov–Smirnov for each row, for radius and angle of the pair that shares 64 bits, and all moments to 4."""
    x = np.asarray(normals(jax.random.key(3), (2, 200_000)))
    for row in x:
        assert stats.kstest(row, "norm").pvalue > 1e-4
    assert stats.kstest(np.sum(x**2, axis=0), stats.chi2(2).cdf).pvalue > 1e-4
    assert stats.kstest(np.arctan2(*x), stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 1e-4
    size = x.size
    for moment, (wanted, variance) in {1: (0, 1), 2: (1, 2), 3: (0, 15), 4: (3, 96)}.items():
        assert abs(np.mean(x**moment) - wanted) < 5 * np.sqrt(variance / size)
    for powers in ((1, 1), (2, 2), (1, 2)):
        pairs = [row**power - np.mean(row**power) for row, power in zip(x, powers, strict=True)]
        assert abs(np.corrcoef(pairs)[0, 1]) < 5 / np.sqrt(200_000)


@pytest.mark.parametrize("shape", [(), (5, 3), (0, 4)])
def test_every_shape_is_float64_and_the_key_decides(shape: tuple[int, ...]) -> None:
    first, again = (np.asarray(normals(jax.random.key(1), shape)) for _ in range(2))
    assert first.shape == shape
    assert first.dtype == np.float64
    assert np.array_equal(first, again)
    assert np.unique(first).size == first.size


def test_the_pair_is_the_textbooks() -> None:
    """√(−2 log u)·(cos v, sin v) with u and v from the bits, to the last digits."""
    bits = np.random.default_rng(0).integers(0, 2**64, 1000, dtype=np.uint64)
    high, low = (bits >> np.uint64(32)).astype(float), (bits & np.uint64(2**32 - 1)).astype(np.int64)
    within = ((low * 2 + 2**31) % 2**32 - 2**31) / 2**31 * np.pi / 2
    radius = np.sqrt(-2 * np.log((np.where(high < 2**31, high + 2**31, high - 2**31) + 0.5) / 2**32))
    v = within + np.pi * (low >= 2**31)  # the upper half is turned by π
    np.testing.assert_allclose(
        np.asarray(normal_pair(jax.numpy.asarray(bits))), radius * [np.cos(v), np.sin(v)], atol=1e-14
    )


def test_words_are_the_halves_of_the_bits() -> None:
    key = jax.random.key(2)
    words, bits = np.asarray(random_bits_32(key, (3, 3))), np.asarray(jax.random.bits(key, (5,), jnp.uint64))
    assert words.dtype == np.uint32
    assert np.array_equal(words.ravel(), np.concatenate([bits >> 32, bits & 0xFFFFFFFF])[:9])


def test_keys_of_another_generator_do() -> None:
    first, again, other = (normals(jax.random.key(seed, impl="rbg"), (4000,)) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert abs(float(jnp.mean(first))) < 5 / np.sqrt(4000)


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
    assert mixed(key, 7).tolist() == sequence(int(jax.random.bits(key, (1,), jnp.uint64)[0]), 7)


def test_mixed_bits_of_many_keys_are_fair_and_independent() -> None:
    keys = jax.random.split(jax.random.key(5), 4000)
    drawn = np.asarray(jax.vmap(lambda key: mixed(key, 2))(keys))
    ones = (drawn[..., None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)).astype(float)
    signs = 2 * ones.reshape(len(keys), 128) - 1
    between = signs.T @ signs / np.sqrt(len(keys))  # Normal numbers, but for the diagonal
    assert np.abs(signs.sum(axis=0)).max() < 5 * np.sqrt(len(keys))
    assert np.abs(between - np.diag(np.diag(between))).max() < 6
    assert np.abs((signs[1:] * signs[:-1]).sum(axis=0)).max() < 5 * np.sqrt(len(keys))
