"""Objects in memory: D4RL dicts, episode lists, SB3 buffers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from policyspace.data.connectors import (
    Connector,
    Episode,
    Recording,
    as_recording,
    each_array,
    episodes_by_ends,
    num_rows,
)
from policyspace.data.origin import Origin
from policyspace.data.schema import StoredTable
from policyspace.errors import InputError

# -- A dict of arrays: observations and actions with the ends of episodes, as D4RL and RLlib name them, or columns.

WORDS = {
    "observations": ("observations", "observation", "obs", "states", "features"),
    "actions": ("actions", "action", "acts"),
    "episodes": ("episodes", "episode", "eps_id", "episode_id", "episode_ids", "episode_index"),
    "terminated": ("terminated", "terminateds", "terminals", "terminations", "dones", "done"),
    "truncated": ("truncated", "truncateds", "timeouts", "truncations"),
    "reward": ("rewards", "reward"),
    "log_probability": ("log_probability", "action_logp", "log_probs"),
}
"""What tools call each thing; the first that is there counts."""

KNOWN = {word for words in WORDS.values() for word in words}


def is_array_dict(source: Any) -> bool:
    """Any mapping, such as a dict or RLlib's SampleBatch."""
    return isinstance(source, Mapping)


def load_array_dict(source: Any) -> StoredTable:
    """The rows of a mapping; without a word for observations, one array is one column."""
    import polars

    found = {thing: next((source[w] for w in words if w in source), None) for thing, words in WORDS.items()}
    observations, actions = found.pop("observations"), found.pop("actions")
    if observations is None or actions is None:
        try:
            return polars.DataFrame({str(name): np.asarray(values) for name, values in source.items()}), None
        except (ValueError, TypeError, polars.exceptions.PolarsError) as error:
            raise InputError(
                "a dict of arrays must hold 'observations' and 'actions', or columns of one length, found "
                f"{', '.join(map(repr, source))}: rename or reshape them."
            ) from error
    recorded = {name: values for name, values in found.items() if values is not None and name != "episodes"}
    if found["episodes"] is None and num_rows(observations) == num_rows(actions) + 1:
        return as_recording([(observations, actions, recorded)]).stored()
    episodes = found["episodes"]
    ends = [np.asarray(recorded[name], dtype=bool) for name in ("terminated", "truncated") if name in recorded]
    if episodes is None and ends:
        episodes = episodes_by_ends(np.any(ends, axis=0))
    others = {str(name): values for name, values in source.items() if name not in KNOWN and _is_column(values, actions)}
    return Recording(observations, actions, episodes, recorded, others).stored()


def _is_column(values: Any, actions: Any) -> bool:
    """One number or text a row?"""
    if isinstance(values, Mapping | str | bytes) or not hasattr(values, "__len__") or len(values) != num_rows(actions):
        return False
    array = np.asarray(values)
    return array.ndim == 1 and array.dtype.kind in "biufU"


# -- stable-baselines3's rollout and replay buffers.

PARTS = ("observations", "actions", "buffer_size", "n_envs", "observation_space", "action_space", "pos", "full")

STILL_LEARNING = (
    "a replay buffer holds what the agent did while it was learning: the answer is about that mixture of policies; for the "
    "agent as it is now, play it with policyspace.watch."
)


def is_buffer(source: Any) -> bool:
    """By the fields that all of these buffers have."""
    return all(hasattr(source, part) for part in PARTS)


def load_buffer(source: Any) -> StoredTable:
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
        origin=Origin(cautions=() if rollout else (STILL_LEARNING,)),
    ).stored()


# -- A list of episodes: pairs (observations, actions), dicts of arrays, or imitation's trajectories and transitions.


def is_episode_list(source: Any) -> bool:
    """Is it one trajectory, or a sequence of episodes?"""
    if _has_arrays(source):
        return True
    if isinstance(source, str | bytes) or not isinstance(source, Sequence) or not len(source):
        return False
    first = source[0]
    return (
        _has_arrays(first) or (isinstance(first, Mapping) and _entry(first, "actions") is not None) or _is_pair(first)
    )


def load_episode_list(source: Any) -> StoredTable:
    """All episodes, one after the other."""
    if _has_arrays(source) and hasattr(source, "dones"):  # transitions, which may be of several episodes
        ends = np.asarray(source.dones)
        return Recording(_plain(source.obs), source.acts, episodes_by_ends(ends), {"terminated": ends}).stored()
    episodes = [source] if _has_arrays(source) else source
    return as_recording(_episode(one, i) for i, one in enumerate(episodes)).stored()


def _episode(given: Any, number: int) -> Episode:
    if _has_arrays(given):
        ends = np.zeros(num_rows(given.acts), dtype=bool)
        ends[-1:] = given.terminal
        return _plain(given.obs), given.acts, {"terminated": ends}
    if isinstance(given, Mapping):
        observations, actions = _entry(given, "observations"), _entry(given, "actions")
        if observations is not None and actions is not None:
            return observations, actions, {}
    elif _is_pair(given):
        return given[0], given[1], {}
    raise InputError(
        f"an episode is a pair (observations, actions), or has .obs and .acts, found {type(given).__name__} as episode "
        f"{number}: give all episodes alike."
    )


def _has_arrays(given: Any) -> bool:
    return hasattr(given, "obs") and hasattr(given, "acts")


def _plain(observations: Any) -> Any:
    """imitation's own kind of dict as a dict."""
    return each_array(np.asarray, observations)


def _entry(given: Mapping[str, Any], thing: str) -> Any:
    return next((given[word] for word in WORDS[thing] if word in given), None)


def _is_pair(given: Any) -> bool:
    """Two things that both have rows; two numbers are a row of an array, not an episode."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        return False
    return all(not isinstance(inside, str) and (hasattr(inside, "__len__")) for inside in given)


ARRAY_DICT = Connector(is_array_dict, load_array_dict)
BUFFER = Connector(is_buffer, load_buffer)
EPISODE_LIST = Connector(is_episode_list, load_episode_list)
