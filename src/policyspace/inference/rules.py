"""The two identification rules: one test a group (Rule 2), or all supports (Rule 1)."""

from dataclasses import dataclass, replace

import numpy as np

from policyspace.fits.base import Fit, Likelihood
from policyspace.fits.law import ConstantThreshold, ReferenceLaw
from policyspace.inference.corrections import CORRECTIONS, Correction
from policyspace.inference.glr import Test, likelihood_ratio
from policyspace.inference.lattice import Enumerates, Lattice, minimal, without_sufficient_child
from policyspace.policies.groups import Support

MOST_ENUMERATED = 24
"""Groups whose 2^D supports are enumerated where λ of all of them comes at once (Gaussian)."""

MOST_SEARCHED = 16
"""Groups whose 2^D supports are searched where each costs a fit."""

EFFORT = 128
"""Fits spent on nothing but sharper adjusted p-values."""


@dataclass(frozen=True)
class Verdicts:
    """What a rule concludes: supports that explain the agent, and for every tested group a test and its adjusted p."""

    supports: list[Support]
    tests: dict[int, Test]
    adjusted: dict[int, float]
    exhaustive: bool
    full: Fit


def one_at_a_time(likelihood: Likelihood, significance: float, correction: Correction = "holm") -> Verdicts:
    """Rule 2: Î = {i : λ_i > c}, one test a group with all others free, corrected for their number."""
    tests = _one_group_out(likelihood)
    p_values = np.array([test.p_value for test in tests.values()])
    adjusted = dict(zip(tests, CORRECTIONS[correction](p_values).tolist(), strict=True))
    chosen = frozenset(g for g in tests if adjusted[g] <= significance)
    return Verdicts([chosen], tests, adjusted, True, likelihood.full)


def all_supports(
    likelihood: Likelihood, significance: float, paper_rule: bool = False, exchangeable: bool = True
) -> Verdicts:
    """Rule 1: all minimal supports I that explain the data.

    By closed testing (default): H_I is rejected when every J ⊆ I has λ_J > χ²_{m_J,1−δ}, with no factor 2^d; what is
    reported are the minimal accepted supports. By the paper's rule: λ_I ≤ c(I) and λ_{I∖i} > c(I∖i) for all i ∈ I,
    c at δ/2^d. Where features are collinear without being `exchangeable`, closed testing uses one threshold for all.
    """
    tests = _one_group_out(likelihood)
    groups = list(tests)
    level = significance / 2.0 ** len(groups) if paper_rule else significance
    law = likelihood.law
    smallest = likelihood.degrees_of_freedom(frozenset())
    if not (paper_rule or likelihood.identifiable or exchangeable):
        law = ConstantThreshold(law, smallest)
    most = MOST_ENUMERATED if isinstance(likelihood, Enumerates) else MOST_SEARCHED
    searched = groups
    if len(groups) > most:
        # λ only grows as supports shrink: what fails at the critical value of the smallest support fails in all.
        certain = law.critical(level, smallest)
        searched = [g for g in groups if tests[g].statistic <= certain]
    factor = 2.0 ** len(groups) if paper_rule else 1.0
    adjusted = {g: min(1.0, factor * law.p_value(tests[g].statistic, smallest)) for g in groups}
    if len(searched) > most:
        support = _greedy(likelihood, law, level, searched, tests)
        unsure = {g: max(adjusted[g], float(np.nextafter(significance, 1))) for g in searched}
        # Every sufficient support holds the others; where they are enough, no other support is minimal.
        only = not support.intersection(searched) and not paper_rule
        return Verdicts([support], tests, adjusted | unsure, only, likelihood.full)
    lattice = _lattice(likelihood, searched, tests)
    degrees = lattice.degrees_of_freedom
    critical = np.zeros(int(degrees.max(initial=0)) + 1)
    for m in np.unique(degrees).tolist():
        critical[m] = law.critical(level, m)
    sufficient = lattice.decide(critical[degrees], upward_closed=not paper_rule)
    masks = without_sufficient_child(sufficient) if paper_rule else minimal(sufficient)
    largest = lattice.adjusted_p_values(law, EFFORT if len(searched) > 6 else 2 ** len(searched))
    adjusted |= {g: min(1.0, factor * p) for g, p in zip(searched, largest.tolist(), strict=True)}
    supports = [lattice.support(int(mask)) for mask in masks]
    return Verdicts(sorted(supports, key=lambda s: (len(s), sorted(s))), tests, adjusted, True, likelihood.full)


def _one_group_out(likelihood: Likelihood) -> dict[int, Test]:
    """λ with one group fixed and all others free, for every tested group."""
    groups = likelihood.space.tested
    fits = likelihood.fit_many([likelihood.space.everything - {g} for g in groups])
    for fit in fits:
        likelihood.adopt(fit)
    tests = {g: likelihood_ratio(fit, likelihood.full) for g, fit in zip(groups, fits, strict=True)}
    if likelihood.design is None:
        return tests  # what restarts leave open is judged by their noise
    # A restricted fit that stopped short makes λ too large: it must not count as evidence.
    return {
        g: test if fit.converged else replace(test, p_value=1.0)
        for (g, test), fit in zip(tests.items(), fits, strict=True)
    }


def _lattice(likelihood: Likelihood, groups: list[int], tests: dict[int, Test]) -> Lattice:
    degrees = likelihood.num_free(likelihood.space.everything) - likelihood.num_free_of_all(groups)
    lattice = Lattice.of(likelihood, groups, degrees)
    if not lattice.exact and groups:
        one_out = np.array([2 ** len(groups) - 1 - (1 << bit) for bit in range(len(groups))])
        statistics = np.array([tests[g].statistic for g in groups])
        lattice.learn(one_out, statistics, statistics)
    return lattice


def _greedy(
    likelihood: Likelihood, law: ReferenceLaw, level: float, groups: list[int], tests: dict[int, Test]
) -> Support:
    """One support from which no single group can be taken away: weakest evidence first, until none can go."""

    def sufficient(support: Support) -> bool:
        smaller = likelihood.fit(support)
        likelihood.adopt(smaller)
        test = likelihood_ratio(smaller, likelihood.full)
        return test.statistic <= law.critical(level, test.degrees_of_freedom)

    support, before = likelihood.space.everything, None
    if sufficient(support.difference(groups)):
        return support.difference(groups)
    while support != before:  # what could not go at first may go later: c grows with the degrees of freedom
        before = support
        for g in sorted(support.intersection(groups), key=lambda g: tests[g].statistic):
            if sufficient(support - {g}):
                support = support - {g}
    return support
