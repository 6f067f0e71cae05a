"""Where the rounds stand: what is decided, what is open, and what comes next."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

from policyspace.configuration.request import Request
from policyspace.configuration.round import Round
from policyspace.configuration.schedule import Schedule
from policyspace.errors import InputError

FOLLOWED = {"group", "log_e", "highest", "decided_at", "e_value"}
COMBINED = {"group", "log_evidence", "combined_p_value"}
"""What is kept of a unit over all rounds: e-values, or p-values."""


def check_history(rounds: Sequence[Round], request: Request | None, schedule: Schedule) -> None:
    """Rounds in a file must follow one another, and speak of the units of their schedule only."""
    told, units = 0, set(schedule.units)
    for number, found in enumerate(rounds):
        told += found.num_episodes
        if found.number != number or found.total_episodes != told:
            raise InputError(
                f"round {number} must be number {number}, with {told} episodes so far, found number {found.number} with "
                f"{found.total_episodes}: the file is damaged."
            )
        _check_units({*found.asked_for, *found.newly_selected, *found.selected, *found.undecided}, units)
        rows = {row["group"]: row for row in found.tests}
        followed = FOLLOWED if schedule.sequential else COMBINED if schedule.combined else set()
        if followed and not (units <= rows.keys() and all(set(followed) <= rows[unit].keys() for unit in units)):
            raise InputError(f"round {number} must have evidence for every unit, found less: the file is damaged.")
    if request is not None:
        _check_units(set(request.asked_for), units)
        if request.number != len(rounds):
            raise InputError(f"what is asked must be round {len(rounds)}, found {request.number}: the file is damaged.")


def _check_units(found: set[str], units: set[str]) -> None:
    if not found <= units:
        raise InputError(f"there is no unit '{min(found - units):.60}' in the settings: the file is damaged.")


@final
@dataclass(frozen=True)
class Status:
    """What is decided, what is open, and the rounds behind it; the same for a study in a file and one in memory."""

    schedule: Schedule
    rounds: list[Round] = field(default_factory=list)
    request: Request | None = None  # what was asked last and not yet reported
    reported_at: list[str] = field(default_factory=list)  # of a study in a file, like the settings
    settings: dict[str, Any] = field(default_factory=dict)
    truth: list[str] | None = None  # where the data know it, of these very units

    def __post_init__(self) -> None:
        """What is said of features says nothing of single weights, or of groups with other names."""
        known = {*self.schedule.units, *self.settings.get("always", ())}
        if self.truth is not None and not known.issuperset(self.truth):
            object.__setattr__(self, "truth", None)

    @property
    def selected(self) -> tuple[str, ...]:
        """The units shown to be controlled."""
        return self.rounds[-1].selected if self.rounds else ()

    @property
    def undecided(self) -> tuple[str, ...]:
        """The units not yet shown to be controlled."""
        return self.rounds[-1].undecided if self.rounds else self.schedule.units

    @property
    def supports(self) -> list[list[str]] | None:
        """The supports that explain every round so far."""
        return (self.rounds[-1].supports or None) if self.rounds else None

    @property
    def evidence(self) -> dict[str, float] | None:
        """E of every unit now, where e-values are followed; 1/p of all rounds together, where p-values are."""
        if not self.rounds or not (self.schedule.sequential or self.schedule.combined):
            return None
        rows = self.rounds[-1].tests
        if self.schedule.sequential:
            return {row["group"]: row["e_value"] for row in rows}
        return {row["group"]: 1.0 / row["combined_p_value"] for row in rows}

    @property
    def total_episodes(self) -> int:
        """How many episodes have been reported."""
        return self.rounds[-1].total_episodes if self.rounds else 0

    @property
    def next_episodes(self) -> int:
        """Episodes of the next round."""
        return self.schedule.episodes(len(self.rounds), self.total_episodes)

    @property
    def next_units(self) -> tuple[tuple[str, ...], int]:
        """For which units to configure next, and from the data of which round (Algorithm 4).

        A joint design serves all undecided units from the last round; the paper's takes one after the other, each at
        most `num_attempts` times, from the data of its last attempt or of the first round.
        """
        if self.schedule.joint:
            return self.undecided, len(self.rounds) - 1
        for unit in self.undecided:
            attempts = [r.number for r in self.rounds[1:] if r.asked_for == (unit,)]
            if len(attempts) < self.schedule.num_attempts:
                return (unit,), attempts[-1] if attempts else 0
        return (), 0

    @property
    def finished(self) -> str | None:
        """Why nothing is left to ask, or None."""
        schedule = self.schedule
        if not self.undecided:
            return "every unit is shown to be controlled"
        if len(self.rounds) >= schedule.num_rounds:
            only = schedule.num_rounds == 1
            return (
                "the only round has been reported" if only else f"all {schedule.num_rounds} rounds have been reported"
            )
        if schedule.budget is not None and self.total_episodes >= schedule.budget:
            return f"the budget of {schedule.budget} episodes is spent"
        if self.rounds and not self.next_units[0]:
            return f"every undecided unit has been asked for {schedule.num_attempts} times"
        return None

    @property
    def sentence(self) -> str:
        """The answer so far in one plain sentence."""
        if not self.rounds:
            return "Nothing has been reported yet."
        shown = (
            f"The agent controls {', '.join(self.selected)}" if self.selected else "Nothing is shown to be controlled"
        )
        rest = f"; undecided: {', '.join(self.undecided)}" if self.undecided else ""
        return f"{shown}{rest}."

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "answer": self.sentence,
            "evidence": self.evidence,
            "selected": list(self.selected),
            "undecided": list(self.undecided),
            "supports": self.supports,
            "total_episodes": self.total_episodes,
            "finished": self.finished,
            "truth": self.truth,
            "rounds": [
                r.to_dict() | {"told_at": moment} for r, moment in zip(self.rounds, self.reported_at, strict=True)
            ],
            "request": None if self.request is None else self.request.to_dict(),
            "settings": self.settings,
        }
