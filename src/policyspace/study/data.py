"""What is reported to a study: any data that `identify` reads, checked against its world, as arrays and back."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from policyspace.configuration.testable import Batch
from policyspace.data.columns import CONFIGURATION
from policyspace.data.demonstrations import Demonstrations, one_action_will_do
from policyspace.data.missing import Missing
from policyspace.data.sources import demonstrations_of
from policyspace.data.vocabulary import is_names
from policyspace.errors import InputError, nearest
from policyspace.policies.jax_setup import jax
from policyspace.study.study_file import Arrays, rows_of
from policyspace.worlds.configurable import Configurable
from policyspace.worlds.confmdp import ConfMDP
from policyspace.worlds.trajectories import Trajectories


@one_action_will_do()
def batch_of(world: Configurable, data: Any, missing: Missing = "error", **said: Any) -> tuple[Batch, list[str]]:
    """Whatever a user calls data as a batch under the world's names, and sentences about it that a reader must be told.

    What is `said` of the columns (actions, features, episodes, weights), and of `missing` values, are the words of
    `identify`.
    """
    if isinstance(data, Trajectories):
        for word, value in said.items():
            if value is not None:
                raise InputError(f"trajectories hold their {word}, found {word}= too: leave it out.")
        if missing != "error":
            raise InputError("trajectories have no missing values, found missing= too: leave it out.")
        return data, list(data.notes)
    said["missing"] = missing
    found = demonstrations_of(data, **said) if isinstance(data, Demonstrations) else _read(world, data, **said)
    if found.whole is not None:
        raise InputError(
            f"a study keeps every row, found a log of {found.num_logged} rows that is read in passes: tell it fewer rows."
        )
    told = [found.metadata.get(word) for word in ("warnings", "cautions")]  # of reading the data, of recording them
    notes = [str(note) for listed in told if isinstance(listed, list | tuple) for note in listed]
    if isinstance(world, ConfMDP):  # whose observations are states, not features
        return found, notes
    from policyspace.environments.gymnasium_world import GymnasiumWorld
    from policyspace.study.told_names import under_names_of

    assert isinstance(world, GymnasiumWorld)
    found, assumed = under_names_of(world, found)
    return found, notes + assumed


@one_action_will_do()
def to_arrays(world: Configurable, batch: Batch) -> Arrays:
    """The arrays that a study keeps: features and action codes in the world's own order, states and rewards if known."""
    if isinstance(batch, Trajectories) and isinstance(world, ConfMDP):
        return _from_trajectories(world, batch)
    if isinstance(batch, Trajectories):  # nothing reads the states of an environment
        batch = batch.pairs(world.feature_names, world.action_names)
    return _from_demonstrations(world, batch)


def configuration_of(world: Configurable, batch: Batch, given: Any, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where a batch was collected: what is given, else what the batch carries, else what was asked for."""
    if given is None:
        given = batch.configuration if isinstance(batch, Trajectories) else batch.metadata.get("configuration")
    if given is None and isinstance(batch, Demonstrations):
        given = _recorded_configuration(world, batch)
    if given is None:
        return asked
    if not isinstance(given, Mapping):
        raise InputError(f"a configuration is a table of names and numbers, found {given!r:.40}: correct it.")
    return given


def to_demonstrations(world: Configurable, arrays: Arrays) -> Demonstrations:
    """The pairs in the arrays of a round."""
    features, actions, episodes = rows_of(arrays)
    names = tuple(world.feature_names), tuple(world.action_names)
    return Demonstrations(features, actions, *names, episodes, arrays.get("weights"))


def to_batch(world: Configurable, arrays: Arrays) -> Batch:
    """The pairs in the arrays of a round or, where they all have one action, its episodes, which have none to test."""
    try:
        return to_demonstrations(world, arrays)
    except InputError:
        with one_action_will_do():
            pairs = to_demonstrations(world, arrays)
            kept = np.ones(pairs.num_pairs) if pairs.weights is None else pairs.weights
            return Trajectories.of_pairs(pairs.rows(np.flatnonzero(kept)), {})


@one_action_will_do()
def to_trajectories(world: Configurable, arrays: Arrays, configuration: dict[str, Any]) -> Trajectories | None:
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


def _recorded_configuration(world: Configurable, data: Demonstrations) -> dict[str, float] | None:
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


def _read(world: Configurable, data: Any, actions: Any, features: Any, **columns: Any) -> Demonstrations:
    """By the one way in that `identify` has; where the actions are named and no features, they are the world's."""
    columns["discrete"] = world.action_bounds is None
    if actions is None or features is not None:
        return demonstrations_of(data, actions, features, **columns)
    try:
        found = demonstrations_of(data, actions, list(world.feature_names), **columns)
    except InputError:
        other = None if isinstance(world, ConfMDP) else _read_as_observed(world, data, actions, columns)
        if other is not None:
            return other
        raise
    if found.discrete or is_names(actions) or len(found.action_names) != len(world.action_names):
        return found
    return replace(found, action_names=tuple(world.action_names))  # an array of actions has no names of its own


def _read_as_observed(world: Any, data: Any, actions: Any, columns: dict[str, Any]) -> Demonstrations | None:
    """Categories that are a column each, or all columns if these are an observation that nobody named."""
    from policyspace.study.told_names import is_observation, parts_of

    for wanted in (parts_of(world.feature_names), None):
        with suppress(InputError):  # what was wrong first is said
            found = demonstrations_of(data, actions, wanted, **columns)
            if wanted is not None or is_observation(world, found.names):
                return found
    return None


def _from_demonstrations(world: Configurable, batch: Demonstrations) -> Arrays:
    home = batch.metadata.get("world")
    if home is not None and home != world.name:
        raise InputError(
            f"the demonstrations are from the world '{home}', the study is about '{world.name}': tell it others."
        )
    if batch.episodes is None:
        raise InputError("a study counts episodes, found demonstrations without them: name the episode column.")
    _check_names(world, "feature", batch.names, world.feature_names, complete=True)
    features = batch.features[:, [batch.names.index(name) for name in world.feature_names]]
    arrays = {"features": features, "actions": _actions(world, batch), "episodes": batch.episodes}
    return arrays if batch.weights is None else arrays | {"weights": batch.weights}


def _actions(world: Configurable, batch: Demonstrations) -> np.ndarray:
    """Codes of the world's actions [n], or its components in order [n, k]."""
    wanted = tuple(world.action_names)
    if batch.discrete != (world.action_bounds is None):
        kinds = ("discrete", "continuous") if world.action_bounds is None else ("continuous", "discrete")
        raise InputError(f"actions in '{world.name}' are {kinds[0]}, found {kinds[1]} ones: check the action column.")
    _check_names(world, "action", batch.action_names, wanted, complete=not batch.discrete)
    if batch.discrete:
        return np.array([wanted.index(name) for name in batch.action_names])[batch.actions]
    return batch.actions[:, [batch.action_names.index(name) for name in wanted]]


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
