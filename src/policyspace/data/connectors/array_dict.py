"""A dict of arrays: observations and actions with the ends of episodes, as D4RL and RLlib name them, or columns."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from policyspace.data.connectors.flattening import num_rows
from policyspace.data.connectors.recording import Recording, episodes_by_ends, joined
from policyspace.data.roles import Stored
from policyspace.errors import InputError

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


def recognises(source: Any) -> bool:
    """Any mapping, such as a dict or RLlib's SampleBatch."""
    return isinstance(source, Mapping)


def load(source: Any) -> Stored:
    """The rows of a mapping; without a word for observations, one array is one column."""
    found = {thing: next((source[w] for w in words if w in source), None) for thing, words in WORDS.items()}
    observations, actions = found.pop("observations"), found.pop("actions")
    if observations is None or actions is None:
        return _table(source), None
    recorded = {name: values for name, values in found.items() if values is not None and name != "episodes"}
    if found["episodes"] is None and num_rows(observations) == num_rows(actions) + 1:
        return joined([(observations, actions, recorded)]).stored()
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


def _table(source: Mapping[str, Any]) -> Any:
    import polars

    try:
        return polars.DataFrame({str(name): np.asarray(values) for name, values in source.items()})
    except (ValueError, TypeError, polars.exceptions.PolarsError) as error:
        raise InputError(
            "a dict of arrays must hold 'observations' and 'actions', or columns of one length, found "
            f"{', '.join(map(repr, source))}: rename or reshape them."
        ) from error
