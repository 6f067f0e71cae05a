"""The choice of the test: as asked for, by the stated policy space, or model-free."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from policyspace.answer import Note, Reason
from policyspace.data.sample import Sample
from policyspace.errors import InputError
from policyspace.families.base import PolicySpace
from policyspace.families.likelihood import Likelihood
from policyspace.families.registry import likelihood_of
from policyspace.inference.base import SupportTest, TestName, TestOptions
from policyspace.inference.diagnostics import NAMES, ModelCheck
from policyspace.inference.e_values import EProcess, MixtureTest, UniversalTest
from policyspace.inference.lean.lean_test import LeanTest
from policyspace.inference.lean.rows import fewest_rows
from policyspace.inference.mixed import FEWEST_SUBJECTS, RandomEffects
from policyspace.inference.parametric import (
    FEWEST_STATES,
    Bootstrap,
    RobustWald,
    WilksTest,
    few_rows,
    num_counted_states,
)
from policyspace.inference.randomised import RandomisedTest

TESTS: dict[str, Callable[[Any, Sample, TestOptions], SupportTest]] = {
    "wilks": lambda likelihood, data, options: WilksTest(likelihood),
    "firth": lambda likelihood, data, options: WilksTest(likelihood.with_penalty()),
    "lean": lambda likelihood, data, options: LeanTest(
        likelihood.space, data, options.significance, options.seed, options.clusters
    ),
    "randomised": lambda likelihood, data, options: RandomisedTest(likelihood.space, data, options),
    "robust": lambda likelihood, data, options: RobustWald(likelihood, data),
    "mixed": lambda likelihood, data, options: RandomEffects(likelihood, data),
    "bootstrap": lambda likelihood, data, options: Bootstrap(likelihood, data, options.significance, options.seed),
    "universal": lambda likelihood, data, options: UniversalTest(likelihood, data, options.significance, options.seed),
    "eprocess": lambda likelihood, data, options: EProcess(likelihood, data, options.significance, options.seed),
    "mixture": lambda likelihood, data, options: MixtureTest(likelihood, data, options.significance, options.seed),
}
"""Every test of supports, from a likelihood, its data and how is tested: a new test is one line here."""

IN_PASSES = ("wilks", "lean", "robust", "mixture")
"""The tests of logs that are not in memory: by sums over all rows, robust on a sample, lean where that is too much work."""


@final
@dataclass(frozen=True)
class TestChoice:
    """Which test decides, why, and what takes its guarantee away, if anything."""

    __test__ = False  # not a test of this project, whatever pytest thinks of the name

    name: TestName
    reason: Note
    doubt: Note | None = None


def choose(
    options: TestOptions,
    likelihood: Likelihood,
    data: Sample,
    lean: Callable[[], LeanTest] | None = None,
    checked: Callable[[], ModelCheck] | None = None,
) -> TestChoice:
    """The test to use, and why.

    The tests of a policy space decide where somebody stated it; what the model check finds is said beside them. Where nobody
    did, the test `lean` decides, and the check has no part in the choice: a test that is chosen by a check of the same data
    errs more often than it says. The tests of the linear space are the fallback where rows are too few for `lean`, which is
    made only where the choice depends on it. Tables whose rows have no order are those of regression: there the linear
    space decides, where the check does not contradict it.
    """
    test, space = options.test, likelihood.space
    if options.of_paper and options.rule == "combinatorial" and test == "auto":
        test = "wilks"
    if not space.num_parameters and test not in ("auto", "lean", "randomised"):
        raise InputError(
            f"the policy 'any' is tested without a model, by the test 'lean', found '{test}': leave it out."
        )
    if test != "auto":
        if not data.in_memory and test not in IN_PASSES:
            raise InputError(
                f"the test '{test}' needs all rows in memory, found {data.num_rows_total} that are read in passes: "
                f"use one of "
                f"{', '.join(IN_PASSES)}, take fewer rows, or set POLICYSPACE_MAX_BYTES_AT_ONCE."
            )
        return TestChoice(test, Note(Reason.AS_REQUESTED))
    if (data.origin.draws or data.origin.assigned) and space.group_columns() is not None:
        return TestChoice(
            "randomised", Note(Reason.READINGS_ASSIGNED if data.origin.assigned else Reason.READINGS_DRAWN)
        )
    if not space.num_parameters:
        return TestChoice("lean", Note(Reason.NO_MODEL))
    about_features = space.group_columns() is not None and data.weights is None and not space.fixed.any()
    about_features = about_features and not (data.origin.formula and data.origin.formula.shares_columns)
    if about_features and data.num_rows <= space.num_parameters:  # too few for any test, as this one says
        return TestChoice("lean", Note(Reason.NO_MODEL))
    if likelihood.design is None and not likelihood.identifiable:
        return TestChoice("universal", Note(Reason.NOT_IDENTIFIABLE))
    if has_enough_subjects(likelihood, data):
        return TestChoice("mixed", Note(Reason.RANDOM_EFFECTS))
    if data.subjects is not None and about_features:
        return TestChoice("lean", Note(Reason.SUBJECTS))
    weighted, clustered = data.sampling_weights, data.subjects is not None
    separated = likelihood.identifiable and likelihood.full.separated
    if (clustered or weighted) and likelihood.identifiable and not separated:
        return TestChoice("robust", Note(Reason.SAMPLING_WEIGHTS if weighted else Reason.CLUSTERED))
    if not separated and (states := num_counted_states(data)) >= FEWEST_STATES and likelihood.design is not None:
        return TestChoice("robust", Note(Reason.COUNTED_STATES, {"states": states}))
    of_rows = data.weights is None and data.in_memory and not clustered and not separated
    if of_rows and not space.guess and space.counts_events and checked is not None and checked().broken(["noise"]):
        return TestChoice("robust", Note(Reason.DISPERSED_COUNTS))
    if not data.in_memory and likelihood.full.separated and about_features:
        return TestChoice("lean", Note(Reason.SEPARATION_OUT_OF_CORE))
    reason, doubt = Note(Reason.SPACE_STATED), None
    in_table = data.origin.exchangeable and space.guess and checked is not None and not checked().broken(NAMES)
    if in_table:
        reason = Note(Reason.EXCHANGEABLE)
    elif space.guess and about_features:
        lean = lean or (lambda: LeanTest(space, data, options.significance, options.seed, options.clusters))
        shortage = _too_few_for_lean(data, lean)
        chance = None if shortage else lean().core.diagnosis
        if chance is not None and not (separated and chance.greedy):
            return TestChoice("lean", Note(Reason.NO_SPACE_STATED))
        reason = Note(Reason.TOO_FEW_ROWS, {"message": shortage})
        doubt = None if chance is None else Note(Reason.NO_CHANCE, {"message": chance.sentence()})
        if doubt is None and _takes_rows(data) and (unfed := lean().unfed):
            doubt = Note(Reason.OTHER_CAUSES, {"message": unfed})
    elif space.guess:
        reason = Note(Reason.ABOUT_GROUPS)
    if likelihood.penalty is not None and likelihood.identifiable and data.in_memory:
        if separated:
            return TestChoice("firth", Note(Reason.SEPARATION), doubt)
        if few := few_rows(likelihood):
            return TestChoice("firth", Note(Reason.FEW_ROWS, few), doubt)
    return TestChoice("wilks", reason, doubt)


def has_lean_test(space: PolicySpace, data: Sample) -> bool:
    """Whether the test `lean` is about the groups of this space, and takes these rows."""
    if space.group_columns() is None or data.weights is not None or space.fixed.any():
        return False
    shares = data.origin.formula is not None and data.origin.formula.shares_columns
    return not shares and _takes_rows(data)


def _too_few_for_lean(data: Sample, lean: Callable[[], LeanTest]) -> str:
    """Why the test `lean` guarantees nothing for want of rows; empty if it does."""
    if not data.rows.stretched:
        return "no stretch of rows that was looked at holds two different actions"
    if not _takes_rows(data):
        return f"{data.num_rows} rows are too few for a test without a policy model"
    return lean().core.family.too_simple or ""


def _takes_rows(data: Sample) -> bool:
    """Whether the test `lean` takes so few rows."""
    return data.rows.stretched and data.num_rows >= fewest_rows(data.features.shape[1])


MOST_SUBJECTS = 2000
"""Subjects beyond which their average needs no model of how they differ."""


def has_enough_subjects(likelihood: Likelihood, data: Sample) -> bool:
    """Whether a random-effects model can be fitted: a linear policy, and enough subjects of several rows each."""
    if data.subjects is None or likelihood.design is None or data.sampling_weights or not data.in_memory:
        return False
    subjects = len(np.unique(data.subjects))
    return FEWEST_SUBJECTS <= subjects <= min(MOST_SUBJECTS, data.num_rows / 3)


def support_test(likelihood: Likelihood, data: Sample, options: TestOptions) -> SupportTest:
    """The test that the options name; only `lean` takes what is independent of each other."""
    test, clusters = options.test, options.clusters
    if clusters != "auto" and test != "lean":
        raise InputError(
            f"what is independent can be said to the test 'lean' alone, found clusters '{clusters}' for the test "
            f"'{test}': ask for the test 'lean' (--test lean), or leave the clusters out."
        )
    if clusters == "episodes" and data.episodes is None and data.subjects is None:
        raise InputError(
            "the clusters 'episodes' need to be known: name the column of the episodes (--episodes) or of the "
            "subjects (--subjects)."
        )
    if not data.in_memory and test in ("lean", "robust"):
        if not data.rows.stretched:
            raise InputError(
                f"the test '{test}' needs rows with two different actions near each other, found none in its sample of "
                f"{data.num_rows} of {data.num_rows_total} rows: use the test 'wilks'."
            )
        if test == "robust":
            likelihood = likelihood_of(likelihood.space, data.take(slice(None)))
    return TESTS[test](likelihood, data, options)
