"""What a round leaves behind: plain data that files, screens and pictures share."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple, Self, final

import numpy as np

from policyspace.configuration.stored import ROUND, check_entries, is_count, is_list_of, is_names, is_test

if TYPE_CHECKING:
    from policyspace.answer import Identification

STORED = {"newly_selected": "fell"}
"""Fields whose names in files and JSON are others."""


@final
@dataclass(frozen=True)
class Round:
    """One round: where the agent was observed and why, what was tested at which level, and what was found."""

    number: int
    configuration: dict[str, Any]  # ω as numbers and lists
    design: str | None  # none in the first round, at ω₀, and where the proposal was not followed
    asked_for: tuple[str, ...]  # the units that the configuration was chosen for
    reasons: dict[str, Any]  # the objective at ω and its parts
    num_episodes: int
    total_episodes: int
    significance: float  # δ of this round
    tests: list[dict[str, Any]]  # empty where this batch alone could not be tested
    newly_selected: tuple[str, ...]  # shown to be controlled by this round
    selected: tuple[str, ...]  # so far
    undecided: tuple[str, ...]
    supports: list[list[str]]  # that explain every round so far
    warnings: list[str] = field(default_factory=list)
    identification: "Identification | None" = field(default=None, compare=False, repr=False)  # not kept in files

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """What `to_dict` gave, checked entry by entry."""
        found = dict.fromkeys(("fell", "selected", "undecided"), is_names)
        checks = {"total_episodes": is_count, "tests": is_list_of(is_test), "supports": is_list_of(is_names)}
        check_entries(given, ROUND | found | checks, "a round")
        names = {name: STORED.get(name, name) for name in _stored_fields()}
        values = {name: given[stored] for name, stored in names.items()}
        for name in ("asked_for", "newly_selected", "selected", "undecided"):
            values[name] = tuple(values[name])
        return cls(**values)

    @property
    def was_tested(self) -> bool:
        """Whether the batch said anything about any unit."""
        return any(row.get("testable", True) for row in self.tests)

    @property
    def how(self) -> str:
        """How the world was set up for it, in words."""
        if self.design is None:
            return "as it was"
        asked = f" for {self.asked_for[0]}" if len(self.asked_for) == 1 else ""
        return "left as it was" if self.design == "none" else f"configured ({self.design}{asked})"

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {STORED.get(name, name): getattr(self, name) for name in _stored_fields()}


class Outcome(NamedTuple):
    """What the tests of a batch have changed: fields of its `Round`."""

    tests: list[dict[str, Any]]
    newly_selected: tuple[str, ...]
    selected: tuple[str, ...]
    undecided: tuple[str, ...]
    supports: list[list[str]]
    warnings: list[str]
    identification: "Identification | None" = None


def _stored_fields() -> list[str]:
    return [f.name for f in fields(Round) if f.name != "identification"]


def plain(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """ω as numbers and lists."""
    return {name: np.asarray(value, dtype=np.float64).tolist() for name, value in configuration.items()}


def same_configuration(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Are these the same ω, up to what writing it down may round away?"""
    return one.keys() == other.keys() and all(
        np.allclose(one[name], other[name], rtol=1e-9, atol=1e-12) for name in one
    )
