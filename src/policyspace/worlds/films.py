"""An episode as a film, or as a strip of pictures."""

from pathlib import Path

import numpy as np

from policyspace.data.whole_file import replacing
from policyspace.errors import InputError
from policyspace.policies.jax_setup import jax
from policyspace.worlds.confmdp import ConfMDP
from policyspace.worlds.pictures import picture
from policyspace.worlds.trajectories import Trajectories

FRAMES = {".gif": 60, ".png": 6}
"""How many moments of an episode are shown, at most: a film stays small, a strip can be read."""


def draw_episode(world: ConfMDP, trajectories: Trajectories, path: str | Path) -> None:
    """The first episode, from its start to its end, as a GIF or a strip in a PNG; whole, or not at all."""
    from PIL import Image

    suffix = Path(path).suffix.lower()
    if suffix not in FRAMES:
        raise InputError(f"{path}: the name must end in .gif or .png: choose another name.")
    states = _states(trajectories)
    moments = np.linspace(0, len(states) - 1, min(len(states), FRAMES[suffix])).round().astype(int)
    frames = [picture(world, states[: t + 1], trajectories.configuration) for t in moments]
    with replacing(path) as file:
        if suffix == ".gif":
            first, *rest = [Image.fromarray(frame) for frame in frames]
            durations = [120] * len(rest) + [1500]  # the end stays a while
            first.save(file, format="GIF", save_all=True, append_images=rest, duration=durations, loop=0)
        else:
            Image.fromarray(_strip(frames)).save(file, format="PNG")


def _strip(frames: list[np.ndarray]) -> np.ndarray:
    """Pictures side by side; wide ones in rows of two."""
    height, width = frames[0].shape[:2]
    columns = len(frames) if width < 1.5 * height else min(2, len(frames))
    blanks = [np.full_like(frames[0], 255)] * (-len(frames) % columns)
    rows = [np.concatenate((frames + blanks)[i : i + columns], axis=1) for i in range(0, len(frames), columns)]
    return np.concatenate(rows, axis=0)


def _states(trajectories: Trajectories) -> np.ndarray:
    """The states of the first episode up to its end [t+1, s], all numbers of a state in one row."""
    length = int(trajectories.lengths[0]) + 1
    leaves = [np.asarray(leaf, dtype=np.float64)[0, :length] for leaf in jax.tree.leaves(trajectories.states)]
    return np.concatenate([leaf.reshape(length, -1) for leaf in leaves], axis=1)
