"""Small seeded data sets; what their agents use is written into their weights."""

from typing import Any

import numpy as np

NAMES = ["near", "far", "left", "right"]
USED = np.array([0.6, 0.0, 0.3, 0.0])

DataSet = tuple[Any, Any]


def states(seed: int, n: int, q: int = 4) -> np.ndarray:
    return np.random.default_rng([seed, 0]).normal(size=(n, q))


def gaussian(seed: int = 1, n: int = 160, actions: int = 1, weights: Any = USED) -> DataSet:
    """Actions with a standard normal noise; each action uses the same features with weights of its own."""
    features = states(seed, n, len(weights))
    noise = np.random.default_rng([seed, 1]).normal(size=(n, actions))
    means = np.outer(features @ np.asarray(weights), np.linspace(1.0, -0.4, actions))
    return features, means + noise


def boltzmann(seed: int = 2, n: int = 250, actions: int = 2, weights: Any = USED) -> DataSet:
    """Actions by the softmax of logits that grow with the number of the action."""
    features = states(seed, n, len(weights))
    logits = np.outer(features @ (2 * np.asarray(weights)), np.linspace(1.0, -0.6, actions))
    noise = np.random.default_rng([seed, 1]).gumbel(size=(n, actions))
    return features, (logits + noise).argmax(axis=1)


def bent_gaussian(seed: int = 3, n: int = 150) -> DataSet:
    """For networks: the action bends with the first of three features."""
    features = states(seed, n, 3)
    noise = np.random.default_rng([seed, 1]).normal(size=(n, 1))
    return features, 1.5 * np.tanh(2 * features[:, :1]) + 0.5 * noise


def bent_boltzmann(seed: int = 4, n: int = 150) -> DataSet:
    """For networks: the odds of the two actions bend with the first of three features."""
    features = states(seed, n, 3)
    odds = 1 / (1 + np.exp(-3 * np.tanh(2 * features[:, 0])))
    return features, (np.random.default_rng([seed, 1]).random(n) < odds).astype(int)


def separated(actions: int = 2) -> DataSet:
    """The first feature alone decides, without any noise."""
    features = states(5, 80, 3)
    return features, np.digitize(features[:, 0], np.linspace(-0.8, 0.8, actions + 1)[1:-1])


def collinear(exchangeable: bool, discrete: bool) -> DataSet:
    """A last feature that is another one twice, or the sum of two others."""
    features, actions = boltzmann(6, 200) if discrete else gaussian(6)
    extra = 2 * features[:, 0] if exchangeable else features[:, 0] + features[:, 1]
    return np.column_stack([features, extra]), actions


def whole_weights(n: int) -> np.ndarray:
    return np.random.default_rng(7).integers(0, 4, n).astype(float)


def fractional_weights(n: int) -> np.ndarray:
    return np.random.default_rng(8).uniform(0.1, 2.0, n)


def frame(discrete: bool) -> Any:
    """A table with a column of categories, an action, an episode and a weight."""
    import polars

    features, actions = boltzmann(9, 240, 3) if discrete else gaussian(9, 240)
    rng = np.random.default_rng(10)
    weather = np.array(["rain", "snow", "sun"])[rng.integers(0, 3, 240)]
    flat = np.asarray(actions).reshape(-1)
    action = np.array(["brake", "coast", "drive"])[flat] if discrete else flat + (weather == "snow")
    columns = {name: features[:, i] for i, name in enumerate(NAMES[:3])}
    more = {"weather": weather, "action": action, "run": np.arange(240) // 12, "count": 1.0 + np.arange(240) % 2}
    return polars.DataFrame({**columns, **more})
