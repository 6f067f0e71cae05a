"""Episodes of an agent in a Gymnasium environment, played one after the other and kept as trajectories."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from policyspace.environments.player import Player
from policyspace.worlds.trajectories import Trajectories

Act = Callable[[Any, bool], Any]
"""An agent while it acts: an action of the environment's own kind for an observation, and whether an episode starts."""

LONGEST = 1000
"""Steps after which an episode of an environment that sets no limit is cut off."""


def acting(agent: Any, seed: int) -> Act:
    """What an agent does: a function of the observation, or anything with a `predict` like stable-baselines3's models.

    A model draws its actions by its own chances, which begin at the seed where it can set them.
    """
    player = Player(agent)
    player.seed(seed)
    return lambda observation, starts: player.act(observation, np.array([starts]))


def play(
    env: Any,
    act: Act,
    num_episodes: int,
    seed: int,
    configuration: Mapping[str, Any] | None = None,
    most_steps: int | None = None,
) -> Trajectories:
    """Episodes at one configuration; the first one is seeded.

    With `most_steps`, no episode begins once there are so many. Observations are flattened to numbers; discrete actions
    become codes from 0.
    """
    from gymnasium.spaces import flatten

    first = int(getattr(env.action_space, "start", 0))
    rows: list[list[np.ndarray]] = []
    actions: list[list[Any]] = []
    rewards: list[list[float]] = []
    while len(rows) < num_episodes and (most_steps is None or sum(map(len, rows)) < most_steps):
        observation, _ = env.reset(seed=seed if not rows else None)
        rows.append([])
        actions.append([])
        rewards.append([])
        ended = False
        while not ended and len(rows[-1]) < LONGEST:
            action = act(observation, not rows[-1])
            rows[-1].append(flatten(env.observation_space, observation))
            actions[-1].append(np.asarray(action))
            observation, reward, terminated, truncated, _ = env.step(action)
            rewards[-1].append(float(reward))
            ended = bool(terminated or truncated)
    mask = np.arange(max(map(len, rows)))[None, :] < np.array([len(row) for row in rows])[:, None]
    codes = _padded(actions, mask)
    if codes.dtype.kind in "iub":
        codes = np.where(mask, codes.reshape(mask.shape) - first, 0)
    known = {name: np.asarray(value, dtype=np.float64) for name, value in (configuration or {}).items()}
    return Trajectories((), _padded(rows, mask).astype(np.float64), codes, _padded(rewards, mask), mask, known)


def _padded(episodes: list[Any], mask: np.ndarray) -> np.ndarray:
    """Lists of different lengths as one array, zero behind an episode's end."""
    values = np.array([value for episode in episodes for value in episode])
    padded = np.zeros((*mask.shape, *values.shape[1:]), dtype=values.dtype)
    padded[mask] = values
    return padded
