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


# -- agents that no linear policy of independent rows describes, in tables -----------------------------------------------


def _table(features: np.ndarray, actions: np.ndarray, discrete: bool, **more: Any) -> Any:
    """Columns near, far, …, and an action of amounts, or of labels by its sign."""
    import polars

    label = np.array(["stay", "go"])[(actions > 0).astype(int)]
    columns = {NAMES[i]: features[:, i] for i in range(features.shape[1])}
    return polars.DataFrame({**columns, "action": label if discrete else actions, **more})


def smoothed(noise: np.ndarray, share: float) -> np.ndarray:
    """A chain in which a share of each entry is the one before."""
    chain = noise.copy()
    for t in range(1, len(chain)):
        chain[t] = share * chain[t - 1] + np.sqrt(1 - share**2) * noise[t]
    return chain


def rows_alone(discrete: bool, n: int = 400, bend: float = 0.0) -> Any:
    """Independent rows; with a bend, the action is no linear function of the first feature."""
    rng = np.random.default_rng(22)
    features, noise = states(21, n), rng.logistic(size=n) if discrete else rng.normal(size=n)
    return _table(features, features @ USED * 1.5 + bend * features[:, 1] ** 2 + noise, discrete)


def one_long_log(discrete: bool, n: int = 600) -> Any:
    """Inputs and noise that last over many rows, without episodes."""
    features = smoothed(states(23, n), 0.8)
    noise = smoothed(np.random.default_rng(24).normal(size=n), 0.7)
    return _table(features, features @ USED * 1.5 + noise, discrete)


def in_episodes(discrete: bool, num: int = 60, length: int = 8) -> Any:
    """A mood of its own in each episode, known by a column that is the same in all its rows."""
    rng, run = np.random.default_rng(25), np.repeat(np.arange(num), length)
    features = states(26, num * length, 3)
    features[:, 2] = rng.normal(size=num)[run]
    noise = rng.normal(size=num * length) + rng.normal(size=num)[run]
    return _table(features, features @ USED[:3] * 2 + noise, discrete, run=run)


def of_people(discrete: bool, num: int = 40, each: int = 10) -> Any:
    """People who differ in what they do anyway, and stand for different parts of a population."""
    rng, who = np.random.default_rng(27), np.repeat(np.arange(num), each)
    features = states(28, num * each)
    noise = rng.normal(size=num * each) + 0.8 * rng.normal(size=num)[who]
    name = np.array([f"person {i:02}" for i in range(num)])[who]
    share, sex = rng.uniform(0.5, 2.0, num * each), np.array(["f", "m"])[who % 2]
    return _table(features, features @ USED * 2 + noise, discrete, who=name, share=share, sex=sex)


# -- choices among alternatives ------------------------------------------------------------------------------------------

MODES = ("bus", "car", "train")


def trips(n: int = 240) -> Any:
    """One row a choice: costs and times of all alternatives; the car is not always there."""
    import polars

    rng = np.random.default_rng(29)
    cost, time = rng.gamma(4.0, size=(2, n, 3)).round(2)
    there = np.column_stack([np.ones(n), rng.random(n) < 0.7, np.ones(n)]).astype(int)
    known = rng.normal(size=(n, 3)).round(2)
    income = rng.normal(size=n).round(2)
    utility = np.where(there, -0.6 * cost - 0.05 * time + known + rng.gumbel(size=(n, 3)), -np.inf)
    columns = {"mode": np.array(MODES)[utility.argmax(axis=1)], "income": income, "day": np.arange(n) // 6}
    for name, values in (("cost", cost), ("time", time), ("known", known), ("av", there)):
        columns |= {f"{name}_{mode}": values[:, j] for j, mode in enumerate(MODES)}
    return polars.DataFrame(columns)


def long_trips(n: int = 240) -> Any:
    """The same, with one row an alternative that is there."""
    import polars

    own = ("cost", "time", "known")
    rows = [
        {"trip": i, "which": mode, "chosen": mode == row["mode"], "income": row["income"], "day": row["day"]}
        | {name: row[f"{name}_{mode}"] for name in own}
        for i, row in enumerate(trips(n).to_dicts())
        for mode in MODES
        if row[f"av_{mode}"]
    ]
    return polars.DataFrame(rows)
