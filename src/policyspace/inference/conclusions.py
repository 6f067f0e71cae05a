"""From verdicts to an `Identification`: guarantee, assumptions, grade, effects."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from policyspace import __version__
from policyspace.answer import (
    AssumptionCheck,
    Covariance,
    DataSummary,
    FitSummary,
    Grade,
    GroupResult,
    GroupVerdict,
    Guarantee,
    Identification,
    Note,
    OutOfCore,
    PolicyRecord,
    Reason,
    TestUsed,
)
from policyspace.data.origin import Origin
from policyspace.data.sample import Sample
from policyspace.families.base import PolicySpace
from policyspace.families.covariance import collinear_groups, detectable_effect, inverse_of, smallest_eigenvalue
from policyspace.families.likelihood import Likelihood
from policyspace.inference.base import SupportTest, TestOptions
from policyspace.inference.coefficients import coefficients_of
from policyspace.inference.diagnostics import NAMES as MODEL_CHECKS
from policyspace.inference.diagnostics import ModelCheck
from policyspace.inference.effects import NOT_KNOWN, action_effects, behaviour_of, curves_of
from policyspace.inference.parametric import state_dispersion
from policyspace.inference.selection import Verdicts
from policyspace.inference.test_choice import TestChoice, has_lean_test
from policyspace.safe_io import structured

DISPERSION_LEVEL = 0.05
"""p-value below which counts of labels spread more than independent decisions do."""


# -- From verdicts to an answer: names for numbers, effects, and the warnings that must be read with them.


def conclude(
    data: Sample,
    likelihood: Likelihood,
    decider: SupportTest,
    verdicts: Verdicts,
    check: ModelCheck,
    options: TestOptions,
    choice: TestChoice,
) -> Identification:
    """The answer that a rule's verdicts amount to, with every number behind it."""
    space, significance = likelihood.space, options.significance
    correction: str = options.one_by_one if options.rule == "simplified" else "closed testing"
    if options.rule == "combinatorial" and options.of_paper:
        correction = "Bonferroni over all supports"
    if decider.simultaneous:
        correction = "simultaneous e-values"
    feedback = check.feedback(space, verdicts.adjusted, significance)
    assumptions = (*check.assumptions, feedback, *_of_rows(data, decider, likelihood), *decider.own_assumptions())
    policy = _policy_record(space, data.origin)
    guarantee, missing = _guarantee(data, space, decider, verdicts, assumptions, policy, correction, significance)
    if choice.doubt is not None:
        guarantee, missing = None, (choice.doubt, *missing)
    selected, undecided, supports = _named_verdicts(space, verdicts, significance)
    groups = _group_results(data, likelihood, decider, verdicts, selected, undecided, assumptions, policy, significance)
    effects = {one.group: one.action_effect for one in groups}
    clusters, truth = decider.clusters, data.origin.ground_truth  # which may be of other groups
    return Identification(
        selected=selected,
        undecided=undecided,
        supports=supports,
        groups=groups,
        test=TestUsed(
            decider.name, choice.reason, decider.note(), decider.statistic_name, likelihood.law.name, options.seed,
            decider.assumes, not data.in_memory and decider.sampled,
        ),
        policy=policy,
        data=_data_summary(data),
        fit=_fit_summary(likelihood, decider),
        guarantee=guarantee,
        no_guarantee=missing,
        assumptions=assumptions,
        clusters=replace(clusters, count=data.num_observed) if clusters.count is None else clusters,
        rule=options.rule,
        significance=significance,
        correction=correction,
        exhaustive=verdicts.exhaustive,
        warnings=(
            *_warnings(data, likelihood, decider, verdicts, check, options), *_against_stated(data, space, guarantee, check),
        ),
        ground_truth=truth if {group.name for group in space.groups}.issuperset(truth or ()) else None,
        version=__version__,
        subjects=decider.effects(significance),
        coefficient_maker=partial(coefficients_of, likelihood, data, effects, significance) if space.linear else None,
        curve_maker=partial(
            curves_of, decider.behaviour if decider.name == "lean" else partial(behaviour_of, likelihood, data), space, data
        ),
    )  # fmt: skip


def _of_rows(data: Sample, decider: SupportTest, likelihood: Likelihood) -> list[AssumptionCheck]:
    """Subjects and sampling weights, where the test cannot take them, and how counts of labels spread between states."""
    found = []
    if (dispersion := state_dispersion(likelihood, data)) is not None:
        ratio, p = dispersion
        words = f"decisions in one state spread {ratio:.2f} times as much as independent ones (p = {p:.2g})"
        found.append(AssumptionCheck.of("frequency weights", p > DISPERSION_LEVEL, words, p))
    if data.subjects is not None and len(np.unique(data.subjects)) < data.num_rows:
        words = (
            f"rows of one subject belong together, and the test '{decider.name}' takes rows as independent; use the test "
            "'lean' or 'robust'"
        )
        found.append(AssumptionCheck.of("one row per subject", False, words))
    if data.sampling_weights:
        words = (
            f"λ of sampling weights has no known distribution, which the test '{decider.name}' needs; use the test "
            "'robust'"
        )
        found.append(AssumptionCheck.of("frequency weights", False, words))
    return found


def _against_stated(
    data: Sample, space: PolicySpace, guarantee: Guarantee | None, check: ModelCheck
) -> tuple[str, ...]:
    """What the check finds against a stated policy space, whose tests decide all the same."""
    if guarantee is None or not guarantee.violated:
        return ()
    words = str(Note(Reason.SPACE_VIOLATED, {"message": "; ".join(check.broken(guarantee.violated))}))
    return (f"{words}; use the test 'lean' (test='lean', --test lean)." if has_lean_test(space, data) else f"{words}.",)


def _guarantee(
    data: Sample,
    space: PolicySpace,
    decider: SupportTest,
    verdicts: Verdicts,
    assumptions: Sequence[AssumptionCheck],
    policy: PolicyRecord,
    correction: str,
    significance: float,
) -> tuple[Guarantee | None, tuple[Note, ...]]:
    """What is guaranteed, by which test, under which assumptions; or why nothing is: the data contradict one of them.

    A policy space that was stated is what the guarantee rests on: what the data contradict of it is said beside it. But
    where its mean determines its variance, as that of Poisson counts does, and the data have another, λ has not its law, and
    nothing is guaranteed.
    """
    needed = [one for one in assumptions if one.name in decider.assumes]
    violated = [one for one in needed if one.status == "violated"]
    said = [name for name in MODEL_CHECKS if name != "noise" or not space.variance_of_mean]
    stated = () if space.guess else tuple(one.name for one in violated if one.name in said)
    missing = [
        Note(Reason.ASSUMPTION_VIOLATED, {"assumption": one.name, "message": one.message})
        for one in violated
        if one.name not in stated
    ]
    missing += [] if verdicts.withheld is None else [verdicts.withheld]
    lags, remembers = data.origin.lags_of_inputs, data.origin.memory
    missing += [Note(Reason.MEMORY)] if remembers and not lags and decider.grade is not Grade.EXACT else []
    if missing:
        other = (
            decider.grade is Grade.MODEL_BASED
            and decider.name not in ("robust", "mixed")
            and has_lean_test(space, data)
        )
        return None, (*missing, *([Note(Reason.OTHER_TESTS)] if other else []))
    short = (Note(Reason.SHORT_MEMORY, {"rows": lags}),) if remembers and lags else ()
    sampled = not data.in_memory and decider.sampled
    guarantee = Guarantee(
        quantity="fdr" if correction == "bh" else "fwer",
        level=significance,
        test=decider.in_words,
        correction=correction,
        conditions=(*decider.conditions(), *short),
        checked=all(one.status == "held" for one in needed) if needed and decider.grade is Grade.MODEL_BASED else None,
        grade=decider.grade,
        verdict="used" if policy.tested == "features" else "controlled",
        sample=f"on a sample of {data.num_rows} of {data.num_rows_total} rows" if sampled else "",
        violated=stated,
    )
    return guarantee, ()


def _named_verdicts(
    space: PolicySpace, verdicts: Verdicts, significance: float
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The groups in all supports, those in some, and the supports by name."""
    named = tuple(tuple(space.named(support)) for support in verdicts.supports)
    everywhere = tuple(name for name in named[0] if all(name in support for support in named))
    somewhere = {name for support in named for name in support}
    if not verdicts.exhaustive:
        # One support was found, others may exist: only what every support must hold is certain.
        certain = {space.groups[g].name for g, p in verdicts.adjusted.items() if p <= significance}
        assumed = {group.name for group in space.groups if group.assumed}
        everywhere = tuple(name for name in named[0] if name in certain | assumed)
        somewhere = {group.name for group in space.groups} if set(named[0]) - set(everywhere) else set()
    open_groups = [g.name for g in space.groups if g.name in somewhere and not g.assumed]
    return everywhere, tuple(name for name in open_groups if name not in everywhere), named


def _group_results(
    data: Sample,
    likelihood: Likelihood,
    decider: SupportTest,
    verdicts: Verdicts,
    selected: tuple[str, ...],
    undecided: tuple[str, ...],
    assumptions: Sequence[AssumptionCheck],
    policy: PolicyRecord,
    significance: float,
) -> tuple[GroupResult, ...]:
    """One row of the table for every tested group."""
    space, inverse, diverging = likelihood.space, inverse_of(likelihood), likelihood.diverging
    violated = any(one.status == "violated" for one in assumptions if one.name in SupportTest.assumes)
    # Known for λ alone, where its distribution holds; and weights of a network that is not identifiable have no size.
    detects = not violated and verdicts.withheld is None and decider.name in ("wilks", "firth", "bootstrap")
    detects = detects and (likelihood.identifiable or likelihood.design is not None)
    level, firth = significance / max(len(verdicts.tests), 1), decider.name == "firth"
    effects = {} if decider.name == "lean" else action_effects(likelihood, data)
    positive: GroupVerdict = "used" if policy.tested == "features" else "controlled"
    found = []
    for g, test in verdicts.tests.items():
        group, indices = space.groups[g], list(space.groups[g].indices)
        norm = float(np.linalg.norm(likelihood.full.theta[indices] - space.fixed[indices])) if indices else np.nan
        own, rejected = decider.action_effect(g), group.name in selected
        effect = effects.get(g, NOT_KNOWN) if own is None else own
        found.append(
            GroupResult(
                group=group.name,
                verdict=positive if rejected else "undecided" if group.name in undecided else "no evidence",
                statistic=test.statistic,
                degrees_of_freedom=test.degrees_of_freedom,
                p_value=test.p_value,
                adjusted_p_value=verdicts.adjusted[g],
                rejected=rejected,
                coefficient_norm=np.inf if diverging[indices].any() and not firth else norm,
                minimum_detectable_effect=detectable_effect(likelihood, inverse, group, level) if detects else np.nan,
                evidence=test.evidence,
                action_effect=effect.size,
                effect_low=effect.low,
                effect_high=effect.high,
            )
        )
    # A constant is not used, as far as these rows can tell: no size of use would show.
    no_size = np.inf if detects else np.nan
    found += [
        GroupResult(name, "no evidence", 0.0, 0, 1.0, 1.0, False, 0.0, no_size)
        for name in data.origin.constant_features
    ]
    return tuple(found)


def _policy_record(space: PolicySpace, origin: Origin) -> PolicyRecord:
    """What a reader needs to make the policy space again."""
    said = space.describe()
    return PolicyRecord(
        family=type(space).__name__,
        groups=tuple(group.name for group in space.groups if not group.assumed),
        assumed_groups=tuple(group.name for group in space.groups if group.assumed),
        stated=not space.guess,
        tested="parameters" if space.group_columns() is None else "features",
        covariance=structured(said.get("covariance"), Covariance | None),
        intercept=structured(said.get("intercept"), bool | None),
        hidden=structured(said.get("hidden", []), tuple[int, ...]),
        fixed=tuple(space.fixed.tolist()) if space.fixed.any() else (),
        offset=tuple(f"{column} of {action}" for action, column in origin.offset.items()) or tuple(space.offset),
    )


def _data_summary(data: Sample) -> DataSummary:
    """The rows, and what was made of their columns."""
    origin = data.origin
    return DataSummary(
        num_rows=data.num_observed,
        num_episodes=data.num_episodes,
        features=tuple(data.names),
        actions=tuple(data.action_names),
        action_type=data.action_type.kind,
        lagged_actions=origin.lagged_actions,
        formula=None if origin.formula is None else origin.formula.text,
        weight_type=origin.weight_type,
        excluded_columns=origin.excluded_columns,
        has_memory=origin.memory and not origin.lags_of_inputs,
        can_be_asked=origin.how_to_ask,
        out_of_core=None if data.in_memory else OutOfCore(data.rows.passes, data.num_rows_total, data.num_rows),
    )


def _fit_summary(likelihood: Likelihood, decider: SupportTest) -> FitSummary:
    """The full fit; θ̂ is infinite where no finite value is most likely."""
    space, full = likelihood.space, likelihood.full
    diverging = likelihood.diverging & (decider.name != "firth")
    theta = np.where(diverging, np.copysign(np.inf, full.theta), full.theta)
    return FitSummary(
        log_likelihood=full.log_likelihood,
        num_parameters=space.num_parameters,
        parameters={name: tuple(values) for name, values in space.weights_by_row(theta).items()},
        identifiable=likelihood.identifiable,
        smallest_eigenvalue=smallest_eigenvalue(likelihood.information()) if likelihood.identifiable else 0.0,
        separated=full.separated,
        converged=full.converged,
    )


def _warnings(
    data: Sample,
    likelihood: Likelihood,
    decider: SupportTest,
    verdicts: Verdicts,
    check: ModelCheck,
    options: TestOptions,
) -> list[str]:
    space, diverging = likelihood.space, likelihood.diverging
    warnings = data.origin.all_notes
    warnings += [str(related) for related in collinear_groups(likelihood)]
    if decider.name == "lean" and data.episodes is None and data.subjects is None:  # rows may have no order
        warnings += [f"{words}." for words in check.broken(["independent rows"])]
    if decider.name != "lean" or not space.num_parameters:  # fits by which nothing was decided need no remarks
        warnings += likelihood.remarks()
    if verdicts.withheld is not None:
        warnings.append(f"no verdict is given: {verdicts.withheld}.")
    warnings += space.cautions(data)
    if likelihood.full.separated:
        groups = [g.name for g in space.groups if diverging[list(g.indices)].any() and g.name != "intercept"]
        remedy = {
            "firth": "the penalised fit below is finite.",
            "wilks": "λ is reported as its limit, and its χ² p-value may be too small: use the test 'firth', 'bootstrap' or "
            "'universal'.",
        }.get(decider.name, f"the test '{decider.name}' allows for it.")
        values = {"diverging": ", ".join(groups) if groups else "the intercept", "remedy": remedy}
        warnings.append(str(Note(Reason.SEPARATED_FIT, values)))
    if not likelihood.full.converged:
        warnings.append(str(Note(Reason.NOT_CONVERGED)))
    if options.rule == "combinatorial" and options.correction not in ("holm", "paper"):
        warnings.append(str(Note(Reason.CORRECTION_UNUSED, {"correction": options.correction})))
    return warnings
