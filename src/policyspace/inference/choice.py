"""Which test: the one that is asked for, or the one that holds for this space on this data."""

from collections.abc import Callable
from typing import Any, Literal, get_args

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError, nearest
from policyspace.fits.base import Likelihood
from policyspace.fits.firth import with_firth
from policyspace.inference.assumption_lean import AssumptionLean
from policyspace.inference.base import SupportTest
from policyspace.inference.bootstrap import Bootstrap
from policyspace.inference.eprocess import EProcess
from policyspace.inference.mixture import Mixture
from policyspace.inference.model_check import ModelCheck
from policyspace.inference.universal import Universal
from policyspace.inference.wilks import WilksTest

TestName = Literal["auto", "wilks", "firth", "lean", "bootstrap", "universal", "eprocess", "mixture"]

TESTS: dict[str, Callable[[Any, Demonstrations, float, int], SupportTest]] = {
    "wilks": lambda likelihood, data, level, seed: WilksTest(likelihood),
    "firth": lambda likelihood, data, level, seed: WilksTest(with_firth(likelihood)),
    "lean": lambda likelihood, data, level, seed: AssumptionLean(likelihood.space, data, level, seed),
    "bootstrap": Bootstrap,
    "universal": Universal,
    "eprocess": EProcess,
    "mixture": Mixture,
}
"""Every test of supports, from a likelihood, its data, the level and a seed: a new test is one line here."""

FEW = 5
"""Pairs a parameter below which the χ² law is too liberal for discrete actions."""


def choose(test: str, likelihood: Likelihood, data: Demonstrations, check: Callable[[], ModelCheck]) -> tuple[str, str]:
    """The name of the test to use, and why: what the space and the check of its assumptions allow.

    The check is made only where the choice depends on it.
    """
    names = get_args(TestName)
    if test not in names:
        raise InputError(f"unknown test '{test}': {nearest(test, names)}")
    if test != "auto":
        return test, "as asked for"
    about_features = likelihood.space.group_columns() is not None and data.weights is None
    if likelihood.design is None and about_features:
        return "lean", "the weights of a network have no χ² law, and whether an input is used can be asked without them"
    if likelihood.design is None and not likelihood.identifiable:
        return (
            "universal",
            "the parameters of this space are not identifiable, so that λ has no χ² law (Wilks' theorem fails); "
            "the test 'bootstrap' finds smaller effects but takes longer",
        )
    if data.subjects is not None and about_features:
        return "lean", "rows of one subject belong together, and this test takes subjects as its units"
    few = likelihood.total_weight < FEW * likelihood.space.num_parameters
    if data.discrete and likelihood.identifiable and likelihood.design is not None:
        if likelihood.full.separated:
            return "firth", "the agent is so regular that no finite parameter is most likely (separation)"
        if few:
            return (
                "firth",
                f"{likelihood.total_weight:g} pairs are few for {likelihood.space.num_parameters} parameters",
            )
    broken = check().broken(WilksTest.assumes)
    if broken and about_features:
        return "lean", broken[0]
    return "wilks", "nothing in the data contradicts what the policy space assumes"


def support_test(
    test: str, likelihood: Likelihood, data: Demonstrations, significance: float, seed: int = 0
) -> SupportTest:
    """The test by its name."""
    return TESTS[test](likelihood, data, significance, seed)
