"""Agents whose actions are real numbers."""

from collections.abc import Callable

import numpy as np

from benchmarks.honesty.scenario import Array, Scenario, drifting, equal_episodes, inputs, network, smooth


def linear_gaussian(seed: int) -> Scenario:
    """Every assumption holds."""
    rng = np.random.default_rng(seed)
    features, noise = rng.normal(size=(500, 6)), rng.normal(size=500)
    weights = np.array([0.3, 0.2, 0.12, 0, 0, 0])
    words = "linear, normal noise, independent rows: every assumption of Wilks' test holds"
    return Scenario(
        features, inputs(6), lambda x: x @ weights + noise, frozenset(inputs(3)), words, equal_episodes(10, 50)
    )


def small_gaussian(seed: int) -> Scenario:
    """Every assumption holds, on few rows."""
    rng = np.random.default_rng(seed)
    features, noise = rng.normal(size=(60, 5)), rng.normal(size=60)
    words = "linear, normal noise, 60 rows"
    return Scenario(
        features, inputs(5), lambda x: 0.6 * x[:, 0] + 0.4 * x[:, 1] + noise, frozenset({"x1", "x2"}), words
    )


def curved_drift(seed: int) -> Scenario:
    """The mean is a parabola and all inputs drift, so that the misfit and an unused input drift together by chance."""
    rng = np.random.default_rng(seed)
    features, noise = drifting(rng, 10, 100, 4), 0.5 * rng.normal(size=1000)
    words = "a = x1 + x1² + noise; x1 and three unused inputs drift (AR(.9))"
    return Scenario(
        features,
        inputs(4),
        lambda x: x[:, 0] + x[:, 0] ** 2 + noise,
        frozenset({"x1"}),
        words,
        equal_episodes(10, 100),
    )


def squared_proxy(seed: int) -> Scenario:
    """An unused input stands in for the curvature that a linear space lacks."""
    rng = np.random.default_rng(seed)
    x, noise = rng.normal(size=1000), 0.5 * rng.normal(size=1000)
    features = np.column_stack([x, 0.5 * x**2 + rng.normal(size=1000), rng.normal(size=1000)])
    words = "a = x1 + x1² + noise beside an unused z = ½x1² + noise"
    return Scenario(
        features,
        ("x1", "z", "x2"),
        lambda f: f[:, 0] + f[:, 0] ** 2 + noise,
        frozenset({"x1"}),
        words,
        equal_episodes(20, 50),
    )


def noise_by_state(seed: int) -> Scenario:
    """The agent is less sure far from the centre, where an unused input happens to be larger, too."""
    rng = np.random.default_rng(seed)
    x, normal = rng.normal(size=1000), rng.normal(size=1000)
    features = np.column_stack([x, (0.2 + x**2) * rng.normal(size=1000), rng.normal(size=1000)])
    words = "a = ½x1 + (0.3 + x1²)·noise; the unused z is large where the noise is"
    return Scenario(
        features,
        ("x1", "z", "x2"),
        lambda f: 0.5 * f[:, 0] + (0.3 + f[:, 0] ** 2) * normal,
        frozenset({"x1"}),
        words,
        equal_episodes(20, 50),
    )


def heavy_tails(seed: int) -> Scenario:
    """Linear, but now and then the agent is far off."""
    rng = np.random.default_rng(seed)
    features, noise = rng.normal(size=(500, 6)), rng.standard_t(3, size=500)
    words = "linear, noise with the tails of Student's t with 3 degrees of freedom"
    return Scenario(
        features,
        inputs(6),
        lambda x: 0.4 * x[:, 0] + 0.25 * x[:, 1] + noise,
        frozenset({"x1", "x2"}),
        words,
        equal_episodes(10, 50),
    )


def held_actions(seed: int) -> Scenario:
    """The agent decides at every fourth row and keeps its action in between."""
    rng = np.random.default_rng(seed)
    features, noise = drifting(rng, 20, 48, 4), rng.normal(size=240)
    words = "linear, but each action is kept for 4 rows; all inputs drift (AR(.9))"

    def agent(x: Array) -> Array:
        return np.repeat(0.6 * x[::4, 0] + 0.4 * x[::4, 1] + noise, 4)

    return Scenario(features, inputs(4), agent, frozenset({"x1", "x2"}), words, equal_episodes(20, 48))


def _habit(seed: int) -> Scenario:
    rng = np.random.default_rng(seed)
    features, noise = drifting(rng, 20, 50, 4), rng.normal(size=(20, 50))
    words = "a = 0.7·(the action before) + 0.4·x1 + noise; all inputs drift (AR(.9))"

    def agent(x: Array) -> Array:
        drive = 0.4 * x[:, 0].reshape(20, 50) + noise
        actions = np.empty_like(drive)
        before = np.zeros(20)
        for t in range(50):
            actions[:, t] = before = 0.7 * before + drive[:, t]
        return actions.ravel()

    return Scenario(features, inputs(4), agent, frozenset({"x1"}), words, equal_episodes(20, 50))


def habit(seed: int) -> Scenario:
    """Each action is partly the one before, which the log does not list among the inputs."""
    return _habit(seed)


def habit_without_episodes(seed: int) -> Scenario:
    """The same, and nobody wrote down where episodes begin."""
    known = _habit(seed)
    return Scenario(
        known.features, known.names, known.agent, known.used, f"{known.words}; the log has no episode column"
    )


def own_intercepts(seed: int) -> Scenario:
    """Every episode has its own level, and an unused input is constant within an episode."""
    rng = np.random.default_rng(seed)
    episodes = equal_episodes(20, 50)
    constant, level, noise = rng.normal(size=20)[episodes], 0.5 * rng.normal(size=20)[episodes], rng.normal(size=1000)
    features = np.column_stack([rng.normal(size=(1000, 2)), constant])
    words = "a = 0.3·x1 + (a level of the episode) + noise; the unused z is constant within an episode"
    return Scenario(
        features, ("x1", "x2", "z"), lambda x: 0.3 * x[:, 0] + level + noise, frozenset({"x1"}), words, episodes
    )


def own_slopes(seed: int) -> Scenario:
    """Every subject reacts in its own way, about an input that has a mean of its own for every subject."""
    rng = np.random.default_rng(seed)
    subjects = equal_episodes(20, 50)
    slope, noise = (0.6 + 0.4 * rng.normal(size=20))[subjects], rng.normal(size=1000)
    x = rng.normal(size=20)[subjects] + rng.normal(size=1000)
    z = 1.5 * rng.normal(size=20)[subjects] + 0.5 * rng.normal(size=1000)
    words = "a = (a slope of the subject)·x1 + noise; x1 and the unused z differ between 20 subjects"
    return Scenario(
        np.column_stack([x, z, rng.normal(size=1000)]),
        ("x1", "z", "x2"),
        lambda f: slope * f[:, 0] + noise,
        frozenset({"x1"}),
        words,
        episodes=equal_episodes(100, 10),
        subjects=subjects,
    )


def own_footsteps(seed: int) -> Scenario:
    """Later states are made of earlier actions: an unused position is the sum of all actions so far."""
    rng = np.random.default_rng(seed)
    x, noise = rng.normal(size=(10, 50)), rng.normal(size=(10, 50))
    steps = 0.3 * x + noise
    position = np.cumsum(steps, axis=1) - steps
    words = "a = 0.3·x1 + noise; the unused position is the sum of the episode's actions so far"
    return Scenario(
        np.column_stack([x.ravel(), position.ravel()]),
        ("x1", "position"),
        lambda f: 0.3 * f[:, 0] + noise.ravel(),
        frozenset({"x1"}),
        words,
        equal_episodes(10, 50),
    )


def greedy_continuous(seed: int) -> Scenario:
    """No noise at all: what a regression misses is a smooth function of smooth states."""
    rng = np.random.default_rng(seed)
    words = "no noise: a = tanh(2·x1 + sin(3·x2)) on smooth states, beside two unused smooth inputs"
    return Scenario(
        smooth(rng, 20, 50, 4),
        inputs(4),
        lambda x: np.tanh(2 * x[:, 0] + np.sin(3 * x[:, 1])),
        frozenset({"x1", "x2"}),
        words,
        equal_episodes(20, 50),
    )


def wide_network(seed: int, num_episodes: int = 10) -> Scenario:
    """Many inputs and actions, few rows: more curvature than any regression could learn from them."""
    rng, num_rows = np.random.default_rng(seed), 200 * num_episodes
    features, mean = drifting(rng, num_episodes, 200, 17), network(rng, (10, 64, 64, 6), gain=1.5)
    noise = 0.3 * rng.normal(size=(num_rows, 6))
    words = (
        f"a 64×64 tanh network moves 6 actions by 10 of 17 drifting inputs (AR(.9)), {num_rows} rows in {num_episodes} "
        "episodes"
    )
    return Scenario(
        features,
        inputs(17),
        lambda x: mean(x[:, :10]) + noise,
        frozenset(inputs(10)),
        words,
        equal_episodes(num_episodes, 200),
    )


def wide_network_longer(seed: int) -> Scenario:
    """The same with more rows, by which richer regressions can be fitted, but not yet well."""
    return wide_network(seed, 25)


CONTINUOUS: dict[str, Callable[[int], Scenario]] = {
    "linear-gaussian": linear_gaussian,
    "small-gaussian": small_gaussian,
    "curved-drift": curved_drift,
    "squared-proxy": squared_proxy,
    "noise-by-state": noise_by_state,
    "heavy-tails": heavy_tails,
    "held-actions": held_actions,
    "habit": habit,
    "habit-without-episodes": habit_without_episodes,
    "own-intercepts": own_intercepts,
    "own-slopes": own_slopes,
    "own-footsteps": own_footsteps,
    "greedy-continuous": greedy_continuous,
    "wide-network": wide_network,
    "wide-network-longer": wide_network_longer,
}
