"""Minari's datasets: the object, its folder, or its id in the local store."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from policyspace.data.connectors.flattening import flatten
from policyspace.data.connectors.recording import joined
from policyspace.data.extras import library
from policyspace.data.roles import Stored
from policyspace.errors import InputError

ID = re.compile(r"([\w-]+/)*[\w-]+-v\d+")


def recognises(source: Any) -> bool:
    """A dataset, a folder with its metadata, or a text that is no path and looks like an id."""
    if not isinstance(source, str | Path):
        return hasattr(source, "iterate_episodes") and hasattr(source, "action_space")
    return _folder(Path(source)) is not None or (not Path(source).exists() and ID.fullmatch(str(source)) is not None)


def load(source: Any) -> Stored:
    """Every episode without its last observation; ω in its options is recorded, and is metadata where it never varies."""
    dataset = _dataset(source) if isinstance(source, str | Path) else source
    given = [
        metadata.get("options") or {} for metadata in dataset.storage.get_episode_metadata(dataset.episode_indices)
    ]
    options = [_configuration(one) for one in given]
    first = options[0] if options else {}
    constant = bool(first) and all(one == first for one in options)
    lost = sorted({name for one in given for name in _no_numbers(one)})
    caution = f"The reset options {', '.join(lost)} are no numbers, and are left out of the configuration."
    return joined(
        _episodes(dataset, options),
        observation_space=dataset.observation_space,
        action_space=dataset.action_space,
        metadata=({"configuration": first} if constant else {}) | ({"cautions": [caution]} if lost else {}),
    ).stored()


def _episodes(dataset: Any, options: list[dict[str, Any]]) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
    names = {column.name for one in options for column in _columns(one)}
    for episode, configuration in zip(dataset.iterate_episodes(), options, strict=True):
        known = {column.name: float(column.values[0]) for column in _columns(configuration)}
        recorded = {"terminated": episode.terminations, "truncated": episode.truncations, "reward": episode.rewards}
        yield (
            episode.observations,
            episode.actions,
            recorded | {name: known.get(name, np.nan) for name in sorted(names)},
        )


def _configuration(options: Mapping[str, Any]) -> dict[str, Any]:
    """ω as plain numbers: the entry 'configuration' of the options, or all of them; what is no number is left out."""
    return {name: value.tolist() for name, value in _given(options).items() if value.dtype.kind in "biuf"}


def _no_numbers(options: Mapping[str, Any]) -> list[str]:
    """The options that cannot be part of ω."""
    return [name for name, value in _given(options).items() if value.dtype.kind not in "biuf"]


def _given(options: Mapping[str, Any]) -> dict[str, np.ndarray]:
    given = options.get("configuration", options)
    named = given if isinstance(given, Mapping) else {"configuration": given}
    return {str(name): np.asarray(value) for name, value in named.items() if name != "minari_autoseed"}


def _columns(configuration: dict[str, Any]) -> list[Any]:
    return flatten("configuration", {name: np.asarray(value)[None] for name, value in configuration.items()})


def _folder(path: Path) -> Path | None:
    """The folder that holds the data of a dataset, given it or the one above it."""
    return next((folder for folder in (path / "data", path) if _is_minari(folder / "metadata.json")), None)


def _is_minari(metadata: Path) -> bool:
    return metadata.is_file() and "minari_version" in metadata.read_text(encoding="utf-8", errors="replace")


def _dataset(source: str | Path) -> Any:
    folder = _folder(Path(source))
    what = "reading a Minari dataset" if folder else "there is no such file, and the name as the id of a Minari dataset"
    minari = library("minari", "minari", what)
    try:
        return minari.MinariDataset(folder) if folder else minari.load_dataset(str(source))
    except FileNotFoundError as error:
        raise InputError(
            f"there is no such file, and no Minari dataset of this id here: `minari download {source}` fetches it."
        ) from error
    except ImportError as error:
        raise InputError(
            f"this Minari dataset needs another package ({error}): pip install 'policyspace[minari]'."
        ) from error
