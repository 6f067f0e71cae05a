"""Demonstrations: the logged pairs (state, action) of an agent, validated at birth and frozen."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, final

import numpy as np

from policyspace.errors import InputError, nearest


@final
@dataclass(frozen=True, eq=False)
class Demonstrations:
    """n pairs (φ(s_i), a_i), a_i ~ π_θ(·|s_i): the data of every test (Section 3).

    `features` [n, q] has no constant column: the policy space adds it. Discrete `actions` [n] are codes into
    `action_names`, whose last name is the reference action; continuous ones are [n, k], one name a column.
    `weights` [n] multiply the log-likelihood of their rows; `blocks` names the one-hot features of each category;
    `metadata` is what else a file carried, anything that JSON can hold.
    """

    features: np.ndarray
    actions: np.ndarray
    names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    episodes: np.ndarray | None = None
    weights: np.ndarray | None = None
    blocks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        features = _floats(_columns(_array(self.features, "the features"), "the features"), "the features")
        n, q = features.shape
        if n == 0:
            raise InputError(
                "demonstrations need at least one row, found none: check the file or the filter behind it."
            )
        if q == 0:
            raise InputError("demonstrations need at least one feature, found none: name the columns to test.")
        names = _names(self.names, [f"x{j}" for j in range(q)], "feature")
        _check_finite(features, names, "feature")
        actions = _array(self.actions, "the actions")
        _check_length(actions, n, "actions")
        if actions.ndim == 1 and actions.dtype.kind in "biu":
            actions = actions.astype(np.int64)
            action_names = _names(self.action_names, [str(a) for a in range(int(actions.max()) + 1)], "action", any)
            _check_codes(actions, action_names)
        else:
            actions = _floats(_columns(actions, "the actions"), "the actions")
            k = actions.shape[1]
            action_names = _names(self.action_names, default_action_names(k), "action column")
            _check_finite(actions, action_names, "action")
        weights = None if self.weights is None else _weights(self.weights, n)
        episodes = None if self.episodes is None else _factorise(_array(self.episodes, "the episodes"), n)
        _check_choice(actions, action_names, weights)
        blocks = {str(name): tuple(inside) for name, inside in self.blocks.items()}
        _check_blocks(blocks, names)
        values = (features, actions, names, action_names, episodes, weights, blocks, dict(self.metadata))
        for name, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, name, _frozen(value) if isinstance(value, np.ndarray) else value)

    @property
    def discrete(self) -> bool:
        """Are the actions codes of labels, rather than numbers?"""
        return self.actions.ndim == 1

    @property
    def num_pairs(self) -> int:
        """n: how many pairs (state, action)."""
        return len(self.features)

    @property
    def num_episodes(self) -> int | None:
        """m: how many episodes, if the rows say which they belong to."""
        return None if self.episodes is None else int(self.episodes.max()) + 1

    @property
    def total_weight(self) -> float:
        """Σ weights, which is n without weights."""
        return float(self.num_pairs) if self.weights is None else float(self.weights.sum())

    @property
    def looks_discrete(self) -> bool:
        """Is the one continuous action only ever one of at most ten whole numbers? Then it may be a label."""
        if self.discrete or self.actions.shape[1] > 1:
            return False
        levels = np.unique(self.actions)
        return len(levels) <= 10 and bool((levels == np.round(levels)).all())

    def with_reference(self, label: Any) -> Self:
        """The same pairs with the action `label` last: the reference, whose weights are zero (Table 1)."""
        if not self.discrete:
            raise InputError(
                f"only discrete actions have a reference, found continuous ones: drop reference={label!r}."
            )
        name = _text(label)
        if name not in self.action_names:
            raise InputError(f"the reference '{name}' is no action: {nearest(name, self.action_names)}.")
        order = [*(a for a, other in enumerate(self.action_names) if other != name), self.action_names.index(name)]
        code = np.argsort(order)
        return replace(self, actions=code[self.actions], action_names=tuple(self.action_names[a] for a in order))

    @classmethod
    def from_arrays(
        cls,
        features: Any,
        actions: Any,
        names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        episodes: Any = None,
        weights: Any = None,
        reference: Any = None,
        discrete: bool | None = None,
        blocks: Mapping[str, Sequence[str]] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> "Demonstrations":
        """From arrays or lists: whole numbers, booleans and text are discrete actions, other numbers continuous ones.

        `discrete` says otherwise. Labels are sorted and the last is the reference, unless `reference` names another.
        `action_names` gives the order of the labels, or names for the codes 0, 1, ….
        """
        array = _array(actions, "the actions")
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if _is_discrete(array, discrete):
            array, labels = _encode(array, action_names, trusted=discrete is True)
        else:
            array = _floats(_columns(array, "the actions"), "the actions")
            labels = tuple(action_names or ())
        made = cls(
            features,
            array,
            tuple(names or ()),
            labels,
            episodes,
            weights,
            {name: tuple(inside) for name, inside in (blocks or {}).items()},
            metadata or {},
        )
        return made if reference is None else made.with_reference(reference)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        action: str | Sequence[str],
        features: Sequence[str] | None = None,
        episode: str | None = None,
        weight: str | None = None,
        discrete: bool | None = None,
        reference: Any = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> "Demonstrations":
        """From a polars, pandas or Arrow table; without `features`, every column that plays no other role is one.

        A column of text becomes one-hot features `column=level`, without its last level, and one block.
        """
        from policyspace.features import Table

        table = Table.of(frame)
        chosen = [action] if isinstance(action, str) else list(action)
        others = [name for name in (episode, weight) if name is not None]
        wanted = table.roles(chosen, None if features is None else list(features), others)
        columns, names, blocks = table.features(wanted)
        return cls.from_arrays(
            columns,
            table.actions(chosen),
            names,
            None if len(chosen) == 1 and table.is_label(chosen[0], discrete) else chosen,
            None if episode is None else table.labels(episode),
            None if weight is None else table.numbers(weight),
            reference,
            discrete,
            blocks,
            metadata,
        )


def default_action_names(k: int) -> list[str]:
    """The names of k continuous action columns that have none."""
    return ["action"] if k == 1 else [f"action_{a}" for a in range(k)]


def _array(values: Any, what: str) -> np.ndarray:
    if np.ma.is_masked(values):
        raise InputError(f"{what} must not miss any value, found masked entries: drop or fill these rows.")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise InputError(f"{what} must be rows of the same length, found a ragged or unreadable array.") from error
    if array.ndim not in (1, 2):
        raise InputError(f"{what} must be an array with one row a pair, found {array.ndim} dimensions: reshape it.")
    return array


def _columns(array: np.ndarray, what: str) -> np.ndarray:
    array = array[:, None] if array.ndim == 1 else array
    if array.shape[1] == 0 and len(array):
        raise InputError(f"{what} must have at least one column, found none.")
    return array


def _floats(array: np.ndarray, what: str) -> np.ndarray:
    """float64, without reading text, dates or complex numbers as numbers."""
    if array.dtype.kind == "O":
        for (row, *_), value in np.ndenumerate(array):
            if not isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating):
                found = "a missing value" if value is None else f"{value!r}"
                raise InputError(f"{what} must be numbers, found {found} in row {row + 1}.")
    elif array.dtype.kind not in "biuf":
        raise InputError(f"{what} must be numbers, found an array of type {array.dtype}.")
    try:
        with np.errstate(over="ignore"):  # what overflows is infinite, and refused as such
            return array.astype(np.float64)
    except OverflowError as error:
        raise InputError(f"{what} must fit in 64-bit floats, found a larger number.") from error


def _check_finite(array: np.ndarray, names: Sequence[str], what: str) -> None:
    bad = ~np.isfinite(array)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise InputError(
            f"{what} '{names[column]}' must be finite numbers, found {array[row, column]} in row {row + 1}: "
            "drop or fill such rows."
        )


def _check_length(array: np.ndarray, n: int, what: str) -> None:
    if len(array) != n:
        raise InputError(f"{what} and features must have the same number of rows, found {len(array)} and {n}.")


def _names(given: Iterable[Any], default: list[str], what: str, fits: Any = None) -> tuple[str, ...]:
    """Unique names, as many as the default ones; `fits=any` allows more."""
    names = tuple(str(name) for name in given) or tuple(default)
    if len(names) != len(default) and (fits is None or len(names) < len(default)):
        raise InputError(f"there must be one name for each {what}, found {len(names)} names for {len(default)}.")
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"every {what} needs a name of its own, found '{twice}' twice: rename one.")
    return names


def _check_codes(codes: np.ndarray, names: tuple[str, ...]) -> None:
    bad = (codes < 0) | (codes >= len(names))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"action codes must be 0 to {len(names) - 1}, found {codes[row]} in row {row + 1}.")


def _check_choice(actions: np.ndarray, names: tuple[str, ...], weights: np.ndarray | None) -> None:
    seen = actions if weights is None else actions[weights > 0]
    if (seen == seen[0]).all():
        only = names[int(seen[0])] if seen.ndim == 1 else ", ".join(f"{a:g}" for a in seen[0])
        raise InputError(
            f"every row has the action '{only}': nothing can be identified from an agent that never chooses."
        )


def _check_blocks(blocks: Mapping[str, tuple[str, ...]], names: tuple[str, ...]) -> None:
    inside = [name for members in blocks.values() for name in members]
    for block, members in blocks.items():
        if block in names:
            raise InputError(f"a block needs a name of its own, found '{block}', which is a feature: rename one.")
        if not members:
            raise InputError(f"block '{block}' must hold at least one feature, found none.")
    for name in inside:
        if name not in names:
            raise InputError(f"a block holds '{name}', which is no feature: {nearest(name, names)}.")
        if inside.count(name) > 1:
            raise InputError(f"a feature belongs to at most one block, found '{name}' twice.")


def _weights(given: Any, n: int) -> np.ndarray:
    weights = _floats(_array(given, "the weights"), "the weights").squeeze()
    weights = weights.reshape(-1) if weights.ndim == 0 else weights
    if weights.ndim != 1:
        raise InputError(f"the weights must be one number a row, found shape {weights.shape}.")
    _check_length(weights, n, "weights")
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"weights must be finite and not negative, found {weights[row]} in row {row + 1}.")
    if not weights.any():
        raise InputError("at least one weight must be positive, found only zeros.")
    return weights


def _factorise(labels: np.ndarray, n: int) -> np.ndarray:
    """Any labels as 0, 1, … in the order in which they first appear."""
    _check_length(labels, n, "episodes")
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1:
        raise InputError(f"the episodes must be one label a row, found shape {labels.shape}.")
    missing = labels == None if labels.dtype.kind == "O" else labels != labels  # noqa: E711
    if missing.any():
        raise InputError(f"every row needs an episode, found none in row {int(np.argmax(missing)) + 1}.")
    try:
        _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    except TypeError as error:
        raise InputError("the episodes must be labels of one kind, found a mixture: use text or numbers.") from error
    return np.argsort(np.argsort(first))[inverse]


def _is_discrete(array: np.ndarray, discrete: bool | None) -> bool:
    if array.ndim == 2:
        if discrete or (discrete is None and array.dtype.kind != "f"):
            raise InputError(
                f"discrete actions must be one column, found {array.shape[1]} columns of type {array.dtype}: "
                "choose one, or say discrete=False if they are numbers."
            )
        return False
    return array.dtype.kind not in "fcmMV" if discrete is None else discrete


def _encode(actions: np.ndarray, names: Sequence[str] | None, trusted: bool) -> tuple[np.ndarray, tuple[str, ...]]:
    """Codes and the labels they stand for."""
    actions = _labels(actions)
    levels, codes = np.unique(actions, return_inverse=True)
    found = [_text(level) for level in levels]
    n, distinct = len(actions), len(found)
    if not trusted and distinct > 100 and distinct > n / 10:
        raise InputError(
            f"the action has {distinct} distinct values in {n} rows, too many to be labels: it looks continuous, "
            "so pass policy gaussian, or choose another column."
        )
    if names is None:
        return codes, tuple(found)
    names = tuple(str(name) for name in names)
    if actions.dtype.kind in "iu" and not set(found) <= set(names):
        _check_codes(actions, names)  # not labels, so codes of the names
        codes, found = actions, [names[a] for a in levels]
    else:
        for label in found:
            if label not in names:
                raise InputError(f"the action '{label}' is not among the action names: {nearest(label, names)}.")
        codes = np.array([names.index(label) for label in found])[codes]
    for name in names:
        if name not in found:
            raise InputError(
                f"the action '{name}' is never played, so it has no finite parameters: drop it from the action names."
            )
    return codes, names


def _labels(actions: np.ndarray) -> np.ndarray:
    """Whole numbers, booleans or text; floats only if they are whole."""
    kind = actions.dtype.kind
    if kind == "f":
        bad = ~(np.isfinite(actions) & (actions == np.round(actions)) & (np.abs(actions) < 2**53))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"discrete actions must be labels or whole numbers, found {actions[row]} in row {row + 1}."
            )
        return actions.astype(np.int64)
    if kind == "O":
        for row, value in enumerate(actions):
            if not isinstance(value, str | bool | int | np.integer | np.bool_):
                found = "a missing value" if value is None else f"{value!r}"
                raise InputError(f"discrete actions must be labels or whole numbers, found {found} in row {row + 1}.")
        if len({isinstance(value, str) for value in actions}) > 1:
            raise InputError("discrete actions must be all text or all numbers, found a mixture.")
    elif kind not in "biuUS":
        raise InputError(f"actions must be labels or numbers, found an array of type {actions.dtype}.")
    return np.char.decode(actions, "utf-8") if kind == "S" else actions


def _text(label: Any) -> str:
    whole = isinstance(label, float | np.floating) and float(label).is_integer()
    return str(int(label)) if whole else str(label)


def _frozen(array: np.ndarray) -> np.ndarray:
    array = np.array(array, order="C")
    array.setflags(write=False)
    return array
