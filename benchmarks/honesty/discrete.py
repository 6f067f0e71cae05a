"""Agents that choose between a few actions."""

from collections.abc import Callable

import numpy as np

from benchmarks.honesty.scenario import Array, Scenario, at_random, drifting, equal_episodes, inputs, network, smooth


def _linear_choice(seed: int, num_rows: int, weights: Array, words: str, episodes: Array | None) -> Scenario:
    """A Boltzmann agent of weights [k, q], the last of the k + 1 actions being the reference."""
    rng = np.random.default_rng(seed)
    k, q = weights.shape
    features = rng.normal(size=(num_rows, q))

    def scores(x: Array) -> Array:
        return np.column_stack([x @ weights.T, np.zeros(len(x))])

    used = frozenset(name for name, column in zip(inputs(q), weights.T, strict=True) if column.any())
    return Scenario(features, inputs(q), at_random(rng, scores, num_rows, k + 1), used, words, episodes)


def linear_boltzmann(seed: int) -> Scenario:
    """Every assumption holds."""
    weights = np.array([[0.6, 0.3, 0, 0, 0, 0], [0, -0.3, 0.35, 0, 0, 0]])
    words = "linear softmax of 3 actions, independent rows: every assumption of Wilks' test holds"
    return _linear_choice(seed, 500, weights, words, equal_episodes(10, 50))


def small_boltzmann(seed: int) -> Scenario:
    """Every assumption holds, on few rows."""
    weights = np.array([[1.2, 0.0, 0, 0, 0], [0, 1.0, 0, 0, 0]])
    return _linear_choice(seed, 100, weights, "linear softmax of 3 actions, 100 rows", None)


def separated(seed: int) -> Scenario:
    """So regular that no finite weight is most likely."""
    weights = np.zeros((1, 10))
    weights[0, :3] = 12, 9, 6
    return _linear_choice(seed, 100, weights, "two actions, nearly deterministic; 100 rows and 10 inputs", None)


def network_choice(seed: int) -> Scenario:
    """A softmax of a random network: curved, with noise."""
    rng = np.random.default_rng(seed)
    features, scores = drifting(rng, 20, 100, 6), network(rng, (3, 16, 4), gain=2.0)
    words = "softmax of a random tanh network: 4 actions by 3 of 6 drifting inputs (AR(.9))"
    return Scenario(
        features,
        inputs(6),
        at_random(rng, lambda x: scores(x[:, :3]), 2000, 4),
        frozenset(inputs(3)),
        words,
        equal_episodes(20, 100),
    )


def held_choice(seed: int) -> Scenario:
    """The agent chooses at every fourth row and keeps its choice in between."""
    rng = np.random.default_rng(seed)
    features = drifting(rng, 20, 48, 4)
    choose = at_random(rng, lambda x: np.column_stack([1.5 * x[:, 0], x[:, 1], np.zeros(len(x))]), 240, 3)
    words = "linear softmax of 3 actions, but each is kept for 4 rows; all inputs drift (AR(.9))"
    return Scenario(
        features,
        inputs(4),
        lambda x: np.repeat(choose(x[::4]), 4),
        frozenset({"x1", "x2"}),
        words,
        equal_episodes(20, 48),
    )


def _greedy(seed: int, curved: bool, words: str) -> Scenario:
    """The best of three actions, always: by a random network or by linear scores of the first two of four inputs."""
    rng = np.random.default_rng(seed)
    features = smooth(rng, 20, 50, 4)
    # Without biases scores change their sign with the state, so that no action is best everywhere.
    scores = network(rng, (2, 16, 3) if curved else (2, 3), gain=2.0, bias=0.0)
    return Scenario(
        features,
        inputs(4),
        lambda x: np.argmax(scores(x[:, :2]), axis=1),
        frozenset({"x1", "x2"}),
        words,
        equal_episodes(20, 50),
    )


def greedy_network(seed: int) -> Scenario:
    """Curved boundaries between actions, no noise."""
    return _greedy(seed, True, "no noise: the best of 3 actions by a random tanh network of x1 and x2, smooth states")


def greedy_linear(seed: int) -> Scenario:
    """Straight boundaries between actions, no noise."""
    return _greedy(seed, False, "no noise: the best of 3 actions by linear scores of x1 and x2, smooth states")


def related_sensors(seed: int, num_sensors: int = 12, num_episodes: int = 20) -> Scenario:
    """Sensors that are curved functions of the same few causes, so that the others tell much of each."""
    rng = np.random.default_rng(seed)
    causes, num_used = drifting(rng, num_episodes, 50, 8), num_sensors // 3
    sensors = np.tanh(causes @ rng.normal(size=(8, num_sensors)) / 2)
    sensors[:, ::3] += (causes @ rng.normal(size=(8, num_sensors)))[:, ::3] ** 2 / 16
    sensors += 0.15 * rng.normal(size=sensors.shape)
    outputs = network(rng, (num_used, 8, 1), gain=3.0, bias=1.0)
    words = (
        f"softmax of a random tanh network of {num_used} of {num_sensors} sensors, which are noisy curved functions of "
        f"the same 8 drifting causes; {len(sensors)} rows"
    )
    return Scenario(
        sensors,
        inputs(num_sensors),
        at_random(rng, lambda x: np.column_stack([outputs(x[:, :num_used])[:, 0], np.zeros(len(x))]), len(sensors), 2),
        frozenset(inputs(num_used)),
        words,
        equal_episodes(num_episodes, 50),
    )


def many_related_sensors(seed: int) -> Scenario:
    """The same with more of them, and more rows."""
    return related_sensors(seed, 20, 40)


DISCRETE: dict[str, Callable[[int], Scenario]] = {
    "linear-boltzmann": linear_boltzmann,
    "small-boltzmann": small_boltzmann,
    "separated": separated,
    "network-choice": network_choice,
    "held-choice": held_choice,
    "greedy-network": greedy_network,
    "greedy-linear": greedy_linear,
    "related-sensors": related_sensors,
    "many-related-sensors": many_related_sensors,
}
