"""The continuous grid world against plain Python, SciPy's quadrature and simulation."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from policyspace import rollout
from policyspace.worlds import ContinuousGridworld
from policyspace.worlds.continuous_gridworld import _disc_rule

WORLD = ContinuousGridworld()
NORMALISER = jax.jit(WORLD.normaliser)
STARTS = jax.jit(jax.vmap(WORLD.initial, (0, None)))
CONFIGURATIONS = [
    {"x": -1.0, "y": -1.0, "goal_x": 1.0, "goal_y": 1.0},
    {"x": 0.2, "y": -0.1, "goal_x": 0.0, "goal_y": 0.1},
    {"x": 2.5, "y": 2.5, "goal_x": 2.4, "goal_y": 2.5},
    {"x": -2.0, "y": 1.7, "goal_x": -1.6, "goal_y": 0.9},
]


def normaliser_by_scipy(omega: dict[str, float]) -> float:
    """P(box) − ∬_disc g_x g_y, with each g itself integrated numerically over the agent's coordinate."""
    sa, sg = math.sqrt(0.2), math.sqrt(0.4)

    def line(d: float, agent: float, goal: float) -> float:
        # Plain arithmetic: SciPy's own density costs fifty times as much a call, and quad calls it 10⁵ times.
        def joint(x: float) -> float:
            z, w = (x - agent) / sa, (x + d - goal) / sg
            return math.exp(-(z * z + w * w) / 2) / (2 * math.pi * sa * sg)

        return integrate.quad(joint, max(-2.5, -2.5 - d), min(2.5, 2.5 - d), epsabs=1e-13, epsrel=1e-12)[0]

    # A product of one-dimensional functions: tabulate each once on Chebyshev nodes of both sides of the kink.
    def interpolant(agent: float, goal: float):
        sides = []
        for low, high in ((-0.75, 0.0), (0.0, 0.75)):
            fit = np.polynomial.chebyshev.Chebyshev.interpolate(
                np.vectorize(lambda d: line(d, agent, goal)), 30, domain=[low, high]
            )
            sides.append(fit)
        return sides

    gx, gy = interpolant(omega["x"], omega["goal_x"]), interpolant(omega["y"], omega["goal_y"])
    # The inner integral of a polynomial is exact: its antiderivative on each side, 0 at the kink.
    below, above = (side.integ(lbnd=0.0) for side in gy)

    def column(dx: float) -> float:
        edge = math.sqrt(max(0.5625 - dx * dx, 0.0))
        return gx[dx >= 0](dx) * (above(edge) - below(-edge))

    disc = sum(integrate.quad(column, *sides, epsabs=1e-11)[0] for sides in ((-0.75, 0.0), (0.0, 0.75)))
    box = math.prod(
        stats.norm.cdf(2.5, omega[name], sd) - stats.norm.cdf(-2.5, omega[name], sd)
        for name, sd in (("x", sa), ("y", sa), ("goal_x", sg), ("goal_y", sg))
    )
    return box - disc


@pytest.mark.parametrize("omega", CONFIGURATIONS[1:3])
def test_the_normaliser_is_right_to_nine_digits(omega: dict[str, float]) -> None:
    found = float(NORMALISER(WORLD.check_configuration(omega)))
    assert found == pytest.approx(normaliser_by_scipy(omega), abs=1e-9)


@pytest.mark.parametrize("omega", CONFIGURATIONS)
def test_the_normaliser_is_the_share_of_draws_that_are_kept(omega: dict[str, float]) -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal(list(omega.values()), np.sqrt([0.2, 0.2, 0.4, 0.4]), (200_000, 4))
    far = np.hypot(draws[:, 0] - draws[:, 2], draws[:, 1] - draws[:, 3]) > 0.75
    kept = np.mean(np.all(np.abs(draws) <= 2.5, axis=1) & far)
    found = float(NORMALISER(WORLD.check_configuration(omega)))
    assert abs(found - kept) < 5 * math.sqrt(kept * (1 - kept) / 200_000)


def test_the_normaliser_is_differentiable() -> None:
    omega = WORLD.check_configuration(CONFIGURATIONS[3])
    slopes = jax.jit(jax.value_and_grad(lambda w: jnp.log(WORLD.normaliser(w))))
    gradient = slopes(omega)[1]
    for name in omega:
        up, down = (float(slopes(omega | {name: omega[name] + step})[0]) for step in (1e-5, -1e-5))
        assert float(gradient[name]) == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-8)


def test_the_disc_rule_integrates_polynomials() -> None:
    dx, dy, weight = _disc_rule(0.75)
    assert weight.sum() == pytest.approx(math.pi * 0.75**2, rel=1e-13)
    assert (weight * dx**2 * dy**2).sum() == pytest.approx(math.pi * 0.75**6 / 24, rel=1e-13)
    assert (weight * np.abs(dx) * np.abs(dy)).sum() == pytest.approx(0.75**4 / 2, rel=1e-13)


@pytest.mark.parametrize("omega", CONFIGURATIONS)
def test_starts_follow_the_truncated_law(omega: dict[str, float]) -> None:
    """Against rejection in NumPy, coordinate by coordinate and in the distance to the goal (two-sample KS)."""
    keys = jax.random.split(jax.random.key(4), 20_000)
    found = np.asarray(STARTS(keys, WORLD.check_configuration(omega)))
    rng = np.random.default_rng(1)
    draws = rng.normal(list(omega.values()), np.sqrt([0.2, 0.2, 0.4, 0.4]), (100_000, 4))
    distance = np.hypot(draws[:, 0] - draws[:, 2], draws[:, 1] - draws[:, 3])
    wanted = draws[np.all(np.abs(draws) <= 2.5, axis=1) & (distance > 0.75)]
    assert np.abs(found).max() <= 2.5
    for column in range(4):
        assert stats.ks_2samp(found[:, column], wanted[:, column]).pvalue > 1e-4
    apart = [np.hypot(s[:, 0] - s[:, 2], s[:, 1] - s[:, 3]) for s in (found, wanted)]
    assert apart[0].min() > 0.75
    assert stats.ks_2samp(*apart).pvalue > 1e-4


def test_trajectories_obey_plain_python() -> None:
    space = WORLD.policy_space()
    theta = np.random.default_rng(0).normal(0, 0.6, space.num_parameters)
    seen = rollout(WORLD, space, theta, WORLD.default_configuration(), jax.random.key(0), 50)
    states, actions = np.asarray(seen.states), np.asarray(seen.actions)
    rewards, mask = np.asarray(seen.rewards), np.asarray(seen.mask)
    assert np.abs(actions).max() > 1  # the logged action is not clipped
    wanted = np.zeros_like(states)
    for i in range(50):
        x, y, goal_x, goal_y = (float(c) for c in states[i, 0])
        alive = True
        for t in range(WORLD.horizon):
            wanted[i, t] = x, y, goal_x, goal_y
            assert mask[i, t] == alive
            if alive:
                x = min(max(x + min(max(float(actions[i, t, 0]), -1.0), 1.0), -2.5), 2.5)
                y = min(max(y + min(max(float(actions[i, t, 1]), -1.0), 1.0), -2.5), 2.5)
                alive = math.hypot(x - goal_x, y - goal_y) > 0.75
                assert rewards[i, t] == (-1.0 if alive else 0.0)
            else:
                assert rewards[i, t] == 0
        wanted[i, -1] = x, y, goal_x, goal_y
    assert states == pytest.approx(wanted, abs=1e-12)


def test_features_are_radial() -> None:
    phi = dict(zip(WORLD.feature_names, np.asarray(WORLD.features(jnp.array([0.3, -1.2, 2.0, 0.5]))), strict=True))
    assert len(phi) == 50
    assert phi["agent_rbf_0_4"] == pytest.approx(math.exp(-((0.3 + 2) ** 2) - (-1.2 - 2) ** 2))
    assert phi["goal_rbf_4_2"] == pytest.approx(math.exp(-(0.5**2)))
