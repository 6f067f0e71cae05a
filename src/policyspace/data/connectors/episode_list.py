"""A list of episodes: pairs (observations, actions), dicts of arrays, or imitation's trajectories and transitions."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from policyspace.data.connectors.array_dict import WORDS
from policyspace.data.connectors.flattening import each_array, num_rows
from policyspace.data.connectors.recording import Recording, episodes_by_ends, joined
from policyspace.data.roles import Stored
from policyspace.errors import InputError

Episode = tuple[Any, Any, dict[str, Any]]


def recognises(source: Any) -> bool:
    """Is it one trajectory, or a sequence of episodes?"""
    if _has_arrays(source):
        return True
    if isinstance(source, str | bytes) or not isinstance(source, Sequence) or not len(source):
        return False
    first = source[0]
    return (
        _has_arrays(first) or (isinstance(first, Mapping) and _entry(first, "actions") is not None) or _is_pair(first)
    )


def load(source: Any) -> Stored:
    """All episodes, one after the other."""
    if _has_arrays(source) and hasattr(source, "dones"):  # transitions, which may be of several episodes
        ends = np.asarray(source.dones)
        return Recording(_plain(source.obs), source.acts, episodes_by_ends(ends), {"terminated": ends}).stored()
    episodes = [source] if _has_arrays(source) else source
    return joined(_episode(one, i) for i, one in enumerate(episodes)).stored()


def _episode(given: Any, number: int) -> Episode:
    if _has_arrays(given):
        recorded = {"terminated": _at_the_end(given.acts, given.terminal)}
        return _plain(given.obs), given.acts, recorded
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


def _at_the_end(actions: Any, terminal: bool) -> np.ndarray:
    ends = np.zeros(num_rows(actions), dtype=bool)
    ends[-1:] = terminal
    return ends


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
