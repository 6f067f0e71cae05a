"""What a round of configuring leaves behind: plain data that files, screens and pictures share."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from policyspace.errors import InputError

if TYPE_CHECKING:
    from policyspace.configuration import Proposal, Round


@final
@dataclass(frozen=True)
class RoundRecord:
    """One look at the agent: where and why, what was tested at which level, what fell, and what is open after it."""

    number: int
    configuration: dict[str, Any]  # ω as numbers and lists
    design: str | None  # none in the first round, at ω₀, and where the proposal was not followed
    asked_for: tuple[str, ...]  # the units that the configuration was chosen for
    reasons: dict[str, Any]  # the objective at ω and its parts
    num_episodes: int
    total_episodes: int
    significance: float  # δ of this round
    tests: list[dict[str, Any]]  # empty where this batch alone could not be tested
    fell: tuple[str, ...]  # newly shown to be controlled
    selected: tuple[str, ...]  # so far
    undecided: tuple[str, ...]
    supports: list[list[str]]
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, told: "Round") -> "RoundRecord":
        """The record of a round of `configure`."""
        proposal = told.proposal
        return cls(
            told.number,
            plain(told.configuration),
            None if proposal is None else proposal.design,
            () if proposal is None else proposal.units,
            {} if proposal is None else reasons(proposal),
            told.num_episodes,
            told.total_episodes,
            told.significance,
            [] if told.identification is None else told.identification.to_dict()["tests"],
            told.fell,
            told.selected,
            told.undecided,
            told.supports,
            told.warnings,
        )

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """What `to_dict` gave, checked for the names of its fields."""
        names = [f.name for f in fields(cls)]
        missing = [name for name in names if name not in given]
        if missing:
            raise InputError(f"a round must have the entry '{missing[0]}', found none: the file is damaged.")
        values = {name: given[name] for name in names}
        for name in ("asked_for", "fell", "selected", "undecided"):
            values[name] = tuple(values[name])
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)


def plain(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """ω as numbers and lists."""
    return {name: np.asarray(value, dtype=np.float64).tolist() for name, value in configuration.items()}


def reasons(proposal: "Proposal") -> dict[str, Any]:
    """Why this ω: the objective, its two terms, and how far the data can be trusted about it."""
    names = ("objective", "gain", "cost", "effective_sample_size", "largest_weight")
    values = {name: float(getattr(proposal, name)) for name in names} | {"objective_before": float(proposal.values[0])}
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def same_configuration(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Are these the same ω, up to what writing it down may round away?"""
    return one.keys() == other.keys() and all(
        np.allclose(one[name], other[name], rtol=1e-9, atol=1e-12) for name in one
    )
