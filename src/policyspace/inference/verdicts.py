"""From the name of a test to the verdicts of a rule, with the words that a report needs about it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.fits.base import Likelihood
from policyspace.inference import search
from policyspace.inference.choice import choose, local_test
from policyspace.inference.corrections import Correction
from policyspace.inference.rules import Verdicts

QUIET = 0.1
"""Restart noise must stay below this share of the critical value for a χ² verdict to mean anything."""


def verdicts_by(
    test: str,
    rule: Literal["simplified", "combinatorial"],
    likelihood: Likelihood,
    data: Demonstrations,
    significance: float,
    wilks: Callable[[], Verdicts],
    correction: str,
    special: str | None = None,
    seed: int = 0,
) -> tuple[Verdicts, dict[str, Any]]:
    """The verdicts of a rule by the test that was asked for or fits, and what the settings must say about it.

    `wilks` is the rule as it runs on Wilks' law; `special` names a variant of it that no other test has.
    """
    name, reason = choose(test if special is None or test != "auto" else "wilks", likelihood)
    if special is not None and name != "wilks":
        raise InputError(f"{special} belongs to the test 'wilks', found '{name}': leave one of them out.")
    words = {"test": name, "test_reason": reason, "correction": correction, "statistic": "λ"}
    if name == "wilks":
        likelihood.prepare(likelihood.space.tested if rule == "combinatorial" else ())
        verdicts = wilks()
        trouble = _too_noisy(likelihood, verdicts, significance)
        return (_withheld(verdicts), words | {"withheld": trouble}) if trouble else (verdicts, words)
    local = local_test(name, likelihood, data, significance, seed)
    if rule == "simplified":
        chosen: Correction = correction  # type: ignore[assignment]
        verdicts = search.one_at_a_time(local, significance, chosen)
    else:
        verdicts = search.all_supports(local, significance)
    if local.simultaneous:
        words["correction"] = "e-values that hold for all supports together"
    return verdicts, words | {"statistic": local.statistic_name, "test_note": local.note()}


def _too_noisy(likelihood: Likelihood, verdicts: Verdicts, significance: float) -> str:
    """Why no χ² verdict can be given, or nothing."""
    degrees = min((test.degrees_of_freedom for test in verdicts.tests.values()), default=0)
    critical = likelihood.law.critical(significance / max(len(verdicts.tests), 1), degrees)
    if not degrees or likelihood.restart_noise <= QUIET * critical:
        return ""
    return (
        f"with other random starts λ moves by up to {likelihood.restart_noise:.1f}, which is not far below its critical "
        f"value of {critical:.1f}: use --test universal or --test bootstrap"
    )


def _withheld(verdicts: Verdicts) -> Verdicts:
    """Only the full support is certain to do, and every group stays undecided."""
    return replace(
        verdicts, supports=[frozenset(verdicts.tests)], adjusted=dict.fromkeys(verdicts.tests, 1.0), exhaustive=False
    )
