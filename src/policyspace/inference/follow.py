"""A file that grows while the agent is watched: after every new episode, where each group stands."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.inference.eprocess import Episode, Follower, Standing
from policyspace.policies.base import PolicySpace


def follow(
    path: Path,
    load: Callable[[], Demonstrations],
    space_of: Callable[[Demonstrations], PolicySpace],
    significance: float = 0.05,
    max_episodes: int | None = None,
    wait: float | None = None,
    poll: float = 0.5,
    look_growth: float = 1.0,
) -> Iterator[Standing]:
    """The standing after every episode in the file, and after those still to come.

    An episode counts once a later one has begun, or the file has not grown for `wait` seconds; then the watch ends.
    With `wait=None` the file is read once. It ends too when every group is found, or after `max_episodes`.
    Groups are tested when the rows have grown by `look_growth` since the last test: looking costs nothing but time.
    """
    follower: Follower | None = None
    actions: tuple[str, ...] = ()
    told, looked_at, rows = 0, 0, 0
    for data, final in _versions(path, load, wait, poll):
        if data.episodes is None or data.num_episodes is None:
            raise InputError("following a file needs to know its episodes: name their column (--episodes).")
        if follower is None:
            follower, actions = Follower(space_of(data), significance), data.action_names
        if data.action_names != actions:
            new = ", ".join(name for name in data.action_names if name not in actions)
            raise InputError(
                f"the action '{new}' was not in the file when the watch began: start again now that every action is there."
            )
        complete = data.num_episodes if final else data.num_episodes - 1
        for episode in range(told, complete):
            mine = np.flatnonzero(data.episodes == episode)
            rows += len(mine)
            last = (final and episode == complete - 1) or max_episodes == episode + 1
            look = last or rows >= look_growth * looked_at
            looked_at = rows if look else looked_at
            standing = follower.tell(Episode(data.features[mine], data.actions[mine]), look)
            told = episode + 1
            yield standing
            if standing.decided or told == max_episodes:
                return


def _versions(
    path: Path, load: Callable[[], Demonstrations], wait: float | None, poll: float
) -> Iterator[tuple[Demonstrations, bool]]:
    """The data each time the file has grown, and at last once more as final."""
    data, size, quiet_since = load(), path.stat().st_size, time.monotonic()
    while wait is not None and time.monotonic() - quiet_since < wait:
        yield data, False
        while path.stat().st_size == size and time.monotonic() - quiet_since < wait:
            time.sleep(min(poll, wait))
        if path.stat().st_size != size:
            size, quiet_since = path.stat().st_size, time.monotonic()
            data = _patiently(load, wait, poll)
    yield data, True


def _patiently(load: Callable[[], Demonstrations], wait: float, poll: float) -> Demonstrations:
    """A file may be read while its last line is being written: try again before complaining."""
    deadline = time.monotonic() + wait
    while True:
        try:
            return load()
        except InputError:
            if time.monotonic() > deadline:
                raise
            time.sleep(min(poll, wait))
