"""The inputs of an agent: groups of what it observes, by name, and how one of them is read and replaced."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from gymnasium import spaces

from policyspace.data.connectors import OBSERVATION, SMALLEST_PICTURE, each_array, in_frames, num_rows
from policyspace.errors import InputError, check_unique, nearest

GRID = (4, 4)
"""Regions of an image where nobody says others."""

SYMBOLS = ("unseen", "empty", "wall", "floor", "door", "key", "ball", "box", "goal", "lava", "agent")
"""What MiniGrid's numbers in the first layer of a cell mean."""

Groups = Mapping[str, Any] | str | tuple[int, int]
"""By name the features of a group, or the mask [height, width] of an image; of an image also "channels", "frames",
"symbols", or so many rows and columns of regions."""

Path = tuple[str | int, ...]


@final
@dataclass(frozen=True)
class Part:
    """Some numbers of one array of the observation."""

    path: Path
    places: np.ndarray
    """In the array of one row, laid flat."""
    levels: tuple[int, ...] = ()
    """Of categories, how many each has."""
    picture: tuple[int, ...] = ()
    """The shape of an image, whose last axis is its channels."""
    symbol: int | None = None
    """Of the cells that show a symbol, before or after, whatever their place."""


@final
@dataclass(frozen=True)
class Inputs:
    """What can be asked about, one after the other: features, or groups of them that are read together.

    Examples
    --------
    >>> import numpy as np
    >>> from gymnasium.spaces import Box
    >>> from policyspace.asking.inputs import Inputs
    >>> inputs = Inputs.of(Box(-8, 8, (3,)), env_id="Pendulum-v1")
    >>> inputs.groups
    ('angle', 'angular_velocity')
    >>> states = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 5.0]])
    >>> inputs.replaced(states, "angle", states[::-1]).tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 5.0]]
    """

    parts: Mapping[str, tuple[Part, ...]]
    features: tuple[str, ...]
    """The names of all single numbers and categories, in their order; images have none."""
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By group its features."""

    @classmethod
    def of(
        cls,
        space: Any,
        *,
        env_id: str | None = None,
        features: Sequence[str] | None = None,
        groups: Groups | None = None,
        frames: int = 1,
        observations: Any = None,
    ) -> "Inputs":
        """The inputs in an observation space.

        Parameters
        ----------
        space : gymnasium.Space
            Box, Discrete, MultiDiscrete, MultiBinary, or a Dict or Tuple of these.
        env_id : str, optional
            Known environments have names for their numbers.
        features : sequence of str, optional
            Names of all numbers, or of those in one frame.
        groups : mapping, str or pair of int, optional
            Features, or masks of an image, by the name of their group; "channels", "frames", "symbols", or (rows, columns)
            of regions. Features in none of them are groups alone.
        frames : int, default 1
            How many frames an observation holds, the oldest first; those of one sensor are one group.
        observations : array_like of shape (n, …), or dict of these, optional
            Numbers that are the cosine and sine of an angle are found in them, and the symbols that occur.

        Returns
        -------
        Inputs
            With `groups`, `replaced`, `reading` and `columns`.

        Raises
        ------
        InputError
            If names do not fit the space, or nothing can be asked about.
        """
        arrays = list(leaves(space, (), OBSERVATION))
        flat = [leaf for leaf in arrays if not _is_picture(leaf[2])]
        numbers = [(path, *one) for path, name, inside in flat for one in numbers_in(name, inside, frames)]
        places = [(path, place, levels) for path, _, place, levels in numbers]
        given = tuple(features or names_of(env_id, space, frames) or ())
        names = in_frames(given, frames) if frames > 1 and len(given) * frames == len(places) else list(given)
        if not names:
            names = [name for _, name, _, _ in numbers]
        if len(names) != len(places):
            raise InputError(f"an observation has {len(places)} numbers, found {len(names)} names: name each once.")
        check_unique(names, "input")
        parts: dict[str, list[Part]] = {}
        own = groups if isinstance(groups, Mapping) else {}
        grouped = _grouped(names, places, own, observations)
        for group, members in grouped.items():
            for member in members:
                path, place, levels = places[names.index(member)]
                parts.setdefault(group, []).append(Part(path, np.array([place]), levels))
        for path, name, inside in arrays:
            if _is_picture(inside):
                prefix = "" if name == OBSERVATION else f"{name}."
                for group, part in _of_picture(path, inside, groups, _at(observations, path)):
                    parts.setdefault(prefix + group, []).append(part)
        if not parts:
            raise InputError(f"an observation must have something that can vary, found {space}.")
        own_features = {group: tuple(inside) for group, inside in grouped.items()}
        return cls({group: _merged(found) for group, found in parts.items()}, tuple(names), own_features)

    @property
    def groups(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.parts)

    def _of(self, group: str) -> tuple[Part, ...]:
        if group not in self.parts:
            raise InputError(f"there is no input '{group}': {nearest(group, self.groups)}")
        return self.parts[group]

    def replaced(self, observations: Any, group: str, donors: Any) -> Any:
        """A copy of the observations with the readings of a group from `donors`, row by row."""
        found = each_array(np.array, observations)
        for part in self._of(group):
            array, other = _at(found, part.path), np.asarray(_at(donors, part.path))
            n = len(array)
            if part.symbol is not None:
                cells, theirs = array.reshape(n, -1, part.picture[2]), other.reshape(n, -1, part.picture[2])
                shown = (cells[..., 0] == part.symbol) | (theirs[..., 0] == part.symbol)
                cells[shown] = theirs[shown]
            else:
                array.reshape(n, -1)[:, part.places] = other.reshape(n, -1)[:, part.places]
        return found

    def differ(self, observations: Any, group: str, donors: Any) -> np.ndarray:
        """In which rows [n] a group reads something else than in the donors."""
        found = np.zeros(num_rows(observations), dtype=bool)
        for part in self._of(group):
            ours, theirs = self._read(observations, part), self._read(donors, part)
            if part.symbol is not None:
                ours, theirs = ours == part.symbol, theirs == part.symbol
            found |= (ours != theirs).any(axis=1)
        return found

    def reading(self, observations: Any, group: str, row: int) -> float | str:
        """What a group reads in one row: a number or a short text."""
        numbers = np.concatenate([self._read(observations, part, slice(row, row + 1))[0] for part in self._of(group)])
        symbol = self._of(group)[0].symbol
        if symbol is not None:
            return f"{int((numbers == symbol).sum())} cells"
        if len(numbers) == 1:
            return float(numbers[0])
        if len(numbers) <= 4:
            return ", ".join(f"{number:.3g}" for number in numbers)
        return f"{len(numbers)} numbers, {numbers.mean():.3g} on average"

    def numbers(self, observations: Any, group: str) -> np.ndarray:
        """What a group reads [n, q]: numbers and levels as they are, of a region of an image what tells states apart."""
        found = []
        for part in self._of(group):
            if part.symbol is not None:
                raise InputError(
                    "one symbol cannot be drawn alone, because it is where others are: name regions of cells."
                )
            found.append(self._columns(observations, part) if part.picture else self._read(observations, part))
        return np.concatenate(found, axis=1)

    def _read(self, observations: Any, part: Part, rows: slice = slice(None)) -> np.ndarray:
        array = np.asarray(_at(observations, part.path))[rows]
        return np.asarray(array.reshape(len(array), -1)[:, part.places], dtype=np.float64)

    def columns(self, observations: Any) -> np.ndarray:
        """Numbers [n, q] that tell states apart: levels as zeros and ones, of a region its mean and spread a channel."""
        found = [self._columns(observations, part) for parts in self.parts.values() for part in parts]
        return np.concatenate(found, axis=1) if found else np.zeros((num_rows(observations), 0))

    @property
    def column_groups(self) -> tuple[str, ...]:
        """The group of every column."""
        owners: list[str] = []
        for group, parts in self.parts.items():
            for part in parts:
                if part.levels:
                    width = sum(k - 1 for k in part.levels)
                elif part.symbol is not None:
                    width = 3
                elif not part.picture or len(part.places) <= part.picture[-1]:
                    width = len(part.places)
                else:
                    width = 2 * len(np.unique(part.places % part.picture[-1]))
                owners += [group] * width
        return tuple(owners)

    def _columns(self, observations: Any, part: Part) -> np.ndarray:
        numbers = self._read(observations, part)
        if part.levels:
            lowest = np.arange(1, max(part.levels))  # the first level is where all are zero
            shown = [(numbers[:, [i]] == lowest[: k - 1]) for i, k in enumerate(part.levels)]
            return np.concatenate(shown, axis=1).astype(np.float64)
        if part.symbol is not None:
            there = np.asarray(numbers == part.symbol, dtype=np.float64)
            across, down = np.arange(there.shape[1]) % part.picture[1], np.arange(there.shape[1]) // part.picture[1]
            count = np.maximum(there.sum(axis=1), 1)
            return np.stack([there.sum(axis=1), there @ across / count, there @ down / count], axis=1)
        if not part.picture or len(part.places) <= part.picture[-1]:
            return numbers
        channels = part.places % part.picture[-1]
        found = []
        for channel in np.unique(channels):
            inside = numbers[:, channels == channel]
            found += [inside.mean(axis=1), inside.std(axis=1)]
        return np.stack(found, axis=1)


def _at(values: Any, path: Path) -> Any:
    """The array at a place in dicts and tuples."""
    for key in path:
        values = None if values is None else values[key]
    return values


def leaves(space: Any, path: Path, name: str) -> Iterator[tuple[Path, str, Any]]:
    """The arrays of an observation under the names that `watch` gives them; texts cannot be asked about."""
    if isinstance(space, spaces.Dict):
        for key, inside in space.spaces.items():
            yield from leaves(inside, (*path, key), str(key) if name == OBSERVATION else f"{name}.{key}")
    elif isinstance(space, spaces.Tuple):
        for i, inside in enumerate(space.spaces):
            yield from leaves(inside, (*path, i), f"{name}[{i}]")
    elif isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        yield path, name, space


def _is_picture(space: Any) -> bool:
    shape = space.shape or ()
    return len(shape) > 2 or (len(shape) == 2 and (space.dtype == np.uint8 or min(shape) >= SMALLEST_PICTURE))


def numbers_in(name: str, space: Any, frames: int) -> list[tuple[str, int, tuple[int, ...]]]:
    """Of every number its name and place and, if it is a category, how many levels it has."""
    if isinstance(space, spaces.Discrete):
        return [(name, 0, (int(space.n),))]
    shape, size = tuple(space.shape), math.prod(space.shape)
    levels = [(int(k),) for k in np.ravel(space.nvec)] if isinstance(space, spaces.MultiDiscrete) else [()] * size
    stacked = frames > 1 and size % frames == 0
    one = (size // frames,) if stacked else shape
    names = [name] if math.prod(one) == 1 else [f"{name}[{','.join(map(str, at))}]" for at in np.ndindex(one)]
    return list(zip(in_frames(names, frames if stacked else 1), range(size), levels, strict=True))


# -- Groups that belong together: what somebody names, the frames of a sensor, and the sine and cosine of an angle.

ANGLE = re.compile(r"(?:cosine|cos|sine|sin)[ _(]+(?:of[ _])?(.+?)\)?|(.+?)_(?:cosine|cos|sine|sin)", re.IGNORECASE)

ROUND = 1e-3
"""The squares of a cosine and a sine add up to one, but for so much."""


def _grouped(
    names: Sequence[str], places: Sequence[tuple[Path, int, tuple[int, ...]]], own: Mapping[str, Any], observations: Any
) -> dict[str, list[str]]:
    """The features of every group, in the order of the features."""
    chosen: dict[str, str] = {}
    for group, members in own.items():
        if isinstance(members, np.ndarray) and members.ndim == 2:
            continue
        for member in [members] if isinstance(members, str) else members:
            if member not in names:
                raise InputError(f"the group '{group}' has no input '{member}': {nearest(member, names)}")
            if member in chosen:
                raise InputError(f"'{member}' is in the groups '{chosen[member]}' and '{group}': leave it in one.")
            chosen[member] = group
    sensors = {name: name.split("@")[0] for name in names}
    left = [name for name in names if name not in chosen]
    angles: dict[str, set[str]] = {}
    for name in left:
        if found := ANGLE.fullmatch(sensors[name]):
            angles.setdefault(found[1] or found[2], set()).add(sensors[name])
    pairs = {sensor: angle for angle, both in angles.items() if len(both) == 2 for sensor in both}
    taken = set(sensors.values()) | set(own)
    for name in left:
        sensor = sensors[name]
        angle = pairs.get(sensor, sensor)
        chosen[name] = angle if angle == sensor or angle not in taken else f"{angle} (sin, cos)"
    single = [name for name in left if sensors[name] not in pairs]
    if observations is not None:
        chosen |= _on_circles(single, {name: places[names.index(name)] for name in single}, observations)
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(chosen[name], []).append(name)
    return groups


def _on_circles(
    names: Sequence[str], places: Mapping[str, tuple[Path, int, tuple[int, ...]]], observations: Any
) -> dict[str, str]:
    """The pairs of numbers that both vary and whose squares always add up to one, as groups."""
    squares = {}
    for name in names:
        path, place, levels = places[name]
        values = np.asarray(_at(observations, path), dtype=np.float64)
        values = values.reshape(len(values), -1)[:, place]
        if not levels and np.ptp(values) > ROUND and np.abs(values).max() <= 1 + ROUND:
            squares[name] = values**2
    found: dict[str, str] = {}
    for i, first in enumerate(squares):
        for second in list(squares)[i + 1 :]:
            if (
                first not in found
                and second not in found
                and np.abs(squares[first] + squares[second] - 1).max() < ROUND
            ):
                found[first] = found[second] = f"{first}, {second}"
    return found


# -- Images: regions by a grid or by masks, channels, frames, and the symbols of a small grid of cells.


def _of_picture(path: Path, space: Any, groups: Groups | None, seen: Any) -> Iterator[tuple[str, Part]]:
    """The groups of an image, whose axes are found by their sizes: frames before, channels are the shortest of three."""
    shape = tuple(space.shape)
    index = np.arange(math.prod(shape)).reshape(shape)
    if len(shape) == 4:
        index = np.moveaxis(index, 0, -1).reshape(*shape[1:-1], -1) if shape[-1] <= 4 else index.reshape(-1, *shape[2:])
    if index.ndim == 2:
        index = index[..., None]
    shortest = int(np.argmin(index.shape[::-1]))
    index = np.moveaxis(index, 2 - shortest, -1)
    high, wide, deep = index.shape
    picture = (high, wide, deep)
    small = max(high, wide) < SMALLEST_PICTURE
    if groups == "channels" or groups == "frames":
        yield from (
            (f"{groups[:-1]}[{c}]", Part(path, index[..., c].ravel(), picture=(high, wide, 1))) for c in range(deep)
        )
    elif groups == "symbols":
        codes = (
            range(len(SYMBOLS))
            if seen is None
            else np.unique(np.asarray(seen).reshape(len(seen), -1)[:, index[..., 0]])
        )
        for code in map(int, codes):
            name = SYMBOLS[code] if code < len(SYMBOLS) else str(code)
            yield f"symbol {name}", Part(path, index[..., 0].ravel(), picture=picture, symbol=code)
    elif isinstance(groups, Mapping) and any(np.ndim(mask) == 2 for mask in groups.values()):
        rest = np.ones((high, wide), dtype=bool)
        for name, mask in groups.items():
            if np.shape(mask) != (high, wide):
                raise InputError(
                    f"the mask '{name}' must have the size {high}×{wide} of the image, found {np.shape(mask)}."
                )
            rest &= ~np.asarray(mask, dtype=bool)
            yield name, _region(path, index[np.asarray(mask, dtype=bool)], picture)
        if rest.any():
            yield "elsewhere", _region(path, index[rest], picture)
    else:
        rows, columns = groups if isinstance(groups, tuple) else (high, wide) if small else GRID
        if not (1 <= rows <= high and 1 <= columns <= wide):
            raise InputError(f"an image of {high}×{wide} has no {rows}×{columns} regions: ask for fewer.")
        what = "cell" if (rows, columns) == (high, wide) else "region"
        for r, across in enumerate(np.array_split(np.arange(high), rows)):
            for c, down in enumerate(np.array_split(np.arange(wide), columns)):
                yield f"{what}[{r},{c}]", _region(path, index[np.ix_(across, down)], picture)


def _region(path: Path, places: np.ndarray, picture: tuple[int, ...]) -> Part:
    return Part(path, places.reshape(-1), picture=picture)


def _merged(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Numbers of one array as one part; categories keep their levels."""
    found: list[Part] = []
    for part in parts:
        last = found[-1] if found else None
        plain = last is not None and not last.picture and not part.picture
        if last is not None and plain and last.path == part.path and bool(last.levels) == bool(part.levels):
            found[-1] = Part(part.path, np.concatenate([last.places, part.places]), last.levels + part.levels)
        else:
            found.append(part)
    return tuple(found)


# -- What the numbers of known environments are called, as Gymnasium documents them.

LEGS = "front_left front_right back_left back_right"

ANT = [f"{part}_{leg}" for leg in LEGS.split() for part in ("hip", "ankle")]

PUSHER = ["shoulder_pan", "shoulder_lift", "upper_arm_roll", "elbow_flex", "forearm_roll", "wrist_flex", "wrist_roll"]

LEG_JOINTS = "thigh_angle leg_angle foot_angle"
LEG_SPEEDS = "thigh_velocity leg_velocity foot_velocity"
TORSO_SPEEDS = "x_velocity z_velocity torso_velocity"

KNOWN_NAMES = {
    "CartPole": "position velocity angle angular_velocity",
    "MountainCar": "position velocity",
    "MountainCarContinuous": "position velocity",
    "Pendulum": "cos_angle sin_angle angular_velocity",
    "Acrobot": "cos_angle_1 sin_angle_1 cos_angle_2 sin_angle_2 angular_velocity_1 angular_velocity_2",
    "LunarLander": "x y x_velocity y_velocity angle angular_velocity left_leg right_leg",
    "BipedalWalker": "hull_angle hull_angular_velocity x_velocity y_velocity hip_1_angle hip_1_velocity knee_1_angle "
    "knee_1_velocity leg_1_contact hip_2_angle hip_2_velocity knee_2_angle knee_2_velocity leg_2_contact "
    + " ".join(f"lidar_{i}" for i in range(10)),
    "InvertedPendulum": "position angle velocity angular_velocity",
    "InvertedDoublePendulum": "position sin_angle_1 sin_angle_2 cos_angle_1 cos_angle_2 velocity angular_velocity_1 "
    "angular_velocity_2 constraint_force",
    "Hopper": f"height torso_angle {LEG_JOINTS} {TORSO_SPEEDS} {LEG_SPEEDS}",
    "Walker2d": f"height torso_angle {LEG_JOINTS} left_thigh_angle left_leg_angle left_foot_angle {TORSO_SPEEDS} "
    f"{LEG_SPEEDS} left_thigh_velocity left_leg_velocity left_foot_velocity",
    "HalfCheetah": "height torso_angle back_thigh_angle back_shin_angle back_foot_angle front_thigh_angle "
    f"front_shin_angle front_foot_angle {TORSO_SPEEDS} back_thigh_velocity back_shin_velocity back_foot_velocity "
    "front_thigh_velocity front_shin_velocity front_foot_velocity",
    "Swimmer": "front_angle rotor_1_angle rotor_2_angle x_velocity y_velocity front_velocity rotor_1_velocity "
    "rotor_2_velocity",
    "Reacher": "cos_joint_1 cos_joint_2 sin_joint_1 sin_joint_2 target_x target_y joint_1_velocity joint_2_velocity "
    "distance_x distance_y",
    "Pusher": " ".join([f"{joint}_angle" for joint in PUSHER] + [f"{joint}_velocity" for joint in PUSHER])
    + " fingertip_x fingertip_y fingertip_z object_x object_y object_z goal_x goal_y goal_z",
    "Ant": "height orientation_w orientation_x orientation_y orientation_z "
    + " ".join(f"{joint}_angle" for joint in ANT)
    + " x_velocity y_velocity z_velocity x_angular_velocity y_angular_velocity z_angular_velocity "
    + " ".join(f"{joint}_velocity" for joint in ANT),
}
"""By the id without its version."""


def names_of(env_id: str | None, space: Any, frames: int = 1) -> tuple[str, ...] | None:
    """The names of the numbers in one frame of an observation; None where the environment, or its size, is not known."""
    known = tuple(
        KNOWN_NAMES.get((env_id or "").split("-v")[0].replace("LunarLanderContinuous", "LunarLander"), "").split()
    )
    shape = getattr(space, "shape", None)
    return known if known and shape is not None and int(np.prod(shape)) == len(known) * frames else None
