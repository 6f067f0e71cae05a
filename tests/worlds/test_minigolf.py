"""Minigolf against plain Python, quadrature of its density, and the physics of its strokes."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from policyspace import rollout
from policyspace.worlds import HOLED_ENERGY, Minigolf, log_weights

WORLD = Minigolf()
SPACE = WORLD.policy_space()
LOG_TRANSITION = jax.jit(WORLD.log_transition)


def oracle_reward(x: float, f: float, speed: float) -> tuple[float, bool]:
    """From the speeds, as the game is described: too short, in the hole, too fast."""
    slowest = math.sqrt(10 / 7 * f * 9.81 * x)
    fastest = math.sqrt(slowest**2 + (2 * 0.10 - 0.02135) ** 2 * 9.81 / (2 * 0.02135))
    if speed < slowest:
        return -1.0, False
    return (0.0, True) if speed <= fastest else (-100.0, True)


def test_the_hole_takes_the_energy_that_the_paper_gives_it() -> None:
    assert pytest.approx(7.33, abs=5e-3) == HOLED_ENERGY


def test_trajectories_obey_plain_python() -> None:
    theta = np.array([0.5, 0.01, 0.1, 0.02, 0.1, 0.25])
    seen = rollout(WORLD, SPACE, theta, WORLD.default_configuration(), jax.random.key(0), 400)
    states, rewards, mask = np.asarray(seen.states), np.asarray(seen.rewards), np.asarray(seen.mask)
    outcomes = set()
    for i in range(400):
        alive = True
        for t in range(WORLD.horizon):
            assert mask[i, t] == alive
            (x, f, _), (following, *_) = states[i, t].tolist(), states[i, t + 1].tolist()
            if not alive:
                assert rewards[i, t] == 0
                assert following == x
                continue
            speed = math.sqrt(2 * (5 / 7) * f * 9.81 * (x - following))
            assert speed <= 2 * 5 + 1e-9
            reward, end = oracle_reward(x, f, speed)
            assert rewards[i, t] == reward
            outcomes.add(reward)
            alive = not end
    assert outcomes == {-1.0, 0.0, -100.0}


def test_the_swing_is_the_clipped_action_plus_noise() -> None:
    """The swing recovered from the ball's way is Normal around the clipped action."""
    keys = jax.random.split(jax.random.key(1), 20_000)
    state, omega = jnp.array([8.0, 0.2, 0.0]), WORLD.check_configuration({"putter_length": 3.0})
    putt = jax.jit(jax.vmap(lambda k, a: WORLD.transition(k, state, a, omega), (0, None)))
    for action, aim in ((0.7, 0.7), (1.98, 1.98), (2.6, 2.0), (-0.4, 1e-5)):
        moved = putt(keys, jnp.array([action]))
        swing = np.sqrt(2 * (5 / 7) * 0.2 * 9.81 * (8.0 - np.asarray(moved[:, 0]))) / 3.0
        inside = (swing > 1.1e-5) & (swing < 2 - 1e-9)
        law = stats.norm(aim, 0.01)
        below, above = law.cdf(1e-5), law.sf(2.0)
        assert abs(np.mean(swing >= 2 - 1e-9) - above) < 5 * math.sqrt(above * (1 - above) / 20_000) + 1e-12
        assert abs(np.mean(swing <= 1.1e-5) - below) < 5 * math.sqrt(below * (1 - below) / 20_000) + 1e-12
        within = stats.uniform(below, 1 - above - below)
        assert np.array_equal(np.asarray(moved[:, 2]), np.where(inside, 0, np.where(swing > 1, 1, -1)))
        assert stats.kstest(law.cdf(swing[inside]), within.cdf).pvalue > 1e-4


@pytest.mark.parametrize("action", [0.8, 1.99, 2.4, 0.008, -1.0])
@pytest.mark.parametrize("omega", [1.0, 5.0])
def test_the_law_of_a_stroke_has_mass_one(action: float, omega: float) -> None:
    """Density in the ball's place plus the two atoms of the clip."""
    x, f = 9.0, 0.1
    configuration = WORLD.check_configuration({"putter_length": omega})
    state, stroke = np.array([x, f, 0.0]), np.array([action])

    def log_p(place: float, clipped: float) -> float:
        return float(LOG_TRANSITION(state, stroke, np.array([place, f, clipped]), configuration))

    def place(swing: float) -> float:
        return x - (swing * omega) ** 2 / (2 * (5 / 7) * f * 9.81)

    atoms = [math.exp(log_p(place(swing), side)) for swing, side in ((1e-5, -1.0), (2.0, 1.0))]
    aim = min(max(action, 1e-5), 2.0)
    low, high = max(aim - 0.08, 1e-5), min(aim + 0.08, 2.0)
    continuous = integrate.quad(
        lambda s: math.exp(log_p(place(s), 0.0)) * s * omega**2 / ((5 / 7) * f * 9.81), low, high, epsabs=1e-9
    )[0]
    law = stats.norm(aim, 0.01)
    assert atoms[0] + continuous + atoms[1] == pytest.approx(1.0, abs=1e-7)
    expected = [law.cdf(1e-5), law.sf(2.0)]
    for atom, wanted, swing in zip(atoms, expected, (1e-5, 2.0), strict=True):
        assert atom == pytest.approx(wanted, rel=1e-6, abs=1e-300), swing


def test_a_ball_cannot_pass_the_longest_stroke() -> None:
    state, action = jnp.array([9.0, 0.1, 0.0]), jnp.array([2.0])
    too_far = jnp.array([9.0 - (2.01 * 5) ** 2 / (2 * (5 / 7) * 0.1 * 9.81), 0.1, 0.0])
    assert LOG_TRANSITION(state, action, too_far, WORLD.default_configuration()) == -jnp.inf


def test_weights_miss_exactly_what_the_other_putter_cannot_do() -> None:
    """Where strokes are clipped the laws are not dominated: E[w] = P_ω(inside ω's clip and within ω₀'s reach)."""
    theta = np.zeros(SPACE.num_parameters)
    theta[0] = 1.985
    world = Minigolf(horizon=1)
    space = world.policy_space(covariance=1e-12)
    seen = rollout(world, space, theta, {"putter_length": 5.0}, jax.random.key(3), 40_000)
    weight = np.exp(np.asarray(log_weights(world, seen, {"putter_length": 5.01})[:, -1]))
    # Under ω = 5.01 the swing must stay below the clip and below ω₀'s longest stroke, 2·5/5.01.
    expected = stats.norm.cdf((2 * 5 / 5.01 - 1.985) / 0.01)
    assert abs(weight.mean() - expected) < 5 * weight.std() / math.sqrt(40_000)
    assert np.all(np.asarray(log_weights(world, seen, {"putter_length": 5.0})) == 0.0)


# The undiscounted return of the best agent that owns everything, found elsewhere by optimising the same dynamics; and the
# constant and the weight of √(xf), times ω, of the best agent that uses only these two (by Nelder–Mead).
BEST = {
    2.0: (-1.91, 0.800, 3.750),
    3.0: (-0.62, 0.500, 3.713),
    5.0: (-0.06, 0.355, 3.663),
    7.0: (-0.13, 0.406, 3.609),
    9.0: (-0.23, 0.461, 3.557),
    11.5: (-0.37, 0.485, 3.501),
    15.0: (-0.59, 0.571, 3.352),
}


@pytest.mark.parametrize("omega", BEST)
def test_the_best_returns_are_those_of_the_game(omega: float) -> None:
    wanted, constant, weight = BEST[omega]
    theta = np.array([constant, 0, 0, 0, 0, weight]) / omega
    seen = rollout(WORLD, SPACE, theta, {"putter_length": omega}, jax.random.key(1), 20_000)
    returns = np.asarray(seen.returns())
    assert abs(returns.mean() - wanted) < 0.02 + 4 * returns.std() / math.sqrt(20_000)
