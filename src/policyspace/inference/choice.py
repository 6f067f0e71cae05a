"""Which test: the one that is asked for, or the one that holds for this space on this data."""

from typing import Literal, get_args

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError, nearest
from policyspace.fits.base import Likelihood
from policyspace.inference.base import LocalTest
from policyspace.inference.bootstrap import Bootstrap
from policyspace.inference.eprocess import EProcess
from policyspace.inference.mixture import Mixture
from policyspace.inference.universal import Universal

TestName = Literal["auto", "wilks", "bootstrap", "universal", "eprocess", "mixture"]
TESTS: tuple[str, ...] = get_args(TestName)


def choose(test: str, likelihood: Likelihood) -> tuple[str, str]:
    """The name of the test to use, and why."""
    if test not in TESTS:
        raise InputError(f"unknown test '{test}': {nearest(test, TESTS)}")
    if test != "auto":
        return test, "as asked for"
    if likelihood.design is None and not likelihood.identifiable:
        return (
            "universal",
            "the parameters of this space are not identifiable, so that λ has no χ² law (Wilks' theorem fails); "
            "the test 'bootstrap' finds smaller effects but takes longer",
        )
    return "wilks", "the space is regular, so that λ has its law by Wilks' theorem"


def local_test(
    test: str, likelihood: Likelihood, data: Demonstrations, significance: float, seed: int = 0
) -> LocalTest:
    """The test by its name; 'wilks' is not here, for it needs no machinery of its own."""
    space = likelihood.space
    if test == "bootstrap":
        return Bootstrap(space, data, likelihood, significance, seed=seed)
    if test == "universal":
        return Universal(space, data, likelihood, seed)
    if test == "eprocess":
        return EProcess(space, data, likelihood)
    return Mixture(likelihood)
