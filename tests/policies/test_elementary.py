"""Elementary functions against NumPy's in extended precision."""

import numpy as np
import pytest

from policyspace.policies.elementary import logarithm, sine_cosine
from policyspace.policies.jax_setup import jax

RNG = np.random.default_rng(0)


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
        slopes = jax.jacobian(sine_cosine)(angle)
        assert [float(slope) for slope in slopes] == pytest.approx([np.cos(angle), -np.sin(angle)], abs=1e-14)
