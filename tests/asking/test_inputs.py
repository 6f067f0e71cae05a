"""Inputs: their names, and that replacing one changes exactly what it is made of."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from policyspace import InputError
from policyspace.asking import Inputs


def drawn(space, n=30, seed=0):
    space.seed(seed)
    rows = [space.sample() for _ in range(n)]
    if isinstance(space, spaces.Dict):
        return {key: np.stack([row[key] for row in rows]) for key in space}
    if isinstance(space, spaces.Tuple):
        return tuple(np.stack([row[i] for row in rows]) for i in range(len(space.spaces)))
    return np.stack(rows)


SPACES = {
    "box": spaces.Box(-1, 1, (4,)),
    "matrix": spaces.Box(-1, 1, (2, 3)),
    "discrete": spaces.Discrete(5),
    "multi-discrete": spaces.MultiDiscrete([2, 3]),
    "multi-binary": spaces.MultiBinary(3),
    "dict": spaces.Dict(arm=spaces.Box(-1, 1, (2,)), lamp=spaces.Discrete(3), map=spaces.Box(0, 255, (8, 8, 3), np.uint8)),
    "tuple": spaces.Tuple((spaces.Discrete(4), spaces.Box(-1, 1, (2,)))),
    "image": spaces.Box(0, 255, (36, 30, 3), np.uint8),
    "channels first": spaces.Box(0, 255, (4, 36, 30), np.uint8),
    "grey": spaces.Box(0, 255, (20, 20), np.uint8),
    "frames of images": spaces.Box(0, 255, (4, 36, 30, 3), np.uint8),
    "cells": spaces.Box(0, 255, (7, 7, 3), np.uint8),
}  # fmt: skip


def arrays(values):
    if isinstance(values, dict):
        return [np.asarray(one) for one in values.values()]
    return [np.asarray(one) for one in values] if isinstance(values, tuple) else [np.asarray(values)]


@pytest.mark.parametrize("name", SPACES)
def test_replacing_every_group_gives_the_donors_and_each_number_belongs_to_one_group(name):
    space = SPACES[name]
    inputs, rows, donors = Inputs.of(space), drawn(space), drawn(space, seed=1)
    kept = [array.copy() for array in arrays(rows)]
    changed = rows
    times = [np.zeros(array.shape[1:]) for array in arrays(rows)]
    for group in inputs.groups:
        one = inputs.replaced(rows, group, donors)
        for where, before, after, given in zip(times, arrays(rows), arrays(one), arrays(donors), strict=True):
            moved = (before != after).any(axis=0)
            where += moved
            np.testing.assert_array_equal(after[:, moved], given[:, moved])
        changed = inputs.replaced(changed, group, donors)
    for found, given in zip(arrays(changed), arrays(donors), strict=True):
        np.testing.assert_array_equal(found, given)
    assert all((where <= 1).all() for where in times)
    for found, before in zip(arrays(rows), kept, strict=True):
        np.testing.assert_array_equal(found, before)
    columns = inputs.columns(rows)
    assert columns.shape == (30, len(inputs.column_groups)) and columns.dtype == np.float64
    assert set(inputs.column_groups) == set(inputs.groups)
    for group in inputs.groups:  # its columns, and no others, tell of a change
        different = (inputs.columns(inputs.replaced(rows, group, donors)) != columns).any(axis=0)
        assert {owner for owner, d in zip(inputs.column_groups, different, strict=True) if d} == {group}
        assert isinstance(inputs.reading(rows, group, 3), float | str)


def test_known_environments_have_names_and_angles_are_one_group():
    def groups(name, **more):
        return Inputs.of(gymnasium.make(name).observation_space, env_id=name, **more).groups

    assert groups("CartPole-v1") == ("position", "velocity", "angle", "angular_velocity")
    assert groups("Pendulum-v1") == ("angle", "angular_velocity")
    assert groups("Acrobot-v1") == ("angle_1", "angle_2", "angular_velocity_1", "angular_velocity_2")
    assert groups("MountainCarContinuous-v0") == ("position", "velocity")
    noisy = spaces.Box(-1, 1, (5,))
    assert Inputs.of(noisy, env_id="CartPole-v1").groups[0] == "observation[0]"


def test_every_list_of_names_is_of_different_words():
    from policyspace.asking import KNOWN_NAMES

    sizes = {
        "BipedalWalker": 24,
        "HalfCheetah": 17,
        "Walker2d": 17,
        "Hopper": 11,
        "Pusher": 23,
        "Ant": 27,
        "Reacher": 10,
    }
    for name, words in KNOWN_NAMES.items():
        assert len(set(words.split())) == len(words.split()) == sizes.get(name, len(words.split())), name


@pytest.mark.parametrize(
    "names, groups",
    [
        (["cos_a", "sin_a", "v"], ("a", "v")),
        (["v", "cos(theta)", "sin(theta)"], ("v", "theta")),
        (["hip_cos", "v", "hip_sin"], ("hip", "v")),
        (["cos_a", "a", "sin_a"], ("a (sin, cos)", "a")),
        (["cos_a", "sin_b", "v"], ("cos_a", "sin_b", "v")),
        (["cosine", "since_start", "v"], ("cosine", "since_start", "v")),
    ],
)
def test_angles_by_their_names(names, groups):
    assert Inputs.of(spaces.Box(-1, 1, (3,)), features=names).groups == groups


def test_angles_by_their_readings():
    turned = np.random.default_rng(0).uniform(-3, 3, 50)
    rows = np.stack([np.sin(turned), turned / 3, np.cos(turned), np.sin(2 * turned)], axis=1)
    found = Inputs.of(spaces.Box(-1, 1, (4,)), observations=rows)
    assert found.groups == ("observation[0], observation[2]", "observation[1]", "observation[3]")
    assert found.reading(rows, "observation[0], observation[2]", 0) == f"{rows[0, 0]:.3g}, {rows[0, 2]:.3g}"
    assert found.reading(rows, "observation[1]", 0) == rows[0, 1]


def test_frames_of_a_sensor_are_one_group():
    stacked = Inputs.of(spaces.Box(-1, 1, (12,)), env_id="CartPole-v1", frames=3)
    assert stacked.groups == ("position", "velocity", "angle", "angular_velocity")
    rows = np.arange(24.0).reshape(2, 12)
    changed = stacked.replaced(rows, "velocity", rows + 100)
    assert np.flatnonzero((changed != rows).any(axis=0)).tolist() == [1, 5, 9]
    assert Inputs.of(spaces.Box(-1, 1, (3, 4)), frames=3).groups[1] == "observation[1]"
    logged = Inputs.of(spaces.Box(-1, 1, (4,)), features=["v@t-1", "cos_a@t-1", "v@t", "cos_a@t"])
    assert logged.groups == ("v", "cos_a")


def test_groups_by_name():
    inputs = Inputs.of(spaces.Box(-1, 1, (4,)), features=["a", "b", "c", "d"], groups={"pair": ["a", "c"]})
    assert inputs.groups == ("pair", "b", "d")
    with pytest.raises(InputError, match="the group 'pair' has no input 'e'"):
        Inputs.of(spaces.Box(-1, 1, (2,)), features=["a", "b"], groups={"pair": ["a", "e"]})
    with pytest.raises(InputError, match="'a' is in the groups 'x' and 'y'"):
        Inputs.of(spaces.Box(-1, 1, (2,)), features=["a", "b"], groups={"x": ["a"], "y": ["a"]})
    with pytest.raises(InputError, match="has 2 numbers, found 1 names"):
        Inputs.of(spaces.Box(-1, 1, (2,)), features=["a"])
    with pytest.raises(InputError, match="there is no input 'aa': did you mean 'a'"):
        Inputs.of(spaces.Box(-1, 1, (2,)), features=["a", "b"]).reading(np.zeros((1, 2)), "aa", 0)


def test_images_by_channels_masks_and_grids():
    space = spaces.Box(0, 255, (20, 24, 3), np.uint8)
    assert Inputs.of(space, groups="channels").groups == ("channel[0]", "channel[1]", "channel[2]")
    assert Inputs.of(spaces.Box(0, 255, (4, 84, 84), np.uint8), groups="frames").groups[-1] == "frame[3]"
    assert len(Inputs.of(space, groups=(2, 3)).groups) == 6 and len(Inputs.of(space).groups) == 16
    mask = np.zeros((20, 24), dtype=bool)
    mask[3:5] = True
    inputs = Inputs.of(space, groups={"paddle": mask})
    assert inputs.groups == ("paddle", "elsewhere")
    rows, donors = drawn(space), drawn(space, seed=1)
    moved = (inputs.replaced(rows, "paddle", donors) != rows).any(axis=(0, 3))
    np.testing.assert_array_equal(moved, mask)
    with pytest.raises(InputError, match="must have the size 20×24 of the image"):
        Inputs.of(space, groups={"paddle": mask.T})


def test_symbols_are_redrawn_where_either_shows_them():
    space = spaces.Box(0, 255, (3, 3, 3), np.uint8)
    row, donor = np.ones((2, 1, 3, 3, 3), np.uint8)
    row[0, 0, 1] = (8, 1, 0)
    donor[0, 2, 2] = (8, 1, 0)
    donor[0, 1, 1] = (5, 0, 0)
    inputs = Inputs.of(space, groups="symbols", observations=np.concatenate([row, donor]))
    assert inputs.groups == ("symbol empty", "symbol key", "symbol goal")
    moved = inputs.replaced(row, "symbol goal", donor)
    assert moved[0, 2, 2, 0] == 8 and moved[0, 0, 1, 0] == 1 and moved[0, 1, 1, 0] == 1
    assert inputs.reading(moved, "symbol goal", 0) == "1 cells"
    np.testing.assert_array_equal(inputs.columns(moved)[0, -3:], [1, 2, 2])
