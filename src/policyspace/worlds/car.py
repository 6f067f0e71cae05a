"""The car: a driver with a speedometer and four distance sensors on a bending road (Section 6.3)."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from policyspace.families.base import PolicySpace
from policyspace.families.jax_backend import jax, jnp, sine_cosine
from policyspace.worlds.base import Array, Configuration, ConfigurationParameter, Key
from policyspace.worlds.confmdp import ConfMDP

X, Y, ANGLE, SPEED, SENSORS, CRASHED = 0, 1, 2, 3, slice(4, 8), 8  # the columns of a state
ROAD_LENGTH, HALF_ROAD = 500.0, 50.0
TOP_SPEED, BODY_RADIUS, RANGE = 6.0, 25.0, 150.0
SENSOR_ANGLES = np.array([np.pi / 4, np.pi / 6, -np.pi / 6, -np.pi / 4])
# The corners of the body, as angles off its axis, in the order of a walk around it.
CORNER_ANGLES = np.array([np.pi / 6, -np.pi / 6, np.pi + np.pi / 6, np.pi - np.pi / 6])
_RAYS, _CORNERS = (
    length * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for length, angles in ((RANGE, SENSOR_ANGLES), (BODY_RADIUS, CORNER_ANGLES))
)
# What may meet a border, the four rays and then the four sides of the body: a start and a direction, each (ahead, left).
SEGMENTS = np.block([[np.zeros((4, 2)), _RAYS], [_CORNERS, np.roll(_CORNERS, -1, axis=0) - _CORNERS]])


@final
@dataclass(frozen=True)
class Car(ConfMDP):
    """States (x, y, angle, speed, four sensors, crashed); actions accelerate and steer.

    The road's centre line is the Bézier curve (0,0), (ω,250), (0,500), its borders are the line shifted by ±50 in x.
    Sensors and crashes depend on ω, so the state carries them. Reward speed/6 a step, −25 for a crash or for y < 0.
    """

    sensor_noise: float = 0.1  # standard deviation
    policy_variance: float = 0.1
    hidden: tuple[int, ...] = (8,)
    owned: tuple[str, ...] = ("speed", "sensor_+45", "sensor_+30")
    horizon: int = 250
    discount: float = 0.996

    name = "car"
    feature_names = ("speed", "sensor_+45", "sensor_+30", "sensor_-30", "sensor_-45")
    action_names = ("acceleration", "steering")
    action_bounds = (-1.0, 1.0)
    num_normals = 4
    parameters = (ConfigurationParameter("bend", (), -200.0, 200.0, 100.0, "x of the road's middle control point"),)

    @property
    def true_controls(self) -> frozenset[str]:
        """The paper's driver sees its speed and the two sensors on the left."""
        return frozenset(self.owned)

    def initial(self, key: Key, configuration: Configuration) -> Array:
        """At rest at (0, 25), heading up the road."""
        noise = jax.random.normal(key, (4,), jnp.float64)
        return self._sense(noise, jnp.array([0.0, 25.0, 0.0, 0.0]), configuration)

    def move(self, noise: Array, state: Array, action: Array, configuration: Configuration) -> Array:
        """Accelerate, steer, move, then look around."""
        accelerate, steer = jnp.clip(action, -1.0, 1.0)
        speed = jnp.clip(state[SPEED] + 0.5 * accelerate, -TOP_SPEED, TOP_SPEED)
        pace = jnp.abs(speed) / TOP_SPEED
        # A car hardly turns while it stands, and turns worse when it is fast.
        grip = jnp.where(pace < 0.1, 10.0 * pace, 1.0 - 0.3 * (pace - 0.1))
        angle = state[ANGLE] + steer * grip * np.pi / 64.0
        sine, cosine = sine_cosine(angle)
        x, y = state[X] - speed * sine, state[Y] + speed * cosine
        return self._sense(noise, jnp.stack([x, y, angle, speed]), configuration)

    def reward(self, state: Array, action: Array, next_state: Array) -> Array:
        """The speed as a share of the top one; −25 for a crash or for leaving the road backwards."""
        lost = (next_state[CRASHED] > 0) | (next_state[Y] < 0)
        return jnp.where(lost, -25.0, next_state[SPEED] / TOP_SPEED)

    def terminal(self, state: Array) -> Array:
        """A crash, the end of the road, or its beginning."""
        return (state[CRASHED] > 0) | (state[Y] > ROAD_LENGTH) | (state[Y] < 0)

    def log_initial(self, state: Array, configuration: Configuration) -> Array:
        """The sensors' density at the start."""
        return self._log_sense(state, configuration)

    def log_transition(self, state: Array, action: Array, next_state: Array, configuration: Configuration) -> Array:
        """The sensors' density at s', where the car is whatever ω; −∞ if ω would (not) have let it crash there."""
        return self._log_sense(next_state, configuration)

    def features(self, state: Array) -> Array:
        """Speed as a share of the top one, and the sensors."""
        return jnp.concatenate([state[SPEED][None] / TOP_SPEED, state[SENSORS]])

    def policy_space(self, **options: Any) -> PolicySpace:
        """A Gaussian whose mean is a network with one hidden layer of eight tanh units."""
        from policyspace.families.network import GaussianNetwork

        options.setdefault("hidden", self.hidden)
        options.setdefault("covariance", self.policy_variance)
        return GaussianNetwork(self.feature_names, self.action_names, **options)

    def observation_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The car ends at the border, one step beyond it at most; its angle turns at most π/64 a step."""
        turn, reach = self.horizon * np.pi / 64.0, TOP_SPEED * self.horizon
        low = [-reach, -TOP_SPEED, -turn, -TOP_SPEED, 0, 0, 0, 0, 0]
        return np.array(low), np.array([reach, ROAD_LENGTH + TOP_SPEED, turn, TOP_SPEED, 1, 1, 1, 1, 1])

    def distances(self, pose: Array, configuration: Configuration) -> Array:
        """What noiseless sensors say [4]: the share of each ray before the nearest border, 1 if it meets none."""
        return jnp.minimum(_crossings(pose, SEGMENTS[:4], configuration), 1.0)

    def crashed(self, pose: Array, configuration: Configuration) -> Array:
        """Whether a side of the body crosses a border."""
        return (_crossings(pose, SEGMENTS[4:], configuration) <= 1.0).any(axis=0)

    def _sense(self, noise: Array, pose: Array, configuration: Configuration) -> Array:
        """The state of a car at (x, y, angle, speed): its sensors, clipped to [0, 1], and whether it has crashed."""
        crossings = _crossings(pose, SEGMENTS, configuration)
        seen = jnp.clip(jnp.minimum(crossings[:4], 1.0) + self.sensor_noise * noise, 0.0, 1.0)
        crash = jnp.where((crossings[4:] <= 1.0).any(axis=0), 1.0, 0.0)
        return jnp.concatenate([pose, seen, crash[None]])

    def _log_sense(self, state: Array, configuration: Configuration) -> Array:
        """Σ_i log N(y_i; d_i(ω), σ²), or the mass of what is clipped where y_i is 0 or 1."""
        seen, true = state[SENSORS], self.distances(state[:4], configuration)
        z = (seen - true) / self.sensor_noise
        log_mass = jax.scipy.stats.norm.logcdf
        density = -0.5 * z**2 - np.log(self.sensor_noise * np.sqrt(2 * np.pi))
        log_p = jnp.where(seen <= 0.0, log_mass(z), jnp.where(seen >= 1.0, log_mass(-z), density))
        possible = self.crashed(state[:4], configuration) == (state[CRASHED] > 0)
        return jnp.where(possible, jnp.sum(log_p), -jnp.inf)


def _crossings(pose: Array, segments: np.ndarray, configuration: Configuration) -> Array:
    """Where segments [n, 4] of a car at (x, y, angle, …) first meet a border [n, …]; see `_first_crossing`."""
    x, y, (sine, cosine) = pose[X], pose[Y], sine_cosine(pose[ANGLE])

    def turned(ahead: Array, left: Array) -> tuple[Array, Array]:
        return -sine * ahead - cosine * left, cosine * ahead - sine * left

    def crossing(segment: Array) -> Array:
        (from_x, from_y), along = turned(segment[0], segment[1]), turned(segment[2], segment[3])
        return _first_crossing(x + from_x, y + from_y, *along, configuration["bend"])

    # One after the other: all at once, XLA would compute the sine and the cosine again for each segment.
    return jax.lax.map(crossing, jnp.asarray(segments))


def _first_crossing(x: Array, y: Array, dx: Array, dy: Array, bend: Array) -> Array:
    """Where the segments (x, y) + s·(dx, dy), s ∈ [0, 1], first meet a border: the smallest root s, ∞ where none.

    The centre line has y = 500t and x = 2t(1−t)ω, so that a border is one quadratic in y, and along the segment one
    quadratic in s: A s² + B s + C = 0 with C the same for both borders but for ±50.
    """
    t, dt = y / ROAD_LENGTH, dy / ROAD_LENGTH
    a = 2.0 * bend * dt**2
    b = dx - 2.0 * bend * dt * (1.0 - 2.0 * t)
    centre = x - 2.0 * bend * t * (1.0 - t)
    first = jnp.asarray(jnp.inf)
    for border in (-HALF_ROAD, HALF_ROAD):
        c = centre + border
        square = b**2 - 4.0 * a * c
        # Both roots without cancellation; where there is none, arguments are replaced so that derivatives stay finite.
        root = jnp.sqrt(jnp.where(square > 0.0, square, 1.0)) * (square > 0.0)
        q = -0.5 * (b + jnp.where(b < 0.0, -root, root))
        for s in (_ratio(q, a), _ratio(c, q)):
            where = t + s * dt
            valid = (square >= 0.0) & (s >= 0.0) & (s <= 1.0) & (where >= 0.0) & (where <= 1.0)
            first = jnp.minimum(first, jnp.where(valid, s, jnp.inf))
    return first


def _ratio(top: Array, bottom: Array) -> Array:
    """The quotient, or a value outside every segment where the divisor is 0."""
    return jnp.where(bottom == 0.0, -1.0, top / jnp.where(bottom == 0.0, 1.0, bottom))
