"""Reported data as arrays of one round; synonyms of columns."""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, final

import numpy as np

from policyspace.data.columns import CONFIGURATION
from policyspace.data.connectors import OBSERVATION
from policyspace.data.origin import Origin
from policyspace.data.request import Request
from policyspace.data.sample import Sample, allow_single_action
from policyspace.data.validation import is_names
from policyspace.environments.checks import LEVEL, levels_of
from policyspace.environments.gymnasium_world import GymnasiumWorld
from policyspace.errors import InputError, nearest
from policyspace.families.base import PolicySpace
from policyspace.families.jax_backend import jax
from policyspace.study.evidence import Batch
from policyspace.study.store import Arrays, rows_of
from policyspace.worlds.base import Configurable, Configuration, Trajectories
from policyspace.worlds.confmdp import ConfMDP

# -- What is reported to a study: any data that `identify` reads, checked against its world, as arrays and back.


@allow_single_action()
def batch_of(world: Configurable, request: Request) -> tuple[Batch, list[str]]:
    """Whatever a user calls data as a batch under the world's names, and sentences about it that a reader must be told."""
    data = request.data
    if isinstance(data, Trajectories):
        given: dict[str, object] = {"actions": request.actions, **request.columns}
        for word, value in given.items():
            if value is not None and word != "missing":
                raise InputError(f"trajectories hold their {word}, found {word}= too: leave it out.")
        if request.columns.get("missing", "error") != "error":
            raise InputError("trajectories have no missing values, found missing= too: leave it out.")
        return data, list(data.notes)
    found = request.in_memory() if isinstance(data, Sample) else _read(world, request)
    if not found.in_memory:
        raise InputError(
            f"a study keeps every row, found a log of {found.num_rows_total} rows that is read in passes: "
            "tell it fewer rows."
        )
    notes = found.origin.all_notes
    if isinstance(world, ConfMDP):  # whose observations are states, not features
        return found, notes
    from policyspace.environments.gymnasium_world import GymnasiumWorld

    assert isinstance(world, GymnasiumWorld)
    found, assumed = under_names_of(world, found)
    return found, notes + assumed


@final
class DrawingRound:
    """A round in which readings are drawn at random: an environment that does so, and the rows with their draws."""

    def __init__(self, world: GymnasiumWorld, space: PolicySpace, seed: int) -> None:
        self.world, self.space, self.seed = world, space, seed
        self.env: Any = None

    def wrap(self, env: Any) -> Any:
        """The environment with drawn readings, of which the features of a unit are drawn together."""
        from policyspace.asking.readings import RandomisedReadings

        size = int(np.prod(env.observation_space.shape or (0,)))
        names = self.world.feature_names if len(self.world.feature_names) == size else self.world.facts.own_names
        if len(names) != size or self.world.blocks:
            raise InputError(
                f"readings of numbers alone are drawn in a study, found {env.observation_space}: leave --randomise out."
            )
        columns, known = self.space.group_columns() or {}, self.space.feature_names
        units = {self.space.groups[g].name: [known[c] for c in inside] for g, inside in columns.items() if inside}
        rest = {name: [name] for name in names if not any(name in inside for inside in units.values())}
        self.env = RandomisedReadings(env, seed=self.seed, features=names, groups=units | rest)
        return self.env

    def pairs(self, seen: Trajectories) -> Sample | Trajectories:
        """What was observed, with its draws; an agent that always did the same has no pairs."""
        try:
            data = seen.pairs(self.world.feature_names, self.world.action_names)
        except InputError:
            return seen
        columns, record = self.env.readings.draws_with(data.actions.reshape(data.num_rows, -1))
        worth = np.asarray(seen.rewards)[np.asarray(seen.mask, dtype=bool)]
        return replace(data, origin=Origin(draws=record), recorded=columns | {"reward": worth})


@allow_single_action()
def to_arrays(world: Configurable, batch: Batch) -> Arrays:
    """The arrays that a study keeps: features and action codes in the world's own order, states and rewards if known."""
    if isinstance(batch, Trajectories) and isinstance(world, ConfMDP):
        return _from_trajectories(world, batch)
    if isinstance(batch, Trajectories):  # nothing reads the states of an environment
        worth = np.asarray(batch.rewards)[np.asarray(batch.mask, dtype=bool)]
        batch = replace(batch.pairs(world.feature_names, world.action_names), recorded={"reward": worth})
    arrays, rewards = _from_demonstrations(world, batch), np.asarray(batch.recorded.get("reward", 0.0))
    known = rewards.dtype.kind in "biuf" and np.isfinite(rewards).all() and rewards.any()  # none are written as zeros
    return arrays | ({"rewards": rewards.astype(np.float64)} if known else {})


@allow_single_action()
def episodes_with_rewards(world: Configurable, arrays: Arrays, configuration: Configuration) -> Trajectories | None:
    """What was reported in a round, without states, if the rewards were reported too."""
    if "rewards" not in arrays or "mask" in arrays:
        return to_trajectories(world, arrays, configuration) if "rewards" in arrays else None
    seen = Trajectories.of_pairs(to_demonstrations(world, arrays), configuration)
    rewards = np.zeros(seen.mask.shape)
    rewards[seen.mask] = arrays["rewards"][np.argsort(arrays["episodes"], kind="stable")]
    return replace(seen, rewards=rewards)


def configuration_of(world: Configurable, batch: Batch, given: Any, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where a batch was collected: what is given, else what the batch carries, else what was asked for."""
    if given is None:
        given = batch.configuration if isinstance(batch, Trajectories) else batch.origin.configuration
    if given is None and isinstance(batch, Sample):
        given = _recorded_configuration(world, batch)
    if given is None:
        return asked
    if not isinstance(given, Mapping):
        raise InputError(f"a configuration is a table of names and numbers, found {given!r:.40}: correct it.")
    return given


def to_demonstrations(world: Configurable, arrays: Arrays) -> Sample:
    """The pairs in the arrays of a round."""
    features, actions, episodes = rows_of(arrays)
    names = tuple(world.feature_names), tuple(world.action_names)
    return Sample(features, actions, *names, episodes, arrays.get("weights"))


def to_batch(world: Configurable, arrays: Arrays) -> Batch:
    """The pairs in the arrays of a round or, where they all have one action, its episodes, which have none to test."""
    try:
        return to_demonstrations(world, arrays)
    except InputError:
        with allow_single_action():
            pairs = to_demonstrations(world, arrays)
            kept = np.ones(pairs.num_rows) if pairs.weights is None else pairs.weights
            return Trajectories.of_pairs(pairs.take(np.flatnonzero(kept)), {})


@allow_single_action()
def to_trajectories(world: Configurable, arrays: Arrays, configuration: Configuration) -> Trajectories | None:
    """The trajectories in the arrays of a round, if it was reported with states and rewards.

    A world without densities has no use for states: there the episodes alone are trajectories.
    """
    if not isinstance(world, ConfMDP):
        return Trajectories.of_pairs(to_demonstrations(world, arrays), configuration)
    if "mask" not in arrays:
        return None
    leaves = [arrays[f"state_{i}"] for i in range(sum(name.startswith("state_") for name in arrays))]
    states = jax.tree.unflatten(jax.tree.structure(_example(world)), leaves)
    return Trajectories(states, arrays["features"], arrays["actions"], arrays["rewards"], arrays["mask"], configuration)


def _recorded_configuration(world: Configurable, data: Sample) -> dict[str, float] | None:
    """ω as it is recorded in every row, as far as it is the world's; None where nothing of it is."""
    known, found = {parameter.name for parameter in world.parameters}, dict[str, float]()
    for column, values in data.recorded.items():
        name = column.removeprefix(CONFIGURATION)
        if name == column or name.partition("[")[0] not in known:
            continue
        levels = np.unique(values)  # where it is not known, it is not a number
        if len(levels) > 1:
            some = ", ".join(f"{level:g}" for level in levels[:3]) + (", …" if len(levels) > 3 else "")
            raise InputError(
                f"a round is about one configuration, found {name} = {some} in the data: split them by configuration, or "
                "say where they were collected (--configuration, configuration=)."
            )
        if np.isfinite(levels[0]):
            found[name] = float(levels[0])
    return found or None


def _read(world: Configurable, said: Request) -> Sample:
    """By the one way in that `identify` has; where the actions are named and no features, they are the world's."""
    request = replace(said, as_labels=world.action_bounds is None)
    if request.actions is None or request.columns.get("features") is not None:
        return request.in_memory()
    try:
        found = request.with_columns(features=list(world.feature_names)).in_memory()
    except InputError:
        other = None if isinstance(world, ConfMDP) else _read_as_observed(world, request)
        if other is not None:
            return other
        raise
    if request.as_labels or is_names(request.actions) or len(found.action_names) != len(world.action_names):
        return found
    return replace(found, action_names=tuple(world.action_names))  # an array of actions has no names of its own


def _read_as_observed(world: Any, request: Request) -> Sample | None:
    """Categories that are a column each, or all columns if these are an observation that nobody named."""
    for wanted in (parts_of(world.feature_names), None):
        with suppress(InputError):  # what was wrong first is said
            found = request.with_columns(features=wanted).in_memory()
            if wanted is not None or is_observation(world, found.names):
                return found
    return None


def _from_demonstrations(world: Configurable, batch: Sample) -> Arrays:
    home = batch.origin.world
    if home is not None and home != world.name:
        raise InputError(
            f"the demonstrations are from the world '{home}', the study is about '{world.name}': tell it others."
        )
    if batch.episodes is None:
        raise InputError("a study counts episodes, found demonstrations without them: name the episode column.")
    _check_names(world, "feature", batch.names, world.feature_names, complete=True)
    features = batch.features[:, [batch.names.index(name) for name in world.feature_names]]
    wanted = tuple(world.action_names)
    kind, found = "discrete" if world.action_bounds is None else "continuous", batch.action_type.kind
    if found != kind:
        raise InputError(f"actions in '{world.name}' are {kind}, found {found} ones: check the action column.")
    _check_names(world, "action", batch.action_names, wanted, complete=kind == "continuous")
    arrays = {
        "features": features,
        "actions": batch.action_type.rearranged(batch.actions, wanted),
        "episodes": batch.episodes,
    }
    return arrays if batch.weights is None else arrays | {"weights": batch.weights}


def _check_names(world: Configurable, what: str, found: Sequence[str], wanted: Sequence[str], complete: bool) -> None:
    """The demonstrations may have no names that the world has not and, if `complete`, must have all of its names."""
    missing = [name for name in wanted if name not in found] if complete else []
    other = [name for name in found if name not in wanted]
    if missing:
        raise InputError(
            f"the demonstrations lack the {what} '{missing[0]}' of the world '{world.name}' ({len(missing)} missing): "
            f"{nearest(missing[0], other or found)}"
        )
    if other:
        raise InputError(
            f"the demonstrations have the {what} '{other[0]}', which the world '{world.name}' has not: "
            f"{nearest(other[0], wanted)}"
        )


def _from_trajectories(world: ConfMDP, batch: Trajectories) -> Arrays:
    """As NumPy arrays, every number that means something finite; what lies behind an episode's end is zero."""
    batch = replace(batch, mask=np.asarray(batch.mask, dtype=bool))
    shape = batch.mask.shape
    k = () if world.action_bounds is None else (len(world.action_names),)
    kind = np.int64 if world.action_bounds is None else np.float64
    arrays = {
        "features": _clean(batch.features, batch.mask, (*shape, len(world.feature_names)), np.float64, "features"),
        "actions": _clean(batch.actions, batch.mask, (*shape, *k), kind, "actions"),
        "rewards": _clean(batch.rewards, batch.mask, shape, np.float64, "rewards"),
        "mask": batch.mask,
    }
    last = len(world.action_names) - 1
    if world.action_bounds is None and not ((arrays["actions"] >= 0) & (arrays["actions"] <= last)).all():
        raise InputError(f"actions must be codes from 0 to {last}, found others: check them.")
    given, wanted = jax.tree.leaves(batch.states), jax.tree.leaves(_example(world))
    found = [np.asarray(leaf) for leaf in given]
    expected = [(shape[0], shape[1] + 1, *leaf.shape) for leaf in wanted]
    if [leaf.shape for leaf in found] != expected:
        raise InputError(
            f"states in '{world.name}' have the shapes {expected}, found {[leaf.shape for leaf in found]}: check them."
        )
    return arrays | {f"state_{i}": leaf for i, leaf in enumerate(found)}


def _clean(array: Any, mask: np.ndarray, shape: tuple[int, ...], kind: Any, what: str) -> np.ndarray:
    found = np.asarray(array)
    if found.shape != shape:
        raise InputError(f"the trajectories need {what} of shape {shape}, found {found.shape}: check them.")
    inside = mask.reshape(mask.shape + (1,) * (found.ndim - mask.ndim))
    clean = np.where(inside, found, 0)
    if not np.isfinite(clean).all():
        raise InputError(f"the {what} of trajectories must be finite, found NaN or infinity: drop such episodes.")
    return clean.astype(kind)


def _example(world: ConfMDP) -> Any:
    """The shape of one state."""
    return jax.eval_shape(world.initial, jax.random.key(0), world.default_configuration())


# -- Observations of an environment as others log them, under the names of a study: numbers in order, categories by level.


def under_names_of(world: GymnasiumWorld, data: Sample) -> tuple[Sample, list[str]]:
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


def _renamed(world: GymnasiumWorld, data: Sample) -> tuple[Sample, list[str]]:
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


def _with_levels(world: GymnasiumWorld, data: Sample, category: str) -> tuple[Sample, list[str]]:
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
    zeros = np.zeros(data.num_rows)
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
