"""Whatever a user calls data, as demonstrations: arrays, a table, a file, or demonstrations that are ready."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from policyspace.data.columns import Table
from policyspace.data.demonstrations import Demonstrations
from policyspace.data.readers import read
from policyspace.data.vocabulary import is_names
from policyspace.errors import InputError


def demonstrations_of(
    data: Any,
    actions: Any = None,
    features: Sequence[str] | None = None,
    episodes: Any = None,
    weights: Any = None,
    reference: Any = None,
    discrete: bool | None = None,
) -> Demonstrations:
    """The pairs in `data`: of a table or a file the other arguments name the columns, beside an array they are arrays.

    `features` names the columns of an array, too. Demonstrations that are ready take another reference, nothing else.
    """
    if isinstance(data, Demonstrations):
        said = {"actions": actions, "features": features, "episodes": episodes, "weights": weights}
        for word, value in said.items():
            if value is not None:
                raise InputError(
                    f"the demonstrations have said what their {word} are, found {word}= too: leave it out, or give the "
                    "arrays or the file instead of the demonstrations."
                )
        return data if reference is None else data.with_reference(reference)
    if isinstance(data, str | Path):
        return read(data, actions, features, episodes, weights, discrete, reference)
    table = hasattr(data, "columns")
    if table and actions is not None and is_names(actions):
        return Demonstrations.from_frame(data, actions, features, episodes, weights, discrete, reference)
    if actions is None:
        raise InputError("the actions are missing: give an array of actions, or the name of the action column.")
    if table and features is not None:
        data = Table.of(data).only([features] if isinstance(features, str) else list(features))
    return Demonstrations.from_arrays(
        data,
        actions,
        [str(name) for name in data.columns] if table else features,
        episodes=episodes,
        weights=weights,
        reference=reference,
        discrete=discrete,
    )
