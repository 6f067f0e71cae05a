"""Agents of stable-baselines3 from their files, and functions of a user's own by name."""

import json
import zipfile
from pathlib import Path
from typing import Any

from policyspace.errors import InputError
from policyspace.worlds.own_code import imported

TELLING = (
    ("clip_range", "PPO"),
    ("target_entropy", "SAC"),
    ("policy_delay", "TD3"),
    ("exploration_rate", "DQN"),
    ("gae_lambda", "A2C"),
)
"""A setting that a file of each algorithm has, and none before it in the list: files do not name their algorithm."""


def load_agent_or_function(text: str) -> Any:
    """A model of stable-baselines3 from `model.zip`, or a function written `module:function`."""
    return load_model(Path(text)) if text.lower().endswith(".zip") else imported(text, "the agent")


def load_model(path: Path) -> Any:
    """The model in a file of stable-baselines3. Such files hold code: open only those that you trust."""
    try:
        with zipfile.ZipFile(path) as archive:
            settings = json.loads(archive.read("data"))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: is no model of stable-baselines3: save one with model.save().") from error
    name = next((algorithm for setting, algorithm in TELLING if setting in settings), None)
    if name is None:
        known = ", ".join(algorithm for _, algorithm in TELLING)
        raise InputError(f"{path}: is a model of none of {known}: give a function module:function instead.")
    try:
        import stable_baselines3
    except ImportError as error:
        raise InputError("models of stable-baselines3 need it: pip install 'policyspace[agents]'.") from error
    return getattr(stable_baselines3, name).load(path, device="cpu")
