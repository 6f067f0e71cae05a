"""What is settled before the first round: how many there can be, and how δ and the episodes are shared out over them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack, final

from policyspace.configuration.stored import (
    MOST,
    check_entries,
    is_count,
    is_names,
    is_share,
    is_text,
    is_truth,
    or_nothing,
)
from policyspace.errors import InputError, nearest
from policyspace.planning.power import check_share
from policyspace.printable import number_of

if TYPE_CHECKING:
    from policyspace.policies import PolicySpace

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
    attempts: int | None
    episodes: int | None
    budget: int | None


@final
@dataclass(frozen=True)
class Schedule:
    """The rounds of a study: the first at ω₀, then `num_attempts` for all units together or, unless `joint`, for each."""

    units: tuple[str, ...]  # what is tested, by name
    joint: bool  # whether one configuration serves all undecided units
    significance: float = 0.05  # δ of all rounds together
    rule: str = "simplified"
    num_attempts: int = 3
    num_episodes: int = 100  # of a round, unless a budget is shared out
    budget: int | None = None  # episodes of all rounds together
    paper_rule: bool = False  # the paper's union: every round at full δ, with no promise for all of them
    test: str = "batches"  # each alone; "combined": their p-values together; "eprocess": every episode together

    def __post_init__(self) -> None:
        check_share(self.significance, "the significance")
        if self.rule not in RULES:
            raise InputError(f"there is no rule '{self.rule}': {nearest(self.rule, RULES)}")
        check_count("attempts", self.num_attempts, 0)
        check_count("episodes a round", self.num_episodes, 1)
        check_count("episodes in the budget", 1 if self.budget is None else self.budget, 1)
        if not self.units:
            raise InputError("a study needs at least one unit to test, found none: declare fewer of them known.")
        if self.joint and self.budget is not None and self.budget < self.num_rounds:
            raise InputError(
                f"a budget of {self.budget} episodes is too small for {self.num_rounds} rounds: allow at least one each."
            )

    @classmethod
    def of(cls, space: "PolicySpace", joint: bool, **options: Unpack[Options]) -> Self:
        """The schedule for the units of a space, with the test that fits it unless one is named."""
        units = tuple(space.groups[i].name for i in space.tested)
        given: Any = {"rule": cls.rule, "paper_rule": cls.paper_rule, "test": "auto"} | dict(options)
        given = {
            {"attempts": "num_attempts", "episodes": "num_episodes"}.get(name, name): given[name] for name in given
        }
        counts = ("num_attempts", "num_episodes")
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
        checks = {
            "units": is_names,
            "joint": is_truth,
            "significance": is_share,
            "rule": is_text,
            "paper_rule": is_truth,
        }
        counts = {"num_attempts": is_count, "num_episodes": is_count, "budget": or_nothing(is_count)}
        check_entries(settings, checks | counts, "the settings")
        given = {f.name: settings[f.name] for f in fields(cls) if f.name in settings}
        return cls(**given | {"units": tuple(settings["units"])})

    @property
    def num_rounds(self) -> int:
        """How many rounds there can be."""
        most = 1 + self.num_attempts * (1 if self.joint else len(self.units))
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

    def promise(self, design: str) -> str:
        """What holds for all rounds together, in words."""
        head = f"{self.rule} rule, {design} design; "
        rounds, whole = f"at most {number_of(self.num_rounds, 'round')}", f"{self.significance:g}"
        if self.sequential:
            return (
                f"{head}{rounds}. E-values of all episodes multiply, so δ is not split over rounds: chance of any false "
                f"'controlled' ever ≤ {whole}."
            )
        if self.paper_rule:
            return f"{head}{rounds}, each tested at δ = {whole}, as in the paper: no promise for all of them together."
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
        return "batches" if not simple else "eprocess" if space.many_peaks else "combined"
    if test != "batches" and not simple:
        what = "the paper's rule" if paper_rule else f"the rule '{rule}'"
        name = "the e-process" if test == "eprocess" else "combined evidence"
        raise InputError(f"{name} follows one unit at a time, found {what}: leave one of them out.")
    return test


def check_needs_no_model(test: str, space: "PolicySpace", paper_rule: bool) -> None:
    """Of an agent that may be of any form only features can be tested, and only by what takes no form for granted."""
    asked = {
        "the e-process": test == "eprocess",
        "the paper's rule": paper_rule,
        "single weights as units": space.group_columns() is None,
    }
    for what, is_asked in asked.items():
        if is_asked:
            raise InputError(
                f"in a Gymnasium environment the agent may be of any form, found {what}, which needs an agent of a known "
                "policy space: leave it out, and features are tested without a model."
            )
