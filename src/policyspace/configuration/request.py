"""The next round: where to observe the agent, why there, and what that would settle."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self, final

from policyspace.configuration.stored import ROUND, check_entries, is_list_of, is_number, is_text, or_nothing

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
    forecasts: list[Forecast] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def why(self) -> str:
        """Why this configuration, in one sentence."""
        units = f"{self.asked_for[0]}" if len(self.asked_for) == 1 else f"the {len(self.asked_for)} undecided units"
        before, after = self.reasons.get("objective_before"), self.reasons.get("objective")
        if self.design is None:
            return "The agent has not been seen yet: it is first observed where it is."
        if self.design == "uniform":
            return "It plays no favourites: every configuration is as likely, whatever was seen."
        if self.design == "space-filling":
            return "It lies where no configuration has been near yet: the box of configurations is filled evenly."
        if self.design == "simulated":
            return (
                f"Episodes of the estimated policy, simulated in many configurations, told most about {units} here: the log "
                f"det of the expected information of {self.num_episodes} episodes is {_figure(after)}, {_figure(before)} "
                "where the last episodes are from."
            )
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
        """What `to_dict` gave, checked entry by entry."""
        check_entries(given, ROUND | {"forecasts": is_list_of(_is_forecast)}, "a request")
        rows: list[dict[str, Any]] = [
            {k: math.inf if v is None else v for k, v in row.items()} for row in given["forecasts"]
        ]
        values = {name: given[name] for name in ROUND}
        values |= {"asked_for": tuple(given["asked_for"]), "forecasts": [Forecast(**row) for row in rows]}
        return cls(**values)


def _is_forecast(value: Any) -> bool:
    """The fields of a forecast, where what is infinite is written as nothing."""
    numbers = ("power", "episodes", "detectable_effect")
    return (
        isinstance(value, dict)
        and value.keys() == {"unit", *numbers}
        and is_text(value["unit"])
        and all(or_nothing(is_number)(value[name]) for name in numbers)
    )


def _figure(value: Any) -> str:
    return "unknown" if value is None else f"{value:.3g}"
