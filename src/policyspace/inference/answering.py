"""From verdicts to an answer: names for numbers, effects, and the warnings that must be read with them."""

from functools import partial
from typing import Any

import numpy as np

from policyspace import __version__
from policyspace.answer import Assumption, GroupTest, Identification
from policyspace.data.demonstrations import Demonstrations
from policyspace.fits import Likelihood
from policyspace.fits.fisher import Dependence, dependent_groups, detectable_effect, inverse_of, smallest_eigenvalue
from policyspace.inference.base import SupportTest
from policyspace.inference.behaviour import behavioural_effects
from policyspace.inference.coefficients import coefficients_of
from policyspace.inference.model_check import ModelCheck
from policyspace.inference.rules import Verdicts
from policyspace.policies import PolicySpace

FEWEST_CLIPPED = 20
"""Rows below which one of them is more than a twentieth, and tells nothing about a bound."""


def answer_of(
    data: Demonstrations,
    likelihood: Likelihood,
    decider: SupportTest,
    verdicts: Verdicts,
    check: ModelCheck,
    settings: dict[str, Any],
) -> Identification:
    """The answer that a rule's verdicts amount to, with every number behind it."""
    space = likelihood.space
    feedback = check.feedback(space, verdicts.adjusted, settings["significance"])
    assumptions = [*check.assumptions, feedback, *_of_rows(data, decider), *decider.own_assumptions()]
    settings = settings | _settings_of(decider, verdicts, likelihood) | _of_passes(data, decider)
    everywhere, undecided, named = _named_verdicts(space, verdicts, settings["significance"])
    promise = promise_of(decider, assumptions, settings)
    contradicted = any(a.held is False for a in assumptions if a.name in SupportTest.assumes)
    law_holds = not contradicted and not settings.get("withheld")
    tests = _group_tests(
        data, likelihood, decider, verdicts, everywhere, undecided, settings | {"law_holds": law_holds}
    )
    changes = {test.group: test.behavioural_effect for test in tests}
    made_by = partial(coefficients_of, likelihood, data, changes, settings["significance"])
    return Identification(
        rule=settings["rule"],
        supports=named,
        core=everywhere,
        undecided=undecided,
        tests=tests,
        fit=likelihood.full,
        num_pairs=data.counted_pairs,
        num_parameters=space.num_parameters,
        num_episodes=data.num_episodes,
        identifiable=likelihood.identifiable,
        smallest_eigenvalue=smallest_eigenvalue(likelihood.information()) if likelihood.identifiable else 0.0,
        separated=likelihood.full.separated,
        exhaustive=verdicts.exhaustive,
        warnings=_warnings(data, space, likelihood, dependent_groups(likelihood), settings),
        settings=settings | _described(space, data, likelihood),
        parameters=_parameters(space, likelihood, settings["firth"]),
        truth=_truth(data, space),
        promise=promise,
        assumptions=assumptions,
        dependence=decider.dependence,
        left_out=[str(name) for name in data.metadata.get("left_out", ())],
        coefficient_maker=made_by if space.linear else None,
    )


def _of_passes(data: Demonstrations, decider: SupportTest) -> dict[str, Any]:
    """How a log that is not in memory was read, and what was decided by a sample of it."""
    if data.whole is None:
        return {}
    sample = f"a sample of {data.num_pairs} of {data.num_logged} rows"
    passes = data.whole.rows.passes
    words = f"Read in {passes} pass{'es' * (passes > 1)} over {data.num_logged} rows; "
    if decider.sampled:
        return {
            "reading": f"{words}the test and the model check looked at {sample}.",
            "test_note": f"{decider.note()}; it looked at {sample}",
            "sample": sample,
        }
    return {"reading": f"{words}the model check looked at {sample}."}


def _of_rows(data: Demonstrations, decider: SupportTest) -> list[Assumption]:
    """What is said about the rows themselves and may be more than a test can take: subjects, and sampling weights."""
    found = []
    if data.subjects is not None and len(np.unique(data.subjects)) < data.num_pairs:
        words = (
            f"rows of one subject belong together, and the test '{decider.name}' takes rows as independent: the tests "
            "'lean' and 'robust' take subjects"
        )
        found.append(Assumption("rows are their own subjects", False, None, words))
    if data.sampling_weights:
        words = (
            f"λ of sampling weights has no known law, which the test '{decider.name}' needs: the test 'robust' does not"
        )
        found.append(Assumption("weights are counts", False, None, words))
    return found


def promise_of(decider: SupportTest, assumptions: list[Assumption], settings: dict[str, Any]) -> str | None:
    """What may be promised, by which test, under which assumptions; None where the data contradict one of them."""
    needed = [a for a in assumptions if a.name in decider.assumes]
    if settings.get("withheld") or any(a.held is False for a in needed):
        return None
    significance, correction = settings["significance"], settings["correction"]
    word = "used" if settings["about_features"] else "controlled"
    what = (
        f"the expected share of false '{word}' is at most {significance:g} (Benjamini–Hochberg: no family-wise guarantee)"
        if correction == "bh"
        else f"the chance of any false '{word}' is at most {significance:g} ({correction})"
    )
    unchecked = [a.name for a in needed if a.held is None]
    checked = "this was not checked" if unchecked else "the data do not contradict it"
    on = f" on {settings['sample']}" if "sample" in settings else ""
    return f"{what}, by the test '{decider.name}'{on}, if {decider.condition()}; {checked}."


def _settings_of(decider: SupportTest, verdicts: Verdicts, likelihood: Likelihood) -> dict[str, Any]:
    """What the settings must say about the test that decided."""
    found = {
        "firth": decider.name == "firth",
        "test": decider.name,
        "statistic": decider.statistic_name,
        "test_note": decider.note(),
        "assumes": list(decider.assumes),
        "about_features": likelihood.space.group_columns() is not None,
    }
    if decider.simultaneous:
        found["correction"] = "e-values that hold for all supports together"
    return found | ({"withheld": verdicts.withheld} if verdicts.withheld else {})


def _named_verdicts(
    space: PolicySpace, verdicts: Verdicts, significance: float
) -> tuple[list[str], list[str], list[list[str]]]:
    """The groups in all supports, those in some, and the supports by name."""
    named = [space.named(support) for support in verdicts.supports]
    everywhere = [name for name in named[0] if all(name in support for support in named)]
    somewhere = {name for support in named for name in support}
    if not verdicts.exhaustive:
        # One support was found, others may exist: only what every support must hold is certain.
        certain = {space.groups[g].name for g, p in verdicts.adjusted.items() if p <= significance}
        always = {group.name for group in space.groups if group.always}
        everywhere = [name for name in named[0] if name in certain | always]
        somewhere = {group.name for group in space.groups} if set(named[0]) - set(everywhere) else set()
    undecided = [g.name for g in space.groups if g.name in somewhere and g.name not in everywhere and not g.always]
    return everywhere, undecided, named


def _group_tests(
    data: Demonstrations,
    likelihood: Likelihood,
    decider: SupportTest,
    verdicts: Verdicts,
    everywhere: list[str],
    undecided: list[str],
    settings: dict[str, Any],
) -> list[GroupTest]:
    """One row of the table for every tested group."""
    space, inverse, diverging = likelihood.space, inverse_of(likelihood), likelihood.diverging
    # Known for λ alone, where its law holds; and weights of a network that is not identifiable have no size.
    detects = settings["law_holds"] and settings["test"] in ("wilks", "firth", "bootstrap")
    detects = detects and (likelihood.identifiable or likelihood.design is not None)
    level = settings["significance"] / max(len(verdicts.tests), 1)
    changes = behavioural_effects(likelihood, data)
    rows = []
    for g, test in verdicts.tests.items():
        group, indices = space.groups[g], list(space.groups[g].indices)
        verdict = (
            "controlled" if group.name in everywhere else "undecided" if group.name in undecided else "no evidence"
        )
        effect = float(np.linalg.norm(likelihood.full.theta[indices] - space.fixed[indices])) if indices else np.nan
        change = decider.behavioural_effect(g)
        rows.append(
            GroupTest(
                group.name, test.statistic, test.degrees_of_freedom, test.p_value, verdicts.adjusted[g],
                group.name in everywhere, verdict, np.inf if diverging[indices].any() and not settings["firth"] else effect,
                detectable_effect(likelihood, inverse, group, level) if detects else np.nan,
                test.evidence, changes.get(g, np.nan) if change is None else change,
            )
        )  # fmt: skip
    return rows


def _described(space: PolicySpace, data: Demonstrations, likelihood: Likelihood) -> dict[str, Any]:
    """What a reader needs to make the answer again."""
    said = space.describe()
    return (
        {name: said.get(name) for name in ("covariance", "intercept", "hidden")}
        | ({"offset": list(space.offset)} if space.offset else {})
        | {
            "version": __version__,
            "policy": type(space).__name__,
            "groups": [group.name for group in space.groups if not group.always],
            "always": [group.name for group in space.groups if group.always],
            "fixed": space.fixed.tolist() if space.fixed.any() else 0.0,
            "features": list(data.names),
            "actions": list(data.action_names),
            "discrete": data.discrete,
            "reference_law": likelihood.law.name,
        }
        | {name: data.metadata[name] for name in ("habit", "formula", "weights_are", "offset") if name in data.metadata}
    )


def _truth(data: Demonstrations, space: PolicySpace) -> list[str] | None:
    """What the file says is controlled, where that is said of the very groups that are tested."""
    truth = data.metadata.get("truth")
    groups = {group.name for group in space.groups}
    known = isinstance(truth, list | tuple) and all(isinstance(name, str) and name in groups for name in truth)
    return [str(name) for name in truth] if known else None  # type: ignore[union-attr]


def _parameters(space: PolicySpace, likelihood: Likelihood, firth: bool) -> dict[str, list[float]]:
    """θ̂ by row; infinite where no finite value is most likely."""
    theta = likelihood.full.theta
    return space.weights_by_row(np.where(likelihood.diverging & (not firth), np.copysign(np.inf, theta), theta))


def _warnings(
    data: Demonstrations,
    space: PolicySpace,
    likelihood: Likelihood,
    related: list[Dependence],
    settings: dict[str, Any],
) -> list[str]:
    diverging = likelihood.diverging
    told = [data.metadata.get(word) for word in ("warnings", "cautions")]  # of reading the data, of recording them
    warnings = [str(warning) for listed in told if isinstance(listed, list | tuple) for warning in listed]
    warnings += [str(dependence) for dependence in related]
    if settings["test"] != "lean" or not space.num_parameters:  # fits by which nothing was decided need no remarks
        warnings += likelihood.remarks()
    if settings.get("withheld"):
        warnings.append(f"no χ² verdict is given: {settings['withheld']}.")
    if data.looks_discrete and space.num_parameters:
        warnings.append(
            "the action takes only a few whole values: if they are choices rather than amounts, use the Boltzmann policy "
            "(--policy boltzmann)."
        )
    if likelihood.full.separated:
        groups = [g.name for g in space.groups if diverging[list(g.indices)].any() and g.name != "intercept"]
        where = ", ".join(groups) if groups else "the intercept"
        tail = (
            "the penalised fit below is finite."
            if settings["firth"]
            else "λ is reported as its limit; where little data is the reason its χ² p-value is too small: --firth and "
            "--test bootstrap keep their level, --test universal by a proof."
            if settings["test"] == "wilks"
            else "the test that was asked for does not mind."
        )
        warnings.append(
            f"the agent is so regular that no finite parameter is most likely (separation); diverging: {where}; {tail}"
        )
    if not likelihood.full.converged:
        warnings.append("the full fit did not converge: read the numbers with care.")
    if not data.discrete and space.num_parameters:
        warnings.extend(_piled_up(data))
    return warnings


def _piled_up(data: Demonstrations) -> list[str]:
    """Actions clipped at a bound are not Gaussian."""
    found = []
    for name, column in zip(data.action_names, data.actions.T, strict=True):
        for bound, where in ((column.min(), "smallest"), (column.max(), "largest")):
            share = float((column == bound).mean())
            if len(column) >= FEWEST_CLIPPED and share > 0.05 and len(np.unique(column)) > 10:
                found.append(
                    f"{share:.0%} of '{name}' equal its {where} value {bound:g}: actions that are clipped at a bound break "
                    "the Gaussian likelihood; log them before they are clipped."
                )
    return found
