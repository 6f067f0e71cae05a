"""Data as other tools keep them: a connector is one file that recognises a source and turns it into a table with roles."""

from importlib import import_module
from typing import Any

from policyspace.data.roles import Stored

CONNECTORS = (
    "hdf5_file",  # D4RL's files
    "lerobot_folder",
    "minari_dataset",  # an object, a folder or an id
    "sb3_buffer",
    "array_dict",  # RLlib's batches too
    "episode_list",  # pairs (observations, actions), imitation's trajectories
)
"""The modules beside this one, each with `recognises(source)` and `load(source)`, in the order in which they are asked."""


def recognised(source: Any) -> Any:
    """The connector of a source, or None; a table is none of theirs, whatever its columns are called."""
    if not callable(getattr(source, "columns", len)):  # a method of this name is no table: RLlib's batches have one
        return None
    connectors = (import_module(f"policyspace.data.connectors.{name}") for name in CONNECTORS)
    return next((connector for connector in connectors if connector.recognises(source)), None)


def load(source: Any) -> Stored | None:
    """The table in a source that a connector recognises, and the roles of its columns; None if none does."""
    connector = recognised(source)
    stored: Stored | None = None if connector is None else connector.load(source)
    return stored
