"""Both rules on real likelihoods against brute force over all supports, collinear and large spaces included."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from policyspace import GaussianLinear, Sample, SoftmaxLinear, likelihood_of
from policyspace.families import ChiSquare, WilksLambda
from policyspace.inference import Lattice, WilksTest, each_group_alone, search_supports

MOST_ENUMERATED, MOST_SEARCHED = 24, 16  # groups whose supports are all looked at: Gaussian, Boltzmann


def effects(rng, q, share=0.5, size=0.25):
    return size * rng.normal(size=q) * (rng.random(q) < share)


def gaussian(seed, q=4, n=120, k=1, covariance="estimate", columns=lambda x: x, **space):
    rng = np.random.default_rng(seed)
    x = columns(rng.normal(size=(n, q)))
    y = x @ np.column_stack([effects(rng, x.shape[1]) for _ in range(k)]) + rng.normal(size=(n, k))
    data = Sample.from_arrays(x, y)
    return likelihood_of(GaussianLinear(data.names, data.action_names, covariance, **space), data), data


def boltzmann(seed, q=4, n=250, k=1, columns=lambda x: x, size=0.5, **space):
    rng = np.random.default_rng(seed)
    x = columns(rng.normal(size=(n, q)))
    eta = np.column_stack([x @ effects(rng, x.shape[1], size=size) for _ in range(k)] + [np.zeros(n)])
    y = np.argmax(eta + rng.gumbel(size=eta.shape), axis=1)
    data = Sample.from_arrays(x, y, discrete=True)
    return likelihood_of(SoftmaxLinear(data.names, data.action_names, **space), data), data


def of_mask(space, mask):
    return frozenset(g for bit, g in enumerate(space.tested) if mask >> bit & 1)


def design_rank(space, data, support):
    """rank(F) on the free coordinates, from the raw columns: rows of the weights do not mix."""
    phi = np.column_stack([np.ones(data.num_rows), data.features]) if space.intercept else data.features
    free = space.free_mask(support).reshape(len(space.row_names), -1)
    unit = phi / np.sqrt((phi**2).sum(axis=0))
    return sum(int(np.linalg.matrix_rank(unit[:, row], tol=1e-7)) for row in free)


def brute_force(likelihood, data, significance, paper_rule=False, constant=False):
    """Rule 1 read out loud: one fit a support, degrees of freedom from matrix ranks, quantiles from SciPy."""
    space, size = likelihood.space, len(likelihood.space.tested)
    supports = [of_mask(space, mask) for mask in range(2**size)]
    fits = likelihood.fit_many(supports)
    statistics = np.array([2 * (likelihood.full.log_likelihood - fit.log_likelihood) for fit in fits])
    rank = design_rank(space, data, space.full_support)
    degrees = np.array([rank - design_rank(space, data, support) for support in supports])
    used = np.where(degrees == 0, 0, degrees[0]) if constant else degrees
    p_values = np.array([_p_value(likelihood, s, m) for s, m in zip(statistics, used, strict=True)])
    level = significance / 2**size if paper_rule else significance
    good = set(np.flatnonzero(p_values >= level).tolist())
    if paper_rule:
        chosen = [m for m in good if not any(m >> g & 1 and m ^ 1 << g in good for g in range(size))]
    else:
        chosen = [m for m in good if not any(other != m and other & m == other for other in good)]
    factor = 2**size if paper_rule else 1
    adjusted = {
        g: min(1.0, factor * max(p_values[m] for m in range(2**size) if not m >> bit & 1))
        for bit, g in enumerate(space.tested)
    }
    assume = {g for g, group in enumerate(space.groups) if group.assumed}
    return {supports[m] | assume for m in chosen}, adjusted


def _p_value(likelihood, statistic, m):
    if m == 0:
        return 1.0
    if isinstance(likelihood.law, WilksLambda):
        law = likelihood.law
        if law.num_actions > 1:
            return law.p_value(statistic, int(m))  # Rao's F is held to statsmodels elsewhere
        rest = law.num_rows - law.num_columns
        return stats.f.sf(np.expm1(statistic / law.num_rows) * rest / m, m, rest)
    return stats.chi2.sf(statistic, m)


def check(likelihood, data, significance=0.05, constant=False):
    for paper_rule in (False, True):
        found = search_supports(WilksTest(likelihood), significance, paper_rule)
        expected, adjusted = brute_force(likelihood, data, significance, paper_rule, constant and not paper_rule)
        assert set(found.supports) == expected
        assert found.exhaustive
        assert list(found.adjusted) == list(likelihood.space.tested)
        for g, p in adjusted.items():
            assert found.adjusted[g] == pytest.approx(p, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("covariance", ["estimate", 1.0])
@pytest.mark.parametrize("k", [1, 2])
def test_gaussian_rule_1_is_brute_force(seed, covariance, k):
    check(*gaussian(seed, q=5, k=k, covariance=covariance))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [1, 2])
def test_boltzmann_rule_1_is_brute_force(seed, k):
    check(*boltzmann(seed, q=5, k=k))


@pytest.mark.parametrize("family", [gaussian, boltzmann])
def test_rule_1_with_groups_of_all_kinds(family):
    more = {"covariance": [1.0, 2.0]} if family is gaussian else {}
    check(*family(3, q=3, k=2, groups="parameter", **more))
    check(*family(4, q=6, k=2, groups={"pair": ["x0", "x3"]}, assume=("x5",), **more))
    check(*family(5, q=4, fixed={"x0": 0.3, "x2": -0.2}, intercept=False))


def duplicate(x):
    return np.column_stack([x, x[:, 0]])


def total(x):
    return np.column_stack([x, x[:, 0] + x[:, 1]])


def constant(x):
    return np.column_stack([x, np.full(len(x), 0.1)])


def full_one_hot(x):
    return np.column_stack([x[:, :1], np.eye(3)[np.arange(len(x)) % 3]])


@pytest.mark.parametrize("family", [gaussian, boltzmann])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("columns", [duplicate, constant])
def test_rule_1_among_substitutes_is_brute_force_with_ranks(family, seed, columns):
    check(*family(seed, q=3, k=1 + seed % 2, columns=columns))


@pytest.mark.parametrize("family", [gaussian, boltzmann])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("columns", [total, full_one_hot])
def test_rule_1_among_combinations_uses_the_constant_threshold(family, seed, columns):
    likelihood, data = family(seed, q=3, k=1 + seed % 2, columns=columns)
    assert not likelihood.identifiable
    check(likelihood, data, constant=True)


def test_weak_diffuse_effects_leave_many_supports():
    counts = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(400, 6))
        data = Sample.from_arrays(x, x @ np.full(6, 0.12) + rng.normal(size=400))
        likelihood = likelihood_of(GaussianLinear(data.names, data.action_names, 1.0), data)
        check(likelihood, data, significance=0.01)
        counts.append(len(search_supports(WilksTest(likelihood), 0.01).supports))
    assert max(counts) >= 4


def merged_case(size, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (4000, size)).astype(float)
    eta = np.column_stack([x @ (0.35 * (np.arange(size) < 4)), x @ (0.1 * (np.arange(size) % 2)), np.zeros(4000)])
    data = Sample.from_arrays(x, np.argmax(eta + rng.gumbel(size=eta.shape), axis=1), discrete=True)
    return likelihood_of(SoftmaxLinear(data.names, data.action_names), data), data


def check_large(size):
    likelihood, data = merged_case(size)
    assert len(likelihood.rows) <= 2**size
    for paper_rule in (False, True):
        found = search_supports(WilksTest(likelihood), 0.05, paper_rule)
        expected, adjusted = brute_force(likelihood, data, 0.05, paper_rule)
        assert set(found.supports) == expected and found.exhaustive
        for g, p in adjusted.items():
            assert found.adjusted[g] >= p * (1 - 1e-5)  # where effort ends it is a bound from above
            assert (found.adjusted[g] <= 0.05) == (p <= 0.05)
    test, tested = WilksTest(likelihood), list(likelihood.space.tested)
    lattice = Lattice.of(test, tested, test.test_many([likelihood.space.full_support - {g} for g in tested]))
    critical = np.array([ChiSquare().critical(0.05, m) for m in range(2 * size + 1)])
    lattice.decide(critical[lattice.degrees_of_freedom], upward_closed=True)
    assert lattice.num_tests < 2**size / 2


def test_a_boltzmann_space_of_eight_groups_on_merged_rows():
    check_large(8)


@pytest.mark.slow
def test_a_boltzmann_space_of_eleven_groups_on_merged_rows():
    check_large(11)


def sparse_boltzmann(size, strong, weak=0.0, n=900):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(n, size))
    eta = np.column_stack([x[:, :strong].sum(axis=1) * 1.5 + 2 * weak * x.sum(axis=1), np.zeros(n)])
    data = Sample.from_arrays(x, np.argmax(eta + rng.gumbel(size=eta.shape), axis=1), discrete=True)
    return likelihood_of(SoftmaxLinear(data.names, data.action_names), data)


def sparse_gaussian(size, strong, weak=0.0, n=900):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(n, size))
    data = Sample.from_arrays(x, x[:, :strong].sum(axis=1) + weak * x.sum(axis=1) + rng.normal(size=n))
    return likelihood_of(GaussianLinear(data.names, data.action_names, 1.0), data)


def sufficient_in(likelihood, level):
    everything = likelihood.space.full_support

    def sufficient(support):
        statistic = 2 * (likelihood.full.log_likelihood - likelihood.fit(support).log_likelihood)
        m = len(everything - support)
        return m == 0 or statistic <= stats.chi2.isf(level, m)

    return sufficient


LARGE = [(sparse_boltzmann, MOST_SEARCHED), (sparse_gaussian, MOST_ENUMERATED)]


@pytest.mark.parametrize(("make", "most"), LARGE)
@pytest.mark.parametrize("paper_rule", [False, True])
@pytest.mark.parametrize("weak", [0.0, 0.1])
def test_beyond_what_can_be_exhausted_the_answer_says_so(make, most, paper_rule, weak):
    likelihood = make(most + 3, 2, weak)
    found = search_supports(WilksTest(likelihood), 0.05, paper_rule)
    (support,) = found.supports
    certain = {g for g, p in found.adjusted.items() if p <= 0.05}
    assert certain == {1, 2} and {0, 1, 2} <= support
    sufficient = sufficient_in(likelihood, 0.05 / 2.0 ** (most + 3) if paper_rule else 0.05)
    assert sufficient(support)
    assert not any(sufficient(support - {g}) for g in support - {0})
    # Without the weak effects the certain groups are enough, and then no other support is minimal.
    assert found.exhaustive == (support == {0, 1, 2} and not paper_rule)
    assert (support == {0, 1, 2}) or weak


def test_groups_beyond_doubt_leave_a_large_space_exhaustive():
    likelihood = sparse_gaussian(MOST_ENUMERATED + 4, 14)
    found = search_supports(WilksTest(likelihood), 0.05)
    assert found.exhaustive
    assert {g for g, p in found.adjusted.items() if p <= 0.05} >= set(range(1, 15))
    assert all(frozenset(range(1, 15)) <= support for support in found.supports)


def test_a_greedy_support_has_no_group_that_can_go():
    # What cannot go alone may go after others, when the critical value has grown.
    partial = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        size = MOST_ENUMERATED + 1
        x = rng.normal(size=(600, size))
        data = Sample.from_arrays(x, x @ np.full(size, 0.08) + rng.normal(size=600))
        likelihood = likelihood_of(GaussianLinear(data.names, data.action_names, 1.0), data)
        found = search_supports(WilksTest(likelihood), 0.05)
        partial += not found.exhaustive
        sufficient = sufficient_in(likelihood, 0.05)
        for support in found.supports if not found.exhaustive else ():
            assert sufficient(support) and not any(sufficient(support - {g}) for g in support - {0})
    assert partial > 3


@pytest.mark.parametrize("family", [gaussian, boltzmann])
@pytest.mark.parametrize(("correction", "method"), [("holm", "holm"), ("bonferroni", "bonferroni"), ("bh", "fdr_bh")])
def test_rule_2_is_one_test_a_group_and_statsmodels_correction(family, correction, method):
    for seed in range(4):
        likelihood, _ = family(seed, q=6, k=2)
        found = each_group_alone(WilksTest(likelihood), 0.1, correction)
        space = likelihood.space
        p_values = []
        for g in space.tested:
            statistic = 2 * (likelihood.full.log_likelihood - likelihood.fit(space.full_support - {g}).log_likelihood)
            assert found.tests[g].statistic == pytest.approx(statistic, abs=1e-6)
            p_values.append(_p_value(likelihood, statistic, 2))
        rejected, adjusted, _, _ = multipletests(p_values, 0.1, method)
        np.testing.assert_allclose(list(found.adjusted.values()), adjusted, rtol=1e-5)
        assert found.supports == [frozenset(g for g, r in zip(space.tested, rejected, strict=True) if r)]


def test_no_tested_groups_leave_the_full_support():
    likelihood, _ = gaussian(0, q=2, assume=("x0", "x1"))
    found = search_supports(WilksTest(likelihood), 0.05)
    assert found.supports == [likelihood.space.full_support] and found.adjusted == {}
    assert Lattice.of(WilksTest(likelihood), []).exact
    assert each_group_alone(WilksTest(likelihood), 0.05).supports == [frozenset()]
