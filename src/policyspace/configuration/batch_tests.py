"""A batch tested by itself, and what that adds to the rounds before it: its evidence, or its selections."""

from dataclasses import replace
from itertools import product
from typing import cast

from policyspace.answer import Identification
from policyspace.configuration.combined import evidence_rows
from policyspace.configuration.round import Outcome
from policyspace.configuration.schedule import Schedule
from policyspace.configuration.status import Status
from policyspace.configuration.testable import without_dependent_features, without_unplayed_actions
from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.fits import likelihood_of
from policyspace.fits.boltzmann_fits import BoltzmannLikelihood
from policyspace.fits.firth import FirthLikelihood
from policyspace.identification import combinatorial, simplified, simplified_by
from policyspace.inference.choice import TestName
from policyspace.policies import PolicySpace

FEW = 20
"""Pairs a parameter below which Wilks' χ² is too liberal so far in its tail."""


def outcome_of_batch(
    space: PolicySpace,
    schedule: Schedule,
    data: Demonstrations | str,
    selected: tuple[str, ...] = (),
    supports: list[list[str]] | None = None,
) -> Outcome:
    """Test one batch at its share of δ; what was selected before stays so and is not tested again."""
    found, warnings = _tested(space, schedule, data, schedule.level_of(0), selected)
    if found is None:
        undecided = tuple(unit for unit in schedule.units if unit not in selected)
        return Outcome([], (), selected, undecided, supports or [], warnings)
    newly = tuple(name for name in found.core if name in schedule.units and name not in selected)
    selected = tuple(group.name for group in space.groups if group.name in {*selected, *newly})
    undecided = tuple(unit for unit in schedule.units if unit not in selected)
    if schedule.rule == "simplified":
        supports = [space.named(frozenset(i for i, g in enumerate(space.groups) if g.name in selected))]
    else:
        supports = found.supports if supports is None else united(supports, found.supports)
    return Outcome(found.to_dict()["tests"], newly, selected, undecided, supports, warnings, found)


def outcome_with_rounds_before(space: PolicySpace, status: Status, data: Demonstrations | str) -> Outcome:
    """Add the evidence of one batch to that of the rounds before it, p = 1 where it cannot be tested."""
    schedule, number = status.schedule, len(status.rounds)
    found, warnings = _tested(space, schedule, data, schedule.level_of(number), ())
    tests = [] if found is None else found.to_dict()["tests"]
    rows = evidence_rows(tests, schedule.units, status.rounds, schedule.shares, schedule.significance)
    shown = {row["group"] for row in rows if row["rejected"]}
    selected = tuple(group.name for group in space.groups if group.name in shown)
    newly = tuple(name for name in selected if name not in status.selected)
    undecided = tuple(unit for unit in schedule.units if unit not in shown)
    return Outcome(rows, newly, selected, undecided, [list(selected)], warnings, found)


def _tested(
    space: PolicySpace, schedule: Schedule, data: Demonstrations | str, level: float, selected: tuple[str, ...]
) -> tuple[Identification | None, list[str]]:
    """The tests of one batch at a level, or none, and why it could not be tested."""
    warnings: list[str] = []
    try:
        if isinstance(data, str):
            raise InputError(data)
        shown, data, warnings = without_unplayed_actions(space, data)
        if schedule.rule == "simplified":
            return _one_at_a_time(shown.with_always(selected), data, level, schedule.paper_rule), warnings
        test = _test_of(shown)
        return combinatorial(shown, data, level, schedule.paper_rule, test=test, checked=shown.guess), warnings
    except InputError as error:
        return None, [*warnings, f"this batch alone could not be tested: {error}"]


def united(before: list[list[str]], now: list[list[str]]) -> list[list[str]]:
    """The minimal supports that explain both: unions of one support from each, without those that hold another."""
    unions = {frozenset(a) | frozenset(b) for a, b in product(before, now)}
    order = list(dict.fromkeys(name for support in [*before, *now] for name in support))
    least = [u for u in unions if not any(v < u for v in unions)]
    return sorted(([name for name in order if name in u] for u in least), key=lambda u: (len(u), u))


def _one_at_a_time(space: PolicySpace, data: Demonstrations, level: float, paper_rule: bool) -> Identification:
    """Rule 2 by Wilks' law, or by Firth's where that errs too often: on separated data and on few pairs.

    What the space assumes is not checked: a study is about an agent of the space, and its batches are few rows each. Only
    where the space is a guess the check decides, as in `identify`, which test speaks.
    """
    if paper_rule:
        return simplified(space, data, level, "bonferroni", test=_test_of(space), checked=False)
    if space.guess:
        return simplified(space, data, level, "holm")
    part = without_dependent_features(space, data)
    if part is not None:
        likelihood = likelihood_of(*part)
        if data.num_pairs < FEW * space.num_parameters or likelihood.full.separated:
            # Only Boltzmann spaces can be made smaller.
            penalised = FirthLikelihood(cast(BoltzmannLikelihood, likelihood))
            found = simplified_by(penalised, part[1], level, "holm", checked=False)
            declared = {g.name for g in space.groups if g.always}
            shown = {t.group for t in found.tests if t.rejected}
            return replace(found, core=[name for name in found.core if name in declared | shown])
        if part[0].groups == space.groups and not space.fixed.any():
            return simplified_by(likelihood, data, level, "holm", test="wilks", checked=False)  # nothing was left out
    return simplified(space, data, level, "holm", test=_test_of(space), checked=False)


def _test_of(space: PolicySpace) -> TestName:
    """Agents that learned inside the space are tested by its own law; networks, which have none, by universal inference."""
    if space.guess:
        return "auto"
    return "universal" if space.many_peaks else "wilks"
