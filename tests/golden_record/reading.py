"""Problems of what data are and where they come from: choices, formulas, offsets, other tools' files, files in passes."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import policyspace

from . import data_sets as data
from .answers import identified, logged, refused, weights

# -- derived columns and weights -----------------------------------------------------------------------------------------


def derived(make: Any, options: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The answer about a table, mostly by the likelihood ratio: which test is chosen is another problem."""
    options = {"test": "wilks"} | options
    action = None if "formula" in options else "action"
    return identified(policyspace.identify(make(), action, **options))


def with_holes() -> Any:
    """A table in which some numbers are missing, and a column of numbers is a category."""
    import polars

    frame = data.frame(True)
    holes = polars.when(polars.int_range(len(frame)) % 17 == 0).then(None).otherwise(polars.col("far"))
    return frame.with_columns(far=holes, zone=polars.int_range(len(frame)) % 3)


def three_labels(offsets: int, folder: Path) -> dict[str, Any]:
    """A known part of the log-odds: a column for each action but the last, or one for all."""
    rng = np.random.default_rng(31)
    features, known = rng.normal(size=(300, 2)), rng.normal(size=(300, offsets))
    scores = np.column_stack([features[:, 0] + known[:, 0], known[:, -1] - features[:, 0], np.zeros(300)])
    actions = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    return identified(policyspace.identify(features, actions, offset=known, test="wilks"))


HABIT = "action ~ near + far"
ROAD = "action ~ near*far + I(near**2) + weather + weather:near"
DERIVED = {
    "formula, labels": partial(derived, partial(data.frame, True), {"formula": ROAD}),
    "formula, amounts": partial(derived, partial(data.frame, False), {"formula": ROAD}),
    "formula, lags": partial(derived, partial(data.frame, True), {"formula": HABIT, "episodes": "run", "lags": 1}),
    "lags, labels": partial(derived, partial(data.frame, True), {"episodes": "run", "lags": 2}),
    "lags, amounts": partial(derived, partial(data.in_episodes, False), {"episodes": "run", "lags": 2}),
    "lags of subjects": partial(derived, partial(data.of_people, True), {"subjects": "who", "lags": 1, "test": "auto"}),
    "offset, amounts": partial(derived, partial(data.frame, False), {"offset": "left"}),
    "offset, two labels": partial(derived, partial(data.rows_alone, True), {"offset": "left"}),
    "offset, lean": partial(derived, partial(data.rows_alone, False), {"offset": "left", "test": "lean"}),
    "offset of each label": partial(three_labels, 2),
    "counts, labels": partial(derived, partial(data.frame, True), {"weights": "count", "weight_type": "frequency"}),
    "counts, lean": partial(refused, partial(derived, partial(data.frame, False), {"weights": "count", "test": "lean"})),
    "counts, amounts": partial(derived, partial(data.frame, False), {"weights": "count", "test": "auto"}),
    "categories and missing values": partial(derived, with_holes, {"missing": "drop", "categorical": ["zone"]}),
    "reference": partial(derived, partial(data.frame, True), {"reference": "brake", "rule": "combinatorial"}),
    "fixed and always": partial(derived, partial(data.rows_alone, True), {"assume": ["far"], "fixed": {"left": 0.5}}),
}  # fmt: skip


# -- choices -------------------------------------------------------------------------------------------------------------

WIDE = {"attributes": {"cost": "cost_*", "time": "time_*"}, "available": "av_*"}


def chosen(policy: dict[str, Any], options: dict[str, Any], folder: Path) -> dict[str, Any]:
    """One row a choice."""
    space = policyspace.ChoiceLinear(**(WIDE | policy))
    told = {"features": ["income"], "policy": space} | options
    return identified(policyspace.identify(data.trips(), "mode", **told))


def chosen_long(policy: dict[str, Any], options: dict[str, Any], folder: Path) -> dict[str, Any]:
    """One row an alternative."""
    columns = policyspace.LongFormat("trip", "chosen", "which")
    space = policyspace.ChoiceLinear(attributes=["cost", "time"], long=columns, **policy)
    return identified(policyspace.identify(data.long_trips(), policy=space, **({"features": ["income"]} | options)))


def choice_weights(interval: Any, options: dict[str, Any], folder: Path) -> dict[str, Any]:
    space = policyspace.ChoiceLinear(**WIDE)
    told = {"features": ["income"], "policy": space, "test": "wilks"} | options
    return weights(policyspace.identify(data.trips(), "mode", **told).coefficients(interval))


def unnamed(folder: Path) -> dict[str, Any]:
    """Alternatives without names: no constants, no features of who chooses."""
    frame = data.long_trips().select("trip", "chosen", "cost", "time")
    space = policyspace.ChoiceLinear(long=policyspace.LongFormat("trip", "chosen"))
    return identified(policyspace.identify(frame, policy=space, test="wilks"))


CHOICES = {
    "wide": partial(chosen, {}, {}),
    "wide, likelihood ratio": partial(chosen, {}, {"test": "wilks"}),
    "wide, combinatorial": partial(chosen, {}, {"test": "wilks", "rule": "combinatorial"}),
    "wide, specific": partial(chosen, {"specific": ["time"]}, {"test": "wilks"}),
    "wide, parameters": partial(chosen, {"groups": "parameter"}, {"test": "wilks"}),
    "wide, offset": partial(
        chosen, {"attributes": WIDE["attributes"] | {"known": "known_*"}, "offset": ["known"]}, {"test": "wilks"}
    ),
    "wide, lean": partial(chosen, {}, {"test": "lean"}),
    "wide, robust by day": partial(chosen, {}, {"test": "robust", "subjects": "day"}),
    "wide, e-process": partial(chosen, {}, {"test": "eprocess", "episodes": "day"}),
    "long": partial(chosen_long, {}, {"test": "wilks"}),
    "long, specific": partial(chosen_long, {"specific": ["cost"]}, {"test": "wilks"}),
    "long, lean": partial(chosen_long, {}, {"test": "lean"}),
    "long, unnamed": unnamed,
    "coefficients, Wald": partial(choice_weights, "wald", {}),
    "coefficients, profile": partial(choice_weights, "profile", {}),
    "coefficients, clustered": partial(choice_weights, "wald", {"subjects": "day"}),
}


# -- connectors ----------------------------------------------------------------------------------------------------------

SIZES = (60, 45, 50)


def episodes() -> list[tuple[np.ndarray, np.ndarray]]:
    """(observations, actions) of three episodes, each with its last observation too."""
    rng = np.random.default_rng(32)
    found = []
    for size in SIZES:
        seen = rng.normal(size=(size + 1, 2))
        found.append((seen, (seen[:-1, 0] + rng.normal(size=size) > 0).astype(int)))
    return found


def flat() -> dict[str, np.ndarray]:
    """The same as D4RL keeps it."""
    made = episodes()
    ends = np.isin(np.arange(sum(SIZES)), np.cumsum(SIZES) - 1)
    first = np.arange(sum(SIZES)) < SIZES[0]
    return {
        "observations": np.concatenate([seen[:-1] for seen, _ in made]),
        "actions": np.concatenate([acted for _, acted in made]),
        "rewards": np.linspace(0.0, 1.0, sum(SIZES)),
        "terminals": ends & first,
        "timeouts": ends & ~first,
    }


def read(source: Any, folder: Path, **options: Any) -> dict[str, Any]:
    """What was read, and what is found in it."""
    made = policyspace.read(source, **options)
    return {"read": logged(made), "answer": identified(policyspace.identify(made))}


def dict_of_arrays(folder: Path) -> dict[str, Any]:
    return read(flat(), folder)


def list_of_episodes(folder: Path) -> dict[str, Any]:
    return read(episodes(), folder)


def hdf5_file(folder: Path) -> dict[str, Any]:
    import h5py

    with h5py.File(folder / "log.hdf5", "w") as file:
        for name, values in flat().items():
            file[name] = values
    return read(folder / "log.hdf5", folder, discrete=True)


def lerobot_folder(folder: Path) -> dict[str, Any]:
    import polars

    motors = {"dtype": "float32", "shape": [2], "names": {"motors": ["pan", "lift"]}}
    features = {"observation.state": motors, "action": motors, "episode_index": {"dtype": "int64"}}
    (folder / "arm" / "meta").mkdir(parents=True)
    (folder / "arm" / "data" / "chunk-000").mkdir(parents=True)
    info = {"codebase_version": "v2.1", "features": features}
    (folder / "arm" / "meta" / "info.json").write_text(json.dumps(info), encoding="utf-8")
    rng = np.random.default_rng(33)
    for i, (seen, acted) in enumerate(episodes()):
        moves = seen[:-1] * [1.5, 0.0] + rng.normal(size=(len(acted), 2))
        columns = {
            "observation.state": seen[:-1].astype(np.float32).tolist(),
            "action": moves.astype(np.float32).tolist(),
        }
        index = {"episode_index": [i] * len(acted), "frame_index": np.arange(len(acted))}
        path = folder / "arm" / "data" / "chunk-000" / f"episode_{i:06}.parquet"
        polars.DataFrame(columns | index).write_parquet(path)
    return read(folder / "arm", folder)


def replay_buffer(folder: Path) -> dict[str, Any]:
    from gymnasium import spaces
    from stable_baselines3.common.buffers import ReplayBuffer

    made = flat()
    buffer = ReplayBuffer(120, spaces.Box(-9, 9, (2,)), spaces.Discrete(2), "cpu", handle_timeout_termination=False)
    ends = made["terminals"] | made["timeouts"]
    for i, row in enumerate(made["observations"]):
        reward = np.array([made["rewards"][i]])
        buffer.add(row[None], row[None], made["actions"][i][None], reward, ends[i][None], [{}])
    return read(buffer, folder)


def rllib_batch(folder: Path) -> dict[str, Any]:
    made, number = flat(), np.repeat(np.arange(3), SIZES)
    return read({"obs": made["observations"], "actions": made["actions"], "eps_id": 700 + number}, folder)


CONNECTORS = {
    "dict of arrays": dict_of_arrays,
    "batch of RLlib": rllib_batch,
    "list of episodes": list_of_episodes,
    "HDF5 file": hdf5_file,
    "LeRobot folder": lerobot_folder,
    "replay buffer": replay_buffer,
}


# -- in passes -----------------------------------------------------------------------------------------------------------


def many_rows(action: str) -> Any:
    """Some thousand rows with a category, episodes and counts; only the columns that one action needs."""
    import polars

    rng, n = np.random.default_rng(34), 6000
    features = rng.normal(size=(n, 3))
    colour = np.array(["red", "green", "blue"])[rng.integers(0, 3, n)]
    score = np.column_stack([0.15 * features[:, 0] + 0.2 * (colour == "red"), 0.1 * features[:, 1], np.zeros(n)])
    actions = {
        "label": np.array(["stay", "go", "up"])[(score + rng.gumbel(size=score.shape)).argmax(axis=1)],
        "amount": 0.08 * features[:, 2] + rng.normal(size=n),
        "bent": features[:, 0] + 0.6 * features[:, 1] ** 2 + rng.normal(size=n),
    }
    columns = {f"x{j}": features[:, j] for j in range(3)} | {"colour": colour, "action": actions[action]}
    return polars.DataFrame(columns | {"count": rng.integers(1, 4, n), "run": np.arange(n) // 20})


def in_passes(action: str, options: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A folder of Parquet, which is read in passes."""
    frame = many_rows(action)
    (folder / "log").mkdir()
    for i in range(3):
        frame[i * 2000 : (i + 1) * 2000].write_parquet(folder / "log" / f"part-{i}.parquet", row_group_size=700)
    inputs = {"features": ["x0", "x1", "x2", "colour"], "episodes": "run"} | options
    with mock.patch.dict(os.environ, {"POLICYSPACE_MAX_BYTES_AT_ONCE": "1"}):
        return identified(policyspace.identify(folder / "log", "action", **inputs))


def choices_in_passes(named: bool, folder: Path) -> dict[str, Any]:
    """By patterns of columns, or of a space that knows its columns: either is refused."""
    data.trips().write_parquet(folder / "trips.parquet", row_group_size=50)
    columns = [f"{name}_{mode}" for name in ("cost", "time", "av") for mode in data.MODES]
    space = policyspace.ChoiceLinear(["income", *columns], data.MODES, **WIDE)
    told: dict[str, Any] = {"policy": space, "features": space.feature_names}
    if not named:
        told = {"policy": policyspace.ChoiceLinear(**WIDE), "features": ["income"]}
    with mock.patch.dict(os.environ, {"POLICYSPACE_MAX_BYTES_AT_ONCE": "1"}):
        return identified(policyspace.identify(folder / "trips.parquet", "mode", test="wilks", **told))


PASSES = {
    "amounts": partial(in_passes, "amount", {}),
    "labels": partial(in_passes, "label", {}),
    "labels, likelihood ratio": partial(in_passes, "label", {"test": "wilks"}),
    "labels, combinatorial": partial(in_passes, "label", {"test": "wilks", "rule": "combinatorial"}),
    "labels, counts": partial(in_passes, "label", {"test": "wilks", "weights": "count"}),
    "bent amounts": partial(in_passes, "bent", {}),
    "labels, lean": partial(in_passes, "label", {"test": "lean"}),
    "amounts, lean, episodes": partial(in_passes, "amount", {"test": "lean", "clusters": "episodes"}),
    "labels, lags": partial(refused, partial(in_passes, "label", {"test": "wilks", "lags": 1})),
    "amounts, subjects": partial(in_passes, "amount", {"episodes": None, "subjects": "run"}),
    "choices by patterns": partial(refused, partial(choices_in_passes, False)),
    "choices by names": partial(refused, partial(choices_in_passes, True)),
}

PROBLEMS: dict[str, Any] = DERIVED | CONNECTORS
PROBLEMS |= {f"choices, {name}": problem for name, problem in CHOICES.items()}
PROBLEMS |= {f"in passes, {name}": problem for name, problem in PASSES.items()}
