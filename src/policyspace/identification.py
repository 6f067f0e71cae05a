"""From data to answer: `identify` in one call, `simplified` and `combinatorial` for a space and its demonstrations."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from policyspace import __version__
from policyspace.answer import GroupTest, Identification
from policyspace.calibrated.choice import TestName
from policyspace.calibrated.verdicts import verdicts_by
from policyspace.critical import CORRECTIONS, Correction
from policyspace.demonstrations import Demonstrations
from policyspace.errors import InputError, nearest
from policyspace.fisher import Dependence, dependences, detectable_effect, inverse_of, smallest_eigenvalue
from policyspace.likelihood import Likelihood, likelihood_of
from policyspace.likelihood.chunks import single_threaded_blas
from policyspace.policies import BoltzmannLinear, ExponentialFamily, GaussianLinear, Groups, PolicySpace
from policyspace.policies.neural import GaussianNetwork, Network, NetworkGroups
from policyspace.rules import Verdicts, all_supports, one_at_a_time

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


@single_threaded_blas()
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
    likelihood = likelihood_of(space, demonstrations, firth)
    verdicts, words = verdicts_by(
        test,
        "simplified",
        likelihood,
        demonstrations,
        significance,
        lambda: one_at_a_time(likelihood, significance, correction),
        correction,
        "Firth's penalty" if firth else None,
        seed,
    )
    settings = {"rule": "simplified", "significance": significance, "firth": firth} | words
    return _answer(demonstrations, space, likelihood, verdicts, _dependences(likelihood), settings)


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
    related = _dependences(likelihood)
    verdicts, words = verdicts_by(
        test,
        "combinatorial",
        likelihood,
        demonstrations,
        significance,
        lambda: all_supports(likelihood, significance, paper_rule, all(r.exchangeable for r in related)),
        "Bonferroni over all supports" if paper_rule else "closed testing",
        "the paper's rule" if paper_rule else "Firth's penalty" if firth else None,
        seed,
    )
    settings = {"rule": "combinatorial", "significance": significance, "firth": firth} | words
    return _answer(demonstrations, space, likelihood, verdicts, related, settings)


def _dependences(likelihood: Likelihood) -> list[Dependence]:
    if likelihood.design is None or not isinstance(likelihood.space, ExponentialFamily):
        return []
    return dependences(likelihood.space, likelihood.design)


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
        from policyspace.readers import read

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
    from policyspace.likelihood.network import residual_covariance
    from policyspace.policies.neural import BoltzmannNetwork

    if data.discrete:
        if covariance is not None:
            raise InputError("a covariance was given, but the actions are discrete: it belongs to Gaussian policies.")
        return BoltzmannNetwork(data.names, data.action_names, hidden, activation, groups, always, fixed, blocks)
    if isinstance(covariance, str) and covariance == "estimate":
        covariance = residual_covariance(data.names, data.action_names, hidden, data.features, data.actions)
    return GaussianNetwork(data.names, data.action_names, hidden, covariance, activation, groups, always, fixed, blocks)


def _described(space: PolicySpace, data: Demonstrations, likelihood: Likelihood) -> dict[str, Any]:
    """What a reader needs to make the answer again."""
    covariance = None
    if isinstance(space, GaussianLinear):
        covariance = "estimate" if space.estimated else space.covariance.tolist()
    elif isinstance(space, GaussianNetwork):
        covariance = space.covariance.tolist()
    return {
        "version": __version__,
        "policy": type(space).__name__,
        "covariance": covariance,
        "groups": [group.name for group in space.groups if not group.always],
        "always": [group.name for group in space.groups if group.always],
        "fixed": space.fixed.tolist() if space.fixed.any() else 0.0,
        "features": list(data.names),
        "actions": list(data.action_names),
        "intercept": space.intercept if isinstance(space, ExponentialFamily) else None,
        "hidden": list(space.hidden) if isinstance(space, Network) else None,
        "reference_law": likelihood.law.name,
    }


def _answer(
    data: Demonstrations,
    space: PolicySpace,
    likelihood: Likelihood,
    verdicts: Verdicts,
    related: list[Dependence],
    settings: dict[str, Any],
) -> Identification:
    significance: float = settings["significance"]
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
    information = likelihood.information()
    inverse = inverse_of(likelihood)
    diverging = likelihood.diverging
    tests = []
    for g, test in verdicts.tests.items():
        group, indices = space.groups[g], list(space.groups[g].indices)
        verdict = (
            "controlled" if group.name in everywhere else "undecided" if group.name in undecided else "no evidence"
        )
        effect = float(np.linalg.norm(likelihood.full.theta[indices] - space.fixed[indices]))
        tests.append(
            GroupTest(
                group.name, test.statistic, test.degrees_of_freedom, test.p_value, verdicts.adjusted[g],
                group.name in everywhere, verdict, np.inf if diverging[indices].any() and not settings["firth"] else effect,
                detectable_effect(likelihood, inverse, group, significance / max(len(verdicts.tests), 1))
                if settings["test"] in ("wilks", "bootstrap") and (likelihood.identifiable or likelihood.design is not None)
                else np.nan,  # known for λ alone; and weights of a network that is not identifiable have no size
            )
        )  # fmt: skip
    return Identification(
        rule=settings["rule"],
        supports=named,
        core=everywhere,
        undecided=undecided,
        tests=tests,
        fit=likelihood.full,
        num_pairs=data.num_pairs,
        num_parameters=space.num_parameters,
        num_episodes=data.num_episodes,
        identifiable=likelihood.identifiable,
        smallest_eigenvalue=smallest_eigenvalue(information) if likelihood.identifiable else 0.0,
        separated=likelihood.full.separated,
        exhaustive=verdicts.exhaustive,
        warnings=_warnings(data, space, likelihood, related, diverging, settings),
        settings=settings | _described(space, data, likelihood),
        parameters=_parameters(space, likelihood, settings["firth"]),
        truth=_truth(data, space),
    )


def _truth(data: Demonstrations, space: PolicySpace) -> list[str] | None:
    """What the file says is controlled, where that is said of the very groups that are tested."""
    truth = data.metadata.get("truth")
    groups = {group.name for group in space.groups}
    known = isinstance(truth, list | tuple) and all(isinstance(name, str) and name in groups for name in truth)
    return [str(name) for name in truth] if known else None  # type: ignore[union-attr]


def _parameters(space: PolicySpace, likelihood: Likelihood, firth: bool) -> dict[str, list[float]]:
    """θ̂ by row; infinite where no finite value is most likely."""
    if not isinstance(space, ExponentialFamily):
        return {}
    theta = likelihood.full.theta
    theta = np.where(likelihood.diverging & (not firth), np.copysign(np.inf, theta), theta)
    return dict(zip(space.row_names, space.weights(theta).tolist(), strict=True))


def _warnings(
    data: Demonstrations,
    space: PolicySpace,
    likelihood: Likelihood,
    related: list[Dependence],
    diverging: np.ndarray,
    settings: dict[str, Any],
) -> list[str]:
    warnings = [str(dependence) for dependence in related] + likelihood.remarks()
    if settings.get("withheld"):
        warnings.append(f"no χ² verdict is given: {settings['withheld']}.")
    if data.looks_discrete:
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
    if not data.discrete:
        warnings.extend(_piled_up(data))
    if data.discrete and likelihood.total_weight < 5 * space.num_parameters:
        warnings.append(
            f"{likelihood.total_weight:g} pairs for {space.num_parameters} parameters are few: the χ² law of λ is too "
            "liberal here, p-values are somewhat too small."
        )
    return warnings


def _piled_up(data: Demonstrations) -> list[str]:
    """Actions clipped at a bound are not Gaussian."""
    found = []
    for name, column in zip(data.action_names, data.actions.T, strict=True):
        for bound, where in ((column.min(), "smallest"), (column.max(), "largest")):
            share = float((column == bound).mean())
            if share > 0.05 and len(np.unique(column)) > 10:
                found.append(
                    f"{share:.0%} of '{name}' equal its {where} value {bound:g}: actions that are clipped at a bound break "
                    "the Gaussian likelihood; log them before they are clipped."
                )
    return found
