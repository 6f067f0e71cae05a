"""Sequential monitoring of a log that grows."""

import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from policyspace.data.sample import Sample
from policyspace.errors import InputError
from policyspace.families.base import PolicySpace
from policyspace.inference.e_values import Episode, MonitoringState, SequentialMonitor

# -- A file that grows while it is read: each version of it, whole lines only.

LINES = (".csv", ".tsv")
CHUNK = 1 << 16


def snapshots(
    path: Path,
    load: Callable[[Path], Sample],
    wait: float | None,
    poll: float,
    notice: Callable[[str], None],
) -> Iterator[tuple[Sample, bool]]:
    """What the file holds each time it has changed and, after `wait` seconds without a change, once more as final.

    With `wait=None` the file is read once, as it stands. Otherwise a last line without its end waits for the rest, a file
    that cannot be read may be in the middle of being written, and one that is gone may come back.
    """
    if wait is None or not path.is_file():
        yield load(path), True
        return
    data: Sample | None = None
    problem: InputError | None = InputError(f"{path}: no row has come yet: wait longer.")
    unfinished, seen = False, None
    with TemporaryDirectory() as folder:
        copy, quiet_since = Path(folder) / path.name, time.monotonic()
        while True:
            now = None
            with suppress(OSError):  # while there is no file
                found = path.stat()
                now = found.st_size, found.st_mtime_ns, found.st_ino
            if now != seen:
                seen, quiet_since = now, time.monotonic()
                if now is not None and (lines := _copy_whole_lines(path, copy)) is not None:
                    rows, unfinished = lines
                    try:
                        data, problem = load(copy), None
                    except InputError as error:
                        problem = InputError(str(error).replace(str(copy), str(path)))
                        if data is None and rows:
                            raise problem from error
                    else:
                        yield data, False
            elif time.monotonic() - quiet_since >= wait:
                break
            else:
                time.sleep(min(poll, wait))
    if problem is not None:
        raise problem
    assert data is not None
    if seen is None:
        notice(f"{path}: was deleted while it was followed; what had been read by then is counted.")
    elif unfinished:
        notice(f"{path}: its last line has no end, so it may be cut off: it is not counted.")
    yield data, True


def _copy_whole_lines(path: Path, copy: Path) -> tuple[bool, bool] | None:
    """(has rows, has a line without its end) of the file now, whose whole lines are copied; None if it has just gone."""
    try:
        shutil.copyfile(path, copy)
    except OSError:
        return None
    size = copy.stat().st_size
    if not path.name.lower().endswith(LINES):
        return size > 0, False
    with copy.open("rb") as file:
        end, begin = 0, size
        while begin > 0 and not end:
            begin = max(begin - CHUNK, 0)
            file.seek(begin)
            end = begin + file.read(CHUNK).rfind(b"\n") + 1
            end = 0 if end == begin else end
        file.seek(0)
        rows = end > len(file.readline())
    os.truncate(copy, end)
    return rows, end < size


# -- A file that grows while the agent is watched: after every new episode, where each group stands.

NETWORK_GROWTH = 1.1
"""Each look at a network costs seconds: look again when there is a tenth more to see."""


def follow(
    path: Path,
    load: Callable[[Path], Sample],
    space_of: Callable[[Sample], PolicySpace],
    significance: float = 0.05,
    max_episodes: int | None = None,
    wait: float | None = None,
    poll: float = 0.5,
    labels: Sequence[str] = (),
    notice: Callable[[str], None] = warnings.warn,
) -> Iterator[MonitoringState]:
    """The standing after every episode in the file, and after those still to come.

    An episode counts once a later one has begun, or the file has not grown for `wait` seconds; then the watch ends.
    With `wait=None` the file is read once. It ends too when every group is found, or after `max_episodes`.
    Rows of an episode that come after it was counted are bet on when they come, as the e-process allows. `labels` are
    all actions that may come; `notice` hears, in a sentence, what happens to the file.
    """
    follower: SequentialMonitor | None = None
    before: Sample | None = None
    told, counted, looked_at = np.zeros(0, dtype=bool), 0, 0
    for found, final in snapshots(path, load, wait, poll, notice):
        data = _as_declared(found, labels)
        episodes = _episodes(data)
        if before is None or follower is None:
            follower = SequentialMonitor(space_of(data), significance)
        else:
            data = _continued(data, before, path)
        before, told = data, np.append(told, np.zeros(data.num_rows - len(told), dtype=bool))
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


def _episodes(data: Sample) -> np.ndarray:
    if data.episodes is None:
        raise InputError("following a file needs to know its episodes: name their column (--episodes).")
    return data.episodes


def _as_declared(data: Sample, labels: Sequence[str]) -> Sample:
    """The same pairs with all actions that may come."""
    if not labels:
        return data
    if data.action_type.num_labels is None:
        raise InputError("only discrete actions can be declared, found continuous ones: leave --labels out.")
    _check_labels(data.action_names, labels)
    return replace(data, actions=data.action_type.rearranged(data.actions, labels), action_names=tuple(labels))


def _check_labels(found: Sequence[str], known: Sequence[str]) -> None:
    if new := [name for name in found if name not in known]:
        every = ",".join([*known, *new])
        raise InputError(f"the action '{new[0]}' was not known when the watch began: declare all with --labels {every}")


def _continued(data: Sample, before: Sample, path: Path) -> Sample:
    """The data in the columns of before, found by name; the rows of before must still be there."""
    if data.action_type.kind != before.action_type.kind:
        raise InputError(f"{path}: its actions were of another kind before: choose with --policy, and start again.")
    wanted = (before.names,) if before.action_type.num_labels is not None else (before.names, before.action_names)
    for names, here in zip(wanted, (data.names, data.action_names), strict=False):
        if missing := [name for name in names if name not in here]:
            raise InputError(
                f"{path}: its columns changed while it was followed, '{missing[0]}' is no longer among them: name the "
                "columns with --features, and start again."
            )
    features = data.features[:, [data.names.index(name) for name in before.names]]
    if before.action_type.num_labels is not None:
        _check_labels(data.action_names, before.action_names)
    actions = data.action_type.rearranged(data.actions, before.action_names)
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
