"""A batch tested by itself, and what that adds to the rounds before it: its evidence, or its selections."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import cast

import numpy as np

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
from policyspace.inference.choice import TestName, support_test
from policyspace.inference.rules import one_at_a_time
from policyspace.policies import PolicySpace

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
    """Add the evidence of one batch to that of the rounds before it, p = 1 where it cannot be tested or trusted.

    What was selected before stays so and is not tested again: its p-value could only fall, and by Holm no other unit
    gains or loses by that.
    """
    schedule, level = status.schedule, status.schedule.level_of(len(status.rounds))
    found, warnings = None, list[str]()
    if status.undecided:
        found, warnings = _tested(space, schedule, data, level, status.selected)
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
        if doubt := _doubt(space, schedule, data):
            raise InputError(doubt)
        shown, data, warnings = without_unplayed_actions(space, data)
        if schedule.rule == "simplified":
            # The paper tests all d units in every round, each at δ/d.
            known, both = shown if schedule.paper_rule else shown.with_always(selected), schedule.combined
            found = _one_at_a_time(known, data, level, schedule.paper_rule, both)
        else:
            test = _test_of(shown)
            found = combinatorial(shown, data, level, schedule.paper_rule, test=test, checked=shown.guess)
        if shown.guess and found.promise is None:
            raise InputError(found.contradicted or "no test makes a promise for it")
        return found, warnings
    except InputError as error:
        return None, [*warnings, f"this batch alone could not be tested: {error}"]


def _doubt(space: PolicySpace, schedule: Schedule, data: Demonstrations) -> str | None:
    """Why χ² cannot be trusted with a batch, if χ² is what would speak; the paper's rule asks for it all the same."""
    return None if schedule.paper_rule or space.many_peaks or space.guess else made_of_noise(data)


def united(before: list[list[str]], now: list[list[str]]) -> list[list[str]]:
    """The minimal supports that explain both: unions of one support from each, without those that hold another."""
    unions = {frozenset(a) | frozenset(b) for a, b in product(before, now)}
    order = list(dict.fromkeys(name for support in [*before, *now] for name in support))
    least = [u for u in unions if not any(v < u for v in unions)]
    return sorted(([name for name in order if name in u] for u in least), key=lambda u: (len(u), u))


def _one_at_a_time(
    space: PolicySpace, data: Demonstrations, level: float, paper_rule: bool, both: bool = False
) -> Identification:
    """Rule 2 by Wilks' law, or by Firth's where that errs too often: on separated data and on few pairs.

    Firth's penalty pulls the weights of an agent that hardly ever wavers towards zero, and what they then fail to explain
    passes for a weight of something else; with `both`, a unit must show by either law there. What the space assumes is not
    checked: a study is about an agent of the space, and its batches are few rows each.
    """
    if paper_rule:
        return simplified(space, data, level, "bonferroni", test=_test_of(space), checked=False)
    if space.guess:
        return simplified(space, data, level, "holm", test=_test_of(space))
    part = without_dependent_features(space, data)
    if part is not None:
        likelihood = likelihood_of(*part)
        if data.num_pairs < FEW * space.num_parameters or likelihood.full.separated:
            # Only Boltzmann spaces can be made smaller.
            penalised = FirthLikelihood(cast(BoltzmannLikelihood, likelihood))
            found = simplified_by(penalised, part[1], level, "holm", checked=False)
            if both:
                wilks = one_at_a_time(support_test("wilks", likelihood, part[1], level), level).tests
                found = _larger_p_values(found, {part[0].groups[g].name: test.p_value for g, test in wilks.items()})
            declared = {g.name for g in space.groups if g.always}
            shown = {t.group for t in found.tests if t.rejected}
            return replace(found, core=[name for name in found.core if name in declared | shown])
        if part[0].groups == space.groups and not space.fixed.any():
            return simplified_by(likelihood, data, level, "holm", test="wilks", checked=False)  # nothing was left out
    return simplified(space, data, level, "holm", test=_test_of(space), checked=False)


def _larger_p_values(found: Identification, p_values: Mapping[str, float]) -> Identification:
    """The answer with another test's p-value of a group where that is larger; only its p-values are used."""
    return replace(found, tests=[replace(t, p_value=max(t.p_value, p_values[t.group])) for t in found.tests])


def made_of_noise(data: Demonstrations) -> str | None:
    """Why λ of a batch does not follow χ² yet: states made of the agent's own noise, and few episodes; else None.

    Later states are made of earlier actions. Where those are mostly noise, features that stay the same within an episode
    act like effects of the episode, and only more episodes help.
    """
    if data.discrete or data.episodes is None:
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


def _test_of(space: PolicySpace) -> TestName:
    """Agents that learned inside the space are tested by its own law; networks, which have none, by universal inference.

    Where the space is a guess, no model is trusted: a batch is too small to show all that contradicts the guess, and the
    evidence of several adds up what each of them fails to show.
    """
    if space.guess:
        return "lean"
    return "universal" if space.many_peaks else "wilks"
