"""Sample: the validated, immutable rows (state, action) of an agent's log; ActionType: what kind of actions they hold."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, final

import numpy as np

from policyspace.data.origin import Origin
from policyspace.data.rows import InMemoryRows, Rows
from policyspace.data.validation import (
    MAX_LABELS,
    MISSING_LABELS,
    Missing,
    as_array,
    as_floats,
    as_matrix,
    as_names,
    as_vector,
    check_codes,
    encode,
    factorise,
    is_discrete,
    label_text,
    translate_keywords,
)
from policyspace.errors import InputError, check_unique, nearest
from policyspace.safe_io import JSON

ActionKind = Literal["discrete", "continuous", "count"]

MOST_COPIES = 1_000_000
"""Rows that whole-number weights may be written out to."""


@dataclass(frozen=True)
class ActionType:
    """What kind of actions an agent takes: all that a computation needs to know of them, so that nobody asks for a kind.

    A computation sees actions as `columns` of numbers. What is said here is true of numbers, [n, k] with a name for each of
    the k components; labels say otherwise.
    """

    names: tuple[str, ...]
    """Of the components; or of the discrete actions, the reference last."""
    kind: ClassVar[ActionKind]
    """The word for it in files and answers."""
    default_family: ClassVar[str]
    """The policy that is taken where none is named."""
    as_text: ClassVar[bool] = False
    """Does a file keep them as text?"""
    free_spread: ClassVar[bool] = True
    """Can actions of one mean spread more, or less? Then rows can show that, and pass it on to later states."""

    @property
    def column_names(self) -> tuple[str, ...]:
        """What the columns are about [k]."""
        return self.names

    @property
    def file_columns(self) -> tuple[str, ...]:
        """The columns in which a file keeps them."""
        return self.names

    @property
    def num_labels(self) -> int | None:
        """How many discrete actions there are; None of numbers."""
        return None

    @property
    def num_components(self) -> int:
        """How many fits all rows serve in full: one a component, but one of labels, which share the rows."""
        return len(self.names)

    def present(self, actions: np.ndarray) -> np.ndarray:
        """The places of the names that are among some actions."""
        return np.arange(len(self.names))

    def rearranged(self, actions: np.ndarray, names: Sequence[str]) -> np.ndarray:
        """The same actions for the same names in another order, or among more labels, or fewer components."""
        return actions[:, [self.names.index(name) for name in names]]

    def lag_names(self, title: str) -> list[str]:
        """What the columns are called as previous actions: the title alone, if there is one component."""
        return [title] if len(self.names) == 1 else [f"{title}: {name}" for name in self.names]

    def without_offset(self, actions: np.ndarray, known: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """What is left of the actions without a known part of their means; None where an offset is no part of a mean."""
        offset = [known.get(name, np.zeros(len(actions))) for name in self.names]
        return np.asarray(actions - np.column_stack(offset))

    def columns(self, actions: np.ndarray) -> np.ndarray:
        """Actions as numbers [n, k]: 1 where the action is the label of the column, else 0; or the numbers themselves."""
        return actions

    def scale(self, actions: np.ndarray) -> np.ndarray:
        """The unit in which a change of each column is measured [k]: its standard deviation; 1 for probabilities."""
        return np.asarray(np.maximum(actions.std(axis=0), np.finfo(float).tiny))

    def change(self, before: np.ndarray, after: np.ndarray, scale: np.ndarray | float = 1.0) -> float:
        """How far the mean actions [n, k] of two policies are apart: the mean absolute difference, in units of the scale."""
        return float((np.abs(before - after) / scale).mean())

    def format_change(self, change: float) -> str:
        """Such a change in words, as 0.123 sd."""
        return f"{change:.3f} sd"

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Actions as they are kept, from what a file or an agent calls them."""
        return as_matrix(values, "the actions")

    def decode(self, actions: np.ndarray) -> np.ndarray:
        """The inverse: what a file calls these actions."""
        return actions

    def describe(self) -> dict[str, JSON]:
        """Kind and names as plain data, for files and answers."""
        return {"type": self.kind, "names": list(self.names)}


@final
class Continuous(ActionType):
    """Actions that are numbers."""

    kind = "continuous"
    default_family = "gaussian"


@final
class Count(ActionType):
    """Actions that say how many: whole numbers from 0."""

    kind = "count"
    default_family = "poisson"

    def without_offset(self, actions: np.ndarray, known: Mapping[str, np.ndarray]) -> None:
        """A count less something is no count."""
        raise InputError("an offset is not known to policies of counts: leave it out, or make it a feature.")

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Whole numbers from 0 [n, k]."""
        counts = super().encode(values)
        check_counts(counts, self.names)
        return counts


@final
class Discrete(ActionType):
    """Actions that are classes: `actions` [n] holds codes, places among the labels, of which the last is the reference."""

    kind = "discrete"
    default_family = "boltzmann"
    as_text = True
    free_spread = False

    @property
    def column_names(self) -> tuple[str, ...]:
        """All labels but the reference."""
        return self.names[:-1]

    @property
    def file_columns(self) -> tuple[str, ...]:
        """One."""
        return ("action",)

    @property
    def num_labels(self) -> int:
        """The labels."""
        return len(self.names)

    @property
    def num_components(self) -> int:
        """One."""
        return 1

    def present(self, actions: np.ndarray) -> np.ndarray:
        """The labels that are played."""
        return np.unique(actions)

    def rearranged(self, actions: np.ndarray, names: Sequence[str]) -> np.ndarray:
        """Codes among those names."""
        return np.array([list(names).index(name) for name in self.names])[actions]

    def lag_names(self, title: str) -> list[str]:
        """title=label, of all but the reference."""
        return [f"{title}={label}" for label in self.column_names]

    def without_offset(self, actions: np.ndarray, known: Mapping[str, np.ndarray]) -> None:
        """It is added to log-odds, not to means."""

    def columns(self, actions: np.ndarray) -> np.ndarray:
        """1 where the action is the label of the column, else 0 [n, k]."""
        return (actions[:, None] == np.arange(len(self.names) - 1)).astype(np.float64)

    def scale(self, actions: np.ndarray) -> np.ndarray:
        """Probabilities need no unit."""
        return np.ones(len(self.names) - 1)

    def change(self, before: np.ndarray, after: np.ndarray, scale: np.ndarray | float = 1.0) -> float:
        """The mean total variation of the action's probabilities [n, k]: the share of decisions that change."""
        difference = before - after
        last = np.abs(difference.sum(axis=1))  # the reference's probability changes by what the others' do together
        return float((np.abs(difference).sum(axis=1) + last).mean() / 2)

    def format_change(self, change: float) -> str:
        """As 12.3 %."""
        return f"{100 * change:.1f} %"

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Codes [n] of labels, every one of which must be known."""
        place = {name: code for code, name in enumerate(self.names)}
        codes = np.array([place.get(str(label), -1) for label in values], dtype=np.int64)
        if (codes < 0).any():
            row = int(np.argmax(codes < 0))
            raise InputError(
                f"the action '{values[row]}' in row {row + 1} is not among those of the file's header: "
                f"{nearest(str(values[row]), place)}"
            )
        return codes

    def decode(self, actions: np.ndarray) -> np.ndarray:
        """The label of each row [n]."""
        return np.array(self.names, dtype=object)[actions]


def check_counts(actions: np.ndarray, names: Sequence[str]) -> None:
    """Counts [n, k] are whole numbers from 0."""
    wrong = ~((actions >= 0) & (actions % 1 == 0))
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise InputError(
            f"counts must be whole numbers from 0, found {actions[row, column]:g} in row {row + 1} of '{names[column]}': "
            "use the policy 'gaussian' for continuous actions."
        )


ACTION_TYPES: Mapping[str, type[ActionType]] = {one.kind: one for one in (Discrete, Continuous, Count)}


def action_type_of(discrete: bool | None, names: Sequence[str], counts: bool = False) -> ActionType:
    """Discrete or continuous actions of these names, or counts."""
    if discrete:
        return Discrete(tuple(names))
    return Count(tuple(names)) if counts else Continuous(tuple(names))


_one_action_will_do = ContextVar("_one_action_will_do", default=False)


@contextmanager
def allow_single_action() -> Iterator[None]:
    """In here the pairs of an agent that never chooses are not refused: a study keeps them, though nothing tests them."""
    before = _one_action_will_do.set(True)
    try:
        yield
    finally:
        _one_action_will_do.reset(before)


@final
@dataclass(frozen=True, eq=False)
class Sample:
    """n rows (φ(s_i), a_i), a_i ~ π_θ(·|s_i): the data of every test (Section 3).

    Parameters
    ----------
    features : array_like of shape (n, q)
        φ(s_i), without a constant column: the policy space adds it.
    actions : array_like of shape (n,) or (n, k)
        Discrete actions, as codes into `action_names`; or continuous ones, one column a component.
    names : sequence of str, optional
        Of the features; by default x0, x1, ….
    action_names : sequence of str, optional
        Labels, the last of which is the reference action, or the names of the components.
    episodes, subjects : array_like of shape (n,), optional
        What each row belongs to: an episode, and the person or animal whose rows depend on each other.
    weights : array_like of shape (n,), optional
        They multiply the log-likelihood of their rows.
    blocks : mapping of names to features
        The one-hot features of each category.
    origin : Origin or mapping
        What else a source says of the rows.
    recorded : mapping of names to array_like of shape (n,)
        What no test looks at: ends of episodes, rewards, log-probabilities.
    counts : bool
        Whether the numbers of the actions are counts.
    subject_names : tuple of str, optional
        What the codes of the subjects stand for; by default the labels themselves.
    rows : Rows, optional
        All rows, for sums over them: these, or those in files too large for memory, of which these are a sample.

    Raises
    ------
    InputError
        If an array has another length, shape or type than its place needs, or holds NaN.

    Examples
    --------
    >>> import policyspace
    >>> sample = policyspace.Sample([[0.0, 1.0], [1.0, 0.0]], [0, 1], ("speed", "light"), ("left", "right"))
    >>> sample.num_rows, sample.discrete
    (2, True)
    """

    features: np.ndarray
    actions: np.ndarray
    names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    episodes: np.ndarray | None = None
    weights: np.ndarray | None = None
    blocks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    origin: Origin = field(default_factory=Origin)
    subjects: np.ndarray | None = None
    recorded: Mapping[str, np.ndarray] = field(default_factory=dict)
    counts: bool = False
    subject_names: tuple[str, ...] = ()
    rows: Rows = field(default=None, repr=False)  # type: ignore[assignment]

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
        if self.counts and actions.ndim == 2:
            check_counts(actions, action_names)
        episodes = None if self.episodes is None else factorise(self.episodes, "the episodes")
        subjects = None if self.subjects is None else factorise(self.subjects, "the subjects")
        weights = None if self.weights is None else as_floats(as_vector(self.weights, "the weights"), "the weights")
        _check_length(episodes, n, "episodes")
        _check_length(subjects, n, "subjects")
        _check_length(weights, n, "weights")
        if weights is not None and (bad := ~(np.isfinite(weights) & (weights >= 0))).any():
            row = int(np.argmax(bad))
            raise InputError(
                f"weights must be finite and not negative, found {weights[row]} in row {row + 1}: drop it."
            )
        if weights is not None and not weights.any():
            raise InputError("at least one weight must be positive, found only zeros.")
        seen = actions if weights is None else actions[weights > 0]
        if (seen == seen[0]).all() and not _one_action_will_do.get():
            only = action_names[int(seen[0])] if seen.ndim == 1 else ", ".join(f"{a:g}" for a in seen[0])
            raise InputError(
                f"every row has the action '{only}': nothing can be identified from an agent that never chooses."
            )
        blocks = {str(name): tuple(inside) for name, inside in self.blocks.items()}
        _check_blocks(blocks, names)
        recorded = _recorded(self.recorded, names, n)
        origin = Origin.of(self.origin)
        values = (
            features, actions, names, action_names, episodes, weights, blocks, origin, subjects, recorded,
            self.counts and actions.ndim == 2, self._names_of_subjects(), self.rows,
        )  # fmt: skip
        for name, value in zip(self.__dataclass_fields__, values, strict=True):
            frozen = _frozen(value, getattr(self, name)) if isinstance(value, np.ndarray) else value
            object.__setattr__(self, name, frozen)
        if self.rows is None or self.rows.in_memory:
            object.__setattr__(self, "rows", InMemoryRows(self.features, self.actions, self.weights))

    def _names_of_subjects(self) -> tuple[str, ...]:
        """The names of the subjects, in the order in which they first appear."""
        if self.subjects is None:
            return ()
        labels = list(dict.fromkeys(np.asarray(self.subjects).tolist()))
        known = dict(enumerate(self.subject_names))
        return tuple(str(known.get(label, label)) for label in labels)

    @cached_property
    def action_type(self) -> ActionType:
        """What kind of actions these are."""
        return action_type_of(self.actions.ndim == 1, self.action_names, self.counts)

    @property
    def discrete(self) -> bool:
        """Are the actions codes of labels, rather than numbers? `action_type` answers what is asked for instead."""
        return self.actions.ndim == 1

    @property
    def num_rows(self) -> int:
        """n: how many rows (state, action)."""
        return len(self.features)

    @property
    def num_pairs(self) -> int:
        """An older name of `num_rows`."""
        return self.num_rows

    @property
    def in_memory(self) -> bool:
        """Are these all rows? Else they are a sample of `rows`, which lie in files and are read in passes."""
        return self.rows.in_memory

    @property
    def num_rows_total(self) -> int:
        """How many pairs there are in all, where these are a sample."""
        return self.rows.num_rows

    @property
    def num_episodes(self) -> int | None:
        """m: how many episodes, if the rows say which they belong to; of a sample, those of the whole log."""
        if not self.in_memory:
            return self.rows.num_episodes
        return None if self.episodes is None else int(self.episodes.max()) + 1

    @property
    def total_weight(self) -> float:
        """Σ weights, which is n without weights."""
        return float(self.num_rows) if self.weights is None else float(self.weights.sum())

    @property
    def sampling_weights(self) -> bool:
        """Do the weights say how many of a population a row stands for, rather than how many equal pairs it is?"""
        return self.weights is not None and self.origin.weight_type == "sampling"

    @property
    def num_observed(self) -> int:
        """How many pairs were observed: the sum of the weights where they are counts, else the number of rows."""
        if self.rows.num_observed is not None:
            return self.rows.num_observed
        whole = self.weights is not None and not self.sampling_weights and bool((self.weights % 1 == 0).all())
        return round(self.total_weight) if whole else self.num_rows

    @property
    def maybe_discrete(self) -> bool:
        """Is the one continuous action only ever one of at most ten whole numbers? Then it may be a label."""
        if self.actions.shape[1:] != (1,) or self.counts:
            return False
        levels = np.unique(self.actions)
        return len(levels) <= 10 and bool((levels == np.round(levels)).all())

    def take(self, rows: np.ndarray | slice) -> "Sample":
        """Some rows of the data, in the given order; an action that they do not hold stays possible."""
        return Sample(
            self.features[rows],
            self.actions[rows],
            self.names,
            self.action_names,
            None if self.episodes is None else self.episodes[rows],
            None if self.weights is None else self.weights[rows],
            self.blocks,
            self.origin,
            None if self.subjects is None else self.subjects[rows],
            {name: values[rows] for name, values in self.recorded.items()},
            counts=self.counts,
            subject_names=self.subject_names,
        )

    def expand_weights(self, what: str) -> "Sample":
        """The data without weights: whole-number weights are counts, and become rows; others have no distribution."""
        if self.weights is None:
            return self
        counts = np.round(self.weights).astype(np.int64)
        if not np.array_equal(counts, self.weights) or counts.sum() > MOST_COPIES:
            raise InputError(
                f"{what} needs rows without weights, or whole-number weights of at most {MOST_COPIES} in all, found "
                f"weights that sum to {self.weights.sum():g}: leave them out, or use the test 'wilks'."
            )
        return replace(self.take(np.repeat(np.arange(self.num_rows), counts)), weights=None)

    def with_reference(self, label: Any) -> Self:
        """The same pairs with the action `label` last: the reference, whose weights are zero (Table 1)."""
        if self.action_type.num_labels is None:
            raise InputError(
                f"only discrete actions have a reference, found continuous ones: drop the reference '{label}'."
            )
        name = label_text(label)
        if not self.in_memory and name != self.action_names[-1]:
            raise InputError(
                "the reference of a log that is read in passes must be said when it is opened: say it there."
            )
        if name not in self.action_names:
            raise InputError(f"the reference '{name}' is no action: {nearest(name, self.action_names)}")
        names = (*(other for other in self.action_names if other != name), name)
        return replace(self, actions=self.action_type.rearranged(self.actions, names), action_names=names)

    @classmethod
    @translate_keywords
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
        origin: Origin | Mapping[str, Any] | None = None,
        subjects: Any = None,
        recorded: Mapping[str, Any] | None = None,
        counts: bool = False,
    ) -> "Sample":
        """From arrays or lists: whole numbers, booleans and text are discrete actions, other numbers continuous ones.

        `discrete` says otherwise, and `counts` that the actions say how many. `states` is [n, q], and `features` names its
        columns. Labels are sorted and the last is the reference, unless `reference` names another. `action_names` gives the
        order of the labels, or names for the codes 0, 1, ….
        """
        array = as_array(actions, "the actions")
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if not counts and is_discrete(array, discrete):
            array, labels = encode(array, action_names, trusted=discrete is True)
        else:
            array = as_matrix(array, "the actions")
            labels = tuple(action_names or ())
        made = cls(
            states,
            array,
            () if features is None else as_names(features, "features="),
            labels,
            episodes,
            weights,
            {name: tuple(inside) for name, inside in (blocks or {}).items()},
            Origin.of(origin),
            subjects,
            recorded or {},
            counts=counts,
        )
        made = _with_labels_that_weigh(made)
        return made if reference is None else made.with_reference(reference)

    @classmethod
    @translate_keywords
    def from_frame(
        cls,
        frame: Any,
        actions: str | Sequence[str],
        features: Sequence[str] | None = None,
        episodes: str | None = None,
        weights: str | None = None,
        discrete: bool | None = None,
        reference: Any = None,
        origin: Origin | Mapping[str, Any] | None = None,
        subjects: str | None = None,
        categorical: Sequence[str] | None = None,
        missing: Missing = "error",
        recorded: Sequence[str] = (),
        na: Sequence[str] = MISSING_LABELS,
    ) -> "Sample":
        """From the columns of a polars, pandas or Arrow table.

        `features` are names or patterns such as obs_*; without them, all columns that play no other role and do not look
        like bookkeeping. A column of text or of a category type, or one that `categorical` names, becomes one-hot features
        `column=level`, without its last level, and one block. `missing` values are an error, or their rows are dropped;
        of labels these are nulls and the texts of `na`, so that "None" and "NA" are levels; so are whole numbers as text.
        `recorded` names columns that are kept beside the pairs, as numbers `configuration.…` are that play no other role.
        """
        from policyspace.data.columns import ColumnRoles, DataTable, choose, listed

        columns = ColumnRoles(actions, features, episodes, weights, subjects, categorical, missing, recorded, na=na)
        choice = choose(DataTable.of(frame), columns, na)
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
            choice.noted(Origin.of(origin)),
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


def _with_labels_that_weigh(data: Sample) -> Sample:
    """Without labels that only rows of weight 0 have: such a label does not exist."""
    if data.weights is None:
        return data
    kind, gone = data.action_type, np.zeros(len(data.action_names), dtype=bool)
    gone[np.setdiff1d(kind.present(data.actions), kind.present(data.actions[data.weights > 0]))] = True
    if not gone.any():
        return data
    kept = data.take(np.flatnonzero(~gone[data.actions]))
    names = tuple(name for name, lost in zip(data.action_names, gone, strict=True) if not lost)
    return replace(kept, actions=(np.cumsum(~gone) - 1)[kept.actions], action_names=names)


def _recorded(given: Mapping[str, Any], names: tuple[str, ...], n: int) -> dict[str, np.ndarray]:
    """One number or truth a row under each name; what is not known is not a number."""
    made = {}
    for name, values in given.items():
        if name in names:
            raise InputError(f"what is recorded beside the features needs a name of its own, found '{name}' twice.")
        array = as_vector(values, f"the recorded '{name}'")
        if array.dtype.kind not in "biuf":
            raise InputError(
                f"the recorded '{name}' must be numbers or booleans, found an array of type {array.dtype}."
            )
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
