"""Demonstrations: the logged pairs (state, action) of an agent, validated at birth and frozen."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from policyspace.data.arrays import (
    MAX_LABELS,
    as_array,
    as_floats,
    as_matrix,
    as_vector,
    check_codes,
    encode,
    factorise,
    is_discrete,
    label_text,
)
from policyspace.data.missing import Missing
from policyspace.data.vocabulary import names_of, one_vocabulary
from policyspace.errors import InputError, check_unique, nearest

if TYPE_CHECKING:
    from policyspace.data.large.log import LargeLog

MOST_COPIES = 1_000_000
"""Rows that whole-number weights may be written out to."""

_one_action_will_do = ContextVar("_one_action_will_do", default=False)


@contextmanager
def one_action_will_do() -> Iterator[None]:
    """In here the pairs of an agent that never chooses are not refused: a study keeps them, though nothing tests them."""
    before = _one_action_will_do.set(True)
    try:
        yield
    finally:
        _one_action_will_do.reset(before)


@final
@dataclass(frozen=True, eq=False)
class Demonstrations:
    """n pairs (φ(s_i), a_i), a_i ~ π_θ(·|s_i): the data of every test (Section 3).

    `features` [n, q] has no constant column: the policy space adds it. Discrete `actions` [n] are codes into
    `action_names`, whose last name is the reference action; continuous ones are [n, k], one name a column.
    `weights` [n] multiply the log-likelihood of their rows; `blocks` names the one-hot features of each category;
    `metadata` is what else a file carried, anything that JSON can hold; `subjects` [n] are the people or animals whose
    rows belong together; `recorded` holds what else was written down of each row [n], which no test looks at: ends of
    episodes, rewards, log-probabilities; `whole` is the log of which these rows are a sample, where it is read in passes.
    """

    features: np.ndarray
    actions: np.ndarray
    names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    episodes: np.ndarray | None = None
    weights: np.ndarray | None = None
    blocks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    subjects: np.ndarray | None = None
    recorded: Mapping[str, np.ndarray] = field(default_factory=dict)
    whole: "LargeLog | None" = None

    def __post_init__(self) -> None:
        features = as_matrix(self.features, "the features")
        n, q = features.shape
        if n == 0:
            raise InputError(
                "demonstrations need at least one row, found none: check the file or the filter behind it."
            )
        if q == 0:
            raise InputError("demonstrations need at least one feature, found none: name the columns to test.")
        names = _names(self.names or [f"x{j}" for j in range(q)], "feature")
        _check_numbers(features, names, "feature")
        actions, action_names = _actions(self.actions, self.action_names, n)
        episodes = None if self.episodes is None else factorise(self.episodes, "the episodes")
        subjects = None if self.subjects is None else factorise(self.subjects, "the subjects")
        weights = None if self.weights is None else as_floats(as_vector(self.weights, "the weights"), "the weights")
        _check_length(episodes, n, "episodes")
        _check_length(subjects, n, "subjects")
        _check_weights(weights, n)
        _check_choice(actions, action_names, weights)
        blocks = {str(name): tuple(inside) for name, inside in self.blocks.items()}
        _check_blocks(blocks, names)
        recorded = _recorded(self.recorded, names, n)
        metadata = dict(self.metadata)
        values = (
            features, actions, names, action_names, episodes, weights, blocks, metadata, subjects, recorded, self.whole,
        )  # fmt: skip
        for name, value in zip(self.__dataclass_fields__, values, strict=True):
            frozen = _frozen(value, getattr(self, name)) if isinstance(value, np.ndarray) else value
            object.__setattr__(self, name, frozen)

    @property
    def discrete(self) -> bool:
        """Are the actions codes of labels, rather than numbers?"""
        return self.actions.ndim == 1

    @property
    def num_pairs(self) -> int:
        """n: how many pairs (state, action)."""
        return len(self.features)

    @property
    def num_logged(self) -> int:
        """How many pairs there are in all, where these are a sample."""
        return self.num_pairs if self.whole is None else self.whole.num_rows

    @property
    def num_episodes(self) -> int | None:
        """m: how many episodes, if the rows say which they belong to; of a sample, those of the whole log."""
        if self.whole is not None:
            return self.whole.num_episodes
        return None if self.episodes is None else int(self.episodes.max()) + 1

    @property
    def total_weight(self) -> float:
        """Σ weights, which is n without weights."""
        return float(self.num_pairs) if self.weights is None else float(self.weights.sum())

    @property
    def sampling_weights(self) -> bool:
        """Do the weights say how many of a population a row stands for, rather than how many equal pairs it is?"""
        return self.weights is not None and self.metadata.get("weights_are") == "sampling"

    @property
    def counted_pairs(self) -> int:
        """How many pairs were observed: the sum of the weights where they are counts, else the number of rows."""
        if self.whole is not None:
            return self.whole.counted_pairs
        whole = self.weights is not None and not self.sampling_weights and bool((self.weights % 1 == 0).all())
        return round(self.total_weight) if whole else self.num_pairs

    @property
    def looks_discrete(self) -> bool:
        """Is the one continuous action only ever one of at most ten whole numbers? Then it may be a label."""
        if self.discrete or self.actions.shape[1] > 1:
            return False
        levels = np.unique(self.actions)
        return len(levels) <= 10 and bool((levels == np.round(levels)).all())

    def rows(self, rows: np.ndarray) -> "Demonstrations":
        """Some rows of the data, in the given order; an action that they do not hold stays possible."""
        return Demonstrations(
            self.features[rows],
            self.actions[rows],
            self.names,
            self.action_names,
            None if self.episodes is None else self.episodes[rows],
            None if self.weights is None else self.weights[rows],
            self.blocks,
            self.metadata,
            None if self.subjects is None else self.subjects[rows],
            {name: values[rows] for name, values in self.recorded.items()},
        )

    def without_weights(self, what: str) -> "Demonstrations":
        """The data without weights: whole-number weights are counts, and become rows; others have no distribution."""
        if self.weights is None:
            return self
        counts = np.round(self.weights).astype(np.int64)
        if not np.array_equal(counts, self.weights) or counts.sum() > MOST_COPIES:
            raise InputError(
                f"{what} needs rows without weights, or whole-number weights of at most {MOST_COPIES} in all, found "
                f"weights that sum to {self.weights.sum():g}: leave them out, or use the test 'wilks'."
            )
        return replace(self.rows(np.repeat(np.arange(self.num_pairs), counts)), weights=None)

    def with_reference(self, label: Any) -> Self:
        """The same pairs with the action `label` last: the reference, whose weights are zero (Table 1)."""
        if not self.discrete:
            raise InputError(
                f"only discrete actions have a reference, found continuous ones: drop the reference '{label}'."
            )
        name = label_text(label)
        if self.whole is not None and name != self.action_names[-1]:
            raise InputError(
                "the reference of a log that is read in passes must be said when it is opened: say it there."
            )
        if name not in self.action_names:
            raise InputError(f"the reference '{name}' is no action: {nearest(name, self.action_names)}")
        order = [*(a for a, other in enumerate(self.action_names) if other != name), self.action_names.index(name)]
        code = np.argsort(order)
        return replace(self, actions=code[self.actions], action_names=tuple(self.action_names[a] for a in order))

    @classmethod
    @one_vocabulary
    def from_arrays(
        cls,
        states: Any,
        actions: Any,
        features: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        episodes: Any = None,
        weights: Any = None,
        reference: Any = None,
        discrete: bool | None = None,
        blocks: Mapping[str, Sequence[str]] | None = None,
        metadata: Mapping[str, Any] | None = None,
        subjects: Any = None,
        recorded: Mapping[str, Any] | None = None,
    ) -> "Demonstrations":
        """From arrays or lists: whole numbers, booleans and text are discrete actions, other numbers continuous ones.

        `discrete` says otherwise. `states` is [n, q], and `features` names its columns. Labels are sorted and the last is
        the reference, unless `reference` names another. `action_names` gives the order of the labels, or names for the
        codes 0, 1, ….
        """
        array = as_array(actions, "the actions")
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if is_discrete(array, discrete):
            array, labels = encode(array, action_names, trusted=discrete is True)
        else:
            array = as_matrix(array, "the actions")
            labels = tuple(action_names or ())
        made = cls(
            states,
            array,
            () if features is None else names_of(features, "features="),
            labels,
            episodes,
            weights,
            {name: tuple(inside) for name, inside in (blocks or {}).items()},
            metadata or {},
            subjects,
            recorded or {},
        )
        made = _with_labels_that_weigh(made)
        return made if reference is None else made.with_reference(reference)

    @classmethod
    @one_vocabulary
    def from_frame(
        cls,
        frame: Any,
        actions: str | Sequence[str],
        features: Sequence[str] | None = None,
        episodes: str | None = None,
        weights: str | None = None,
        discrete: bool | None = None,
        reference: Any = None,
        metadata: Mapping[str, Any] | None = None,
        subjects: str | None = None,
        categorical: Sequence[str] | None = None,
        missing: Missing = "error",
        recorded: Sequence[str] = (),
    ) -> "Demonstrations":
        """From the columns of a polars, pandas or Arrow table.

        `features` are names or patterns such as obs_*; without them, all columns that play no other role and do not look
        like bookkeeping. A column of text or of a category type, or one that `categorical` names, becomes one-hot features
        `column=level`, without its last level, and one block. `missing` values are an error, or their rows are dropped.
        `recorded` names columns that are kept beside the pairs, as numbers `configuration.…` are that play no other role.
        """
        from policyspace.data.column_choice import Columns, choose, listed
        from policyspace.data.columns import Table

        columns = Columns(actions, features, episodes, weights, subjects, categorical, missing, recorded)
        choice = choose(Table.of(frame), columns)
        table, chosen = choice.table, listed(actions)
        values, names, blocks = table.features(choice.features)
        return cls.from_arrays(
            values,
            table.actions(chosen, discrete),
            names,
            None if len(chosen) == 1 and table.is_label(chosen[0], discrete) else chosen,
            None if episodes is None else table.labels(episodes),
            None if weights is None else table.numbers(weights),
            reference,
            discrete,
            blocks,
            dict(metadata or {}) | choice.metadata,
            None if subjects is None else table.labels(subjects),
            table.configuration({*columns.named, *choice.features}) | table.recorded(recorded),
        )


def default_action_names(k: int) -> list[str]:
    """The names of k continuous action columns that have none."""
    return ["action"] if k == 1 else [f"action_{a}" for a in range(k)]


def _names(given: Sequence[Any], what: str) -> tuple[str, ...]:
    names = tuple(str(name) for name in given)
    check_unique(names, what)
    return names


def _check_numbers(array: np.ndarray, names: tuple[str, ...], what: str) -> None:
    if len(names) != array.shape[1]:
        raise InputError(f"there must be one name for each {what}, found {len(names)} names for {array.shape[1]}.")
    bad = ~np.isfinite(array)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise InputError(
            f"{what} '{names[column]}' must be finite numbers, found {array[row, column]} in row {row + 1}: "
            "drop or fill such rows."
        )


def _actions(given: Any, names: tuple[str, ...], n: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """Whole numbers [n] are codes of the names; anything else must be numbers [n, k]."""
    actions = as_array(given, "the actions")
    _check_length(actions, n, "actions")
    if actions.ndim == 1 and actions.dtype.kind in "biu":
        actions = actions.astype(np.int64)
        size = min(int(actions.max()) + 1, max(n, MAX_LABELS))  # a stray huge code must not make as many names
        names = _names(names or [str(a) for a in range(size)], "action")
        check_codes(actions, names)
        return actions, names
    actions = as_matrix(actions, "the actions")
    names = _names(names or default_action_names(actions.shape[1]), "action column")
    _check_numbers(actions, names, "action")
    return actions, names


def _check_length(array: np.ndarray | None, n: int, what: str) -> None:
    if array is not None and len(array) != n:
        raise InputError(f"{what} and features must have the same number of rows, found {len(array)} and {n}.")


def _check_weights(weights: np.ndarray | None, n: int) -> None:
    if weights is None:
        return
    _check_length(weights, n, "weights")
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"weights must be finite and not negative, found {weights[row]} in row {row + 1}: drop it.")
    if not weights.any():
        raise InputError("at least one weight must be positive, found only zeros.")


def _with_labels_that_weigh(data: Demonstrations) -> Demonstrations:
    """Without labels that only rows of weight 0 have: such a label does not exist."""
    if data.weights is None or not data.discrete:
        return data
    size = len(data.action_names)
    gone = np.bincount(data.actions, minlength=size) > 0
    gone &= np.bincount(data.actions, data.weights, size) == 0
    if not gone.any():
        return data
    kept = data.rows(np.flatnonzero(~gone[data.actions]))
    names = tuple(name for name, lost in zip(data.action_names, gone, strict=True) if not lost)
    return replace(kept, actions=(np.cumsum(~gone) - 1)[kept.actions], action_names=names)


def _check_choice(actions: np.ndarray, names: tuple[str, ...], weights: np.ndarray | None) -> None:
    seen = actions if weights is None else actions[weights > 0]
    if (seen == seen[0]).all() and not _one_action_will_do.get():
        only = names[int(seen[0])] if seen.ndim == 1 else ", ".join(f"{a:g}" for a in seen[0])
        raise InputError(
            f"every row has the action '{only}': nothing can be identified from an agent that never chooses."
        )


def _recorded(given: Mapping[str, Any], names: tuple[str, ...], n: int) -> dict[str, np.ndarray]:
    """One number or truth a row under each name; what is not known is not a number."""
    made = {}
    for name, values in given.items():
        if name in names:
            raise InputError(f"what is recorded beside the features needs a name of its own, found '{name}' twice.")
        array = as_vector(values, f"the recorded '{name}'")
        if array.dtype.kind not in "biuf":
            raise InputError(f"the recorded '{name}' must be numbers or truths, found an array of type {array.dtype}.")
        _check_length(array, n, f"the recorded '{name}'")
        made[str(name)] = _frozen(array, given[name])
    return made


def _check_blocks(blocks: Mapping[str, tuple[str, ...]], names: tuple[str, ...]) -> None:
    owner: dict[str, str] = {}
    for block, members in blocks.items():
        if block in names:
            raise InputError(f"a block needs a name of its own, found '{block}', which is a feature: rename one.")
        if not members:
            raise InputError(f"block '{block}' must hold at least one feature, found none.")
        for name in members:
            if name not in names:
                raise InputError(f"block '{block}' holds '{name}', which is no feature: {nearest(name, names)}")
            if name in owner:
                raise InputError(f"a feature belongs to one block, found '{name}' in '{owner[name]}' and '{block}'.")
            owner[name] = block


def _frozen(array: np.ndarray, given: Any) -> np.ndarray:
    """The array, which nobody can change: a copy, unless it was made from what was given or is frozen already."""
    if not array.flags.writeable and array.base is None and array.flags.c_contiguous:
        return array
    made_here = isinstance(given, np.ndarray) and not np.may_share_memory(array, given)
    array = np.ascontiguousarray(array) if made_here else np.array(array, order="C")
    array.setflags(write=False)
    return array
