"""What a study says: what to observe next and why, and what is decided so far."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self, final

from policyspace.study.round_record import RoundRecord

PROMISING = 0.8
"""The power from which a round is said to settle a unit."""


@final
@dataclass(frozen=True)
class Forecast:
    """What a round promises about one unit, as if the agent kept the weights it has shown so far."""

    unit: str
    power: float  # of the round's episodes
    episodes: float  # for a power of 0.8; infinite where nothing of the unit has been seen
    detectable_effect: float  # ‖θ_u‖ that the round's episodes show with a power of 0.8, in a typical direction


@final
@dataclass(frozen=True)
class Request:
    """The next round: where to observe the agent, for how long, why there, and what that would settle."""

    number: int
    configuration: dict[str, Any]  # ω as numbers and lists
    design: str | None  # none for the first round, at ω₀
    asked_for: tuple[str, ...]  # the units that the configuration was chosen for
    reasons: dict[str, Any]  # the objective at ω and its parts
    num_episodes: int
    significance: float  # δ of this round
    forecasts: list[Forecast]
    warnings: list[str]

    @property
    def why(self) -> str:
        """Why this configuration, in one sentence."""
        units = f"{self.asked_for[0]}" if len(self.asked_for) == 1 else f"the {len(self.asked_for)} undecided units"
        before, after = self.reasons.get("objective_before"), self.reasons.get("objective")
        if self.design is None:
            return "The agent has not been seen yet: it is first observed where it is."
        if self.design == "uniform":
            return "It plays no favourites: every configuration is as likely, whatever was seen."
        if self.design == "none":
            return "The world is left as it is: only watching longer can show more."
        if self.design == "paper":
            return (
                f"Here the return depends most on {units}: C rises from {_figure(before)} to {_figure(after)} "
                f"(gradient² {_figure(self.reasons.get('gain'))} − penalty {_figure(self.reasons.get('cost'))})."
            )
        measure = (
            "log det of the expected information" if self.design == "d-optimal" else "log of the expected evidence"
        )
        return (
            f"It was climbed to as what tells most about {units}: the {measure} of {self.num_episodes} episodes is "
            f"{_figure(after)} here, {_figure(before)} where the climb began."
        )

    @property
    def settles(self) -> tuple[str, ...]:
        """The units that this round shows with a power of at least 0.8, if the agent keeps its weights."""
        return tuple(f.unit for f in self.forecasts if f.power >= PROMISING)

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it: infinite numbers become null."""
        plain = asdict(self)
        for row in plain["forecasts"]:
            row |= {name: None if isinstance(v, float) and math.isinf(v) else v for name, v in row.items()}
        return plain

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """What `to_dict` gave."""
        rows: list[dict[str, Any]] = [
            {k: math.inf if v is None else v for k, v in row.items()} for row in given["forecasts"]
        ]
        values = dict(given) | {"asked_for": tuple(given["asked_for"]), "forecasts": [Forecast(**row) for row in rows]}
        return cls(**values)


@final
@dataclass(frozen=True)
class Status:
    """What is decided, what is open, and the history behind it."""

    settings: dict[str, Any]
    rounds: list[RoundRecord]
    told_at: list[str]
    request: Request | None  # what was asked last and not yet told
    truth: list[str] | None = None  # where the data know it

    @property
    def selected(self) -> tuple[str, ...]:
        """The units shown to be controlled."""
        return self.rounds[-1].selected if self.rounds else ()

    @property
    def undecided(self) -> tuple[str, ...]:
        """The units not yet shown to be controlled."""
        return self.rounds[-1].undecided if self.rounds else tuple(self.settings["units"])

    @property
    def supports(self) -> list[list[str]] | None:
        """The supports that explain every round so far."""
        return (self.rounds[-1].supports or None) if self.rounds else None

    @property
    def evidence(self) -> dict[str, float] | None:
        """E of every unit now, where the study follows it."""
        return (
            {row["group"]: row["e_value"] for row in self.rounds[-1].tests} if self.sequential and self.rounds else None
        )

    @property
    def total_episodes(self) -> int:
        """How many episodes have been told."""
        return self.rounds[-1].total_episodes if self.rounds else 0

    @property
    def sequential(self) -> bool:
        """Whether evidence is followed over all rounds, instead of every batch being tested alone."""
        return self.settings.get("test") == "eprocess"  # older files have no such entry

    @property
    def level(self) -> float:
        """δ of one round: a share of the study's; all of it for the e-process and the paper's uncorrected union."""
        whole: float = self.settings["significance"]
        return whole if self.settings["paper_rule"] or self.sequential else whole / self.settings["num_rounds"]

    @property
    def batch(self) -> int:
        """Episodes of the next round: as many as always, or an even share of what the budget has left."""
        if self.settings["budget"] is None:
            return int(self.settings["num_episodes"])
        left = self.settings["budget"] - self.total_episodes
        rounds = self.settings["num_rounds"] - len(self.rounds)
        return min(math.ceil(left / rounds) if self.settings["joint"] else self.settings["num_episodes"], left)

    @property
    def finished(self) -> str | None:
        """Why nothing is left to ask, or None."""
        if not self.undecided:
            return "every unit is shown to be controlled"
        if len(self.rounds) >= self.settings["num_rounds"]:
            return f"all {self.settings['num_rounds']} rounds have been told"
        if self.settings["budget"] is not None and self.total_episodes >= self.settings["budget"]:
            return f"the budget of {self.settings['budget']} episodes is spent"
        if self.rounds and not self.agenda()[0]:
            return f"every undecided unit has been asked for {self.settings['num_attempts']} times"
        return None

    def agenda(self) -> tuple[tuple[str, ...], int]:
        """For which units to configure next, and from the data of which round (Algorithm 4).

        A joint design serves all undecided units from the last round; the paper's takes one after the other, each at
        most `num_attempts` times, from the data of its last attempt or of the first round.
        """
        if self.settings["joint"]:
            return self.undecided, len(self.rounds) - 1
        for unit in self.undecided:
            attempts = [r.number for r in self.rounds[1:] if r.asked_for == (unit,)]
            if len(attempts) < self.settings["num_attempts"]:
                return (unit,), attempts[-1] if attempts else 0
        return (), 0

    @property
    def sentence(self) -> str:
        """The state of the study in one plain sentence."""
        if not self.rounds:
            return "Nothing has been told yet."
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
                r.to_dict() | {"told_at": told_at} for r, told_at in zip(self.rounds, self.told_at, strict=True)
            ],
            "request": None if self.request is None else self.request.to_dict(),
            "settings": self.settings,
        }


def _figure(value: Any) -> str:
    return "unknown" if value is None else f"{value:.3g}"
