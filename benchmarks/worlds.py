"""The simulator that `policyspace simulate` runs, against a plain Python loop over the same worlds, and Gymnasium's own.

Environment steps a second of processor time, before the end of their episodes; `rollout` keeps all states, features and
actions. Both must agree on the mean return. Gymnasium has the cart-pole, without our noise: steered by the same policy,
as 16 environments in turn ("sync"), and as 10 000 in arrays ("vector_entry_point"), the fastest that it offers.
"""

import math
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.table import Row, clock, show
from policyspace.families.base import PolicySpace
from policyspace.families.jax_backend import jax
from policyspace.worlds import make_world
from policyspace.worlds.confmdp import ConfMDP, rollout

EPISODES, SEED = 10_000, 0
Rows = list[list[float]]
Step = tuple[float, bool]  # the reward, and whether the episode has ended
Episode = Iterator[Step]


def clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def linear(weights: Rows, features: list[float]) -> list[float]:
    return [sum(w * f for w, f in zip(row, features, strict=True)) for row in weights]


def choose(scores: list[float], rng: random.Random) -> int:
    """An action drawn from the softmax of its scores."""
    top = max(scores)
    shares = [math.exp(score - top) for score in scores]
    left = rng.random() * sum(shares)
    for action, share in enumerate(shares):
        left -= share
        if left < 0:
            return action
    return len(shares) - 1


def gridworld(weights: Rows, rng: random.Random) -> Episode:
    row, col, goal_row, goal_col = (rng.randrange(5) for _ in range(4))
    while True:
        levels = (row, col, goal_row, goal_col)
        features = [1.0] + [1.0 if level == k else 0.0 for level in levels for k in range(4)]
        move = ((-1, 0), (1, 0), (0, -1), (0, 1))[choose([*linear(weights, features), 0.0], rng)]
        row, col = min(max(row + move[0], 0), 4), min(max(col + move[1], 0), 4)
        reached = row == goal_row and col == goal_col
        yield (0.0 if reached else -1.0), reached


def continuous_gridworld(weights: Rows, rng: random.Random) -> Episode:
    centres = [(float(i), float(j)) for i in range(-2, 3) for j in range(-2, 3)]
    while True:
        x, y, u, v = (rng.gauss(mean, math.sqrt(s)) for mean, s in ((-1, 0.2), (-1, 0.2), (1, 0.4), (1, 0.4)))
        if max(abs(x), abs(y), abs(u), abs(v)) <= 2.5 and math.hypot(x - u, y - v) > 0.75:
            break
    while True:
        features = [math.exp(-((a - i) ** 2) - (b - j) ** 2) for a, b in ((x, y), (u, v)) for i, j in centres]
        right, up = (mean + 0.02 * rng.gauss(0, 1) for mean in linear(weights, features))
        x, y = clip(x + clip(right, -1, 1), -2.5, 2.5), clip(y + clip(up, -1, 1), -2.5, 2.5)
        reached = math.hypot(x - u, y - v) <= 0.75
        yield (0.0 if reached else -1.0), reached


def minigolf(weights: Rows, rng: random.Random) -> Episode:
    x, f = rng.uniform(1, 20), rng.uniform(0.02, 0.5)
    while True:
        features = [1.0, x, f, math.sqrt(x), math.sqrt(f), math.sqrt(x * f)]
        stroke = clip(linear(weights, features)[0] + 0.01 * rng.gauss(0, 1), 1e-5, 2)
        speed = 5.0 * clip(stroke + 0.01 * rng.gauss(0, 1), 1e-5, 2)
        slowest = math.sqrt(10 / 7 * f * 9.81 * x)
        fastest = math.sqrt(slowest**2 + (2 * 0.10 - 0.02135) ** 2 * 9.81 / (2 * 0.02135))
        if speed >= slowest:
            yield (0.0 if speed <= fastest else -100.0), True
            return
        x -= speed**2 / (2 * 5 / 7 * f * 9.81)
        yield -1.0, False


def first_crossing(x: float, y: float, dx: float, dy: float, bend: float) -> float:
    """The smallest s in [0, 1] at which (x, y) + s (dx, dy) is on a border of the road; 2 if there is none."""
    t, dt, first = y / 500, dy / 500, 2.0
    a, b = 2 * bend * dt * dt, dx - 2 * bend * dt * (1 - 2 * t)
    for border in (-50, 50):
        c = x - 2 * bend * t * (1 - t) + border
        square = b * b - 4 * a * c
        if square < 0:
            continue
        q = -0.5 * (b + math.copysign(math.sqrt(square), b))
        for top, bottom in ((q, a), (c, q)):
            if bottom != 0:
                s = top / bottom
                if 0 <= s < first and s <= 1 and 0 <= t + s * dt <= 1:
                    first = s
    return first


def car(weights: tuple[Rows, list[float], Rows, list[float]], rng: random.Random) -> Episode:
    hidden, hidden_bias, output, output_bias = weights
    x, y, angle, speed = 0.0, 25.0, 0.0, 0.0
    while True:
        features = [speed / 6]
        for ray in (math.pi / 4, math.pi / 6, -math.pi / 6, -math.pi / 4):
            seen = first_crossing(x, y, -150 * math.sin(angle + ray), 150 * math.cos(angle + ray), 100.0)
            features.append(clip(min(seen, 1.0) + 0.1 * rng.gauss(0, 1), 0, 1))
        units = [math.tanh(h + b) for h, b in zip(linear(hidden, features), hidden_bias, strict=True)]
        means = [m + b for m, b in zip(linear(output, units), output_bias, strict=True)]
        gas, wheel = (clip(mean + math.sqrt(0.1) * rng.gauss(0, 1), -1, 1) for mean in means)
        speed = clip(speed + 0.5 * gas, -6, 6)
        pace = abs(speed) / 6
        angle += wheel * (10 * pace if pace < 0.1 else 1 - 0.3 * (pace - 0.1)) * math.pi / 64
        x, y = x - speed * math.sin(angle), y + speed * math.cos(angle)
        around = [angle + off for off in (math.pi / 6, -math.pi / 6, 7 * math.pi / 6, 5 * math.pi / 6)]
        corners = [(x - 25 * math.sin(corner), y + 25 * math.cos(corner)) for corner in around]
        sides = zip(corners, corners[1:] + corners[:1], strict=True)
        lost = y < 0 or any(first_crossing(*p, q[0] - p[0], q[1] - p[1], 100.0) <= 1 for p, q in sides)
        yield (-25.0 if lost else speed / 6), lost or y > 500


def cartpole(weights: Rows, rng: random.Random) -> Episode:
    state = [rng.uniform(-0.05, 0.05) for _ in range(4)]
    while True:
        _, velocity, angle, spin = state
        force = 10.0 if choose([*linear(weights, [1.0, *state]), 0.0], rng) == 0 else -10.0
        common = (force + 0.05 * spin**2 * math.sin(angle)) / 1.1
        turning = (9.8 * math.sin(angle) - math.cos(angle) * common) / (
            0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1)
        )
        slopes = (velocity, common - 0.05 * turning * math.cos(angle) / 1.1, spin, turning)
        noise = (0.002, 0.02, 0.002, 0.02)
        state = [s + 0.02 * d + n * rng.gauss(0, 1) for s, d, n in zip(state, slopes, noise, strict=True)]
        yield 1.0, abs(state[0]) > 2.4 or abs(state[2]) > math.radians(12)


LOOPS: dict[str, Callable[..., Episode]] = {
    "gridworld": gridworld,
    "continuous-gridworld": continuous_gridworld,
    "minigolf": minigolf,
    "car": car,
    "cartpole": cartpole,
}
"""The plain loop over each world."""


def agent(world: ConfMDP, space: PolicySpace) -> tuple[np.ndarray, Any]:
    """An agent whose episodes mostly last, as θ and as the lists that the loops read."""
    if world.name == "car":
        theta = np.asarray(
            jax.random.uniform(jax.random.key(1), (space.num_parameters,), minval=-0.05, maxval=0.05)
        ).copy()
        layers: Any = space.layer_indices  # type: ignore[attr-defined]
        theta[layers[-1][1]] = [0.02, -0.02]
        return theta, tuple(theta[part].tolist() for layer in layers for part in layer)
    theta = {
        "gridworld": np.eye(1, 51).ravel() * 3.0,  # walks up, as a rule
        "continuous-gridworld": np.random.default_rng(SEED).normal(0, 0.1, 100),
        "minigolf": np.array([0.12, 0.001, 0.01, 0.02, 0.01, 0.01]),
        "cartpole": np.array([0.0, 0.5, 0.5, 10.0, 3.0]),
    }[world.name]
    return theta, theta.reshape(len(space.row_names), -1).tolist()  # type: ignore[attr-defined]


def plain(name: str, weights: Any, horizon: int, episodes: int) -> tuple[int, np.ndarray]:
    """The loop itself: how many steps it made, and each episode's return."""
    rng, steps, returns = random.Random(SEED), 0, []
    for _ in range(episodes):
        total = 0.0
        for _, (reward, end) in zip(range(horizon), LOOPS[name](weights, rng), strict=False):
            total, steps = total + reward, steps + 1
            if end:
                break
        returns.append(total)
    return steps, np.array(returns)


def gymnasium_cartpole(theta: np.ndarray, mode: str, copies: int, num_steps: int = 200) -> float:
    """Steps a second of Gymnasium's CartPole-v1 under the same Boltzmann policy."""
    import gymnasium

    envs = gymnasium.make_vec("CartPole-v1", num_envs=copies, vectorization_mode=mode)
    rng = np.random.default_rng(SEED)

    def run() -> None:
        states, _ = envs.reset(seed=SEED)
        for _ in range(num_steps):
            chance = 1.0 / (1.0 + np.exp(-(states @ theta[1:] + theta[0])))
            states = envs.step((rng.random(copies) < chance).astype(np.int64))[0]

    seconds, _ = clock(run, 3, time.process_time)
    return copies * num_steps / seconds


def compare(name: str) -> list[Row]:
    """Steps a second of both, their ratio, and how far apart their mean returns are."""
    world = make_world(name)
    space = world.policy_space()
    theta, weights = agent(world, space)
    omega, key = world.default_configuration(), jax.random.key(SEED)

    def simulate() -> Any:
        return jax.block_until_ready(rollout(world, space, theta, omega, key, EPISODES))

    simulate()  # compiles
    seconds, seen = clock(simulate, 7, time.process_time)
    plain_seconds, (plain_steps, plain_returns) = clock(
        lambda: plain(name, weights, world.horizon, 200), 3, time.process_time
    )
    returns = np.asarray(seen.returns())
    fast, slow = seen.num_rows / seconds, plain_steps / plain_seconds
    error = math.sqrt(np.var(returns) / EPISODES + plain_returns.var() / len(plain_returns))
    apart = abs(float(np.mean(returns)) - plain_returns.mean()) / error
    rows = [
        (f"{name}: steps a second, plain loop", f"{slow:,.0f}", ""),
        (f"{name}: steps a second, {EPISODES:,} episodes of `rollout`", f"{fast:,.0f}", ""),
        (f"{name}: times the plain loop", f"{fast / slow:,.0f}×", ""),
        (f"{name}: mean returns apart", f"{apart:.1f} standard errors", "< 5"),
    ]
    if name == "cartpole":
        for mode, copies in (("sync", 16), ("vector_entry_point", EPISODES)):
            peer = gymnasium_cartpole(theta, mode, copies)
            rows.append((f"{name}: steps a second, Gymnasium's, {copies:,} copies, {mode}", f"{peer:,.0f}", ""))
            rows.append((f"{name}: times Gymnasium's", f"{fast / peer:,.1f}×", ""))
    return rows


def main() -> None:
    show(
        "Simulation (environment steps a second of processor time)",
        [row for name in LOOPS for row in compare(name)],
    )


if __name__ == "__main__":
    main()
