"""From data to answer: `identify` in one call, `simplified` and `combinatorial` for a space and its demonstrations."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any, Literal, TypedDict, Unpack

from policyspace.answer import Identification
from policyspace.data.chunks import single_threaded_blas
from policyspace.data.demonstrations import Demonstrations
from policyspace.data.limits import check_seed
from policyspace.data.missing import Missing
from policyspace.data.offsets import with_offset_columns
from policyspace.data.sources import logged, prepared
from policyspace.data.vocabulary import one_vocabulary
from policyspace.errors import InputError, nearest
from policyspace.fits import Likelihood, likelihood_of
from policyspace.fits.firth import with_firth
from policyspace.fits.network_fits import residual_covariance
from policyspace.inference.answering import answer_of
from policyspace.inference.choice import TestName, choose, support_test
from policyspace.inference.corrections import CORRECTIONS, Correction, check_significance
from policyspace.inference.lean.dependence import Unitwise
from policyspace.inference.model_check import ModelCheck, check_model, unchecked
from policyspace.inference.rules import all_supports, one_at_a_time, unless_withheld
from policyspace.policies import PolicySpace
from policyspace.policies.network import NetworkGroups
from policyspace.policies.spec import Policy, PolicySpec
from policyspace.shown import remembering_its_call

RULES = ("simplified", "combinatorial")


class Source(TypedDict, total=False):
    """What `identify`, `plan` and `assess` may be told about the data and the policy, in the same words."""

    features: Sequence[str] | None
    episodes: Any
    weights: Any
    subjects: Any
    categorical: Sequence[str] | None
    missing: Missing
    reference: Any
    formula: str | None
    lags: int | None
    weights_are: Literal["counts", "sampling"] | None
    offset: Any
    backend: Any
    policy: Policy
    hidden: Sequence[int] | None
    covariance: Any
    groups: NetworkGroups | None
    always: Sequence[str]
    fixed: Any
    intercept: bool | None


@remembering_its_call
@one_vocabulary
def identify(
    data: Any,
    actions: Any = None,
    *,
    features: Sequence[str] | None = None,
    episodes: Any = None,
    weights: Any = None,
    subjects: Any = None,
    categorical: Sequence[str] | None = None,
    missing: Missing = "error",
    policy: Policy = None,
    hidden: Sequence[int] | None = None,
    covariance: Any = None,
    groups: NetworkGroups | None = None,
    always: Sequence[str] = (),
    fixed: Any = None,
    intercept: bool | None = None,
    reference: Any = None,
    rule: Literal["simplified", "combinatorial"] = "simplified",
    significance: float = 0.05,
    correction: Correction = "holm",
    paper_rule: bool = False,
    firth: bool = False,
    test: TestName = "auto",
    seed: int = 0,
    dependence: Unitwise = "auto",
    formula: str | None = None,
    lags: int | None = None,
    weights_are: Literal["counts", "sampling"] | None = None,
    offset: Any = None,
    backend: Any = None,
) -> Identification:
    """Which groups of features or parameters does the agent control, and with what certainty?

    `data` is an array [n, q] with `actions` [n] or [n, k], whose columns `features` names; or a polars or pandas frame, or
    a file, of which `actions` and `features` name columns; or a `Demonstrations`. `subjects` are the people or animals
    whose rows belong together; `categorical` and `missing` are as of `Demonstrations.from_frame`. The policy is Boltzmann
    for labels and whole numbers, Gaussian for real numbers, unless `policy` is a name (`any` is no model at all) or a
    space, such as `GaussianNetwork(hidden=(8,))`; what else is said about it, `PolicySpec` tells. The chance of any false
    "controlled" is at most `significance` (Holm and Bonferroni, Rule 1 by closed testing); `paper_rule` takes the paper's
    split instead. `test` says what decides: Wilks' theorem, Firth's test, the assumption-lean test, to which `dependence`
    says what is independent, the parametric bootstrap, universal inference, an e-process or a mixture e-value; by default
    what the data allow. A `formula` names actions and features; `lags` adds last actions; `offset` has the weight 1. Data
    may be a folder, a pattern or a list of files; what is too large for memory is read in passes, by threads or `backend`.
    """
    _check_settings(rule, significance, correction)
    check_seed(seed)
    space, demonstrations = bound(
        data, actions, backend=backend, features=features, episodes=episodes, weights=weights, reference=reference,
        policy=policy, subjects=subjects, categorical=categorical, missing=missing, formula=formula, lags=lags,
        weights_are=weights_are, hidden=hidden, covariance=covariance, groups=groups, always=always, fixed=fixed,
        intercept=intercept, offset=offset,
    )  # fmt: skip
    if correction == "bh" and paper_rule:
        raise InputError("the paper's rule splits δ evenly (Bonferroni), found the correction 'bh': drop one of them.")
    if rule == "simplified":
        split = "bonferroni" if paper_rule else correction
        return simplified(space, demonstrations, significance, split, firth, test, seed, dependence)
    answer = combinatorial(space, demonstrations, significance, paper_rule, firth, test, seed, dependence)
    return answer if correction == "holm" else _without_correction(answer, correction)


def _without_correction(answer: Identification, correction: str) -> Identification:
    """The answer of a rule that has no use for it."""
    unused = f"the correction '{correction}' belongs to the simplified rule and was not used: Rule 1 has its own."
    return replace(answer, warnings=[*answer.warnings, unused])


def bound(data: Any, actions: Any = None, **source: Unpack[Source]) -> tuple[PolicySpace, Demonstrations]:
    """The policy space and the pairs that the arguments of `identify` stand for."""
    spec, pairs = read_pairs(data, actions, **source)
    space = spec.bind(pairs).with_noise(
        lambda network: residual_covariance(
            network.feature_names, network.action_names, network.hidden, pairs.features, pairs.actions
        )
    )
    space = space.with_interactions(pairs.metadata.get("interactions", {}))
    if not space.tested:
        raise InputError("every group is declared always controlled: nothing is left to test, so declare fewer.")
    return space, pairs


def read_pairs(data: Any, actions: Any = None, **source: Unpack[Source]) -> tuple[PolicySpec, Demonstrations]:
    """What is said about the policy, and the pairs, which are not asked yet whether they fit it."""
    columns: dict[str, Any] = dict(source)
    spec = PolicySpec(**{field.name: columns.pop(field.name) for field in fields(PolicySpec) if field.name in columns})
    more = {word: columns.pop(word) for word in ("lags", "weights_are", "offset") if word in columns}
    if more.get("offset") is not None:
        columns["features"] = _with_offset_columns(columns.get("features"), more["offset"], spec)
    found = logged(data, actions, **columns, discrete=spec.discrete, choices=spec.choices)
    return spec, prepared(found, **more)


def _with_offset_columns(features: Sequence[str] | None, offset: Any, spec: PolicySpec) -> Any:
    """The features to read beside those of the offset, unless the policy has attributes and so offsets of its own."""
    if spec.choices is not None:
        raise InputError(
            "an offset of alternatives is one of their attributes, found offset= beside the policy: say it inside, as in "
            "ChoiceLinear(attributes=…, offset=['known'])."
        )
    return with_offset_columns(features, offset)


def simplified(
    space: PolicySpace,
    demonstrations: Demonstrations,
    significance: float = 0.05,
    correction: Correction = "holm",
    firth: bool = False,
    test: TestName = "auto",
    seed: int = 0,
    dependence: Unitwise = "auto",
    checked: bool = True,
) -> Identification:
    """Rule 2: one test a group, Î = {i : λ_i > c}; family-wise error ≤ `significance` by Holm or Bonferroni.

    Unless `checked`, the agent is taken to be one of the space, and the data are not asked whether they contradict that.
    """
    _check_settings("simplified", significance, correction)
    with single_threaded_blas():
        likelihood = likelihood_of(space, demonstrations, firth)
    return simplified_by(likelihood, demonstrations, significance, correction, test, seed, dependence, checked)


@single_threaded_blas()
def simplified_by(
    likelihood: Likelihood,
    demonstrations: Demonstrations,
    significance: float = 0.05,
    correction: Correction = "holm",
    test: TestName = "auto",
    seed: int = 0,
    dependence: Unitwise = "auto",
    checked: bool = True,
) -> Identification:
    """Rule 2 from a likelihood that is already made."""
    check = _check_of(likelihood, demonstrations, checked)
    name, reason = choose(_fixed_by_penalty(test, likelihood.penalised), likelihood, demonstrations, check)
    likelihood = with_firth(likelihood) if name == "firth" else likelihood
    decider = support_test(name, likelihood, demonstrations, significance, seed, dependence)
    verdicts = unless_withheld(decider, significance, one_at_a_time(decider, significance, correction))
    settings = {"rule": "simplified", "significance": significance, "correction": correction, "test_reason": reason}
    return answer_of(demonstrations, likelihood, decider, verdicts, check(), settings)


@single_threaded_blas()
def combinatorial(
    space: PolicySpace,
    demonstrations: Demonstrations,
    significance: float = 0.05,
    paper_rule: bool = False,
    firth: bool = False,
    test: TestName = "auto",
    seed: int = 0,
    dependence: Unitwise = "auto",
    checked: bool = True,
) -> Identification:
    """Rule 1: all minimal supports, by closed testing or, with `paper_rule`, at δ/2^d with a check of the children."""
    _check_settings("combinatorial", significance, "holm")
    if space.interactions:
        raise InputError(
            "the combinatorial rule takes every set of terms, also an interaction without what it is made of, found a "
            "formula with interactions or powers: use the simplified rule, or a formula without them."
        )
    likelihood = likelihood_of(space, demonstrations, firth)
    check = _check_of(likelihood, demonstrations, checked)
    if paper_rule and test == "auto" and not firth:
        test = "wilks"
    name, reason = choose(_fixed_by_penalty(test, firth), likelihood, demonstrations, check)
    if paper_rule and name not in ("wilks", "firth"):
        raise InputError(f"the paper's rule belongs to the test 'wilks', found '{name}': leave one of them out.")
    likelihood = with_firth(likelihood) if name == "firth" else likelihood
    decider = support_test(name, likelihood, demonstrations, significance, seed, dependence)
    verdicts = unless_withheld(decider, significance, all_supports(decider, significance, paper_rule))
    correction = "Bonferroni over all supports" if paper_rule else "closed testing"
    settings = {"rule": "combinatorial", "significance": significance, "correction": correction, "test_reason": reason}
    return answer_of(demonstrations, likelihood, decider, verdicts, check(), settings)


def _check_of(likelihood: Likelihood, demonstrations: Demonstrations, checked: bool) -> Callable[[], ModelCheck]:
    """The check of what the policy space assumes, made at most once."""
    if not checked:
        return lambda: unchecked("the agent is taken to be one of the policy space")
    return cache(lambda: check_model(likelihood, demonstrations))


def _fixed_by_penalty(test: str, firth: bool) -> str:
    """Firth's penalty is a test of its own: no other can be asked for beside it."""
    if firth and test not in ("auto", "wilks", "firth"):
        raise InputError(f"Firth's penalty belongs to the test 'firth', found '{test}': leave one of them out.")
    return "firth" if firth else test


def _check_settings(rule: str, significance: float, correction: str) -> None:
    if rule not in RULES:
        raise InputError(f"the rule must be 'simplified' or 'combinatorial', found '{rule}': {nearest(rule, RULES)}")
    if not isinstance(correction, str) or correction not in CORRECTIONS:
        raise InputError(f"unknown correction '{correction}': {nearest(correction, CORRECTIONS)}")
    check_significance(significance)
