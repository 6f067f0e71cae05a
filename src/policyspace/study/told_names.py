"""Observations of an environment as others log them, under the names of a study: numbers in order, categories by level."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from policyspace.data.connectors.flattening import OBSERVATION
from policyspace.data.demonstrations import Demonstrations
from policyspace.environments.gymnasium_world import GymnasiumWorld
from policyspace.environments.observations import LEVEL, levels_of
from policyspace.errors import InputError


def under_names_of(world: GymnasiumWorld, data: Demonstrations) -> tuple[Demonstrations, list[str]]:
    """The same pairs with the features of the world, as far as it is sure which these are, and what was assumed."""
    data, notes = _renamed(world, data)
    for category in levels_of(world.feature_names):
        if category in data.names or category in levels_of(data.names):
            data, assumed = _with_levels(world, data, category)
            notes += assumed
    return data, notes


def parts_of(names: Sequence[str]) -> list[str]:
    """The numbers and categories that features are of: all levels of a category are one."""
    return list(dict.fromkeys(level[1] if (level := LEVEL.fullmatch(name)) else name for name in names))


def is_observation(world: GymnasiumWorld, names: Sequence[str]) -> bool:
    """Are these all that one observation is made of, under the names that it has where nobody names it?"""
    found, wanted = parts_of(names), parts_of(world.feature_names)
    if len(found) != len(wanted) or set(found) == set(wanted):
        return False
    if set(found) == set(world.facts.own_names):
        return True
    last = re.fullmatch(rf"{OBSERVATION}\[(\d+(?:,\d+)*)\]", found[-1])
    if last is None:
        return found == [OBSERVATION]
    shape = tuple(int(place) + 1 for place in last[1].split(","))
    if math.prod(shape) != len(found):
        return False
    return found == [f"{OBSERVATION}[{','.join(map(str, place))}]" for place in np.ndindex(shape)]


def _renamed(world: GymnasiumWorld, data: Demonstrations) -> tuple[Demonstrations, list[str]]:
    if not is_observation(world, data.names):
        return data, []
    parts, own = parts_of(world.feature_names), parts_of(data.names)
    if set(own) == set(world.facts.own_names):
        own = list(world.facts.own_names)  # whatever the order of the columns
    new = dict(zip(own, parts, strict=True))
    names = tuple(
        f"{new[level[1]]}={level[2]}" if (level := LEVEL.fullmatch(name)) else new[name] for name in data.names
    )
    listed = ", ".join(parts if len(parts) <= 8 else (*parts[:3], "…", parts[-1]))
    note = f"the numbers of an observation have no names in the data: they are taken for {listed}, in this order."
    # What was recorded beside the features may be called as one of them is now.
    recorded = {name: values for name, values in data.recorded.items() if name not in names}
    return replace(data, names=names, blocks=levels_of(names), recorded=recorded), [note]


def _with_levels(world: GymnasiumWorld, data: Demonstrations, category: str) -> tuple[Demonstrations, list[str]]:
    """The levels of a category as the world has them, from its numbers or from other levels."""
    wanted = levels_of(world.feature_names)[category]
    if category in data.names:
        numbers = data.features[:, data.names.index(category)]
        if (numbers != np.round(numbers)).any():
            raise InputError(
                f"'{category}' is a category, whose levels are whole numbers, found others: check that column."
            )
        columns = {f"{category}={value:.0f}": (numbers == value).astype(float) for value in np.unique(numbers)}
        notes = list[str]()
    else:
        columns = {name: data.features[:, data.names.index(name)] for name in levels_of(data.names)[category]}
        left, notes = _left_out(category, columns, wanted)
        columns |= left
    others = [name for name in columns if name not in wanted]
    if len(others) > 1:
        raise InputError(
            f"the data have the levels {', '.join(others)}, expected {', '.join(wanted)} of the world '{world.name}' and "
            "one more, in which episodes start: tell it data of that environment."
        )
    zeros = np.zeros(data.num_pairs)
    kept = [i for i, name in enumerate(data.names) if name != category and name not in columns]
    features = np.column_stack([data.features[:, kept], *(columns.get(name, zeros) for name in wanted)])
    names = (*(data.names[i] for i in kept), *wanted)
    return replace(data, features=features, names=names, blocks=levels_of(names)), notes


def _left_out(
    category: str, columns: dict[str, np.ndarray], wanted: Sequence[str]
) -> tuple[dict[str, np.ndarray], list[str]]:
    """The one level that data leave out, the largest that occurs: its column, if it is not the start, and what was assumed.

    No test depends on what that level is called; a simulated design does.
    """
    rest = 1.0 - np.sum(list(columns.values()), axis=0)
    if not rest.any():
        return {}, []
    if set(columns) <= set(wanted):  # the start, which the world leaves out, surely occurs
        return {}, []
    largest = max(_level(name) for name in columns)
    open_names = sorted((name for name in wanted if name not in columns), key=_level)
    larger = [name for name in open_names if _level(name) > largest] or open_names
    if not larger:
        raise InputError(
            f"the data leave one level of '{category}' out, found all {len(columns)} that there are: check the data."
        )
    note = f"the data do not say which level of '{category}' they leave out: it is taken for {_level(larger[0])}."
    return {larger[0]: rest}, [note] if len(larger) > 1 else []


def _level(name: str) -> int:
    found = LEVEL.fullmatch(name)
    assert found is not None
    return int(found[2])
