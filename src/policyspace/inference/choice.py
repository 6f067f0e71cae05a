"""Which test: the one that is asked for, or the one that holds for this space on this data."""

from collections.abc import Callable
from typing import Any, Literal, get_args

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError, nearest
from policyspace.fits.base import Likelihood
from policyspace.inference.base import SupportTest
from policyspace.inference.bootstrap import Bootstrap
from policyspace.inference.eprocess import EProcess
from policyspace.inference.mixture import Mixture
from policyspace.inference.universal import Universal
from policyspace.inference.wilks import WilksTest

TestName = Literal["auto", "wilks", "bootstrap", "universal", "eprocess", "mixture"]

TESTS: dict[str, Callable[[Any, Demonstrations, float, int], SupportTest]] = {
    "wilks": lambda likelihood, data, level, seed: WilksTest(likelihood),
    "bootstrap": Bootstrap,
    "universal": Universal,
    "eprocess": EProcess,
    "mixture": Mixture,
}
"""Every test of supports, from a likelihood, its data, the level and a seed: a new test is one line here."""


def choose(test: str, likelihood: Likelihood) -> tuple[str, str]:
    """The name of the test to use, and why."""
    names = get_args(TestName)
    if test not in names:
        raise InputError(f"unknown test '{test}': {nearest(test, names)}")
    if test != "auto":
        return test, "as asked for"
    if likelihood.design is None and not likelihood.identifiable:
        return (
            "universal",
            "the parameters of this space are not identifiable, so that λ has no χ² law (Wilks' theorem fails); "
            "the test 'bootstrap' finds smaller effects but takes longer",
        )
    return "wilks", "the space is regular, so that λ has its law by Wilks' theorem"


def chosen_test(
    test: str, likelihood: Likelihood, data: Demonstrations, significance: float, seed: int, special: str = ""
) -> tuple[SupportTest, str]:
    """The test to use and why; `special` names a variant of Wilks' test that no other test has."""
    name, reason = choose("wilks" if special and test == "auto" else test, likelihood)
    if special and name != "wilks":
        raise InputError(f"{special} belongs to the test 'wilks', found '{name}': leave one of them out.")
    return support_test(name, likelihood, data, significance, seed), reason


def support_test(
    test: str, likelihood: Likelihood, data: Demonstrations, significance: float, seed: int = 0
) -> SupportTest:
    """The test by its name."""
    return TESTS[test](likelihood, data, significance, seed)
