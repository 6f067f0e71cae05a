"""Derived columns: formulas, lagged actions and inputs, offsets."""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, final

import numpy as np

from policyspace.data.origin import FormulaRecord
from policyspace.data.sample import Sample
from policyspace.data.validation import as_matrix
from policyspace.errors import InputError, nearest

# -- `choice ~ cost + time*income`: which columns are used and how, read by formulaic, computed here and never run as code.

FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "log": np.log, "log1p": np.log1p, "exp": np.exp, "sqrt": np.sqrt, "abs": np.abs, "I": np.positive,
    "center": lambda x: x - x.mean(axis=0), "scale": lambda x: (x - x.mean(axis=0)) / x.std(axis=0),
}  # fmt: skip
"""What may be applied to a column of numbers."""

MOST_POWER = 6

Factor = tuple[str, ...]
"""A column, and what is applied to it from the inside out: ("x", "**2"), ("y", "log")."""


@final
@dataclass(frozen=True)
class Formula:
    """Actions, and terms that are products of factors; an interaction stands after the terms that it is made of."""

    text: str
    actions: tuple[str, ...]
    terms: tuple[tuple[Factor, ...], ...]

    @cached_property
    def columns(self) -> list[str]:
        """The columns of the features, each once."""
        return list(dict.fromkeys(factor[0] for term in self.terms for factor in term))

    @property
    def interactions(self) -> dict[str, tuple[str, ...]]:
        """For every term the terms that hold it: with these it is tested, for without it they mean nothing."""
        inside = {name_of(term): set(term) for term in self.terms}
        found = {name: [other for other in inside if inside[name] < inside[other]] for name in inside}
        powers = self._powers()
        return {name: (*found[name], *powers.get(name, [])) for name in inside if found[name] or name in powers}

    def _powers(self) -> dict[str, list[str]]:
        """The squares of a column are to it what an interaction is."""
        alone = [term[0] for term in self.terms if len(term) == 1]
        return {
            name_of(((c,),)): [name_of((f,)) for f in alone if f[0] == c and len(f) == 2 and f[1].startswith("**")]
            for c, *done in alone
            if not done and any(f[0] == c and len(f) == 2 and f[1].startswith("**") for f in alone)
        }

    def expand(self, data: Sample) -> Sample:
        """The pairs whose features are the terms, from those whose features are the columns."""
        columns, names, blocks = [], list[str](), dict[str, tuple[str, ...]]()
        for term in self.terms:
            values, inside = np.ones((data.num_rows, 1)), [""]
            for factor in term:
                own, labels = self._factor(factor, data)
                values = (values[:, :, None] * own[:, None, :]).reshape(data.num_rows, -1)
                inside = [f"{a}:{b}" if a else b for a in inside for b in labels]
            columns.append(values)
            names += inside
            if inside != [name_of(term)]:
                blocks[name_of(term)] = tuple(inside)
        shared = sum(len(term) for term in self.terms) > len(self.columns)
        origin = replace(data.origin, formula=FormulaRecord(self.text, self.interactions, shared))
        return replace(data, features=np.hstack(columns), names=tuple(names), blocks=blocks, origin=origin)

    def _factor(self, factor: Factor, data: Sample) -> tuple[np.ndarray, list[str]]:
        """Its columns [n, c] and their names: one of numbers, several of a category."""
        name, *done = factor
        inside = list(data.blocks.get(name, (name,)))
        values = data.features[:, [data.names.index(feature) for feature in inside]]
        if done and name in data.blocks:
            raise InputError(
                f"'{done[0]}' is for numbers, found the categories of '{name}' in '{self.text}': leave it out."
            )
        with np.errstate(all="ignore"):
            for step in done:
                values = values ** int(step[2:]) if step.startswith("**") else FUNCTIONS[step](values)
        if not np.isfinite(values).all():
            row = int(np.argmax(~np.isfinite(values).all(axis=1))) + 1
            raise InputError(f"'{_shown(factor)}' must be finite numbers, found otherwise in row {row}: leave it out.")
        return values, inside if not done else [_shown(factor)]


FACTOR = re.compile(r"\bC\(\s*(\w+)\s*\)")
"""A column whose numbers are categories, as R and statsmodels write it."""


def without_factors(text: str) -> tuple[str, list[str]]:
    """The formula with plain names in place of C(name), and these names."""
    return FACTOR.sub(r"\1", text), list(dict.fromkeys(FACTOR.findall(text)))


def parse_formula(text: str) -> Formula:
    """What a formula says; whatever is not a column, +, :, *, a power or one of a few functions is refused."""
    if "|" in text:
        raise InputError(
            f"a formula has no random effects, found '|' in '{text}': name the column of the subjects (--subjects, "
            "subjects=), whose weights are then random."
        )
    try:
        from formulaic.errors import FormulaicError
        from formulaic.parser import DefaultFormulaParser
    except ImportError as error:
        raise InputError(
            "formulas are read by formulaic: install it with pip install 'policyspace[formula]'."
        ) from error
    try:
        terms: Any = DefaultFormulaParser().get_terms(text)
        left, right = terms.lhs, terms.rhs
    except (FormulaicError, AttributeError, SyntaxError, ValueError, TypeError, RecursionError) as error:
        raise InputError(
            f"a formula is written as 'choice ~ cost + time*income', found '{text}': correct it."
        ) from error
    actions = [_factor_of(factor.expr, text) for term in left for factor in term.factors]
    if not actions or any(len(action) > 1 for action in actions):
        raise InputError(f"the left side of a formula names the action's columns, found '{text}': name them.")
    found = [tuple(_factor_of(factor.expr, text) for factor in term.factors) for term in right if str(term) != "1"]
    if "1" not in [str(term) for term in right]:
        raise InputError(f"a formula keeps its constant, found '{text}': say --no-intercept instead of 0 or -1.")
    if not found:
        raise InputError(f"the right side of a formula must name at least one column, found '{text}': name one.")
    known = {frozenset(term) for term in found}
    for term in found:
        for size in range(1, len(term)):
            for part in combinations(term, size):
                if frozenset(part) not in known:
                    raise InputError(
                        f"'{name_of(term)}' needs '{name_of(part)}' too, found '{text}': write * instead of :."
                    )
    return Formula(text, tuple(action[0] for action in actions), tuple(sorted(found, key=len)))


def name_of(term: tuple[Factor, ...]) -> str:
    """The name of a term's group, such as time:income."""
    return ":".join(_shown(factor) for factor in term)


def _shown(factor: Factor) -> str:
    name = factor[0]
    for step in factor[1:]:
        name = f"{name}{step}" if step.startswith("**") else f"{step}({name})"
    return name


def _factor_of(text: str, formula: str) -> Factor:
    """A plain column, or functions of one."""
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return (text,)  # a name in backticks
    return _steps(tree, text, formula)


def _steps(tree: ast.expr, text: str, formula: str) -> Factor:
    if isinstance(tree, ast.Name):
        return (tree.id,)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Pow) and isinstance(tree.right, ast.Constant):
        power = tree.right.value
        if isinstance(power, int) and not isinstance(power, bool) and 2 <= power <= MOST_POWER:
            return (*_steps(tree.left, text, formula), f"**{power}")
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and len(tree.args) == 1 and not tree.keywords:
        name = tree.func.id
        if name not in FUNCTIONS:
            raise InputError(f"unknown function '{name}' in the formula '{formula}': {nearest(name, FUNCTIONS)}")
        inner = _steps(tree.args[0], text, formula)
        return inner if name == "I" else (*inner, name)
    if isinstance(tree, ast.BinOp | ast.Call | ast.Constant):
        raise InputError(
            f"a formula holds columns, +, :, *, whole powers up to {MOST_POWER} such as I(x**2), and the functions "
            f"{', '.join(FUNCTIONS)}, found '{text}': write the column itself into the file."
        )
    return (text,)  # a name that only looks like code, such as reaction-time in backticks: looked up, never run


# -- The agent's own last actions as features: habit, beside which the others must show that they are used.


def lag_name(lag: int) -> str:
    """How the action so many rows back is called."""
    return "previous action" if lag == 1 else f"action {lag} back"


def with_lags(data: Sample, lags: int) -> Sample:
    """The same pairs with the agent's last `lags` actions of the same episode as features, one group each.

    The first rows of an episode have no such past and are left out; a sentence in the metadata says how many. Rows of an
    episode are in the order of time; without episodes those of a subject are one, and without subjects all rows.
    """
    past, named = _Past.of(data, lags, "lags", "is the last action")
    kept = past.kept
    columns, names, blocks = [data.features[kept]], list(data.names), dict(data.blocks)
    for lag in range(1, lags + 1):
        title = lag_name(lag)
        columns.append(data.action_type.columns(data.actions[past.rows_before(lag)]))
        inside = data.action_type.lag_names(title)
        names += inside
        if inside != [title]:
            blocks[title] = tuple(inside)
    rows = data.take(kept)
    origin = data.origin.noted(past.note(lags, named, "previous actions"))
    origin = replace(origin, lagged_actions=tuple(lag_name(lag) for lag in range(1, lags + 1)))
    return replace(rows, features=np.hstack(columns), names=tuple(names), blocks=blocks, origin=origin)


def with_lags_of_inputs(data: Sample, lags: int) -> Sample:
    """The same pairs with what every feature was in the last `lags` rows of the episode: one group of columns a feature.

    For an agent that remembers: "uses speed (now to 4 back)" is use of the speed now or up to 4 rows earlier. The first rows
    of an episode are left out.
    """
    if data.origin.formula is not None:
        raise InputError("lags of inputs are of whole columns, found a formula: leave one of them out.")
    past, named = _Past.of(data, lags, "lags_of_inputs", "is the row before")
    columns, names = [data.features[past.kept]], list(data.names)
    for lag in range(1, lags + 1):
        columns.append(data.features[past.rows_before(lag)])
        names += [f"{name}, {lag} back" for name in data.names]
    levels = {name for inside in data.blocks.values() for name in inside}
    now = {name: (name,) for name in data.names if name not in levels} | {k: tuple(v) for k, v in data.blocks.items()}
    blocks = {
        f"{group} (now to {lags} back)": (
            *inside,
            *(f"{name}, {lag} back" for lag in range(1, lags + 1) for name in inside),
        )
        for group, inside in now.items()
    }
    origin = replace(data.origin.noted(past.note(lags, named, "earlier inputs")), lags_of_inputs=lags)
    rows = data.take(past.kept)
    return replace(rows, features=np.hstack(columns), names=tuple(names), blocks=blocks, origin=origin)


@dataclass(frozen=True)
class _Past:
    """The rows that have enough others of their episode before them."""

    order: np.ndarray
    where: np.ndarray
    kept: np.ndarray

    @classmethod
    def of(cls, data: Sample, lags: int, word: str, one: str) -> tuple["_Past", str]:
        """Of each episode all but the first `lags` rows, and what an episode is called."""
        if not (isinstance(lags, int) and lags >= 1):
            raise InputError(f"{word} must be a whole number of at least 1, found {lags!r}: 1 {one}.")
        if data.weights is not None:
            raise InputError("rows with weights have no order, so that none is the previous one: leave the lags out.")
        episodes, named = _episodes(data)
        order = np.argsort(episodes, kind="stable")
        position = np.empty(len(order), dtype=np.intp)  # of each row within its episode
        position[order] = np.arange(len(order)) - np.searchsorted(episodes[order], episodes[order])
        kept = order[position[order] >= lags]
        if not len(kept):
            raise InputError(
                f"no {named} has more than {lags} rows, so that none has {lags} previous ones: ask for fewer."
            )
        where = np.empty(len(order), dtype=np.intp)
        where[order] = np.arange(len(order))
        return cls(order, where, np.sort(kept)), named

    def rows_before(self, lag: int) -> np.ndarray:
        """The row so many places before each that is kept."""
        return np.asarray(self.order[self.where[self.kept] - lag])

    def note(self, lags: int, named: str, what: str) -> str:
        """Which rows were left out."""
        rows, have, were = ("row", "has", "was") if lags == 1 else (f"{lags} rows", "have", "were")
        left = len(self.order) - len(self.kept)
        return (
            f"the first {rows} of each {named} {have} no {what} and {were} left out: {left} of {len(self.order)} rows."
        )


def _episodes(data: Sample) -> tuple[np.ndarray, str]:
    """The runs of rows within which actions follow each other, and what one is called."""
    if data.episodes is not None and data.subjects is not None:  # episodes may be counted anew for every subject
        return np.unique(np.stack([data.subjects, data.episodes]), axis=1, return_inverse=True)[1].ravel(), "episode"
    if data.episodes is not None:
        return data.episodes, "episode"
    if data.subjects is not None:
        return data.subjects, "subject"
    return np.zeros(data.num_rows, dtype=np.intp), "file"


# -- Offsets: a known part of the policy, added to the mean of an action or to the log-odds of a label with weight 1.

OFFSET = "offset"
"""The attribute that holds the offsets of labels, and the name of columns that came as an array."""


def with_offset_columns(features: Sequence[str] | str | None, offset: Any) -> Any:
    """The features to read from a table, and the columns of its offset beside them; None stays 'all columns'."""
    columns = [offset] if isinstance(offset, str) else list(offset.values()) if isinstance(offset, Mapping) else []
    if features is None or not columns:
        return features
    named = [features] if isinstance(features, str) else list(features)
    return [*named, *(column for column in dict.fromkeys(columns) if column not in named)]


def named_offset(data: Sample, offset: Any) -> tuple[Sample, dict[str, str]]:
    """The column of each action's offset among the features of the data; those of an array are put there first.

    One column is the offset of one action, or of the first of two labels; else `offset` is a table {action: column}, or an
    array [n, k] with a column for every action but the reference.
    """
    actions = data.action_type.column_names
    single = len(actions) == 1
    if isinstance(offset, Mapping):
        found = {str(action): str(column) for action, column in offset.items()}
    elif isinstance(offset, str):
        if not single:
            raise InputError(
                f"one column can be the offset of one action or of two discrete actions, found {len(data.action_names)}: "
                f"name a column for each, as in {{'{actions[0]}': '{offset}'}} or --offset '{actions[0]}={offset}'."
            )
        found = {actions[0]: offset}
    else:
        values = as_matrix(offset, "the offset")
        if values.shape != (data.num_rows, len(actions)):
            raise InputError(
                f"the offset must be an array of {data.num_rows} rows and {len(actions)} columns "
                f"({', '.join(actions)}), found the shape {values.shape}."
            )
        found = {action: OFFSET if single else f"{OFFSET}[{action}]" for action in actions}
        names = (*data.names, *found.values())
        return replace(data, features=np.hstack([data.features, values]), names=names), found
    for what, name, known in [
        *(("no action", action, data.action_names) for action in found),
        *(("no feature", column, data.names) for column in found.values()),
    ]:
        if name not in known:
            raise InputError(f"the offset names '{name}', which is {what}: {nearest(name, known)}")
    return data, found


def with_offset(data: Sample, columns: Mapping[str, str]) -> Sample:
    """The same pairs with these features as the known part of their actions, by action.

    From amounts it is subtracted: a − o has the policy without it. Of labels it becomes an attribute of the alternatives.
    """
    origin = replace(data.origin, offset=dict(columns))
    place = {name: j for j, name in enumerate(data.names)}
    known = {action: data.features[:, place[column]] for action, column in columns.items()}
    left = data.action_type.without_offset(data.actions, known)
    if left is None:
        policy: Mapping[str, Any] = origin.policy or {}
        network = str(policy.get("family", "")).endswith("network")
        as_choices = {
            **policy,
            "family": policy["family"] if network else "choice",
            "offset": [*policy.get("offset", ()), OFFSET],
            "attributes": {**(policy.get("attributes") or {}), OFFSET: dict(columns)},
        }
        return replace(data, origin=replace(origin, policy=as_choices))
    kept = [j for name, j in place.items() if name not in columns.values()]
    return replace(
        data,
        features=data.features[:, kept],
        actions=left,
        names=tuple(data.names[j] for j in kept),
        origin=origin,
    )
