"""A file that grows while the agent is watched: after every new episode, where each group stands."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.data.growing_file import versions
from policyspace.errors import InputError
from policyspace.inference.eprocess import Episode, Follower, Standing
from policyspace.policies.base import PolicySpace

NETWORK_GROWTH = 1.1
"""Each look at a network costs seconds: look again when there is a tenth more to see."""


def follow(
    path: Path,
    load: Callable[[Path], Demonstrations],
    space_of: Callable[[Demonstrations], PolicySpace],
    significance: float = 0.05,
    max_episodes: int | None = None,
    wait: float | None = None,
    poll: float = 0.5,
    labels: Sequence[str] = (),
    notice: Callable[[str], None] = warnings.warn,
) -> Iterator[Standing]:
    """The standing after every episode in the file, and after those still to come.

    An episode counts once a later one has begun, or the file has not grown for `wait` seconds; then the watch ends.
    With `wait=None` the file is read once. It ends too when every group is found, or after `max_episodes`.
    Rows of an episode that come after it was counted are bet on when they come, as the e-process allows. `labels` are
    all actions that may come; `notice` hears, in a sentence, what happens to the file.
    """
    follower: Follower | None = None
    before: Demonstrations | None = None
    told, counted, looked_at = np.zeros(0, dtype=bool), 0, 0
    for found, final in versions(path, load, wait, poll, notice):
        data = _as_declared(found, labels)
        episodes = _episodes(data)
        if before is None or follower is None:
            follower = Follower(space_of(data), significance)
        else:
            data = _continued(data, before, path)
        before, told = data, np.append(told, np.zeros(data.num_pairs - len(told), dtype=bool))
        begun = set(episodes[told])
        parts = _untold(episodes, told, complete=int(episodes.max()) + final)
        for i, rows in enumerate(parts):
            told[rows] = True
            counted += len(rows)
            if late := (episode := episodes[rows[0]]) in begun:
                notice(f"{len(rows)} rows of episode {episode + 1} came after it was counted: they are counted now.")
            last = (final and i == len(parts) - 1) or follower.num_episodes + (not late) == max_episodes
            growth = 1.0 if follower.space.column_names else NETWORK_GROWTH
            look = last or counted >= growth * looked_at
            looked_at = counted if look else looked_at
            standing = follower.tell(Episode(data.features[rows], data.actions[rows]), look, late)
            yield standing
            if standing.decided or standing.num_episodes == max_episodes:
                return


def _episodes(data: Demonstrations) -> np.ndarray:
    if data.episodes is None:
        raise InputError("following a file needs to know its episodes: name their column (--episodes).")
    return data.episodes


def _as_declared(data: Demonstrations, labels: Sequence[str]) -> Demonstrations:
    """The same pairs with all actions that may come."""
    if not labels:
        return data
    if not data.discrete:
        raise InputError("only actions that are labels can be declared, found numbers: leave --labels out.")
    _check_labels(data.action_names, labels)
    codes = np.array([list(labels).index(name) for name in data.action_names])
    return replace(data, actions=codes[data.actions], action_names=tuple(labels))


def _check_labels(found: Sequence[str], known: Sequence[str]) -> None:
    if new := [name for name in found if name not in known]:
        every = ",".join([*known, *new])
        raise InputError(f"the action '{new[0]}' was not known when the watch began: declare all with --labels {every}")


def _continued(data: Demonstrations, before: Demonstrations, path: Path) -> Demonstrations:
    """The data in the columns of before, found by name; the rows of before must still be there."""
    if data.discrete != before.discrete:
        raise InputError(f"{path}: its actions were of another kind before: choose with --policy, and start again.")
    wanted = (before.names,) if data.discrete else (before.names, before.action_names)
    for names, here in zip(wanted, (data.names, data.action_names), strict=False):
        if missing := [name for name in names if name not in here]:
            raise InputError(
                f"{path}: its columns changed while it was followed, '{missing[0]}' is no longer among them: name the "
                "columns with --features, and start again."
            )
    features = data.features[:, [data.names.index(name) for name in before.names]]
    if data.discrete:
        _check_labels(data.action_names, before.action_names)
        actions = np.array([before.action_names.index(name) for name in data.action_names])[data.actions]
    else:
        actions = data.actions[:, [data.action_names.index(name) for name in before.action_names]]
    now, then = (features, actions, _episodes(data)), (before.features, before.actions, _episodes(before))
    if not all(np.array_equal(here[: len(there)], there) for here, there in zip(now, then, strict=True)):
        raise InputError(
            f"{path}: was cut off or replaced while it was followed, rows that were counted are no longer in it: put all "
            "rows into one file, and start again."
        )
    return replace(
        data, features=features, actions=actions, names=before.names, action_names=before.action_names, blocks={}
    )


def _untold(episodes: np.ndarray, told: np.ndarray, complete: int) -> list[np.ndarray]:
    """The rows of complete episodes that were not told yet, an array for each episode."""
    rows = np.flatnonzero(~told & (episodes < complete))
    rows = rows[np.argsort(episodes[rows], kind="stable")]
    return [part for part in np.split(rows, np.flatnonzero(np.diff(episodes[rows])) + 1) if len(part)]
