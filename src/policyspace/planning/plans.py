"""A plan: what every group needs, in numbers and in words."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from policyspace.inference.intervals import Interval
from policyspace.planning.procedures import Procedure
from policyspace.shown import Answer, listed_names, plain_data
from policyspace.table import Table

COLUMNS = ("group", "λ", "effect", "power now", "pairs", "episodes", "shows from", "|θ| below")
PROMISES = {
    "wilks": "λ at δ = {significance:g} over {tests} tests (Bonferroni; Holm finds at least as much)",
    "universal": "universal inference at δ = {significance:g} over all supports at once",
    "eprocess": "the anytime-valid e-process at δ = {significance:g}, one look at the end",
}


@dataclass(frozen=True)
class Estimate:
    """A number from the pilot and the range that the pilot leaves for it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class GroupPlan:
    """What the pilot says about the test of one group; `rate` is its non-centrality a pair, 2·KL(θ*‖Θ_I)."""

    group: str
    statistic: float
    degrees_of_freedom: int
    p_value: float
    rate: Estimate
    power_now: Estimate  # of a new data set of the same size
    pairs: Estimate  # for the wanted power; infinite where the pilot shows no effect
    episodes: Estimate | None
    effect: float  # ‖θ̂_g‖ or, where one was asked for, that effect
    detectable_effect: float  # the smallest ‖θ_g‖ that the present n shows with the wanted power
    effect_bound: float  # every |θ_i| of the group is smaller, with the confidence of one test


@dataclass(frozen=True)
class Plan(Answer):
    """The plan for every tested group, and all that it rests on."""

    groups: list[GroupPlan]
    intervals: list[Interval]
    test: str
    power: float
    significance: float
    confidence: float
    num_pairs: int
    num_episodes: int | None
    num_parameters: int
    procedure: Procedure
    given_effect: float | None
    warnings: list[str]
    made_by: str = ""  # the call or the command that makes it again

    @property
    def sentence(self) -> str:
        """How far the data are, and how many more are needed for the groups that show something."""
        seen = [g for g in self.groups if g.pairs.value < math.inf]
        if not seen:
            return "The pilot shows no effect that more pairs could confirm; read what would have shown instead."
        done = [g for g in seen if g.pairs.value <= self.num_pairs]
        open_ = [g for g in seen if g.pairs.value > self.num_pairs]
        parts = []
        if done:
            names = listed_names([g.group for g in done])
            parts.append(f"{names}: {_count(self.num_pairs)} pairs are enough for power {self.power:g}")
        if open_:
            most = max(open_, key=lambda g: g.pairs.value)
            episodes = "" if most.episodes is None else f" (about {_count(most.episodes.value)} episodes)"
            parts.append(
                f"{listed_names([g.group for g in open_])}: {_count(most.pairs.value)} pairs{episodes} are needed"
            )
        rest = [g.group for g in self.groups if g.pairs.value == math.inf]
        if rest:
            parts.append(f"{listed_names(rest)}: no effect to plan for")
        return "; ".join(parts) + "."

    def rows(self) -> list[tuple[str, ...]]:
        """One tuple a group, in the order of COLUMNS; ranges are what the pilot leaves open."""
        return [
            (
                g.group,
                f"{g.statistic:.2f}",
                _size(g.effect, "diverges"),
                _range(g.power_now, "{:.2f}".format),
                _range(g.pairs),
                "" if g.episodes is None else _range(g.episodes),
                _size(g.detectable_effect, "—"),
                _size(g.effect_bound, "no bound"),
            )
            for g in self.groups
        ]

    def table(self) -> Table:
        """The rows under their columns."""
        return Table(COLUMNS, self.rows())

    def notes(self) -> list[str]:
        """What the numbers mean."""
        episodes = "" if self.num_episodes is None else f" in {_count(self.num_episodes)} episodes"
        promise = PROMISES[self.test].format(significance=self.significance, tests=len(self.groups))
        source = (
            f"effects as the pilot shows them, in brackets what it leaves open with confidence {self.confidence:g}"
            if self.given_effect is None
            else f"for an effect ‖θ‖ = {self.given_effect:g} in the direction that shows least"
        )
        return [
            f"{_count(self.num_pairs)} pairs{episodes}, {self.num_parameters} parameters; {promise}.",
            f"Pairs and episodes are totals for power {self.power:g}; {source}.",
            f"'shows from': the smallest ‖θ‖ that this data would show with power {self.power:g}; '|θ| below': every "
            f"weight of the group is smaller, with confidence {1 - self.significance:g} each.",
            *(f"Warning: {warning}" for warning in self.warnings),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data; what is infinite (no number of pairs would do) becomes null."""
        plain = {name: value for name, value in vars(self).items() if name not in ("procedure", "made_by")}
        plain["groups"] = [asdict(group) for group in self.groups]
        plain["intervals"] = [asdict(interval) | {"bound": interval.bound} for interval in self.intervals]
        return {"answer": self.sentence, **{name: plain_data(value) for name, value in plain.items()}}


def _count(number: float) -> str:
    if number == math.inf:
        return "∞"
    return f"{number:,.0f}".replace(",", " ") if number < 1e7 else f"{number:.2g}"


def _range(estimate: Estimate, shown: Callable[[float], str] = _count) -> str:
    """The number, with what the pilot leaves open in brackets."""
    if estimate.low == estimate.high:
        return shown(estimate.value)
    return f"{shown(estimate.value)} ({shown(estimate.low)}–{shown(estimate.high)})"


def _size(value: float, otherwise: str) -> str:
    return f"{value:.3g}" if value < math.inf else otherwise
