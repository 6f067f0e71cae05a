"""The car against plain Python: kinematics written anew, sensors and crashes by marching along every segment."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from policyspace import rollout
from policyspace.worlds import Car

WORLD = Car()
SPACE = WORLD.policy_space()
DISTANCES, CRASHED = jax.jit(WORLD.distances), jax.jit(WORLD.crashed)
ANGLES = (math.pi / 4, math.pi / 6, -math.pi / 6, -math.pi / 4)


def signed(x: float, y: float, bend: float) -> float:
    """How far to the right of the centre line a point lies."""
    t = y / 500
    return x - 2 * t * (1 - t) * bend


def march(start: tuple[float, float], end: tuple[float, float], bend: float, steps: int = 1500) -> float:
    """The first share of a segment at which it crosses a border, by walking; infinity if it does not."""
    share = np.linspace(0, 1, steps + 1)
    x, y = (start[i] + share * (end[i] - start[i]) for i in (0, 1))
    inside = (y >= 0) & (y <= 500)
    offset = signed(x, y, bend)
    first = math.inf
    for border in (-50, 50):
        change = np.sign(offset[1:] - border) != np.sign(offset[:-1] - border)
        hits = np.nonzero(change & inside[1:] & inside[:-1])[0]
        if hits.size:
            i = hits[0]
            gap = (offset[i] - border) / (offset[i] - offset[i + 1])
            first = min(first, float(share[i] + gap / steps))
    return first


def point(x: float, y: float, angle: float, length: float) -> tuple[float, float]:
    return x - length * math.sin(angle), y + length * math.cos(angle)


def oracle_distances(x: float, y: float, angle: float, bend: float) -> list[float]:
    return [min(1.0, march((x, y), point(x, y, angle + ray, 150), bend)) for ray in ANGLES]


def oracle_crash(x: float, y: float, angle: float, bend: float) -> bool:
    off = (math.pi / 6, -math.pi / 6, math.pi + math.pi / 6, math.pi - math.pi / 6)
    corners = [point(x, y, angle + a, 25) for a in off]
    return any(march(corners[i], corners[(i + 1) % 4], bend) <= 1 for i in range(4))


@pytest.mark.parametrize("bend", [100.0, -150.0, 0.0, 37.5])
def test_sensors_and_crashes_match_marching(bend: float) -> None:
    rng = np.random.default_rng(int(abs(bend)))
    omega = WORLD.check_configuration({"bend": bend})
    crashes = 0
    for i in range(60):
        y = rng.uniform(5, 495)
        t = y / 500
        x = 2 * t * (1 - t) * bend + rng.uniform(-49, 49)
        angle = rng.uniform(-math.pi, math.pi) if i % 4 else [0.0, math.pi / 4, math.pi / 2, -math.pi / 2][i // 4 % 4]
        pose = jnp.array([x, y, angle, 0.0])
        assert np.asarray(DISTANCES(pose, omega)) == pytest.approx(oracle_distances(x, y, angle, bend), abs=1e-4)
        found = bool(CRASHED(pose, omega))
        assert found == oracle_crash(x, y, angle, bend)
        crashes += found
    assert 5 < crashes < 55


def test_a_straight_road_is_a_triangle() -> None:
    """On a straight road from its middle, a ray at an angle meets the border after 50/sin(angle)."""
    found = np.asarray(DISTANCES(jnp.array([10.0, 200.0, 0.0, 0.0]), {"bend": jnp.asarray(0.0)}))
    wanted = [60 / math.sin(math.pi / 4), 60 / math.sin(math.pi / 6), 40 / math.sin(math.pi / 6), 40 * math.sqrt(2)]
    assert found == pytest.approx(np.array(wanted) / 150, rel=1e-12)


def test_trajectories_obey_plain_python() -> None:
    theta = np.asarray(SPACE.init(jax.random.key(0), 1.0)).copy()
    theta[SPACE.layer_indices[-1][1]] = [1.5, -0.05]  # a driver who presses on the gas
    seen = rollout(WORLD, SPACE, theta, {"bend": 100.0}, jax.random.key(5), 20)
    states, actions = np.asarray(seen.states), np.asarray(seen.actions)
    rewards, mask = np.asarray(seen.rewards), np.asarray(seen.mask)
    assert states[:, 0, :4] == pytest.approx(np.tile([0.0, 25.0, 0.0, 0.0], (20, 1)))
    ends = set()
    poses, earned = np.zeros((20, WORLD.horizon + 1, 4)), np.zeros((20, WORLD.horizon))
    poses[:, 0] = states[:, 0, :4]
    for i in range(20):
        x, y, angle, speed = states[i, 0, :4].tolist()
        alive = True
        for t in range(WORLD.horizon):
            assert mask[i, t] == alive
            if alive:
                gas, wheel = (min(max(float(a), -1.0), 1.0) for a in actions[i, t])
                speed = min(max(speed + 0.5 * gas, -6.0), 6.0)
                pace = abs(speed) / 6
                grip = 10 * pace if pace < 0.1 else 1 - 0.3 * (pace - 0.1)
                angle += wheel * grip * math.pi / 64
                x -= speed * math.sin(angle)
                y += speed * math.cos(angle)
                crash = bool(states[i, t + 1, 8])
                if not 0 <= t % 10 < 9 or crash:  # marching is slow: every tenth step, and every crash
                    assert crash == oracle_crash(x, y, angle, 100.0)
                earned[i, t] = -25.0 if crash or y < 0 else speed / 6
                alive = not (crash or y > 500 or y < 0)
                ends |= set() if alive else {"crash" if crash else "road"}
            poses[i, t + 1] = x, y, angle, speed
    assert states[..., :4] == pytest.approx(poses, abs=1e-9)
    assert rewards == pytest.approx(earned) and np.all(rewards[~mask] == 0)
    assert "crash" in ends


def test_sensors_are_normal_around_the_distance_and_clipped() -> None:
    pose = jnp.array([20.0, 100.0, 0.1, 3.0])
    omega = WORLD.default_configuration()
    keys = jax.random.split(jax.random.key(2), 20_000)
    seen = np.asarray(jax.jit(jax.vmap(lambda k: WORLD._sense(jax.random.normal(k, (4,)), pose, omega)))(keys))[:, 4:8]
    for column, mean in zip(seen.T, np.asarray(DISTANCES(pose, omega)), strict=True):
        law = stats.norm(mean, 0.1)
        for atom, mass in ((0.0, law.cdf(0)), (1.0, law.sf(1))):
            assert abs(np.mean(column == atom) - mass) < 5 * math.sqrt(mass * (1 - mass) / 20_000) + 1e-12
        free = column[(column > 0) & (column < 1)]
        within = stats.uniform(law.cdf(0), law.cdf(1) - law.cdf(0))
        assert stats.kstest(law.cdf(free), within.cdf).pvalue > 1e-4


def test_the_law_of_a_sensor_has_mass_one() -> None:
    pose = np.array([20.0, 100.0, 0.1, 3.0])
    omega = WORLD.default_configuration()
    fixed = np.array([0.4, 0.5, 0.6])
    log_p = jax.jit(lambda s: WORLD.log_transition(None, None, s, omega))

    def density(value: float) -> float:
        return math.exp(float(log_p(jnp.asarray([*pose, value, *fixed, 0.0]))))

    mean = np.asarray(DISTANCES(jnp.asarray(pose), omega))
    others = math.prod(float(stats.norm.pdf(v, m, 0.1)) for v, m in zip(fixed, mean[1:], strict=True))
    mass = density(0.0) + density(1.0) + integrate.quad(density, 1e-12, 1 - 1e-12, points=[float(mean[0])])[0]
    assert mass / others == pytest.approx(1.0, abs=1e-7)
    assert log_p(jnp.asarray([*pose, 0.5, *fixed, 1.0])) == -jnp.inf  # it would not have crashed there


def test_the_driver_owns_its_speed_and_the_left() -> None:
    assert WORLD.true_controls == {"speed", "sensor_+30", "sensor_+45"}
    assert Car(owned=("speed", "sensor_+45", "sensor_-45")).true_controls == {"speed", "sensor_+45", "sensor_-45"}
    # With the wheel untouched at the start, the road bends to the right: the left border is nearer.
    near = np.asarray(DISTANCES(jnp.array([0.0, 25.0, 0.0, 0.0]), WORLD.default_configuration()))
    assert near[0] < near[3]
