"""What episodes tell about a policy's parameters, without densities of the world: the mean over the episodes seen."""

import numpy as np

from policyspace.policies import PolicySpace
from policyspace.worlds.trajectories import Trajectories


def information_per_episode(space: PolicySpace, theta: np.ndarray, seen: Trajectories) -> np.ndarray:
    """E[Σ_t F(θ, s_t)] of an episode, where the episodes come from [d, d]."""
    mask = np.asarray(seen.mask, dtype=bool)
    features, actions = np.asarray(seen.features)[mask], np.asarray(seen.actions)[mask]
    root = np.asarray(space.information_root(np.asarray(theta), features[None], actions[None]))
    rows = root.reshape(-1, root.shape[-1])
    information: np.ndarray = rows.T @ rows / len(mask)
    return information
