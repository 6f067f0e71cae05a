"""How often something unused is called used, over agents that break a policy model's assumptions."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

from policyspace.inference import ScoreTest

LEVEL = 0.05
Log = tuple[np.ndarray, np.ndarray, np.ndarray, frozenset[int]]


def drifting(rng: np.random.Generator, num_episodes: int, length: int, num_inputs: int) -> np.ndarray:
    """AR(.9) inputs [episodes, steps, inputs]."""
    x = rng.standard_normal((num_episodes, length, num_inputs))
    for t in range(1, length):
        x[:, t] = 0.9 * x[:, t - 1] + np.sqrt(0.19) * x[:, t]
    return x


def curved(rng: np.random.Generator) -> Log:
    x = drifting(rng, 10, 100, 5)
    a = x[..., 0] + x[..., 0] ** 2 + rng.standard_normal(x.shape[:2])
    x[..., 4] = x[..., 0] ** 2 / 2 + 0.5 * rng.standard_normal(x.shape[:2])
    return *_flat(x, a), frozenset({0})


def state_dependent_noise(rng: np.random.Generator) -> Log:
    x = drifting(rng, 10, 100, 5)
    x[..., 1] = 0.6 * x[..., 0] + 0.8 * x[..., 1]
    a = 0.5 * x[..., 0] + np.exp(0.7 * x[..., 0]) * rng.standard_normal(x.shape[:2])
    return *_flat(x, a), frozenset({0})


def held(rng: np.random.Generator) -> Log:
    x = drifting(rng, 10, 200, 5)
    a = 0.5 * x[..., 0] + 0.5 * x[..., 1] + rng.standard_normal(x.shape[:2])
    return *_flat(x, np.repeat(a[:, ::4], 4, axis=1)), frozenset({0, 1})


def own_intercepts(rng: np.random.Generator) -> Log:
    x = drifting(rng, 20, 50, 5)
    x[..., 4] = rng.standard_normal((20, 1))
    a = 0.4 * x[..., 0] + 0.4 * x[..., 1] + 0.7 * rng.standard_normal((20, 1)) + rng.standard_normal(x.shape[:2])
    return *_flat(x, a), frozenset({0, 1})


def sharp(rng: np.random.Generator) -> Log:
    """Labels that change over at a line, with some chance, beside unused sensors of the same causes."""
    causes = drifting(rng, 40, 20, 3)
    x = np.concatenate([causes, np.tanh(2 * (causes - np.roll(causes, 1, axis=2)))], axis=2)
    x[..., 3:] += 0.2 * rng.standard_normal(x.shape)[..., 3:]
    a = (x[..., 0] + x[..., 1] > 0) ^ (rng.random(x.shape[:2]) < 0.15)
    return *_flat(x, a.astype(int)), frozenset({0, 1})


def _flat(x: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    num_episodes, length, num_inputs = x.shape
    return x.reshape(-1, num_inputs), a.ravel(), np.repeat(np.arange(num_episodes), length)


def selected(log: Log, seed: int) -> set[int]:
    """What Holm selects at the level."""
    x, a, episodes, _ = log
    num = x.shape[1]
    labels = 2 if np.issubdtype(a.dtype, np.integer) else None
    singles = [(i,) for i in range(num)]
    results = ScoreTest(x, a, singles, labels, episodes=episodes, significance=LEVEL, seed=seed).one_out()
    chosen: set[int] = set()
    for rank, group in enumerate(sorted(results, key=lambda g: results[g].p_value)):
        if results[group].p_value > LEVEL / (num - rank):
            break
        chosen.add(group)
    return chosen


def false_and_found(agent: Callable[[np.random.Generator], Log], seeds: range) -> tuple[int, float]:
    """Runs with a false selection, and the share of used inputs that were selected."""
    false, found, used = 0, 0, 0
    for seed in seeds:
        log = agent(np.random.default_rng(seed))
        chosen = selected(log, seed)
        false += bool(chosen - log[3])
        found += len(chosen & log[3])
        used += len(log[3])
    return false, found / used


AGENTS = [curved, state_dependent_noise, held, own_intercepts, sharp]


@pytest.mark.parametrize("agent", AGENTS)
def test_few_false_selections_and_most_used_inputs_found(agent):
    false, found = false_and_found(agent, range(5000, 5012))
    assert false <= binom.ppf(0.999, 12, LEVEL)
    assert found >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
def test_false_selections_stay_at_the_level(agent):
    false, found = false_and_found(agent, range(6000, 6200))
    assert false <= binom.ppf(0.999, 200, LEVEL)
    assert found >= 0.85
