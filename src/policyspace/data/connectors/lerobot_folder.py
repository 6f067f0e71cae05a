"""LeRobot's folders: Parquet files under `data/`, and what their columns mean in `meta/info.json`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from policyspace.data.connectors.recording import Recording
from policyspace.data.input_files import parse_json, settings_text
from policyspace.data.roles import Stored
from policyspace.errors import InputError, reason_of

if TYPE_CHECKING:
    import polars

INFO = Path("meta") / "info.json"
PICTURES = ("image", "video")


def recognises(source: Any) -> bool:
    """A folder with the description."""
    return isinstance(source, str | Path) and (Path(source) / INFO).is_file()


def load(source: Any) -> Stored:
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
        f"images were left out ({', '.join(cameras)}): if the agent sees what the other observations do not tell, "
        "an observation that goes with it may look used."
    )
    return Recording(
        {name: _values(frame[name], features[name].get("names")) for name in numbers},
        _values(frame["action"], features["action"].get("names")),
        frame["episode_index"].to_numpy(),
        metadata={"cautions": [caution]} if cameras else {},
    ).stored()


def _features(folder: Path) -> dict[str, dict[str, Any]]:
    try:
        features: dict[str, dict[str, Any]] = parse_json(settings_text(folder / INFO))["features"]
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
