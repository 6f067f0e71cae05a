"""From data to answer: `identify` in one call, `simplified` and `combinatorial` for a space and its demonstrations."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

from policyspace.answer import Identification
from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError, nearest
from policyspace.fits import Likelihood, likelihood_of
from policyspace.fits.chunks import single_threaded_blas
from policyspace.inference.answering import answer_of
from policyspace.inference.choice import TestName, choose, support_test
from policyspace.inference.corrections import CORRECTIONS, Correction
from policyspace.inference.model_check import check_model
from policyspace.inference.rules import all_supports, one_at_a_time
from policyspace.policies import BoltzmannLinear, GaussianLinear, Groups, PolicySpace
from policyspace.policies.network import GaussianNetwork, NetworkGroups

RULES = ("simplified", "combinatorial")

PolicyName = Literal["gaussian", "boltzmann", "network"]


def identify(
    features: Any,
    actions: Any = None,
    *,
    names: Sequence[str] | None = None,
    episodes: Any = None,
    weights: Any = None,
    policy: PolicyName | PolicySpace | None = None,
    hidden: Sequence[int] | None = None,
    covariance: Any = None,
    groups: NetworkGroups = "feature",
    always: Sequence[str] = (),
    fixed: Any = 0.0,
    intercept: bool | None = None,
    reference: Any = None,
    rule: Literal["simplified", "combinatorial"] = "simplified",
    significance: float = 0.05,
    correction: Correction = "holm",
    paper_rule: bool = False,
    firth: bool = False,
    test: TestName = "auto",
    seed: int = 0,
) -> Identification:
    """Which groups of features or parameters does the agent control, and with what certainty?

    `features` is an array [n, q] with `actions` [n] or [n, k]; or a polars or pandas frame, or a file, of which `actions`
    names the action column(s) and `names` the feature columns; or a `Demonstrations`. The policy is Boltzmann for labels
    and whole numbers, Gaussian for real numbers, unless given. The chance of any false "controlled" is at most
    `significance` (Holm and Bonferroni, Rule 1 by closed testing); `paper_rule` takes the paper's split instead.
    What a simulated file says about its policy holds unless an argument says otherwise; without either, an intercept is
    added, and `policy="network"` has one hidden tanh layer of 8 units. `test` says what decides: Wilks' theorem, the
    parametric bootstrap, universal inference, an e-process or a mixture e-value; by default what fits space and data.
    """
    _check_settings(rule, significance, correction)
    space, data = space_and_demonstrations(
        features,
        actions,
        names=names,
        episodes=episodes,
        weights=weights,
        policy=policy,
        hidden=hidden,
        covariance=covariance,
        groups=groups,
        always=always,
        fixed=fixed,
        intercept=intercept,
        reference=reference,
    )
    if correction == "bh" and paper_rule:
        raise InputError("the paper's rule splits δ evenly (Bonferroni), found the correction 'bh': drop one of them.")
    if rule == "simplified":
        return simplified(space, data, significance, "bonferroni" if paper_rule else correction, firth, test, seed)
    answer = combinatorial(space, data, significance, paper_rule, firth, test, seed)
    if correction == "holm":
        return answer
    unused = f"the correction '{correction}' belongs to the simplified rule and was not used: Rule 1 has its own."
    return replace(answer, warnings=[*answer.warnings, unused])


def space_and_demonstrations(
    features: Any,
    actions: Any = None,
    *,
    names: Sequence[str] | None = None,
    episodes: Any = None,
    weights: Any = None,
    policy: PolicyName | PolicySpace | None = None,
    hidden: Sequence[int] | None = None,
    covariance: Any = None,
    groups: NetworkGroups = "feature",
    always: Sequence[str] = (),
    fixed: Any = 0.0,
    intercept: bool | None = None,
    reference: Any = None,
) -> tuple[PolicySpace, Demonstrations]:
    """The policy space and the pairs that the arguments of `identify` stand for."""
    discrete = policy == "boltzmann" if policy in ("gaussian", "boltzmann") else None
    data = _demonstrations(features, actions, names, episodes, weights, discrete, reference)
    space = _space(policy, data, hidden, covariance, groups, always, fixed, intercept)
    if not space.tested:
        raise InputError("every group is declared always controlled: nothing is left to test, so declare fewer.")
    return space, data


def simplified(
    space: PolicySpace,
    demonstrations: Demonstrations,
    significance: float = 0.05,
    correction: Correction = "holm",
    firth: bool = False,
    test: TestName = "auto",
    seed: int = 0,
) -> Identification:
    """Rule 2: one test a group, Î = {i : λ_i > c}; family-wise error ≤ `significance` by Holm or Bonferroni."""
    _check_settings("simplified", significance, correction)
    with single_threaded_blas():
        likelihood = likelihood_of(space, demonstrations, firth)
    return simplified_by(likelihood, demonstrations, significance, correction, test, seed)


@single_threaded_blas()
def simplified_by(
    likelihood: Likelihood,
    demonstrations: Demonstrations,
    significance: float = 0.05,
    correction: Correction = "holm",
    test: TestName = "auto",
    seed: int = 0,
) -> Identification:
    """Rule 2 from a likelihood that is already made."""
    check = cache(lambda: check_model(likelihood, demonstrations))
    name, reason = choose(_fixed_by_penalty(test, likelihood.penalised), likelihood, demonstrations, check)
    decider = support_test(name, likelihood, demonstrations, significance, seed)
    verdicts = one_at_a_time(decider, significance, correction)
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
) -> Identification:
    """Rule 1: all minimal supports, by closed testing or, with `paper_rule`, at δ/2^d with a check of the children."""
    _check_settings("combinatorial", significance, "holm")
    likelihood = likelihood_of(space, demonstrations, firth)
    check = cache(lambda: check_model(likelihood, demonstrations))
    if paper_rule and test == "auto" and not firth:
        test = "wilks"
    name, reason = choose(_fixed_by_penalty(test, firth), likelihood, demonstrations, check)
    if paper_rule and name not in ("wilks", "firth"):
        raise InputError(f"the paper's rule belongs to the test 'wilks', found '{name}': leave one of them out.")
    decider = support_test(name, likelihood, demonstrations, significance, seed)
    verdicts = all_supports(decider, significance, paper_rule)
    correction = "Bonferroni over all supports" if paper_rule else "closed testing"
    settings = {"rule": "combinatorial", "significance": significance, "correction": correction, "test_reason": reason}
    return answer_of(demonstrations, likelihood, decider, verdicts, check(), settings)


def _fixed_by_penalty(test: str, firth: bool) -> str:
    """Firth's penalty is a test of its own: no other can be asked for beside it."""
    if firth and test not in ("auto", "wilks", "firth"):
        raise InputError(f"Firth's penalty belongs to the test 'firth', found '{test}': leave one of them out.")
    return "firth" if firth else test


def _check_settings(rule: str, significance: float, correction: str) -> None:
    if rule not in RULES:
        raise InputError(f"the rule must be 'simplified' or 'combinatorial', found '{rule}': {nearest(rule, RULES)}")
    if correction not in CORRECTIONS:
        raise InputError(f"unknown correction '{correction}': {nearest(correction, CORRECTIONS)}")
    check_significance(significance)


def check_significance(significance: float) -> None:
    """δ must be a probability."""
    if not (isinstance(significance, int | float) and 0 < significance < 1):
        raise InputError(f"the significance must lie between 0 and 1, found {significance!r}: 0.05 is customary.")


def _demonstrations(
    features: Any, actions: Any, names: Any, episodes: Any, weights: Any, discrete: bool | None, reference: Any
) -> Demonstrations:
    if isinstance(features, Demonstrations):
        return features if reference is None else features.with_reference(reference)
    if isinstance(features, str | Path):
        from policyspace.data.readers import read

        return read(
            features,
            action=actions,
            features=names,
            episode=episodes,
            weight=weights,
            discrete=discrete,
            reference=reference,
        )
    by_column = isinstance(actions, str) or (
        isinstance(actions, list | tuple) and all(isinstance(a, str) for a in actions) and hasattr(features, "columns")
    )
    if by_column and hasattr(features, "columns"):
        return Demonstrations.from_frame(
            features, actions, features=names, episode=episodes, weight=weights, discrete=discrete, reference=reference
        )
    if actions is None:
        raise InputError("the actions are missing: give an array of actions, or the name of the action column.")
    if hasattr(features, "columns") and names is None:
        names = [str(name) for name in features.columns]
    return Demonstrations.from_arrays(
        features, actions, names=names, episodes=episodes, weights=weights, discrete=discrete, reference=reference
    )


def _space(
    policy: Any,
    data: Demonstrations,
    hidden: Sequence[int] | None,
    covariance: Any,
    groups: NetworkGroups,
    always: Sequence[str],
    fixed: Any,
    intercept: bool | None,
) -> PolicySpace:
    if isinstance(policy, PolicySpace):
        return policy
    recorded = data.metadata.get("policy")
    recorded = recorded if isinstance(recorded, Mapping) else {}
    if policy is None:
        policy = "boltzmann" if data.discrete else "gaussian"
        if str(recorded.get("family", "")).endswith("network"):
            policy = "network"
    if hidden is None:
        hidden = recorded.get("hidden", (8,))
    if intercept is None:
        intercept = bool(recorded.get("intercept", True))
    blocks = dict(data.blocks)
    if covariance is None and not data.discrete:
        covariance = recorded.get("covariance", "estimate")
    if policy == "network":
        activation = recorded.get("activation", "tanh")
        return _network(data, tuple(hidden), activation, covariance, groups, always, fixed, blocks)
    if groups in ("input", "hidden", "output"):
        raise InputError(f"the groups '{groups}' belong to the policy 'network', found '{policy}': use 'feature'.")
    groups = cast(Groups, groups)
    if policy == "boltzmann":
        if covariance is not None:
            raise InputError("a covariance was given, but the actions are discrete: it belongs to the Gaussian policy.")
        return BoltzmannLinear(data.names, data.action_names, groups, always, fixed, intercept, blocks)
    if policy != "gaussian":
        raise InputError(f"the policy must be 'gaussian', 'boltzmann', 'network' or a PolicySpace, found {policy!r}.")
    return GaussianLinear(data.names, data.action_names, covariance, groups, always, fixed, intercept, blocks)


def _network(
    data: Demonstrations,
    hidden: tuple[int, ...],
    activation: Any,
    covariance: Any,
    groups: NetworkGroups,
    always: Sequence[str],
    fixed: Any,
    blocks: dict[str, tuple[str, ...]],
) -> PolicySpace:
    from policyspace.fits.network_fits import residual_covariance
    from policyspace.policies.network import BoltzmannNetwork

    if data.discrete:
        if covariance is not None:
            raise InputError("a covariance was given, but the actions are discrete: it belongs to Gaussian policies.")
        return BoltzmannNetwork(data.names, data.action_names, hidden, activation, groups, always, fixed, blocks)
    if isinstance(covariance, str) and covariance == "estimate":
        covariance = residual_covariance(data.names, data.action_names, hidden, data.features, data.actions)
    return GaussianNetwork(data.names, data.action_names, hidden, covariance, activation, groups, always, fixed, blocks)
