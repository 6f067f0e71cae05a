"""What a study is told: demonstrations or trajectories, checked against its world, as arrays and back."""

from dataclasses import replace
from typing import Any

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError, nearest
from policyspace.policies.jax_setup import jax
from policyspace.study.study_file import Arrays
from policyspace.worlds.confmdp import ConfMDP
from policyspace.worlds.trajectories import Trajectories

Told = Demonstrations | Trajectories


def to_arrays(world: ConfMDP, told: Told) -> Arrays:
    """The arrays that a study keeps: features and action codes in the world's own order, states and rewards if known."""
    if isinstance(told, Demonstrations):
        return _from_demonstrations(world, told)
    if isinstance(told, Trajectories):
        return _from_trajectories(world, told)
    raise InputError(f"a study is told demonstrations or trajectories, found a {type(told).__name__}: convert it.")


def to_demonstrations(world: ConfMDP, arrays: Arrays, metadata: dict[str, Any] | None = None) -> Demonstrations:
    """The pairs in the arrays of a round."""
    features, actions, episodes = arrays["features"], arrays["actions"], arrays.get("episodes")
    if "mask" in arrays:
        features, actions, episodes = features[arrays["mask"]], actions[arrays["mask"]], np.nonzero(arrays["mask"])[0]
    return Demonstrations(
        features,
        actions,
        tuple(world.feature_names),
        tuple(world.action_names),
        episodes,
        arrays.get("weights"),
        metadata=metadata or {},
    )


def to_trajectories(world: ConfMDP, arrays: Arrays, configuration: dict[str, Any]) -> Trajectories | None:
    """The trajectories in the arrays of a round, if it was told with states and rewards."""
    if "mask" not in arrays:
        return None
    leaves = [arrays[f"state_{i}"] for i in range(sum(name.startswith("state_") for name in arrays))]
    states = jax.tree.unflatten(jax.tree.structure(_example(world)), leaves)
    return Trajectories(states, arrays["features"], arrays["actions"], arrays["rewards"], arrays["mask"], configuration)


def _from_demonstrations(world: ConfMDP, told: Demonstrations) -> Arrays:
    _check_world(world, told)
    if told.episodes is None:
        raise InputError("a study counts episodes, found demonstrations without them: name the episode column.")
    features = told.features[:, [told.names.index(name) for name in _same_features(world, told.names)]]
    arrays = {"features": features, "actions": _actions(world, told), "episodes": told.episodes}
    return arrays if told.weights is None else arrays | {"weights": told.weights}


def _check_world(world: ConfMDP, told: Demonstrations) -> None:
    home = told.metadata.get("world")
    if home is not None and home != world.name:
        raise InputError(
            f"the demonstrations are from the world '{home}', the study is about '{world.name}': tell it others."
        )


def _same_features(world: ConfMDP, names: tuple[str, ...]) -> tuple[str, ...]:
    """The world's features, all of which the demonstrations must have, and no others."""
    missing = [name for name in world.feature_names if name not in names]
    other = [name for name in names if name not in world.feature_names]
    if missing:
        raise InputError(
            f"the demonstrations lack the feature '{missing[0]}' of the world '{world.name}' "
            f"({len(missing)} missing): {nearest(missing[0], other or names)}"
        )
    if other:
        raise InputError(
            f"the demonstrations have the feature '{other[0]}', which the world '{world.name}' has not: leave it out."
        )
    return tuple(world.feature_names)


def _actions(world: ConfMDP, told: Demonstrations) -> np.ndarray:
    """Codes of the world's actions [n], or its components in order [n, k]."""
    wanted = tuple(world.action_names)
    if told.discrete != (world.action_bounds is None):
        kinds = ("discrete", "continuous") if world.action_bounds is None else ("continuous", "discrete")
        raise InputError(f"actions in '{world.name}' are {kinds[0]}, found {kinds[1]} ones: check the action column.")
    unknown = [name for name in told.action_names if name not in wanted]
    if unknown:
        raise InputError(
            f"the demonstrations have the action '{unknown[0]}', which '{world.name}' has not: "
            f"{nearest(unknown[0], wanted)}"
        )
    if told.discrete:
        return np.array([wanted.index(name) for name in told.action_names])[told.actions]
    missing = [name for name in wanted if name not in told.action_names]
    if missing:
        raise InputError(f"the demonstrations lack the action '{missing[0]}' of '{world.name}': name its column.")
    return told.actions[:, [told.action_names.index(name) for name in wanted]]


def _from_trajectories(world: ConfMDP, told: Trajectories) -> Arrays:
    """As NumPy arrays, every number that means something finite; what lies behind an episode's end is zero."""
    told = replace(told, mask=np.asarray(told.mask, dtype=bool))
    shape = told.mask.shape
    k = () if world.action_bounds is None else (len(world.action_names),)
    kind = np.int64 if world.action_bounds is None else np.float64
    arrays = {
        "features": _clean(told.features, told.mask, (*shape, len(world.feature_names)), np.float64, "features"),
        "actions": _clean(told.actions, told.mask, (*shape, *k), kind, "actions"),
        "rewards": _clean(told.rewards, told.mask, shape, np.float64, "rewards"),
        "mask": told.mask,
    }
    if (
        world.action_bounds is None
        and not ((arrays["actions"] >= 0) & (arrays["actions"] < len(world.action_names))).all()
    ):
        raise InputError(f"actions must be codes from 0 to {len(world.action_names) - 1}, found others: check them.")
    given, wanted = jax.tree.leaves(told.states), jax.tree.leaves(_example(world))
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
