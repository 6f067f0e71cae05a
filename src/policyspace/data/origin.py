"""Origin: where the rows of a sample come from, what is known of their agent, and what was made of their columns."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from shlex import quote
from typing import Any, Literal, Self, final, get_type_hints

from policyspace.data.draws import DrawRecord, record_of
from policyspace.errors import InputError
from policyspace.safe_io import built, conforms

WeightType = Literal["frequency", "sampling"]
"""Frequency weights say how many equal rows a row is, sampling weights how many of a population it stands for."""

FROM_READING = ("excluded_columns", "constant_features", "notes")
"""What is true of one reading of a table, and is written to no file."""

OLDER = {"truth": "ground_truth", "habit": "lagged_actions", "weights_are": "weight_type",
         "left_out": "excluded_columns", "warnings": "notes"}  # fmt: skip
"""The words of files of version 1, and what they are called now."""


@final
@dataclass(frozen=True)
class FormulaRecord:
    """The formula that made the features from columns."""

    text: str
    interactions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For every term the terms that hold it."""
    shares_columns: bool = False
    """Are several terms made of one column? Then a term can be without effect although its column is used."""


@final
@dataclass(frozen=True)
class Origin:
    """What a source says beside its rows; what it does not say is None or empty.

    Examples
    --------
    >>> Origin.of({"truth": ["speed"], "seed": 3})
    Origin(ground_truth=('speed',), other={'seed': 3})
    """

    policy: Mapping[str, object] | None = None
    """The agent's policy space, as `PolicySpace.describe` writes it."""
    ground_truth: tuple[str, ...] | None = None
    """The groups that the agent really uses, where that is known."""
    world: str | None = None
    """The configurable world in which the rows were simulated."""
    configuration: object = None
    """ω, where all rows were collected at one; whoever needs it checks it."""
    environment: str | None = None
    """The Gymnasium environment in which the agent was recorded."""
    agent: str | None = None
    """What the agent is called."""
    memory: bool = False
    """Has the agent a memory, so that its actions may depend on earlier observations?"""
    agent_file: str | None = None
    """Where the agent was loaded from."""
    formula: FormulaRecord | None = None
    lagged_actions: tuple[str, ...] = ()
    """The groups of features that are earlier actions."""
    lags_of_inputs: int = 0
    """How many rows back features go that count as one with those of now."""
    offset: Mapping[str, str] = field(default_factory=dict)
    """The column of the known part of the policy, by action."""
    weight_type: WeightType | None = None
    exchangeable: bool = False
    """Does the order of the rows mean nothing, so that they were taken in an order that was drawn?"""
    draws: DrawRecord | None = None
    """Which readings were drawn at random before the agent got them."""
    assigned: Mapping[str, str] = field(default_factory=dict)
    """How columns were drawn, by their names, where the experimenter says so."""
    excluded_columns: tuple[str, ...] = ()
    """Columns that look like bookkeeping and were not read as features."""
    constant_features: tuple[str, ...] = ()
    """Features of one value in all rows, which were left out before any test."""
    notes: tuple[str, ...] = ()
    """What a reader must be told of reading the table."""
    cautions: tuple[str, ...] = ()
    """What a reader must be told of how the rows were recorded."""
    other: Mapping[str, object] = field(default_factory=dict)
    """What else the source said: passed on, never read."""

    def __repr__(self) -> str:
        said = [f"{name}={value!r}" for name, value in self._said().items()]
        return f"Origin({', '.join(said)})"

    @property
    def how_to_ask(self) -> str:
        """The command, or the call, that asks the agent that was watched; empty where none was."""
        if self.environment is None or self.agent is None:
            return ""
        if self.agent_file is None:
            return "policyspace.ask(agent, env)"
        return f"policyspace ask {quote(self.environment)} --agent {quote(self.agent_file)}"

    @property
    def all_notes(self) -> list[str]:
        """Whatever a reader of an answer must be told of the rows."""
        constant = [
            f"{name} is constant in this data: it cannot be told apart from the intercept, and says nothing."
            for name in self.constant_features
        ]
        return [*self.notes, *self.cautions, *constant]

    def noted(self, *notes: str) -> Self:
        """The same with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    @classmethod
    def of(cls, given: "Origin | Mapping[str, Any] | None") -> "Origin":
        """From a table by the names of the fields, or those of files of version 1; any other entry is kept in `other`."""
        if given is None or isinstance(given, Origin):
            return given or Origin()
        if not isinstance(given, Mapping):
            raise InputError(f"what is known of the data must be a table, found {given!r:.40}: leave it out.")
        table = {OLDER.get(str(name), str(name)): value for name, value in given.items()}
        if table.get("weight_type") == "counts":
            table["weight_type"] = "frequency"
        if isinstance(formula := table.get("formula"), str):
            more = table.pop("interactions", {}), table.pop("terms_share_columns", False)
            table["formula"] = {"text": formula, "interactions": more[0], "shares_columns": more[1]}
        hints, known, other = get_type_hints(cls), dict[str, Any](), dict[str, object]()
        for name, value in table.items():
            if name not in hints or name == "other" or value is None or not conforms(value, hints[name]):
                other[name] = value
            else:
                known[name] = record_of(value) if name == "draws" else built(value, hints[name])
        return cls(**known, other=other)

    def to_dict(self) -> dict[str, object]:
        """What files keep, as plain data; the inverse of `of`."""
        kept = {name: value for name, value in self._said().items() if name not in (*FROM_READING, "other")}
        if self.formula is not None:
            kept["formula"] = vars(self.formula)
        if self.draws is not None:
            kept["draws"] = vars(self.draws)
        return {**self.other, **kept}

    def _said(self) -> dict[str, object]:
        """The fields that are not empty."""
        nothing = Origin()
        return {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if getattr(self, one.name) != getattr(nothing, one.name)
        }
