"""`RoundPlan`, `Round`, `Status`, and the schedule that shares the error level over rounds."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    Required,
    Self,
    TypedDict,
    Unpack,
    cast,
    final,
    get_type_hints,
)

import numpy as np

from policyspace.display import Shown, TextTable, listed_names
from policyspace.errors import InputError, nearest, number_of
from policyspace.inference.base import check_share
from policyspace.safe_io import JSON, conforms
from policyspace.study.store import MOST, Count, Names, Setting, Share, Unbounded, checked_entries

if TYPE_CHECKING:
    from policyspace.answer import Identification
    from policyspace.families.base import PolicySpace
    from policyspace.worlds.base import Configurable


class StudySettings(TypedDict, total=False):
    """What a study was created with, beside its schedule."""

    world: str | None
    """As the user named it; None of an environment."""
    world_name: str
    environment: Mapping[str, object] | None
    groups: str | Mapping[str, Names]
    units: Names
    assume: Names
    design: str
    initial: Mapping[str, Setting]
    seed: int


class UnitRow(TypedDict, total=False):
    """What a round keeps of a unit: its own test, as in `GroupTest`, and evidence that later rounds add to."""

    group: Required[str]
    statistic: float | None
    degrees_of_freedom: int
    p_value: float
    adjusted_p_value: float
    rejected: bool
    coefficient_norm: float | None
    minimum_detectable_effect: float | None
    testable: bool
    log_evidence: float
    """T_s of all rounds so far, where their p-values are combined."""
    combined_p_value: Annotated[float, lambda p: conforms(p, float) and p > 0]
    log_e: float
    """The evidence of all episodes so far, where e-values are followed."""
    highest: float
    """The most that there ever was, which is what counts."""
    e_value: float
    state: str
    """Controlled, or open."""
    decided_at: int | None
    """The episode of the study after which it was controlled."""
    looks: Sequence[tuple[int, float]]
    """(episode of the study, log E then) of this round."""


# -- The next round: where to observe the agent, why there, and what that would settle.

PROMISING = 0.8
"""The power from which a round is said to settle a unit."""


@final
@dataclass(frozen=True)
class Forecast:
    """What a round promises about one unit, as if the agent kept the weights it has shown so far."""

    unit: str
    power: Unbounded  # of the round's episodes
    episodes: Unbounded  # for a power of 0.8; infinite where nothing of the unit has been seen
    detectable_effect: Unbounded  # ‖θ_u‖ that the round's episodes show with a power of 0.8, in a typical direction


@final
@dataclass(frozen=True)
class RoundPlan:
    """The next round: where to observe the agent, for how long, why there, and what that would settle."""

    number: Count
    configuration: dict[str, Setting]  # ω
    design: str | None  # none for the first round, at ω₀
    asked_for: Names  # the units that the configuration was chosen for
    reasons: dict[str, float | None]  # the objective at ω and its parts
    num_episodes: Count
    significance: Share  # δ of this round
    forecasts: list[Forecast] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def why(self) -> str:
        """Why this configuration, in one sentence."""
        units = f"{self.asked_for[0]}" if len(self.asked_for) == 1 else f"the {len(self.asked_for)} undecided groups"
        before, after = self.reasons.get("objective_before"), self.reasons.get("objective")
        if self.design is None:
            return "The agent has not been seen yet: it is first observed where it is."
        if self.design == "uniform":
            return "It plays no favourites: every configuration is as likely, whatever was seen."
        if self.design == "space-filling":
            return "It lies where no configuration has been near yet: the box of configurations is filled evenly."
        if self.design == "simulated":
            return (
                f"Episodes of the estimated policy, simulated in many configurations, say most about {units} here: the log "
                f"det of the expected information of {self.num_episodes} episodes is {_figure(after)}, {_figure(before)} "
                "where the last episodes are from."
            )
        if self.design == "decision":
            return (
                f"For want of knowing {units}, choosing a configuration may lose {_figure(self.reasons.get('gain'))} of the "
                f"return: this round is expected to lower that by {_figure(after)}, one where the last episodes are from by "
                f"{_figure(before)}."
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

    def to_dict(self) -> dict[str, JSON]:
        """As JSON can hold it: infinite numbers become null."""
        plain = asdict(self)
        for row in plain["forecasts"]:
            row |= {name: None if isinstance(v, float) and math.isinf(v) else v for name, v in row.items()}
        return plain

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """What `to_dict` gave, checked entry by entry; what is infinite is written as nothing."""
        found = checked_entries({one.name: one.type for one in fields(cls)}, given, "a request")
        forecasts = [
            replace(one, **{name: math.inf for name, value in vars(one).items() if value is None})
            for one in found["forecasts"]
        ]
        return cls(**{**found, "forecasts": forecasts})


def _figure(value: Any) -> str:
    return "unknown" if value is None else f"{value:.3g}"


# -- What a round leaves behind: plain data that files, screens and pictures share.

STORED = {"newly_selected": "fell"}
"""Fields whose names in files and JSON are others."""

LATER = ("exact",)
"""Entries that files of before lack."""

OLDER = {"effect": "coefficient_norm", "detectable_effect": "minimum_detectable_effect"}
"""Names in a unit's row in files of before, and today's."""


@final
@dataclass(frozen=True)
class Round:
    """One round: where the agent was observed and why, what was tested at which level, and what was found."""

    number: Count
    configuration: dict[str, Setting]  # ω
    design: str | None  # none in the first round, at ω₀, and where the proposal was not followed
    asked_for: Names  # the units that the configuration was chosen for
    reasons: dict[str, float | None]  # the objective at ω and its parts
    num_episodes: Count
    total_episodes: Count
    significance: Share  # δ of this round
    tests: list[UnitRow]  # empty where this batch alone could not be tested
    newly_selected: Names  # shown to be controlled by this round
    selected: Names  # so far
    undecided: Names
    supports: list[list[str]]  # that explain every round so far
    warnings: list[str] = field(default_factory=list)
    exact: bool = False  # tested by readings that were drawn at random: whatever the agent is
    identification: "Identification | None" = field(default=None, compare=False, repr=False)  # not kept in files

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """What `to_dict` gave, checked entry by entry."""
        kinds = {STORED.get(one.name, one.name): one.type for one in fields(cls) if one.name in _stored_fields()}
        found = checked_entries(kinds, given, "a round", LATER)
        tests = [{OLDER.get(name, name): value for name, value in row.items()} for row in found["tests"]]
        stored = {name: found[kept] for name in _stored_fields() if (kept := STORED.get(name, name)) in found}
        return cls(**stored | {"tests": tests})

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

    @property
    def where(self) -> str:
        """The same, with a mark where its readings were drawn."""
        return f"{self.how}, readings drawn" if self.exact else self.how

    def to_dict(self) -> dict[str, JSON]:
        """As JSON can hold it."""
        return {STORED.get(name, name): getattr(self, name) for name in _stored_fields()}


class RoundOutcome(NamedTuple):
    """What the tests of a batch have changed: fields of its `Round`."""

    tests: list[UnitRow]
    newly_selected: tuple[str, ...]
    selected: tuple[str, ...]
    undecided: tuple[str, ...]
    supports: list[list[str]]
    warnings: list[str]
    identification: "Identification | None" = None


def _stored_fields() -> list[str]:
    return [f.name for f in fields(Round) if f.name != "identification"]


def plain(configuration: Mapping[str, Any]) -> dict[str, Setting]:
    """ω as numbers and lists."""
    return {name: np.asarray(value, dtype=np.float64).tolist() for name, value in configuration.items()}


def same_configuration(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Are these the same ω, up to what writing it down may round away?"""
    return one.keys() == other.keys() and all(
        np.allclose(one[name], other[name], rtol=1e-9, atol=1e-12) for name in one
    )


# -- What is settled before the first round: how many there can be, and how δ and the episodes are shared out over them.

RULES = ("simplified", "combinatorial")
TESTS = ("auto", "combined", "batches", "eprocess")

LAST_SHARE = 0.5
"""The share of δ that is kept for the last round, when all the evidence is in; the rounds before it share the rest."""


class Testing(TypedDict, total=False):
    """How rounds are tested."""

    paper_rule: bool
    test: str


class Options(Testing, total=False):
    """What a user may say about the rounds; the defaults are those of `Schedule`, and the test "auto"."""

    significance: float
    rule: str
    max_rounds: int | None
    episodes: int | None
    budget: int | None


@final
@dataclass(frozen=True)
class Schedule:
    """The rounds of a study: the first at ω₀, then `max_rounds` for all units together or, unless `joint`, for each."""

    units: Names  # what is tested, by name
    joint: bool  # whether one configuration serves all undecided groups
    significance: Share = 0.05  # δ of all rounds together
    rule: str = "simplified"
    max_rounds: Count = 3
    num_episodes: Count = 100  # of a round, unless a budget is shared out
    budget: Count | None = None  # episodes of all rounds together
    paper_rule: bool = False  # the paper's union: every round at full δ, with no promise for all of them
    test: str = "batches"  # each alone; "combined": their p-values together; "eprocess": every episode together

    def __post_init__(self) -> None:
        check_share(self.significance, "the significance")
        if self.rule not in RULES:
            raise InputError(f"there is no rule '{self.rule}': {nearest(self.rule, RULES)}")
        check_count("max_rounds", self.max_rounds, 0)
        check_count("episodes a round", self.num_episodes, 1)
        check_count("episodes in the budget", 1 if self.budget is None else self.budget, 1)
        if not self.units:
            raise InputError("a study needs at least one group to test, found none: assume fewer of them.")
        if self.joint and self.budget is not None and self.budget < self.num_rounds:
            raise InputError(
                f"a budget of {self.budget} episodes is too small for {self.num_rounds} rounds: allow at least one each."
            )

    @classmethod
    def of(cls, space: "PolicySpace", joint: bool, **options: Unpack[Options]) -> Self:
        """The schedule for the units of a space, with the test that fits it unless one is named."""
        units = tuple(space.groups[i].name for i in space.tested)
        given: Any = {"rule": cls.rule, "paper_rule": cls.paper_rule, "test": "auto"} | dict(options)
        given = {"num_episodes" if name == "episodes" else name: value for name, value in given.items()}
        counts = ("max_rounds", "num_episodes")
        given = {name: value for name, value in given.items() if not (name in counts and value is None)}
        if joint and "num_episodes" in given and given.get("budget") is not None:
            raise InputError(
                f"the budget of this design is shared out over its rounds, found {given['num_episodes']} episodes a round "
                "too: leave one of them out."
            )
        given["test"] = _fitting_test(given["test"], space, given["rule"], given["paper_rule"])
        return cls(units, joint, **given)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The schedule in the settings of a study; older ones name no test."""
        return cls(**checked_entries(get_type_hints(cls, include_extras=True), settings, "the settings", ("test",)))

    @property
    def num_rounds(self) -> int:
        """How many rounds there can be."""
        most = 1 + self.max_rounds * (1 if self.joint else len(self.units))
        # Designs for single units do not share the budget out: it ends after so many rounds of the usual size.
        return most if self.joint or self.budget is None else min(most, math.ceil(self.budget / self.num_episodes))

    @property
    def sequential(self) -> bool:
        """Whether evidence is followed after every episode, instead of once a round."""
        return self.test == "eprocess"

    @property
    def combined(self) -> bool:
        """Whether the p-values of all rounds are combined, instead of every batch being tested alone."""
        return self.test == "combined"

    @property
    def shares(self) -> tuple[float, ...]:
        """a_s, the share of δ that each round may spend; they add up to one unless the promise does not rest on them.

        Under the hypothesis, the chance that any round selects a unit wrongly is at most the sum of what they spend,
        whatever the configurations depended on. The e-process has all of δ at every look, and so has the paper's
        uncorrected union.
        """
        count = self.num_rounds
        if self.paper_rule or self.sequential:
            return (1.0,) * count
        if not self.combined or count == 1:
            return (1.0 / count,) * count
        return ((1.0 - LAST_SHARE) / (count - 1),) * (count - 1) + (LAST_SHARE,)

    def level_of(self, number: int) -> float:
        """δ of one round, counted from 0."""
        return self.significance * self.shares[min(number, self.num_rounds - 1)]

    def guarantee(self, design: str) -> str:
        """What holds for all rounds together, in words."""
        head = f"{self.rule} rule, {design} design; "
        rounds, whole = f"at most {number_of(self.num_rounds, 'round')}", f"{self.significance:g}"
        if self.sequential:
            return (
                f"{head}{rounds}. E-values of all episodes multiply, so δ is not split over rounds: chance of any false "
                f"'controlled' ever ≤ {whole}."
            )
        if self.paper_rule:
            return (
                f"{head}{rounds}, each tested at δ = {whole}, as in the paper: no guarantee for all of them together."
            )
        adds = "evidence adds up over" if self.combined else "δ is shared out over"
        return f"{head}{adds} {rounds}: chance of any false 'controlled' in all of them ≤ {whole}."

    def episodes(self, num_rounds: int, num_episodes: int) -> int:
        """Episodes of the next round after so many: as many as always, or an even share of what the budget has left."""
        if self.budget is None:
            return self.num_episodes
        left = self.budget - num_episodes
        return min(math.ceil(left / (self.num_rounds - num_rounds)) if self.joint else self.num_episodes, left)


def check_count(what: str, number: int, least: int) -> None:
    """A whole number that is large enough, and small enough to count to."""
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= MOST:
        found = "more" if isinstance(number, int) and number > MOST else repr(number)
        raise InputError(
            f"{what} must be a whole number of at least {least} and at most {MOST}, found {found:.60}: correct it."
        )


def _fitting_test(test: str, space: "PolicySpace", rule: str, paper_rule: bool) -> str:
    """How rounds are tested: as asked for, or what fits their space.

    P-values of whole rounds find smaller effects of a linear policy than e-values do. Wilks' law fails for networks, and
    their e-values need more episodes than a batch has: there evidence must add up over episodes. Sets of supports are
    united over rounds, which are tested alone.
    """
    if test not in TESTS:
        raise InputError(f"there is no test '{test}' of a study: {nearest(test, TESTS)}")
    if space.guess:
        check_needs_no_model(test, space, paper_rule)
    simple = rule == "simplified" and not paper_rule
    if test == "auto":
        return "batches" if not simple else "eprocess" if space.multimodal else "combined"
    if test != "batches" and not simple:
        what = "the paper's rule" if paper_rule else f"the rule '{rule}'"
        name = "the e-process" if test == "eprocess" else "combined evidence"
        raise InputError(f"{name} follows one group at a time, found {what}: leave one of them out.")
    return test


def check_needs_no_model(test: str, space: "PolicySpace", paper_rule: bool) -> None:
    """Of an agent that may be of any form only features can be tested, and only by what takes no form for granted."""
    asked = {
        "the e-process": test == "eprocess",
        "the paper's rule": paper_rule,
        "single weights as groups": space.group_columns() is None,
    }
    for what, is_asked in asked.items():
        if is_asked:
            raise InputError(
                f"in a Gymnasium environment the agent may be of any form, found {what}, which needs an agent of a known "
                "policy space: leave it out, and features are tested without a model."
            )


# -- Where the rounds stand: what is decided, what is open, and what comes next.

FOLLOWED = {"group", "log_e", "highest", "decided_at", "e_value"}
COMBINED = {"group", "log_evidence", "combined_p_value"}
"""What is kept of a unit over all rounds: e-values, or p-values."""


def check_history(rounds: Sequence[Round], request: RoundPlan | None, schedule: Schedule) -> None:
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
            raise InputError(f"round {number} must have evidence for every group, found less: the file is damaged.")
    if request is not None:
        _check_units(set(request.asked_for), units)
        if request.number != len(rounds):
            raise InputError(f"what is asked must be round {len(rounds)}, found {request.number}: the file is damaged.")


def _check_units(found: set[str], units: set[str]) -> None:
    if not found <= units:
        raise InputError(f"there is no group '{min(found - units):.60}' in the settings: the file is damaged.")


@final
@dataclass(frozen=True)
class Status:
    """What is decided, what is open, and the rounds behind it; the same for a study in a file and one in memory."""

    schedule: Schedule
    rounds: list[Round] = field(default_factory=list)
    request: RoundPlan | None = None  # what was asked last and not yet reported
    reported_at: list[str] = field(default_factory=list)  # of a study in a file, like the settings
    settings: StudySettings = field(default_factory=lambda: StudySettings())
    truth: list[str] | None = None  # where the data know it, of these very units

    def __post_init__(self) -> None:
        """What is said of features says nothing of single weights, or of groups with other names."""
        known = {*self.schedule.units, *self.settings.get("assume", ())}
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

        A joint design serves all undecided groups from the last round; the paper's takes one after the other, each at
        most `max_rounds` times, from the data of its last round or of the first one.
        """
        if self.schedule.joint:
            return self.undecided, len(self.rounds) - 1
        for unit in self.undecided:
            rounds = [r.number for r in self.rounds[1:] if r.asked_for == (unit,)]
            if len(rounds) < self.schedule.max_rounds:
                return (unit,), rounds[-1] if rounds else 0
        return (), 0

    @property
    def finished(self) -> str | None:
        """Why nothing is left to ask, or None."""
        schedule = self.schedule
        if not self.undecided:
            return "every group is shown to be controlled"
        if len(self.rounds) >= schedule.num_rounds:
            only = schedule.num_rounds == 1
            return (
                "the only round has been reported" if only else f"all {schedule.num_rounds} rounds have been reported"
            )
        if schedule.budget is not None and self.total_episodes >= schedule.budget:
            return f"the budget of {schedule.budget} episodes is spent"
        if self.rounds and not self.next_units[0]:
            return f"every undecided group has been asked for {schedule.max_rounds} times"
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

    def to_dict(self) -> dict[str, JSON]:
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
            "settings": cast("JSON", self.settings),
        }


# -- What a study in a file and a configured run in memory have in common: the rounds so far, and how they are shown.

COLUMNS = ("round", "where", "episodes", "newly selected", "open")


class Rounds(Shown):
    """The rounds of one agent in one world."""

    page: ClassVar[str] = "policyspace.study.page:rounds_page"

    @property
    @abstractmethod
    def world(self) -> "Configurable":
        """The world that the agent is in."""

    @abstractmethod
    def status(self) -> Status:
        """What is decided, what is open, and the rounds behind it."""

    @property
    def sentence(self) -> str:
        """The answer so far in one plain sentence."""
        return self.status().sentence

    def table(self) -> TextTable:
        """One row a round: how the world was configured, for how long, what was found, what is open."""
        rows = [
            (
                str(r.number + 1),
                r.where,
                str(r.num_episodes),
                ", ".join(r.newly_selected) or "nothing",
                ", ".join(r.undecided) or "nothing",
            )
            for r in self.status().rounds
        ]
        return TextTable(COLUMNS, rows)

    def notes(self) -> list[str]:
        """What is guaranteed for all rounds together, the warnings, and what comes next."""
        status = self.status()
        notes = [status.schedule.guarantee(str(status.settings.get("design", "given")))]
        drawn = [str(r.number + 1) for r in status.rounds if r.exact]
        if drawn:
            those = f"round {drawn[0]}" if len(drawn) == 1 else f"rounds {listed_names(drawn)}"
            notes.append(f"Exact: {those}, tested by readings that were drawn at random, whatever the agent is.")
        if status.finished is not None:
            notes.append(f"Nothing is left to ask: {status.finished}.")
        elif status.request is not None:
            notes.append(f"Asked and not yet reported: round {status.request.number + 1}.")
        return notes + [f"Warning: {warning}" for r in status.rounds for warning in r.warnings]
