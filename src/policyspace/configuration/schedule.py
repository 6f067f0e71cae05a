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

if TYPE_CHECKING:
    from policyspace.policies import PolicySpace

RULES = ("simplified", "combinatorial")
TESTS = ("auto", "batches", "eprocess")


class Options(TypedDict, total=False):
    """What a user may say about the rounds; the defaults are those of `Schedule`, and the test "auto"."""

    significance: float
    rule: str
    attempts: int
    episodes: int
    budget: int | None
    paper_rule: bool
    test: str


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
    test: str = "batches"  # each alone, or "eprocess": the evidence of all of them together

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
        return 1 + self.num_attempts * (1 if self.joint else len(self.units))

    @property
    def sequential(self) -> bool:
        """Whether evidence is followed over all rounds, instead of every batch being tested alone."""
        return self.test == "eprocess"

    @property
    def level(self) -> float:
        """δ of one round: a share of the whole; all of it for the e-process and the paper's uncorrected union.

        Under the hypothesis, the chance that any round selects a unit wrongly is at most the sum of their levels, whatever
        the configurations depended on.
        """
        return self.significance if self.paper_rule or self.sequential else self.significance / self.num_rounds

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

    Wilks' law finds smaller effects in one batch of a linear policy. It fails for networks, whose e-values need more
    episodes than a batch has: there evidence must add up over batches.
    """
    if test not in TESTS:
        raise InputError(f"there is no test '{test}' of a study: {nearest(test, TESTS)}")
    simple = rule == "simplified" and not paper_rule
    if test == "auto":
        return "eprocess" if space.many_peaks and simple else "batches"
    if test == "eprocess" and not simple:
        what = "the paper's rule" if paper_rule else f"the rule '{rule}'"
        raise InputError(f"the e-process follows one unit at a time, found {what}: leave one of them out.")
    return test
