"""Episodes of any number from one compiled program: simulating as many as are ever asked for, and keeping the first."""

from dataclasses import replace

import jax
import numpy as np

from policyspace import rollout

MOST = 80


def some_episodes(world, space, theta, omega, key, count):
    assert count <= MOST
    seen = rollout(world, space, theta, omega, key, MOST)
    names = ("states", "features", "actions", "rewards", "mask")
    return replace(seen, **{n: jax.tree.map(lambda leaf: np.asarray(leaf)[:count], getattr(seen, n)) for n in names})
