"""Tests of one round, and evidence combined over rounds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple, cast, final

import numpy as np
from scipy.signal import fftconvolve

from policyspace.answer import Identification
from policyspace.data.origin import Origin
from policyspace.data.sample import Sample
from policyspace.display import plain_data
from policyspace.errors import InputError
from policyspace.families.base import PolicySpace
from policyspace.families.design import COLLINEAR
from policyspace.families.registry import likelihood_of
from policyspace.families.softmax import FirthLikelihood, SoftmaxLikelihood
from policyspace.identification import combinatorial, identify_by_likelihood, simplified
from policyspace.inference.base import TestName, TestOptions, holm
from policyspace.inference.e_values import PredictiveEProcess, episodes_of, evidence
from policyspace.inference.parametric import WilksTest
from policyspace.inference.selection import each_group_alone
from policyspace.runtime import counted
from policyspace.study.records import Round, RoundOutcome, Schedule, Status, UnitRow, same_configuration
from policyspace.worlds.base import Configurable, Trajectories

# -- What a batch can speak about: actions that were played, features that vary, and an estimate that is always finite.

Batch = Sample | Trajectories


def pairs_of(world: Configurable, batch: Batch) -> Sample | str:
    """The pairs of a batch, or why it has none worth the name: few episodes may show a single action."""
    if isinstance(batch, Sample):
        return batch
    try:
        return batch.pairs(world.feature_names, world.action_names)
    except InputError as error:
        return str(error)


def without_unplayed_actions(space: PolicySpace, data: Sample) -> tuple[PolicySpace, Sample, list[str]]:
    """Space and data without the actions that this batch never shows, and a sentence about them.

    Such actions have no parameters to test here. A space that cannot be made smaller stays as it is.
    """
    seen = data.action_type.present(data.actions)
    if len(seen) == len(data.action_names):
        return space, data, []
    names = tuple(data.action_names[code] for code in seen)
    missing = [name for name in data.action_names if name not in names]
    assume = [g.name for g in space.groups if g.assumed and g.name != "intercept"]
    reduced = space.smaller(data.names, names, assume)
    if reduced is None or {g.name for g in reduced.groups} != {g.name for g in space.groups}:
        return space, data, []
    reduced = reduced.as_guess() if space.guess else reduced
    smaller = Sample(
        data.features, np.searchsorted(seen, data.actions), data.names, names, data.episodes, data.weights, data.blocks,
        Origin(draws=data.origin.draws), recorded=data.recorded,
    )  # fmt: skip
    return reduced, smaller, [f"never played in this batch: {', '.join(missing)}."]


def without_dependent_features(space: PolicySpace, data: Sample) -> tuple[PolicySpace, Sample] | None:
    """Space and data without what Firth's penalty cannot take, collinear features; None where nothing could be tested.

    Constant ones drop out, of dependent ones so many that the others are not, and none of those is tested: this batch
    cannot tell them apart.
    """
    if not {g.name for g in space.groups}.issuperset(data.names):
        return None  # groups of several features: what could drop out is not theirs alone
    if space.smaller(data.names, data.action_names, ()) is None:
        return None
    kept, dependent = _independent(data.features)
    names = tuple(data.names[j] for j in kept)
    declared = {g.name for g in space.groups if g.assumed}
    assume = [data.names[j] for j in kept if j in dependent or data.names[j] in declared]
    smaller = None if len(assume) == len(names) else space.smaller(names, data.action_names, assume)
    if smaller is None:
        return None
    part = Sample(data.features[:, kept], data.actions, names, data.action_names, data.episodes, data.weights)
    return smaller, part


def estimated_theta(space: PolicySpace, data: Sample | str) -> np.ndarray:
    """θ̂ for a design: finite even where the data are separated, zero where a batch says nothing."""
    if isinstance(data, str):
        return space.fixed.copy()
    reduced, smaller, _ = without_unplayed_actions(space, data)
    try:
        theta = likelihood_of(reduced, smaller).finite_theta()
    except InputError:
        return space.fixed.copy()
    return theta if reduced is space else _with_unplayed_actions(space, reduced, theta)


def _with_unplayed_actions(space: Any, reduced: Any, theta: np.ndarray) -> np.ndarray:
    """θ of the full space: an action never played gets a low constant against the others."""
    weights = reduced.weights(theta)
    logits = np.zeros((len(space.action_names), weights.shape[1]))
    logits[:, 0] = -3.0 if space.intercept else 0.0
    for row, name in enumerate(reduced.action_names):
        logits[space.action_names.index(name)] = weights[row] if row < len(weights) else 0.0
    return (logits[:-1] - logits[-1]).ravel()


def _independent(features: np.ndarray) -> tuple[list[int], set[int]]:
    """Columns that vary and are independent, and those of them that columns left out depend on."""
    varies = np.flatnonzero(np.ptp(features, axis=0) > 0)
    if not len(varies):
        return [], set()
    columns = (features - features.mean(axis=0))[:, varies]
    num_rows = len(columns)
    # The triangle of a QR decomposition has the dependences of all rows.
    columns = np.asarray(np.linalg.qr(columns / columns.std(axis=0), mode="r"))
    eigenvalues, vectors = np.linalg.eigh(columns.T @ columns / num_rows)
    involved = np.abs(vectors[:, eigenvalues < COLLINEAR]).max(axis=1, initial=0.0) > 1e-6
    chosen = list(np.flatnonzero(~involved))
    for j in np.flatnonzero(involved):
        if np.linalg.matrix_rank(columns[:, [*chosen, j]], tol=1e-8 * np.sqrt(num_rows)) > len(chosen):
            chosen.append(j)
    return sorted(varies[chosen].tolist()), set(varies[involved].tolist())


# -- Evidence that adds up over rounds: each round's p-value counts, and the promise holds for all rounds together.

STEP, HIGHEST = 0.001, 60.0
"""The grid on which sums of log e are convolved, and where it ends: beyond it p-values are below 1e-28."""
TILT = 1.0
"""Convolved is the law times exp(x), so that its far tail is as exact as its middle."""


class InterimEvidence(NamedTuple):
    """Where a unit stands after a round."""

    log_evidence: float  # T_s, of all rounds so far
    p_value: float  # min over the rounds s so far of p^(s)/a_s


NOTHING = InterimEvidence(0.0, 1.0)


def log_evidence(p_values: np.ndarray) -> np.ndarray:
    """log e(p) with e(p) = ½ + ½·0.1·p^−0.9, which has mean 1 under a uniform p and pays most for very small ones."""
    return np.asarray(np.log(0.5 + 0.05 * np.maximum(p_values, 1e-300) ** -0.9))


def combined_p_value(total: float, num_rounds: int) -> float:
    """P(Σ_{r≤s} log e(U_r) ≥ T) for independent uniform U_r, rounded up by at most s thousandths of itself."""
    lowest = num_rounds * float(log_evidence(np.ones(1))[0])
    tail = _tail(num_rounds)
    # A sum on the grid is at least the true one: what is compared with it may be rounded up, but not past a point.
    place = int(np.ceil((total - lowest) / STEP - 1e-9))
    return float(min(tail[np.clip(place, 0, len(tail) - 1)], 1.0))


def looked_at(
    p_values: Mapping[str, float], before: Mapping[str, InterimEvidence], number: int, shares: Sequence[float]
) -> dict[str, InterimEvidence]:
    """Every unit after round `number` (from 0), given where it stood before; a_s are the shares of the rounds."""
    looks = {}
    for unit, p in p_values.items():
        last = before.get(unit, NOTHING)
        total = last.log_evidence + float(log_evidence(np.array([p]))[0])
        looks[unit] = InterimEvidence(total, min(last.p_value, combined_p_value(total, number + 1) / shares[number]))
    return looks


def evidence_rows(
    tests: Sequence[Mapping[str, Any]],
    units: Sequence[str],
    rounds: Sequence[Round],
    shares: Sequence[float],
    level: float,
) -> list[UnitRow]:
    """What a round keeps of every unit: its own test, p = 1 where there is none, and the evidence of all rounds by Holm.

    A unit that was selected before this round keeps the evidence that it had.
    """
    own = {row["group"]: dict(row) for row in tests}
    p_values = {unit: float(own[unit]["p_value"]) if unit in own else 1.0 for unit in units}
    before = (
        {row["group"]: InterimEvidence(row["log_evidence"], row["combined_p_value"]) for row in rounds[-1].tests}
        if rounds
        else {}
    )
    decided = {unit: before[unit] for unit in (rounds[-1].selected if rounds else ()) if unit in before}
    looks = looked_at(p_values, before, len(rounds), shares) | decided
    adjusted = holm(np.array([looks[unit].p_value for unit in units]))
    rows = [
        {"group": unit}
        | {name: value for name, value in own.get(unit, {}).items() if name not in ("group", "verdict")}
        | {
            "testable": unit in own,
            "p_value": p_values[unit],
            "log_evidence": looks[unit].log_evidence,
            "combined_p_value": looks[unit].p_value,
            "adjusted_p_value": float(p),
            "rejected": bool(p <= level),
        }
        for unit, p in zip(units, adjusted, strict=True)
    ]
    return cast(list[UnitRow], rows)


@lru_cache(maxsize=64)
def _tail(num_rounds: int) -> np.ndarray:
    """P(S ≥ s·log e(1) + k·STEP) for the sum S of s rounds, every term rounded up to the grid [points]."""
    tilted = _tilted(num_rounds)
    mass = tilted * np.exp(-TILT * STEP * np.arange(len(tilted)))
    return np.asarray(np.cumsum(mass[::-1])[::-1])


@lru_cache(maxsize=64)
def _tilted(num_rounds: int) -> np.ndarray:
    """The law of the sum on the grid, times exp(TILT·x); the last point holds all that lies beyond."""
    x = np.arange(int(HIGHEST / STEP) + 1) * STEP
    lowest = float(log_evidence(np.ones(1))[0])
    # P(log e(U) ≥ y) = P(U ≤ ((eʸ − ½)/0.05)^(−1/0.9)).
    above = np.minimum(((np.exp(lowest + x) - 0.5) / 0.05) ** (-1 / 0.9), 1.0)
    one = np.append([0.0], above[:-1] - above[1:]) * np.exp(TILT * x)  # rounded up
    one[-1] += above[-1] * np.exp(TILT * x[-1])
    if num_rounds == 1:
        return one
    both = np.maximum(fftconvolve(_tilted(num_rounds - 1), one), 0.0)
    last = len(x) - 1
    beyond = both[last:] @ np.exp(-TILT * STEP * np.arange(len(both) - last))
    return np.append(both[:last], beyond)


# -- The e-process over rounds: evidence that multiplies over episodes and batches, tested as often as one likes.

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

    def to_dict(self) -> UnitRow:
        """As a record keeps it; E too, for readers."""
        return cast(UnitRow, asdict(self) | {"e_value": float(np.exp(min(self.log_e, 700.0)))})


NO_EVIDENCE: Mapping[str, Any] = {"log_e": 0.0, "highest": 0.0, "decided_at": None}


@final
@dataclass(frozen=True)
class History:
    """What was reported before a batch: the tests of the last round, of the last one elsewhere, and the data since then."""

    latest: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by unit
    settled: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stretch: Sequence[Sample] = ()  # of the agent as it was in the batch, without a break
    num_episodes: int = 0


def outcome_with_all_before(
    space: PolicySpace,
    status: Status,
    data: Sample | str,
    omega: Mapping[str, Any],
    reported: Callable[[int], Sample | str],
    relearns: bool = False,
) -> RoundOutcome:
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
    return RoundOutcome([unit.to_dict() for unit in units], newly, selected, undecided, [space.named(support)], [])


def _counted(data: Sample | str) -> Sample:
    """The pairs of a batch, which must have some: leaving out batches by what they show would break the promise."""
    if isinstance(data, str):
        raise InputError(data)
    return data


def evidence_after(space: PolicySpace, data: Sample, significance: float, history: History) -> list[UnitEvidence]:
    """Test every open unit u after every episode of a batch, by all that was reported so far.

    log E(u) = Σ_b log(½ + ½·M_b/sup_{Θ_I} L_b), I = all∖u, b the stretches of batches under one configuration. In a new
    configuration the agent learns anew, so each stretch has its own supremum and its own numerator M_b, bets on each
    episode by what was learned from those before it. If H_I is true, M_b/sup_{Θ_I} L_b ≤ M_b/L_b(θ_b), whatever θ_b ∈ Θ_I
    the agent has there; the right side has mean 1 given all that came before, so E(u) stays below one product of means 1
    that is the same for all true H_I. By Ville's inequality the chance that any of them ever reaches 1/δ is at most δ: at
    every test, over all units and batches, whatever the configurations depended on. No share of δ goes to rounds or units.
    """
    units = {space.groups[g].name: g for g in space.tested}
    start = {name: float(history.settled.get(name, NO_EVIDENCE)["log_e"]) for name in units}
    latest = {name: history.latest.get(name, NO_EVIDENCE) for name in units}
    highest = {name: float(latest[name]["highest"]) for name in units}
    decided = {name: latest[name]["decided_at"] for name in units}
    looks: dict[str, list[tuple[int, float]]] = {name: [] for name in units}
    growth = GROWTH_WITH_PEAKS if space.multimodal else 1.0
    bettor = PredictiveEProcess(space)
    for batch in history.stretch:
        for episode in episodes_of(batch.expand_weights("the e-process")):
            bettor.tell(episode)
    tested_at = bettor.num_rows
    parts = list(episodes_of(data.expand_weights("the e-process")))
    for number, episode in enumerate(counted(parts, "following the episodes")):
        bettor.tell(episode)
        open_ = [name for name in units if decided[name] is None]
        if not open_ or not (number == len(parts) - 1 or bettor.num_rows >= growth * tested_at):
            continue
        tested_at, now = bettor.num_rows, history.num_episodes + number + 1
        supports = [space.full_support - {units[name]} for name in open_]
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


# -- A batch tested by itself, and what that adds to the rounds before it: its evidence, or its selections.

EPISODES_A_COLUMN, FEWEST = 20, 4
"""Episodes from which χ² is used for an agent of mere noise: for each feature that stays the same within one, and at least.

With 5 to 15 for each such feature its p-values fall below 0.01 in 2 % of the tests, with 40 in 1.3 %.
"""
MOSTLY = 0.5
"""The share of noise in its actions from which an agent's states are taken to be made of it."""
FEW = 20
"""Pairs a parameter below which Wilks' χ² is too liberal so far in its tail."""


def outcome_of_batch(
    space: PolicySpace,
    schedule: Schedule,
    data: Sample | str,
    selected: tuple[str, ...] = (),
    supports: list[list[str]] | None = None,
) -> RoundOutcome:
    """Test one batch at its share of δ; what was selected before stays so and is not tested again."""
    found, warnings = _tested(space, schedule, data, schedule.level_of(0), selected)
    if found is None:
        undecided = tuple(unit for unit in schedule.units if unit not in selected)
        return RoundOutcome([], (), selected, undecided, supports or [], warnings)
    newly = tuple(name for name in found.selected if name in schedule.units and name not in selected)
    selected = tuple(group.name for group in space.groups if group.name in {*selected, *newly})
    undecided = tuple(unit for unit in schedule.units if unit not in selected)
    if schedule.rule == "simplified":
        supports = [space.named(frozenset(i for i, g in enumerate(space.groups) if g.name in selected))]
    else:
        now = [list(support) for support in found.supports]
        supports = now if supports is None else union_of_supports(supports, now)
    return RoundOutcome(plain_data(found.groups), newly, selected, undecided, supports, warnings, found)


def outcome_with_rounds_before(space: PolicySpace, status: Status, data: Sample | str) -> RoundOutcome:
    """Add the evidence of one batch to that of the rounds before it, p = 1 where it cannot be tested or trusted.

    What was selected before stays so and is not tested again: its p-value could only fall, and by Holm no other unit
    gains or loses by that.
    """
    schedule, level = status.schedule, status.schedule.level_of(len(status.rounds))
    found, warnings = None, list[str]()
    if status.undecided:
        found, warnings = _tested(space, schedule, data, level, status.selected)
    tests = [] if found is None else plain_data(found.groups)
    rows = evidence_rows(tests, schedule.units, status.rounds, schedule.shares, schedule.significance)
    shown = {row["group"] for row in rows if row["rejected"]}
    selected = tuple(group.name for group in space.groups if group.name in shown)
    newly = tuple(name for name in selected if name not in status.selected)
    undecided = tuple(unit for unit in schedule.units if unit not in shown)
    return RoundOutcome(rows, newly, selected, undecided, [list(selected)], warnings, found)


def _tested(
    space: PolicySpace, schedule: Schedule, data: Sample | str, level: float, selected: tuple[str, ...]
) -> tuple[Identification | None, list[str]]:
    """The tests of one batch at a level, or none, and why it could not be tested."""
    warnings: list[str] = []
    try:
        if isinstance(data, str):
            raise InputError(data)
        # Only χ² is in doubt on batches of noise, and the paper's rule asks for it all the same.
        asymptotic = not (schedule.paper_rule or space.multimodal or space.guess)
        if asymptotic and (doubt := made_of_noise(data)):
            raise InputError(doubt)
        shown, data, warnings = without_unplayed_actions(space, data)
        if schedule.rule == "simplified":
            # The paper tests all d units in every round, each at δ/d.
            known, both = shown if schedule.paper_rule else shown.with_assumed(selected), schedule.combined
            found = _one_at_a_time(known, data, level, schedule.paper_rule, both)
        else:
            test = _test_of(shown, data)
            found = combinatorial(shown, data, level, schedule.paper_rule, test=test, checked=shown.guess)
        if shown.guess and found.guarantee is None:
            raise InputError(found.why_no_guarantee)
        return found, warnings
    except InputError as error:
        return None, [*warnings, f"this batch alone could not be tested: {error}"]


def union_of_supports(before: list[list[str]], now: list[list[str]]) -> list[list[str]]:
    """The minimal supports that explain both: unions of one support from each, without those that hold another."""
    unions = {frozenset(a) | frozenset(b) for a, b in product(before, now)}
    order = list(dict.fromkeys(name for support in [*before, *now] for name in support))
    least = [u for u in unions if not any(v < u for v in unions)]
    return sorted(([name for name in order if name in u] for u in least), key=lambda u: (len(u), u))


def _one_at_a_time(
    space: PolicySpace, data: Sample, level: float, paper_rule: bool, both: bool = False
) -> Identification:
    """Rule 2 by Wilks' law, or by Firth's where that errs too often: on separated data and on few pairs.

    Firth's penalty pulls the weights of an agent that hardly ever wavers towards zero, and what they then fail to explain
    passes for a weight of something else; with `both`, a unit must show by either law there. What the space assumes is not
    checked: a study is about an agent of the space, and its batches are few rows each.
    """
    if paper_rule:
        return simplified(space, data, level, "bonferroni", test=_test_of(space, data), checked=False)
    if space.guess:
        return simplified(space, data, level, "holm", test=_test_of(space, data))
    part = without_dependent_features(space, data)
    if part is not None:
        likelihood = likelihood_of(*part)
        if data.num_rows < FEW * space.num_parameters or likelihood.full.separated:
            # Only Boltzmann spaces can be made smaller.
            penalised = FirthLikelihood(cast(SoftmaxLikelihood, likelihood))
            found = identify_by_likelihood(penalised, part[1], TestOptions(significance=level), False)
            if both:
                wilks = each_group_alone(WilksTest(likelihood), level).tests
                other = {part[0].groups[g].name: test.p_value for g, test in wilks.items()}
                both_ways = (replace(one, p_value=max(one.p_value, other[one.group])) for one in found.groups)
                found = replace(found, groups=tuple(both_ways))  # only its p-values are used
            declared = {g.name for g in space.groups if g.assumed}
            shown = {one.group for one in found.groups if one.rejected}
            return replace(found, selected=tuple(name for name in found.selected if name in declared | shown))
        if part[0].groups == space.groups and not space.fixed.any():
            wilks_alone = TestOptions("wilks", significance=level)
            return identify_by_likelihood(likelihood, data, wilks_alone, False)  # nothing was left out
    return simplified(space, data, level, "holm", test=_test_of(space, data), checked=False)


def made_of_noise(data: Sample) -> str | None:
    """Why λ of a batch does not follow χ² yet: states made of the agent's own noise, and few episodes; else None.

    Later states are made of earlier actions. Where those are mostly noise, features that stay the same within an episode
    act like effects of the episode, and only more episodes help.
    """
    if not data.action_type.free_spread or data.episodes is None:
        return None
    features, actions, rows = (
        data.features,
        data.actions,
        np.unique(data.episodes, return_index=True, return_inverse=True),
    )
    still = (features == features[rows[1]][rows[2]]).all(axis=0) & (np.ptp(features, axis=0) > 0)
    needed = EPISODES_A_COLUMN * int(still.sum()) + FEWEST
    if len(rows[1]) >= needed:
        return None
    design = np.column_stack([np.ones(len(features)), features])
    left = actions - design @ np.linalg.lstsq(design, actions, rcond=None)[0]
    share = float((left**2).sum() / max((actions**2).sum(), 1e-300))
    if share <= MOSTLY:
        return None
    return (
        f"{share:.0%} of the actions is noise, of which later states are made, and {int(still.sum())} features stay the "
        f"same within an episode: at least {needed} episodes are needed, found {len(rows[1])}."
    )


def _test_of(space: PolicySpace, data: Sample) -> TestName:
    """Readings that were drawn are tested by their draws.

    Agents that learned inside the space are tested by its own law; networks, which have none, by universal inference.

    Where the space is a guess, no model is trusted: a batch is too small to show all that contradicts the guess, and the
    evidence of several adds up what each of them fails to show.
    """
    if data.origin.draws is not None and space.group_columns() is not None:
        return "randomised"
    if space.guess:
        return "lean"
    return "universal" if space.multimodal else "wilks"
