"""Which test: the one that is asked for, or the one that holds for this space on this data."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError, nearest
from policyspace.fits import likelihood_of
from policyspace.fits.base import Likelihood
from policyspace.fits.firth import with_firth
from policyspace.fits.no_fit import NoFit
from policyspace.inference.assumption_lean import AssumptionLean
from policyspace.inference.base import SupportTest
from policyspace.inference.bootstrap import Bootstrap
from policyspace.inference.eprocess import EProcess
from policyspace.inference.lean.dependence import Unitwise
from policyspace.inference.mixture import Mixture
from policyspace.inference.model_check import ModelCheck
from policyspace.inference.robust import RobustWald
from policyspace.inference.universal import Universal
from policyspace.inference.wilks import WilksTest, few_pairs

TestName = Literal["auto", "wilks", "firth", "lean", "robust", "bootstrap", "universal", "eprocess", "mixture"]

DEPENDENCE = get_args(Unitwise)
"""What the test 'lean' may take as independent of each other: what it finds, rows, or episodes and subjects."""


@dataclass(frozen=True)
class Settings:
    """What a test is told beside its likelihood and data."""

    level: float
    seed: int = 0
    dependence: Unitwise = "auto"


TESTS: dict[str, Callable[[Any, Demonstrations, Settings], SupportTest]] = {
    "wilks": lambda likelihood, data, told: WilksTest(likelihood),
    "firth": lambda likelihood, data, told: WilksTest(with_firth(likelihood)),
    "lean": lambda likelihood, data, told: AssumptionLean(
        likelihood.space, data, told.level, told.seed, told.dependence
    ),
    "robust": lambda likelihood, data, told: RobustWald(likelihood, data),
    "bootstrap": lambda likelihood, data, told: Bootstrap(likelihood, data, told.level, told.seed),
    "universal": lambda likelihood, data, told: Universal(likelihood, data, told.level, told.seed),
    "eprocess": lambda likelihood, data, told: EProcess(likelihood, data, told.level, told.seed),
    "mixture": lambda likelihood, data, told: Mixture(likelihood, data, told.level, told.seed),
}
"""Every test of supports, from a likelihood, its data and what it is told: a new test is one line here."""

IN_PASSES = ("wilks", "lean", "robust", "mixture")
"""The tests of logs that are not in memory: by sums over all rows, robust on a sample, lean where that is too much work."""


def choose(test: str, likelihood: Likelihood, data: Demonstrations, check: Callable[[], ModelCheck]) -> tuple[str, str]:
    """The name of the test to use, and why: what the space and the check of its assumptions allow.

    The check is made only where the choice depends on it.
    """
    names = get_args(TestName)
    if test not in names:
        raise InputError(f"unknown test '{test}': {nearest(test, names)}")
    if isinstance(likelihood, NoFit) and test not in ("auto", "lean"):
        raise InputError(
            f"the policy 'any' is tested without a model, by the test 'lean', found '{test}': leave it out."
        )
    if test != "auto":
        if data.whole is not None and test not in IN_PASSES:
            raise InputError(
                f"the test '{test}' needs all rows in memory, found {data.num_logged} that are read in passes: use one of "
                f"{', '.join(IN_PASSES)}, take fewer rows, or set POLICYSPACE_MAX_BYTES_AT_ONCE."
            )
        return test, "as asked for"
    if isinstance(likelihood, NoFit):
        return "lean", "no policy model is assumed"
    space = likelihood.space
    about_features = space.group_columns() is not None and data.weights is None and not space.fixed.any()
    about_features = about_features and not data.metadata.get("terms_share_columns")
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
    if (
        (data.subjects is not None or data.sampling_weights)
        and likelihood.identifiable
        and not likelihood.full.separated
    ):
        what = "rows have sampling weights" if data.sampling_weights else "rows of one subject belong together"
        return "robust", f"{what}, for which its variance makes up"
    if data.whole is not None and likelihood.full.separated and about_features:
        return "lean", "no finite parameter is most likely (separation), and Firth's test needs all rows in memory"
    broken = check().broken(SupportTest.assumes)
    if broken and about_features:
        return "lean", broken[0]
    if data.discrete and likelihood.identifiable and likelihood.design is not None and data.whole is None:
        if likelihood.full.separated:
            return "firth", "the agent is so regular that no finite parameter is most likely (separation)"
        if few_pairs(likelihood):
            return (
                "firth",
                f"{likelihood.total_weight:g} pairs are few for {likelihood.space.num_parameters} parameters",
            )
    return "wilks", "nothing in the data contradicts what the policy space assumes"


def support_test(
    test: str,
    likelihood: Likelihood,
    data: Demonstrations,
    significance: float,
    seed: int = 0,
    dependence: Unitwise = "auto",
) -> SupportTest:
    """The test by its name; only that named 'lean' takes what is independent of each other."""
    if dependence not in DEPENDENCE:
        raise InputError(f"unknown dependence '{dependence}': {nearest(str(dependence), DEPENDENCE)}")
    if dependence != "auto" and test != "lean":
        raise InputError(
            f"what is independent can be said to the test 'lean' alone, found dependence '{dependence}' for the test "
            f"'{test}': ask for the test 'lean' (--test lean), or leave the dependence out."
        )
    if dependence == "episodes" and data.episodes is None and data.subjects is None:
        raise InputError(
            "the dependence 'episodes' needs to know them: name the column of the episodes (--episodes) or of the "
            "subjects (--subjects)."
        )
    if data.whole is not None and test in ("lean", "robust"):
        if not data.whole.stretched:
            raise InputError(
                f"the test '{test}' looks at a sample of {data.num_pairs} of {data.num_logged} rows, found no stretch of "
                "rows with two different actions: use the test 'wilks'."
            )
        if test == "robust":
            likelihood = likelihood_of(likelihood.space, replace(data, whole=None))
    return TESTS[test](likelihood, data, Settings(significance, seed, dependence))
