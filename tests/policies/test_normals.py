"""Normal numbers for simulations against SciPy's laws."""

import numpy as np
import pytest
from scipy import stats

from policyspace.policies.jax_setup import jax
from policyspace.policies.normals import standard_normals


def test_they_are_independent_standard_normals() -> None:
    """Kolmogorov–Smirnov for each row, for radius and angle of the pair that shares 64 bits, and all moments to 4."""
    x = np.asarray(standard_normals(jax.random.key(3), (2, 200_000)))
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
    first, again = (np.asarray(standard_normals(jax.random.key(1), shape)) for _ in range(2))
    assert first.shape == shape
    assert first.dtype == np.float64
    assert np.array_equal(first, again)
    assert np.unique(first).size == first.size


def test_the_pair_is_the_textbooks() -> None:
    """√(−2 log u)·(cos v, sin v) with u and v from the bits, to the last digits."""
    from policyspace.policies.normals import _pair

    bits = np.random.default_rng(0).integers(0, 2**64, 1000, dtype=np.uint64)
    high, low = (bits >> np.uint64(32)).astype(float), (bits & np.uint64(2**32 - 1)).astype(np.int64)
    within = ((low * 2 + 2**31) % 2**32 - 2**31) / 2**31 * np.pi / 2
    radius = np.sqrt(-2 * np.log((np.where(high < 2**31, high + 2**31, high - 2**31) + 0.5) / 2**32))
    v = within + np.pi * (low >= 2**31)  # the upper half is turned by π
    np.testing.assert_allclose(np.asarray(_pair(jax.numpy.asarray(bits))), radius * [np.cos(v), np.sin(v)], atol=1e-14)
