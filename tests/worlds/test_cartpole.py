"""The cart-pole against Gymnasium's, whose physics it shares, and against the law of its noise."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from policyspace.worlds import CartPole

WORLD = CartPole()
DRIFT = jax.jit(WORLD.drift)


@pytest.mark.parametrize("changed", [{}, {"gravity": 3.0, "pole_half_length": 1.2}, {"cart_mass": 2.0, "force": 4.0}])
def test_the_drift_is_gymnasiums_step(changed: dict[str, float]) -> None:
    peer = gymnasium.make("CartPole-v1").unwrapped
    omega = WORLD.check_configuration(changed)
    peer.gravity, peer.masscart, peer.masspole = (float(omega[n]) for n in ("gravity", "cart_mass", "pole_mass"))
    peer.length, peer.force_mag = float(omega["pole_half_length"]), float(omega["force"])
    peer.total_mass, peer.polemass_length = peer.masspole + peer.masscart, peer.masspole * peer.length
    rng = np.random.default_rng(0)
    for _ in range(30):
        state = rng.uniform(-0.2, 0.2, 4) * [5, 5, 1, 5]
        for action, name in enumerate(WORLD.action_names):
            peer.reset(seed=0)
            peer.state = tuple(state)
            peer.step(1 if name == "right" else 0)
            found = np.asarray(DRIFT(jnp.asarray(state), action, omega))
            assert found == pytest.approx(np.array(peer.state), rel=1e-12, abs=1e-14)


def test_the_noise_is_normal_around_the_drift() -> None:
    omega = WORLD.default_configuration()
    state = jnp.array([0.1, -0.3, 0.05, 0.4])
    keys = jax.random.split(jax.random.key(0), 20_000)
    moved = jax.jit(jax.vmap(lambda k: WORLD.transition(k, state, 0, omega)))(keys)
    z = (np.asarray(moved) - np.asarray(DRIFT(state, 0, omega))) / np.array(WORLD.noise)
    for column in z.T:
        assert stats.kstest(column, "norm").pvalue > 1e-4
    assert np.abs(np.corrcoef(z.T) - np.eye(4)).max() < 5 / np.sqrt(20_000)


def test_the_density_is_normal_up_to_a_constant() -> None:
    omega = WORLD.check_configuration({"pole_mass": 0.3})
    state, following = jnp.array([0.1, -0.3, 0.05, 0.4]), np.array([[0.09, -0.1, 0.06, 0.2], [0.1, -0.2, 0.05, 0.3]])
    law = stats.multivariate_normal(np.asarray(DRIFT(state, 1, omega)), np.diag(np.square(WORLD.noise)))
    found = [float(WORLD.log_transition(state, 1, jnp.asarray(s), omega)) for s in following]
    assert found[1] - found[0] == pytest.approx(law.logpdf(following[1]) - law.logpdf(following[0]), rel=1e-9)


@pytest.mark.parametrize(
    ("state", "end"), [([2.5, 0, 0, 0], True), ([0, 9, 0.22, 9], True), ([-2.3, 9, -0.2, 9], False)]
)
def test_ends(state: list[float], end: bool) -> None:
    assert bool(WORLD.terminal(jnp.array(state))) is end
