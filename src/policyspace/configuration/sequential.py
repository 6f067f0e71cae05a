"""The e-process over rounds: evidence that multiplies over episodes and batches, tested as often as one likes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, final

import numpy as np

from policyspace.configuration.round import Outcome, same_configuration
from policyspace.configuration.status import Status
from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.inference.eprocess import Bettor, episodes_of, evidence
from policyspace.policies.base import PolicySpace
from policyspace.progress import counted

STAKE = 0.5
"""The share of the wealth at stake in a configuration: one that shows nothing costs log 2, not all that was won before."""

GROWTH_WITH_PEAKS = 1.1
"""A test of a network costs seconds: there the next one comes when there are a tenth more pairs."""


@final
@dataclass(frozen=True)
class UnitEvidence:
    """Where one unit stands after a batch; plain data, which the next batch goes on from."""

    group: str
    log_e: float  # the evidence of all episodes so far
    highest: float  # the most that there ever was, which is what counts
    state: str  # "controlled" or "open"
    decided_at: int | None  # the episode of the study after which it was
    looks: list[tuple[int, float]]  # (episode of the study, log E then) of this batch

    def to_dict(self) -> dict[str, Any]:
        """As a record keeps it; E too, for readers."""
        return asdict(self) | {"e_value": float(np.exp(min(self.log_e, 700.0)))}


NOTHING: Mapping[str, Any] = {"log_e": 0.0, "highest": 0.0, "decided_at": None}


@final
@dataclass(frozen=True)
class History:
    """What was reported before a batch: the tests of the last round, of the last one elsewhere, and the data since then."""

    latest: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by unit
    settled: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stretch: Sequence[Demonstrations] = ()  # of the agent as it was in the batch, without a break
    num_episodes: int = 0


def outcome_with_all_before(
    space: PolicySpace,
    status: Status,
    data: Demonstrations | str,
    omega: Mapping[str, Any],
    reported: Callable[[int], Demonstrations | str],
    relearns: bool = False,
) -> Outcome:
    """Test a batch collected at ω together with all that was reported before it, after each of its episodes.

    An agent is taken to stay the same as long as ω does, unless it `relearns` before every round.
    """
    rounds = status.rounds
    first = len(rounds)  # of the rounds by the same agent, without a break
    while first and not relearns and same_configuration(rounds[first - 1].configuration, omega):
        first -= 1
    history = History(
        {row["group"]: row for row in rounds[-1].tests} if rounds else {},
        {row["group"]: row for row in rounds[first - 1].tests} if first else {},
        [_counted(reported(number)) for number in range(first, len(rounds))],
        status.total_episodes,
    )
    units = evidence_after(space, _counted(data), status.schedule.significance, history)
    selected = tuple(unit.group for unit in units if unit.state == "controlled")
    newly = tuple(name for name in selected if name not in status.selected)
    undecided = tuple(unit.group for unit in units if unit.state == "open")
    support = frozenset(i for i, group in enumerate(space.groups) if group.name in selected)
    return Outcome([unit.to_dict() for unit in units], newly, selected, undecided, [space.named(support)], [])


def _counted(data: Demonstrations | str) -> Demonstrations:
    """The pairs of a batch, which must have some: leaving out batches by what they show would break the promise."""
    if isinstance(data, str):
        raise InputError(data)
    return data


def evidence_after(
    space: PolicySpace, data: Demonstrations, significance: float, history: History
) -> list[UnitEvidence]:
    """Test every open unit u after every episode of a batch, by all that was reported so far.

    log E(u) = Σ_b log(½ + ½·M_b/sup_{Θ_I} L_b), I = all∖u, b the stretches of batches under one configuration. In a new
    configuration the agent learns anew, so each stretch has its own supremum and its own numerator M_b, bets on each
    episode by what was learned from those before it. If H_I is true, M_b/sup_{Θ_I} L_b ≤ M_b/L_b(θ_b), whatever θ_b ∈ Θ_I
    the agent has there; the right side has mean 1 given all that came before, so E(u) stays below one product of means 1
    that is the same for all true H_I. By Ville's inequality the chance that any of them ever reaches 1/δ is at most δ: at
    every test, over all units and batches, whatever the configurations depended on. No share of δ goes to rounds or units.
    """
    units = {space.groups[g].name: g for g in space.tested}
    start = {name: float(history.settled.get(name, NOTHING)["log_e"]) for name in units}
    latest = {name: history.latest.get(name, NOTHING) for name in units}
    highest = {name: float(latest[name]["highest"]) for name in units}
    decided = {name: latest[name]["decided_at"] for name in units}
    looks: dict[str, list[tuple[int, float]]] = {name: [] for name in units}
    growth = GROWTH_WITH_PEAKS if space.many_peaks else 1.0
    bettor = Bettor(space)
    for batch in history.stretch:
        for episode in episodes_of(batch.without_weights("the e-process")):
            bettor.tell(episode)
    tested_at = bettor.num_rows
    parts = list(episodes_of(data.without_weights("the e-process")))
    for number, episode in enumerate(counted(parts, "following the episodes")):
        bettor.tell(episode)
        open_ = [name for name in units if decided[name] is None]
        if not open_ or not (number == len(parts) - 1 or bettor.num_rows >= growth * tested_at):
            continue
        tested_at, now = bettor.num_rows, history.num_episodes + number + 1
        supports = [space.everything - {units[name]} for name in open_]
        found = evidence(space, bettor, supports) if bettor.bet_on else [0.0] * len(open_)
        for name, log_e in zip(open_, found, strict=True):
            total = start[name] + float(np.logaddexp(np.log1p(-STAKE), np.log(STAKE) + log_e))
            looks[name].append((now, total))
            highest[name] = max(highest[name], total)
            if highest[name] >= -np.log(significance):
                decided[name] = now
    return [
        UnitEvidence(
            name,
            looks[name][-1][1] if looks[name] else float(latest[name]["log_e"]),
            highest[name],
            "open" if decided[name] is None else "controlled",
            decided[name],
            looks[name],
        )
        for name in units
    ]
