"""stable-baselines3's rollout and replay buffers."""

from typing import Any

import numpy as np

from policyspace.data.connectors.flattening import each_array
from policyspace.data.connectors.recording import Recording
from policyspace.data.roles import Stored
from policyspace.errors import InputError

PARTS = ("observations", "actions", "buffer_size", "n_envs", "observation_space", "action_space", "pos", "full")

STILL_LEARNING = (
    "a replay buffer holds what the agent did while it was learning: the answer is about that mixture of policies; for the "
    "agent as it is now, play it with policyspace.watch."
)


def recognises(source: Any) -> bool:
    """By the fields that all of these buffers have."""
    return all(hasattr(source, part) for part in PARTS)


def load(source: Any) -> Stored:
    """The rows in the order in which they were played, one environment after the other."""
    rollout = hasattr(source, "episode_starts")
    rows = np.arange(source.buffer_size if source.full else source.pos)
    if source.full and not rollout:  # a ring, whose oldest row is where the next one will be written
        rows = np.roll(rows, -source.pos)[1 if getattr(source, "optimize_memory_usage", False) else 0 :]
    if not len(rows):
        raise InputError("the buffer must hold what was played, found it empty: collect some steps first.")
    flat = bool(getattr(source, "generator_ready", False))  # training has laid the environments one after the other

    def ordered(array: np.ndarray, flat: bool = False) -> np.ndarray:
        return array if flat else np.concatenate(list(array[rows].swapaxes(0, 1)))

    if rollout:
        starts = source.episode_starts[rows].astype(bool)
        recorded = {"log_probability": ordered(source.log_probs, flat), "reward": ordered(source.rewards)}
    else:
        ends, timeouts = source.dones[rows].astype(bool), source.timeouts[rows].astype(bool)
        starts = np.roll(ends, 1, axis=0)
        recorded = {
            "terminated": (ends & ~timeouts).T.ravel(),
            "truncated": timeouts.T.ravel(),
            "reward": ordered(source.rewards),
        }
    starts[0] = True
    return Recording(
        each_array(lambda array: ordered(array, flat), source.observations),
        ordered(source.actions, flat),
        np.cumsum(starts.T.ravel()) - 1,
        recorded,
        observation_space=source.observation_space,
        action_space=source.action_space,
        metadata={} if rollout else {"cautions": [STILL_LEARNING]},
    ).stored()
