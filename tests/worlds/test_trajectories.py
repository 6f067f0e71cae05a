"""Trajectories: their shapes are checked."""

import numpy as np
import pytest

from policyspace import InputError, Trajectories


def test_trajectories_of_other_shapes_are_told() -> None:
    ones = np.ones((4, 6))
    with pytest.raises(InputError, match="need actions of shape"):
        Trajectories(np.ones((4, 7, 2)), np.ones((4, 6, 2)), np.ones((4, 5)), ones, ones.astype(bool), {})
