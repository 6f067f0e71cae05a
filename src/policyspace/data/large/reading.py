"""How a data set is read: what its columns are by its first rows, and what their values stand for once all are seen."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from policyspace.data.arrays import is_discrete
from policyspace.data.column_choice import Columns, choose, listed
from policyspace.data.columns import Table
from policyspace.data.demonstrations import Demonstrations
from policyspace.data.large.layout import Layout, column_numbers
from policyspace.data.large.parts import DataSet, Part
from policyspace.data.roles import Roles, codes_of, is_as_written, with_roles
from policyspace.errors import InputError

if TYPE_CHECKING:
    import pyarrow

HEAD = 10_000
"""Rows by which it is judged what the columns are."""


@dataclass(frozen=True)
class Reading:
    """Which columns are read as what; `labels` are the file's own, where the action is as it was written."""

    parts: tuple[Part, ...]
    schema: "pyarrow.Schema"
    layout: Layout
    categorical: tuple[str, ...]
    labels: Roles | None
    roles: Roles | None
    metadata: dict[str, Any]
    head: "pyarrow.Table"

    @classmethod
    def of(cls, stored: DataSet, columns: Columns, discrete: bool | None = None) -> Self:
        """As `columns` says, else as the files say, else as the first rows look."""
        roles = stored.roles
        if columns.choices is not None:
            raise InputError(
                "attributes of alternatives need all rows in memory: use a smaller file, or a linear policy."
            )
        if columns.actions is None and (roles is None or not roles.action):
            names = ", ".join(f"'{name}'" for name in stored.schema.names)
            raise InputError(f"say which column is the action, with actions= or --actions; the columns are {names}.")
        columns = columns if roles is None else with_roles(columns, roles)
        labels = roles if roles is not None and is_as_written(roles, columns, discrete) else None
        head = stored.parts[0].head(stored.schema.names, HEAD)
        choice = choose(Table.of(head), columns, texts=labels is None)
        table, actions = choice.table, listed(columns.actions)
        if labels is not None:
            discrete = labels.discrete
        else:
            values = table.actions(actions, discrete)
            discrete = is_discrete(values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values, discrete)
        numbers = [*([] if discrete else actions), *([columns.weights] if columns.weights else [])]
        for name in numbers:
            table.numbers(name)
        kinds = {name: table.column(name).dtype for name in choice.features}
        categories = {name for name, kind in kinds.items() if not (kind.is_numeric() or str(kind) == "Boolean")}
        texts = {name for name in [*kinds, *numbers] if str(table.frame[name].dtype) == "String"} - categories
        layout = Layout(
            tuple(choice.features), tuple(actions), columns.weights, columns.episodes, columns.subjects,
            frozenset(categories), frozenset(texts), bool(discrete), columns.missing, labels is None,
        )  # fmt: skip
        told = {} if roles is None else dict(roles.metadata)
        told |= {"left_out": choice.left_out} if choice.left_out else {}
        told["warnings"] = [word for word in choice.warnings if not word.startswith("rows dropped")]
        parts = tuple(part.with_numbers({*kinds, *numbers} - categories - texts) for part in stored.parts)
        categorical = tuple(listed(columns.categorical))
        return cls(parts, stored.schema, layout, categorical, labels, roles, told, head)

    def named(self, values: Mapping[str, Collection[Any]], reference: Any = None, dropped: str = "") -> "Named":
        """The same with places for all these values, and names for what is made of them."""
        words, names, blocks = {}, list[str](), dict[str, tuple[str, ...]]()
        for name in self.layout.features:
            if name in self.layout.categories:
                words[name], blocks[name] = self._levels(name, list(values[name]))
            names += blocks.get(name, (name,))
        action_names = self.layout.actions
        if self.layout.discrete:
            words[action_names[0]], action_names = self._labels(list(values[action_names[0]]), reference)
        elif reference is not None:
            raise InputError(
                f"only discrete actions have a reference, found continuous ones: drop the reference '{reference}'."
            )
        if self.roles is not None:
            blocks = self.roles.blocks_among(names) | blocks
        metadata = self.metadata | {"warnings": [*([dropped] if dropped else []), *self.metadata["warnings"]]}
        return Named(replace(self.layout, vocabulary=words), tuple(names), tuple(action_names), blocks, metadata)

    def guess(self, reference: Any) -> "Named | None":
        """What the first rows alone would say, if they say enough."""
        taken = self.layout.take(self.head.select(self.layout.columns))
        values = {}
        for name in self.layout.coded:
            codes, found = taken.arrays[name]
            values[name] = [found[code] for code in np.unique(codes).tolist()]
        try:
            return self.named(values, reference) if len(taken) else None
        except InputError:
            return None

    def _distinct(self, name: str, values: list[Any]) -> Table:
        """A table of these values as the column holds them."""
        import polars
        import pyarrow

        empty, kind = self.head.select([name]).slice(0, 0), self.schema.field(name).type
        coded = pyarrow.types.is_dictionary(kind)
        if coded:
            empty = empty.set_column(0, name, empty.column(0).cast(kind.value_type))
        table = Table.of(polars.DataFrame([polars.Series(name, values, Table.of(empty).frame[name].dtype)]))
        numbers = coded and not pyarrow.types.is_string(kind.value_type)
        return table.with_categories([name] if name in self.categorical or numbers else [])

    def _levels(self, name: str, values: list[Any]) -> tuple[dict[Any, int], tuple[str, ...]]:
        """The place of each level, and the names of the features that are made of them."""
        marks, names, _ = self._distinct(name, 2 * values).features([name])  # twice: no level is free text
        places = np.where(marks.any(axis=1), marks.argmax(axis=1), marks.shape[1])
        return dict(zip(values, places.tolist(), strict=False)), names

    def _labels(self, values: list[Any], reference: Any) -> tuple[dict[Any, int], tuple[str, ...]]:
        """The code of each label, and the labels in the order of their codes."""
        action = self.layout.actions[0]
        table, state = self._distinct(action, values), np.zeros((len(values), 1))
        if self.labels is not None:
            assert self.labels.action_names is not None
            made = Demonstrations(state, codes_of(table, self.labels), ("state",), self.labels.action_names)
        else:
            made = Demonstrations.from_arrays(state, table.actions([action], True), discrete=True)
        made = made if reference is None else made.with_reference(reference)
        return dict(zip(values, made.actions.tolist(), strict=True)), made.action_names


@dataclass(frozen=True)
class Named:
    """A layout with places for all values, and the names of features and actions."""

    layout: Layout
    names: tuple[str, ...]
    action_names: tuple[str, ...]
    blocks: dict[str, tuple[str, ...]]
    metadata: dict[str, Any]

    def by_label(self, found: Counter[Any]) -> np.ndarray:
        """What was counted by value, in the order of the labels."""
        total = np.zeros(len(self.action_names))
        for value, place in self.layout.vocabulary[self.layout.actions[0]].items():
            total[place] += found[value]
        return total

    def chooses(self, table: "pyarrow.Table") -> bool:
        """Do these rows hold two different actions that weigh anything?"""
        block = next(self.layout.take(table).blocks(max(table.num_rows, 1)), None)
        if block is None:
            return False
        actions = block.actions if block.weights is None else block.actions[block.weights > 0]
        return bool(len(actions)) and bool((actions != actions[0]).any())

    def demonstrations(self, table: "pyarrow.Table", counts: np.ndarray | None = None) -> Demonstrations:
        """Some rows in memory; with `counts` of each label, weights that make up for how many of them are here."""
        layout = self.layout
        taken = layout.take(table)
        block = next(taken.blocks(max(len(taken), 1)))
        weights = block.weights
        if counts is not None:
            share = counts / np.maximum(np.bincount(block.actions, minlength=len(counts)), 1)
            weights = share[block.actions] * (1.0 if weights is None else weights)
        episodes, subjects = (
            None if name is None else column_numbers(taken.table.column(name))
            for name in (layout.episodes, layout.subjects)
        )
        return Demonstrations(
            block.features, block.actions, self.names, self.action_names, episodes, weights, self.blocks,
            self.metadata, subjects,
        )  # fmt: skip
