"""The logarithm, the sine and the cosine in float64, written so that a processor computes several at a time.

XLA hands those of float64 to a library, one number after the other; simulations spend much of their time there.
"""

from typing import Any

import numpy as np

from policyspace.policies.jax_setup import jax, jnp

Array = Any  # a JAX array

# Taylor series of sine and cosine in the square of an angle: on [−π/4, π/4] the next terms are below 10⁻¹⁶.
SINE = [1.0, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800, 1 / 6227020800, -1 / 1307674368000]
COSINE = [1.0, -1 / 2, 1 / 24, -1 / 720, 1 / 40320, -1 / 3628800, 1 / 479001600, -1 / 87178291200, 1 / 20922789888000]
# That of artanh(s)/s in s²: for |s| ≤ (√2 − 1)/(√2 + 1) the next term is below 10⁻¹⁷ of the sum.
ARTANH = [1 / (2 * i + 1) for i in range(11)]
# π/2 in two parts: the first has zeros at its end, so that its multiples up to 2²⁷ are exact.
QUARTER, QUARTER_REST = 1.5707963109016418, 1.5893254773528196e-08


def series(coefficients: list[float], x: Array) -> Array:
    """Σ_i c_i x^i."""
    total = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total


def logarithm(x: Array) -> Array:
    """log x of positive numbers (neither subnormal nor infinite), to 4·10⁻¹⁶ of its value.

    With x = 2^e m and √½ ≤ m < √2, log x = e log 2 + 2 artanh((m − 1)/(m + 1)).
    """
    bits = jax.lax.bitcast_convert_type(x, jnp.uint64)
    # e + 1024 stands in the highest twelve bits; the bias keeps it positive.
    bias = np.uint64(1024 << 52)
    exponent = (bits + (bias - np.sqrt(0.5).view(np.uint64))) >> 52
    m = jax.lax.bitcast_convert_type(bits - (exponent << 52) + bias, jnp.float64)
    # As the last bits of a number around 2⁵², an integer becomes a float without a conversion.
    e = jax.lax.bitcast_convert_type(exponent | np.float64(2.0**52).view(np.uint64), jnp.float64) - (2.0**52 + 1024)
    s = (m - 1.0) / (m + 1.0)
    return e * np.log(2.0) + 2.0 * s * series(ARTANH, s * s)


def sine_cosine(angle: Array) -> tuple[Array, Array]:
    """sin and cos of angles up to 10⁸, to 3·10⁻¹⁶: both series at the distance from the nearest multiple of π/2."""
    turns = jnp.round(angle * (2.0 / np.pi))
    quarter = turns.astype(jnp.int32)
    rest = angle - turns * QUARTER - turns * QUARTER_REST
    square = rest * rest
    sine, cosine = rest * series(SINE, square), series(COSINE, square)
    swap = quarter & 1 == 1
    sine, cosine = jnp.where(swap, cosine, sine), jnp.where(swap, sine, cosine)
    return jnp.where(quarter & 2 == 2, -sine, sine), jnp.where((quarter + 1) & 2 == 2, -cosine, cosine)
