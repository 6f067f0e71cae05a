"""How far importance weights can be trusted; the weights themselves are checked on every world in test_contract.py."""

import jax.numpy as jnp
import pytest

from policyspace.worlds import effective_sample_size, renyi2


def test_diagnostics_survive_weights_of_zero_and_of_any_size() -> None:
    weights = jnp.array([-jnp.inf, jnp.log(3.0), 0.0, -jnp.inf])
    assert float(renyi2(weights)) == pytest.approx((9 + 1) / 4)
    assert float(effective_sample_size(weights)) == pytest.approx(16 / 10)
    assert float(effective_sample_size(jnp.array([800.0, 800.0, -900.0]))) == pytest.approx(2.0)
    nothing = jnp.full(3, -jnp.inf)
    assert float(renyi2(nothing)) == 0.0
    assert float(effective_sample_size(nothing)) == 0.0
