"""Stored data sets: HDF5/D4RL, LeRobot, Minari."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from policyspace.data.connectors import Column, Connector, Episode, Recording, as_recording, flatten
from policyspace.data.connectors import arrays as known_arrays
from policyspace.data.origin import Origin
from policyspace.data.schema import StoredTable
from policyspace.errors import InputError, reason_of
from policyspace.runtime import check_unpacked, library, limit
from policyspace.safe_io import JSON, parse_json, settings_text, size_of

if TYPE_CHECKING:
    import polars


# -- HDF5 files in the layout of D4RL: `observations`, `actions`, `terminals` and `timeouts` at the top.

SUFFIXES = (".hdf5", ".h5")


def is_hdf5_file(source: Any) -> bool:
    """A path by its suffix."""
    return isinstance(source, str | Path) and str(source).lower().endswith(SUFFIXES)


def load_hdf5_file(source: Any) -> StoredTable:
    """The arrays of the file that have a known name."""
    h5py = library("h5py", "hdf5", "reading HDF5")
    size = size_of(source)
    try:
        with h5py.File(source, "r") as file:
            check_hdf5(file)
            names = list(file)
            check_unpacked(sum(_size(file[name]) for name in names if name in known_arrays.KNOWN), size)
            arrays = {name: _loaded(file[name]) for name in names if name in known_arrays.KNOWN}
    except OSError as error:
        raise InputError(f"expected a readable HDF5 file, found otherwise ({error}).") from error
    if any(name.startswith("episode_") for name in names):
        raise InputError("this is the inside of a Minari dataset: name the folder or the id of the dataset.")
    for thing in ("observations", "actions"):
        if not any(word in arrays for word in known_arrays.WORDS[thing]):
            found = ", ".join(f"'{name}'" for name in names[:8]) or "nothing"
            raise InputError(f"expected the array '{thing}' at the top of the file, found {found}: convert the file.")
    return known_arrays.load_array_dict(arrays)


def check_hdf5(file: Any) -> None:
    """Refuse what leads out of an HDF5 file, or to one thing by two ways; groups may hold each other in circles."""
    import h5py

    def wrong(path: bytes, link: Any) -> str | None:
        """In the sentence; what is raised inside of HDF5 is lost."""
        what = f"found '{path.decode(errors='replace')}',"
        if link.type != h5py.h5l.TYPE_HARD:
            return f"must hold its data itself, {what} a link to elsewhere: copy what it links to."
        about = h5py.h5o.get_info(file.id, path)
        if about.rc > 1:
            return f"must hold everything once, {what} which has {about.rc} names: copy it."
        if about.type == h5py.h5o.TYPE_DATASET:
            stored = h5py.h5d.open(file.id, path).get_create_plist()
            if stored.get_external_count() or stored.get_layout() == h5py.h5d.VIRTUAL:
                return f"must hold its data itself, {what} whose numbers are in other files: copy them."
        return None

    if (sentence := file.id.links.visit(wrong, info=True)) is not None:
        raise InputError(sentence)


def _size(item: Any) -> int:
    """The bytes of an array, or of all in a group."""
    return sum(_size(item[name]) for name in item) if hasattr(item, "keys") else int(item.nbytes)


def _loaded(item: Any) -> Any:
    """An array, or a group of arrays as a dict."""
    return {name: _loaded(item[name]) for name in item} if hasattr(item, "keys") else item[()]


# -- LeRobot's folders: Parquet files under `data/`, and what their columns mean in `meta/info.json`.

INFO = Path("meta") / "info.json"
PICTURES = ("image", "video")


def is_lerobot_folder(source: Any) -> bool:
    """A folder with the description."""
    return isinstance(source, str | Path) and (Path(source) / INFO).is_file()


def load_lerobot_folder(source: Any) -> StoredTable:
    """All episodes in their order; cameras are left out, and this is said."""
    features = _features(Path(source))
    observed = [name for name in features if name.startswith("observation")]
    cameras = [name for name in observed if features[name].get("dtype") in PICTURES]
    numbers = [name for name in observed if name not in cameras and features[name].get("dtype") != "string"]
    if not numbers or "action" not in features:
        raise InputError(
            "expected an 'action' and observations that are numbers, such as 'observation.state', found "
            f"{', '.join(map(repr, features))}: images are no features with a meaning one by one; record the state too."
        )
    frame = _frame(Path(source), [*numbers, "action", "episode_index", "frame_index"])
    caution = (
        f"images were excluded ({', '.join(cameras)}): if the agent sees what the other observations do not tell, "
        "an observation that goes with it may look used."
    )
    return Recording(
        {name: _values(frame[name], features[name].get("names")) for name in numbers},
        _values(frame["action"], features["action"].get("names")),
        frame["episode_index"].to_numpy(),
        origin=Origin(cautions=(caution,) if cameras else ()),
    ).stored()


def _features(folder: Path) -> dict[str, Mapping[str, JSON]]:
    try:
        features = parse_json(settings_text(folder / INFO))["features"]
        return {name: dict(said) for name, said in features.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"expected {INFO} with a table 'features', found otherwise ({error!r}).") from error


def _frame(folder: Path, names: list[str]) -> "polars.DataFrame":
    import polars

    files = sorted((folder / "data").rglob("*.parquet"))
    if not files:
        raise InputError("expected Parquet files in the folder 'data', found none: download the whole dataset.")
    try:
        parts = [polars.read_parquet(file, columns=names) for file in files]
        return polars.concat(parts).sort("episode_index", "frame_index")
    except (polars.exceptions.PolarsError, OSError) as error:
        raise InputError(
            f"expected Parquet files with the columns of {INFO}, found otherwise ({reason_of(error)})."
        ) from error


def _values(series: "polars.Series", names: Any) -> Any:
    """One number a row, or several: under their names if these are known."""
    values = np.array(series.to_list(), dtype=np.float64)
    while isinstance(names, dict) and names:  # some recorders nest them, as in {"motors": [...]}
        names = next(iter(names.values()))
    if values.ndim == 2 and isinstance(names, list) and len(set(map(str, names))) == values.shape[1]:
        return {str(name): column for name, column in zip(names, values.T, strict=True)}
    return values


# -- Minari's datasets: the object, its folder, or its id in the local store.

ID = re.compile(r"([\w-]+/)*[\w-]+-v\d+")


def is_minari_dataset(source: Any) -> bool:
    """A dataset, a folder with its metadata, or a text that is no path and looks like an id."""
    if not isinstance(source, str | Path):
        return hasattr(source, "iterate_episodes") and hasattr(source, "action_space")
    return _folder(Path(source)) is not None or (not Path(source).exists() and ID.fullmatch(str(source)) is not None)


def load_minari_dataset(source: Any) -> StoredTable:
    """Every episode without its last observation; ω in its options is recorded, and stated where it never varies."""
    dataset = _dataset(source) if isinstance(source, str | Path) else source
    stored = dataset.storage.get_episode_metadata(dataset.episode_indices)
    given = [_given(metadata.get("options") or {}) for metadata in stored]
    # ω as plain numbers: the entry 'configuration' of the options, or all of them; what is no number is left out.
    options = [{name: value.tolist() for name, value in one.items() if value.dtype.kind in "biuf"} for one in given]
    first = options[0] if options else {}
    constant = bool(first) and all(one == first for one in options)
    lost = sorted({name for one in given for name, value in one.items() if value.dtype.kind not in "biuf"})
    caution = f"The reset options {', '.join(lost)} are no numbers, and are not part of the configuration."
    return as_recording(
        _episodes(dataset, options),
        observation_space=dataset.observation_space,
        action_space=dataset.action_space,
        origin=Origin(configuration=first if constant else None, cautions=(caution,) if lost else ()),
    ).stored()


def _episodes(dataset: Any, options: Sequence[Mapping[str, JSON]]) -> Iterator[Episode]:
    names = {column.name for one in options for column in _columns(one)}
    for episode, configuration in zip(dataset.iterate_episodes(), options, strict=True):
        known = {column.name: float(column.values[0]) for column in _columns(configuration)}
        recorded = {"terminated": episode.terminations, "truncated": episode.truncations, "reward": episode.rewards}
        yield (
            episode.observations,
            episode.actions,
            recorded | {name: known.get(name, np.nan) for name in sorted(names)},
        )


def _given(options: Mapping[str, Any]) -> dict[str, np.ndarray]:
    given = options.get("configuration", options)
    named = given if isinstance(given, Mapping) else {"configuration": given}
    return {str(name): np.asarray(value) for name, value in named.items() if name != "minari_autoseed"}


def _columns(configuration: Mapping[str, JSON]) -> list[Column]:
    return flatten("configuration", {name: np.asarray(value)[None] for name, value in configuration.items()})


def _folder(path: Path) -> Path | None:
    """The folder that holds the data of a dataset, given it or the one above it."""
    for folder in (path / "data", path):
        if (metadata := folder / "metadata.json").is_file():
            with metadata.open("rb") as file:
                if b"minari_version" in file.read(limit("MAX_SETTINGS_BYTES")):
                    return folder
    return None


def _dataset(source: str | Path) -> Any:
    folder = _folder(Path(source)) or _folder(local_minari(source))
    what = "reading a Minari dataset" if folder else "there is no such file, and the name as the id of a Minari dataset"
    minari = library("minari", "minari", what)
    for path in sorted(folder.glob("*.hdf5")) if folder else ():
        with library("h5py", "minari", what).File(path, "r") as file:
            check_hdf5(file)
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


def local_minari(dataset: str | Path) -> Path:
    """Where Minari keeps a dataset of this id."""
    home = os.environ.get("MINARI_DATASETS_PATH") or Path.home() / ".minari" / "datasets"
    return Path(home) / dataset


def files_of_minari(source: Path) -> Iterator[Path]:
    """All in the folder of the data; of a source that is none there are none, and its loading will say so."""
    folder = _folder(source) or _folder(local_minari(source))
    return (path for path in (folder.rglob("*") if folder else ()) if not path.is_dir())


HDF5_FILE = Connector(is_hdf5_file, load_hdf5_file, lambda source: [source])
LEROBOT_FOLDER = Connector(
    is_lerobot_folder, load_lerobot_folder, lambda source: [source / INFO, *(source / "data").rglob("*.parquet")]
)
MINARI_DATASET = Connector(is_minari_dataset, load_minari_dataset, files_of_minari)
