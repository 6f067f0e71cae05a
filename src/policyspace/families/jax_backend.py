"""JAX in float64, and counter-based random numbers."""

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from policyspace.runtime import require_configure

require_configure()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

# -- JAX as every module here needs it: float64, and compiled code kept on disk between processes.

__all__ = ["cache_folder", "jax", "jnp"]


def cache_folder() -> Path:
    """Where compiled code is kept: $XDG_CACHE_HOME/policyspace/jax, or ~/.cache/policyspace/jax."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "policyspace" / "jax"


# Likelihood ratios and importance weights lose their meaning in float32.
jax.config.update("jax_enable_x64", True)
if jax.config.jax_compilation_cache_dir is None:  # a folder that the user chose stays
    jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


# -- Random numbers for simulations, and the logarithm, sine and cosine that they and the worlds need, in float64.

Array = Any  # a JAX array
Key = Any  # a JAX random key

# Taylor series in the square of an angle. On [−π/4, π/4] the terms after the first 8 and 9 are below 10⁻¹⁶; on
# [−π/2, π/2], for Normal numbers, those after 10 and 11 are below 3·10⁻¹⁶.
SINE = [(-1) ** i / math.factorial(2 * i + 1) for i in range(10)]
COSINE = [(-1) ** i / math.factorial(2 * i) for i in range(11)]
# That of artanh(s)/s in s²: for |s| ≤ (√2 − 1)/(√2 + 1) the next term is below 10⁻¹⁷ of the sum.
ARTANH = [1 / (2 * i + 1) for i in range(11)]
# π/2 in two parts: the first has zeros at its end, so that its multiples up to 2²⁷ are exact.
QUARTER, QUARTER_REST = 1.5707963109016418, 1.5893254773528196e-08
# The step and the mixing of SplitMix64.
GOLDEN, FIRST, SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
SIGN = np.uint64(1 << 63)


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
    return e * np.log(2.0) + 2.0 * s * _series(ARTANH, s * s)


def sine_cosine(angle: Array) -> tuple[Array, Array]:
    """sin and cos of angles up to 10⁸, to 3·10⁻¹⁶: both series at the distance from the nearest multiple of π/2."""
    turns = jnp.round(angle * (2.0 / np.pi))
    quarter = turns.astype(jnp.int32)
    rest = angle - turns * QUARTER - turns * QUARTER_REST
    square = rest * rest
    sine, cosine = rest * _series(SINE[:8], square), _series(COSINE[:9], square)
    swap = quarter & 1 == 1
    sine, cosine = jnp.where(swap, cosine, sine), jnp.where(swap, sine, cosine)
    return jnp.where(quarter & 2 == 2, -sine, sine), jnp.where((quarter + 1) & 2 == 2, -cosine, cosine)


def standard_normals(key: Key, shape: tuple[int, ...]) -> Array:
    """Independent ε ~ N(0, 1) of a shape, two from 64 random bits: √(−2 log u)·(cos v, sin v) (Box and Muller, 1958).

    Half of the bits make u, which bounds |ε| by 6.8; the other half v: an angle in [−π/2, π/2), and a sign of both.
    """
    size = math.prod(shape)
    if size == 0:
        return jnp.zeros(shape)
    bits = mixed_bits(key, (size + 3) // 4 * 2)
    # A loop of two turns: what it takes and gives is stored, and not computed again wherever one of them is used.
    pairs = jax.lax.map(normal_pair, bits.reshape(2, -1))
    return jnp.concatenate(pairs).ravel()[:size].reshape(shape)


def normal_pair(bits: Array) -> tuple[Array, Array]:
    """Two Normal numbers from each 64 bits."""
    # Signed halves: processors turn those, and not unsigned ones, into float64 several at a time.
    first, second = (part.astype(jnp.uint32).astype(jnp.int32) for part in (bits >> 32, bits))
    radius = jnp.sqrt(-2.0 * logarithm((first + 2147483648.5) * 2.0**-32))
    # A half circle and a sign, rather than a quarter and two: neither series is needed for the other's number.
    signed = jax.lax.bitcast_convert_type(radius, jnp.uint64) | (bits << 32 & SIGN)
    radius = jax.lax.bitcast_convert_type(signed, jnp.float64)
    angle = (second << 1).astype(jnp.float64) * (np.pi / 2 * 2.0**-31)
    square = angle * angle
    return radius * _series(COSINE, square), radius * angle * _series(SINE, square)


def mixed_bits(key: Key, size: int) -> Array:
    """Independent bits [size], 64 each, a fifth the cost of JAX's: SplitMix64 (Steele, Lea and Flood, 2014).

    JAX's generator draws where a key's sequence starts, one of 2⁶⁴ places: those of two keys hardly ever meet.
    """
    z = jax.random.bits(key, (1,), jnp.uint64)[0] + jax.lax.iota(jnp.uint64, size) * GOLDEN
    z = (z ^ z >> 30) * FIRST
    z = (z ^ z >> 27) * SECOND
    return z ^ z >> 31


def random_bits_32(key: Key, shape: tuple[int, ...]) -> Array:
    """Independent bits of a shape, 32 each: the halves of JAX's 64."""
    size = math.prod(shape)
    pairs = jax.random.bits(key, ((size + 1) // 2,), jnp.uint64)
    return jnp.concatenate([(pairs >> 32).astype(jnp.uint32), pairs.astype(jnp.uint32)])[:size].reshape(shape)


def _series(coefficients: list[float], x: Array) -> Array:
    """Σ_i c_i x^i."""
    total = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total
