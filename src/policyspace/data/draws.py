"""Randomised features: their known distributions, the values that were delivered, and how files keep both."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final
from zlib import crc32

import numpy as np

from policyspace.errors import InputError, nearest

if TYPE_CHECKING:
    from policyspace.data.sample import Sample


@final
@dataclass(frozen=True)
class DrawRecord:
    """What a log says of the readings that were drawn in it; the draws themselves are columns beside its rows.

    With a chance, the share, a group read one of `candidates` other readings, each as probable as the others; else what
    was there. For every row a column `draw.GROUP` says which (0: what was there), `share.GROUP` with which chance, and
    `reading.FEATURE.k` what the reading k of a feature was. `check.i` goes with the i-th column of actions, and follows
    from all rows up to its own: rows that were changed, moved or left out are seen by it.
    """

    groups: Mapping[str, tuple[str, ...]]
    """By name the features that were drawn together."""
    candidates: int
    """Beside what was there."""
    likely: int = 0
    """So many of them, the last ones, are readings of similar rows."""
    memory: int = 0
    """For so many steps after a reading an action may still depend on it."""
    adaptive: bool = False
    """Did shares depend on what was found before? Then the draws cannot be made again, only bet on."""
    levels: Mapping[str, int] = field(default_factory=dict)
    """Of features that are categories how many there are."""
    choices: tuple[int, ...] = ()
    """Of every column of actions how many there are; 0 of a number."""
    first: tuple[int, ...] = ()
    """Of every column of actions the smallest one, if they are choices."""

    @property
    def places(self) -> dict[str, slice]:
        """By group its columns among those of all features."""
        ends = np.cumsum([len(features) for features in self.groups.values()])
        return {
            group: slice(int(end) - len(features), int(end))
            for (group, features), end in zip(self.groups.items(), ends, strict=True)
        }

    def encoded(self, readings: np.ndarray, group: str) -> np.ndarray:
        """Readings [..., features of the group] as numbers: levels as zeros and a one, the first and others as zeros."""
        columns = []
        for i, name in enumerate(self.groups[group]):
            value = readings[..., i, None]
            size = self.levels.get(name, 0)
            columns.append((value == np.arange(1, size)).astype(np.float64) if size else value)
        return np.concatenate(columns, axis=-1)


@final
@dataclass(frozen=True, eq=False)
class Draws:
    """The draws of n rows: `readings` [n, 1 + K, q] of all features, what was there first; `shares` and `drawn` [n, G]."""

    record: DrawRecord
    readings: np.ndarray
    shares: np.ndarray
    drawn: np.ndarray

    def __len__(self) -> int:
        return len(self.drawn)

    @property
    def chances(self) -> list[np.ndarray]:
        """Of each group the chance of every reading [n, 1 + K]."""
        k = self.record.candidates
        return [np.hstack([1 - s[:, None], np.repeat(s[:, None] / k, k, axis=1)]) for s in self.shares.T]

    @property
    def delivered(self) -> np.ndarray:
        """What was delivered of every feature [n, q]."""
        sizes = [len(features) for features in self.record.groups.values()]
        which = np.repeat(self.drawn, sizes, axis=1)
        return np.asarray(np.take_along_axis(self.readings, which[:, None, :], axis=1)[:, 0])

    def checks(self, action: np.ndarray) -> np.ndarray:
        """A number for every row [n] that follows from all rows up to it, with one column of actions."""
        parts = [np.ascontiguousarray(part, dtype="<f8") for part in (self.readings, self.shares, self.drawn, action)]
        found, last = np.zeros(len(self), dtype=np.int64), 0
        for row in range(len(self)):
            for part in parts:
                last = crc32(part[row].tobytes(), last)
            found[row] = last
        return found

    def columns(self, actions: np.ndarray) -> dict[str, np.ndarray]:
        """What a log keeps beside its rows, from all columns of actions [n, k]."""
        record, found = self.record, dict[str, np.ndarray]()
        for g, (group, place) in enumerate(record.places.items()):
            found |= {f"draw.{group}": self.drawn[:, g], f"share.{group}": self.shares[:, g]}
            for i, name in enumerate(record.groups[group]):
                each = self.readings[:, :, place.start + i]
                found |= {f"reading.{name}.{k}": each[:, k] for k in range(1 + record.candidates)}
        return found | {f"check.{i}": self.checks(column) for i, column in enumerate(actions.T)}


def draws_of(sample: "Sample") -> tuple[Draws, np.ndarray, tuple[int, ...]]:
    """The draws that a log has recorded, its actions as numbers [n, k], and how many choices each has; 0 of a number.

    Refuses draws that were not possible, readings that were not delivered, and rows that were changed, moved or left out.
    """
    record = sample.origin.draws
    if record is None:
        raise InputError(
            "the test 'randomised' takes readings that were drawn, found none in this log: record them "
            "(RandomisedReadings), say which columns were drawn (--assigned), or leave the test out."
        )
    drawn = np.column_stack([_column(sample, f"draw.{group}") for group in record.groups])
    shares = np.column_stack([_column(sample, f"share.{group}") for group in record.groups])
    names = [name for features in record.groups.values() for name in features]
    size = 1 + record.candidates
    readings = np.stack(
        [np.column_stack([_column(sample, f"reading.{name}.{k}") for k in range(size)]) for name in names], axis=-1
    )
    possible = (drawn % 1 == 0) & (drawn >= 0) & (drawn < size) & (shares >= 0) & (shares < 1)
    possible &= (drawn == 0) | (shares > 0)
    if not possible.all():
        row, g = (int(i) for i in np.argwhere(~possible)[0])
        group = list(record.groups)[g]
        raise InputError(
            f"row {row + 1} says that reading {drawn[row, g]:g} of '{group}' was delivered with a share of "
            f"{shares[row, g]:g}, which cannot be with {record.candidates} candidates: the log was changed."
        )
    draws = Draws(record, readings, shares, drawn.astype(np.int64))
    _check_delivered(sample, names, draws)
    return draws, *_checked_actions(sample, draws)


def _column(sample: "Sample", name: str) -> np.ndarray:
    if name not in sample.recorded:
        raise InputError(f"the log says that readings were drawn, found no column '{name}': take the log as written.")
    found = sample.recorded[name].astype(np.float64)
    if not np.isfinite(found).all():
        raise InputError(f"column '{name}' must be complete, found a missing value: take the log as it was written.")
    return found


def _check_delivered(sample: "Sample", names: Sequence[str], draws: Draws) -> None:
    """Did every row read what was drawn? Features that were left out, or made into others, are not looked at."""
    delivered = draws.delivered
    for name, expected in zip(names, delivered.T, strict=True):
        if name in sample.names:
            wrong = sample.features[:, sample.names.index(name)] != expected
        elif name in sample.blocks:
            members = sample.blocks[name]
            shown = sample.features[:, [sample.names.index(member) for member in members]]
            levels = np.array([f"{name}={int(value)}" for value in expected])
            wrong = (shown != (levels[:, None] == np.array(members))).any(axis=1)
        else:
            continue
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"row {row + 1} should have read {expected[row]:g} of '{name}' by its draw, found otherwise: the log was "
                "changed or its rows were moved, take it as written."
            )


def _checked_actions(sample: "Sample", draws: Draws) -> tuple[np.ndarray, tuple[int, ...]]:
    """The actions as they were when they were recorded; of several choices the one that is tested."""
    record, kind = draws.record, sample.action_type
    if kind.num_labels is None:
        actions, size = np.asarray(sample.actions, dtype=np.float64), sample.actions.shape[1]
        columns = list(range(size)) if size == len(record.choices) else []
        if not any(record.choices) and columns:
            for i in columns:
                _check_rows(_column(sample, f"check.{i}"), draws.checks(actions[:, i]))
            return actions, record.choices
    else:
        labels = kind.decode(sample.actions)
        try:
            numbers = np.array([int(label) for label in labels])
        except ValueError:
            numbers = np.zeros(0, dtype=np.int64)
        found: tuple[np.ndarray, np.ndarray] | None = None
        for i, (k, first) in enumerate(zip(record.choices, record.first, strict=True)):
            codes = numbers - first
            if k and len(codes) and (codes >= 0).all() and (codes < k).all():
                found = _column(sample, f"check.{i}"), draws.checks(codes)
                if np.array_equal(*found):
                    return codes[:, None], (k,)
        if found is not None:
            _check_rows(*found)
    raise InputError(
        "the draws were recorded with other actions than those of this log: test the action that was recorded, or leave "
        "the test 'randomised' out."
    )


def _check_rows(recorded: np.ndarray, expected: np.ndarray) -> None:
    """One sentence about the first row that is not as it was written, or not at its place."""
    wrong = recorded != expected
    if wrong.any():
        raise InputError(
            f"row {int(np.argmax(wrong)) + 1} is not the one that was recorded after those before it: a value was changed, "
            "or rows were moved or left out; take the log as it was written."
        )


def record_of(given: Mapping[str, Any]) -> DrawRecord:
    """From what a file holds of one."""
    groups = {name: tuple(features) for name, features in given["groups"].items()}
    lists = {name: tuple(given.get(name, ())) for name in ("choices", "first")}
    return DrawRecord(**{**given, "groups": groups, **lists})


# -- Tables of experiments, whose stimuli were drawn by the experimenter: no candidates are recorded, it is said how.

LEVELS = 32
"""A drawn column with more values is one of numbers."""

UNLIKELY = 1e-4
"""A column that chance would make so unlike what was said is pointed out."""

HOW = "uniform, permuted, permuted:COLUMN or chances such as 0.3,0.7"


def levels_of(sample: "Sample", name: str) -> tuple[np.ndarray, np.ndarray]:
    """The values [c, k] of a feature, or of a category in its columns, in their order; and which one each row has [n]."""
    if name in sample.blocks:
        members = [sample.names.index(member) for member in sample.blocks[name]]
        shown = sample.features[:, members]
        codes = np.where(shown.any(axis=1), shown.argmax(axis=1), len(members))
        return np.vstack([np.eye(len(members)), np.zeros(len(members))]), codes
    values, codes = np.unique(sample.features[:, sample.names.index(name)], return_inverse=True)
    return values[:, None], codes


def chances_of(text: str) -> np.ndarray | None:
    """The chances in a text such as 0.3,0.7; None where it holds none."""
    try:
        found = np.array([float(part) for part in text.split(",")])
    except ValueError:
        return None
    return found if (found > 0).all() and abs(found.sum() - 1) < 1e-6 else None


def with_assigned(sample: "Sample", assigned: Mapping[str, str], labels: Callable[[str], np.ndarray]) -> "Sample":
    """The rows, which then know how some of their features were drawn; `labels` are those of another column [n].

    What does not look as it is said to have been drawn is pointed out.
    """
    from scipy.stats import chisquare  # slow to import, and seldom needed

    notes, recorded = [], dict(sample.recorded)
    known = [name for name in sample.names if not any(name in inside for inside in sample.blocks.values())]
    known += list(sample.blocks)
    for name, how in assigned.items():
        if name not in known:
            raise InputError(f"'{name}' is said to have been drawn, but is no feature: {nearest(name, known)}")
        word, colon, column = how.partition(":")
        chances = chances_of(how)
        if (word != "permuted" and (colon or (how != "uniform" and chances is None))) or (colon and not column):
            raise InputError(f"how '{name}' was drawn must be {HOW}, found '{how}': correct it.")
        values, codes = levels_of(sample, name)
        counts = np.bincount(codes, minlength=len(values))
        if word == "permuted":
            if colon:
                recorded[f"assigned.{name}"] = np.unique(labels(column), return_inverse=True)[1]
            within = recorded.get(f"assigned.{name}", np.zeros(sample.num_rows, dtype=np.int64))
            if len(np.unique(np.stack([within, codes]), axis=1).T) == len(np.unique(within)):
                raise InputError(
                    f"'{name}' is said to have been permuted within {column or 'the log'}, found it always the same there: "
                    "name what it was permuted within."
                )
            continue
        if chances is not None and len(chances) != len(values):
            raise InputError(
                f"'{name}' has {len(values)} values, found {len(chances)} chances: give one for each value."
            )
        if chances is None and len(values) > LEVELS:
            low, high = values.min(), values.max()
            places = np.clip(((values[codes, 0] - low) / (high - low) * 10).astype(np.int64), 0, 9)
            counts, chances = np.bincount(places, minlength=10), np.full(10, 0.1)
        expected = np.full(len(counts), 1 / len(counts)) if chances is None else chances
        p = float(chisquare(counts, expected * counts.sum()).pvalue)
        if p < UNLIKELY:
            notes.append(
                f"'{name}' does not look as if drawn by '{how}' (χ², p = {p:.1g}): the test holds only if it was."
            )
    origin = replace(sample.origin, assigned=dict(assigned)).noted(*notes)
    return replace(sample, origin=origin, recorded=recorded)
